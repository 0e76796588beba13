"""Tests of the database in memory: it returns stored pairs, also in a forked process, and rejects invalid files."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.index.database import TermDatabase, make_database

PAIRS = {b"n%05d" % number: b"%d" % number * (number % 40) for number in range(2000)}


@settings(max_examples=25)
@given(st.dictionaries(st.binary(min_size=1, max_size=418), st.integers(0, 9000).map(bytes), max_size=40))
def test_database_returns_the_stored_pairs(pairs: dict[bytes, bytes]) -> None:
    pairs = dict(sorted(pairs.items()))
    database = TermDatabase(make_database(pairs))
    assert dict(database.iter_from(b"")) == pairs
    assert all(database.get(key) == value for key, value in pairs.items())
    assert database.get(b"\xff" * 419) is None
    prefix = next(iter(pairs), b"a")[:1]
    assert dict(database.iter_from(prefix)) == {key: each for key, each in pairs.items() if key.startswith(prefix)}
    database.close()


def test_equal_pairs_give_equal_bytes() -> None:
    assert make_database(PAIRS) == make_database(PAIRS)


def test_forked_process_reads_an_open_database() -> None:
    database = TermDatabase(make_database(PAIRS))
    child = os.fork()
    if not child:
        try:
            os._exit(0 if database.get(b"n00007") == b"7" * 7 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert database.get(b"n00008") == b"8" * 8


def test_several_databases_are_open_concurrently() -> None:
    data = make_database(PAIRS)
    assert [TermDatabase(data).get(b"n00003") for _ in range(3)] == [b"3" * 3] * 3


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 8192, b"x" * 20_000])
def test_invalid_database_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError):
        TermDatabase(data)
