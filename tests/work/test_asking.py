"""Questions of tasks (`codebatch ask`) and their answers, without processes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from codebatch.errors import InvalidInput
from codebatch.model.digest import Digest
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.question import ReportedQuestion
from codebatch.model.work.request import Answer
from codebatch.model.work.work_batch import Work
from codebatch.store.batches.store_directory import create_store
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles
from codebatch.work.control.ask import ask_question
from codebatch.work.control.questions import answer_question

A = CommandId("a")


class Attempt:
    """An attempt of a task, whose earlier attempts got answers to questions."""

    def __init__(self, directory: Path, *answers: tuple[str, str]) -> None:
        (directory / "attempt").mkdir()
        self.question = directory / "attempt/question"
        rows = [{"question": question, "answer": answer} for question, answer in answers]
        (directory / "answers").write_bytes(msgspec.json.encode(rows))
        self.environ = {"CODEBATCH_QUESTION": str(self.question), "CODEBATCH_ANSWERS": str(directory / "answers")}

    def ask(self, text: str, *choices: str) -> str | None:
        return ask_question(text, choices=choices, environ=self.environ)


def test_each_answer_is_used_once_and_then_the_question_is_asked_again(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, ("go on?", "yes"), ("which?", "uv"), ("go on?", "no"))
    assert [attempt.ask(" go on?\n") for _ in range(2)] == ["yes", "no"]
    assert not attempt.question.exists()
    assert attempt.ask("go on?") is None
    assert msgspec.json.decode(attempt.question.read_bytes(), type=ReportedQuestion) == ReportedQuestion(text="go on?")
    assert attempt.ask("which?") == "uv"


@pytest.mark.parametrize(
    ("choices", "answers"),
    [
        ((), ["uv", "pip", None]),
        (("uv", "pip"), ["uv", "pip", None]),
        (("pip", "conda"), ["pip", None, None]),
        (("UV", "conda"), [None, None, None]),
    ],
)
def test_answer_that_is_not_among_the_choices_now_is_not_used(
    tmp_path: Path, choices: tuple[str, ...], answers: list[str | None]
) -> None:
    attempt = Attempt(tmp_path, ("which?", "uv"), ("which?", "pip"))
    assert [attempt.ask("which?", *choices) for _ in range(3)] == answers
    asked = msgspec.json.decode(attempt.question.read_bytes(), type=ReportedQuestion)
    assert asked == ReportedQuestion(text="which?", choices=choices)


def test_question_with_wait_gets_the_answer_to_itself(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, ("which?", "uv"))
    polls = itertools.count()

    def sleep(_: float) -> None:
        """Answer at the second poll."""
        if next(polls) == 1:
            (asked,) = attempt.question.parent.glob("ask-*.json")
            asked.with_suffix(".answer").write_text("pip")

    given = [ask_question("which?", wait=True, environ=attempt.environ, sleep=sleep) for _ in range(2)]
    assert given == ["uv", "pip"]
    assert not attempt.question.exists()


@pytest.mark.parametrize(
    ("text", "choices", "message"),
    [
        (" ", (), "must not be empty"),
        ("x" * (64 * 1024 + 1), (), "longer than 64 KiB"),
        ("x", ("a", " "), "one non-empty line"),
        ("x", ("a\nb",), "one non-empty line"),
        ("x", ("a",) * 101, "at most 100 choices of 2,000 characters"),
        ("x", ("a" * 2001,), "at most 100 choices of 2,000 characters"),
        ("x" * 64 * 1024, ("a" * 2000,) * 100, ""),
    ],
)
def test_invalid_question_is_refused(tmp_path: Path, text: str, choices: Sequence[str], message: str) -> None:
    attempt = Attempt(tmp_path)
    if message:
        with pytest.raises(InvalidInput, match=message):
            attempt.ask(text, *choices)
    else:
        attempt.ask(text, *choices)
    assert attempt.question.exists() == (not message)


def test_question_outside_of_an_attempt_is_refused(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, ("which?", "uv"))
    with pytest.raises(InvalidInput, match="not running as a task"):
        ask_question("which?", environ={})
    (tmp_path / "attempt").rmdir()
    with pytest.raises(InvalidInput, match="has ended"):
        attempt.ask("which?")


def test_refused_answer_names_the_answer_that_was_used(tmp_path: Path) -> None:
    """Only the first answer to a question is used, and the latest question counts."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    work = Work(source="t", root=bytes(tmp_path), order=(A,))
    batch = make_work_batch(store, [Command(id=A, run="a")], work, at_ns=1)
    requests = RequestStore(batch.files, batch.root)
    for by, question, text in (("ada", "1", "old"), ("bob", "2", "used"), ("eve", "2", "late"), ("ada", "1", "later")):
        requests.append(Answer(task=A, round=1, question=Digest(question * 64), text=text), by=by, at_ns=1)
        if question == "2":
            with pytest.raises(InvalidInput, match=r"not waiting for an answer: bob answered 'used'$"):
                answer_question(store, batch, "a", "yes")
