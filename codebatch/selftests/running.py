"""The execution of self-tests, and the conditions under which they fail or are skipped."""

from __future__ import annotations

import platform

from codebatch import __version__
from codebatch.errors import (
    BatchIncomplete,
    InvalidInput,
    StoreError,
    StoreInUse,
    StoreNotFound,
    StoreUnwritable,
)
from codebatch.selftests.catalogue import SELFTEST_GATES, SelftestGate
from codebatch.selftests.findings import BundleResult, GateEnvironment, GateResult, SelftestFindings
from codebatch.selftests.subject import SelftestSubject
from codebatch.system.clock import running_ns


def run_gate(gate: SelftestGate, subject: SelftestSubject) -> GateResult:
    """Run a self-test.

    It is skipped if the part that it checks does not exist, is empty, or may not be accessed. It fails if the store
    cannot be read. Raises Stopped.
    """
    began_ns = running_ns()
    findings = SelftestFindings()
    try:
        gate.check(subject, findings)
        if not any(findings.details.values()):
            findings.skipped = findings.skipped or "there is nothing to check"
    except (InvalidInput, BatchIncomplete, StoreNotFound, StoreUnwritable, StoreInUse) as error:
        findings.skipped = f"{error.message}; {error.hint}" if error.hint else error.message
    except StoreError as error:
        findings.add_failure(error.message, suggestion=error.hint)
    outcome = findings.outcome
    return GateResult(
        gate_id=gate.id,
        status=gate.status,
        outcome=outcome,
        passed=outcome == "passed",
        reason=findings.skipped,
        duration_ms=(running_ns() - began_ns) // 1_000_000,
        details=dict(sorted(findings.details.items())),
        failures_count=findings.failures_count,
        failures=tuple(findings.failures),
        environment=GateEnvironment(
            os=platform.system(), python=platform.python_version(), codebatch_version=__version__
        ),
        context=subject.gate_context(with_batch=gate.needs == "batch"),
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
    counts = {
        outcome: sum(result.outcome == outcome for result in results) for outcome in ("passed", "failed", "skipped")
    }
    return BundleResult(
        bundle_name=name,
        passed=not counts["failed"] and not counts["skipped"],
        total=len(results),
        passed_count=counts["passed"],
        failed_count=counts["failed"],
        skipped_count=counts["skipped"],
        duration_ms=(running_ns() - began_ns) // 1_000_000,
        results=tuple(results),
    )
