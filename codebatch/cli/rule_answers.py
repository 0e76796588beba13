"""The answers of `rules`, as JSON has them."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.cli.answers import Placed
from codebatch.query.filters import JsonRecord


class RuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of `rules list`."""

    code: str
    severity: str
    enabled: bool
    tool: str
    summary: str


class RuleShown(RuleRow, frozen=True, kw_only=True):
    """`rules show`: what is known of a rule. `findings` are those of a batch, as complete as in `summary`.

    Without a batch there are none of these. `judgements` are findings of real trees by what they were judged to be.
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
    """A `bad` example in which nothing is found, or a `good` one in which something is."""

    example: Literal["bad", "good"]
    text: str
    findings: int


class RuleTested(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of one's own."""

    id: str
    examples: int
    failed_examples: tuple[WrongExample, ...]


class FileTried(Placed, frozen=True, kw_only=True):
    """The number of own rules tried on a file. If there is none, `skip_reason` says why, as a run does."""

    language: str
    rules: int
    skip_reason: str


class RuleFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that gave no answer on a file, or on an example of its own, and why: it took too long, or crashed."""

    rule: str
    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET
    example: Literal["bad", "good"] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    reason: str


class RulesTested(msgspec.Struct, frozen=True, kw_only=True):
    """`rules test`."""

    rules: tuple[RuleTested, ...]
    files: tuple[FileTried, ...]
    findings: tuple[JsonRecord, ...]
    failures: tuple[RuleFailure, ...]
