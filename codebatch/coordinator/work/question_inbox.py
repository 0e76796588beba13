"""Questions that commands of a work batch ask, and their automatic answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codebatch.coordinator.work.automatic_answers import AutoAnswerer, AutomaticAnswer, Query
from codebatch.model.digest import Digest
from codebatch.model.work.question import Question
from codebatch.model.work.request import Answer
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.work.events import Consult, Consulted, QuestionAsked
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir
from codebatch.store.layout import QuestionPlace
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.questions import Questions
from codebatch.store.work.requests import Requests

LOG_TAIL_BYTES = 8 * 1024


class QuestionInbox:
    """The questions of one run."""

    def __init__(
        self,
        batch: BatchDir,
        work: Work,
        places: CommandPlaces,
        requests: Requests,
        *,
        text_of: Callable[[str], str],
        start: Callable[[Sequence[str], bytes, float], None],
        wall_ns: Callable[[], int],
    ) -> None:
        """Set up the inbox. `text_of` returns the text of a command; `start` is as in `AutoAnswerer`."""
        self._batch = batch
        self._work = work
        self._places = places
        self._requests = requests
        self._text_of = text_of
        self._wall_ns = wall_ns
        self._questions = Questions(batch.files, batch.root)
        self._known: dict[Digest, tuple[QuestionPlace, Question]] = {}
        self._new_questions: list[QuestionAsked] = []
        self._answerer = None if work.answering is None else AutoAnswerer(work.answering, start, self._query_of)

    def read(self) -> list[QuestionAsked]:
        """Return the live questions since the last call. Their commands keep running."""
        self._read_new()
        questions, self._new_questions = self._new_questions, []
        return questions

    def _read_new(self) -> None:
        for place, question in self._questions.read():
            item = self._places.item(place.shard, place.item)
            if item is not None:
                self._known[question.digest] = place, question
                if question.is_live:
                    self._new_questions.append(
                        QuestionAsked(item, place.round, place.epoch, place.number, question.digest)
                    )

    def question(self, digest: Digest) -> Question | None:
        """Return the question with a digest, or None if it cannot be read."""
        if digest not in self._known:
            self._read_new()
        known = self._known.get(digest)
        return None if known is None else known[1]

    def consult(self, consult: Consult) -> Consulted | None:
        """Consult the rules or the program. Return None if the program must run first.

        Raises StoreUnwritable or StoreCorrupt.
        """
        known = self.question(consult.question)
        if known is None or self._answerer is None:
            return Consulted(consult.question)
        return self._record_answer(self._answerer.consult(known, self._requests.read()))

    def handle_output(self, output: bytes | None) -> Consulted | None:
        """Handle the output of the answering program. Raises StoreUnwritable or StoreCorrupt."""
        return None if self._answerer is None else self._record_answer(self._answerer.handle_output(output))

    def _record_answer(self, answered: AutomaticAnswer | None) -> Consulted | None:
        if answered is None:
            return None
        question = answered.question
        if answered.text is not None:
            body = Answer(task=question.task, round=question.round, question=question.digest, text=answered.text)
            self._requests.append(body, by=answered.by, at_ns=self._wall_ns())
        return Consulted(question.digest)

    def _query_of(self, question: Question) -> Query:
        place, _ = self._known[question.digest]
        log = self._batch.root / layout.LOGS / layout.log_name(place.shard, place.item, place.round, place.epoch)
        size = self._batch.files.size(log) or 0
        begin = max(0, size - LOG_TAIL_BYTES)
        tail = self._batch.files.read_range(log, begin, size - begin) if size else b""
        return Query(
            task=question.task,
            title=self._work.titles.get(question.task, ""),
            text=self._text_of(question.task),
            question=question.text,
            choices=question.choices,
            log_tail=tail.decode("utf-8", "replace"),
        )
