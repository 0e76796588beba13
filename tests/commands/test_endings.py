"""Tests of what is read from the last output of a command: questions and results."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.model.work.command import Command, CommandId, QuestionRule, ResultPointers
from codebatch.system.files.files import RealFiles
from codebatch_workers.commands.result_parsing import read_ending


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^QUESTION: (?P<text>.+)$", "which tool?"), ("^QUESTION: (.*)$", "QUESTION: which tool?"), (r"\AQUESTION", None)],
)
def test_question_pattern_matches_whole_lines(tmp_path: Path, pattern: str, text: str | None) -> None:
    command = Command(id=CommandId("a"), run="true", question=QuestionRule(pattern=pattern))
    ending = read_ending(command, RealFiles(), tmp_path / "none", 0, b"begins\nQUESTION: which tool?\nends\n")
    assert (ending.reported_question.text if ending.reported_question else None) == text


def test_colours_are_removed_from_questions_and_results(tmp_path: Path) -> None:
    rule = QuestionRule(pattern="^QUESTION: (?P<text>.+)$")
    command = Command(id=CommandId("a"), run="true", question=rule, result=ResultPointers(text="/text"))
    printed = b'\x1b[1mQUESTION: \x1b[31mwhich?\x1b[0m\n\x1b[2m{"text": \x1b[32m"fine"\x1b[0m}\n'
    ending = read_ending(command, RealFiles(), tmp_path / "none", 0, printed)
    assert (ending.reported_question and ending.reported_question.text, ending.said and ending.said.text) == (
        "which?",
        "fine",
    )


@pytest.mark.parametrize(
    ("printed", "text", "cost"),
    [
        ('{"cost": 0.25, "text": "fine"}', "fine", 0.25),
        ('{"cost": 1}\nwords {', "", 1.0),
        ('{"cost": 2}\n{"cost": true, "text": ["x"]}', None, None),
        ('{"cost": 1' + "0" * 400 + "}", None, None),
        ('{"cost": Infinity}', None, None),
        ('{"cost": NaN, "text": "\\ud800"}', "?", None),
        ('{"cost": "3"}', None, None),
        ("[" * 100_000, None, None),
    ],
)
def test_result_accepts_only_text_and_numeric_cost(
    tmp_path: Path, printed: str, text: str | None, cost: float | None
) -> None:
    command = Command(id=CommandId("a"), run="true", result=ResultPointers(text="/text", cost="/cost"))
    result = read_ending(command, RealFiles(), tmp_path / "none", 0, printed.encode()).said
    assert (result.text if result else None, result.cost if result else None) == (text, cost)
