"""Questions of the commands of a work batch, and their automatic answers (SPEC.md "Questions").

The answering rules of the task list are tried first, then its answering program. If neither answers a question, a
person must. The program can only return an answer; it cannot change the batch in another way.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from codebatch.coordinator.work.interfaces import HelperExited
from codebatch.model.digest import Digest
from codebatch.model.text.quantities import count_text
from codebatch.model.text.regex_timeout import MATCH_SECONDS_MAX, MatchTimeout, cpu_time_limit
from codebatch.model.work.question import Question, find_answer_problem
from codebatch.model.work.request import Answer
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.work.events import ConsultationEnded, ConsultRules, QuestionAsked
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.layout import QuestionNameParts
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore

ANSWERED_BY_RULE = "rule"
ANSWERED_BY_PROGRAM = "command"
LOG_TAIL_BYTES = 8 * 1024


class ProgramQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The standard input of the answering program, as JSON."""

    task: str
    title: str
    text: str
    question: str
    choices: tuple[str, ...]
    log_tail: str


class ProgramReply(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the answering program, as JSON: an answer, or a request to ask a human."""

    answer: str = ""
    human: bool = False


class QuestionInbox:
    """The questions of one run. At most one answering program runs at a time."""

    def __init__(
        self,
        batch: BatchDir,
        work: Work,
        places: CommandPlaces,
        requests: RequestStore,
        *,
        read_text: Callable[[str], str],
        start: Callable[[Sequence[str], bytes, float], None],
        wall_ns: Callable[[], int],
        warn: Callable[[str], None],
    ) -> None:
        """Set up the inbox.

        `read_text` returns the text of a command. `start` runs the answering program in the background. When this
        program has ended, the caller passes its end to `handle_output`. `warn` reports why a question that should be
        answered automatically is left to people.
        """
        self._batch = batch
        self._work = work
        self._places = places
        self._requests = requests
        self._read_text = read_text
        self._start_program = start
        self._wall_ns = wall_ns
        self._warn = warn
        self._questions = QuestionStore(batch.files, batch.root)
        self._questions_by_digest: dict[Digest, tuple[QuestionNameParts, Question]] = {}
        self._new_questions: list[QuestionAsked] = []
        self._answering = work.answering
        rules = () if work.answering is None else work.answering.rules
        self._rules = [(re.compile(rule.match), rule) for rule in rules]
        self._waiting: deque[Question] = deque()
        self._current_question: Question | None = None

    def read(self) -> list[QuestionAsked]:
        """Return the live questions that were asked since the last call.

        A question is live if the command keeps running while it waits for the answer.
        """
        self._read_new()
        questions, self._new_questions = self._new_questions, []
        return questions

    def _read_new(self) -> None:
        for place, question in self._questions.read():
            item = self._places.item_at_place(place.shard, place.item)
            if item is not None:
                self._questions_by_digest[question.digest] = place, question
                if question.is_live:
                    self._new_questions.append(
                        QuestionAsked(item, place.round, place.epoch, place.number, question.digest)
                    )

    def question(self, digest: Digest) -> Question | None:
        """Return the question with a digest, or None if it cannot be read."""
        if digest not in self._questions_by_digest:
            self._read_new()
        known = self._questions_by_digest.get(digest)
        return None if known is None else known[1]

    def consult_rules(self, consult: ConsultRules) -> ConsultationEnded | None:
        """Try to answer a question by the answering rules.

        Return None if the answering program must run first; then `handle_output` returns the result. Raises
        StoreUnwritable or StoreCorrupt.
        """
        question = self.question(consult.question)
        if question is None or self._answering is None or question.is_human:
            return ConsultationEnded(consult.question)
        if (count := self._count_automatic_answers(question.task)) >= self._answering.per_task_max:
            return self._leave_to_people(question, f"it had {count_text(count, 'automatic answer')}")
        for number, (pattern, rule) in enumerate(self._rules, start=1):
            try:
                with cpu_time_limit():
                    is_met = pattern.search(question.text) is not None
            except MatchTimeout:
                why = f"the pattern of answering rule {number} took longer than {MATCH_SECONDS_MAX:g} s"
                return self._leave_to_people(question, why)
            if is_met and rule.human:
                return ConsultationEnded(question.digest)
            if is_met:
                return self._append_answer(question, rule.answer, f"{ANSWERED_BY_RULE} {number}")
        if not self._answering.command:
            return ConsultationEnded(question.digest)
        self._waiting.append(question)
        self._start_answering_program()
        return None

    def handle_output(self, ended: HelperExited) -> ConsultationEnded | None:
        """Answer the pending question with the output of the answering program, which has ended.

        Start the program for the next question.

        Raises StoreUnwritable or StoreCorrupt.
        """
        if self._current_question is None:
            return None
        question, self._current_question = self._current_question, None
        self._start_answering_program()
        reply = None if ended.output is None else _decode_reply(ended.output)
        if reply is None:
            problem = ended.problem or "it did not print a JSON object with `answer` or `human`"
            return self._leave_to_people(question, f"the answering program failed: {problem}")
        if reply.human:
            return ConsultationEnded(question.digest)
        return self._append_answer(question, reply.answer, ANSWERED_BY_PROGRAM)

    def _append_answer(self, question: Question, text: str, by: str) -> ConsultationEnded:
        """Append an answer to the requests.

        If the text is not a valid answer, append nothing. Then a person must answer.
        """
        if problem := find_answer_problem(text, question.choices):
            return self._leave_to_people(question, f"{by} gave no valid answer: {problem}")
        body = Answer(task=question.task, round=question.round, question=question.digest, text=text)
        self._requests.append(body, by=by, at_ns=self._wall_ns())
        return ConsultationEnded(question.digest)

    def _leave_to_people(self, question: Question, why: str) -> ConsultationEnded:
        self._warn(f"the question of task {question.task} is not answered automatically: {why}")
        return ConsultationEnded(question.digest)

    def _count_automatic_answers(self, task: str) -> int:
        return sum(
            isinstance(request.body, Answer)
            and request.body.task == task
            and request.head.by.split(" ")[0] in (ANSWERED_BY_RULE, ANSWERED_BY_PROGRAM)
            for request in self._requests.read()
        )

    def _start_answering_program(self) -> None:
        """Start the answering program for the next question, unless the program is already running."""
        if self._current_question is not None or not self._waiting or self._answering is None:
            return
        self._current_question = self._waiting.popleft()
        run = self._answering.command
        arguments = ["/bin/sh", "-c", run] if isinstance(run, str) else list(run)
        self._start_program(
            arguments, msgspec.json.encode(self._make_query(self._current_question)), self._answering.timeout_seconds
        )

    def _make_query(self, question: Question) -> ProgramQuery:
        place, _ = self._questions_by_digest[question.digest]
        log = self._batch.root / layout.LOGS / layout.log_name(place.shard, place.item, place.round, place.epoch)
        size = self._batch.files.size(log) or 0
        begin = max(0, size - LOG_TAIL_BYTES)
        tail = self._batch.files.read_range(log, begin, size - begin) if size else b""
        return ProgramQuery(
            task=question.task,
            title=self._work.titles.get(question.task, ""),
            text=self._read_text(question.task),
            question=question.text,
            choices=question.choices,
            log_tail=tail.decode("utf-8", "replace"),
        )


def _decode_reply(output: bytes) -> ProgramReply | None:
    """Decode the output of the answering program. Return None if it is invalid or has no answer."""
    try:
        reply = msgspec.json.decode(output, type=ProgramReply)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return reply if reply.answer or reply.human else None
