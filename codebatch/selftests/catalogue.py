"""The self-tests by name. Names that they had in CodeBatch 1.0.2 are included."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Literal

import msgspec

from codebatch.errors import InvalidInput
from codebatch.selftests.documents import check_documents, check_objects
from codebatch.selftests.findings import GateStatus, SelftestFindings
from codebatch.selftests.index import (
    check_index_answers,
    check_index_is_optional,
    check_index_writes,
    check_rebuilt_index,
)
from codebatch.selftests.names import check_file_names
from codebatch.selftests.program import check_program
from codebatch.selftests.results import (
    SAMPLED_FILES_SHARE,
    check_items_covered,
    check_outputs,
    check_record_order,
    check_reproducible_results,
)
from codebatch.selftests.subject import SelftestSubject

GateNeeds = Literal["program", "store", "batch"]


class SelftestGate(msgspec.Struct, frozen=True, kw_only=True):
    """A self-test.

    - `aliases`: its names in CodeBatch 1.0.2.
    - `needs`: what it checks. If this does not exist, the self-test is skipped.
    - `writes`: describes what it changes; empty if it changes nothing.
    """

    id: str
    aliases: tuple[str, ...] = ()
    invariant: str
    inspects: str
    needs: GateNeeds
    writes: str = ""
    check: Callable[[SelftestSubject, SelftestFindings], None]
    status: GateStatus = "ENFORCED"

    @property
    def tags(self) -> tuple[str, ...]:
        """The part that the self-test checks (`needs`), and its phases in CodeBatch 1.0.2."""
        phases = {f"phase{alias[1]}" for alias in self.aliases if alias[:1] == "P" and alias[2:4] == "-G"}
        phases |= {"phase3" for alias in self.aliases if alias.startswith("P3-")}
        return (self.needs, *sorted(phases))


class GateDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A self-test in the answers of `codebatch selftest list` and `selftest explain`.

    `writes` describes what the self-test writes. It is empty if the self-test writes nothing.
    """

    gate_id: str
    aliases: tuple[str, ...]
    status: GateStatus
    tags: tuple[str, ...]
    invariant: str
    inspects: str
    needs: GateNeeds
    writes: str


class GateExplainAnswer(GateDescription, frozen=True, kw_only=True):
    """The answer of `codebatch selftest explain`."""

    schema: Literal["codebatch.gate-explain/1"] = "codebatch.gate-explain/1"


SELFTEST_GATES = (
    SelftestGate(
        id="store-schema",
        aliases=("P1-G1",),
        invariant="all documents of the store are intact and have a format that this version reads",
        inspects="store.json, untrusted.json, and the documents of all batches and snapshots, with their checksums",
        needs="store",
        check=check_documents,
    ),
    SelftestGate(
        id="no-foreign-files",
        aliases=("P2-G6", "truth-guard", "P5-G2", "no-new-truth"),
        invariant="the store contains only files of its layout",
        inspects='all paths in the store except below scratch/, compared with "Store layout" in SPEC.md',
        needs="store",
        check=check_file_names,
    ),
    SelftestGate(
        id="objects",
        invariant="every object that a snapshot or record refers to exists and is intact",
        inspects="every byte of these objects, compared with the hash in their name",
        needs="store",
        writes="a mark for each damaged object beside its pack, so that the next snapshot stores the object again",
        check=check_objects,
    ),
    SelftestGate(
        id="plan-covered",
        aliases=("P2-G1", "pipeline-exec"),
        invariant="every file of the batch has a result of every task",
        inspects="the plan compared with its snapshot, and the results with the plan (merged results row by row)",
        needs="batch",
        check=check_items_covered,
    ),
    SelftestGate(
        id="task-order",
        aliases=("P2-G7", "deps-check"),
        invariant="every task comes after the tasks that it needs",
        inspects="the order of the tasks in the plan and in the outputs",
        needs="batch",
        check=check_record_order,
    ),
    SelftestGate(
        id="outputs-match",
        aliases=("P5-G1", "workflow-equiv"),
        invariant="the records of the batch match its counts and digests",
        inspects="every byte of the merged outputs: frames, item tables, counts, digests",
        needs="batch",
        check=check_outputs,
    ),
    SelftestGate(
        id="resume-equals",
        aliases=("P5-G3", "resume-equiv"),
        invariant="executing files again gives the same bytes",
        inspects=f"{SAMPLED_FILES_SHARE:.0%} of the files, at least one, executed again like `codebatch verify`",
        needs="batch",
        writes="a hidden temporary batch; if results of a task differ, its results are no longer reused",
        check=check_reproducible_results,
    ),
    SelftestGate(
        id="index-equals-scan",
        aliases=("P3-A1", "A1", "cache-equiv"),
        invariant="queries give the same answers with and without an index",
        inspects="a sample of names, name prefixes and rule IDs, queried with the index of the batch and without it",
        needs="batch",
        check=check_index_answers,
    ),
    SelftestGate(
        id="index-optional",
        aliases=("P3-A2", "A2", "cache-fallback"),
        invariant="all queries work without an index",
        inspects="each kind and a sample of rule IDs, queried without an index and compared with their counts",
        needs="batch",
        check=check_index_is_optional,
    ),
    SelftestGate(
        id="index-rebuilt",
        aliases=("P3-A3", "A3", "cache-rebuild"),
        invariant="rebuilding the index gives the same content",
        inspects="every key and value of the index of the batch, like `codebatch index build --verify`",
        needs="batch",
        check=check_rebuilt_index,
    ),
    SelftestGate(
        id="index-writes-only-indexes",
        aliases=("P3-A4", "A4", "cache-guard"),
        invariant="building an index writes nothing except indexes",
        inspects="all paths in the store except below indexes/, before and after an index is built",
        needs="batch",
        writes="an index of the batch, replacing an older one",
        check=check_index_writes,
    ),
    SelftestGate(
        id="api-complete",
        aliases=("P5-G4", "discover", "P5-G5", "ux-smoke"),
        invariant="all documented commands and pipelines exist",
        inspects="commands with their help and options, `api --json`, and the tasks of all pipelines",
        needs="program",
        check=check_program,
    ),
)

BUNDLE_NAMES = ("all", "phase1", "phase2", "phase3", "release")
"""Names of groups of self-tests. Each of them now means all self-tests.

Except for `all`, they were names of smaller groups in CodeBatch 1.0.2.
"""


def find_gate(name: str) -> SelftestGate:
    """Return the self-test with a name or alias. Raises InvalidInput."""
    by_name = {alias: gate for gate in SELFTEST_GATES for alias in (gate.id, *gate.aliases)}
    if name in by_name:
        return by_name[name]
    hint = "see: codebatch selftest list"
    if name in BUNDLE_NAMES:
        hint = f"it is a group of self-tests: codebatch selftest bundle {name}"
    elif close := difflib.get_close_matches(name, by_name, n=1):
        hint = f"did you mean {close[0]!r}? see: codebatch selftest list"
    raise InvalidInput(f"no such self-test: {name!r}", hint=hint)


def check_bundle(name: str) -> None:
    """Raise InvalidInput if a name is not one of the groups of self-tests."""
    if name not in BUNDLE_NAMES:
        is_selftest = any(name in (gate.id, *gate.aliases) for gate in SELFTEST_GATES)
        selftest_hint = f"it is a single self-test: codebatch selftest run {name}"
        raise InvalidInput(
            f"no such group of self-tests: {name!r}",
            hint=selftest_hint if is_selftest else f"one of: {', '.join(BUNDLE_NAMES)}",
        )


def describe_gate(gate: SelftestGate) -> GateDescription:
    """Return the description of a self-test."""
    return GateDescription(
        gate_id=gate.id,
        aliases=gate.aliases,
        status=gate.status,
        tags=gate.tags,
        invariant=gate.invariant,
        inspects=gate.inspects,
        needs=gate.needs,
        writes=gate.writes,
    )
