"""Questions of a command that goes on to run: files that `codebatch ask --wait` makes beside CODEBATCH_QUESTION.

One at a time is made known, durably, so that whoever looks sees it; the next once that is answered. An answer is a
request: it is handed over when the coordinator says that there is room, or at once where none lives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.model.outcome import Unit
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import AskedQuestionText, Question
from codebatch.model.work.request import Answer
from codebatch.store.layout import QuestionPlace
from codebatch.store.work.questions import Questions
from codebatch.store.work.requests import Requests
from codebatch.system.files.files import Files
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.result_parsing import read_asked

ASK_PREFIX = "ask-"
ASK_SUFFIX = ".json"
ANSWER_SUFFIX = ".answer"
_LOOK_EVERY_NS = 200_000_000


class LiveQuestions:
    """What the command of one attempt asks."""

    def __init__(
        self,
        files: Files,
        questions: Questions,
        requests: Requests,
        ears: CoordinatorListener,
        *,
        task: CommandId,
        unit: Unit,
        epoch: int,
        directory: Path,
        sync_lease: Callable[[], None],
    ) -> None:
        """`directory` is that of the attempt. Its lease is to be on disk before what it asks is."""
        self._files = files
        self._questions = questions
        self._requests = requests
        self._ears = ears
        self._task = task
        self._unit = unit
        self._epoch = epoch
        self._directory = directory
        self._sync_lease = sync_lease
        self._number = 0
        self._done: set[str] = set()
        self._open: tuple[Path, Question] | None = None
        self._looked_ns: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the command waits for an answer."""
        return self._open is not None

    def look(self, now_ns: int) -> None:
        """See, every 0.2 s, what is asked and what is answered. What the disk refuses is tried again."""
        if self._looked_ns is None:  # Most that are over at once ask nothing.
            self._looked_ns = now_ns
        if now_ns - self._looked_ns < _LOOK_EVERY_NS:
            return
        self._looked_ns = now_ns
        with contextlib.suppress(StoreError):
            if self._open is None:
                self._look_for_question()
            elif self._ears.may_proceed or self._ears.is_alone:
                self._look_for_answer(*self._open)

    def ask(self, asked: AskedQuestionText, *, is_live: bool) -> Question:
        """Make a question known. On return it is on disk. Raises StoreUnwritable."""
        question = Question(
            task=self._task,
            round=self._unit.round,
            epoch=self._epoch,
            number=self._number + 1,
            is_live=is_live,
            text=asked.text,
            choices=asked.choices,
            is_human=asked.is_human,
        )
        self._sync_lease()
        place = QuestionPlace(self._unit.shard, self._unit.start, question.round, question.epoch, question.number)
        self._questions.ask(place, question)
        self._number = question.number
        return question

    def _look_for_question(self) -> None:
        names = set(self._files.listing(self._directory))
        for name in sorted(names - self._done):
            if not (name.startswith(ASK_PREFIX) and name.endswith(ASK_SUFFIX)):
                continue
            asked = read_asked(self._files, self._directory / name)
            if asked is not None:
                self._open = self._directory / name, self.ask(asked, is_live=True)
            self._done.add(name)
            return

    def _look_for_answer(self, path: Path, question: Question) -> None:
        for request in self._requests.read():
            if isinstance(request.body, Answer) and request.body.question == question.digest:
                self._files.write_volatile(path.with_suffix(ANSWER_SUFFIX), request.body.text.encode())
                self._open = None
                self._ears.may_proceed = False  # Of the next it may be told while that is still being asked.
                return
