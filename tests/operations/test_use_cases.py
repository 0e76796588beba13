"""Tests of the use cases without the command line: results, errors and listener calls. Nothing is printed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codebatch.errors import BatchIncomplete, InvalidConfiguration, InvalidInput, NothingToDo, StoreNotFound, UnknownId
from codebatch.model.entry import Entry, decode_entries
from codebatch.model.record_counts import RecordCounts
from codebatch.operations import ignore_note
from codebatch.operations.names.file_impact import find_impact
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.project_snapshot import rules_for, take_project_snapshot
from codebatch.operations.project.stores import StoreLocator, open_store
from codebatch.operations.queries.batch_query import BatchQuery, open_batch_query
from codebatch.operations.queries.batches import list_batches, outputs_directory, read_batch_status, shard_states
from codebatch.operations.queries.records import inspect_file, list_files, rank_values, search_records
from codebatch.operations.queries.references import find_references
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import BatchPlanner, choose_pipeline, make_planner, plan_snapshot
from codebatch.operations.runs.resume import make_run_scope, run_batch
from codebatch.operations.runs.run import run, run_paths
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.shaping import AnswerShape
from codebatch.query.sources.sources import ShardRecords
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots import index_frames, snapshots


@dataclasses.dataclass
class RecordingListener(Listener):
    """A listener that records the notes of a run in order."""

    notes: list[str] = dataclasses.field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Path]:
    """A tree that is the current directory. The test may print nothing."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("x = 1\n")
    (tree / "b.py").write_text("def f(): pass\n")
    monkeypatch.chdir(tree)
    yield tree
    assert capfd.readouterr() == ("", "")


def test_seconds_of_a_run_cover_all_its_phases(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each phase takes one second of a clock that nothing else moves."""
    phases: list[str] = []
    listener = RecordingListener()
    monkeypatch.setattr(listener, "phase", lambda name, *_: phases.append(name))
    monkeypatch.setattr("time.monotonic", lambda: float(len(phases)))
    execution = ExecutionSettings(configuration=load_configuration(tree))
    result = run_paths((tree,), StoreLocator(tree / "s"), execution, listener=listener)
    assert result.seconds == len(phases)
    assert phases[-3:] == ["counting", "indexing", "collecting"]


@pytest.mark.parametrize("name", ["include", "exclude"])
def test_pattern_that_cannot_match_is_rejected_before_any_write(tree: Path, name: str) -> None:
    execution = ExecutionSettings(configuration=load_configuration(tree))
    with pytest.raises(InvalidInput, match=f"^pattern './b.py' of {name} can match no path: ") as raised:
        run_paths((tree,), StoreLocator(tree / "s"), execution, listener=RecordingListener(), **{name: ("./b.py",)})  # type: ignore[arg-type]
    assert raised.value.hint == "write '/b.py'"
    (tree / "codebatch.toml").write_text(f"{name} = ['a', '{tree}/b.py']\n")
    message = f"^{tree}/codebatch.toml: pattern .* of {name} can match no path: it is an absolute path"
    with pytest.raises(InvalidConfiguration, match=message):
        rules_for(load_configuration(tree), (), ())
    (tree / "codebatch.toml").write_text("exclude = ['!a']\n")
    assert rules_for(load_configuration(tree), (), ("b", "!b.py")).exclude == ("!a", "b", "!b.py")
    assert not (tree / "s").exists()


@pytest.fixture
def store(tree: Path) -> StoreDir:
    return StoreLocator(tree / "store").open_or_create_store()


def _planner(store: StoreDir, tree: Path, notes: list[str], *exclude: str) -> BatchPlanner:
    configuration = load_configuration(tree)
    rules = rules_for(configuration, (), exclude)
    with store.writing():
        frozen = take_project_snapshot(store, [tree], rules, notes.append, allow_empty=False)
    return make_planner(configuration, store, frozen, choose_pipeline(configuration, "parse"), notes.append)


def _open(store: StoreDir, tree: Path) -> BatchDir:
    with store.writing():
        return _planner(store, tree, []).find_or_make_batch(forces_new=False)[0]


@pytest.fixture
def question(store: StoreDir, tree: Path) -> BatchQuery:
    """A query of a batch that was only planned."""
    _open(store, tree)
    return open_batch_query(store)


def test_missing_store_is_not_found_and_is_created_on_request(tree: Path) -> None:
    with pytest.raises(StoreNotFound):
        open_store()
    notes: list[str] = []
    store = StoreLocator().open_or_create_store(notes.append)
    assert notes == [f"created store: {tree / '.codebatch'}"]
    assert open_store().id == open_store(tree / ".codebatch").id == store.id


def test_same_tree_reuses_its_batch_unless_again_is_requested(store: StoreDir, tree: Path) -> None:
    notes: list[str] = []
    with store.writing():
        first, is_new = _planner(store, tree, notes).find_or_make_batch(forces_new=False)
        assert is_new
        assert _planner(store, tree, notes).find_or_make_batch(forces_new=False) == (first, False)
        second, is_new = _planner(store, tree, notes).find_or_make_batch(forces_new=True)
    assert is_new
    assert second.id != first.id
    assert [batch.id for batch in list_batches(store)] == [first.id, second.id]


def test_run_and_batch_init_make_the_same_plan(store: StoreDir, tree: Path) -> None:
    from_run = _open(store, tree)
    from_init, plan = plan_snapshot(load_configuration(tree), store, from_run.about.snapshot_id, "parse", ignore_note)
    run_about, init_about = from_run.about, from_init.about
    assert (run_about.plan_digest, run_about.sources, run_about.stat_cache) == (
        plan.digest,
        init_about.sources,
        init_about.stat_cache,
    )


def test_tree_without_selected_files_is_rejected_before_store_creation(tree: Path) -> None:
    execution = ExecutionSettings(configuration=load_configuration(tree))
    recorder = RecordingListener()
    with pytest.raises(NothingToDo):
        run_paths((tree,), StoreLocator(), execution, exclude=("*.py",), listener=recorder)
    with pytest.raises(InvalidInput, match="has no task 'lint'"):
        run_paths((tree,), StoreLocator(), execution, pipeline="parse", task="lint", listener=recorder)
    assert recorder.notes == []
    assert not (tree / ".codebatch").exists()


@pytest.mark.slow
def test_run_decodes_snapshot_entries_at_most_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []

    def decode(data: bytes) -> list[Entry]:
        decoded.append(len(data))
        return decode_entries(data)

    monkeypatch.setattr(snapshots, "decode_entries", decode)
    monkeypatch.setattr(index_frames, "decode_entries", decode)
    execution = ExecutionSettings(configuration=load_configuration(tree), jobs=1)
    for count in (1, 1):
        assert run_paths((tree,), StoreLocator(), execution, pipeline="parse", listener=RecordingListener()).is_complete
        assert len(decoded) == count


def test_excluded_files_are_in_no_snapshot(store: StoreDir, tree: Path) -> None:
    planner = _planner(store, tree, [], "b.py", "store")
    assert (planner.frozen.files, planner.frozen.size_bytes) == (1, 6)
    assert planner.plan().item_count == 1


def test_scope_is_limited_to_a_task_and_an_unknown_task_is_rejected(store: StoreDir, tree: Path) -> None:
    batch = _open(store, tree)
    assert make_run_scope(batch, None).tasks is None
    assert make_run_scope(batch, "parse").tasks == frozenset({"parse"})
    with pytest.raises(InvalidInput, match="has no task 'lint'"):
        run_batch(ExecutionSettings(configuration=load_configuration(tree)), store, batch, "lint", Listener())


def test_status_of_a_new_batch_is_pending(store: StoreDir, tree: Path) -> None:
    batch = _open(store, tree)
    status = read_batch_status(store, batch)
    (task,) = status.tasks
    assert (status.standing.state.value, task.status, task.files_done, task.files_total) == ("PENDING", "pending", 0, 2)
    assert [(shard.status, shard.files, shard.first_path) for shard in shard_states(store, batch, "parse")] == [
        ("open", 2, "a.py")
    ]


def test_damaged_batch_is_listed_and_hides_no_other_batch(store: StoreDir, tree: Path) -> None:
    damaged, whole = _open(store, tree), _open(store, tree)
    (damaged.root / "batch.json").write_text("{")
    notes: list[str] = []
    listed = list(list_batches(store, notes.append))
    assert [entry.state for entry in listed] == ["DAMAGED"]
    assert whole.id == damaged.id
    assert listed[0].batch is None
    assert len(notes) == 1


def test_answer_of_a_new_batch_is_incomplete(question: BatchQuery) -> None:
    for answer in (
        search_records(question, RecordFilter(kinds=("file",))),
        rank_values(question, "kind"),
        list_files(question),
    ):
        assert not answer.completeness.is_complete
        assert (answer.completeness.planned, answer.completeness.done) == (2, 0)
    with pytest.raises(BatchIncomplete, match="has no outputs yet"):
        outputs_directory(question.batch)


def test_query_reports_whether_the_tree_has_changed(question: BatchQuery, tree: Path) -> None:
    assert question.is_stale is False
    (tree / "a.py").write_text("x = 22\n")
    reopened = open_batch_query(question.store)
    assert reopened.is_stale is True
    assert reopened.changes is not None
    assert reopened.changes.paths == (b"a.py",)


def test_what_stands_beside_is_no_change_of_a_tree(question: BatchQuery, tree: Path) -> None:
    (tree / "a.py").write_text("x = 22\n")
    question.ignored_paths = (bytes(tree.resolve() / "a.py"),)
    assert question.is_stale is False


def test_inspected_file_may_be_relative_to_the_project_or_the_directory(question: BatchQuery, tree: Path) -> None:
    for path in ("b.py", "./b.py", str(tree / "b.py")):
        answer = inspect_file(question, path).result
        assert (answer.path, answer.item, answer.records) == (b"b.py", 1, [])
    with pytest.raises(InvalidInput, match=r"has no file 'c\.py'"):
        inspect_file(question, "c.py")


@pytest.mark.parametrize(
    "query",
    [
        lambda question: search_records(question, RecordFilter(), shape=AnswerShape(limit=-1)),
        lambda question: search_records(question, RecordFilter(kinds=("nope",))),
        lambda question: search_records(question, RecordFilter(severities=("grave",))),
        lambda question: search_records(question, RecordFilter(names="f")),  # type: ignore[arg-type]
        lambda question: search_records(question, RecordFilter(), kinds=("nope",)),
        lambda question: search_records(question, RecordFilter(), kinds="file"),
        lambda question: rank_values(question, "colour"),
        lambda question: list_files(question, -1),
        lambda question: inspect_file(question, "a.py", kinds=("nope",)),
        lambda question: inspect_file(question, "a.py", kinds="file"),  # type: ignore[arg-type]
        lambda question: inspect_file(question, "a\0.py"),
        lambda question: inspect_file(question, "\ud800.py"),
        lambda question: find_impact(question, "a.py", depth=0),
        lambda question: find_references(question, "f", roles=("nope",)),
        lambda question: find_references(question, "f", roles="call"),
        lambda _: open_store(""),
        lambda _: run(),
        lambda _: run(""),
        lambda _: run(".", store=""),
        lambda _: run(".", jobs=-1),
        lambda _: run(".", jobs=0),
        lambda _: run(".", include="*.py"),
        lambda _: run(".", exclude="*.py"),
    ],
)
def test_invalid_queries_are_rejected(question: BatchQuery, query: Callable[[BatchQuery], object]) -> None:
    with pytest.raises(InvalidInput):
        query(question)


def test_search_with_enough_records_reads_no_further_shard(
    question: BatchQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records come by path, then in the order of tasks. Of a shard, every task that may be needed is begun."""
    counts, read = RecordCounts(kinds={"file": 1}), list[str]()

    def pieces(task: str, _lookups: object) -> Iterator[ShardRecords]:
        for path in ("one", "two"):

            def lines(path: str = path) -> Iterator[bytes]:
                read.append(f"{task} {path}")
                yield b'{"kind":"file","path":"%s","lang":"%s"}\n' % (path.encode(), task.encode())

            yield ShardRecords(counts, lines, "")

    source = question.records.source
    monkeypatch.setattr(source, "iter_pieces", pieces)
    monkeypatch.setattr(type(source), "task_names", ("c", "b", "a"))
    records = list(search_records(question, RecordFilter(), shape=AnswerShape(limit=2)).result)
    assert [(record["path"], record["lang"]) for record in records] == [("one", "c"), ("one", "b")]
    assert read == ["c one", "b one", "a one"]


def test_invalid_limits_are_rejected(tree: Path) -> None:
    configuration = load_configuration(tree)
    for seconds in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match="more than 0"):
            ExecutionSettings(configuration=configuration, file_seconds=seconds)
    with pytest.raises(InvalidInput, match="at least 1"):
        ExecutionSettings(configuration=configuration, memory_mb=0)


def test_impact_of_a_file_with_a_non_utf8_name_is_rejected(store: StoreDir, tree: Path) -> None:
    (tree / "\udcff.py").touch()
    _open(store, tree)
    with pytest.raises(InvalidInput, match="not valid UTF-8"):
        find_impact(open_batch_query(store), "\udcff.py")


def test_query_of_an_unknown_batch_is_rejected(store: StoreDir) -> None:
    with pytest.raises(UnknownId):
        open_batch_query(store)
