"""Tests of the input audit: input of a custom task that its cache key does not cover is recorded with its results."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import itertools
import json
import mmap
import multiprocessing.popen_fork
import multiprocessing.popen_spawn_posix
import multiprocessing.resource_tracker
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import codebatch
import codebatch_workers
from codebatch.coordinator.analysis.planning import resolve_tasks
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import ShardId
from codebatch.model.task import CustomTaskLocation
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.input_audit import InputAudit
from codebatch.plugins.key_coverage import KeyCoverage
from codebatch.plugins.user_tasks import read_custom_task_source
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.results import ReusedRecords, UnitResults
from codebatch_workers.syntax.source import SourceFile


class CoversDirectory:
    """A coverage of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def has(self, path: str) -> bool:
        return f"{path}/".startswith(f"{self._directory}/")

    def displayed_path(self, path: str) -> str:
        return os.path.basename(path)


class CoversAllButOneModule:
    """A coverage of everything except one module."""

    def __init__(self, file: str) -> None:
        self._file = file

    def has(self, path: str) -> bool:
        return path not in (self._file, importlib.util.cache_from_source(self._file))

    def displayed_path(self, path: str) -> str:
        return os.path.basename(path).partition(".")[0]


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> InputAudit:
    """One audit for all tests, because an audit hook stays until the process ends."""
    "a".encode("idna")  # The first use reads a module.
    return InputAudit(str(tmp_path_factory.mktemp("store")))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, which is covered, next to a file `words` that is not."""
    (tmp_path / "covered").mkdir()
    (tmp_path / "covered" / "known").write_text("known")
    (tmp_path / "words").write_text("words")
    (tmp_path / "covered" / "link").symlink_to("../words")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "covered")
    return tmp_path / "covered"


def _open_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        open("../none").close()


def _open_below(directory: str) -> None:
    at = os.open(directory, os.O_RDONLY)
    os.close(os.open("words", os.O_RDONLY, dir_fd=at))
    os.close(at)


def _map(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    mmap.mmap(fd, 0, prot=mmap.PROT_READ).close()
    os.close(fd)


def _list_from_elsewhere() -> None:
    os.chdir("..")
    os.listdir()


def _create_existing_directory() -> None:
    os.makedirs("../here", exist_ok=True)
    os.listdir("../here")


def _in_a_thread() -> None:
    thread = threading.Thread(target=Path("../words").read_text)
    thread.start()
    thread.join()


def _leave_a_thread_running() -> None:
    threading.Thread(target=_never.wait, daemon=True).start()


def _connect() -> None:
    with socket.socket() as one, pytest.raises(OSError):  # any error will do
        one.connect(("127.0.0.1", 9))


def _fork() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def _start_forking_process() -> None:
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join()


def _start_spawned_process() -> None:
    child = multiprocessing.get_context("spawn").Process(target=int)
    child.start()
    child.join()


def _import_by_name() -> None:
    sys.path.insert(0, "..")
    try:
        importlib.import_module("words_of_a_neighbour")
    finally:
        sys.path.pop(0)


def _read_through_a_temporary_directory(give: Callable[[str, str], None]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        give(os.path.realpath("../words"), f"{directory}/words")
        Path(directory, "words").read_text()


_never = threading.Event()


@pytest.mark.parametrize(
    ("look", "report"),
    [
        (lambda: Path("../words").read_text(), "open words"),
        (lambda: Path("../words").resolve().read_bytes(), "open words"),
        (lambda: open(b"../words").close(), "open words"),
        (lambda: Path("link").read_text(), "open words"),
        (lambda: os.close(os.open("../words", os.O_RDONLY)), "open words"),
        (lambda: Path("../words").open("a").close(), "open words"),
        (_open_missing_file, "open none"),
        (lambda: _open_below(".."), "open "),
        (lambda: _map("../words"), "open words"),
        (lambda: os.listdir(".."), "os.listdir "),
        (_list_from_elsewhere, "os.listdir "),
        (lambda: os.scandir("..").close(), "os.scandir "),
        (lambda: list(Path("..").glob("*")), "os."),
        (_import_by_name, "open words_of_a_neighbour"),
        (_in_a_thread, "open words"),
        (_leave_a_thread_running, "a thread that goes on"),
        (lambda: _read_through_a_temporary_directory(os.link), "os.link words"),
        (lambda: _read_through_a_temporary_directory(os.symlink), "open words"),
        (lambda: _read_through_a_temporary_directory(os.rename), "os.rename words"),
        (_create_existing_directory, "os.listdir here"),
        (lambda: subprocess.run(["true"], check=True), "subprocess.Popen"),
        (lambda: os.system("true"), "os.system"),
        (lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0), "os.posix_spawn"),
        (lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]), "os."),
        (_fork, "os.fork"),
        (_start_forking_process, "os.fork"),
        (_start_spawned_process, "multiprocessing.popen_spawn"),
        (_connect, "socket.connect"),
        (lambda: socket.getaddrinfo("127.0.0.1", 9), "socket.getaddrinfo"),
        (socket.gethostname, "socket.gethostname"),
        (lambda: sqlite3.connect("file:../words.db?mode=memory", uri=True).close(), "sqlite3.connect"),
        (lambda: ctypes.CDLL("libc.so.6"), "ctypes.dlopen"),
        (lambda: ctypes.CDLL(None).getpid(), "ctypes.dlsym"),
        (lambda: list(importlib.metadata.distributions(path=[".."])), "os.listdir "),
        (lambda: sys.audit("open"), "open"),
    ],
)  # fmt: skip
def test_access_outside_the_key_is_reported(
    watch: InputAudit, place: Path, request: pytest.FixtureRequest, look: Callable[[], object], report: str
) -> None:
    (place.parent / "here").mkdir()
    (place.parent / "words_of_a_neighbour.py").write_text("")
    task = request.node.name
    watch.set_coverage(task, CoversDirectory(place), frozenset())
    watch.audit_call(task, look)
    sys.modules.pop("words_of_a_neighbour", None)
    assert watch.first_uncovered_input(task).startswith(report)


def _temporary() -> None:
    with tempfile.NamedTemporaryFile("w") as file, tempfile.TemporaryDirectory() as directory:
        Path(file.name).read_text()
        Path(directory, "a").write_text("a")
        assert os.listdir(directory) == ["a"]
    with tempfile.TemporaryFile() as file:
        file.write(b"a")


def _make_sockets() -> None:
    for one in socket.socketpair():
        one.close()


def _search_the_path() -> None:
    importlib.metadata.MetadataPathFinder().invalidate_caches()  # otherwise it would not list the directories again
    list(importlib.metadata.distributions(path=[*filter(os.path.isdir, sys.path)], name="none"))


def _run_a_finished_thread() -> None:
    thread = threading.Thread(target=Path("known").read_text)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    "look",
    [
        lambda: Path("known").read_text(),
        lambda: os.listdir("."),
        lambda: Path("new").write_text("x"),
        _temporary,
        _run_a_finished_thread,
        lambda: sqlite3.connect(":memory:").close(),
        _make_sockets,
        lambda: open(os.dup(0)).close(),
        lambda: id([compile("1", "", "eval")]),
        _search_the_path,
    ],
)
def test_covered_or_harmless_access_is_not_reported(
    watch: InputAudit, place: Path, request: pytest.FixtureRequest, look: Callable[[], object]
) -> None:
    watch.set_coverage(request.node.name, CoversDirectory(place), frozenset())
    watch.audit_call(request.node.name, look)
    assert watch.first_uncovered_input(request.node.name) == ""


def test_non_utf8_path_is_reported_as_text(watch: InputAudit, place: Path) -> None:
    watch.set_coverage("bytes", CoversDirectory(place), frozenset())
    path = Path(os.fsdecode(b"../\xff"))
    path.touch()
    watch.audit_call("bytes", path.read_bytes)
    assert watch.first_uncovered_input("bytes") == "open \\udcff"


def test_each_task_reports_its_own_first_access(watch: InputAudit, place: Path) -> None:
    for task in ("first", "second", "third"):
        watch.set_coverage(task, CoversDirectory(place), frozenset())
    Path("../words").read_text()

    def read_and_have_another_list() -> None:
        watch.audit_call("second", os.listdir, "..")
        Path("../words").read_text()

    watch.audit_call("first", read_and_have_another_list)
    with pytest.raises(OSError, match="none"):
        watch.audit_call("third", open, "../none")
    watch.audit_call("third", os.listdir, "..")
    assert watch.first_uncovered_input("first") == "open words"
    assert watch.first_uncovered_input("second") == f"os.listdir {place.parent.name}"
    assert watch.first_uncovered_input("third") == "open none"


class BrokenCoverage(CoversDirectory):
    """A coverage that raises an exception."""

    def has(self, path: str) -> bool:
        raise importlib.metadata.PackageNotFoundError(path)


def test_access_with_failing_coverage_is_reported_without_an_exception(watch: InputAudit, place: Path) -> None:
    watch.audit_call("loaded by broken", Path("known").read_text)
    for task in ("broken", "loaded by broken"):
        watch.set_coverage(task, BrokenCoverage(place), frozenset())
    assert watch.audit_call("broken", Path("known").read_text) == "known"
    assert [watch.first_uncovered_input(task) for task in ("broken", "loaded by broken")] == ["open", "open"]


def test_access_during_loading_is_judged_when_the_key_is_known(watch: InputAudit, place: Path) -> None:
    watch.audit_call("loaded", Path("known").read_text)
    watch.audit_call("loaded", Path("../words").read_text)
    assert watch.first_uncovered_input("loaded") == ""
    watch.set_coverage("loaded", CoversDirectory(place), frozenset())
    assert watch.first_uncovered_input("loaded") == "open words"


def test_shared_module_import_counts_for_every_task_that_imports_it(
    watch: InputAudit, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.parent / "lib_of_two.py").write_text("import part_of_lib\n")
    (place.parent / "part_of_lib.py").write_text("")
    monkeypatch.syspath_prepend(str(place.parent))

    def load() -> None:
        importlib.import_module("lib_of_two")

    for task, imports in (("one", {"lib_of_two"}), ("two", {"lib_of_two"}), ("other", {"yet_another", "json"})):
        watch.set_coverage(task, CoversAllButOneModule(f"{place.parent}/part_of_lib.py"), frozenset(imports))
        watch.audit_call(task, load)
    watch.set_coverage("late", CoversAllButOneModule(f"{place.parent}/lib_of_two.py"), frozenset({"lib_of_two"}))
    inputs = {task: watch.first_uncovered_input(task) for task in ("one", "two", "other", "late")}
    for name in ("lib_of_two", "part_of_lib"):
        del sys.modules[name]
    assert inputs == {"one": "open part_of_lib", "two": "open part_of_lib", "other": "", "late": "open lib_of_two"}


COUNT = """
import json, sys
sys.path.insert(0, {root!r})
def task(file):
    yield from ()
    {line}
"""


def _place(root: Path, line: str, **settings: object) -> CustomTaskLocation:
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools" / "words.py").write_text(COUNT.format(root=str(root / "tools"), line=line))
    (root / "tools" / "near.py").write_text("import json\n")
    (root / "tools" / "words.txt").write_text("one")
    return CustomTaskLocation(python=f"{root}/tools/words.py:task", project=str(root), **settings)  # type: ignore[arg-type]


def _coverage(root: Path, line: str, versions: tuple[str, ...], **settings: object) -> KeyCoverage:
    place = _place(root, line, **settings)
    return KeyCoverage(
        read_custom_task_source("words", place), place, versions, own_package_directories=[str(root / "scratch")]
    )


def test_key_covers_its_own_inputs(tmp_path: Path) -> None:
    words = tmp_path / "tools" / "words.txt"
    covered = _coverage(tmp_path, "import msgspec", ("python", "msgspec"), files={"tools/words.txt": str(words)})
    for path in (
        words,
        tmp_path / "tools" / "words.py",
        tmp_path / "scratch" / "x",
        Path(os.__file__),
        Path(json.__file__),
        Path(msgspec.__file__),
        Path(codebatch.__file__),
        Path(codebatch_workers.__file__),
        Path(os.devnull),
    ):
        assert covered.has(os.path.realpath(path)), path
    (metadata,) = Path(msgspec.__file__).parents[1].glob("msgspec-*.dist-info")
    assert covered.has(os.path.realpath(metadata / "METADATA"))
    for path, shown in (
        (tmp_path / "tools", "tools"),
        (tmp_path / "tools" / "near.py", "tools/near.py"),
        (tmp_path / "tools" / "__pycache__" / f"near.{sys.implementation.cache_tag}.pyc", "tools/near.py"),
        (tmp_path / "tools" / "words.txt2", "tools/words.txt2"),
        (tmp_path / "tools" / "__pycache__" / "words.json", "tools/__pycache__/words.json"),
        (Path(pytest.__file__), "pytest (installed)"),
        (Path(pytest.__file__).parents[1] / "six.py", "six (installed)"),
        (Path(pytest.__file__).parents[1], f"…/{Path(pytest.__file__).parents[1].name}"),
        (Path("/etc/hostname"), "…/hostname"),
        (tmp_path.parent / "secret" / "name", "…/name"),
    ):
        assert not covered.has(os.path.realpath(path)), path
        assert covered.displayed_path(os.path.realpath(path)) == shown


@pytest.mark.parametrize(
    ("settings", "is_covered"), [({}, True), ({"tools": ()}, False), ({"tools": (), "files": ("tools/near.py",)}, True)]
)
def test_neighbouring_module_is_covered_if_its_files_are_in_the_key(
    tmp_path: Path, settings: dict[str, Any], is_covered: bool
) -> None:
    if "files" in settings:
        settings = {**settings, "files": {name: str(tmp_path / name) for name in settings["files"]}}
    sys.path.insert(0, str(tmp_path / "tools"))
    try:
        covered = _coverage(tmp_path, "import near", (), **settings)
        assert covered.has(os.path.realpath(tmp_path / "tools" / "near.py")) == is_covered
        bytecode = tmp_path / "tools" / "__pycache__" / "near.cpython-311.pyc"
        assert covered.has(os.path.realpath(bytecode)) == is_covered
    finally:
        sys.path.remove(str(tmp_path / "tools"))


_names = map("words-{}".format, itertools.count())


def _uncovered_inputs(
    watch: InputAudit | None, place: CustomTaskLocation, scratch: Path, paths: Sequence[str] = ("a", "b")
) -> list[str]:
    """Return the uncovered input of each outcome of a custom task over some files.

    A file named `kept` has a reused result.
    """
    name = next(_names)  # An audit keeps the accesses of each task name for ever.
    planned = resolve_tasks(TaskCatalogue({name: place}), ("parse", name))
    runner = TaskRunner(TaskCatalogue({name: place}, watch), planned, scratch)
    runner.set_up([name])
    results = UnitResults(start=0, results={name: []})
    for path in paths:
        results.items.append(Entry(path.encode(), "file", False, 1, Digest("")))
        if path == "kept":
            results.results[name].append(ReusedRecords(b""))
        else:
            file = SourceFile(path.encode(), b"x", executable=False, contexts={})
            results.results[name].append(runner.run_item(file, [name])[name])
    unit = WorkUnit(shard=ShardId("0" * 8), start=0, end=len(paths), tasks=(name,))
    return [one.outcome.inputs_outside_key for one in runner.encode_unit(unit, results)]


def test_outcomes_record_inputs_outside_the_key(watch: InputAudit, tmp_path: Path) -> None:
    read = f"import pathlib; pathlib.Path({str(tmp_path / 'tools' / 'words.txt')!r}).read_text()"
    files = {"tools/words.txt": str(tmp_path / "tools" / "words.txt")}
    (tmp_path / "scratch").mkdir()
    assert _uncovered_inputs(watch, _place(tmp_path, read), tmp_path / "scratch") == ["open tools/words.txt"]
    assert _uncovered_inputs(watch, _place(tmp_path, read), tmp_path / "scratch", ("kept", "kept")) == [""], (
        "an outcome without executed items has an uncovered input"
    )
    assert _uncovered_inputs(watch, _place(tmp_path, read), tmp_path / "scratch", ("kept", "b")) == [
        "open tools/words.txt"
    ]
    assert _uncovered_inputs(watch, _place(tmp_path, read, files=files), tmp_path / "scratch") == [""]
    write_and_read = (
        f"import pathlib; p = pathlib.Path({str(tmp_path / 'scratch' / 'made')!r}); p.write_text('x'); p.read_text()"
    )
    assert _uncovered_inputs(watch, _place(tmp_path, write_and_read), tmp_path / "scratch") == [""], (
        "a file that the task made is uncovered input"
    )
    assert _uncovered_inputs(watch, _place(tmp_path, write_and_read), tmp_path / "scratch") == ["open scratch/made"], (
        "a file that another task made does not count as uncovered input"
    )
    assert _uncovered_inputs(watch, _place(tmp_path, "json.dumps(1)", reuse=False), tmp_path / "scratch") == [
        "reuse = false"
    ]
    assert _uncovered_inputs(None, _place(tmp_path, "json.dumps(1)"), tmp_path / "scratch") == ["nobody watched"]
    for change in ("write_text('more')", "unlink(missing_ok=True)"):
        place = _place(tmp_path, read.replace("read_text()", change), files=files)
        assert _uncovered_inputs(watch, place, tmp_path / "scratch") == ["tools/words.txt changed during the run"]
    fail = f"{read}; file.none"
    assert _uncovered_inputs(watch, _place(tmp_path, fail), tmp_path / "scratch") == ["", ""], (
        "a failed result, which is never reused, has an uncovered input"
    )
