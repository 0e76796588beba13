"""The argument `project` of the Python API: settings, store and batch do not depend on the current directory."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import codebatch
import codebatch.work
from codebatch.errors import InvalidInput, UnknownId
from codebatch.model.record import File
from codebatch.operations.comparison.revisions import name_revision
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.project_snapshot import rules_for
from codebatch.operations.project.stores import locate_store
from codebatch.operations.queries.batch_query import BatchQuery
from tests.support.git_repositories import git, make_repository

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.slow


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two repositories with settings, and the current directory in a third project with other settings."""
    for name, pattern in (("one", "b.py"), ("two", "a.py"), ("elsewhere", "*.py")):
        files = {b"a.py": b"import b\n", b"b.py": b"x = 1\n", b"src/c.py": b"y = 1\n"}
        settings = f"pipeline = 'parse'\nexclude = ['{pattern}']\n[index]\nbuild = 'never'\n".encode()
        make_repository(tmp_path / name, [(1, {b"a.py": b""}), (2, {**files, b"codebatch.toml": settings})])
        git(tmp_path / name, "reset", "-q", "--hard")
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "one", tmp_path / "two"


def _analyse(project: Path) -> list[str]:
    ran = codebatch.run(project, project=project / "src", jobs=1)
    checked = codebatch.check("HEAD~1", project=project)
    assert checked.is_compared
    with codebatch.open(project=project / "src") as store:
        batch = store.batch()
        assert batch.id == ran.batch.id
        assert batch.is_stale is False
        assert batch.content("./c.py").path == b"src/c.py"
        return sorted(str(record.path) for record in batch.outputs() if isinstance(record, File))


def test_two_projects_in_two_threads_have_their_own_settings(projects: tuple[Path, Path]) -> None:
    one, two = projects
    with ThreadPoolExecutor(2) as threads:
        files = list(threads.map(_analyse, (one, two)))
    assert files == [["a.py", "codebatch.toml", "src/c.py"], ["b.py", "codebatch.toml", "src/c.py"]]
    assert sorted(path.name for path in Path.cwd().iterdir()) == [".git", "a.py", "b.py", "codebatch.toml", "src"]


def _run_tasks(project: Path) -> str:
    ended = codebatch.work.start(project=project)
    assert ended.shortfall is None
    assert codebatch.work.get(project=project / "src").batch.id == ended.batch.id
    assert [batch.batch.id for batch in codebatch.work.iter_batches(project=project)] == [ended.batch.id]
    return codebatch.work.read_log("name", project=project).data.decode()


def test_task_lists_of_two_projects_run_in_two_threads(projects: tuple[Path, Path]) -> None:
    for project in projects:
        (project / "work.toml").write_text("[tasks.name]\nrun = 'basename $PWD'\n")
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(_run_tasks, projects)) == ["one\n", "two\n"]


def test_settings_of_the_analysed_tree_are_not_used_without_the_argument(projects: tuple[Path, Path]) -> None:
    ran = codebatch.run(projects[0], jobs=1)
    assert ran.summary.files == 1, "the settings of the current directory exclude *.py"
    with pytest.raises(InvalidInput, match="no such directory"):
        codebatch.run(projects[0], project=projects[0] / "none")


def test_commits_and_patterns_are_those_of_the_project(projects: tuple[Path, Path]) -> None:
    one, two = projects
    codebatch.run(one, project=one, jobs=1)
    git(two, "tag", "here")
    store = locate_store(one / ".codebatch", two).open()
    revision = name_revision(store, "here", lambda _: _unknown(), print)
    assert not isinstance(revision, BatchQuery)
    assert revision.id == git(two, "rev-parse", "HEAD")
    (two / "codebatch.toml").unlink()
    with pytest.raises(InvalidInput, match="can match no path"):
        rules_for(load_configuration(two), (), (f"{two}/a.py",))


def _unknown() -> BatchQuery:
    raise UnknownId("no batch")


def test_only_the_boundary_reads_the_current_directory() -> None:
    """The command line and one module for the Python API read it. All other code gets a directory.

    A capsule runs in a process of its own, and the entries of `sys.path` depend on the directory of the process.
    """
    boundary = {"operations/project/stores.py", "engines/capsule_process.py", "system/processes/import_path.py"}
    reading = re.compile(r"\b(Path\.cwd|getcwdb?)\(")
    product = ROOT / "codebatch"
    paths = [path for path in product.rglob("*.py") if path.relative_to(product).parts[0] != "cli"]
    readers = {str(path.relative_to(product)) for path in paths if reading.search(path.read_text(encoding="utf-8"))}
    assert readers == boundary
