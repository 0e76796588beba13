"""Tests of automatic answers: what a rule or the program of `[answering]` answers, and what is left to people."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from codebatch.coordinator.work.interfaces import HelperExited
from codebatch.coordinator.work.question_inbox import ProgramQuery, QuestionInbox
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.question import QUESTION_TEXT_BYTES_MAX, Question
from codebatch.model.work.request import Answer
from codebatch.model.work.work_batch import AnsweringPolicy, AnsweringRule, Work
from codebatch.scheduling.work.events import ConsultationEnded, ConsultRules
from codebatch.store.batches.store_directory import create_store
from codebatch.store.layout import QuestionNameParts
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles

A, B = CommandId("a"), CommandId("b")
PROGRAM = AnsweringPolicy(command="decide", timeout_seconds=7.0)


class Answering:
    """A batch of two tasks, with questions in its store."""

    def __init__(self, directory: Path, policy: AnsweringPolicy | None) -> None:
        store = create_store(RealFiles(), directory / "store")[0]
        work = Work(source="t", root=bytes(directory), order=(A, B), titles={A: "Title"}, answering=policy)
        self.batch = make_work_batch(store, [Command(id=A, run="a"), Command(id=B, run="b")], work, at_ns=1)
        self.places = CommandPlaces(self.batch.plan().shards)
        self.requests = RequestStore(self.batch.files, self.batch.root)
        self.started: list[tuple[Sequence[str], ProgramQuery, float]] = []
        self.warnings: list[str] = []
        self.asked = 0
        self.inbox = QuestionInbox(
            self.batch,
            work,
            self.places,
            self.requests,
            read_text=lambda task: f"text of {task}",
            start=lambda run, given, seconds: self.started.append(
                (run, msgspec.json.decode(given, type=ProgramQuery), seconds)
            ),
            wall_ns=time.time_ns,
            warn=self.warnings.append,
        )

    def ask(self, text: str, *choices: str, task: CommandId = A, is_human: bool = False) -> ConsultRules:
        """Publish a question of a task."""
        self.asked += 1
        question = Question(
            task=task, round=1, epoch=1, number=self.asked, is_live=True, text=text, choices=choices, is_human=is_human
        )
        shard, item = self.places.place_of_item((A, B).index(task))
        place = QuestionNameParts(shard, item, 1, 1, self.asked)
        QuestionStore(self.batch.files, self.batch.root).publish(place, question)
        return ConsultRules((A, B).index(task), question.digest)

    @property
    def answers(self) -> list[tuple[str, str]]:
        """The author and the text of each answer."""
        return [(one.head.by, one.body.text) for one in self.requests.read() if isinstance(one.body, Answer)]


RULES = AnsweringPolicy(
    rules=(
        AnsweringRule(match="^which", answer="uv"),
        AnsweringRule(match="delete", human=True),
        AnsweringRule(match="which|delete|blank", answer="late"),
        AnsweringRule(match="(a+)+$", answer="slow"),
    )
)
NO_REPLY = "the answering program failed: it did not print a JSON object with `answer` or `human`"
NOT_ALLOWED = "rule 1 gave no valid answer: 'uv' is not one of the allowed answers"


@pytest.mark.parametrize(
    ("text", "choices", "is_human", "answers", "warned"),
    [
        ("which tool?", (), False, [("rule 1", "uv")], ""),
        ("which tool?", ("uv", "pip"), False, [("rule 1", "uv")], ""),
        ("which tool?", ("pip",), False, [], NOT_ALLOWED),
        ("which tool?", (), True, [], ""),
        ("delete it?", (), False, [], ""),
        ("or which?", (), False, [("rule 3", "late")], ""),
        ("what else?", (), False, [], ""),
        (f"{'a' * 60}!", (), False, [], "the pattern of answering rule 4 took longer than 1 s"),
    ],
)
def test_first_matching_rule_answers_or_leaves_the_question_to_people(
    tmp_path: Path, text: str, choices: tuple[str, ...], is_human: bool, answers: list[tuple[str, str]], warned: str
) -> None:
    answering = Answering(tmp_path, RULES)
    consult = answering.ask(text, *choices, is_human=is_human)
    assert answering.inbox.consult_rules(consult) == ConsultationEnded(consult.question)
    assert answering.answers == answers
    start = "the question of task a is not answered automatically: "
    assert answering.warnings == ([f"{start}{warned}"] if warned else [])


def test_task_gets_a_limited_number_of_automatic_answers(tmp_path: Path) -> None:
    answering = Answering(tmp_path, msgspec.structs.replace(RULES, per_task_max=2))
    for text in ("which 1", "which 2", "which 3"):
        answering.inbox.consult_rules(answering.ask(text))
    answering.inbox.consult_rules(answering.ask("which 4", task=B))
    assert len(answering.answers) == 3
    assert answering.warnings == ["the question of task a is not answered automatically: it had 2 automatic answers"]


@pytest.mark.parametrize(
    ("ended", "answers", "warned"),
    [
        (HelperExited(b'{"answer": "yes"}'), [("command", "yes")], ""),
        (HelperExited(b'{"human": true}'), [], ""),
        (HelperExited(b'{"human": true, "answer": "yes"}'), [], ""),
        (HelperExited(b'{"answer": "maybe"}'), [], NOT_ALLOWED.replace("rule 1", "command").replace("uv", "maybe")),
        (HelperExited(b"{}"), [], NO_REPLY),
        (HelperExited(b"yes"), [], NO_REPLY),
        (HelperExited(b""), [], NO_REPLY),
        (HelperExited(None, "took longer than 7s"), [], "the answering program failed: took longer than 7s"),
    ],
)  # fmt: skip
def test_program_answers_or_leaves_the_question_to_people(
    tmp_path: Path, ended: HelperExited, answers: list[tuple[str, str]], warned: str
) -> None:
    answering = Answering(tmp_path, PROGRAM)
    consult = answering.ask("go on?", "yes", "no")
    assert answering.inbox.consult_rules(consult) is None
    ((run, query, seconds),) = answering.started
    assert (run, seconds) == (["/bin/sh", "-c", "decide"], 7.0)
    assert query == ProgramQuery(
        task="a", title="Title", text="text of a", question="go on?", choices=("yes", "no"), log_tail=""
    )
    assert answering.inbox.handle_output(ended) == ConsultationEnded(consult.question)
    assert answering.answers == answers
    start = "the question of task a is not answered automatically: "
    assert answering.warnings == ([f"{start}{warned}"] if warned else [])


@pytest.mark.parametrize("answer", [" ", "x" * (QUESTION_TEXT_BYTES_MAX + 1)])
def test_empty_or_very_long_answer_of_a_program_is_not_used(tmp_path: Path, answer: str) -> None:
    answering = Answering(tmp_path, PROGRAM)
    answering.inbox.consult_rules(answering.ask("go on?"))
    answering.inbox.handle_output(HelperExited(msgspec.json.encode({"answer": answer})))
    assert (answering.answers, len(answering.warnings)) == ([], 1)


def test_one_answering_program_runs_at_a_time(tmp_path: Path) -> None:
    answering = Answering(tmp_path, PROGRAM)
    first, second = answering.ask("first?"), answering.ask("second?", task=B)
    assert [answering.inbox.consult_rules(one) for one in (first, second)] == [None, None]
    assert [query.question for _, query, _ in answering.started] == ["first?"]
    assert answering.inbox.handle_output(HelperExited(b'{"answer": "1"}')) == ConsultationEnded(first.question)
    assert [query.question for _, query, _ in answering.started] == ["first?", "second?"]
    assert answering.inbox.handle_output(HelperExited(b'{"answer": "2"}')) == ConsultationEnded(second.question)
    assert answering.answers == [("command", "1"), ("command", "2")]
    assert answering.inbox.handle_output(HelperExited(b'{"answer": "3"}')) is None


def test_question_without_answering_is_left_to_people(tmp_path: Path) -> None:
    answering = Answering(tmp_path, None)
    consult = answering.ask("which?")
    assert answering.inbox.consult_rules(consult) == ConsultationEnded(consult.question)
    assert (answering.answers, answering.warnings) == ([], [])
