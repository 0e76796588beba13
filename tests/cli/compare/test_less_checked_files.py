"""Files that a change makes binary, huge or generated: it must not hide its findings without a word."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, write
from tests.support.git_repositories import git

pytestmark = pytest.mark.slow

_ERROR = b"print(nope)\n"
_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1\n"


def check_change(codebatch: CommandLine, old: dict[str, bytes], new: dict[str, bytes], *options: str) -> list[str]:
    """Return the files that fewer rules check after a change. Files without a new content are removed."""
    tree = codebatch.directory
    git(tree, "init", "-qb", "main")
    for files in ({"a.py": b"x = 1\n", ".gitignore": b".codebatch\n", **old}, new):
        for path in old if files is new else ():
            (tree / path).unlink()
        for path, content in files.items():
            write(tree / path, content)
        git(tree, "add", "-A")
        git(tree, "-c", "user.name=n", "-c", "user.email=n", "commit", "-qm", "m")
    codebatch("run", ".")
    checked = codebatch("check", "HEAD^", "--json", *options, status=0)
    names: list[str] = checked.json["unchecked"]["less_checked_files"]
    line = f"fewer rules check {len(names)} changed file{'s' * (len(names) != 1)}: "
    assert (line + ", ".join(names[:3]) in checked.notes) == bool(names)
    return names


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_ERROR + b"# \0\n", "binary"),
        (_ERROR + b"# pad\n" * (3 << 19), "huge"),
        (b"# @generated\n" + _ERROR, "generated"),
        (_POINTER, "not parsed"),
    ],
    ids=["binary", "huge", "generated", "pointer"],
)
def test_file_that_leaves_the_check_is_named(codebatch: CommandLine, content: bytes, reason: str) -> None:
    old = {"b.py": b"y = 1\n", "c.py": b"z = 1\n"}
    assert check_change(codebatch, old, {"b.py": content, "c.py": b"z = 2\n"}) == [f"b.py ({reason})"]


def test_added_source_is_named_but_no_data(codebatch: CommandLine) -> None:
    new = {f"{name}.py": _ERROR + b"# \0\n" for name in "pqrs"}
    names = check_change(codebatch, {}, {**new, "logo.png": b"\0", "model_pb2.py": b"# @generated\n"})
    assert names == ["p.py (binary)", "q.py (binary)", "r.py (binary)", "s.py (binary)"]


def test_file_that_was_not_checked_before_is_not_named(codebatch: CommandLine) -> None:
    content = _ERROR + b"# \0\n"
    assert check_change(codebatch, {"b.py": content}, {"lib/b.py": content, "vendor/x.py": b"y = 1\n"}) == []


def test_path_selects_the_files(codebatch: CommandLine) -> None:
    new = {"p/b.py": b"y = 2\n", "q/c.py": _ERROR + b"\0"}
    assert check_change(codebatch, {"p/b.py": b"y = 1\n", "q/c.py": b"z = 1\n"}, new, "--path", "/p/") == []
