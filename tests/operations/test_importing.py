"""Tests of imports: the new batch has the same snapshot, all earlier results and the findings of another program."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import codebatch
from codebatch.coordinator.analysis.progress_counter import RunPhase
from codebatch.errors import BatchIncomplete, InvalidConfiguration, InvalidInput
from codebatch.model.analysis.imports import ExcludedRecords, ImportConfig, join_files, split_files
from codebatch.model.analysis.report_formats import ReportFormat, parse_report_format
from codebatch.model.entry import path_fields
from codebatch.model.record import SEVERITIES, Diagnostic
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import open as open_store
from codebatch.operations.export.export import make_export
from codebatch.operations.gate.base_selection import ComparisonBase
from codebatch.operations.gate.condition_inputs import parse_conditions
from codebatch.operations.gate.quality_gate import CheckResult, GateChecker
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.queries.batch_query import open_batch_query
from codebatch.operations.runs.collection import collect_garbage
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.imports import ImportResult, InvalidImport, import_into
from codebatch.operations.runs.run import run_paths
from codebatch.store.batches.batch_directory import BatchDir, batch_ids
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.maintenance.collection import iter_record_objects
from tests.support import inline_workers as inline

LINES = b'{"path":"a.py","line":2,"message":"one","code":"C"}\n{"path":"b.py","message":"two","severity":"error"}\n'
ELSEWHERE = b'{"path":"c.py","message":"m"}\n{"path":"a.py","line":9,"message":"m"}\n{"kind":"file"}\n'
BROKEN = b"<checkstyle><exception/></checkstyle>"


class Project(NamedTuple):
    """A tree, its store and the batch of its first run."""

    tree: Path
    store: StoreDir
    first: BatchDir

    def take(
        self,
        data: bytes | Sequence[bytes],
        task: str,
        *,
        form: ReportFormat = "jsonl",
        start: BatchDir | None = None,
        failed: bool = False,
    ) -> ImportResult:
        """Import into the given batch, or into the latest."""
        execution = ExecutionSettings(configuration=load_configuration(self.tree), jobs=2)
        start = start or resolve_batch(self.store, None)
        files = [data] if isinstance(data, bytes) else data
        return import_into(
            execution, self.store, start, files, form=form, task=task, allow_failed=failed, listener=Listener()
        )

    def findings(self, batch: BatchDir, task: str) -> list[Diagnostic]:
        opened = Batch(open_batch_query(self.store, batch.id), lambda: None, partial=False)
        return list(opened.diagnostics(task=task))

    def run(self) -> tuple[BatchDir, list[str]]:
        """Run the tree again. Return the batch that answers for it, and the notes."""
        notes: list[str] = []

        class Noting(Listener):
            def note(self, text: str) -> None:
                notes.append(text)

        execution = ExecutionSettings(configuration=load_configuration(self.tree), jobs=2)
        result = run_paths((self.tree,), StoreLocator(self.store.root), execution, listener=Noting())
        return result.batch, notes


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_bytes(b"x = 1\ny = 2\n")
    (tree / "b.py").write_bytes(b"import a\n")
    with inline.inline():
        result = inline.run(tree, tmp_path / "store")
        yield Project(tree, result.store, result.batch)


def executed(batch: BatchDir) -> list[str]:
    """Return the tasks that were executed for a batch instead of reused."""
    from codebatch.store.batches.journal import Began, read_journal

    events = (line.event for line in read_journal(batch.files, batch.root))
    return sorted({task for event in events if isinstance(event, Began) for task in event.tasks})


def test_import_creates_a_batch_that_executes_only_the_findings(project: Project) -> None:
    imported = project.take(LINES, "other")
    batch = imported.batch
    assert resolve_batch(project.store, None).id == batch.id > project.first.id
    assert batch.about.snapshot_id == project.first.about.snapshot_id
    assert (imported.action, imported.findings, imported.left_out) == ("new", 2, ExcludedRecords())
    assert [task.name for task in batch.plan().tasks] == [*(task.name for task in project.first.plan().tasks), "other"]
    assert executed(batch) == ["other"]
    one, two = project.findings(batch, "other")
    assert (one.path, one.line, one.column, one.end_column, one.code, one.tool) == ("a.py", 2, 1, 6, "C", "other")
    assert (two.path, two.line, two.severity, two.code, two.message) == ("b.py", 1, "error", "other", "two")
    assert project.findings(batch, "lint") == project.findings(project.first, "lint")
    hidden = [path.name for path in project.store.batches.iterdir() if path.name.startswith(".")]
    assert not hidden


def test_imports_are_commutative_and_idempotent(project: Project) -> None:
    last_batches: list[BatchDir] = []
    for order in ("mzb", "bmz"):
        last = project.first
        for task in order:
            last = project.take({"m": LINES, "z": LINES + LINES, "b": b""}[task], task, start=last).batch
        last_batches.append(last)
    assert len({batch.about.plan_digest for batch in last_batches}) == 1
    last = last_batches[-1]
    assert [task.name for task in last.plan().tasks][-3:] == ["b", "m", "z"]
    assert len(project.findings(last, "z")) == 4
    before = batch_ids(project.store)
    again = project.take(LINES, "m")
    assert (again.action, again.batch.id, again.findings, again.left_out) == (
        "up to date",
        last.id,
        2,
        ExcludedRecords(),
    )
    assert batch_ids(project.store) == before
    changed = project.take(LINES + LINES, "m").batch
    assert executed(changed) == ["m"], "the result of z was not reused"
    assert len(project.findings(changed, "m")) == 4
    back = project.take(LINES, "m")
    assert back.batch.about.plan_digest == last.about.plan_digest
    assert resolve_batch(project.store, None).id == back.batch.id


def test_imported_findings_without_a_file_or_line_are_counted(project: Project) -> None:
    imported = project.take(ELSEWHERE, "other")
    assert imported.left_out == ExcludedRecords(unknown_files=1, unknown_locations=1, dismissed=1, examples=("c.py",))
    assert (imported.findings, project.take(ELSEWHERE, "other").left_out) == (0, imported.left_out)


def test_failed_import_leaves_the_latest_batch(project: Project) -> None:
    with pytest.raises(InvalidImport, match="cannot read the findings as jsonl: line 1: input data was truncated"):
        project.take(b"{", "other")
    with pytest.raises(InvalidImport, match="marked as incomplete"):
        project.take(BROKEN, "other", form="checkstyle")
    for task in ("lint", "import", "A", ""):
        with pytest.raises(InvalidInput):
            project.take(LINES, task)
    assert [directory.name for directory in project.store.batches.iterdir()] == [project.first.id]
    assert project.take(BROKEN, "other", form="checkstyle", failed=True).left_out == ExcludedRecords(tool_failed=True)


def test_imported_absolute_paths_are_resolved_below_the_tree(project: Project) -> None:
    line = b'{"path":"file://%s/a.py","message":"m"}\n{"path":"/elsewhere/a.py","message":"m"}' % bytes(project.tree)
    imported = project.take(line, "other")
    assert [finding.path for finding in project.findings(imported.batch, "other")] == ["a.py"]
    assert imported.left_out == ExcludedRecords(unknown_files=1, examples=("/elsewhere/a.py",))


def test_later_run_omits_imported_findings_and_reports_that(project: Project) -> None:
    imported = project.take(LINES, "other").batch
    batch, notes = project.run()
    assert batch.about.plan_digest == project.first.about.plan_digest
    assert batch.about.imports == {}
    note = f"imported findings of other are only in batch {imported.id}; to add them to the new batch, "
    assert note + "import the reports again" in notes
    assert not [note for note in project.run()[1] if "other" in note], "the note was repeated"
    project.take(LINES, "other")
    (project.tree / "b.py").write_bytes(b"import a\nimport c\n")
    batch, notes = project.run()
    assert [note for note in notes if "other" in note]


def states(project: Project, old: BatchDir, new: BatchDir, tool: str) -> list[tuple[str, str, object]]:
    older, newer = (
        Batch(open_batch_query(project.store, batch.id), lambda: None, partial=False) for batch in (old, new)
    )
    comparison = newer.compare(older, tool=tool)
    rows = [(batch.state, batch.reason or "", batch.new or batch.old) for batch in comparison.differences()]
    return [(state, reason, row.code) for state, reason, row in rows if isinstance(row, Diagnostic)]


def test_imports_of_two_trees_are_compared(project: Project) -> None:
    """The imports are comparable although all files differ."""
    first = project.take(LINES, "other").batch
    (project.tree / "a.py").write_bytes(b"w = 0\nx = 1\ny = 2\n")
    run, _ = project.run()
    later = b'{"path":"a.py","line":3,"message":"one","code":"C"}\n{"path":"a.py","line":2,"message":"n","code":"N"}\n'
    second = project.take(later, "other").batch
    assert states(project, first, second, "other") == [("new", "", "N"), ("fixed", "", "other")]
    assert states(project, run, second, "other") == [
        ("not_comparable", "not_checked", "N"),
        ("not_comparable", "not_checked", "C"),
    ]


def test_imports_of_the_same_program_under_two_names_do_not_match(project: Project) -> None:
    line = b'{"path":"a.py","line":2,"message":"m","code":"C","tool":"t"}\n'
    start = project.take(line, "one").batch
    both = project.take(line, "two", start=start).batch
    (project.tree / "a.py").write_bytes(b"w = 0\nx = 1\ny = 2\n")
    project.run()
    for task in ("one", "two"):
        alone = project.take(line.replace(b":2", b":3"), task).batch
        assert states(project, both, alone, "t") == [("not_comparable", "not_checked", "C")]
        assert states(project, alone, both, "t") == [("not_comparable", "not_checked", "C")]
        project.run()


def test_finding_of_one_more_task_is_not_compared(project: Project) -> None:
    """The other task does not hide the finding of the first, and neither is new nor fixed."""
    line = b'{"path":"a.py","line":1,"message":"m","code":"C","tool":"t"}\n'
    one = project.take(line, "one").batch
    both = project.take(line, "two", start=one).batch
    for old, new in ((one, both), (both, one)):
        assert states(project, old, new, "t") == [("not_comparable", "not_checked", "C")]
    assert states(project, both, both, "t") == []
    with open_store(project.store.root, project=project.tree) as store:
        batch = store.batch(both.id)
        compared = [batch.compare(old.id, tool="t") for old in (one, both)]
        compared.append(batch.compare(both.id, tool="t", task="two"))
        unchanged = [comparison.counts["unchanged"] for comparison in compared]
    assert unchanged == [1, 1, 1]


@pytest.mark.slow
def test_base_contains_the_imports_of_its_own_tree(project: Project) -> None:
    def check() -> CheckResult:
        execution = ExecutionSettings(configuration=load_configuration(project.tree), jobs=2)
        with open_store(project.store.root, project=project.tree) as store:
            return GateChecker(store, execution, Listener(), {}).check(parse_conditions(["new"]))

    first = project.take(LINES, "other").batch
    project.take(LINES, "alone")
    (project.tree / "a.py").write_bytes(b"w = 0\nx = 1\ny = 2\n")
    project.run()
    project.take(b'{"path":"a.py","line":2,"message":"n","code":"N"}', "other")
    checked = check()
    assert isinstance(checked.base, ComparisonBase)
    assert checked.base.batch.id > first.id, "the base was reused although only one side has the import"
    assert [change.new.code for change in checked.forbidden if isinstance(change.new, Diagnostic)] == ["N"]
    (project.tree / "codebatch.toml").write_text("[tasks.lint]\noff = ['F401']\n")
    project.run()
    project.take(b'{"path":"a.py","line":2,"message":"n","code":"N"}', "other")
    checked = check()
    assert isinstance(checked.base, ComparisonBase)
    assert not checked.forbidden
    assert checked.counts["unchanged"] == 1, "the base lost its imported findings when it was rerun with other tasks"


def test_gc_retains_an_imported_file_as_long_as_its_batch(project: Project) -> None:
    batch = project.take(LINES, "other").batch
    (imported,) = batch.about.imports.values()
    collect_garbage(project.store, keep=1)
    assert project.store.objects().read(imported) == LINES
    assert imported in set(iter_record_objects(project.store, batch))
    assert batch_ids(project.store) == [batch.id]
    project.run()
    project.run()
    collect_garbage(project.store, keep=1)
    assert batch_ids(project.store) != [batch.id]
    assert not project.store.objects().has_key(bytes.fromhex(imported))


@pytest.mark.slow
def test_exported_findings_import_unchanged(project: Project) -> None:
    """The files have several encodings and names that need escapes, and the findings have every shape."""
    texts = {
        b"bom.py": b"\xef\xbb\xbfx = 1\r\n\xc3\xa9\xf0\x9f\x98\x80 = 2\r\n",
        b"latin.py": b"# coding: latin-1\nx = '\xe9\xe9'\n",
        b"n\xff #%20\\x.py": "a\n\U0001f600\U0001f600 é\n\nlast".encode(),
        b"broken.txt": b"\xe9 a \xf0\x9f\x98\x80\xff b\n",
    }
    for name, text in texts.items():
        (project.tree / os.fsdecode(name)).write_bytes(text)
    project.run()
    dice = random.Random(15)
    lines: list[Diagnostic] = []
    for name in texts:
        path, path_b64 = path_fields(name)
        for number in range(60):
            line, column = dice.randint(1, 4), dice.randint(1, 9)
            message = f"m{number} <&\"'> é\U0001f600 %0A ::x\n{{0}} {'%' * dice.randint(0, 2)}"
            lines.append(
                Diagnostic(
                    path=path,
                    path_b64=path_b64,
                    line=line,
                    column=column,
                    end_line=line + dice.randint(0, 1),
                    end_column=dice.randint(1, 9),
                    severity=dice.choice(SEVERITIES),
                    code=dice.choice(["a.b", "c/d", "é"]),
                    message=message,
                    tool=dice.choice(["one", "two.three", "ruff"]),
                )
            )
    batch = project.take(msgspec.json.Encoder().encode_lines(lines), "first").batch
    expected = sorted(map(msgspec.json.encode, project.findings(batch, "first")))
    assert len(expected) > 150
    for form in ("sarif", "checkstyle", "rdjson"):
        opened = Batch(open_batch_query(project.store, batch.id), lambda: None, partial=False)
        data = make_export(opened, form, severity=SEVERITIES, task="first").result.data
        imported = project.take(data, form, form=form)
        assert imported.left_out == ExcludedRecords(), form
        assert sorted(map(msgspec.json.encode, project.findings(imported.batch, form))) == expected, form


def test_python_api_imports_a_file_by_name(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.tree)
    file = project.tree / "found.jsonl"
    file.write_bytes(LINES + ELSEWHERE.replace(b"c.py", b"/elsewhere/b.py"))
    store = project.store.root
    imported = codebatch.import_findings(file, "jsonl", "other", store=store, root="/elsewhere")
    assert (imported.findings, imported.left_out) == (3, ExcludedRecords(unknown_locations=1, dismissed=1))
    with pytest.raises(InvalidInput, match=r"nothing\.jsonl: No such file"):
        codebatch.import_findings("nothing.jsonl", "jsonl", "other", store=store)
    with pytest.raises(codebatch.InvalidImport, match=r"found\.jsonl: cannot read the findings as rdjson"):
        codebatch.import_findings("found.jsonl", "rdjson", "other", store=store)


def test_plan_of_an_import_in_a_named_format_is_unchanged() -> None:
    """Otherwise, no result of an earlier import could be reused."""
    digest = f"{1:064x}"
    for name in ("sarif", "checkstyle", "rdjson", "jsonl", "rdjsonl", "gcc"):
        config = ImportConfig(format=parse_report_format(name), object=digest, root=b"/w")
        assert msgspec.to_builtins(config) == {"format": name, "object": digest, "root": "L3c="}
    assert list(ImportConfig.__struct_fields__) == ["format", "object", "root"]


def test_lines_and_described_reports_are_imported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A described format is part of the plan, so that another description is another import."""
    monkeypatch.chdir(project.tree)
    (project.tree.parent / "found.txt").write_bytes(
        b"a.py:2:1: note: one [C]\na.py:0:9: two\na.py:1000000000: three\nc.py:1: m\nothers\n"
    )
    store = project.store.root
    imported = codebatch.import_findings("../found.txt", "gcc", "lines", store=store)
    assert imported.left_out == ExcludedRecords(
        unknown_files=1, unknown_locations=1, examples=("c.py",), unread=1, unread_sample="others"
    )
    assert [(f.line, f.column, f.severity, f.code, f.message) for f in project.findings(imported.batch, "lines")] == [
        (1, 6, "warning", "lines", "two"),
        (2, 1, "info", "C", "one"),
    ]
    (project.tree.parent / "found.json").write_bytes(b'[{"file":"%s/a.py","text":"m","at":"1"}]' % bytes(project.tree))
    table = {"format": "json", "path": "/file", "line": "/at", "message": "/text"}
    described = codebatch.import_findings("../found.json", table, "described", store=store)
    (finding,) = project.findings(described.batch, "described")
    assert (finding.path, finding.line, finding.message) == ("a.py", 1, "m")
    task = next(task for task in described.batch.plan().tasks if task.name == "described")
    assert task.config["format"] == table
    assert codebatch.import_findings("../found.json", table, "described", store=store).action == "up to date"
    other = codebatch.import_findings("../found.json", {**table, "first_line": 0}, "described", store=store)
    assert (other.action, project.findings(other.batch, "described")[0].line) == ("new", 2)
    with pytest.raises(codebatch.InvalidImport, match="cannot read the findings as json: a finding has no text at /m"):
        codebatch.import_findings("../found.json", {**table, "message": "/m"}, "described", store=store)
    with pytest.raises(InvalidInput, match="`line` is missing"):
        codebatch.import_findings("../found.json", {"format": "json", "path": "/file"}, "described", store=store)


@pytest.mark.parametrize("data", [b"ERROR in a.py line 3\n", b"Found 1 error in 1 file (checked 1 source file)\nodd\n"])
def test_report_without_a_readable_line_is_refused(project: Project, data: bytes) -> None:
    with pytest.raises(codebatch.InvalidImport, match=r"no part of the report can be read as gcc: (ERROR in|odd)"):
        project.take(data, "other", form="gcc")
    allowed = project.take(data, "other", form="gcc", failed=True)
    assert (allowed.findings, allowed.left_out and allowed.left_out.unread) == (0, 1)


@pytest.mark.parametrize(
    ("form", "data", "excluded"),
    [
        ("gcc", b"Success: no issues found in 3 source files\n", ExcludedRecords()),
        ("gcc", b"", ExcludedRecords()),
        (
            "gcc",
            b"x.py:1: m\nodd\n",
            ExcludedRecords(unknown_files=1, examples=("x.py",), unread=1, unread_sample="odd"),
        ),
        (
            "rdjsonl",
            b'{"message":"m","severity":"BAD","location":{"path":"a.py"}}\n' * 2,
            ExcludedRecords(replaced=2, replaced_sample="severity 'BAD'"),
        ),
    ],
)
def test_parts_that_are_not_read_and_unknown_values_are_counted(
    project: Project, form: ReportFormat, data: bytes, excluded: ExcludedRecords
) -> None:
    assert project.take(data, "other", form=form).left_out == excluded


def test_several_files_form_a_single_import(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their findings and their excluded records are reported together. In another order they are another import."""
    monkeypatch.chdir(project.tree)
    for name, data in {"one.jsonl": LINES, "other.jsonl": ELSEWHERE, "bad.jsonl": b"{"}.items():
        (project.tree.parent / name).write_bytes(data)
    store = project.store.root
    imported = codebatch.import_findings(["../one.jsonl", Path("../other.jsonl")], "jsonl", "other", store=store)
    assert imported.findings == 2
    assert imported.left_out == ExcludedRecords(unknown_files=1, unknown_locations=1, dismissed=1, examples=("c.py",))
    assert [finding.message for finding in project.findings(imported.batch, "other")] == ["one", "two"]
    repeated = project.take([LINES, ELSEWHERE], "other")
    assert (repeated.action, repeated.batch.id) == ("up to date", imported.batch.id)
    assert collect_garbage(project.store, keep=1) is not None
    assert project.take([LINES, ELSEWHERE], "other").action == "up to date"
    assert project.take([ELSEWHERE, LINES], "other").action == "new"
    with pytest.raises(codebatch.InvalidImport, match=r"one\.jsonl, \.\./bad\.jsonl: cannot read .* file 2 of 2: "):
        codebatch.import_findings(["../one.jsonl", "../bad.jsonl"], "jsonl", "other", store=store)
    for names, message in ([], "no file given"), (["-", "-"], "standard input was given twice"):
        with pytest.raises(InvalidInput, match=message):
            codebatch.import_findings(names, "jsonl", "other", store=store)


def test_joined_files_split_into_the_original_files() -> None:
    one = LINES
    joined = join_files([one])
    assert joined == one, "joining changed the bytes of a single file"
    for files in ([one], [one, ELSEWHERE], [b"", b""], [join_files([one, one])], [join_files([one, one]), one]):
        assert split_files(join_files(files)) == tuple(files)


def test_files_that_exceed_the_limit_together_are_rejected(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.operations.runs.imports.IMPORT_BYTES_MAX", len(LINES) + 1)
    with pytest.raises(codebatch.InvalidImport, match="together, the files have more than"):
        project.take([LINES, LINES], "other")
    assert project.take([LINES], "other").findings == 2


def test_concurrent_imports_are_all_retained(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.tree)
    (project.tree.parent / "found.jsonl").write_bytes(LINES)

    class InterruptingListener(Listener):
        """A listener that does something else once while the batch is made."""

        def __init__(self, do: Callable[[], object]) -> None:
            self.left = [do]

        def phase(self, phase: RunPhase, done: int = 0, planned: int = 0, things: str = "files") -> None:
            if self.left and phase == "merging":
                self.left.pop()()

    def take(task: str, interruption: Callable[[], object], batch: str | None = None) -> ImportResult:
        listener, file = InterruptingListener(interruption), project.tree.parent / "found.jsonl"
        root = project.store.root
        return codebatch.import_findings(file, "jsonl", task, store=root, batch=batch, listener=listener)

    def run_another_tree() -> None:
        (project.tree / "a.py").write_bytes(b"")
        project.run()

    both = take("late", lambda: project.take(LINES, "early"))
    assert list(both.batch.about.imports) == ["early", "late"]
    alone = take("named", lambda: project.take(LINES, "first"), project.first.id)
    assert list(alone.batch.about.imports) == ["named"]
    with pytest.raises(BatchIncomplete, match="another batch was created in the meantime"):
        take("other", run_another_tree)
    assert not resolve_batch(project.store, None).about.imports


def test_import_task_in_the_configuration_is_rejected(project: Project) -> None:
    (project.tree / "codebatch.toml").write_text(f"[tasks.import]\nformat = 'sarif'\nobject = '{0:064}'\n")
    with pytest.raises(InvalidConfiguration, match="planned by `codebatch import`"):
        project.run()


def test_suppression_comment_applies_to_imported_findings(project: Project) -> None:
    (project.tree / "a.py").write_bytes(b"x = 1\ny = 2  # codebatch: ignore[C]\n")
    project.run()
    assert [finding.path for finding in project.findings(project.take(LINES, "other").batch, "other")] == ["b.py"]
