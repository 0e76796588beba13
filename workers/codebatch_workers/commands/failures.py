"""Rules for failed attempts. By exit status and output, they choose: retry, fail for good, or wait for a rate limit."""

from __future__ import annotations

import collections
import contextlib
import datetime
import math
import re
from collections.abc import Callable, Iterable

import msgspec

from codebatch.model.text.instants import parse_instant
from codebatch.model.text.regex_timeout import MATCH_SECONDS_MAX, MatchTimeout, cpu_time_limit
from codebatch.model.work.command import Command, RetryRule
from codebatch_workers.commands.attempt import AttemptResult

RATE_LIMIT_SECONDS = 60.0
"""The waiting time for a rate limit if the output does not contain an end of the limit in the future."""
RATE_LIMIT_SECONDS_MAX = 7 * 24 * 3600.0

_MATCH_CHARACTERS_SHOWN = 100
"""The maximum number of characters that the log shows of an invalid time."""

_RETRYABLE_REASONS = ("exit", "signal", "check")


class FailureVerdict(msgspec.Struct, frozen=True):
    """The result of a failed attempt, changed by the rules of its command.

    `note` is a line for the log. `problem` says which rule or which part of the output was ignored. Both can be empty.
    """

    result: AttemptResult
    note: str = ""
    problem: str = ""


def judge_failure(command: Command, result: AttemptResult, output: bytes, wall_ns: Callable[[], int]) -> FailureVerdict:
    """Apply `wait_if` and `retry_if` of a command to a failed result. `output` is the last part of the output.

    A successful result can only have reached a rate limit. If matching a pattern takes too long, it is ignored.
    """
    text, problem = output.decode("utf-8", "replace"), ""
    if command.wait_if:
        try:
            with cpu_time_limit():
                match = _last_match(re.finditer(command.wait_if, text, re.MULTILINE))
            if match is not None:
                return _wait_for_rate_limit(result, match, wall_ns())
        except MatchTimeout:
            problem = _slow_pattern_problem("wait_if")
    if result.type == "result" or command.retry_if is None or result.reason not in _RETRYABLE_REASONS:
        return FailureVerdict(result, problem=problem)
    try:
        is_final = not _matches_rule(command.retry_if, result, text)
    except MatchTimeout:
        is_final, problem = True, "; ".join(filter(None, (problem, _slow_pattern_problem("retry_if"))))
    return FailureVerdict(msgspec.structs.replace(result, is_final=is_final), problem=problem)


def _last_match(matches: Iterable[re.Match[str]]) -> re.Match[str] | None:
    """Return the last match, or None.

    A program may have waited for one rate limit by itself, and then failed at another one. The last match is the
    latter.
    """
    return next(iter(collections.deque(matches, maxlen=1)), None)


def _slow_pattern_problem(key: str) -> str:
    return f"the pattern of {key} took longer than {MATCH_SECONDS_MAX:g} s and was ignored"


def _matches_rule(rule: RetryRule, result: AttemptResult, text: str) -> bool:
    """Return whether the exit status or the output of a result matches a rule for retries. Raises MatchTimeout."""
    status = result.exit_status
    if status is not None and (status if status >= 0 else 128 - status) in rule.exits:
        return True
    if not rule.pattern:
        return False
    with cpu_time_limit():
        return re.search(rule.pattern, text, re.MULTILINE) is not None


def _wait_for_rate_limit(result: AttemptResult, match: re.Match[str], now_ns: int) -> FailureVerdict:
    now = datetime.datetime.fromtimestamp(now_ns / 1e9).astimezone()
    seconds, problem = _seconds_to_wait(match, now)
    until = now + datetime.timedelta(seconds=seconds)
    note = f"rate limited until {until.isoformat(sep=' ', timespec='seconds')}, or longer after several limits in a row"
    limited = msgspec.structs.replace(
        result, type="failed", reason="limited", until_ns=round(until.timestamp() * 1e9), wait_seconds=round(seconds, 3)
    )
    return FailureVerdict(limited, note, problem)


def _seconds_to_wait(match: re.Match[str], now: datetime.datetime) -> tuple[float, str]:
    """Return the seconds to wait, and the problem of the time in the output, or "".

    The groups `seconds` or `at` of `match` contain the time. Without a valid time in the future, the waiting time is
    RATE_LIMIT_SECONDS.
    """
    groups = match.groupdict()
    text = groups.get("seconds") or groups.get("at")
    if not text:
        return RATE_LIMIT_SECONDS, ""
    seconds = math.nan
    if groups.get("seconds"):
        kind = "a number of seconds above 0"
        with contextlib.suppress(ValueError):
            seconds = float(text)
    else:
        kind = "a valid time in the future"
        if (at := parse_instant(text, now)) is not None:
            seconds = (at - now).total_seconds()
    shown = repr(text[:_MATCH_CHARACTERS_SHOWN])
    if not 0 < seconds < math.inf:
        return RATE_LIMIT_SECONDS, f"{shown} is not {kind}: the rate limit is taken to last {RATE_LIMIT_SECONDS:g} s"
    if seconds > RATE_LIMIT_SECONDS_MAX:
        return RATE_LIMIT_SECONDS_MAX, f"{shown} is more than 7 days away: the rate limit is taken to last 7 days"
    return seconds, ""
