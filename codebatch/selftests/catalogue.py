"""The self-tests by name, and their results. Names that they had in CodeBatch 1.0.2 are included."""

from __future__ import annotations

import contextlib
import platform
from collections import Counter
from typing import Literal

import msgspec

from codebatch import __version__
from codebatch.errors import (
    BatchIncomplete,
    CodebatchError,
    InvalidInput,
    StoreError,
    StoreInUse,
    StoreNotFound,
    StoreUnwritable,
)
from codebatch.model.text.suggestions import closest_word
from codebatch.selftests.checks import CHECKS, SAMPLED_FILES_SHARE
from codebatch.selftests.subject import GateFailure, SelftestSubject
from codebatch.system.clock import running_ns

FAILURES_SHOWN_MAX = 100

BUNDLE_NAMES = ("all", "phase1", "phase2", "phase3", "release")
"""Names of groups of self-tests. Each of them now means all self-tests.

Except for `all`, they were names of smaller groups in CodeBatch 1.0.2.
"""


class SelftestGate(msgspec.Struct, frozen=True, kw_only=True):
    """A self-test in the answers of `codebatch selftest list` and `selftest explain`.

    - `aliases`: its names in CodeBatch 1.0.2, and those of self-tests that are part of it now.
    - `status`: in CodeBatch 1.0.2, some self-tests could not fail and had another status.
    - `tags`: the part that it needs, and its phases in CodeBatch 1.0.2.
    - `needs`: what it checks. If this does not exist, the self-test is skipped.
    - `writes`: describes what it changes; empty if it changes nothing.
    """

    gate_id: str
    aliases: tuple[str, ...]
    status: Literal["ENFORCED"] = "ENFORCED"
    tags: tuple[str, ...]
    invariant: str
    inspects: str
    needs: Literal["program", "store", "batch"]
    writes: str = ""


class GateExplainAnswer(SelftestGate, frozen=True, kw_only=True):
    """The answer of `codebatch selftest explain`."""

    schema: Literal["codebatch.gate-explain/1"] = "codebatch.gate-explain/1"


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
    status: Literal["ENFORCED"] = "ENFORCED"
    outcome: Literal["passed", "failed", "skipped"]
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


SELFTEST_GATES = (
    SelftestGate(
        gate_id="store-schema",
        aliases=("P1-G1", "objects"),
        tags=("store", "phase1"),
        invariant="everything in the store is intact and has a format that this version reads",
        inspects="every document, object, result file and index, like `codebatch diagnose --full`",
        needs="store",
        writes="a mark for each damaged object beside its pack, so that the next snapshot stores the object again",
    ),
    SelftestGate(
        gate_id="no-foreign-files",
        aliases=("P2-G6", "truth-guard", "P5-G2", "no-new-truth"),
        tags=("store", "phase2", "phase5"),
        invariant="the store contains only files of its layout",
        inspects='all paths in the store except below scratch/, compared with "Store layout" in SPEC.md',
        needs="store",
    ),
    SelftestGate(
        gate_id="plan-covered",
        aliases=("P2-G1", "pipeline-exec", "task-order", "P2-G7", "deps-check"),
        tags=("batch", "phase2"),
        invariant="every file of the batch has a result of every task, and tasks come after those that they need",
        inspects="the plan compared with its snapshot, and the results with the plan",
        needs="batch",
    ),
    SelftestGate(
        gate_id="outputs-match",
        aliases=("P5-G1", "workflow-equiv", "index-optional", "P3-A2", "A2", "cache-fallback"),
        tags=("batch", "phase3", "phase5"),
        invariant="the records of the batch, read without an index, match its counts",
        inspects="every byte of the merged outputs: frames, item tables, counts",
        needs="batch",
    ),
    SelftestGate(
        gate_id="resume-equals",
        aliases=("P5-G3", "resume-equiv"),
        tags=("batch", "phase5"),
        invariant="executing files again gives the same bytes",
        inspects=f"{SAMPLED_FILES_SHARE:.0%} of the files, at least one, executed again like `codebatch verify`",
        needs="batch",
        writes="a hidden temporary batch; if results of a task differ, its results are no longer reused",
    ),
    SelftestGate(
        gate_id="index-rebuilt",
        aliases=("P3-A3", "A3", "cache-rebuild", "index-equals-scan", "P3-A1", "A1", "cache-equiv"),
        tags=("batch", "phase3"),
        invariant="the index of the batch finds exactly what is in the records and in the files",
        inspects="every key and value of the index of the batch, like `codebatch index build --verify`",
        needs="batch",
    ),
    SelftestGate(
        gate_id="index-writes-only-indexes",
        aliases=("P3-A4", "A4", "cache-guard"),
        tags=("batch", "phase3"),
        invariant="building an index writes nothing except indexes",
        inspects="all paths in the store except below indexes/, before and after an index is built",
        needs="batch",
        writes="an index of the batch, replacing an older one",
    ),
    SelftestGate(
        gate_id="api-complete",
        aliases=("P5-G4", "discover", "P5-G5", "ux-smoke"),
        tags=("program", "phase5"),
        invariant="all commands can be loaded, and all pipelines can be planned",
        inspects="the commands of `codebatch api`, and the tasks of all pipelines",
        needs="program",
    ),
)


def find_gate(name: str) -> SelftestGate:
    """Return the self-test with a name or alias. Raises InvalidInput."""
    by_name = {alias: gate for gate in SELFTEST_GATES for alias in (gate.gate_id, *gate.aliases)}
    if name in by_name:
        return by_name[name]
    hint = "see: codebatch selftest list"
    if name in BUNDLE_NAMES:
        hint = f"it is a group of self-tests: codebatch selftest bundle {name}"
    elif close := closest_word(name, by_name):
        hint = f"did you mean {close!r}? {hint}"
    raise InvalidInput(f"no such self-test: {name!r}", hint=hint)


def run_gate(gate: SelftestGate, subject: SelftestSubject) -> GateResult:
    """Run a self-test.

    It is skipped if the part that it checks does not exist, is empty, or may not be accessed. It fails if the store
    cannot be read. Raises Stopped.
    """
    began_ns = running_ns()
    checked: Counter[str] = Counter()
    reason = ""
    failures: list[GateFailure] = []
    try:
        failures.extend(CHECKS[gate.gate_id](subject, checked))
        if not any(checked.values()):
            reason = "there is nothing to check"
    except (InvalidInput, BatchIncomplete, StoreNotFound, StoreUnwritable, StoreInUse) as error:
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
    except StoreError as error:
        failures.append(GateFailure(message=error.message, suggestion=error.hint))
    return GateResult(
        gate_id=gate.gate_id,
        outcome="failed" if failures else "skipped" if reason else "passed",
        passed=not failures and not reason,
        reason=reason,
        duration_ms=(running_ns() - began_ns) // 1_000_000,
        details=dict(sorted(checked.items())),
        failures_count=len(failures),
        failures=tuple(failures[:FAILURES_SHOWN_MAX]),
        environment=GateEnvironment(
            os=platform.system(), python=platform.python_version(), codebatch_version=__version__
        ),
        context=_checked_context(subject, with_batch=gate.needs == "batch"),
    )


def _checked_context(subject: SelftestSubject, *, with_batch: bool) -> GateContext:
    store = batch = None
    with contextlib.suppress(CodebatchError):  # The self-test has already reported the error.
        store = subject.store
        batch = subject.batch if with_batch else None
    return GateContext(
        store=None if store is None else str(store.root),
        batch_id=None if batch is None else batch.id,
        snapshot_id=None if batch is None else batch.about.snapshot_id,
    )


def run_bundle(name: str, subject: SelftestSubject, *, is_stopping: bool) -> BundleResult:
    """Run all self-tests in order. `name` is the group that the user named. Raises Stopped.

    With `is_stopping`, end after the first failure.
    """
    began_ns = running_ns()
    results: list[GateResult] = []
    for gate in SELFTEST_GATES:
        results.append(run_gate(gate, subject))
        if is_stopping and results[-1].outcome == "failed":
            break
    counts = Counter(result.outcome for result in results)
    return BundleResult(
        bundle_name=name,
        passed=counts["passed"] == len(results),
        total=len(results),
        passed_count=counts["passed"],
        failed_count=counts["failed"],
        skipped_count=counts["skipped"],
        duration_ms=(running_ns() - began_ns) // 1_000_000,
        results=tuple(results),
    )
