"""Tests of errors that grammars accept: they are reported, and similar valid code is not."""

from __future__ import annotations

import pytest

from tests.support.source_files import parse, source

WRONG = [
    ("a.json", '{"a": "x\ty"}\n', [(1, "control character in a string, write it as \\u0009")]),
    ("a.json", '{\n\t"a": [" \x01"]\n}\n', [(2, "control character in a string, write it as \\u0001")]),
    ("a.jsonc", '// c\n{"b\tc": 1}\n', [(2, "control character in a string, write it as \\u0009")]),
    ("a.go", "package a\n\n f(t *T) {\n}\n", [(3, "statement outside of a function")]),
    ("a.go", "package a\n\nx := 1\n", [(3, "statement outside of a function")]),
    ("a.go", "// c\n a\n\nfunc f() {}\n", [(2, "missing package clause")]),
    ("a.rb", "module A\n  class B\n    f\n    end\n  end\nend\n", [(6, "unexpected `end`, which ends nothing")]),
    ("a.toml", "a = { b = , c = 1 }\n", [(1, "missing integer")]),
]
RIGHT = [
    ("a.json", '{\n\t"a":\t"b",\t"c": "\\t"\n}\n'),
    ("a.jsonc", '{\t"a": 1\t// b\tc\n}\n'),
    ("a.go", "// c\n"),
    ("a.go", "// c\npackage a\n\nimport ()\n\nconst b = 1\n\nvar c int\n\ntype D int\n\nfunc (d D) E() {};\n"),
    ("a.rb", "a = { end: 1 }\na.end\nb :end\ndef end; end\n__END__\nend\n"),
]


@pytest.mark.parametrize(("path", "content", "expected"), WRONG)
def test_error_accepted_by_the_grammar_is_reported(path: str, content: str, expected: list[tuple[int, str]]) -> None:
    record, errors = parse(source(path, content))
    assert record.parse == "errors"
    assert [(error.line, error.message) for error in errors] == expected
    assert {error.severity for error in errors} == {"error"}


@pytest.mark.parametrize(("path", "content"), RIGHT)
def test_valid_code_similar_to_an_error_is_accepted(path: str, content: str) -> None:
    record, errors = parse(source(path, content))
    assert (record.parse, errors) == ("ok", [])


def test_java_with_velocity_marks_is_a_template() -> None:
    record, errors = parse(source("A.java", "package ${package};\n\nclass A {}\n"))
    assert (record.parse, record.class_, errors) == ("partial", "template", [])
