"""Tests of the task parse: the file record, and syntax errors without cascades."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch_workers.tasks.parse import DIAGNOSTICS_MAX
from tests.support.source_files import lint_all, parse, source


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.py", b"x = 1\n", ("python", "utf-8", 1, "text", "ok")),
        ("a.py", b"x = (\n", ("python", "utf-8", 1, "text", "errors")),
        ("a.py", b"", ("python", "utf-8", 0, "empty", "ok")),
        ("a.py", b"\0", ("binary", "", 0, "binary", "skipped")),
        ("a.md", b"x", ("markdown", "utf-8", 1, "text", "ok")),
        ("a.dart", b"x", ("dart", "utf-8", 1, "text", "unsupported")),
        (".gitattributes", b"*.a b\n", ("gitattributes", "utf-8", 1, "text", "ok")),
        ("d/.gitignore", b"[", ("gitignore", "utf-8", 1, "text", "ok")),
        ("a.min.js", b"x", ("javascript", "utf-8", 1, "minified", "skipped")),
        ("a.py", b"x = '\xe9'\n", ("python", "unknown-8bit", 1, "text", "errors")),
    ],
)
def test_file_record_describes_the_file(path: str, content: bytes, expected: tuple[str, str, int, str, str]) -> None:
    record, _ = parse(source(path, content))
    assert (record.lang, record.encoding, record.lines, record.class_, record.parse) == expected


def test_non_utf8_path_is_base64() -> None:
    record, _ = parse(source(b"\xff.py", b"x = 1\n"))
    assert (record.path_b64, record.lang) == ("/y5weQ==", "python")


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("package.json", '{"a𐐀b": 1,}', [(1, 10, "unexpected `,`")]),
        ("package.json", '{"a": 1,}', [(1, 8, "unexpected `,`")]),
        ("a.json", '// a comment\n{"a": 1}', []),
        ("tsconfig.json", '{"a": [1,], /* b */ "c": 2,}', []),
        ("tsconfig.json", '{"a" 1}', [(1, 2, 'unexpected `"a" 1`')]),
        ("a.ndjson", '{"a": 1}\n{"b": 2}\n', []),
        ("a.lua", "if x then\n  y()\n", [(1, 1, "cannot be parsed up to line 2: `if x then`")]),
        ("a.ts", "const x: = 1;\n", [(1, 8, "unexpected `:`")]),
        ("a.js", "function f() {\n  foo(;\n  bar(1;\n}\nbaz();\n", [(2, 6, "cannot be parsed up to line 3: `(;`")]),
        ("a.js", "a = {\n  b: 1\n  c: 2\n}\n", [(3, 3, "unexpected `c: 2`")]),
    ],
)
def test_syntax_errors_have_exact_locations(path: str, content: str, expected: list[tuple[int, int, str]]) -> None:
    _, errors = parse(source(path, content))
    assert [(error.line, error.column, error.message) for error in errors] == expected
    assert all((error.severity, error.code, error.tool) == ("error", "syntax-error", "codebatch") for error in errors)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("def f(:\n    pass\n", [(1, 7, "Expected a parameter or the end of the parameter list")]),
        ("x = = 1\ny = 2\n", [(1, 5, "Expected an expression")]),
        ("é𐐀 = = 1\n", [(1, 6, "Expected an expression")]),
        ("s = 'a𐐀b' = 1\n", [(1, 5, "Invalid assignment target")]),
        ("\ufeffx = = 1\n", [(1, 5, "Expected an expression")]),
        ("x = 1\ry = = 2\r", [(1, 11, "Expected an expression")]),
        ("x = 1\r\ny = = 2\r\n", [(2, 5, "Expected an expression")]),
        ("def f():\r\n\x0c\r\n    pass\r\n", []),
        ("match x:\n    case 1: pass\ntype A = int\nf'{'a'}'\ntry: pass\nexcept A, B: pass\n", []),
        ("print_ 'python 2'\n", [(1, 8, "Simple statements must be separated by newlines or semicolons")]),
        ("return 1\n", [(1, 1, "`return` statement outside of a function/method")]),
        ("def f(a, a): nonlocal q\n", [(1, 10, 'Duplicate parameter "a"')]),
        ("x = [1,\ny = 2\nz = 3\n", [(2, 3, "Expected `,`, found `=`")]),
        ("class A A:\n    x = 1\n    def f(self): pass\ny = 1\nz = = 1\n", [(1, 9, None), (5, 5, None)]),
    ],
)
def test_python_errors_are_exact_without_cascades(content: str, expected: list[tuple[int, int, str | None]]) -> None:
    record, errors = parse(source("a.py", content))
    assert [
        (e.line, e.column, e.message if m else None) for e, (*_, m) in zip(errors, expected, strict=True)
    ] == expected
    assert all((error.severity, error.code, error.tool) == ("error", "syntax-error", "ruff") for error in errors)
    assert record.parse == ("errors" if expected else "ok")


def test_errors_beyond_the_limit_are_counted() -> None:
    _, errors = parse(source("a.py", "x = = 1\ny = 1\n" * (DIAGNOSTICS_MAX + 7)))
    assert len(errors) == DIAGNOSTICS_MAX + 1
    assert errors[-1].message == "7 more syntax errors are not listed, this is the last"


def test_macros_are_no_syntax_errors() -> None:
    """`va_arg(ap, long long)` is valid C that the grammar cannot represent.

    The state reports that the tree is incomplete.
    """
    record, errors = parse(
        source("a.c", "int f(void) { x = va_arg(ap, long long); y = va_arg(ap, char*); return 0; }\n")
    )
    assert (record.parse, errors) == ("partial", [])


def test_included_table_entries_are_no_syntax_error() -> None:
    record, errors = parse(source("a.c", '{{0x0f, 0x31, }, 2, 0, "", "",\n"0f 31 \\trdtsc",},\n' * 50))
    assert (record.parse, errors) == ("partial", [])


@pytest.mark.parametrize(
    ("path", "content", "state"),
    [
        ("a.py", "x = " + "+".join(["1"] * 4_500) + "\n", "partial"),
        ("a.ts", "f(\n" * 4_500 + ")" * 4_500 + ";\n", "partial"),
        ("a.c", "void f(void) { if (a) {}" + " else if (a) {}" * 4_500 + "}\n", "partial"),
        ("a.ts", "x = [" + "[1],\n" * 4_500 + "];\n", "ok"),
        ("a.py", "x = " + "+".join(["1"] * 400) + "\n", "ok"),
    ],
)
def test_file_that_is_too_deep_for_queries_is_partially_parsed(path: str, content: str, state: str) -> None:
    record, errors = parse(source(path, content))
    assert (record.parse, errors) == (state, [])


@pytest.mark.parametrize(
    ("path", "content", "state"),
    [
        ("src/intro.js", "(function (a) {\n'use strict';\n", "partial"),
        ("src/outro.js", "return a;\n})(this);\n", "partial"),
        ("src/wrapper.start.js", "(function (f) { f(); }(function (a) {\n  var b =\n", "partial"),
        ("src/wrapper-end.js", "  return a[0];\n}));\n", "partial"),
        ("src/main.js", "return a;\n})(this);\n", "errors"),
        ("src/outro.js", "(function (a) {\n'use strict';\n", "errors"),
        ("src/intro.js", "return a;\n})(this);\n", "errors"),
        ("src/intro.js", "(function (a) {\nvar b = [1, 2;\n", "errors"),
        ("src/outro.js", "return a b;\n})(this);\n", "errors"),
        ("src/outro.js", "return a;\n}) var b;\n", "errors"),
        ("src/intro.js", "var a = b c;\n", "errors"),
        ("src/top.ts", "(function (a) {\n", "errors"),
    ],
)
def test_script_fragment_of_a_build_is_partially_parsed(path: str, content: str, state: str) -> None:
    record, errors = parse(source(path, content))
    assert (record.parse, bool(errors)) == (state, state == "errors")


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.js", "{% if a %}\nvar x = 1;\n", ("template", "partial", [])),
        ("a.json", '{"host": __host__, "port": 1}\n', ("template", "partial", [])),
        ("a.json", '{"host": {{ host }}}\n', ("template", "partial", [])),
        ("a.js", "{# a comment #}\nvar x = 1;\n", ("template", "partial", [])),
        ("a.ts", "export default { files: [%FILES%] };\n", ("template", "partial", [])),
        ("karma.tpl.js", "module.exports = { a: <b> };\n", ("template", "partial", [])),
        ("a.tpl.js", "var x = 1;\n", ("text", "ok", [])),
        ("a.js", "a.__proto__ = b b;\n", ("text", "errors", ["error"])),
        ("tests/a.json", '{"host": {{ host }}}\n', ("test", "partial", [])),
        ("a.json", '{"__host__": , "b": 1}\n', ("text", "errors", ["error"])),
        ("a.js", "var = ;\nvar x = '{{ a }}';\n", ("text", "errors", ["error"])),
        ("a.py", "{% if a %}\n", ("template", "partial", [])),
        ("a.json", "{ id: 'a',\n  'items': [{b: 1}] }\n", ("text", "partial", [])),
        ("a.json", "{ id: 'a',\n  \"items\": [] }\n", ("text", "errors", ["error"])),
        ("testdata/a.json", "{,}\n", ("fixture", "errors", ["hint"])),
        ("{{ slug }}/a.yml", "a:\n  b:\n    - {{ slug }}_c\n", ("template", "partial", [])),
        ("{{ slug }}/a.py", "import os\nimport {{ slug }}.a\n", ("template", "partial", [])),
        ("{{ slug }}/a.json", "{,}\n", ("template", "errors", ["warning"])),
        ("tests/a.json", "{,}\n", ("test", "errors", ["hint"])),
        ("examples/a.json", "{,}\n", ("example", "errors", ["warning"])),
        ("tests/test_a.py", "def f(:\n", ("test", "errors", ["hint"])),
    ],
)
def test_deliberately_broken_file_is_no_error(path: str, content: str, expected: tuple[str, str, list[str]]) -> None:
    record, errors = parse(source(path, content))
    assert (record.class_, record.parse, [error.severity for error in errors]) == expected


PYTHON_2 = [
    "print 'a'",
    "print >>a, b",
    "exec a in b",
    "raise A, 'b'",
    "x = a <> b",
    "x = `a`",
    "x = 0777",
    "x = 10L",
    "x = ur'a'",
]


@pytest.mark.parametrize("line", PYTHON_2)
def test_python_2_syntax_is_a_single_warning(line: str) -> None:
    record, errors = parse(source("a.py", f"a = 1\n{line}\nb = 1\nc = = 1\n"))
    reported = [(error.line, error.severity, error.message.partition(":")[0]) for error in errors]
    if line == "print >>a, b":  # ruff parses this as Python 3.
        assert reported[0][:2] == (4, "error")
    else:
        assert reported == [(2, "warning", "Python 2 syntax")]
    assert record.parse == "errors"


@pytest.mark.parametrize("line", ["print = = 'a'", "x = 0.0777 0.5e1", "raise A from, b", "x = '0777' 1"])
def test_broken_python_3_is_not_taken_for_python_2(line: str) -> None:
    _, errors = parse(source("a.py", f"{line}\n"))
    assert [error.severity for error in errors] == ["error"]


@pytest.mark.parametrize("path", ["a.json", "a.py", "a.toml", "a.ts", "a.sql", "a.yaml", "Makefile", "a.ipynb"])
def test_git_lfs_pointer_is_not_source(path: str, tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{7:064}\nsize 9\n"
    file = source(path, pointer, {"attributes": b"language=JSON"})
    record, errors = parse(file)
    assert (record.lang, record.parse, errors) == ("text", "skipped", [])
    assert lint_all([file], tmp_path) == [[]]
    assert parse(source("a.json", pointer + "x" * 1024))[1]
