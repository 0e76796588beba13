"""The batch that a command means without `--batch`, in a project with task lists in several directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codebatch.errors import AmbiguousId, CodebatchError, InvalidInput, NoBatch, UnknownId
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.work_batch import ListOrigin, Work
from codebatch.operations.project.stores import open_store
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, HolderRegistration, new_holder_id
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host
from codebatch.work.control.batch_selection import list_directory_text, select_batch, select_live_batch
from tests.cli.work.test_work import line, make_list
from tests.support.command_line import CommandLine, write
from tests.support.git_repositories import git

__all__ = ["line"]

DIRECTORIES = (".", "api", "api/src", "web", "docs")


class Project:
    """A git work tree with directories, and batches in its store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for directory in DIRECTORIES:
            (root / directory).mkdir(parents=True, exist_ok=True)
        git(root, "init", "-q")
        create_store(RealFiles(), root / ".codebatch")
        self.batches: dict[str, BatchDir] = {}
        self.holders: list[HolderRegistration] = []

    def make(self, name: str, root: str, *, file: str = "", started_in: str = "") -> None:
        """Make a batch of the list in a directory, whose file and current directory may be elsewhere."""
        place = bytes((self.root / root).resolve())
        path = os.path.normpath(os.path.join(bytes(self.root), (file or f"{root}/work.toml").encode()))
        origin = ListOrigin(directory=os.path.normpath(bytes(self.root / (started_in or root))), files=(path,))
        work = Work(source="work.toml", root=place, order=(CommandId("a"),), origin=origin)
        command = Command(id=CommandId("a"), run="true")
        store = open_store(project=self.root / root)
        self.batches[name] = make_work_batch(store, [command], work, at_ns=wall_ns())

    def run(self, name: str) -> None:
        """Let this process hold a batch, as a coordinator does."""
        about = HolderFile(
            holder=new_holder_id(), role="coordinator", pid=os.getpid(), host=this_host(), since_ns=wall_ns()
        )
        self.holders.append(HolderRegistration(RealFiles(), self.batches[name].root, about))

    def select(self, directory: str, choose: Callable[[StoreDir], BatchDir]) -> str | type[CodebatchError]:
        """Return the name of the batch that is chosen in a directory, or the type of the error."""
        store = open_store(project=self.root / directory)
        try:
            chosen = choose(store)
        except CodebatchError as error:
            return type(error)
        return next(name for name, batch in self.batches.items() if batch.id == chosen.id)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "m")
    yield made
    for holder in made.holders:
        holder.close()


LATEST: dict[str, tuple[list[str], dict[str, str | None]]] = {
    # The directories of the batches, the oldest first; for each current directory the chosen one, or None if a change
    # of it is refused.
    "one list": (["web"], {".": "web", "web": "web", "api": None, "docs": None}),
    "two lists": (["api", "web"], {".": "web", "web": "web", "api": "api", "api/src": "api", "docs": None}),
    "list at the top": ([".", "web"], {".": ".", "web": "web", "api": ".", "api/src": "."}),
    "nested lists": ([".", "api/src", "api"], {".": ".", "api": "api", "api/src": "api/src", "web": "."}),
    "older list here": (["api", ".", "web"], {"api": "api", ".": ".", "docs": "."}),
}


@pytest.mark.parametrize(("made", "expected"), LATEST.values(), ids=LATEST)
def test_latest_batch_is_that_of_the_nearest_list(
    project: Project, made: list[str], expected: dict[str, str | None]
) -> None:
    for directory in made:
        project.make(directory, directory)
    for directory, name in expected.items():
        for reference in (None, "latest"):
            changed = project.select(directory, lambda store, ref=reference: select_batch(store, ref, is_change=True))  # type: ignore[misc]
            read = project.select(directory, lambda store, ref=reference: select_batch(store, ref))  # type: ignore[misc]
            assert changed == (InvalidInput if name is None else name), directory
            assert read == (made[-1] if name is None else name), directory


LIVE: dict[str, tuple[list[str], dict[str, str | type[CodebatchError]]]] = {
    "none": ([], {".": UnknownId, "web": UnknownId}),
    "one": (["web"], {".": "web", "web": "web", "api": UnknownId, "docs": UnknownId}),
    "two": (["api", "web"], {".": AmbiguousId, "web": "web", "api": "api", "api/src": "api", "docs": UnknownId}),
    "top and below": ([".", "web"], {".": ".", "web": "web", "api": "."}),
    "all": ([".", "api", "web"], {".": ".", "api/src": "api", "docs": "."}),
}


@pytest.mark.parametrize(("running", "expected"), LIVE.values(), ids=LIVE)
def test_running_batch_of_another_directory_is_never_meant(
    project: Project, running: list[str], expected: dict[str, str | type[CodebatchError]]
) -> None:
    for directory in (".", "api", "web"):
        project.make(directory, directory)
    for directory in running:
        project.run(directory)
    assert {
        directory: project.select(directory, lambda store: select_live_batch(store, None)) for directory in expected
    } == (expected)


def test_two_running_batches_of_a_list_are_ambiguous(project: Project) -> None:
    for name in ("first", "second"):
        project.make(name, "web")
        project.run(name)
    assert project.select("web", lambda store: select_live_batch(store, None)) is AmbiguousId


def test_latest_batch_of_the_list_here_is_meant_if_none_runs_here(project: Project) -> None:
    for directory in ("api", "web"):
        project.make(directory, directory)
    project.run("web")
    assert project.select("api", lambda store: select_live_batch(store, None, else_latest=True)) == "api"
    assert project.select("docs", lambda store: select_live_batch(store, None, else_latest=True)) is InvalidInput


@pytest.mark.parametrize("running", [[], ["web"]])
def test_error_without_a_running_batch_names_the_latest_one(project: Project, running: list[str]) -> None:
    for directory in ("api", ".", "web", "api"):
        project.make(directory, directory)
    for directory in running:
        project.run(directory)
    api = project.batches["api"].id
    with pytest.raises(UnknownId) as raised:
        select_live_batch(open_store(project=project.root / "api/src"), None)
    assert f"--batch {api}" in (raised.value.hint or "")
    assert project.select("api", lambda store: select_live_batch(store, "latest")) == "api"
    assert project.select("docs", lambda store: select_live_batch(store, "latest")) == "."


def test_latest_batch_of_a_list_is_no_analysis(line: CommandLine) -> None:
    """Each command that needs a running batch is refused with a hint. The option in this hint lets it work."""
    make_list(line, {"one": 'run = "true"'})
    write(line.directory / "a.py", "x = 1\n")
    line("work", "run")
    line("run")
    for words in (("set", "max-parallel=2"), ("add", "--task", "b=true"), ("pause",), ("unpause",), ("skip", "b")):
        option = line("work", *words, "--json", status=2).error["hint"].partition("add ")[2].split()
        assert option[0] == "--batch"
        line("work", *words, *option)
        line("work", *words, "--batch", "latest")


def test_errors_name_the_batch_and_its_directory(project: Project) -> None:
    project.make("web", "web")
    project.run("web")
    store, id_ = open_store(project=project.root / "api"), project.batches["web"].id
    with pytest.raises(UnknownId, match="no batch of a task list in this directory is running") as raised:
        select_live_batch(store, None)
    assert f"{id_} (../web)" in (raised.value.hint or "")
    with pytest.raises(InvalidInput, match=rf"batch {id_} is of another task list of the project, in \.\./web"):
        select_batch(store, None, is_change=True)
    assert select_batch(store, id_, is_change=True).id == id_
    assert select_live_batch(store, id_).id == id_
    texts = {
        name: list_directory_text(open_store(project=project.root / name), project.batches["web"])
        for name in DIRECTORIES
    }
    assert texts == {".": "web", "api": "../web", "api/src": "../../web", "web": "", "docs": "../web"}


@pytest.mark.parametrize(("file", "started_in"), [("docs/work.toml", "."), ("web/work.toml", "docs")])
def test_list_belongs_to_the_directory_of_its_file_and_of_its_start(
    project: Project, file: str, started_in: str
) -> None:
    project.make("list", "web", file=file, started_in=started_in)
    assert project.select("docs", lambda store: select_batch(store, None, is_change=True)) == "list"
    assert list_directory_text(open_store(project=project.root / "docs"), project.batches["list"]) == ""


def test_earlier_batches_are_those_of_the_list_here(project: Project) -> None:
    for name, directory in (("old", "api"), ("web", "web"), ("new", "api"), ("newest", "web")):
        project.make(name, directory)
    assert project.select("api", lambda store: select_batch(store, "latest~1")) == "old"
    assert project.select("web", lambda store: select_batch(store, "latest~1")) == "web"
    assert project.select("docs", lambda store: select_batch(store, "latest~1")) == "web"


def test_project_without_batches(project: Project) -> None:
    assert project.select("web", lambda store: select_batch(store, None)) is NoBatch


def test_analysis_belongs_to_all_directories(line: CommandLine) -> None:
    """The latest list of another directory does not hide it."""
    make_list(line, {"one": 'run = "true"'})
    (line.directory / "web").mkdir()
    (line.directory / "work.toml").rename(line.directory / "web" / "work.toml")
    (line.directory / "api").mkdir()
    line.shell("git init -q && codebatch -q run .")
    analysis = line("status", "--json").json["batch_id"]
    line.shell("cd web && codebatch work run -q")
    assert CommandLine(line.directory / "api")("status", "--json").json["batch_id"] == analysis
    shown = CommandLine(line.directory)("status")
    assert "source    web/work.toml" in shown.text
    assert shown.notes.endswith("is of the task list in web\n")
    refused = CommandLine(line.directory / "api")("work", "retry", "one", status=2)
    assert "in ../web" in refused.notes
