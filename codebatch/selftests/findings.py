"""The findings and the result of a self-test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

import msgspec

from codebatch.errors import StoreError, UnknownId

FAILURES_SHOWN_MAX = 100

GateOutcome = Literal["passed", "failed", "skipped"]
GateStatus = Literal["ENFORCED"]
"""The status of a self-test.

There is only one value. In CodeBatch 1.0.2, some self-tests could not fail and had another status.
"""


class GateFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A violation that a self-test found: its location, the expected and the actual value, and a suggestion. Unknown
    values are null.
    """

    message: str
    location: str | None = None
    expected: str | None = None
    actual: str | None = None
    suggestion: str | None = None


class GateEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment in which a self-test ran."""

    os: str
    python: str
    codebatch_version: str


class GateContext(msgspec.Struct, frozen=True, kw_only=True):
    """The store, batch and snapshot that a self-test checked. Members that are missing or unreadable are null."""

    store: str | None
    batch_id: str | None
    snapshot_id: str | None


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch selftest run`.

    - `reason`: why the self-test was skipped; otherwise empty.
    - `details`: the number of checked items of each kind.
    - `failures`: the first violations. `failures_count` is the number of all violations.
    - `artifacts`: always empty, because no self-test leaves files.
    """

    schema: Literal["codebatch.gate-run/1"] = "codebatch.gate-run/1"
    gate_id: str
    status: GateStatus
    outcome: GateOutcome
    passed: bool
    reason: str
    duration_ms: int
    details: dict[str, int]
    artifacts: tuple[str, ...] = ()
    failures_count: int
    failures: tuple[GateFailure, ...]
    environment: GateEnvironment
    context: GateContext


class BundleResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch selftest bundle`. `passed` is set if no self-test failed and none was skipped."""

    schema: Literal["codebatch.gate-bundle/1"] = "codebatch.gate-bundle/1"
    bundle_name: str
    passed: bool
    total: int
    passed_count: int
    failed_count: int
    skipped_count: int
    duration_ms: int
    results: tuple[GateResult, ...]


class SelftestFindings:
    """The findings of a self-test so far: failures, counts of checked items, and the reason if it was skipped."""

    def __init__(self) -> None:
        self.failures: list[GateFailure] = []
        self.failures_count = 0
        self.details: dict[str, int] = {}
        self.skipped = ""

    @property
    def outcome(self) -> GateOutcome:
        """The outcome of the self-test. A self-test that was skipped after it found failures counts as failed."""
        if self.failures_count:
            return "failed"
        return "skipped" if self.skipped else "passed"

    def count_checked(self, noun: str, number: int = 1) -> None:
        """Add to the number of checked items of a kind. `noun` names the kind."""
        self.details[noun] = self.details.get(noun, 0) + number

    def add_failure(
        self,
        message: str,
        *,
        location: str | None = None,
        expected: object = None,
        actual: object = None,
        suggestion: str | None = None,
    ) -> None:
        """Record a failure. Only the first FAILURES_SHOWN_MAX failures are stored, but all are counted."""
        self.failures_count += 1
        if len(self.failures) < FAILURES_SHOWN_MAX:
            self.failures.append(
                GateFailure(
                    message=message,
                    location=location,
                    expected=None if expected is None else str(expected),
                    actual=None if actual is None else str(actual),
                    suggestion=suggestion,
                )
            )

    @contextlib.contextmanager
    def recording_damage(self, location: str) -> Iterator[None]:
        """Record a StoreError that the block raises as a failure at a location, and continue.

        An UnknownId is ignored: garbage collection removed the batch or snapshot during the self-test.
        """
        try:
            yield
        except UnknownId:
            pass
        except StoreError as error:
            self.add_failure(error.message, location=location, suggestion=error.hint)
