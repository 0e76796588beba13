"""Tests of hostile input: it raises no exception and takes no long time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from codebatch.model.record import File, Record
from codebatch_workers.syntax.language.languages import _LANGUAGE_BY_EXTENSION, every_language, has_grammar
from codebatch_workers.syntax.source import SourceFile
from tests.support.resources import cpu_time_below
from tests.support.source_files import created, source

EXTENSIONS = {
    language: extension.decode()
    for extension, language in _LANGUAGE_BY_EXTENSION.items()
    if language in every_language()
}
TASKS = [created(name, Path()) for name in ("parse", "analyze", "symbols", "lint")]
DEEP = 20_000
# These grammars, in C, recover from some brackets in quadratic time. In practice the worker's time limit helps. The
# number divides the depth of the test.
SLOWER = {"bash": 20, "kotlin": 10, "lua": 10, "scala": 50, "csharp": 10, "sql": 5}


def repeat_in_lines(text: str, count: int) -> str:
    """Return repeated text in lines short enough that the file does not count as minified."""
    return (text * 20 + "\n") * (count // 20)


def run_all(file: SourceFile) -> list[list[Record]]:
    return [task.run_file(file) for task in TASKS]


def test_every_language_with_a_grammar_is_fuzzed() -> None:
    assert set(EXTENSIONS) == set(every_language())
    assert all(map(has_grammar, EXTENSIONS))


# zsh and jsonc share the grammars of bash and json.
@pytest.mark.parametrize("language", sorted(EXTENSIONS.keys() - {"zsh", "jsonc"}))
@pytest.mark.parametrize("bracket", ["(", "[", "{"])
def test_deep_brackets_neither_crash_nor_take_long(language: str, bracket: str) -> None:
    with cpu_time_below(10):
        path = f"a.{EXTENSIONS[language]}"
        closing = {"(": ")", "[": "]", "{": "}"}[bracket]
        deep = DEEP // SLOWER.get(language, 1)
        opened, closed = repeat_in_lines(bracket, deep), repeat_in_lines(closing, deep)
        one_line = (bracket * deep, "x = " + bracket * deep + closing * deep + "\n")
        for content in (opened, closed, f"x = {opened}{closed}", opened + "1" + closed, *one_line):
            file = source(path, content)
            assert file.is_parsed or language in ("javascript", "css", "markdown", "yaml")
            run_all(file)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", repeat_in_lines("f(", DEEP) + repeat_in_lines(")", DEEP)),
        ("a.ts", "a" + repeat_in_lines(".b()", DEEP)),
        ("a.js", "a" + repeat_in_lines(".b()", DEEP)),
        ("a.js", repeat_in_lines("function abcdefghij(){", DEEP)),
        ("a.java", repeat_in_lines("class A{", DEEP)),
        ("a.rs", "use " + repeat_in_lines("a::{", DEEP) + "b" + repeat_in_lines("}", DEEP) + ";"),
        ("a.c", "int " + repeat_in_lines("*", DEEP) + "x;"),
        ("a.c", repeat_in_lines("extern ", 40_000) + "int " + "x, " * 10_000 + "y;"),
        ("a.cpp", repeat_in_lines("static ", 40_000) + "int " + repeat_in_lines("f(", 10_000) + ") {}"),
        ("a.cpp", "void " + repeat_in_lines("a::", DEEP) + "f() {}"),
        ("a.js", "const " + repeat_in_lines("[", DEEP) + "a" + repeat_in_lines("]", DEEP) + " = 1;"),
        ("a.ts", "x = " + repeat_in_lines("1+", DEEP) + "1;"),
        ("a.js", "x = " + repeat_in_lines("a&&", DEEP) + "1;"),
        ("a.py", "if x: pass\n" + "elif y: pass\n" * 50_000),
        ("a.py", 'x = "' + "a" * 500_000 + '"\n'),
        ("a.js", 'x = ["' + "𐐀é" * 60_000 + '", ' + repeat_in_lines("a(),", 50_000) + "];\n"),
    ],
)
def test_hostile_files_neither_crash_nor_take_long(path: str, content: str) -> None:
    with cpu_time_below(10):
        run_all(source(path, content))


def test_qualified_names_are_bounded() -> None:
    _, _, symbols, _ = run_all(
        source("a.js", repeat_in_lines("function abcdefghij(){", 3000) + repeat_in_lines("}", 3000))
    )
    assert max(len(record.qualified) for record in symbols if hasattr(record, "qualified")) <= 1024


@pytest.mark.parametrize("language", sorted(EXTENSIONS))
@settings(max_examples=30, deadline=None, database=None, derandomize=True)
@given(content=st.binary(max_size=300))
def test_random_bytes_are_processed_like_any_file(language: str, content: bytes) -> None:
    check(language, content)


WORDS = """
def class function struct enum impl use import from export default const let var type interface package func fn if for
while x y A self. = == => -> :: . , ; : ( ) [ ] { } < > " ' ` # // /* */ @ \\ é 𐐀 1
"""
FRAGMENTS = st.sampled_from([*WORDS.split(), "\n", "\t", "\r", "\x0c", "\0"])


@pytest.mark.parametrize("language", sorted(EXTENSIONS))
@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(parts=st.lists(FRAGMENTS, max_size=60))
def test_random_code_is_processed_like_any_file(language: str, parts: list[str]) -> None:
    check(language, " ".join(parts).encode())


def check(language: str, content: bytes) -> None:
    """Check that repeated runs return equal records, and that the positions of each are valid."""
    path = f"a.{EXTENSIONS[language]}"
    together = run_all(source(path, content))
    alone = [task.run_file(source(path, content)) for task in TASKS]
    assert together == alone
    for record in (record for records in together for record in records):
        line, column = getattr(record, "line", 1), getattr(record, "column", 1)
        end_line = getattr(record, "end_line", UNSET)
        end = (line if end_line is UNSET else end_line, getattr(record, "end_column", column))
        assert line >= 1
        assert column >= 1
        assert (line, column) <= end


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.yaml", "- " * 300 + "a\n"),
        ("a.yaml", "".join(" " * depth + "a:\n" + " " * depth + "- \n" for depth in range(130))),
        ("a.yaml", "a: 1\n" * 33_000),
        ("a.yaml", "a: " + "b" * 40_000 + "\n"),
        ("a.md", ">" * 300),
        ("a.md", "".join("  " * depth + "- a\n" for depth in range(300))),
    ],
)
def test_input_that_crashes_a_scanner_is_skipped(path: str, content: str) -> None:
    """Except for the two long ones, parsing ends the process: tree-sitter-yaml 48, 49, tree-sitter-markdown 243."""
    record, *rest = run_all(source(path, content))[0]
    assert isinstance(record, File)
    assert (record.parse, rest) == ("skipped", [])


def test_digits_before_astral_characters_are_parsed() -> None:
    """The scanner would ask the C library whether U+4A28A is a digit: tree-sitter-markdown 252."""
    file = source("a.md", "4\U0004a28a\n\n1\U0010ffff. b\n")
    assert file.parse().root_node.end_byte == len(file.utf8)
