"""What ruff leaves out for a note, we know as left out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch_workers.lint.ruff_notes import RuffNotes
from codebatch_workers.syntax.source import SourceFile

_NOTES = [
    "", "# noqa", "#noqa", "# NOQA: F401", "# noqa:F401", "# noqa: E501, F401", "# noqa: E501 F401", "# noqa: E501",
    "# noqa: f401", "# noqa : F401", "# x # noqa", "# no qa", "# noqa: F4", "# noqa: F401 because",
]  # fmt: skip
_OF_FILES = [
    "# ruff: noqa", "# flake8: noqa", "# ruff: noqa: F401", "# ruff: noqa: E501", "# RUFF: noqa", "# ruff: NOQA",
    "#ruff:noqa", "# ruff : noqa", "x = 1  # ruff: noqa", "# ruff: noqa: F4", "# flake8: noqa: F401",
]  # fmt: skip


@pytest.mark.slow
def test_a_note_is_heeded_as_ruff_heeds_it(tmp_path: Path) -> None:
    texts = [f"import os  {note}\n" for note in _NOTES] + [f"{note}\nimport os\n" for note in _OF_FILES]
    for number, text in enumerate(texts):
        (tmp_path / f"{number:02}.py").write_text(text)
    words = ["check", "--isolated", "--no-cache", "--select", "F401", "--output-format", "concise", "."]
    said = subprocess.run([find_ruff_bin(), *words], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    known = [_is_noted(text) for text in texts]
    assert known == [f"{number:02}.py:" not in said for number in range(len(texts))]


def _is_noted(text: str) -> bool:
    line = text[: text.index("import")].count("\n") + 1
    return RuffNotes(SourceFile(b"a.py", text.encode(), executable=False, contexts={})).has(line, "F401")
