"""The files that `task new` writes: an example task with its test.

One example searches each line for a word. The other, for `--change`, replaces a word. `--rewrite` adds only a table.
"""

from __future__ import annotations

import msgspec


class TaskExample(msgspec.Struct, frozen=True):
    """A task and its test. NAME, CODE and TEST are replaced by the name of the task and the paths of the two files."""

    task: str
    test: str


FINDING_EXAMPLE = TaskExample(
    task='''"""A custom task of codebatch: its findings are cached, and can be queried like all other findings."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch_workers.api import Diagnostic, SourceFile

WORD = "frobnicate"


def task(file: SourceFile) -> Iterator[Diagnostic]:
    """Report lines that contain a forbidden word."""
    for number, line in enumerate(file.text.split("\\n"), start=1):
        if WORD in line:
            yield file.report(number, f"`{WORD}` is here", column=line.index(WORD) + 1)
''',
    test='''"""Test the task in CODE: run pytest in the directory of codebatch.toml."""

from __future__ import annotations

from pathlib import Path

from codebatch.testing.tasks import run_task


def test_NAME_finds_the_word(tmp_path: Path) -> None:
    found = run_task(tmp_path, "CODE:task", {"a.txt": "one\\nto frobnicate\\n", "b.txt": "two\\n"})
    assert [(each.path, each.line, each.column) for each in found] == [("a.txt", 2, 4)]
''',
)

CHANGE_EXAMPLE = TaskExample(
    task='''"""A custom task of codebatch that proposes changes of files. It does not change the files themselves."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch_workers.api import EditedFile, SourceFile

OLD, NEW = b"frobnicate", b"adjust"
EXCLUDED = (b"CODE", b"TEST")  # These files need the old word.


def task(file: SourceFile) -> Iterator[EditedFile]:
    """Replace a word."""
    if OLD in file.content and not file.path.endswith(EXCLUDED):
        yield file.change(file.content.replace(OLD, NEW))
''',
    test='''"""Test the task in CODE: run pytest in the directory of codebatch.toml."""

from __future__ import annotations

from pathlib import Path

from codebatch.testing.tasks import changed_files, run_task


def test_NAME_replaces_the_word(tmp_path: Path) -> None:
    records = run_task(tmp_path, "CODE:task", {"a.txt": "one\\r\\nto frobnicate\\r\\n", "b.txt": "two\\n"})
    assert [(each.path, each.added, each.removed) for each in records] == [("a.txt", 1, 1)]
    assert changed_files(tmp_path, records) == {"a.txt": b"one\\r\\nto adjust\\r\\n"}
''',
)

REWRITE_EXAMPLE = {
    "lang": "python",
    "pattern": "frobnicate($X, $$$REST)",
    "rewrite": "adjust($X, $$$REST)",
    "bad": "frobnicate(1)\n",
    "good": "adjust(1)\n",
}
"""An example of a table of `rewrites`."""
