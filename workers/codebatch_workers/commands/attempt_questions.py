"""Questions that the command of one attempt asks: at its end, or while it runs.

While a command runs, `codebatch ask --wait` writes each question as a file next to CODEBATCH_QUESTION. One question at
a time is published durably. The next one is published after the command has got the answer. An answer arrives as a
request. It is delivered once the coordinator permits the delivery. If the coordinator has ended, it is delivered at
once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.model.outcome import WorkUnit
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import Question, ReportedQuestion
from codebatch.model.work.request import Answer
from codebatch.store.layout import QuestionNameParts
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore
from codebatch.system.files.files import StoreFiles
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.masking import SecretMasker
from codebatch_workers.commands.result_parsing import read_question_file

ASK_PREFIX = "ask-"
ASK_SUFFIX = ".json"
ANSWER_SUFFIX = ".answer"
_CHECK_INTERVAL_NS = 200_000_000


class AttemptQuestions:
    """The questions that the command of one attempt asks."""

    def __init__(
        self,
        files: StoreFiles,
        questions: QuestionStore,
        requests: RequestStore,
        listener: CoordinatorListener,
        *,
        task: CommandId,
        unit: WorkUnit,
        epoch: int,
        directory: Path,
        sync_lease: Callable[[], None],
        masker: SecretMasker,
    ) -> None:
        """`directory` is the directory of the attempt.

        `sync_lease` makes the lease durable. It is called before a question is published. `masker` masks secret values
        in questions.
        """
        self._files = files
        self._questions = questions
        self._requests = requests
        self._listener = listener
        self._task = task
        self._unit = unit
        self._epoch = epoch
        self._directory = directory
        self._sync_lease = sync_lease
        self._masker = masker
        self._number = 0
        self._handled_files: set[str] = set()
        self._open_question: tuple[Path, Question] | None = None
        self._checked_ns: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the command waits for an answer to a published question."""
        return self._open_question is not None

    def check_files(self, now_ns: int) -> None:
        """Every 0.2 s, look for the file of a new question, or for the answer to the open question.

        If publishing a question or delivering an answer fails, the next call tries again.
        """
        if self._checked_ns is None:  # The first check comes after the interval, because short commands ask nothing.
            self._checked_ns = now_ns
        if now_ns - self._checked_ns < _CHECK_INTERVAL_NS:
            return
        self._checked_ns = now_ns
        with contextlib.suppress(StoreError):
            if self._open_question is None:
                self._check_for_question()
            elif self._listener.may_proceed or self._listener.is_alone:
                self._check_for_answer(*self._open_question)

    def publish_question(self, reported: ReportedQuestion, *, is_live: bool) -> Question:
        """Publish a question durably, and return it. Raises StoreUnwritable."""
        question = Question(
            task=self._task,
            round=self._unit.round,
            epoch=self._epoch,
            number=self._number + 1,
            is_live=is_live,
            text=self._masker.mask_text(reported.text),
            choices=tuple(map(self._masker.mask_text, reported.choices)),
            is_human=reported.is_human,
        )
        self._sync_lease()
        place = QuestionNameParts(self._unit.shard, self._unit.start, question.round, question.epoch, question.number)
        self._questions.publish(place, question)
        self._number = question.number
        return question

    def _check_for_question(self) -> None:
        names = set(self._files.listing(self._directory))
        for name in sorted(names - self._handled_files):
            if not (name.startswith(ASK_PREFIX) and name.endswith(ASK_SUFFIX)):
                continue
            reported = read_question_file(self._files, self._directory / name)
            if reported is not None:
                self._open_question = self._directory / name, self.publish_question(reported, is_live=True)
            self._handled_files.add(name)
            return

    def _check_for_answer(self, path: Path, question: Question) -> None:
        for request in self._requests.read():
            if isinstance(request.body, Answer) and request.body.question == question.digest:
                self._files.write_volatile(path.with_suffix(ANSWER_SUFFIX), request.body.text.encode())
                self._open_question = None
                self._listener.may_proceed = False  # The coordinator must permit the delivery of each answer again.
                return
