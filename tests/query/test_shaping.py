"""Tests of sorting, slicing and grouping of records, as tables and compared with sorted lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.errors import InvalidInput
from codebatch.query.fields import NO_LANGUAGES, JsonRecord, select_fields
from codebatch.query.filters.shaping import AnswerShape, Groups, cell_text, group_records


def _records(values: list[int | str | None]) -> list[JsonRecord]:
    return [{"kind": "file", "path": str(place), "lines": value} for place, value in enumerate(values)]


_VALUES = st.lists(st.integers(0, 3) | st.sampled_from(["a", "b"]) | st.none())


@given(_VALUES, st.booleans(), st.integers(0, 4), st.none() | st.integers(1, 4))
def test_sorted_slice_matches_the_slice_of_all_records(
    values: list[int | str | None], is_down: bool, offset: int, limit: int | None
) -> None:
    """Absent values are last in both directions, and ties keep their order."""
    records = _records(values)
    shape = AnswerShape(sort="-lines" if is_down else "lines", offset=offset, limit=limit)
    present = [record for record in records if record["lines"] is not None]
    ordered = sorted(present, key=lambda record: (isinstance(record["lines"], str), record["lines"]), reverse=is_down)
    ordered += [record for record in records if record["lines"] is None]
    end = None if limit is None else offset + limit
    assert list(shape.arrange_records(iter(records), NO_LANGUAGES)) == ordered[offset:end]


def test_severity_sorts_the_most_severe_first() -> None:
    records: list[JsonRecord] = [{"kind": "diagnostic", "severity": severity} for severity in ("hint", "error", "info")]
    ordered = AnswerShape(sort="severity").arrange_records(records, NO_LANGUAGES)
    assert [record["severity"] for record in ordered] == ["error", "info", "hint"]


def test_unsorted_slice_reads_no_more_than_needed() -> None:
    records = iter(_records([1, 2, 3, 4]))
    assert [record["lines"] for record in AnswerShape(offset=1, limit=1).arrange_records(records, NO_LANGUAGES)] == [2]
    assert len(list(records)) == 2


def test_limits_may_exceed_any_answer() -> None:
    for sort in ("", "lines", "-lines"):
        assert len(list(AnswerShape(limit=1 << 80, sort=sort).arrange_records(_records([1, 2]), NO_LANGUAGES))) == 2
        assert (
            list(AnswerShape(offset=1 << 80, limit=1 << 80, sort=sort).arrange_records(_records([1, 2]), NO_LANGUAGES))
            == []
        )


@pytest.mark.parametrize(
    "shape",
    [
        AnswerShape(limit=0),
        AnswerShape(offset=-1),
        AnswerShape(sort="nope"),
        AnswerShape(sort="--lines"),
        AnswerShape(fields=("lines", "")),
    ],
)
def test_invalid_shape_is_rejected(shape: AnswerShape) -> None:
    with pytest.raises(InvalidInput):
        shape.check(("file",))


def _counted_once(*values: int | str | None) -> list[tuple[JsonRecord, int]]:
    return [(record, 1) for record in _records([*values])]


def test_records_are_grouped_by_the_values_of_a_field() -> None:
    groups = group_records(_counted_once(3, 1, None, 3, 2), "lines", NO_LANGUAGES)
    assert groups == Groups((("3", 2), ("1", 1), ("2", 1)), 1)
    assert groups.total == 5
    assert group_records([(_records([3])[0], 2), *_counted_once(3)], "lines", NO_LANGUAGES) == Groups((("3", 3),), 0)
    assert group_records(_counted_once(1, 2), "lang", {("1", None): "c"}) == Groups((("c", 1),), 1)
    assert group_records(_counted_once(1), "dir", NO_LANGUAGES) == Groups(((".", 1),), 0)


def test_cell_renders_values_as_text() -> None:
    assert [cell_text(value) for value in (None, True, 3, "a", ["a", "b"], [])] == ["", "true", "3", "a", "a, b", ""]


def test_chosen_fields_preserve_a_non_utf8_path() -> None:
    record: JsonRecord = {"kind": "symbol", "path_b64": "/w==", "name": "f"}
    row = select_fields(record, ("name", "path", "dir", "visibility"), NO_LANGUAGES)
    assert row == {"name": "f", "path_b64": "/w==", "dir": ".", "visibility": "public"}
