"""Number of changes of the functions of a batch, for any difference between the work tree and its newest commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.operations.api.store import open as open_store
from codebatch.operations.history import history_cache
from codebatch.operations.hotspots.function_changes import compare_lines
from codebatch.operations.hotspots.hotspots import find_hotspots
from tests.support.command_line import CommandLine
from tests.support.git_repositories import git

WHO = ("-c", "user.name=n", "-c", "user.email=n")
HARD = "def hard(a):\n" + "".join(f"    if a == {number}:\n        a = g()\n" for number in range(12))
EASY = "def easy(a):\n    return a\n"


def commit(tree: Path, content: str) -> None:
    (tree / "a.py").write_bytes(content.encode())
    git(tree, "add", "-A")
    git(tree, *WHO, "commit", "-qm", "m")


@pytest.fixture
def project(codebatch: CommandLine) -> Path:
    """A function that 3 commits changed, in a file that 8 commits changed."""
    tree = codebatch.directory / "tree"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    git(tree, "config", "core.autocrlf", "false")
    for number in range(3):
        commit(tree, EASY + HARD.replace("== 5", f"== {50 + number}"))
    for number in range(5):
        commit(tree, EASY.replace("return a", f"return {number}") + HARD.replace("== 5", "== 52"))
    return tree


def count_changes(codebatch: CommandLine, *, runs: bool = True) -> int | None:
    if runs:
        codebatch("run", "tree", "--store", "store", "-q")
    (row,) = codebatch("hotspots", "--store", "store", "--json").json["rows"]
    count: int | None = row["commits_per_year"]
    return count


def test_hotspots_counts_changes_of_the_function_not_of_its_file(codebatch: CommandLine, project: Path) -> None:
    assert count_changes(codebatch) == 3
    assert codebatch("hotspots", "--files", "--store", "store", "--json").json["rows"][0]["commits_per_year"] == 8


def test_uncommitted_lines_do_not_count_as_changes(codebatch: CommandLine, project: Path) -> None:
    new = "import x\n\n\n" + EASY * 3 + (project / "a.py").read_text().replace("== 7", "== 77") + EASY
    (project / "a.py").write_text(new)
    assert count_changes(codebatch) == 3
    (project / "a.py").write_text(new.replace("def hard(a)", "def new(b)"))
    assert count_changes(codebatch) == 3  # The renamed function has the lines of the function before.


def test_line_end_conversion_does_not_count_as_a_change(codebatch: CommandLine, project: Path) -> None:
    (project / "a.py").write_bytes((project / "a.py").read_bytes().replace(b"\n", b"\r\n"))
    assert count_changes(codebatch) == 3


def test_changes_of_an_older_commit_are_counted_from_its_history(codebatch: CommandLine, project: Path) -> None:
    assert count_changes(codebatch) == 3
    for number in range(4):
        commit(project, EASY * 20 + HARD.replace("== 5", f"== {60 + number}"))
    assert count_changes(codebatch, runs=False) == 3
    assert count_changes(codebatch) == 7


def test_untracked_file_has_no_changes(codebatch: CommandLine, project: Path) -> None:
    (project / "a.py").rename(project / "b.py")
    assert count_changes(codebatch) == 0


def test_history_cache_reads_only_new_commits(codebatch: CommandLine, project: Path) -> None:
    """After the first query, the contents of old versions are no longer needed."""
    assert count_changes(codebatch) == 3
    old = git(project, "rev-parse", *(f"HEAD~{age}:a.py" for age in range(2, 8))).split()
    commit(project, EASY + HARD.replace("== 5", "== 70"))
    for name in old:
        (project / ".git/objects" / name[:2] / name[2:]).unlink()
    assert count_changes(codebatch) == 4


def test_compare_lines_returns_one_range_above_the_limit() -> None:
    assert compare_lines(b"a\nb\nc\nd\n", b"a\nx\nc\nd\ne\n") == ((2, 3, 2, 3), (5, 5, 5, 6))
    many = b"".join(b"%d\n" % number for number in range(4_000))
    assert compare_lines(b"a\n" + many + b"z\n", b"a\nb\n" + many.replace(b"7\n", b"8\n") + b"y\nz\n") == (
        (2, 4_002, 2, 4_004),
    )


def test_change_frequency_is_unknown_in_a_shallow_clone(codebatch: CommandLine, project: Path) -> None:
    git(codebatch.directory, "clone", "-q", "--depth", "3", f"file://{project}", "shallow")
    codebatch("run", "shallow", "--store", "store", "-q")
    answer = codebatch("hotspots", "--store", "store", "--json").json
    assert [row["commits_per_year"] for row in answer["rows"]] == [None]
    assert answer["churn_note"] == "change frequency covers only 3 commits: the clone is shallow"


def test_change_counts_that_time_out_are_read_by_the_next_query(
    codebatch: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codebatch("run", "tree", "--store", "store", "-q")
    for cached in (codebatch.directory / "store/cache").glob("churn-*"):
        cached.unlink()
    phases: list[tuple[str, int, int, str]] = []
    store = open_store(codebatch.directory / "store", project=project, note=pytest.fail)
    for seconds, expected in ((0.0, None), (60.0, 3)):
        monkeypatch.setattr(history_cache, "HISTORY_SECONDS_MAX", seconds)
        question = store.batch().question
        question.on_phase = lambda *phase: phases.append(phase)
        hotspots = find_hotspots(question).result
        assert [row.commits_per_year for row in hotspots.rows] == [expected]
        assert ("the next query reads more" in hotspots.churn_note) == hotspots.is_history_cut == (expected is None)
    assert phases[0] == ("reading history", 0, 8, "commits")
    assert phases[-1][0] == "comparing versions"


def test_change_frequency_without_symbols_names_the_missing_task(codebatch: CommandLine, project: Path) -> None:
    (codebatch.directory / "codebatch.toml").write_text('[pipelines.mine]\ntasks = ["parse", "analyze"]\n')
    codebatch("run", "tree", "--pipeline", "mine", "--store", "store", "-q")
    answer = codebatch("hotspots", "--store", "store", "--json").json
    assert [row["commits_per_year"] for row in answer["rows"]] == [None]
    assert (
        answer["churn_note"]
        == "change frequency of some functions unknown: the batch has no results of the task symbols"
    )
