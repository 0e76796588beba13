"""References to variables in env files, as Docker Compose writes them."""

from __future__ import annotations

import pytest

from codebatch.model.work.variables import VariableError, interpolate

SCOPE = {"A": "a", "EMPTY": "", "REFERENCE": "$A ${A} $$"}

VALUES = {
    "": "",
    "text } { ' \\": "text } { ' \\",
    "$A": "a",
    "x$A/y": "xa/y",
    "$A$A": "aa",
    "${A}b": "ab",
    "$EMPTY": "",
    "$REFERENCE": "$A ${A} $$",
    "$$A": "$A",
    "$${A}": "${A}",
    "$$$A": "$a",
    "5$ $1 $-": "5$ $1 $-",
    "end$": "end$",
    "${A:-d}": "a",
    "${NO:-d}": "d",
    "${EMPTY:-d}": "d",
    "${A-d}": "a",
    "${NO-d}": "d",
    "${EMPTY-d}": "",
    "${NO:-}": "",
    "${NO:-$A/${NO-x}}y": "a/xy",
    "${NO:-{d}}": "{d}",
    "${A:-${NO}}": "a",
    "${A:-$NO}": "a",
    "${A:+other}": "other",
    "${NO:+other}": "",
    "${EMPTY:+other}": "",
    "${EMPTY+other}": "other",
    "${NO+${NO}}": "",
    "${A:?message}": "a",
    "${EMPTY?message}": "",
    "${A:?${NO}}": "a",
}


@pytest.mark.parametrize(("text", "expected"), VALUES.items())
def test_references_are_replaced(text: str, expected: str) -> None:
    assert interpolate(text, SCOPE) == expected


ERRORS = {
    "$NO": r"\$\{NO\} is not set",
    "x ${NO}": r"\$\{NO\} is not set",
    "${NO:-${NO}}": r"\$\{NO\} is not set",
    "${A:+$NO}": r"\$\{NO\} is not set",
    "${NO:?give $A}": "NO: give a",
    "${EMPTY:?}": "EMPTY: it is not set",
    "${NO?}": "NO: it is not set",
    "${}": "without a name",
    "${1}": "without a name",
    "${A": "is not followed by",
    "${A!x}": "is not followed by",
    "${A:x}": "is not followed by",
    "${A:-x": r"without \}",
    "${NO:-${A}": r"without \}",
    "${A:-" * 30 + "}" * 30: "nested",
}


@pytest.mark.parametrize(("text", "message"), ERRORS.items())
def test_wrong_reference_is_an_error(text: str, message: str) -> None:
    with pytest.raises(VariableError, match=message):
        interpolate(text, SCOPE)
