"""Tests of the consequences of a failure: a retry, none, or a wait until a rate limit ends."""

from __future__ import annotations

import datetime

import pytest

from codebatch.model.record import CommandReason
from codebatch.model.work.command import Command, CommandId, RetryRule
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.failures import (
    RATE_LIMIT_SECONDS,
    RATE_LIMIT_SECONDS_MAX,
    FailureVerdict,
    judge_failure,
)

IS_PAST = "is not a valid time in the future: the rate limit is taken to last 60 s"
NOW_NS = 1_782_824_700 * 1_000_000_000


def _judge(
    output: bytes, reason: CommandReason = "exit", status: int = 1, *, retry: RetryRule | None = None, wait: str = ""
) -> FailureVerdict:
    command = Command(id=CommandId("a"), run="x", retry_if=retry, wait_if=wait)
    return judge_failure(
        command, AttemptResult(type="failed", reason=reason, exit_status=status), output, lambda: NOW_NS
    )


@pytest.mark.parametrize(
    ("output", "status", "is_final"),
    [
        (b"", 75, False),
        (b"", 137, False),
        (b"", -9, False),
        (b"", 1, True),
        (b"x\nconnection reset by peer\n", 1, False),
        (b"connection refused", 1, True),
    ],
)
def test_failure_is_retried_if_its_status_or_output_matches(output: bytes, status: int, is_final: bool) -> None:
    rule = RetryRule(exits=(75, 137), pattern="^connection reset")
    assert _judge(output, status=status, retry=rule).result.is_final == is_final


def test_exceeded_limit_is_not_subject_to_the_retry_rule() -> None:
    rule = RetryRule(exits=(75,))
    assert not _judge(b"", "timeout", -15, retry=rule).result.is_final
    assert _judge(b"", "check", 1, retry=rule).result.is_final


def _wait(output: str, pattern: str) -> float:
    result = _judge(output.encode(), wait=pattern).result
    assert result.reason == "limited"
    return (result.until_ns - NOW_NS) / 1e9


def test_rate_limit_duration_is_read_from_the_output() -> None:
    assert _wait("Retry-After: 12.5", r"Retry-After: (?P<seconds>[\d.]+)") == 12.5
    assert _wait("limit reached|1782825000", r"limit reached\|(?P<at>\d+)") == 300
    until = datetime.datetime.fromtimestamp(NOW_NS / 1e9 + 3600).astimezone()
    assert _wait(f"resets at {until:%H:%M:%S}.", r"resets at (?P<at>[\d:]+)") == 3600


@pytest.mark.parametrize(
    ("output", "seconds"),
    [
        ("wait", RATE_LIMIT_SECONDS),
        ("wait soon", RATE_LIMIT_SECONDS),
        ("wait 1782824699", RATE_LIMIT_SECONDS),
        ("wait 1999999999", RATE_LIMIT_SECONDS_MAX),
    ],
)
def test_rate_limit_duration_is_bounded(output: str, seconds: float) -> None:
    assert _wait(output, r"wait ?(?P<at>.*)") == seconds


def test_last_rate_limit_in_the_output_counts() -> None:
    assert _wait("retry in 5, retry in 300", r"retry in (?P<seconds>\d+)") == 300


@pytest.mark.parametrize(
    ("output", "pattern", "problem"),
    [
        ("wait", "wait(?P<at> .*)?", ""),
        ("in 5", r"in (?P<seconds>\S+)", ""),
        ("at 1782824701", "at (?P<at>.*)", ""),
        ("at 1783429500", "at (?P<at>.*)", ""),
        ("Nov 28, 3pm", "(?P<at>.+)", f"'Nov 28, 3pm' {IS_PAST}"),
        ("1782824700", "(?P<at>.+)", f"'1782824700' {IS_PAST}"),
        ("much", "(?P<seconds>.+)", "'much' is not a number of seconds above 0: the rate limit is taken to last 60 s"),
        ("0", "(?P<seconds>.+)", "'0' is not a number of seconds above 0: the rate limit is taken to last 60 s"),
        ("1783429501", "(?P<at>.+)", "'1783429501' is more than 7 days away: the rate limit is taken to last 7 days"),
    ],
)  # fmt: skip
def test_default_duration_of_a_rate_limit_is_a_problem(output: str, pattern: str, problem: str) -> None:
    verdict = _judge(output.encode(), wait=pattern)
    assert verdict.problem == problem
    assert verdict.note.startswith("rate limited until 2026-")


@pytest.mark.parametrize("number", ["nan", "inf", "-5", "0", "much", "1e300"])
def test_invalid_number_uses_the_default_wait(number: str) -> None:
    assert _wait(f"in {number}", r"in (?P<seconds>\S+)") == (
        RATE_LIMIT_SECONDS_MAX if number == "1e300" else RATE_LIMIT_SECONDS
    )


def test_rate_limit_takes_precedence_over_the_retry_rule() -> None:
    verdict = _judge(b"rate limit", retry=RetryRule(exits=(75,)), wait="rate limit")
    assert (verdict.result.reason, verdict.result.is_final) == ("limited", False)
    assert verdict.note.startswith("rate limited until 2026-")
    assert _judge(b"fine", retry=RetryRule(exits=(75,)), wait="rate limit").result.is_final


def test_slow_pattern_is_ignored() -> None:
    slow = r"(a+)+b"
    verdict = _judge(b"a" * 60, wait=slow)
    ignored = "the pattern of {} took longer than 1 s and was ignored"
    assert (verdict.result.reason, verdict.problem) == ("exit", ignored.format("wait_if"))
    verdict = _judge(b"a" * 60, retry=RetryRule(pattern=slow))
    assert (verdict.result.is_final, verdict.problem) == (True, ignored.format("retry_if"))
    both = _judge(b"a" * 60, retry=RetryRule(pattern=slow), wait=slow).problem
    assert both == f"{ignored.format('wait_if')}; {ignored.format('retry_if')}"
