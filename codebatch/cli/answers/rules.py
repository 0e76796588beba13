"""JSON types of the answers of `rules`."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.entry import PathMembers
from codebatch.query.filters.filters import JsonRecord


class RuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in the answer of `codebatch rules list`."""

    code: str
    severity: str
    enabled: bool
    tool: str
    summary: str


class RuleShowAnswer(RuleRow, frozen=True, kw_only=True):
    """The answer of `codebatch rules show`.

    `judgements` counts findings of the rule in real projects by how they were judged. If a batch exists, `findings` is
    the number of findings in this batch. `complete`, `percent`, `stale` and `paths` are then as in the answer of
    `codebatch summary`.
    """

    name: str
    example: str
    explanation: str
    url: str
    severity_reason: str
    judgements: dict[str, int]
    findings: int | UnsetType = UNSET
    batch_id: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    complete: bool | UnsetType = UNSET
    percent: float | UnsetType = UNSET
    stale: bool | UnsetType | None = UNSET
    paths: tuple[str, ...] | UnsetType = UNSET


class WrongExample(msgspec.Struct, frozen=True, kw_only=True):
    """An example that failed: a `bad` example without a finding, or a `good` example with a finding."""

    example: Literal["bad", "good"]
    text: str
    findings: int


class RuleTestRow(msgspec.Struct, frozen=True, kw_only=True):
    """A custom rule that was tested."""

    id: str
    examples: int
    failed_examples: tuple[WrongExample, ...]


class RuleTrialFile(PathMembers, frozen=True, kw_only=True):
    """A file on which custom rules were tested. `rules` is the number of custom rules for the language of the file.

    `skip_reason` is the reason why the file was skipped; otherwise it is empty.
    """

    language: str
    rules: int
    skip_reason: str


class RuleFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A custom rule that failed on a file or on one of its examples, because it took too long or crashed."""

    rule: str
    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET
    example: Literal["bad", "good"] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    reason: str


class RulesTestAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch rules test`."""

    rules: tuple[RuleTestRow, ...]
    files: tuple[RuleTrialFile, ...]
    findings: tuple[JsonRecord, ...]
    failures: tuple[RuleFailure, ...]
