"""Rewrites of code in string literals, in which a language may allow less than elsewhere."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry, EntryKind
from codebatch_workers.syntax.patterns.rewriting import compile_rewrite, rewrite_content
from codebatch_workers.syntax.python_versions import python_context
from codebatch_workers.syntax.source import SourceFile


def rewrite(language: str, new: str, content: str, python: bytes = b"") -> tuple[str, list[str]]:
    """Replace each call of f. Return the content, and what literals do not allow."""
    pattern = "f $X" if language == "bash" else "f($X)"
    contexts = {"attributes": b"language=" + language.encode(), "python": python}
    file = SourceFile(b"a", content.encode(), executable=False, contexts=contexts)
    result = rewrite_content(file, [compile_rewrite(pattern, new, language)])
    prefix = "the string around the match must not contain "
    return result.content.decode(), [
        match.reason.removeprefix(prefix).partition(" there")[0] for match in result.left_out
    ]


@pytest.mark.parametrize(
    ("language", "new", "content", "forbidden"),
    [
        ("python", 'g($X, "a")', 'x = f"{f(1)}"\n', "its own quotation mark"),
        ("python", "g($X, 'a')", "x = rf'{y} {f(1)!r:>{f(2)}}'\n", "its own quotation mark"),
        ("python", 'g($X, """a""")', 'x = f"""{f(1)}"""\n', "its own quotation mark"),
        ("python", 'g($X, "a")', "x = f'{F\"{f(1)}\"}'\n", "its own quotation mark"),
        ("python", r"g($X, '\n')", 'x = f"{f(1)}"\n', "a backslash"),
        ("python", r"g($X, '\n')", 'x = f"""{f(1)}"""\n', "a backslash"),
        ("python", "g($X, '#')", 'x = f"{f(1)}"\n', "a comment or `#`"),
        ("python", "g($X,\n1)", 'x = f"{f(1)}"\n', "a line break"),
        ("python", "f'{$X!r}'", "x = f(a['b'])\n", "its own quotation mark"),
        ("python", "y := $X", 'x = f"{f(1)}"\n', "`:=` outside of parentheses"),
        ("php", '"{$X}"', "<?php $x = f($a ** $b);\n", "an expression other than a variable"),
        ("csharp", "a ? $X : b", 'var x = $"{f(1)}";\n', "a colon outside of parentheses"),
        ("csharp", "global::G($X)", 'var x = $@"{f(1)}";\n', "a colon outside of parentheses"),
        ("csharp", "g($X,\n1)", 'var x = $"{f(1)}";\n', "a line break"),
        ("swift", "g($X,\n1)", 'let x = "\\(f(1))"\n', "a line break"),
        ("scala", "g($X,\n1)", 'object A { val x = s"${f(1)}" }\n', "a line break"),
        ("bash", "g `$X`", "x=`f 1`\n", "a backslash or `"),
    ],
)
def test_new_code_that_the_literal_does_not_allow_is_not_written(
    language: str, new: str, content: str, forbidden: str
) -> None:
    text, reasons = rewrite(language, new, content)
    assert text == content
    assert {*reasons} == {forbidden}


@pytest.mark.parametrize(
    ("language", "new", "content"),
    [
        ("python", "g($X, 'a')", 'x = f"{f(1)}"\n'),
        ("python", 'g($X, "a")', 'x = f"""{f(1)}"""\n'),
        ("python", "g($X,\n1)", 'x = f"""{f(1)}"""\n'),
        ("python", "(y := $X)", 'x = f"{f(1)}"\n'),
        ("python", 'f"{$X}" + "$X\'"', "x = f(1)\n"),
        ("php", '"{$X}q"', "<?php $x = f($a->b[$c + 1]?->d());\n"),
        ("python", 'g($X, "\\n#")', 'x = h(f(1), f"{y}")\n'),
        ("csharp", "g(a ? $X : b)", 'var x = $"{f(1)}";\n'),
        ("csharp", 'g($X, ":")', 'var x = $"{f(1):N2}";\n'),
        ("swift", 'g($X, "a")', 'let x = "\\(f(1))"\n'),
        ("scala", "g($X,\n1)", 'object A { val x = s"""${f(1)}""" }\n'),
        ("bash", "g `$X`", "x=$(f 1)\n"),
        ("javascript", "g($X, `a`)", "x = `${f(1)}`;\n"),
        ("javascript", "g($X,\n1)", "x = `${f(1)}`;\n"),
        ("ruby", 'g($X, "a")', 'x = "#{f(1)}"\n'),
        ("ruby", 'g($X, "a")', "x = <<~B\n  #{f(1)}\nB\n"),
        ("kotlin", 'g($X, "a")', 'val x = "${f(1)}"\n'),
    ],
)
def test_new_code_that_the_literal_allows_is_written(language: str, new: str, content: str) -> None:
    text, reasons = rewrite(language, new, content)
    call = "f 1" if language == "bash" else "f(1)"
    if call not in content:
        call = content.partition(" = ")[2].removesuffix(";\n").rstrip()
    argument = call[2:].removesuffix(")")
    assert (text, reasons) == (content.replace(call, new.replace("$X", argument)), [])


def test_string_of_a_project_without_older_python_may_contain_any_code() -> None:
    content = 'x = f"{f(1)}"\n'
    assert rewrite("python", 'g($X, "\\n#")', content, b"3.12") == ('x = f"{g(1, "\\n#")}"\n', [])
    # The literals of other languages do not depend on the version of Python.
    assert rewrite("python", "y := $X", content, b"3.12")[1] == ["`:=` outside of parentheses"]
    assert rewrite("swift", "g($X,\n1)", 'let x = "\\(f(1))"\n', b"3.12")[1] == ["a line break"]


class _View(NamedTuple):
    files: Mapping[bytes, str]

    @property
    def entries(self) -> list[Entry]:
        return [Entry(path, "file", False, 0, digest_bytes(b"")) for path in sorted(self.files)]

    def read(self, path: bytes, kind: EntryKind = "file") -> bytes | None:
        return self.files[path].encode()


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.12"'}, b"3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = "<4, >= 3.13"'}, b"3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = "~=3.12"'}, b"3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = "==3.14.*"'}, b"3.12"),
        ({"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.12"'}, b"3.12"),
        ({"setup.cfg": "[options]\npython_requires = >=3.12\n"}, b"3.12"),
        ({"setup.py": "setup(python_requires='>=3.12')"}, b"3.12"),
        ({"pyproject.toml": "", "setup.cfg": "[options]\npython_requires = >=3.12\n"}, b"3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.8"', "d/pyproject.toml":
          '[project]\nrequires-python = ">=3.12"'}, b"3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.12"', "d/pyproject.toml": "[project]\n"}, b"3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.12"', "d/setup.py": "python_requires='>=3.9'"}, b""),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.8"', "setup.cfg": "python_requires = >=3.12"}, b""),
        ({"pyproject.toml": '[project]\nrequires-python = ">3.11"'}, b""),
        ({"pyproject.toml": '[project]\nrequires-python = "<=3.12"'}, b""),
        ({"pyproject.toml": '[tool.poetry.dependencies]\npython = "^2.7 || ^3.12"'}, b""),
        ({"pyproject.toml": '[project]\nrequires-python = 3.12'}, b""),
        ({"pyproject.toml": "[project"}, b""),
        ({"e/pyproject.toml": '[project]\nrequires-python = ">=3.12"'}, b""),
        ({}, b""),
    ],
)  # fmt: skip
def test_versions_of_python_are_those_of_the_nearest_file_that_states_them(
    files: Mapping[str, str], version: bytes
) -> None:
    context = python_context(_View({path.encode(): text for path, text in files.items()}))
    assert context(Entry(b"d/a.py", "file", False, 0, digest_bytes(b""))) == version
    assert context(Entry(b"d/a.py", "symlink", False, 0, digest_bytes(b""))) == b""


_TEXTS = st.sampled_from(
    ["a", '"a"', "'a'", '"""a"""', "'''a'''", r"'\n'", r'"\\"', "'#'", "1  # b\n", "{1: 2}", "b'c'"]
)
_STRINGS = ("f'{%s}'", 'f"{%s}"', "rf'''{%s}'''", 'F"""{%s}"""', "f'{%s!r:>{w}}'", "g(%s, f'{x}')", "f'{{%s}}{y}'")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python allows any code in strings")
@given(st.lists(_TEXTS, min_size=1, max_size=3), st.lists(st.sampled_from(_STRINGS), min_size=1, max_size=3))
def test_python_before_312_reads_each_rewritten_string(arguments: list[str], strings: list[str]) -> None:
    code = "f(1)"
    for string in strings:
        if (parts := string % code) and _is_python(parts):
            code = parts
    text, _ = rewrite("python", f"h($X, {', '.join(arguments)})", f"x = {code}\n")
    assert _is_python(text), text


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True
