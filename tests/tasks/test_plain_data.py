"""Tests of repeated lines that are not reported as duplicates: data."""

from __future__ import annotations

import pytest

from codebatch_workers.duplicates.plain_data import is_plain_data

CODE = [b"total+=price*count;"] * 10


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"AliceBlue",0xf0f8ff},'] * 10,
        [b'"retweet_count":0,', b'"entities":{', b"},", b'"a\\"b":[-1.5e3,true,null],'] * 3,
        [b"width:80,", b"'30%':[3600,3600],", b"],"] * 4,
        [b"'a'=>1,", b'"b"=>NULL,'] * 5,
        [b'"a",'] * 9 + [b"call(x);"],
        [b"com={", b'north=";",', b'_1={"1",south="\'",east="?",},', b"gt=0,", b"required=true,", b"},"] * 2,
    ],
)
def test_values_are_data(lines: list[bytes]) -> None:
    assert is_plain_data(lines)


@pytest.mark.parametrize(
    "lines",
    [
        CODE,
        [b'"a",'] * 8 + [b"call(x);"] * 2,
        [b"publicfull:&'staticstr,"] * 10,
        [b"EspialEnabledbool"] * 10,
        [b"return1;", b"x=1;"] * 5,
        [b"std::move(1);"] * 10,
        [b"importer(1)", b"user=1", b"package_a=2"] * 4,
        [b"f(", b"a,", b"b,", b")"] * 3,
        [b"a=1", b"b='c'"] * 5,
        [b"self.a=1,", b"f(a=b,", b"c=d("] * 4,
    ],
)
def test_code_with_names_is_not_data(lines: list[bytes]) -> None:
    assert not is_plain_data(lines)


def test_long_line_is_classified_in_time() -> None:
    assert not is_plain_data([b"1" * 100_000 + b"x=1"] * 10)
