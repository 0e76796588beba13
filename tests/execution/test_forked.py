"""A function in several processes: the same answers in the same order, whatever becomes of a process."""

from __future__ import annotations

import os
import signal

import msgspec
import psutil
import pytest

from codebatch.system.forked import map_forked


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    text: str = ""


def twice(number: int) -> Answer:
    return Answer(number=2 * number)


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_answers_come_in_the_order_of_arguments(processes: int) -> None:
    with map_forked(twice, range(100), processes, Answer) as answers:
        assert [answer and answer.number for answer in answers] == [2 * number for number in range(100)]


def test_answers_that_fill_a_pipe_wait_for_their_reader() -> None:
    with map_forked(lambda n: Answer(number=n, text="x" * 100_000), range(40), 2, Answer) as answers:
        assert sum(len(answer.text) for answer in answers if answer) == 40 * 100_000


def test_process_that_dies_costs_the_answer_at_which_it_was() -> None:
    def deadly(number: int) -> Answer:
        if number in (0, 17, 18, 39):
            os.kill(os.getpid(), signal.SIGKILL)
        return twice(number)

    with map_forked(deadly, range(40), 2, Answer) as answers:
        found = [answer and answer.number for answer in answers]
    assert found == [None if n in (0, 17, 18, 39) else 2 * n for n in range(40)]


def test_what_is_raised_is_raised_here() -> None:
    def refuse(number: int) -> Answer:
        if number == 20:
            raise ValueError(f"no {number}")
        return twice(number)

    with pytest.raises(ValueError, match="no 20"), map_forked(refuse, range(40), 2, Answer) as answers:
        list(answers)


def test_nothing_is_left_behind_where_the_reader_stops() -> None:
    before = psutil.Process().children()  # Another test of this process may have left one.
    with map_forked(twice, range(10_000), 2, Answer) as answers:
        next(answers)
        assert len(psutil.Process().children()) >= 2
    assert set(psutil.Process().children()) <= set(before)
