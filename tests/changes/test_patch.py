"""The exact text of patches, as `git diff --full-index` prints it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codebatch.operations.changes.patch import file_patch, quoted_path

ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def numbered(count: int, **replaced: str) -> bytes:
    """Return lines with numbers, some of them replaced: `_3="x"` replaces line 3."""
    return b"".join(f"{replaced.get(f'_{number}', number)}\n".encode() for number in range(1, count + 1))


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (b"a.py", b"1\n2\n3\n", b"1\nx\n3\n"),
        (b"a b.py", b"1\n", b"2\n"),
        (b"caf\xc3\xa9 x.py", b"1\n", b"2\n"),
        (b'q"\\\t\n\x01\x7f.py', b"1\n", b"2\n"),
        (b"a.py", b"1\n2", b"1\n2\n"),
        (b"a.py", b"1\n2\n", b"1\n2"),
        (b"a.py", b"1", b"2"),
        (b"a.py", b"", b"1\n"),
        (b"a.py", b"1\n", b""),
        (b"a.py", b"1\r\n2\r\n", b"1\n2\r\n"),
        (b"a.py", b"a\x0cb\n\xff\n", b"a\x0cb\n\xfe\n"),
        (b"a.py", numbered(20), numbered(20, _3="x", _10="y")),
        (b"a.py", numbered(20), numbered(20, _3="x", _11="y")),
        (b"a.py", numbered(20), numbered(20, _1="x", _20="y")),
    ],
)
def test_patch_is_the_text_that_git_prints(tmp_path: Path, path: bytes, before: bytes, after: bytes) -> None:
    (tmp_path / "name").mkdir()
    place = tmp_path / "name" / path.decode()
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path / "name", env=ENVIRONMENT, check=True)
    place.write_bytes(before)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path / "name", env=ENVIRONMENT, check=True)
    place.write_bytes(after)
    words = ["git", "-c", "core.autocrlf=false", "diff", "--full-index", "--no-ext-diff", "--no-color"]
    printed = subprocess.run(words, cwd=tmp_path / "name", env=ENVIRONMENT, capture_output=True, check=True).stdout
    patch = file_patch(path, before, after, was_executable=False, is_executable=False)
    # git names the enclosing function after the range of a hunk.
    lines = [line.rpartition(b" @@")[0] + b" @@" if line.startswith(b"@@") else line for line in printed.split(b"\n")]
    assert patch == b"\n".join(lines)


def test_change_of_the_mode_alone_has_no_hunk() -> None:
    patch = file_patch(b"a", b"1\n", b"1\n", was_executable=False, is_executable=True)
    assert patch == b"diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"


def test_created_and_deleted_files_name_dev_null() -> None:
    created = file_patch(b"a b", None, b"1\n", was_executable=False, is_executable=True)
    assert b"new file mode 100755\n" in created
    assert created.endswith(b"--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+1\n")
    deleted = file_patch(b"a", b"1\n", None, was_executable=True, is_executable=False)
    assert b"deleted file mode 100755\n" in deleted
    assert deleted.endswith(b"--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n")


def test_plain_path_is_not_quoted() -> None:
    assert quoted_path(b"a/b c'$*.py") == b"a/b c'$*.py"
