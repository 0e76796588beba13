"""Tests of task execution in one process: failures of tasks, their items, and the order of writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, cast

import msgspec
import pytest
from msgspec.structs import replace

from codebatch.coordinator.analysis.planning import resolve_tasks
from codebatch.errors import InvalidConfiguration, ObjectMissing, ToolMismatch
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.outcome import WorkUnit
from codebatch.model.plan import PlannedTask, plan_items
from codebatch.model.record import Diagnostic, File, Metric, Record
from codebatch.model.shard import ShardId
from codebatch.model.task import CustomTaskLocation, TaskDeclaration
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import package_digest
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import EncodedOutcome, OutcomeRegisters
from codebatch.system.files.files import RealFiles
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.runtime import execution
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.previous_batch import PreviousBatch
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.record_validation import LoadedTask
from codebatch_workers.runtime.results import ReusedRecords, TaskFailure, UnitResults
from codebatch_workers.runtime.sources import load_source
from codebatch_workers.runtime.task_calls import EVIDENCE_CHARACTERS_MAX
from codebatch_workers.runtime.user_tasks import CustomTasks
from codebatch_workers.syntax.findings import diagnostic
from codebatch_workers.syntax.source import SourceFile
from tests.support.batches import make_batch


def metric(file: SourceFile, name: str) -> Metric:
    return Metric(path=file.path.decode(), metric=name, value=len(file.content))


class FileTask:
    """A file task that calls a function for each file."""

    def __init__(self, run: Callable[[SourceFile], list[Record]]) -> None:
        self.run_file = run


class BatchingTool:
    """A task that calls a tool for many files at once. The tool fails on a file named `bad`."""

    def run_file(self, file: SourceFile) -> list[Record]:
        return [metric(file, "before")]

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        if any(file.path == b"bad" for file in files):
            raise RuntimeError("the tool fell over")
        return [[*file_records, metric(file, "after")] for file, file_records in zip(files, records, strict=True)]


class SilentTool(BatchingTool):
    """A tool that returns results for fewer files than it was given."""

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        return list(records[1:])


class ProjectTask:
    """A project task that calls a function."""

    def __init__(self, run: Callable[[Project], Iterator[Record]]) -> None:
        self.run_project = run


class Runner(TaskRunner):
    """A runner of given tasks instead of installed ones."""

    def __init__(
        self,
        tasks: Mapping[str, LoadedTask],
        needs: Mapping[str, tuple[str, ...]],
        store: StoreDir | None = None,
        contexts: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        nothing = Digest("0" * 64)
        planned = [
            PlannedTask(
                name=name, version="1", scope="file", needs=needs.get(name, ()), implementation_digest=nothing,
                config={}, tools={}, contexts=(contexts or {}).get(name, ()), key=nothing,
            )
            for name in tasks
        ]  # fmt: skip
        super().__init__(TaskCatalogue(), planned, Path(), PackWriter(store.objects()) if store else None)
        self._tasks = tasks

    def _set_up(self, name: str) -> LoadedTask:
        self._with_findings.add(name)
        return self._tasks[name]


def unit_results(runner: Runner, files: Mapping[str, bytes], *tasks: str) -> tuple[WorkUnit, UnitResults]:
    """Return the results that a worker has of a unit before it commits."""
    unit = WorkUnit(shard=ShardId("0" * 32), start=0, end=len(files), tasks=tasks)
    results = UnitResults(start=0, results={name: [] for name in tasks})
    sources = [SourceFile(path.encode(), data, executable=False, contexts={}) for path, data in files.items()]
    for file in sources:
        results.items.append(Entry(file.path, "file", False, len(file.content), Digest("")))
        for name, result in runner.run_item(file, tasks).items():
            results.results[name].append(result)
    for name in tasks:
        partial = [result for result in results.results[name] if not isinstance(result, ReusedRecords)]
        results.results[name] = [*runner.complete_results(name, sources, partial)]
    return unit, results


def encoded(runner: Runner, files: Mapping[str, bytes], *tasks: str) -> list[EncodedOutcome]:
    return list(runner.encode_unit(*unit_results(runner, files, *tasks)))


def outcome_rows(outcomes: Sequence[EncodedOutcome]) -> list[tuple[str, int, int, str]]:
    """Return task, start, end and failure reason of each outcome."""
    return [(one.outcome.task, one.outcome.start, one.outcome.end, one.outcome.reason or "") for one in outcomes]


def test_tool_that_fails_on_a_file_returns_results_for_the_others() -> None:
    _, results = unit_results(Runner({"tool": BatchingTool()}, {}), {"a": b"", "bad": b"", "c": b""}, "tool")
    first, bad, last = results.results["tool"]
    assert isinstance(bad, TaskFailure)
    assert "the tool fell over" in bad.evidence
    for name, result in (("a", first), ("c", last)):
        assert isinstance(result, list)
        assert [(record.path, record.metric) for record in result if isinstance(record, Metric)] == [
            (name, "before"), (name, "after")
        ]  # fmt: skip


def test_tool_that_returns_too_few_results_fails() -> None:
    _, results = unit_results(Runner({"tool": SilentTool()}, {}), {"a": b"", "b": b""}, "tool")
    failures = [result for result in results.results["tool"] if isinstance(result, TaskFailure)]
    assert ["was given 1 files" in result.evidence for result in failures] == [True, True]


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (MemoryError(), "memory"),
        (ObjectMissing("gone"), "object"),
        (SystemExit(), "exception"),
        (KeyboardInterrupt(), "exception"),
        (RuntimeError("\udcff"), "exception"),
    ],
)
def test_exception_of_a_task_fails_the_item_and_its_dependent_tasks(raised: BaseException, reason: str) -> None:
    def run(file: SourceFile) -> list[Record]:
        if file.path == b"b":
            raise raised
        return [metric(file, "m")]

    dependent_paths: list[bytes] = []

    def ask(file: SourceFile) -> list[Record]:
        dependent_paths.append(file.path)
        return []

    runner = Runner(
        {"one": FileTask(run), "two": FileTask(ask), "three": FileTask(ask)}, {"two": ("one",), "three": ("two",)}
    )
    outcomes = encoded(runner, {"a": b"", "b": b"", "c": b""}, "one", "two", "three")
    assert [row for row in outcome_rows(outcomes) if row[3]] == [
        ("one", 1, 2, reason), ("two", 1, 2, "needs"), ("three", 1, 2, "needs")
    ]  # fmt: skip
    assert dependent_paths == [b"a", b"a", b"c", b"c"]
    assert [row[1:3] for row in outcome_rows(outcomes) if row[0] == "two"] == [(0, 1), (1, 2), (2, 3)]


def test_evidence_is_the_end_of_the_traceback() -> None:
    def run(file: SourceFile) -> list[Record]:
        raise RuntimeError("x" * EVIDENCE_CHARACTERS_MAX + "the end")

    (outcome,) = encoded(Runner({"one": FileTask(run)}, {}), {"a": b""}, "one")
    assert outcome.evidence.endswith("the end\n")
    assert len(outcome.evidence) == EVIDENCE_CHARACTERS_MAX


def test_unencodable_records_fail_the_item_and_its_dependent_tasks() -> None:
    """The records were made, so dependent tasks have run.

    But they must not build on a result that cannot be recorded.
    """

    def run(file: SourceFile) -> list[Record]:
        return [Metric(path="\udcff" if file.path == b"b" else "a", metric="m", value=1)]

    runner = Runner(
        {"one": FileTask(run), "two": FileTask(lambda _: []), "far": FileTask(lambda _: [])}, {"two": ("one",)}
    )
    outcomes = encoded(runner, {"a": b"", "b": b""}, "one", "two", "far")
    assert outcome_rows(outcomes) == [
        ("one", 0, 1, ""), ("one", 1, 2, "exception"), ("two", 0, 1, ""), ("two", 1, 2, "needs"), ("far", 0, 2, "")
    ]  # fmt: skip


def test_records_beyond_the_size_limit_fail_the_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "ITEM_BYTES_MAX", 100)
    runner = Runner({"one": FileTask(lambda file: [metric(file, "m")] * len(file.content))}, {})
    assert outcome_rows(encoded(runner, {"a": b"1", "b": b"12345"}, "one")) == [
        ("one", 0, 1, ""),
        ("one", 1, 2, "exception"),
    ]


def test_outcome_counts_its_records() -> None:
    def run(file: SourceFile) -> list[Record]:
        parsed = File(path="a", lang="python", encoding="utf-8", lines=1, class_="text", parse="ok")
        finding = Diagnostic(
            path="a", line=1, column=1, end_line=1, end_column=1, severity="hint", code="c", message="", tool="t"
        )
        return [parsed, metric(file, "m"), finding, finding]

    (files,) = encoded(Runner({"one": FileTask(lambda file: run(file)[:1])}, {}), {"a": b""}, "one")
    assert files.outcome.counts.languages == {"python": 1}
    (outcome,) = encoded(Runner({"one": FileTask(run)}, {}), {"a": b"", "b": b""}, "one")
    counts = outcome.outcome.counts
    assert counts.kinds == {"diagnostic": 4, "file": 2, "metric": 2}
    assert (counts.severities, counts.codes, counts.languages) == ({"hint": 4}, {"c": 4}, {"python": 2})


def test_failure_is_reported_at_its_item_in_a_later_unit() -> None:
    def run(file: SourceFile) -> list[Record]:
        return [] if file.path == b"a" else [Metric(path="\udcff", metric="m", value=1)]

    runner = Runner({"one": FileTask(run)}, {})
    unit, results = unit_results(runner, {"a": b"", "b": b""}, "one")
    results.start = 7
    assert outcome_rows(list(runner.encode_unit(unit, results))) == [("one", 7, 8, ""), ("one", 8, 9, "exception")]


def test_fully_reused_results_do_not_inherit_unkeyed_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CustomTasks, "uncovered_inputs", lambda *_: "the clock")
    runner = Runner({"one": FileTask(lambda _: [])}, {})
    unit, results = unit_results(runner, {"a": b""}, "one")
    (executed,) = runner.encode_unit(unit, results)
    results.results["one"] = [ReusedRecords(b"")]
    (reused,) = runner.encode_unit(unit, results)
    assert (executed.outcome.inputs_outside_key, reused.outcome.inputs_outside_key) == ("the clock", "")


class Finding(BatchingTool):
    """A tool that reports a finding in the first line of each file."""

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        return [[diagnostic(file, 0, 1, code="c", message="m")] for file in files]


def test_suppression_comments_are_read_before_the_tree_is_released() -> None:
    runner = Runner({"tool": Finding()}, {})
    files = [SourceFile(name, b"x  # codebatch: ignore\n", executable=False, contexts={}) for name in (b"a.py", b"b")]
    results = [runner.run_item(file, ("tool",))["tool"] for file in files]
    for file in files:
        file.release()
    assert runner.complete_results("tool", files, results) == [[], []]
    assert not any(file.__dict__.get("tree") for file in files)


def test_suppression_comments_use_the_language_that_the_task_sees() -> None:
    """The task declares no contexts, so it does not see the attribute that makes the file C++."""
    runner = Runner({"tool": Finding()}, {})
    contexts = {"attributes": b"language=C++"}
    file = SourceFile(b"a.py", b"x = 1  # codebatch: ignore\n", executable=False, contexts=contexts)
    results = [runner.run_item(file, ("tool",))["tool"]]
    assert runner.complete_results("tool", [file], results) == [[]]


def test_task_sees_only_contexts_declared_by_itself_and_its_needs() -> None:
    seen_by_task: dict[str, tuple[str, set[str]]] = {}

    class RecordingTool(BatchingTool):
        def __init__(self, name: str) -> None:
            self._name = name

        def run_file(self, file: SourceFile) -> list[Record]:
            seen_by_task[self._name] = (file.language, set(file.contexts))
            return []

        def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
            assert [(file.language, set(file.contexts)) for file in files] == [seen_by_task[self._name]]
            return [[diagnostic(file, 0, 1, code="c", message="m")] for file in files]

    contexts = {"parse": ("language",), "lint": ("packages",)}
    runner = Runner(
        {name: RecordingTool(name) for name in ("parse", "lint", "alone")}, {"lint": ("parse",)}, None, contexts
    )
    file = SourceFile(b"a.h", b"// codebatch: ignore\n", False, {"language": b"cpp", "packages": b""})
    results = runner.run_item(file, ("parse", "lint", "alone"))
    file.release()
    assert seen_by_task == {
        "parse": ("cpp", {"language"}), "lint": ("cpp", {"language", "packages"}), "alone": ("c", set())
    }  # fmt: skip
    for name in seen_by_task:
        assert runner.complete_results(name, [file], [results[name]]) == [[]], (
            "suppression comments were not read for a task with fewer contexts"
        )
    assert not any(
        "tree" in source.__dict__
        for source in (file, *(file.restricted_to_contexts(visible) for visible in runner._visible_contexts.values()))
    )


def test_custom_task_changed_since_the_plan_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("def task(file): return []\n")
    catalogue = TaskCatalogue({"words": CustomTaskLocation(python=f"{tmp_path}/words.py:task")})
    planned = resolve_tasks(catalogue, ("parse", "words"))
    TaskRunner(catalogue, planned, tmp_path).set_up(["words"])
    (tmp_path / "words.py").write_text("def task(file): return [1]\n")
    with pytest.raises(
        ToolMismatch, match=r"planned with another version of words \(different implementation_digest\)"
    ):
        TaskRunner(TaskCatalogue(catalogue.custom_locations), planned, tmp_path).set_up(["words"])


@pytest.mark.parametrize("field", ["implementation_digest", "tools", "version"])
def test_task_replaced_since_the_plan_is_rejected(field: str, tmp_path: Path) -> None:
    (planned,) = resolve_tasks(TaskCatalogue(), ("parse",))
    TaskRunner(TaskCatalogue(), [planned], tmp_path).set_up(["parse"])
    replaced = msgspec.structs.replace(planned, **{field: {"tools": {}}.get(field, "0")})
    with pytest.raises(ToolMismatch, match=rf"planned with another version of parse \(different {field}\)"):
        TaskRunner(TaskCatalogue(), [replaced], tmp_path).set_up(["parse"])


def test_installed_packages_are_checked_when_a_task_is_loaded(tmp_path: Path) -> None:
    runner = TaskRunner(TaskCatalogue(), resolve_tasks(TaskCatalogue(), ("parse", "analyze")), tmp_path)
    for tasks, is_looked_at in ((["parse"], True), (["parse"], False), (["parse", "analyze"], True)):
        package_digest("codebatch.model.digest")
        runner.set_up(tasks)
        known = package_digest.cache_info().misses
        package_digest("codebatch.model.digest")
        assert (package_digest.cache_info().misses > known) == is_looked_at


@pytest.mark.parametrize(("scope", "verb"), [("file", "run_file"), ("project", "run_project")])
def test_implementation_must_be_a_task_of_the_declared_scope(
    scope: Literal["file", "project"], verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = TaskRunner(TaskCatalogue(), [Runner({"one": FileTask(lambda _: [])}, {})._planned["one"]], tmp_path)
    declared = TaskDeclaration(name="one", version="1", summary="", implementation="m:f", records=(), scope=scope)
    monkeypatch.setattr(execution, "load_declaration", lambda *_: declared)
    monkeypatch.setattr(execution, "check_planned_task", lambda *_: None)

    def set_up(**verbs: object) -> None:
        monkeypatch.setattr(execution, "load_implementation", lambda _: lambda _: SimpleNamespace(**verbs))
        runner.set_up(["one"])

    other_verb = {"run_file": "run_project", "run_project": "run_file"}[verb]
    for verbs, hint in (
        ({"run": 1}, f"rename the method `run` to `{verb}`"),
        ({other_verb: 1}, "see codebatch_workers.api"),
    ):
        with pytest.raises(
            InvalidConfiguration,
            match=f"declared with scope {scope}, but the class of the task does not define the method `{verb}`",
        ) as refused:
            set_up(**verbs)
        assert hint in str(refused.value.hint)
    set_up(**{verb: 1})


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return create_store(RealFiles(), tmp_path / "store")[0]


def test_objects_are_durable_before_the_outcome_that_references_them(store: StoreDir) -> None:
    digests: list[Digest] = []

    def run(file: SourceFile) -> list[Record]:
        assert runner._objects is not None
        digests.append(runner._objects.add(file.content))
        return []

    runner = Runner({"one": FileTask(run)}, {}, store)
    next(runner.encode_unit(*unit_results(runner, {"a": b"text"}, "one")))
    assert [store.objects().read(digest) for digest in digests] == [b"text"]


def test_objects_of_a_project_task_are_durable_before_its_outcome(store: StoreDir) -> None:
    digests: list[Digest] = []

    def run(project: Project) -> Iterator[Record]:
        assert runner._objects is not None
        digests.append(runner._objects.add(b"text"))
        return iter(())

    runner = Runner({"graph": ProjectTask(run)}, {}, store)
    _run_project(runner, store)
    assert [store.objects().read(digest) for digest in digests] == [b"text"]


class FailingIncrementalTask(ProjectTask):
    """A task whose incremental run fails."""

    def update(self, project: Project, before: Before) -> None:
        raise LookupError("cannot go on")


def test_failed_incremental_project_task_falls_back_to_a_full_run(store: StoreDir) -> None:
    task = FailingIncrementalTask(lambda project: iter([Metric(path="a", metric="mine", value=1)]))
    looked: list[str] = []

    def before() -> PreviousBatch:
        looked.append("before")
        return cast("PreviousBatch", object())

    encoded = _run_project(Runner({"graph": task}, {}, store), store, before)
    assert "LookupError: cannot go on" in encoded.evidence
    assert (encoded.outcome.type, encoded.outcome.counts.records, looked) == ("result", 1, ["before"])
    whole = _run_project(Runner({"graph": ProjectTask(task.run_project)}, {}, store), store, before)
    assert (whole, looked) == (replace(encoded, evidence=""), ["before"])


def _run_project(
    runner: Runner, store: StoreDir, before: Callable[[], PreviousBatch | None] = lambda: None
) -> EncodedOutcome:
    batch = make_batch(store, [b"a"], shard_items=1)
    plan = batch.plan()
    outcomes = OutcomeRegisters(store.files, batch.root)
    ledger = load_ledger(plan, outcomes)
    items = plan_items([Entry(b"a", "file", False, 3, Digest(""))])
    project = BatchProject(plan, items, ledger, outcomes, read=lambda _: b"", needs=())
    unit = WorkUnit(shard=ShardId("graph"), start=0, end=1, tasks=("graph",))
    return runner.run_project(unit, project, plan.shards, ledger.inputs_digest("graph"), before=before)


def test_source_file_is_loaded_from_its_snapshot_entry() -> None:
    entry = Entry(b"a.sh", "file", True, 3, Digest(""))
    file = load_source(entry, lambda _: b"abc", {"language": b"x"})
    assert isinstance(file, SourceFile)
    assert (file.path, file.content, file.executable, file.contexts) == (b"a.sh", b"abc", True, {"language": b"x"})

    def lost(_: Entry) -> bytes:
        raise ObjectMissing("gone")

    assert load_source(entry, lost, {}) == TaskFailure(reason="object", evidence="gone")
