"""Inputs of an attempt other than its command line: files in its directory, and the values of placeholders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.entry import display_path
from codebatch.model.outcome import CommandReport, WorkUnit
from codebatch.model.shard import ShardId
from codebatch.model.work.command import Command
from codebatch.model.work.placeholders import PlaceholderError, expand_arguments
from codebatch.model.work.question import Question
from codebatch.model.work.request import Answer
from codebatch.protocol.messages import Assign, NeedState
from codebatch.store import layout
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.work.attempts import read_attempt
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore
from codebatch.system.files.files import StoreFiles
from codebatch.system.processes.command_processes import ProcessNotStarted
from codebatch_workers.commands.scratch import EMPTY_FILE, NO_ROWS_FILE, AttemptDirectories


class AnswerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of CODEBATCH_ANSWERS: a question that the command asked, and its answer. The oldest row is first."""

    question: str
    answer: str
    round: int


class NeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of CODEBATCH_NEEDS: the state of a task that this command's task needs, and the report of that task."""

    id: str
    state: str
    round: int
    exit_status: int | None
    log: str
    text: str
    cost: float | None
    session: str


class AttemptFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of an attempt's files, and values for placeholders. A path is empty if the attempt lacks the file.

    The command itself writes the file `question`. `task_text` is the content of the file `text`. `number` is the number
    of the try, from 1. `session` is the session that the previous attempt reported. `outputs` has the values of the
    placeholders for outputs of needed tasks.
    """

    task_text: str
    text: Path
    question: Path
    answers: Path
    needs: Path
    previous_log: Path
    number: int
    session: str
    outputs: Mapping[str, str] = {}

    def placeholder_values(self, command: Command) -> dict[str, str]:
        """Return the value of each placeholder that the command may contain."""
        return {
            "id": command.id,
            "title": command.title,
            "text": self.task_text,
            "text_file": str(self.text),
            "try": str(self.number),
            "answers_file": str(self.answers),
            "previous_log": str(self.previous_log),
            "session": self.session,
            **command.values,
            **self.outputs,
        }

    def environment_variables(self) -> dict[str, str]:
        """Return the environment variables that contain the paths of the attempt's files, for the command."""
        return {
            "CODEBATCH_TEXT": str(self.text),
            "CODEBATCH_QUESTION": str(self.question),
            "CODEBATCH_ANSWERS": str(self.answers),
            "CODEBATCH_NEEDS": str(self.needs),
            "CODEBATCH_PREVIOUS_LOG": str(self.previous_log),
            "CODEBATCH_TRY": str(self.number),
        }


def first_answers(questions: Sequence[Question], requests: RequestStore) -> list[AnswerRow]:
    """Return a row for each question that has an answer. If a question has several answers, the first one counts."""
    first: dict[str, str] = {}
    for request in requests.read():
        if isinstance(request.body, Answer):
            first.setdefault(request.body.question, request.body.text)
    return [
        AnswerRow(question=question.text, answer=first[question.digest], round=question.round)
        for question in questions
        if question.digest in first
    ]


class AttemptFilesWriter:
    """A factory for the `AttemptFiles` of the attempts of one batch."""

    def __init__(
        self,
        files: StoreFiles,
        batch_root: Path,
        scratch: AttemptDirectories,
        questions: QuestionStore,
        requests: RequestStore,
        objects: ObjectStore,
    ) -> None:
        """`scratch` has the directories of this worker's attempts."""
        self._files = files
        self._root = batch_root
        self._scratch = scratch
        self._questions = questions
        self._requests = requests
        self._objects = objects

    def write_files(self, command: Command, assign: Assign, directory: Path) -> AttemptFiles:
        """Write the files of an attempt into its directory. Raises ProcessNotStarted or StoreUnwritable."""
        brief, unit = assign.brief, assign.unit
        # With epoch 1, this is the first attempt, so no earlier one can have asked a question.
        answers = self._first_answers(unit) if assign.epoch > 1 else []
        self._scratch.make(directory)
        previous = self._root / layout.LOGS / brief.previous_log if brief.previous_log else directory / EMPTY_FILE
        report = self._read_report(unit.shard, unit.start, brief.previous_round)
        needs = [self._need_row(need) for need in brief.needs]
        no_rows = directory / NO_ROWS_FILE
        materials = AttemptFiles(
            task_text="",
            text=directory / EMPTY_FILE,
            question=directory / "question",
            answers=self._write_rows(directory / "answers", answers) if answers else no_rows,
            needs=self._write_rows(directory / "needs", needs) if needs else no_rows,
            previous_log=previous,
            number=brief.tried + 1,
            session=report.session,
            outputs=self._write_outputs(command, assign, directory) if command.outputs_of else {},
        )
        full_text = _build_text(command, materials, answers)
        if not full_text:
            return materials
        self._files.write_volatile(directory / "text", full_text.encode())
        return msgspec.structs.replace(materials, task_text=full_text, text=directory / "text")

    def _write_outputs(self, command: Command, assign: Assign, directory: Path) -> dict[str, str]:
        # Few tasks use outputs of others.
        from codebatch_workers.commands.task_outputs import write_needed_outputs

        return write_needed_outputs(command, assign.brief.outputs, directory / "outputs", self._objects)

    def _first_answers(self, unit: WorkUnit) -> list[AnswerRow]:
        try:
            questions = self._questions.item_questions((unit.shard, unit.start))
            return first_answers(questions, self._requests) if questions else []
        except StoreError as error:
            raise ProcessNotStarted(f"its answers cannot be read: {error.message}") from error

    def _write_rows(self, path: Path, rows: Sequence[AnswerRow | NeedRow]) -> Path:
        self._files.write_volatile(path, msgspec.json.encode(rows) + b"\n")
        return path

    def _need_row(self, need: NeedState) -> NeedRow:
        report = self._read_report(need.shard, need.start, need.round)
        return NeedRow(
            id=need.id,
            state=need.state,
            round=need.round,
            exit_status=need.exit_status,
            log=display_path(bytes(self._root / layout.LOGS / need.log)) if need.log else "",
            text=report.text,
            cost=report.cost,
            session=report.session,
        )

    def _read_report(self, shard: ShardId, start: int, round_: int) -> CommandReport:
        outcome = read_attempt(self._files, self._root, shard, start, round_) if round_ else None
        return (outcome and outcome.result) or CommandReport()


def _build_text(command: Command, materials: AttemptFiles, answers: Sequence[AnswerRow]) -> str:
    """Return the text for the command: the task's text, the suffix for this try, and answered questions."""
    suffix = command.retry_changes(materials.number - 1).text_suffix
    try:
        values = {**materials.placeholder_values(command), "text": command.text} if suffix else {}
        parts = [command.text, *expand_arguments([suffix], values)]
    except PlaceholderError as error:
        raise ProcessNotStarted(f"cannot build its text: {error}") from error
    if answers:
        pairs = [f"Question: {row.question}\n\nAnswer: {row.answer}" for row in answers]
        parts.append("\n\n".join(["## Answers", *pairs]))
    return "\n\n".join(filter(None, parts))
