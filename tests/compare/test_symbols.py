"""Tests of symbols in two trees: a moved definition is not new."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from codebatch.compare.symbols import compare_symbols
from codebatch.model.record import Symbol
from tests.compare.trees import TextTrees

_F = "def f(a):\n    return a\n"
_G = "def g(b):\n    return b + 1\n"

Tree = dict[str, str]
Row = tuple[str, str | None, str | None]


def _symbols_of_tree(tree: Tree) -> dict[bytes, list[Symbol]]:
    return {path.encode(): [*_functions_in(path, text)] for path, text in tree.items()}


def _functions_in(path: str, text: str) -> Iterator[Symbol]:
    """Yield the functions of a text, each of two lines."""
    for match in re.finditer(r"^( *)def (\w+)\((.*)\)", text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        yield Symbol(
            path=path, name=match[2], symbol_type="function", qualified=match[2], scope="", line=line,
            column=1, end_line=line + 1, end_column=9, parameters=tuple(match[3].split(", ")),
        )  # fmt: skip


def _rows(old: Tree, new: Tree) -> list[Row]:
    trees = TextTrees(old, new)

    def text_of(side, symbol):  # type: ignore[no-untyped-def]
        return trees.text(side, symbol.path_bytes, symbol.line, symbol.end_line)

    rows = compare_symbols(_symbols_of_tree(old), _symbols_of_tree(new), trees, text_of)
    return sorted((row.state, _place(row.old), _place(row.new)) for row in rows)  # type: ignore[arg-type]


def _place(symbol: Symbol | None) -> str | None:
    return None if symbol is None else f"{symbol.path}:{symbol.line} {symbol.name}"


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ({"a": _F}, {"a": f"import os\n{_F}"}, [("unchanged", "a:1 f", "a:2 f")]),
        ({"a": _F}, {"a": _F.replace("(a)", "(a, b)")}, [("changed", "a:1 f", "a:1 f")]),
        ({"a": _F}, {"b": _F}, [("moved", "a:1 f", "b:1 f")]),
        ({"a": _F + _G}, {"a": _G}, [("removed", "a:1 f", None), ("unchanged", "a:3 g", "a:1 g")]),
        # The symbol moves to an existing file, into a class.
        (
            {"a": _F + _G, "b": "x"},
            {"a": _F, "b": f"class C:\n  {_G}"},
            [("moved", "a:3 g", "b:2 g"), ("unchanged", "a:1 f", "a:1 f")],
        ),
        # It is unknown which of the two moved.
        (
            {"a": _G, "b": _G, "c": ""},
            {"a": "", "b": "", "c": _G},
            [("added", None, "c:1 g"), ("removed", "a:1 g", None), ("removed", "b:1 g", None)],
        ),
        # The names are equal, but not the functions.
        (
            {"a": _F, "b": ""},
            {"a": "", "b": _F.replace("return a", "pass")},
            [("added", None, "b:1 f"), ("removed", "a:1 f", None)],
        ),
        # The overload before the others is the added one.
        (
            {"a": _F},
            {"a": "def f(x):\n    return x\n" + _F},
            [("added", None, "a:1 f"), ("unchanged", "a:1 f", "a:3 f")],
        ),
    ],
)
def test_symbols_are_classified(old: Tree, new: Tree, rows: list[Row]) -> None:
    assert _rows(old, new) == rows
    back = {"added": "removed", "removed": "added"}
    assert sorted((back.get(state, state), place, before) for state, before, place in _rows(new, old)) == sorted(
        rows, key=lambda row: (row[0], str(row[1]), str(row[2]))
    )


def test_import_symbol_is_never_moved() -> None:
    old, new = {"a": _F, "b": ""}, {"a": "", "b": _F}
    before, after = (
        {
            path: [msgspec.structs.replace(symbol, symbol_type="import") for symbol in symbols]
            for path, symbols in side.items()
        }
        for side in map(_symbols_of_tree, (old, new))
    )
    rows = compare_symbols(before, after, TextTrees(old, new), lambda _side, _symbol: b"import os")
    assert {row.state for row in rows} == {"added", "removed"}


def test_symbol_without_text_is_never_moved() -> None:
    old, new = {"a": _F, "b": ""}, {"a": "", "b": _F}
    rows = compare_symbols(
        _symbols_of_tree(old), _symbols_of_tree(new), TextTrees(old, new), lambda _side, _symbol: b""
    )
    assert {row.state for row in rows} == {"added", "removed"}


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "unchanged"),
        ({"decorators": ("cached",)}, "changed"),
        ({"visibility": "private"}, "changed"),
        ({"parameters": ("b",)}, "changed"),
        ({"end_line": 9}, "unchanged"),
    ],
)
def test_signature_decides_whether_a_symbol_changed(change: dict[str, object], state: str) -> None:
    trees = TextTrees({"a.py": _F}, {"a.py": _F})
    (old,) = _symbols_of_tree({"a.py": _F})[b"a.py"]
    new = msgspec.structs.replace(old, **change)
    (row,) = compare_symbols({b"a.py": [old]}, {b"a.py": [new]}, trees, lambda side, symbol: b"")
    assert row.state == state
