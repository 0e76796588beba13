"""Calls in other threads."""

from __future__ import annotations

import threading

import pytest

from codebatch.system.threads import Threads


def test_each_call_gives_what_it_returns_or_raises() -> None:
    with Threads(3) as threads:
        calls = [threads.submit(divmod, 7, divisor) for divisor in (2, 0, 3)]
        assert calls[0].result() == (3, 1)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                calls[1].result()
        assert calls[2].result() == calls[2].result() == (2, 1)


def test_one_thread_makes_calls_in_their_order_and_all_before_it_ends() -> None:
    made: list[int] = []
    with Threads(1) as threads:
        for number in range(100):
            threads.submit(made.append, number)
    assert made == list(range(100))


def test_no_more_threads_are_started_than_are_wanted_or_needed() -> None:
    before = threading.active_count()
    gate = threading.Event()
    threads = Threads(4)
    for calls in range(1, 8):
        threads.submit(gate.wait)
        assert threading.active_count() == before + min(calls, 4)
    gate.set()
    threads.end()
    assert threading.active_count() == before


def test_what_is_dropped_is_not_made() -> None:
    made: list[int] = []
    begun, gate = threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return gate.wait()

    threads = Threads(1)
    running = threads.submit(wait)
    begun.wait()
    threads.submit(made.append, 1)
    threads.drop()
    gate.set()
    threads.end()
    assert running.result()
    assert made == []


def test_after_its_end_it_can_be_used_again() -> None:
    threads = Threads(1)
    assert threads.submit(int, "1").result() == 1
    threads.end()
    assert threads.submit(int, "2").result() == 2
    threads.end()


def test_where_no_thread_is_to_be_had_who_submits_a_call_makes_it() -> None:
    threads = Threads(2)
    before = threading.stack_size(1 << 47)  # More than there are addresses.
    try:
        calls = [threads.submit(divmod, 7, divisor) for divisor in (2, 0)]
    finally:
        threading.stack_size(before)
    assert calls[0].result() == (3, 1)
    with pytest.raises(ZeroDivisionError):
        calls[1].result()
    threads.end()
