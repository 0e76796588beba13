"""What is found in what a command printed last."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.model.command import Command, CommandId, QuestionRule
from codebatch.system.files import RealFiles
from codebatch_workers.commands.endings import read_ending


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^QUESTION: (?P<text>.+)$", "which tool?"), ("^QUESTION: (.*)$", "QUESTION: which tool?"), (r"\AQUESTION", None)],
)
def test_a_pattern_of_a_question_knows_the_ends_of_lines(tmp_path: Path, pattern: str, text: str | None) -> None:
    command = Command(id=CommandId("a"), run="true", question=QuestionRule(pattern=pattern))
    found = read_ending(command, RealFiles(), tmp_path / "none", 0, b"begins\nQUESTION: which tool?\nends\n")
    assert (found.asked.text if found.asked else None) == text
