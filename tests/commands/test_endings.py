"""Tests of what is read from the last output of a command: questions and results."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codebatch.model.work.command import Command, CommandId, QuestionRule, ResultPointers
from codebatch.model.work.question import QUESTION_TEXT_BYTES_MAX, ReportedQuestion
from codebatch.system.files.files import RealFiles
from codebatch_workers.commands.result_parsing import SLOW_QUESTION_TEXT, read_ending, read_question_file


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


ALL = ResultPointers(text="/text", cost="/cost", session="/session", question="/question")
LACKS = "the last JSON object of the output has no valid "


@pytest.mark.parametrize(
    ("pointers", "printed", "problem"),
    [
        (ALL, '{"text": "", "cost": 0, "session": ""}', ""),
        (ALL, '{"text": "t", "cost": 1, "session": "s", "question": ""}', ""),
        (ALL, '{"question": "which?"}', ""),
        (ResultPointers(cost="/cost"), '{"cost": 1}', ""),
        (ResultPointers(question="/question"), "words", ""),
        (ALL, "words", "the output has no JSON object with text and cost and session for `result`"),
        (ResultPointers(cost="/cost"), "", "the output has no JSON object with cost for `result`"),
        (ALL, '{"text": "t", "cost": "1", "session": 7}', f"{LACKS}cost and session for `result`"),
        (ResultPointers(session="/s"), f'{{"s": "{"x" * 200}"}}', ""),
        (ResultPointers(session="/s"), f'{{"s": "{"x" * 201}"}}', f"{LACKS}session for `result`"),
    ],
)
def test_values_that_the_output_lacks_are_named(
    tmp_path: Path, pointers: ResultPointers, printed: str, problem: str
) -> None:
    command = Command(id=CommandId("a"), run="true", result=pointers)
    assert read_ending(command, RealFiles(), tmp_path / "none", 0, printed.encode()).problem == problem


@pytest.mark.parametrize(("length", "shown"), [(2000, "x" * 2000), (2001, "x" * 1999 + "…")])
def test_long_result_ends_with_an_ellipsis(tmp_path: Path, length: int, shown: str) -> None:
    command = Command(id=CommandId("a"), run="true", result=ResultPointers(text="/text"))
    result = read_ending(command, RealFiles(), tmp_path / "none", 0, f'{{"text": "{"x" * length}"}}'.encode()).said
    assert result is not None
    assert result.text == shown


@pytest.mark.parametrize("exits", [(), (0,)])
def test_slow_question_pattern_asks_a_person_with_the_end_of_the_output(tmp_path: Path, exits: tuple[int, ...]) -> None:
    rule = QuestionRule(pattern="(a+)+$", exits=exits)
    command = Command(id=CommandId("a"), run="true", question=rule)
    output = f"{'a' * 60}!"
    ending = read_ending(command, RealFiles(), tmp_path / "none", 0, output.encode())
    assert ending.reported_question == ReportedQuestion(text=f"{SLOW_QUESTION_TEXT}\n{output}", is_human=True)


MANY = [f"c{number}" for number in range(101)]


@pytest.mark.parametrize(
    ("written", "text", "choices"),
    [
        (b"which?\n", "which?", ()),
        (b'{"text": "which?", "choices": ["a", " ", "b"]}', "which?", ("a", "b")),
        (b'{"text": "which?", "choices": "a"}', '{"text": "which?", "choices": "a"}', ()),
        (msgspec.json.encode({"text": "which?", "choices": MANY[:100]}), "which?", tuple(MANY[:100])),
        (
            msgspec.json.encode({"text": "which?", "choices": MANY}),
            "(its choices are too many or too long: any answer is allowed)\nwhich?",
            (),
        ),
        (
            msgspec.json.encode({"text": "which?", "choices": ["x" * 2001]}),
            "(its choices are too many or too long: any answer is allowed)\nwhich?",
            (),
        ),
        (b"x" * QUESTION_TEXT_BYTES_MAX, "x" * QUESTION_TEXT_BYTES_MAX, ()),
        (b"x" * (QUESTION_TEXT_BYTES_MAX + 1), "x" * (QUESTION_TEXT_BYTES_MAX - 3) + "…", ()),
    ],
)
def test_question_file_is_json_or_text_and_says_what_was_cut(
    tmp_path: Path, written: bytes, text: str, choices: tuple[str, ...]
) -> None:
    (tmp_path / "question").write_bytes(written)
    assert read_question_file(RealFiles(), tmp_path / "question") == ReportedQuestion(text=text, choices=choices)
