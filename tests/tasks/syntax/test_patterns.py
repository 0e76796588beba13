"""Tests of patterns: how they are parsed, what they match, which are rejected, and that searching is fast."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch_workers.lint.query_rules import compile_rule
from codebatch_workers.lint.settings import QueryRule
from codebatch_workers.syntax.language.languages import every_language
from codebatch_workers.syntax.patterns.finders import PatternError, TooManySteps, pattern_finder, query_finder
from codebatch_workers.syntax.patterns.reading import METAVARIABLES_MAX, PATTERN_BYTES_MAX, PATTERN_DEPTH_MAX
from codebatch_workers.syntax.source import SourceFile
from tests.support.resources import cpu_time_below


def source(text: str, language: str) -> SourceFile:
    contexts = {"attributes": b"language=" + language.encode()}
    return SourceFile(b"x", text.encode(), executable=False, contexts=contexts)


def matched_texts(pattern: str, text: str, language: str = "python") -> list[str]:
    file = source(text, language)
    return [file.utf8[place.start : place.end].decode() for place in pattern_finder(pattern, language).find(file)]


@pytest.mark.parametrize(
    ("language", "pattern", "text", "expected"),
    [
        ("python", "print($X)", "print(1)\nprint(1, 2)\nprint(2,)\nprint()", ["print(1)", "print(2,)"]),
        ("python", "f($$$)", "f()\nf(1)\nf(1, *a, k=2)\ng()", ["f()", "f(1)", "f(1, *a, k=2)"]),
        ("python", "f(1, $$$)", "f(1)\nf(1, 2)\nf(2, 1)", ["f(1)", "f(1, 2)"]),
        ("python", "f($$$, $X, $X)", "f(1, 2)\nf(0, 1, 1)\nf(1, 1)", ["f(0, 1, 1)", "f(1, 1)"]),
        ("python", "f($$$A, 0, $$$A)", "f(1, 0, 1)\nf(1, 0, 2)\nf(0)", ["f(1, 0, 1)", "f(0)"]),
        ("python", "$A == $A", "a == a\na == b\na . b == a . b", ["a == a", "a . b == a . b"]),
        ("python", "$_ == $_", "a == a\na == b", ["a == a", "a == b"]),
        ("python", "$A + $B", "a + b\na - b", ["a + b"]),
        ("python", "yield $X", "def f():\n yield from x\n yield y", ["yield y"]),
        ("python", "return", "def f():\n return\n return 1", ["return"]),
        ("python", "if $A: $B", "if a:\n  b\nif a: c\nelse: d", ["if a:\n  b"]),
        ("python", "else: $X", "if a: c\nelse: d", ["else: d"]),
        ("python", "g($X)", "g( # why\n 1)", ["g( # why\n 1)"]),
        ("python", "@$D\ndef $F($$$): $$$", "@d\ndef f(a): pass", ["@d\ndef f(a): pass"]),
        ("python", "f(f($X))", "f(f(f(1)))", ["f(f(f(1)))", "f(f(1))"]),
        ("python", "except $E: $$$", "try: a\nexcept E: b", ["except E: b"]),
        ("javascript", "$scope.$F($$$)", "$scope.a()\nscope.a()", ["$scope.a()"]),
        ("javascript", "$($X)", "$(a)\nb(a)", ["$(a)"]),
        ("javascript", "$F($X)", "$(a)\n$X(b)", ["$(a)", "$X(b)"]),
        ("javascript", "switch ($X) { $$$ }", "switch (a) { case 1: b }", ["switch (a) { case 1: b }"]),
        ("javascript", "$M() { $$$ }", "class C { a() { b } }", ["a() { b }"]),
        ("tsx", "<$T>$$$</$T>", "x = <a><b/>c</a>", ["<a><b/>c</a>"]),
        ("typescript", "$X as any", "let a = b as any; c as d", ["b as any"]),
        ("c", "f($X)", "int g() { f(1); return f(2); }", ["f(1)", "f(2)"]),
        ("c", "return $X", "int g() { return 1; }", ["return 1;"]),
        ("c", "if ($X = $Y) $Z", "int g() { if (a = b) { c; } if (a == b) c; }", ["if (a = b) { c; }"]),
        ("c", "$T *$X = $Y;", "int g() { char *a = b; char c = d; }", ["char *a = b;"]),
        ("c", "int $F($$$) { $$$ }", "int f(int a) { b; }\nlong g() {}", ["int f(int a) { b; }"]),
        ("cpp", "class $C { $$$ };", "class A { int b; };", ["class A { int b; }"]),
        ("go", "fmt.Println($X)", "package a\nfunc f() { fmt.Println(b) }", ["fmt.Println(b)"]),
        ("go", "map[$K]$V", "package a\nvar b map[string]int", ["map[string]int"]),
        ("go", "var $X $T", "package a\nvar b int\nvar c = d", ["var b int"]),
        ("rust", "$X.unwrap()", "fn f() { a.unwrap(); b.unwrap_or(c); }", ["a.unwrap()"]),
        ("rust", "impl $T for $U { $$$ }", "impl A for B { fn c() {} }", ["impl A for B { fn c() {} }"]),
        ("java", "$X.equals($Y)", "class C { boolean f() { return a.equals(b); } }", ["a.equals(b)"]),
        ("java", "@Override", "class C { @Override void f() {} }", ["@Override"]),
        ("php", "foo($X)", "<?php foo($a); foo(1); bar(2);", ["foo($a)", "foo(1)"]),
        ("php", "$X = 1", "<?php $a = 1; $b = 2;", ["$a = 1"]),
        ("php", "$this->$M($$$)", "<?php $this->a(1); $that->a();", ["$this->a(1)"]),
        ("php", "function $F($$$) { $$$ }", "<?php function f($a) { return; }", ["function f($a) { return; }"]),
        ("bash", "rm -rf $X", 'rm -rf "$a"\nrm -rf b c\nrm -rf /', ['rm -rf "$a"', "rm -rf /"]),
        ("bash", "$X=$Y", "a=1\nb=$c\nd", ["a=1", "b=$c"]),
        ("bash", "if $$$; then $$$; fi", "if a; then b; c; fi", ["if a; then b; c; fi"]),
        ("ruby", "class $C < $D\n $$$\nend", "class A < B\n  c\nend", ["class A < B\n  c\nend"]),
        ("kotlin", "class $C { $$$ }", "class A {\n  val b = 1\n}", ["class A {\n  val b = 1\n}"]),
        ("css", "color: $X", "a { color: red; margin: 0 }", ["color: red;"]),
        ("json", '{"a": $X}', '[{"a": 1}, {"b": 1}]', ['{"a": 1}']),
        ("yaml", "a: $X", "a: 1\nb: 2\n", ["a: 1"]),
        ("lua", "function $F($$$) $$$ end", "function f(a) b() end", ["function f(a) b() end"]),
        ("scala", "def $F($$$) = $X", "def f(a: Int) = b", ["def f(a: Int) = b"]),
        ("sql", "DELETE FROM $T", "DELETE FROM a; SELECT 1;", ["DELETE FROM a"]),
    ],
)
def test_pattern_matches_similar_code(language: str, pattern: str, text: str, expected: list[str]) -> None:
    assert matched_texts(pattern, text, language) == expected


@pytest.mark.parametrize(
    ("language", "pattern", "problem"),
    [
        ("python", "", "is empty"),
        ("python", "$X", "would match every node"),
        ("python", "$$$", "would match every node"),
        ("python", "a b", "is not valid python by itself"),
        ("python", "print($x)", "is not valid python by itself"),
        ("python", "a\nb", "must be exactly one syntax node"),
        ("python", '"a $X"', "`$X` is inside a string"),
        ("python", "# $X", "`$X` is inside a string"),
        ("python", "x" * (PATTERN_BYTES_MAX + 1), "is longer than"),
        ("python", "(" * 2000 + ")" * 2000, "more than"),
        ("python", f"f({'$$$,' * (METAVARIABLES_MAX + 1)})", "metavariables"),
        ("python", "\udcff", "is not valid UTF-8"),
        ("markdown", "# $X", "patterns are not supported"),
        ("cobol", "$X", "no grammar for 'cobol'"),
    ],
)
def test_invalid_pattern_is_rejected_with_a_hint(language: str, pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as refused:
        pattern_finder(pattern, language)
    assert problem in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (f"f({', '.join(['$$$'] * METAVARIABLES_MAX)})", f"f({', '.join('ab' * 1000)})"),
        (f"f({', '.join(['$$$', '$A'] * (METAVARIABLES_MAX // 2))}, z)", f"f({', '.join('ab' * 1000)})"),
        (f"f({', '.join(f'$$$A{n}, $B{n}' for n in range(10))}, $B0, $B1, z)", f"f({', '.join(map(str, range(300)))})"),
        ("f($$$A, $$$B, $$$A, $$$B)", f"f({', '.join('ab' * 500)})"),
    ],
)  # fmt: skip
def test_any_pattern_is_searched_in_time(pattern: str, text: str) -> None:
    """Only metavariables that occur twice multiply the number of attempts, and their number is limited."""
    finder = pattern_finder(pattern, "python")
    with cpu_time_below(5), contextlib.suppress(TooManySteps):
        assert list(finder.find(source(text, "python"))) is not None


PIECES = st.sampled_from(["$X", "$$$", "$$$A", "$_", "if", *'$(){}a \n:,;="1<>#'])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(every_language()), st.lists(PIECES, max_size=12).map("".join), st.text(max_size=40))
def test_arbitrary_text_is_a_valid_or_rejected_pattern(language: str, pattern: str, text: str) -> None:
    try:
        finder = pattern_finder(pattern, language)
    except PatternError:
        return
    file = source(f"{pattern.replace('$', 'z')}\n{text}", language)
    if file.can_be_parsed:
        for place in finder.find(file):
            assert 0 <= place.start <= place.end <= len(file.utf8)


def test_pattern_without_metavariables_matches_itself() -> None:
    for text in ("f(a, b)", "class C(D):\n    x = 1", "a if b else c", "[x for x in y]", "lambda: 0"):
        assert matched_texts(text, text) == [text]


def test_captures_contain_the_text_of_metavariables() -> None:
    file = source("f(1, 2, 3)\nf()", "python")
    (one,) = pattern_finder("f($A, $$$REST, $_B)", "python").find(file)
    texts = {name: file.utf8[start:end].decode() for name, (start, end) in one.captures.items()}
    assert texts == {"A": "1", "REST": "2"}


def test_pattern_rule_reports_its_matches() -> None:
    rule = QueryRule(id="no-print", language="python", pattern="print($X)", message="{X} is printed")
    file = source("print(1)\nprint(a\n.b)\n", "python")
    assert list(compile_rule(rule).find(file)) == [(0, 8, "1 is printed"), (9, 20, "a is printed")]
    for pattern, query, problem in (
        ("a b", "", "by itself"),
        ("print($Y)", "", "uses `X`, which its pattern"),
        ("print($X)", "(call) @c", "either a `query` or a `pattern`"),
        ("", "", "either a `query` or a `pattern`"),
    ):
        with pytest.raises(ValueError, match=problem):
            compile_rule(QueryRule(id="no-print", language="python", message="{X}", pattern=pattern, query=query))


def test_rule_applies_to_the_variants_of_its_language_in_which_it_is_valid() -> None:
    def found(pattern: str) -> list[str]:
        find = compile_rule(QueryRule(id="a-b", language="typescript", message="m", pattern=pattern)).find
        files = (source("f(<A>1);", "typescript"), source("f(1);", "tsx"), source("f(1);", "javascript"))
        return [file.language for file in files if list(find(file))]

    assert found("f($X)") == ["typescript", "tsx"]
    assert found("<A>$X") == ["typescript"]


@pytest.mark.parametrize(
    ("query", "problem", "hint", "place"),
    [
        ("(call functon: (identifier))", "invalid field name 'functon' (row 1, column 7", "'function'", (0, 6)),
        ("(call)\n(cal)", "invalid node type 'cal' (row 2, column 2", "'call'", (1, 1)),
        ('("é") (cal)', "invalid node type", "codebatch ast", (0, 2)),
        ("(call", "the query ends too early", "brackets", (0, 5)),
        ("(call) @x (#eq? @y 1)", "invalid capture name 'y'", "codebatch ast", (0, 17)),
    ],
)
def test_invalid_query_is_rejected_with_its_position(
    query: str, problem: str, hint: str, place: tuple[int, int]
) -> None:
    with pytest.raises(PatternError) as refused:
        query_finder(query, "python")
    assert (problem in str(refused.value), hint in refused.value.hint, refused.value.place) == (True, True, place)


@pytest.mark.parametrize(
    ("query", "literals", "expected"),
    [
        ("(call)", (), ["f(g())", "g()"]),
        ('((call function: (identifier) @_f) @match (#eq? @_f "g"))', (b"g",), ["g()"]),
        ('((call function: (identifier) @_f) (#eq? @_f "g")) @last', (b"g",), ["g()"]),
        ('((call function: (identifier)? @f) @match (#eq? @f "g"))', (), ["g()"]),
        ('([(call) @a (identifier) @b]) (#eq? @a "g")', (), ["f", "g"]),
    ],
)
def test_query_returns_its_matches_and_required_literals(
    query: str, literals: tuple[bytes, ...], expected: list[str]
) -> None:
    file = source("f(g())", "python")
    finder = query_finder(query, "python")
    assert finder.literals == literals
    assert [file.utf8[place.start : place.end].decode() for place in finder.find(file)] == expected


def test_any_query_is_executed_in_time() -> None:
    query = f"(argument_list {'(identifier)* @a ' * 30}) @x"
    with cpu_time_below(5), pytest.raises(TooManySteps):
        list(query_finder(query, "python").find(source(f"f({', '.join('ab' * 300)})", "python")))


def test_pattern_depth_is_limited() -> None:
    nested = "(" * (PATTERN_DEPTH_MAX // 2) + "a" + ")" * (PATTERN_DEPTH_MAX // 2)
    assert matched_texts(f"f({nested})", f"f({nested})") == [f"f({nested})"]
