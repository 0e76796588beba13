"""Tests of the input of project tasks: all records of needed tasks with their files, however the work was divided."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codebatch.model.outcome import HolderId, WorkUnit
from codebatch.model.plan import ContextTable, plan_items
from codebatch.model.record import Diagnostic, Metric, Record
from codebatch.store.batches.store_directory import create_store
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.results import UnitResults
from tests.support.batches import CheapRunner, make_batch

PATHS = ["a", "b", "c", "d", "e", "f", "g"]
SHARD = 4
CUTS = [(0, 0, 1), (0, 1, 4), (1, 0, 2), (1, 2, 3)]


@pytest.fixture
def project(tmp_path: Path) -> BatchProject:
    """A project with a metric and a diagnostic for each file but `c`, from four units in two shards."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    batch = make_batch(store, [path.encode() for path in PATHS], shard_items=SHARD)
    plan = batch.plan()
    runner = CheapRunner(plan.tasks, lambda: None, lambda: False)
    items = plan_items(load_snapshot(store.files, store.root, plan.snapshot_id).entries)
    committer = OutcomeCommitter(store.files, batch.root, HolderId("0" * 32))
    for shard, start, end in CUTS:
        first = plan.shards[shard].start
        done = UnitResults(start=start, items=items[first + start : first + end])
        done.results["parse"] = [_records(entry.text) for entry in done.items]
        unit = WorkUnit(shard=plan.shards[shard].id, start=start, end=end, tasks=("parse",))
        committer.commit_outcomes(list(runner.encode_unit(unit, done)), epoch=1, round_=1)
    outcomes = OutcomeRegisters(store.files, batch.root)
    ledger = load_ledger(plan, outcomes)
    return BatchProject(plan, items, ledger, outcomes, read=lambda entry: entry.path, needs=("parse",))


def test_source_has_the_contexts_that_the_task_sees(project: BatchProject) -> None:
    every = {name: ContextTable(values=(name.encode(),), items=(0,) * len(PATHS)) for name in ("language", "packages")}
    plan = msgspec.structs.replace(project._plan, contexts=every)
    seeing = BatchProject(
        plan, project.files, project._ledger, project._outcomes, read=project.read, needs=(), contexts={"language"}
    )
    assert seeing.source(project.files[0]).contexts == {"language": b"language"}


def _records(path: str) -> list[Record]:
    if path == "c":
        return []
    finding = Diagnostic(
        path=path, line=1, column=1, end_line=1, end_column=1, severity="hint", code="code", message="", tool="t"
    )
    return [Metric(path=path, metric="code", value=1), finding]


@pytest.mark.parametrize(
    ("kinds", "holding", "expected"),
    [
        ((), "", [Metric, Diagnostic]),
        (("metric",), "", [Metric]),
        (("diagnostic",), "code", [Diagnostic]),
        (("metric", "diagnostic"), "severity", [Diagnostic]),
        (("metric",), "severity", []),
        (("symbol",), "", []),
    ],
)
def test_records_are_returned_with_their_files(
    project: BatchProject, kinds: tuple[str, ...], holding: str, expected: list[type[Record]]
) -> None:
    rows = [
        (file.text, [(type(record), record.path) for record in records])
        for file, records in project.records("parse", *kinds, holding=holding)
    ]
    expected_paths = [path for path in PATHS if path != "c"] if expected else []
    assert rows == [(path, [(kind, path) for kind in expected]) for path in expected_paths]


def test_records_of_an_undeclared_need_are_rejected(project: BatchProject) -> None:
    with pytest.raises(ValueError, match="must declare that it needs 'lint'"):
        list(project.records("lint"))


def test_records_of_a_file_are_returned(project: BatchProject, tmp_path: Path) -> None:
    files = [project.files[PATHS.index(path)] for path in [*PATHS, *reversed(PATHS)]]
    assert [project.records_of(file, "parse") for file in files] == [_records(file.text) for file in files]
    assert {type(record) for file in files for record in project.records_of(file, "parse", "metric")} == {Metric}
    with pytest.raises(ValueError, match="must declare that it needs 'lint'"):
        project.records_of(files[0], "lint")
    store, _ = create_store(RealFiles(), tmp_path / "other")
    nothing = OutcomeRegisters(store.files, make_batch(store, [b"a"], shard_items=SHARD).root)
    none = load_ledger(project._plan, nothing)
    without = BatchProject(project._plan, project.files, none, nothing, read=project.read, needs=("parse",))
    assert without.records_of(files[0], "parse") == [], "records were returned although the needed task has no result"


def test_files_are_found_by_path_and_by_record(project: BatchProject) -> None:
    for place, path in enumerate(PATHS):
        file = project.find(path.encode())
        assert file is not None
        assert (file.text, project.read(file)) == (path, path.encode())
        assert project.record_item(Metric(path=path, metric="m", value=1)) == place
    assert project.find(b"h") is None
    with pytest.raises(ValueError, match="not a file of the snapshot"):
        project.record_item(Metric(path="h", metric="m", value=1))


def test_file_outside_the_batch_has_no_source(project: BatchProject) -> None:
    """Contexts are known only for files of the batch."""
    outside = project.files[0]
    smaller = BatchProject(
        project._plan, project.files[1:], project._ledger, project._outcomes, read=project.read, needs=(),
        outside=[outside],
    )  # fmt: skip
    assert smaller.find(outside.path) == outside
    with pytest.raises(ValueError, match="b'a' is outside the paths of the batch"):
        smaller.source(outside)
