"""Tests of `--where`: which records a condition matches, and that invalid conditions are rejected quickly."""

from __future__ import annotations

import contextlib
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.errors import InvalidInput
from codebatch.model.record import RECORD_KINDS
from codebatch.query.fields import JsonRecord, field_value, record_fields
from codebatch.query.filters.comparability import possible_field_values
from codebatch.query.filters.expression import EXPRESSION_CHARACTERS_MAX, EXPRESSION_DEPTH_MAX, compile_expression
from codebatch.query.filters.filters import RecordFilter
from tests.support.resources import cpu_time_below

METRIC: JsonRecord = {
    "kind": "metric", "path": "src/a.py", "metric": "complexity", "value": 12, "symbol": "A.f", "line": 3,
}  # fmt: skip
SYMBOL: JsonRecord = {"kind": "symbol", "path": "b.py", "name": "f", "line": 9, "decorators": ["cache"]}
FILE: JsonRecord = {"kind": "file", "path_b64": "ZC//LnB5", "class": "text", "lang": "python"}
DUPLICATE: JsonRecord = {"kind": "duplicate", "path": "a", "line": 1, "other_path_b64": "/w=="}


def holds(text: str, record: JsonRecord) -> bool:
    """Return whether a condition matches a record. The file of the record is Rust."""
    fields = record_fields([str(record["kind"])])
    languages = {(record.get("path"), record.get("path_b64")): "rust"}
    return compile_expression(text, fields).holds(lambda field: field_value(record, field, languages))


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("value > 10 and value <= 12", METRIC),
        ("10 < value < 13 != line", METRIC),
        ("not value < 12", METRIC),
        ("value == 1 or symbol == 'A.f'", METRIC),
        ("metric in ('lines', 'complexity') and metric not in ['lines']", METRIC),
        ("'plex' in metric and 'x' not in symbol", METRIC),
        ("glob(path, 'src/**') and not glob(path, '*.c')", METRIC),
        ("glob(path, 'SR')", METRIC),
        (" value > -1.5 ", METRIC),
        ("dir == 'src' and lang == 'rust' and kind == 'metric'", METRIC),
        ("'cache' in decorators", SYMBOL),
        # the record does not contain it, because it is the default
        ("visibility == 'public' and parameters == []", SYMBOL),
        ("lang == 'python' and class_ == 'text'", FILE),
        ("path == 'd/\\\\xff.py' and dir == 'd'", FILE),
        ("other_path == '\\\\xff'", DUPLICATE),
        ("encoding == None and encoding != 'utf-8'", FILE),
    ],
)
def test_condition_matches_a_record(text: str, record: JsonRecord) -> None:
    assert holds(text, record)
    assert not holds(f"not ({text})", record)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "in", "not in"])
def test_comparison_with_an_absent_or_unordered_value_is_false(operator: str) -> None:
    for pair in (f"lines {operator} 3", f"3 {operator} lines", f"lines {operator} lines", f"class_ {operator} 3"):
        assert not holds(pair, FILE), pair
    assert not holds(f"lines {operator} (None, 3)", FILE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "value >",
        "value = 3",
        "value.__class__",
        "__class__",
        "().__class__ == ()",
        "9**9**9",
        "value + 1 > 2",
        "open('x')",
        "glob(path)",
        "glob('a', path)",
        "glob(path, '[')",
        "glob(path, pattern='*')",
        "[x for x in path]",
        "(lambda: 1)()",
        "path[0] == 'a'",
        "f'{path}' == ''",
        "value is 3",
        "value in ((1,),)",
        "value in (line, 3)",
        "b'a' == path",
        "1j == value",
        "... == value",
        "(value := 3)",
        "value if line else 3",
        "~value",
        "-path == 3",
        "*value",
        "await value",
        "yield",
        "a\0b",
        "\ud800 == 1",
        "valeu > 3",
        "9" * 9_999,
        "(" * 5_000,
        "(" * 90 + "1" + ")" * 90 + ".x",
        "not " * 2_000 + "value",
        "-" * 9_000 + "1",
        "[" * 3_000 + "]" * 3_000 + " == value",
        "value" + ".x" * 4_900,
        "value" + "()" * 4_900,
        "1 " * (EXPRESSION_CHARACTERS_MAX // 2 + 1),
        "value" + " " * EXPRESSION_CHARACTERS_MAX,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_invalid_condition_is_rejected_quickly(text: str) -> None:
    with cpu_time_below(2.0), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput):
            compile_expression(text, record_fields(["metric"]))


def test_condition_may_reach_its_limits_of_depth_and_length() -> None:
    deep = "not " * EXPRESSION_DEPTH_MAX + "value"
    assert holds(deep, METRIC)
    with pytest.raises(InvalidInput, match="more than 50 levels"):
        holds("not " + deep, METRIC)
    many = " or ".join(["value == 0"] * 700 + ["value == 12"])
    assert len(many) < EXPRESSION_CHARACTERS_MAX
    assert holds(many, METRIC)


def test_unknown_field_has_a_suggestion() -> None:
    with pytest.raises(InvalidInput, match="unknown field 'valeu'") as refused:
        RecordFilter(kinds=("metric",), where="valeu > 3").check()
    assert refused.value.hint == "did you mean 'value'?"
    with pytest.raises(InvalidInput, match="unknown field 'severity'"):
        RecordFilter(kinds=("metric",), where="severity == 'error'").check()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RecordFilter(where=r"path == '\d' and line == 1").check()


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("name > 3", "no record can match", "name is text: quote the number"),
        ("3 != name", "every record matches", "name is text"),
        ("line == '3'", "no record can match", "line is a number: remove the quotes"),
        (
            "line > None",
            "no record can match",
            "to find records without this field: line == None",
        ),
        ("severity == 'eror'", "no record can match", "did you mean 'error'?"),
        ("severity not in ('eror', 'x')", "every record matches", "did you mean 'error'?"),
        ("kind == 'symbl'", "no record can match", "did you mean 'symbol'?"),
        ("3 in parameters", "no record can match", "parameters is a list of texts"),
        ("line in 'abc'", "no record can match", "line is a number"),
        ("name in ()", "no record can match", "name is text"),
        ("line > 3 and (1 < line < 'x')", "no record can match", "line is a number"),
        ("1 == 'a'", "no record can match", "one side must be a field"),
    ],
)
def test_undecidable_comparison_is_rejected(text: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        RecordFilter(where=text).check()
    assert str(refused.value.hint).startswith(hint)


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_decidable_comparison_is_accepted(kind: str) -> None:
    examples = {"text": "'x'", "number": "1", "row": "['x']"}
    for field, values in possible_field_values([kind]).items():
        name = "class_" if field == "class" else field
        for sort in values.sorts:
            example = repr(min(values.words)) if values.words else examples[sort]
            for text in (f"{name} == {example}", f"{name} <= {example}", f"{name} != None", f"{name} == {name}"):
                RecordFilter(kinds=(kind,), where=text).check()
            if sort != "row":
                RecordFilter(kinds=(kind,), where=f"{name} in ({example}, None)").check()


def test_filter_requires_only_data_that_its_condition_needs() -> None:
    assert RecordFilter(where="lang == 'c'").needs_languages()
    assert not RecordFilter(where="lang == 'c'", kinds=("file",)).needs_languages()
    assert not RecordFilter(where="path == 'lang'").needs_languages()
    assert not RecordFilter(where="line > 1").covers_failures
    assert RecordFilter(where="lang == 'c'").matches(SYMBOL, {("b.py", None): "c"})
    assert not RecordFilter(where="lang == 'c'").matches(SYMBOL)


_TERMS = st.sampled_from(["line", "value", "symbol", "lines", "3", "'a'", "None", "True", "(1, 12)", "''"])
_COMPARED = st.builds(" ".join, st.tuples(_TERMS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), _TERMS))
_CONDITIONS = st.recursive(
    _COMPARED | _TERMS,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("(not {})".format, inner)
    ),
    max_leaves=8,
)


@given(_CONDITIONS)
def test_condition_matches_python_semantics(text: str) -> None:
    """If Python cannot order two values and raises an exception, the comparison is false."""
    values = {"line": 3, "value": 12, "symbol": "A.f", "lines": None}
    is_match = compile_expression(text, values).holds(lambda field: values[field])
    try:
        assert is_match == bool(eval(text, {"__builtins__": {}}, dict(values)))
    except TypeError:
        assert is_match in (True, False)


@given(st.text(max_size=40) | st.text(alphabet="valuepath()[]'\"\\ .,=<>!not in*-+9", max_size=60))
def test_arbitrary_condition_is_evaluated_or_rejected(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        holds(text, METRIC)
