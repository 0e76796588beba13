"""The files that `task new` writes: an example task that searches each line for a word, and its test."""

TASK_EXAMPLE = '''"""A custom task of codebatch: its findings are cached, and can be queried like all other findings."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch_workers.api import Diagnostic, SourceFile

WORD = "frobnicate"


def task(file: SourceFile) -> Iterator[Diagnostic]:
    """Report lines that contain a forbidden word."""
    for number, line in enumerate(file.text.split("\\n"), start=1):
        if WORD in line:
            yield file.report(number, f"`{WORD}` is here", column=line.index(WORD) + 1)
'''

TEST_EXAMPLE = '''"""Test the task in CODE: run pytest in the directory of codebatch.toml."""

from __future__ import annotations

from pathlib import Path

from codebatch.testing.tasks import run_task


def test_NAME_finds_the_word(tmp_path: Path) -> None:
    found = run_task(tmp_path, "CODE:task", {"a.txt": "one\\nto frobnicate\\n", "b.txt": "two\\n"})
    assert [(each.path, each.line, each.column) for each in found] == [("a.txt", 2, 4)]
'''
