"""Capsules in real processes: which are executed, which are refused, and what stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch import __version__
from codebatch.coordinator.engines.capsules import CapsuleMaker, choose_remote_tasks, make_capsule_header
from codebatch.engines.part_run import PartFailed, run_part
from codebatch.model.capsule import AnswerHeader, CapsuleHeader, CapsuleLimits
from codebatch.model.command_table import CommandTable, CommandTaskLocation
from codebatch.model.plan import Plan, plan_items
from codebatch.model.task import CustomTaskLocation
from codebatch.operations.engines.engine_batch import EngineBatch
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir, open_store
from codebatch.store.capsules import answer_format, capsule_format
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.plain_outcomes import UnmergedOutcomes
from codebatch.system.files.files import RealFiles
from codebatch.system.files.locked_directories import ENGINE_PREFIX as PREFIX
from codebatch.system.files.locked_directories import locked_directory
from tests.support.command_line import CommandLine, wait_until, write
from tests.support.worker_processes import open_latest

pytestmark = pytest.mark.slow

SETTINGS = """
[shard]
files_average = 2
files_min = 2
files_max = 2
[tasks.words]
python = "words.py:task"
files = ["words.txt"]
[tasks.linter]
command = ["/bin/sh", "-c", "grep -Hn todo \\"$@\\" | sed 's/:todo/:1: note: todo/'; true", "sh", "{files}"]
match = ["*.py"]
records = "gcc"
version = ["/bin/sh", "-c", "echo 1"]
config_files = ["*.txt"]
[pipelines.all]
tasks = ["lint", "dependencies", "duplicates", "words", "linter"]
"""
WORDS = """
import os, signal, time
from pathlib import Path
from codebatch_workers.api import Metric
ALLOWED = Path(__file__).parent

def task(file):
    if b"crash" in file.path:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"hang" in file.path:
        time.sleep(600)
    hidden = [getattr(file, "chan" + "ge")(b"")] if b"edited" in file.path else []
    return [Metric(path=file.path.decode(), metric="words", value=len(file.content.split())), *hidden]
"""


class _Project:
    """A project with a finished batch, and the maker of capsules of this batch."""

    def __init__(self, root: Path, names: list[str]) -> None:
        write(root / "codebatch.toml", SETTINGS)
        write(root / "words.py", WORDS)
        write(root / "words.txt", "a\nb\n")
        write(root / ".gitattributes", "b.py linguist-generated\n")
        for name in names:
            write(root / name, f"import os\ntodo = {len(name)}\n\n\ndef f(x=[]):\n    return x is 1\n")
        ended = CommandLine(root).ends(
            "run", "--pipeline", "all", "--store", root.parent / "store", "--file-seconds", "3"
        )
        assert ended.status in (0, 3), ended.notes
        self.store: StoreDir = open_store(RealFiles(), root.parent / "store")
        self.batch: BatchDir = open_latest(root.parent / "store")
        self.plan: Plan = self.batch.plan()
        self.execution = ExecutionSettings(configuration=load_configuration(root), file_seconds=3.0)
        catalogue = self.execution.configuration.catalogue
        catalogue.look_up_commands(self.plan.task_names)
        self.tasks = choose_remote_tasks(self.plan.tasks, catalogue).tasks
        self.header: CapsuleHeader = make_capsule_header(
            self.plan.digest,
            self.plan.pipeline,
            self.tasks,
            catalogue,
            limits=self.execution.part_limits(self.plan.task_names),
            jobs=1,
            hash_seed=0,
        )

    def capsule(self, *, seconds_max: float = 100.0, shards: int | None = None, **members: object) -> bytes:
        """Return the capsule of the first shards, with changed members of its header."""
        snapshot = load_batch_snapshot(self.store, self.batch)
        items = plan_items(snapshot.entries, self.plan.paths)
        maker = CapsuleMaker(replace(self.header, **members), self.plan, items, self.store.objects())
        return maker.make([shard.id for shard in self.plan.shards[:shards]], seconds_max)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> _Project:
    """A project without any failure."""
    return _Project(tmp_path_factory.mktemp("project") / "tree", [f"{letter}.py" for letter in "abcdef"])


def _refusal(capsule: bytes) -> str:
    header, outcomes = answer_format.decode(run_part(capsule))
    assert header.refusal is not None
    assert (header.refusal.code, list(outcomes)) == ("tool_mismatch", [])
    return header.refusal.message


def _header(answer: bytes) -> AnswerHeader:
    return answer_format.decode(answer)[0]


def test_outcomes_of_a_capsule_are_those_of_a_local_run(project: _Project) -> None:
    header, outcomes = answer_format.decode(run_part(project.capsule(shards=3)))
    assert header.refusal is None
    assert header.shards == tuple(shard.id for shard in project.plan.shards[:3])
    assert header.cpu_seconds > 0.05
    registers = OutcomeRegisters(project.batch.files, project.batch.root)
    here = UnmergedOutcomes(registers, load_ledger(project.plan, registers))
    expected = [
        external
        for shard in project.plan.shards[:3]
        for task in project.tasks
        for external in here.iter_outcomes(shard, task.name)
    ]
    assert {task.name for task in project.tasks} >= {"words", "linter", "lint"}
    assert list(outcomes) == expected


def test_files_that_crash_or_hang_are_failed_and_no_others(tmp_path: Path) -> None:
    project = _Project(tmp_path / "tree", ["a.py", "crash.py", "f.py", "hang.py"])
    _, outcomes = answer_format.decode(run_part(project.capsule()))
    paths = [item.path for item in load_batch_snapshot(project.store, project.batch).entries if item.kind == "file"]
    starts = {shard.id: shard.start for shard in project.plan.shards}
    failed = {
        (paths[starts[external.outcome.shard] + external.outcome.start], external.outcome.reason)
        for external in outcomes
        if external.outcome.type == "failed"
    }
    assert failed == {(b"crash.py", "crash"), (b"hang.py", "timeout")}


def test_another_version_of_codebatch_python_or_a_task_is_refused(project: _Project) -> None:
    refusal = _refusal(project.capsule(codebatch="1.9"))
    assert refusal == f"codebatch 1.9 made the batch, but codebatch {__version__} is installed"
    assert _refusal(project.capsule(python="2.7")).startswith("Python 2.7 made the batch, but Python 3.")
    assert "format 9" in _refusal(project.capsule(format=9))
    changed = tuple(replace(file, content=file.content + b"#") for file in project.header.files)
    other_task = project.capsule(files=changed)
    assert "words" in _refusal(other_task)
    refusal_of_task = _header(run_part(other_task)).refusal
    assert refusal_of_task is not None
    assert refusal_of_task.hint is None  # Its hint would name the store of the part.
    table = CommandTable(command=("/no/such/program", "{files}"), records="gcc")
    locations = {**project.header.locations, "linter": CommandTaskLocation(table=table, project="")}
    assert "/no/such/program" in _refusal(project.capsule(locations=locations))


def test_changes_of_files_are_refused_even_if_the_code_of_the_task_does_not_show_them(tmp_path: Path) -> None:
    project = _Project(tmp_path / "tree", ["a.py", "edited.py"])
    assert _refusal(project.capsule()).startswith("the task words proposed changes of files")


@pytest.mark.parametrize(
    ("code", "stays"),
    [
        ("def task(file): yield file.change(None)", True),
        ("from codebatch_workers.api import FileChange\ndef task(file): ...", True),
        ("from codebatch_workers import api\ndef task(file): yield api.FileChange()", True),
        ("def change(file): ...\ndef task(file): return file.report(1, 'change')", False),
    ],
)
def test_tasks_that_may_propose_changes_stay_on_this_machine(
    project: _Project, tmp_path: Path, code: str, stays: bool
) -> None:
    location = CustomTaskLocation(python=f"{write(tmp_path / 'x.py', code)}:task")
    (words,) = (task for task in project.plan.tasks if task.name == "words")
    remote = choose_remote_tasks([replace(words, needs=())], TaskCatalogue({"words": location}))
    reason = "it may propose changes of files, which are objects of this store"
    assert remote.reasons == ({"words": reason} if stays else {})


def test_an_empty_capsule_checks_versions_only(project: _Project) -> None:
    header, outcomes = answer_format.decode(run_part(capsule_format.encode(project.header, ())))
    assert (header.refusal, header.shards, list(outcomes)) == (None, (), [])


def test_a_damaged_capsule_has_no_answer(project: _Project) -> None:
    capsule = project.capsule(shards=1)
    with pytest.raises(PartFailed, match="checksum"):
        run_part(capsule[:-1] + bytes([capsule[-1] ^ 1]))
    header, objects = capsule_format.decode(capsule)
    first, *others = objects
    assert others
    swapped = [replace(first, frame=others[0].frame, size=others[0].size), *others]
    with pytest.raises(PartFailed, match=f"object {first.digest}"):
        run_part(capsule_format.encode(header, swapped))


def test_the_death_of_the_process_that_imports_a_task_is_no_refusal(project: _Project) -> None:
    (file,) = (file for file in project.header.files if file.task == "words" and not file.name)
    dies = replace(file, content=b"import os\nos.kill(os.getpid(), 9)\n")
    files = tuple(dies if other is file else other for other in project.header.files)
    with pytest.raises(PartFailed, match=r"status 2: the task 'words' cannot be loaded .* \(killed by SIGKILL\)"):
        run_part(project.capsule(files=files))


def test_a_part_ends_at_its_time_limit(tmp_path: Path) -> None:
    project = _Project(tmp_path / "tree", ["hang.py"])
    limits = CapsuleLimits(file_seconds=100_000.0, memory_bytes=None)
    with pytest.raises(PartFailed, match="did not end within 2 s"):
        run_part(project.capsule(seconds_max=2.0, limits=limits))


def test_processes_end_with_the_process_of_the_engine(tmp_path: Path) -> None:
    project = _Project(tmp_path / "tree", ["hang.py"])
    write(tmp_path / "capsule", project.capsule(limits=CapsuleLimits(file_seconds=100.0, memory_bytes=None)))
    program = "import sys, pathlib; from codebatch.engines.part_run import run_part; "
    program += "run_part(pathlib.Path(sys.argv[1]).read_bytes())"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    engine = subprocess.Popen([sys.executable, "-c", program, tmp_path / "capsule"], env=environment)
    try:
        wait_until(lambda: bool(list(tmp_path.glob(f"{PREFIX}*/store/batches/*/holders/*.cell"))), "a worker begins")
        stat = next(tmp_path.glob(f"{PREFIX}*")).stat()
        assert (stat.st_mode & 0o777, stat.st_uid) == (0o700, os.geteuid())
    finally:
        engine.kill()
        engine.wait()
    wait_until(lambda: not _processes_in(tmp_path), "all processes end")


def _processes_in(directory: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if str(path.readlink()).startswith(str(directory)):
                found.append(str(path))
        except OSError:
            continue
    return found


def test_directories_that_were_left_behind_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = ("old", "locked", "new", "file", "link", "killed")
    old, locked, new, file, link, killed = (tmp_path / f"{PREFIX}{name}" for name in names)
    write(old / "store" / "x", "")
    write(killed / "lock", "locked")
    new.mkdir()
    write(file, "")
    write(tmp_path / "kept" / "x", "")
    link.symlink_to(tmp_path / "kept")
    with locked_directory(PREFIX) as other:
        other.rename(locked)
        for path in (old, locked, file):
            os.utime(path, (1, 1))
        os.utime(link, (1, 1), follow_symlinks=False)
        with locked_directory(PREFIX) as directory:
            assert {path.name for path in tmp_path.iterdir()} == {
                locked.name, new.name, file.name, link.name, "kept", directory.name,
            }  # fmt: skip
        locked.rename(other)
    assert (tmp_path / "kept" / "x").exists()
    assert not list(tmp_path.glob(f"{PREFIX}locked"))


def test_an_answer_with_missing_or_foreign_results_is_damaged(project: _Project) -> None:
    header, records = answer_format.decode(run_part(project.capsule(shards=2)))
    outcomes = list(records)
    snapshot = load_batch_snapshot(project.store, project.batch)
    with EngineBatch(project.execution, project.store, project.batch, project.tasks, snapshot, jobs=1) as parts:
        assert parts.read_answer(answer_format.encode(header, outcomes)) == (header, outcomes)
        for damaged in (
            answer_format.encode(header, outcomes[1:]),
            answer_format.encode(replace(header, shards=header.shards[:1]), outcomes),
            answer_format.encode(replace(header, shards=()), outcomes),
            answer_format.encode(header, [replace(outcomes[0], table=bytes(36)), *outcomes[1:]]),
            answer_format.encode(header, ())[:-1],
            b"garbage",
        ):
            with pytest.raises(ValueError, match=r"."):
                parts.read_answer(damaged)


def _table(**members: object) -> CommandTaskLocation:
    table = CommandTable(**{"command": ("/bin/true", "{files}"), "records": "gcc", **members})  # type: ignore[arg-type]
    return CommandTaskLocation(table=table, project="/")


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        (_table(), ""),
        (_table(command=("tools/x", "{files}")), "its program 'tools/x' is a file of the project"),
        (_table(link=("node_modules",), lock=("package.json",)), "it has `link`, which names files of the project"),
        (_table(lock=("package.json",)), "it has `lock`, which names files of the project"),
        (_table(version=False), "its cache key does not cover all inputs (version = false)"),
        (CustomTaskLocation(python=f"{__file__}:task"), ""),
        (
            CustomTaskLocation(python=f"{__file__}:task", reuse=False),
            "its cache key does not cover all inputs (reuse = false)",
        ),
    ],
)
def test_tasks_with_other_inputs_stay_on_this_machine(
    project: _Project, location: CustomTaskLocation | CommandTaskLocation, reason: str
) -> None:
    planned = [replace(task, needs=()) for task in project.plan.tasks if task.name in ("parse", "linter", "duplicates")]
    behind = replace(planned[0], name="behind", needs=("linter",))
    remote = choose_remote_tasks([*planned, behind], TaskCatalogue({"linter": location}))
    if reason:
        assert remote.reasons == {"linter": reason, "behind": "it needs linter"}
        assert {task.name for task in remote.tasks} == {"parse"}
    else:
        assert {task.name for task in remote.tasks} == {"parse", "linter", "behind"}
        assert remote.reasons == {}


def test_tasks_whose_objects_or_results_are_in_the_store_stay_on_this_machine(project: _Project) -> None:
    (parse,) = (task for task in project.plan.tasks if task.name == "parse")
    trees = choose_remote_tasks([replace(parse, config={"emit_ast": True})], TaskCatalogue())
    assert trees.reasons == {"parse": "it stores syntax trees"}
    imported = choose_remote_tasks([replace(parse, name="mypy")], TaskCatalogue(imports=["mypy"]))
    assert imported.reasons == {"mypy": "its findings were imported into this store"}
