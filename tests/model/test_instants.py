"""Parsing of instants in the forms that programs print."""

from __future__ import annotations

import datetime
import zoneinfo

import hypothesis.strategies as st
import pytest
from hypothesis import given

from codebatch.model.text.instants import parse_instant

HERE = zoneinfo.ZoneInfo("Europe/Berlin")
NOW = datetime.datetime(2026, 6, 30, 13, 30, tzinfo=HERE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14:05", "2026-06-30T14:05:00+02:00"),
        ("14:05:30", "2026-06-30T14:05:30+02:00"),
        ("2:05 pm", "2026-06-30T14:05:00+02:00"),
        ("3pm", "2026-06-30T15:00:00+02:00"),
        ("12 a.m.", "2026-07-01T00:00:00+02:00"),
        ("12pm", "2026-07-01T12:00:00+02:00"),
        ("13:00", "2026-06-30T13:00:00+02:00"),
        ("03:00", "2026-07-01T03:00:00+02:00"),
        ("3pm (America/New_York)", "2026-06-30T15:00:00-04:00"),
        ("12:05 UTC", "2026-06-30T12:05:00+00:00"),
        ("2026-07-01T14:05:00Z", "2026-07-01T14:05:00+00:00"),
        ("2026-07-01 14:05:00+05:30", "2026-07-01T14:05:00+05:30"),
        ("2026-07-01T14:05", "2026-07-01T14:05:00+02:00"),
        ("1782824700", "2026-06-30T15:05:00+02:00"),
        ("1782824700000", "2026-06-30T15:05:00+02:00"),
        ("1782824700000000", "2026-06-30T15:05:00+02:00"),
    ],
)
def test_instant_is_parsed(text: str, expected: str) -> None:
    assert parse_instant(f" {text} ", NOW) == datetime.datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "text", ["", "soon", "14", "25:00", "14:60", "0pm", "13pm", "3pm (Nowhere/City)", "2026-13-01", "9" * 400, "12345"]
)
def test_invalid_instant_is_none(text: str) -> None:
    assert parse_instant(text, NOW) is None


@given(st.text(max_size=30) | st.from_regex(r"[0-9:apmT \-()A-Z/]{1,25}"))
def test_parsing_an_instant_never_raises(text: str) -> None:
    instant = parse_instant(text, NOW)
    assert instant is None or instant.tzinfo is not None
