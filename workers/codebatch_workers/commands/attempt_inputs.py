"""What an attempt is given besides its command: files in a directory for its time, and the values of placeholders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.outcome import CommandReport, Unit
from codebatch.model.shard import ShardId
from codebatch.model.work.command import Command
from codebatch.model.work.placeholders import PlaceholderError, expand_arguments
from codebatch.model.work.question import Question
from codebatch.model.work.request import Answer
from codebatch.protocol.messages import Assign, NeedState
from codebatch.store import layout
from codebatch.store.work.attempts import read_attempt
from codebatch.store.work.questions import Questions
from codebatch.store.work.requests import Requests
from codebatch.system.files.files import Files
from codebatch.system.processes.command_processes import NotStarted
from codebatch_workers.commands.scratch import EMPTY, NO_ROWS, Scratch


class AnswerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of CODEBATCH_ANSWERS: what the command asked before, in order, and what was answered."""

    question: str
    answer: str
    round: int


class NeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of CODEBATCH_NEEDS: where a command stands that this one needs, and what it says of itself."""

    id: str
    state: str
    round: int
    exit_status: int | None
    log: str
    text: str
    cost: float | None
    session: str


class Materials(msgspec.Struct, frozen=True, kw_only=True):
    """Files of an attempt, which may be empty. `question` is to be written by the command.

    `words` is the text with all that belongs to it, `number` which try it is, `session` how the one before would go on.
    """

    words: str
    text: Path
    question: Path
    answers: Path
    needs: Path
    previous_log: Path
    number: int
    session: str

    def values(self, command: Command) -> dict[str, str]:
        """What placeholders stand for."""
        return {
            "id": command.id,
            "title": command.title,
            "text": self.words,
            "text_file": str(self.text),
            "try": str(self.number),
            "answers_file": str(self.answers),
            "previous_log": str(self.previous_log),
            "session": self.session,
            **command.values,
        }

    def variables(self) -> dict[str, str]:
        """What stands in the environment."""
        return {
            "CODEBATCH_TEXT": str(self.text),
            "CODEBATCH_QUESTION": str(self.question),
            "CODEBATCH_ANSWERS": str(self.answers),
            "CODEBATCH_NEEDS": str(self.needs),
            "CODEBATCH_PREVIOUS_LOG": str(self.previous_log),
            "CODEBATCH_TRY": str(self.number),
        }


def answers_of(questions: Sequence[Question], requests: Requests) -> list[AnswerRow]:
    """What was answered to each of some questions: the first answer to it."""
    first: dict[str, str] = {}
    for request in requests.read():
        if isinstance(request.body, Answer):
            first.setdefault(request.body.question, request.body.text)
    return [
        AnswerRow(question=each.text, answer=first[each.digest], round=each.round)
        for each in questions
        if each.digest in first
    ]


class MaterialsMaker:
    """Makes the materials of attempts of one batch."""

    def __init__(
        self, files: Files, batch_root: Path, scratch: Scratch, questions: Questions, requests: Requests
    ) -> None:
        """`scratch` is this worker's."""
        self._files = files
        self._root = batch_root
        self._scratch = scratch
        self._questions = questions
        self._requests = requests

    def make(self, command: Command, assign: Assign, directory: Path) -> Materials:
        """Write them into a directory. Raises NotStarted, StoreUnwritable."""
        brief, unit = assign.brief, assign.unit
        # Under its first lease nothing of it was ever begun that might have asked.
        answers = self._answers(unit) if assign.epoch > 1 else []
        self._scratch.make(directory)
        previous = self._root / layout.LOGS / brief.previous_log if brief.previous_log else directory / EMPTY
        said = self._said(unit.shard, unit.start, brief.previous_round)
        needs = [self._need(each) for each in brief.needs]
        nothing = directory / NO_ROWS
        made = Materials(
            words="",
            text=directory / EMPTY,
            question=directory / "question",
            answers=self._write(directory / "answers", answers) if answers else nothing,
            needs=self._write(directory / "needs", needs) if needs else nothing,
            previous_log=previous,
            number=brief.tried + 1,
            session=said.session,
        )
        words = _words(command, made, answers)
        if not words:
            return made
        self._files.write_volatile(directory / "text", words.encode())
        return msgspec.structs.replace(made, words=words, text=directory / "text")

    def _answers(self, unit: Unit) -> list[AnswerRow]:
        try:
            questions = self._questions.of_item((unit.shard, unit.start))
            return answers_of(questions, self._requests) if questions else []
        except StoreError as error:
            raise NotStarted(f"its answers cannot be read: {error.message}") from error

    def _write(self, path: Path, rows: Sequence[AnswerRow | NeedRow]) -> Path:
        self._files.write_volatile(path, msgspec.json.encode(rows) + b"\n")
        return path

    def _need(self, need: NeedState) -> NeedRow:
        said = self._said(need.shard, need.start, need.round)
        return NeedRow(
            id=need.id,
            state=need.state,
            round=need.round,
            exit_status=need.exit_status,
            log=str(self._root / layout.LOGS / need.log) if need.log else "",
            text=said.text,
            cost=said.cost,
            session=said.session,
        )

    def _said(self, shard: ShardId, start: int, round_: int) -> CommandReport:
        outcome = read_attempt(self._files, self._root, shard, start, round_) if round_ else None
        return (outcome and outcome.result) or CommandReport()


def _words(command: Command, made: Materials, answers: Sequence[AnswerRow]) -> str:
    """The text of an attempt: what stands in the definition, what this try adds, and what was answered."""
    suffix = command.escalation(made.number - 1).text_suffix
    try:
        values = {**made.values(command), "text": command.text} if suffix else {}
        parts = [command.text, *expand_arguments([suffix], values)]
    except PlaceholderError as error:
        raise NotStarted(f"cannot build its text: {error}") from error
    if answers:
        pairs = [f"Question: {each.question}\n\nAnswer: {each.answer}" for each in answers]
        parts.append("\n\n".join(["## Answers", *pairs]))
    return "\n\n".join(filter(None, parts))
