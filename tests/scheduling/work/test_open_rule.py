"""The state of a single command: the open rule compared with its reference, and the effect of each request."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import replace

from codebatch.model.digest import Digest
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import COORDINATOR_CHOICES, coordinator_question_digest
from codebatch.model.work.request import Answer, Cancel, Open, Pause, Request, RequestBody, RequestHead, Skip, Unpause
from codebatch.model.work.work_batch import DEFAULT_POLICY, WAITS_MAX, TaskPolicy, Work
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.backoff import JITTER_SHARE_MAX, backoff_seconds
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded
from codebatch.scheduling.work.open_rule import CommandStateRule
from codebatch.scheduling.work.request_log import RequestLog
from tests.scheduling.work import open_reference
from tests.scheduling.work.open_reference import own_of

A = CommandId("a")
ASKED = Digest("a" * 64)
_ENDS = st.sampled_from([
    ("result", None), ("failed", "exit"), ("failed", "stall"), ("failed", "start"), ("cancelled", None),
    ("failed", "limited"), ("failed", "limited"), ("failed", "final"),
    ("cancelled", "unbegun"), ("blocked", None), ("blocked", "interrupted"),
])  # fmt: skip
_ROUNDS = st.integers(0, 6)
_QUESTIONS = st.one_of(
    st.just(ASKED),
    st.builds(coordinator_question_digest, st.sampled_from(["interrupted", "stall", "exhausted"]), st.just(A), _ROUNDS),
)
_TEXTS = st.sampled_from([*COORDINATOR_CHOICES, "perhaps"])
_BODIES: st.SearchStrategy[RequestBody] = st.one_of(
    st.builds(Open, rounds=st.dictionaries(st.just(A), _ROUNDS)),
    st.builds(Answer, task=st.just(A), round=_ROUNDS, question=_QUESTIONS, text=_TEXTS),
    st.builds(Skip, task=st.just(A), round=_ROUNDS, marked_done=st.booleans()),
)
_POLICIES = st.builds(
    TaskPolicy,
    retries=st.integers(0, 3),
    retry_reasons=st.sampled_from([("exit",), ("exit", "stall")]),
    on_exhausted=st.sampled_from(["fail", "ask"]),
    on_stall=st.sampled_from(["fail", "ask"]),
)


def _requests(bodies: list[RequestBody]) -> list[Request]:
    return [Request(RequestHead(n=n, at_ns=0, by="test"), body) for n, body in enumerate(bodies, start=1)]


def _ended(ends: Sequence[tuple[str, str | None]]) -> list[AttemptOutcome]:
    return [
        AttemptOutcome(
            item=0,
            round=round_,
            type=type_,  # type: ignore[arg-type]
            reason="exit" if reason == "final" else reason,  # type: ignore[arg-type]
            is_final=reason == "final",
            until_ns=1 if reason == "limited" else 0,
            epoch=round_,
            question=ASKED if (type_, reason) == ("blocked", None) else Digest(""),
        )
        for round_, (type_, reason) in enumerate(ends, start=1)
    ]


def _conductor(policy: TaskPolicy, ends: Sequence[tuple[str, str | None]], bodies: list[RequestBody]) -> Conductor:
    work = Work(source="test", root=b"/", order=(A,), policies={A: policy})
    return Conductor(
        make_command_plan(work, [A]), concluded=OutcomesConcluded(_ended(ends)), epochs={}, requests=_requests(bodies)
    )


@given(_POLICIES, st.lists(_ENDS, max_size=5), st.lists(_BODIES, max_size=6))
def test_open_rule_matches_its_reference(
    policy: TaskPolicy, ends: Sequence[tuple[str, str | None]], bodies: list[RequestBody]
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(open_reference, "WAITS_MAX", 2)
        _check_open_rule(replace(policy, waits_max=2), ends, bodies)


def _check_open_rule(policy: TaskPolicy, ends: Sequence[tuple[str, str | None]], bodies: list[RequestBody]) -> None:
    work = Work(source="test", root=b"/", order=(A,), policies={A: policy})
    histories, requests = AttemptHistories({}), RequestLog({A: 0})
    histories.add(OutcomesConcluded(_ended(ends)))
    for request in _requests(bodies):
        requests.add(request)
    rounds = {outcome.round: outcome for outcome in _ended(ends)}
    assert CommandStateRule(make_command_plan(work, [A]), histories, requests).own_state(0) == own_of(
        A, policy, rounds, _requests(bodies)
    )


@given(_POLICIES, st.lists(_ENDS, max_size=4), st.permutations(["a", "b"]))
def test_first_of_two_answers_holds_for_every_reader(
    policy: TaskPolicy, ends: Sequence[tuple[str, str | None]], order: list[str]
) -> None:
    """If two users answer a question at once, every reader uses the answer with the lower number."""
    ended = [*ends, ("blocked", None)]
    answers: list[RequestBody] = [Answer(task=A, round=len(ended), question=ASKED, text=text) for text in order]
    early, late = _conductor(policy, ended, answers[:1]), _conductor(policy, ended, answers)
    assert early.state(0) is late.state(0) is CommandState.READY


@given(st.floats(0, 1e9), st.floats(1, 1000), st.floats(0, 1e9), st.integers(1, 101), st.integers(1, 10**9))
def test_backoff_is_bounded_and_deterministic(
    first: float, factor: float, most: float, tried: int, round_: int
) -> None:
    policy = TaskPolicy(backoff_seconds=first, backoff_factor=factor, backoff_seconds_max=most)
    seconds = backoff_seconds(policy, tried, batch="b", command=A, round_=round_)
    expected = min(first, most)
    for _ in range(tried - 1):
        expected = min(expected * factor, most)
    assert expected <= seconds <= expected * (1 + JITTER_SHARE_MAX)
    assert seconds == backoff_seconds(policy, tried, batch="b", command=A, round_=round_)


def test_backoffs_of_different_commands_differ() -> None:
    waits = {backoff_seconds(TaskPolicy(), 1, batch="b", command=CommandId(f"c{n}"), round_=2) for n in range(100)}
    assert len(waits) == 100
    assert max(waits) - min(waits) > JITTER_SHARE_MAX / 2


def _state(
    ends: Sequence[tuple[str, str | None]], *bodies: RequestBody, policy: TaskPolicy = DEFAULT_POLICY
) -> CommandState:
    return _conductor(policy, ends, list(bodies)).state(0)


FAILED: tuple[str, str | None] = ("failed", "exit")


def test_open_request_applies_only_to_its_round() -> None:
    assert _state([FAILED], Open(rounds={A: 1})) is CommandState.READY
    assert _state([FAILED, FAILED], Open(rounds={A: 1})) is CommandState.FAILED
    assert _state([FAILED], Open(rounds={A: 2})) is CommandState.FAILED
    assert _state([FAILED, FAILED], Open(rounds={A: 2}), Open(rounds={A: 1})) is CommandState.READY


def test_first_valid_answer_to_a_built_in_question_holds() -> None:
    ended = [("blocked", "interrupted")]
    interrupted = coordinator_question_digest("interrupted", A, 1)

    def answer(text: str, question: Digest = interrupted, round_: int = 1) -> Answer:
        return Answer(task=A, round=round_, question=question, text=text)

    assert _state(ended) is CommandState.BLOCKED
    assert _state(ended, answer("perhaps"), answer("done")) is CommandState.DONE
    assert _state(ended, answer("failed"), answer("done")) is CommandState.FAILED
    assert _state(ended, answer("again")) is CommandState.READY
    assert _state(ended, answer("done", coordinator_question_digest("interrupted", A, 2))) is CommandState.BLOCKED
    assert _state(ended, answer("done", round_=2)) is CommandState.BLOCKED
    assert _state(ended, answer("failed"), Open(rounds={A: 1})) is CommandState.READY
    assert _state(ended, Open(rounds={A: 1}), answer("failed")) is CommandState.READY


def test_cancel_and_pause_hold_until_they_are_lifted() -> None:
    assert _state([], Cancel()) is CommandState.CANCELLED
    assert _state([], Cancel(), Open()) is CommandState.READY
    assert _state([], Cancel(), Open(), Cancel()) is CommandState.CANCELLED
    assert _state([], Cancel(), Open(lifts="named")) is CommandState.CANCELLED
    assert _state([], Cancel(), Open(rounds={A: 0}, lifts="named")) is CommandState.READY
    assert _conductor(TaskPolicy(), [], [Pause()]).is_paused
    assert not _conductor(TaskPolicy(), [], [Pause(), Unpause()]).is_paused
    ended, answer = [("blocked", None)], Answer(task=A, round=1, question=ASKED, text="so")
    assert _state(ended, Cancel(), answer) is CommandState.READY
    assert _state(ended, answer, Cancel()) is CommandState.CANCELLED
    assert _state([*ended, FAILED], Cancel(), answer, policy=TaskPolicy(retries=1)) is CommandState.WAITING


def test_answer_lifts_an_earlier_cancel_despite_an_answered_later_round() -> None:
    ended: list[tuple[str, str | None]] = [("blocked", None), ("blocked", None)]
    second, first = (Answer(task=A, round=round_, question=ASKED, text="so") for round_ in (2, 1))
    assert _state(ended, Open(rounds={A: 1}), second, Cancel(), first) is CommandState.READY


def test_a_skip_holds_for_the_attempts_that_its_author_saw() -> None:
    assert _state([], Skip(task=A, round=0)) is CommandState.SKIPPED
    assert _state([FAILED], Skip(task=A, round=0)) is CommandState.FAILED
    assert _state([FAILED], Skip(task=A, round=1, marked_done=True)) is CommandState.DONE
    assert _state([("result", None)], Skip(task=A, round=1)) is CommandState.DONE
    assert _state([FAILED], Skip(task=A, round=1), Open(rounds={A: 1})) is CommandState.READY
    assert _state([("cancelled", None)], Skip(task=A, round=1)) is CommandState.SKIPPED


def test_open_request_resets_the_count_of_tries() -> None:
    policy = TaskPolicy(retries=1)
    assert _state([FAILED], policy=policy) is CommandState.WAITING
    assert _state([FAILED, FAILED], policy=policy) is CommandState.FAILED
    assert _state([FAILED, FAILED, FAILED], Open(rounds={A: 2}), policy=policy) is CommandState.WAITING
    assert _state([FAILED, ("cancelled", "unbegun"), FAILED], policy=policy) is CommandState.FAILED
    asks = TaskPolicy(retries=1, on_exhausted="ask")
    assert _state([FAILED, FAILED], policy=asks) is CommandState.BLOCKED


LIMITED: tuple[str, str | None] = ("failed", "limited")


def test_rate_limit_uses_no_try_and_needs_no_backoff() -> None:
    policy = TaskPolicy(retries=1, backoff_seconds=0)
    assert _state([LIMITED], policy=policy) is CommandState.WAITING
    assert _state([LIMITED] * 5, policy=DEFAULT_POLICY) is CommandState.WAITING
    assert _state([LIMITED, FAILED], policy=TaskPolicy(retries=1)) is CommandState.WAITING
    assert _state([LIMITED, FAILED], policy=DEFAULT_POLICY) is CommandState.FAILED
    assert _state([FAILED, LIMITED, FAILED], policy=TaskPolicy(retries=1)) is CommandState.FAILED


def test_too_many_rate_limits_are_a_failure() -> None:
    assert _state([LIMITED] * WAITS_MAX) is CommandState.WAITING
    assert _state([LIMITED] * (WAITS_MAX + 1)) is CommandState.FAILED
    assert _state([LIMITED] * (WAITS_MAX + 1), policy=TaskPolicy(on_exhausted="ask")) is CommandState.BLOCKED
    opened = Open(rounds={A: WAITS_MAX + 1})
    assert _state([LIMITED] * (WAITS_MAX + 1), opened) is CommandState.READY
    assert _state([LIMITED] * (WAITS_MAX + 2), opened) is CommandState.WAITING


def test_final_failure_is_not_retried() -> None:
    assert _state([("failed", "final")], policy=TaskPolicy(retries=3)) is CommandState.FAILED
    assert _state([FAILED], policy=TaskPolicy(retries=3)) is CommandState.WAITING
