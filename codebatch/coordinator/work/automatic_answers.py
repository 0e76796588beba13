"""Automatic answers to questions of commands, by rules first and then by a program (SPEC.md "Questions").

Questions without an automatic answer are left to people. The program cannot have any effect except an answer.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence

import msgspec

from codebatch.model.work.question import QUESTION_TEXT_BYTES_MAX, Question
from codebatch.model.work.request import Answer, Request
from codebatch.model.work.work_batch import AnsweringPolicy
from codebatch.system.regex_timeout import MatchTimeout, cpu_time_limit

RULE = "rule"
PROGRAM = "command"


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Standard input of the answering program."""

    task: str
    title: str
    text: str
    question: str
    choices: tuple[str, ...]
    log_tail: str


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Output of the answering program: an answer, or a request to ask a human."""

    answer: str = ""
    human: bool = False


class AutomaticAnswer(msgspec.Struct, frozen=True):
    """An answer to a question, or None if a person must answer; and the rule or program that decided."""

    question: Question
    text: str | None
    by: str = ""


class AutoAnswerer:
    """Answerer for the questions of one run. At most one answering program runs at a time."""

    def __init__(
        self,
        answering: AnsweringPolicy,
        start: Callable[[Sequence[str], bytes, float], None],
        query_of: Callable[[Question], Query],
    ) -> None:
        """Set up rules. `start` runs a program in the background; its output is later passed to `handle_output`."""
        self._answering = answering
        self._start = start
        self._query_of = query_of
        self._rules = [(re.compile(rule.match), rule) for rule in answering.rules]
        self._waiting: deque[Question] = deque()
        self._asked: Question | None = None

    def consult(self, question: Question, requests: Sequence[Request]) -> AutomaticAnswer | None:
        """Return the decision of the rules, or None if the program must be asked (see `handle_output`)."""
        if question.is_human or answered_by_us(requests)[question.task] >= self._answering.per_task_max:
            return AutomaticAnswer(question, None)
        for number, (pattern, rule) in enumerate(self._rules, start=1):
            try:
                with cpu_time_limit():
                    is_met = pattern.search(question.text) is not None
            except MatchTimeout:
                return AutomaticAnswer(question, None)
            if is_met:
                is_fit = not rule.human and _is_fit(question, rule.answer)
                return AutomaticAnswer(question, rule.answer if is_fit else None, f"{RULE} {number}")
        if not self._answering.command:
            return AutomaticAnswer(question, None)
        self._waiting.append(question)
        self._ask_next()
        return None

    def handle_output(self, output: bytes | None) -> AutomaticAnswer | None:
        """Return the answer to the pending question from the program's output, and start the next query."""
        if self._asked is None:
            return None
        question, self._asked = self._asked, None
        reply = _reply(output)
        text = reply.answer if reply is not None and not reply.human and _is_fit(question, reply.answer) else None
        self._ask_next()
        return AutomaticAnswer(question, text, PROGRAM)

    def _ask_next(self) -> None:
        if self._asked is not None or not self._waiting:
            return
        self._asked = self._waiting.popleft()
        run = self._answering.command
        arguments = ["/bin/sh", "-c", run] if isinstance(run, str) else list(run)
        self._start(arguments, msgspec.json.encode(self._query_of(self._asked)), self._answering.timeout_seconds)


def answered_by_us(requests: Sequence[Request]) -> Counter[str]:
    """Return the number of questions of each command that a rule or a program answered."""
    return Counter(
        request.body.task
        for request in requests
        if isinstance(request.body, Answer) and request.head.by.split(" ")[0] in (RULE, PROGRAM)
    )


def _is_fit(question: Question, text: str) -> bool:
    is_valid = len(text.strip()) > 0 and len(text.encode("utf-8", "replace")) <= QUESTION_TEXT_BYTES_MAX
    return is_valid and (not question.choices or text in question.choices)


def _reply(output: bytes | None) -> Reply | None:
    if output is None:
        return None
    try:
        return msgspec.json.decode(output, type=Reply)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
