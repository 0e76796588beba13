"""Trees that were made to harm codebatch: each is accepted, or rejected with a reason, in limited time."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command_line import SCRIPT, CommandLine, Ended, write

SECONDS_MAX = 20.0
STARS = "*a" * 12 + "*b"
LONG_NAME = "a" * 60


def run_within_the_time_limit(
    codebatch: CommandLine, *arguments: str | Path, status: int = 0, cwd: Path | None = None
) -> Ended:
    """Run a command that must end with a status, before it would seem to hang."""
    ended = subprocess.run(
        [SCRIPT, *arguments],
        cwd=cwd or codebatch.directory,
        env=codebatch.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return codebatch.check(" ".join(map(str, arguments)), ended.returncode, ended.stdout, ended.stderr, status)


def git(tree: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True)


def snapshot_paths(codebatch: CommandLine) -> list[str]:
    """Return the paths of the latest snapshot, sorted."""
    directory = directory_of_store(codebatch)
    (snapshot,) = codebatch("snapshot", "list", "--json", cwd=directory).json
    return [
        row["path"] for row in codebatch("files", "--snapshot", snapshot["snapshot_id"], "--json", cwd=directory).json
    ]


def directory_of_store(codebatch: CommandLine) -> Path:
    """Return the directory that contains the store: the tree if it is a git work tree that was run."""
    tree = codebatch.directory / "tree"
    return tree if (tree / ".codebatch").is_dir() else codebatch.directory


def replace_in_index(tree: Path, old: bytes, new: bytes) -> None:
    """Replace a name in the git index by one of the same length, which git itself would not write."""
    index = tree / ".git" / "index"
    data = index.read_bytes()[:-20].replace(old, new)
    index.write_bytes(data + hashlib.sha1(data, usedforsecurity=False).digest())


def lead_out(tree: Path) -> None:
    write(tree.parent / "secret.py", "SECRET = 1\n")
    _index_with(tree, b"../secret.py")


def take_the_configuration(tree: Path) -> None:
    _index_with(tree, b".git/config")


def take_the_configuration_in_capitals(tree: Path) -> None:
    _index_with(tree, b".GIT/config")
    write(tree / ".GIT" / "config", "token = 1\n")


def name_this_directory(tree: Path) -> None:
    _index_with(tree, b"./aa.py")


def name_what_is_absolute(tree: Path) -> None:
    _index_with(tree, b"/etc/passwd")


def double_the_slash(tree: Path) -> None:
    write(tree / "d" / "e.py", "x = 1\n")
    _index_with(tree, b"d//e.py")


def _index_with(tree: Path, name: bytes) -> None:
    git(tree, "init", "-q")
    stand_in = b"x" * len(name)
    write(tree / os.fsdecode(stand_in), "x = 1\n")
    git(tree, "add", ".")
    (tree / os.fsdecode(stand_in)).unlink()
    replace_in_index(tree, stand_in, name)


def cut_the_index(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", ".")
    index = tree / ".git" / "index"
    index.write_bytes(index.read_bytes()[:40])


def spoil_a_nested_index(tree: Path) -> None:
    write(tree / "inner" / "b.py", "x = 1\n")
    git(tree, "init", "-q")
    cut_the_index(tree / "inner")


def put_a_fifo(name: str) -> Callable[[Path], None]:
    return lambda tree: os.mkfifo(tree / name)


def put_a_fifo_in_git(tree: Path) -> None:
    git(tree, "init", "-q")
    os.mkfifo(tree / ".gitignore")


def include_a_fifo(tree: Path) -> None:
    git(tree, "init", "-q")
    os.mkfifo(tree / ".git" / "fifo")
    git(tree, "config", "include.path", "/dev/null")
    config = (tree / ".git" / "config").read_text()
    (tree / ".git" / "config").write_text(config.replace("/dev/null", str(tree / ".git" / "fifo")))


def ignore_by_many_stars(name: str, *, in_git: bool = False) -> Callable[[Path], None]:
    def make(tree: Path) -> None:
        write(tree / LONG_NAME, "x = 1\n")
        write(tree / name, f"{STARS}\n**/{STARS}\n{'**/a*' * 20}/b linguist-generated\n")
        write(tree / f".codebatch{name}", "")
        if in_git:
            git(tree, "init", "-q")

    return make


def link_to_a_device(name: str) -> Callable[[Path], None]:
    return lambda tree: os.symlink("/dev/zero", tree / name)


def go_deep(tree: Path, *files: str, name: str = "dir", levels: int = 1500) -> None:
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
        for file in files:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    os.close(fd)


def go_deep_with_ignore_files(tree: Path) -> None:
    go_deep(tree, ".gitignore", ".codebatchignore")


def nest_repositories(tree: Path) -> None:
    for depth in range(1, 30):
        write(tree.joinpath(*["d"] * depth) / "b.py", "x = 1\n")
        git(tree.joinpath(*["d"] * depth), "init", "-q")


def write_many_lines(name: str, line: str) -> Callable[[Path], object]:
    return lambda tree: write(tree / name, "".join(line.format(number) + "\n" for number in range(50_000)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A case of a hostile tree.

    `make` receives a tree with an `a.py`. `entries` are the other files that are accepted, or None if they do not
    matter.
    """

    make: Callable[[Path], object]
    message: str = ""
    entries: tuple[str, ...] | None = ()
    status: int = 0
    command: str = "snapshot"
    is_slow: bool = False


CANNOT_BE = "lists the invalid path"
ROWS = {
    "index leads out": Row(make=lead_out, message=CANNOT_BE),
    "index has .git": Row(make=take_the_configuration, message=CANNOT_BE),
    "index has .GIT": Row(make=take_the_configuration_in_capitals, message=CANNOT_BE),
    "index has ./": Row(make=name_this_directory, message=CANNOT_BE),
    "index is absolute": Row(make=name_what_is_absolute, message=CANNOT_BE),
    "index has //": Row(make=double_the_slash, message=CANNOT_BE, entries=("d/e.py",)),
    "index is cut": Row(make=cut_the_index, message="by a directory walk"),
    "nested index is cut": Row(
        make=spoil_a_nested_index, message="inner are listed by a directory walk", entries=("inner/b.py",)
    ),
    "fifo .gitignore": Row(make=put_a_fifo(".gitignore"), message="skipped 1 fifo"),
    "fifo .codebatchignore": Row(make=put_a_fifo(".codebatchignore"), message="skipped 1 fifo"),
    "fifo .gitattributes": Row(
        make=put_a_fifo(".gitattributes"), message="skipped 1 fifo", command="run", entries=None
    ),
    "fifo .gitignore in git": Row(make=put_a_fifo_in_git, message="git waits for a FIFO"),
    "fifo in git's include": Row(
        make=include_a_fifo, message="by a directory walk: git waits for a FIFO", command="run"
    ),
    "device .gitignore": Row(make=link_to_a_device(".gitignore"), entries=(".gitignore",)),
    "stars in .gitignore": Row(make=ignore_by_many_stars(".gitignore"), entries=None),
    "stars in .gitignore in git": Row(make=ignore_by_many_stars(".gitignore", in_git=True), entries=None),
    "stars in .codebatchignore": Row(make=ignore_by_many_stars(".codebatchignore"), entries=None),
    "stars in .gitattributes": Row(make=ignore_by_many_stars(".gitattributes"), command="run", entries=None),
    "1,500 levels": Row(make=go_deep),
    "1,500 levels of files": Row(make=lambda tree: go_deep(tree, "b.py", "c.py"), entries=None, is_slow=True),
    "1,500 ignore files": Row(
        make=go_deep_with_ignore_files, message="more than 256 ignore files", entries=None, status=4, is_slow=True
    ),
    "a path of 80 kB": Row(
        make=lambda tree: go_deep(tree, "b.py", name="d" * 200, levels=400),
        message="longer than",
        entries=None,
        status=4,
    ),
    "30 repositories in each other": Row(make=nest_repositories, entries=None, is_slow=True),
    "50,000 .gitignore lines": Row(make=write_many_lines(".gitignore", "/x{0}/*y{0}z?"), entries=(".gitignore",)),
    "50,000 alike": Row(make=write_many_lines(".gitignore", "*{0}*"), entries=(".gitignore",)),
    "50,000 attributes": Row(
        make=write_many_lines(".gitattributes", "*x{0}.py linguist-generated"), command="run", entries=None
    ),
}


@pytest.fixture
def tree(codebatch: CommandLine) -> Iterator[Path]:
    """A tree with one file.

    rm(1) removes it, because pytest cannot remove trees of this depth.
    """
    tree = codebatch.directory / "tree"
    write(tree / "a.py", "import os\n")
    yield tree
    subprocess.run(["rm", "-rf", tree], check=True)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if row.is_slow else []) for name, row in ROWS.items()]
)
def test_hostile_tree_is_accepted_or_rejected_in_time(codebatch: CommandLine, tree: Path, name: str) -> None:
    row = ROWS[name]
    row.make(tree)
    ended = run_within_the_time_limit(codebatch, row.command, "tree", status=row.status)
    assert row.message in ended.notes
    if not row.status:
        assert codebatch("snapshot", "list", "--json", cwd=directory_of_store(codebatch)).json
    if row.entries is not None:
        assert snapshot_paths(codebatch) == sorted((*row.entries, "a.py"))
    if row.status == 0:
        run_within_the_time_limit(codebatch, row.command, "tree")


SPECIAL_ROWS: dict[str, Callable[[Path], object]] = {
    "device": lambda path: path.symlink_to("/dev/zero"),
    "fifo": os.mkfifo,
    "socket": lambda path: os.mknod(path, 0o140644),
    "directory": lambda path: path.mkdir(),
}
CONFIGURATION_ROWS: dict[str, tuple[Callable[[Path], object], str]] = {
    "long": (lambda path: write(path, "[tool.codebatch]\n" + "#" * (2 << 20)), "longer than"),
    "deep": (lambda path: write(path, f"[tool.codebatch]\nx = {'[' * 100_000}"), "nested too deep"),
    "deep keys": (lambda path: write(path, f"[tool.codebatch]\n{'a.' * 2000}b = 1"), "nested too deep"),
    "long keys": (lambda path: write(path, f"[tool.codebatch]\n{'a.' * 500_000}b = 1"), "too many parts"),
    "long number": (lambda path: write(path, f"[tool.codebatch]\njobs = {'9' * 5000}"), "digits"),
    "no text": (lambda path: write(path, b"[tool.codebatch]\njobs = \xff"), "decode"),
}
INVALID_PYPROJECT_ROWS: dict[str, Callable[[Path], object]] = {
    **SPECIAL_ROWS,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "long": lambda path: write(path, "#" * (2 << 20)),
    "deep": lambda path: write(path, "x = " + "[" * 100_000),
    "no text": lambda path: write(path, b'[project]\nauthors = ["Jos\xe9"]\n'),
}


@pytest.mark.parametrize("file", ["codebatch.toml", "pyproject.toml"])
@pytest.mark.parametrize("name", CONFIGURATION_ROWS)
def test_hostile_configuration_is_rejected_in_time(codebatch: CommandLine, name: str, file: str) -> None:
    make, message = CONFIGURATION_ROWS[name]
    make(codebatch.directory / file)
    _check_rejected(codebatch, file, message)


@pytest.mark.parametrize("name", SPECIAL_ROWS)
def test_configuration_that_is_not_a_regular_file_is_rejected_in_time(codebatch: CommandLine, name: str) -> None:
    SPECIAL_ROWS[name](codebatch.directory / "codebatch.toml")
    _check_rejected(codebatch, "codebatch.toml", "it is not a regular file")


def _check_rejected(codebatch: CommandLine, file: str, message: str) -> None:
    error = run_within_the_time_limit(codebatch, "config", "show", "--json", status=2).error
    assert error["code"] == "invalid_configuration"
    assert message in error["message"]
    assert file in error["message"]


@pytest.mark.parametrize("name", INVALID_PYPROJECT_ROWS)
def test_invalid_pyproject_without_codebatch_settings_is_ignored(codebatch: CommandLine, name: str) -> None:
    INVALID_PYPROJECT_ROWS[name](codebatch.directory / "pyproject.toml")
    run_within_the_time_limit(codebatch, "config", "show")


@pytest.mark.parametrize("command", ["ast", "rules test"])
def test_fifo_as_an_argument_is_rejected(codebatch: CommandLine, command: str) -> None:
    os.mkfifo(codebatch.directory / "a.py")
    assert "not a regular file" in run_within_the_time_limit(codebatch, *command.split(), "a.py", status=4).notes


def test_git_exit_status_is_known_although_sigchld_is_ignored(codebatch: CommandLine) -> None:
    """If SIGCHLD is ignored, wait(2) returns no exit status.

    Then a failed git command would look like an empty list.
    """
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    write(codebatch.directory / "tree" / "inner" / "b.py", "x = 1\n")
    git(codebatch.directory / "tree", "init", "-q")
    cut_the_index(codebatch.directory / "tree" / "inner")
    ignore = "import os, signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    script = f"{ignore}; os.execv({str(SCRIPT)!r}, ['codebatch', 'run', 'tree', '--json'])"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=codebatch.directory,
        env=codebatch.environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert codebatch.check("run", ended.returncode, ended.stdout, ended.stderr, 0).json["files"] == 2
    assert signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN


@pytest.mark.parametrize("content", ["nothing", "empty directories", "links", "fifos", "ignored files"])
def test_tree_without_files_creates_no_store(codebatch: CommandLine, content: str) -> None:
    tree = codebatch.directory / "tree"
    tree.mkdir()
    match content:
        case "empty directories":
            (tree / "a" / "b").mkdir(parents=True)
        case "links":
            (tree / "a").symlink_to("b")
            (tree / "up").symlink_to("..")
        case "fifos":
            os.mkfifo(tree / "a")
        case "ignored files":
            write(tree / ".gitignore", "*\n")
            write(tree / "a.py", "x = 1\n")
        case _:
            pass
    before = sorted(tree.iterdir())
    assert (
        run_within_the_time_limit(codebatch, "run", ".", "--json", status=5, cwd=tree).error["code"] == "nothing_to_do"
    )
    assert sorted(tree.iterdir()) == before
    answer = run_within_the_time_limit(codebatch, "snapshot", ".", "--json", cwd=tree).json
    assert (answer["files"], answer["entries"]) == (0, 2 if content == "links" else 0)


def test_ignored_but_tracked_file_is_included(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / ".gitignore", "*\n")
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    git(codebatch.directory / "tree", "init", "-q")
    git(codebatch.directory / "tree", "add", "-f", "a.py")
    assert run_within_the_time_limit(codebatch, "run", "tree", "--json").json["files"] == 1


def test_why_accepts_only_paths_within_the_tree(codebatch: CommandLine) -> None:
    tree = codebatch.directory / "tree"
    write(tree / ".gitignore", "build/\n*.log\n")
    for path in ("src/a.py", "build/b.py", "c.log"):
        write(tree / path, "x = 1\n")
    for path in ("/etc", "/etc/passwd", "..", "../other", "/", "/nowhere"):
        assert run_within_the_time_limit(codebatch, "files", "--why", path, "--json", status=2, cwd=tree).error[
            "message"
        ]
    for is_repository in (False, True):
        if is_repository:
            git(tree, "init", "-q")
        mode = "git" if is_repository else "walk"
        for path, rule in (("build/b.py", ".gitignore:1:build/"), ("c.log", ".gitignore:2:*.log")):
            (line,) = run_within_the_time_limit(codebatch, "files", "--why", path, cwd=tree).lines
            assert line == f"{path}: excluded: {rule} (listing: {mode})"
    assert run_within_the_time_limit(codebatch, "files", "--why", "../src/a.py", "--json", cwd=tree / "src").json[
        "included"
    ]
    assert (
        "directory"
        in run_within_the_time_limit(codebatch, "files", "--why", "..", "--json", cwd=tree / "src").json["rule"]
    )
    run_within_the_time_limit(codebatch, "files", "--why", "../..", status=2, cwd=tree / "src")
