"""Tests of rewrites: the edits of a pass, the passes, and the bytes that stay as they are."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.record import Diagnostic
from codebatch_workers.api.protocols import FileFailure
from codebatch_workers.syntax.content_offsets import content_offsets
from codebatch_workers.syntax.edited_files import EditedFile
from codebatch_workers.syntax.patterns import edits
from codebatch_workers.syntax.patterns.finders import PatternError
from codebatch_workers.syntax.patterns.matching import STEPS_MAX
from codebatch_workers.syntax.patterns.rewriting import compile_rewrite, rewrite_content
from codebatch_workers.syntax.patterns.selection import SYNTAX, UNGROUPED
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.rewrites import RewriteTask
from codebatch_workers.tasks.syntax_errors import SyntaxErrors


def source(content: str | bytes, language: str = "python") -> SourceFile:
    data = content.encode() if isinstance(content, str) else content
    contexts = {"attributes": b"language=" + language.encode()}
    return SourceFile(b"a", data, executable=False, contexts=contexts)


def rewritten(content: str | bytes, *rewrites: tuple[str, str], language: str = "python") -> bytes:
    """Return the content after rewrites, each given by a pattern and its new code."""
    rules = [compile_rewrite(pattern, rewrite, language) for pattern, rewrite in rewrites]
    return rewrite_content(source(content, language), rules).content


@pytest.mark.parametrize(
    ("language", "pattern", "rewrite", "before", "after"),
    [
        ("python", "old($X)", "new($X)", "a = old( 1 )  # old\n", "a = new(1)  # old\n"),
        ("python", "old($X, $Y)", "new($Y, $X)", "old(f(1), 'é')\n", "new('é', f(1))\n"),
        ("python", "equals($$$A)", "equal($$$A)", "equals(a, b,\n  c)\n", "equal(a, b,\n  c)\n"),
        ("python", "$X == None", "$X is None", "if a.b == None:\n    pass\n", "if a.b is None:\n    pass\n"),
        ("python", "print($X)", "", "print(1)\nx\n", "\nx\n"),
        ("javascript", "$X.indexOf($Y) >= 0", "$X.includes($Y)", "a.indexOf(b) >= 0;\n", "a.includes(b);\n"),
        ("go", "x.Old($R)", "y.New($R)", "package a\nfunc f() { x.Old(r) }\n", "package a\nfunc f() { y.New(r) }\n"),
        ("java", "new Old($X)", "New.of($X)", "class C { int a = new Old(1); }\n", "class C { int a = New.of(1); }\n"),
        ("rust", "try!($X)", "$X?", "fn f() { try!(a); }\n", "fn f() { a?; }\n"),
        ("c", "old($A, $B)", "new($A, $B, sizeof $A)", "int x = old(a, b);\n", "int x = new(a, b, sizeof a);\n"),
        ("python", "f($A, $$$R)", "g($$$R, $A)", "f(1)\nf(1, 2)\n", "g(1)\ng(2, 1)\n"),
        ("python", "f($A, $$$R)", "g($A, $$$R, 0)", "f(1)\n", "g(1, 0)\n"),
        ("python", "old($X)", "y = $X\nnew(y)", "if a:\n\told(1)\n", "if a:\n\ty = 1\n\tnew(y)\n"),
        ("python", "old($X)", "y = $X\nnew(y)", "old(1)\r\n", "y = 1\r\nnew(y)\r\n"),
        ("python", "old($X)", "new($X)", "old('''\n  a\r\n\tb''')\n", "new('''\n  a\r\n\tb''')\n"),
        ("go", "if $E != x { y($E) }", "z($E)", "func f() { if e != x { y(e) } }\n", "func f() { z(e) }\n"),
        ("python", "f($$$A)(b, $$$A)", "g($$$A)", "f(x.y, 1)(b, x.y, 1)\n", "g(x.y, 1)\n"),
        ("python", "f($_, $$$)", "g()", "f(a,  # a\n  b)\n", "g()\n"),
        ("javascript", "var $X = $Y", "let $X = $Y", "for (var i = 0;;) {}\n", "for (let i = 0;;) {}\n"),
        ("javascript", "var $X = $Y;", "let $X = $Y", "var a = 1;\n", "let a = 1\n"),
    ],
)  # fmt: skip
def test_match_is_replaced(language: str, pattern: str, rewrite: str, before: str, after: str) -> None:
    assert rewritten(before, (pattern, rewrite), language=language).decode() == after


@pytest.mark.parametrize(
    ("language", "pattern", "rewrite", "before", "after"),
    [
        ("python", "size($X)", "$X.size", "size(a + b)\nsize(a.b)\n", "(a + b).size\na.b.size\n"),
        ("python", "size($X)", "$X.size", "size(size(a - b) - c)\n", "((a - b).size - c).size\n"),
        ("python", "equal($A, $B)", "assert $A == $B", "equal(a == b, c)\n", "assert (a == b) == c\n"),
        ("python", "equal($A, $B)", "assert $A == $B", "equal(a, b or\n  c)\n", "assert a == (b or\n  c)\n"),
        ("python", "equal($A, $B)", "assert $A == $B", "equal(a or b, not c)\n", "assert (a or b) == (not c)\n"),
        ("python", "any_of($A, $B)", "$A or $B", "not any_of(a, b)\nf(any_of(a, b))\n", "not (a or b)\nf(a or b)\n"),
        ("python", "same($A, $B)", "$A == $B", "same(a, b) == c\n", "(a == b) == c\n"),
        ("python", "log($X)", "log('$X', $X)", "log(a + b)\n", "log('a + b', a + b)\n"),
        ("python", "f($$$A)", "g[$$$A]", "f(a == b, c)\n", "g[a == b, c]\n"),
        ("python", "pair($A)", "$A; $A", "if a:\n    pair(f())\n", "if a:\n    f(); f()\n"),
        ("javascript", "get($X)", "$X.y", "get(new A); get(() => 1)\n", "(new A).y; (() => 1).y\n"),
        ("go", "Get($X)", "$X.Get()", "package a\nvar b = Get(&T{})\n", "package a\nvar b = (&T{}).Get()\n"),
        ("java", "get($X)", "$X.a()", "class C { int b = get((A) c); }\n", "class C { int b = ((A) c).a(); }\n"),
        ("php", "f($X)", "$X->g()", "<?php f($a . $b); f(new A);\n", "<?php ($a . $b)->g(); (new A)->g();\n"),
        ("rust", "f($X)", "g!(1, $X)", "fn h() { f(a + b); }\n", "fn h() { g!(1, a + b); }\n"),
        ("python", "size($X)", "$X.size", "size(\\\n  a)\n", "a.size\n"),
        ("c", "SQUARE($X)", "$X * $X", "int x = 1 / SQUARE(y + 1);\n", "int x = 1 / ((y + 1) * (y + 1));\n"),
        ("css", "color: $X", "background: $X", "a { color: red }\n", "a { background: red }\n"),
        ("csharp", "f($X)", "a ? $X : b", "int c = 1 + f(2);\n", "int c = 1 + (a ? 2 : b);\n"),
        ("csharp", "f($X)", "$X[0]", "int c = f(d) + f(new e());\n", "int c = d[0] + new e()[0];\n"),
        ("c", "f($X)", "a * $X", "int b = f(c) / f(d + 1);\n", "int b = a * c / (a * (d + 1));\n"),
    ],
)  # fmt: skip
def test_code_keeps_its_grouping(language: str, pattern: str, rewrite: str, before: str, after: str) -> None:
    assert rewritten(before, (pattern, rewrite), language=language).decode() == after


@pytest.mark.parametrize(
    ("language", "pattern", "rewrite", "content", "line", "reason"),
    [
        ("python", "f($X)", "g($X)", "\nf(  # why\n a)\n", 2, "the new code would lose a comment"),
        ("python", "f($X)", "g()", "f(\n# why\n a)\n", 2, "the new code would lose a comment"),
        ("python", "f($X, $X)", "g($X)", "f(a, # why\n a)\n", 1, "the new code would lose a comment"),
        ("python", "f($$$X)", "g($$$X)", "f(a,\n b,  # why\n)\n", 2, "other code would follow a comment"),
        ("python", "for $X in $Y: $$$Z", "g($Y)", "async for a in b: c\n", 1, "the new code would lose `async`"),
        ("python", "size($X)", "$X.size", "size(*a)\n", 1, UNGROUPED),
        ("python", "size($X)", "$X.size", "size(a=1)\n", 1, UNGROUPED),
        ("python", "f($X)", "g($X", "\nf(a + b)\n", 2, SYNTAX),
    ],
)  # fmt: skip
def test_match_is_left_out(language: str, pattern: str, rewrite: str, content: str, line: int, reason: str) -> None:
    rule = compile_rewrite(pattern, rewrite, language)
    assert rewrite_content(source(content, language), [rule]) == (content.encode(), [(line, reason)])


def test_other_matches_are_rewritten_if_one_is_left_out(errors: SyntaxErrors) -> None:
    task = RewriteTask([compile_rewrite("f($X)", "g($X)", "python")], errors)
    change, finding = task.run_file(source("f(  # why\n  f(1))\nf(2)\n"))
    assert isinstance(change, EditedFile)
    assert change.content == b"f(  # why\n  g(1))\ng(2)\n"
    assert isinstance(finding, Diagnostic)
    assert (finding.line, finding.message) == (1, "a pattern matches, but: the new code would lose a comment")


def test_nested_edits_follow_in_later_passes() -> None:
    nested = "old(old(old(old(1))))\n"
    assert rewritten(nested, ("old($X)", "new($X)")) == b"new(new(new(new(1))))\n"


@pytest.mark.parametrize(
    ("pattern", "rewrite", "before", "after"),
    [
        ("old($X)", "new($X)", "old(old(old(old(old(1)))))\n", "new(old(old(old(old(1)))))\n"),
        ("f($X)", "f(g($X))", "f(1)\n", "f(g(1))\n"),
        ("f($X, $Y)", "f($Y, $X)", "f(1, 2)\n", "f(2, 1)\n"),
    ],
)
def test_rewrite_that_does_not_settle_has_the_edits_of_one_pass(
    pattern: str, rewrite: str, before: str, after: str
) -> None:
    """So a second application always proposes a change, also of code that the passes would change back."""
    assert rewritten(before, (pattern, rewrite)).decode() == after
    assert rewritten(after, (pattern, rewrite)).decode() != after


def test_first_rewrite_of_a_node_counts_and_idle_edits_do_not_hide_others() -> None:
    assert rewritten("old(1)\n", ("old($X)", "a($X)"), ("old(1)", "b()")) == b"a(1)\n"
    assert rewritten("f(old(1))\n", ("f($X)", "f($X)"), ("old($X)", "new($X)")) == b"f(new(1))\n"
    assert rewritten("a(b(1))\n", ("b($X)", "c($X)"), ("a($X)", "d($X)")) == b"d(c(1))\n"


def test_other_languages_and_notebooks_are_not_rewritten() -> None:
    rule = compile_rewrite("old($X)", "new($X)", "python")
    assert rewrite_content(source("old(1)\n", "javascript"), [rule]).content == b"old(1)\n"
    cell = b'{"cells": [{"cell_type": "code", "source": ["old(1)"]}], "metadata": {}, "nbformat": 4}'
    notebook = SourceFile(b"a.ipynb", cell, executable=False, contexts={})
    assert notebook.utf8.strip() == b"old(1)"
    assert rewrite_content(notebook, [rule]).content == cell


@pytest.mark.parametrize(
    ("pattern", "rewrite", "message"),
    [
        ("old($X)", "new($Y)", "`$Y` in the rewrite has no value"),
        ("old($_X)", "new($_X)", "`$_X` in the rewrite has no value"),
        ("old($$$)", "new($$$)", "`$$$` in the rewrite has no value"),
        ("old(", "new", "not valid python by itself"),
    ],
)
def test_invalid_rewrite_is_an_error(pattern: str, rewrite: str, message: str) -> None:
    with pytest.raises(PatternError, match=message.replace("$", r"\$")):
        compile_rewrite(pattern, rewrite, "python")


def test_rewritten_file_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "REWRITTEN_BYTES_MAX", 20)
    with pytest.raises(ValueError, match="the rewritten file would have more than 20 bytes"):
        rewritten("old(1)\n", ("old($X)", "new($X, 'more than twenty')"))
    assert rewritten("old(1)\n", ("old($X)", "new(1, 2, 3, 45)")) == b"new(1, 2, 3, 45)\n"


def test_task_leaves_out_code_that_nobody_edits_and_fails_for_too_many_matches(errors: SyntaxErrors) -> None:
    task = RewriteTask([compile_rewrite("old($X)", "new($X)", "python")], errors)
    for path, count in ((b"a.py", 1), (b"vendor/a.py", 0)):
        assert len(task.run_file(SourceFile(path, b"old(1)\n", executable=False, contexts={}))) == count
    many = "f(" + "a, " * (STEPS_MAX // 100) + "a)\n"
    repeated = RewriteTask([compile_rewrite("f($$$A, $$$A, $$$B, $$$B)", "g()", "python")], errors)
    with pytest.raises(FileFailure, match="a pattern matches in too many ways"):
        repeated.run_file(source(many))


@pytest.mark.parametrize(
    "content",
    [
        "# coding: koi8-r\nold(1)\n".encode("koi8-r"),
        codecs.BOM_UTF16_LE + b"#\0\0\xd8\n\0" + "old(1)\n".encode("utf-16-le"),
    ],
)
def test_file_that_cannot_be_edited_exactly_has_a_finding(content: bytes, errors: SyntaxErrors) -> None:
    """The encoding of the first file has no é. The second file has half a character."""
    task = RewriteTask([compile_rewrite("old($X)", "né($X)", "python")], errors)
    (finding,) = task.run_file(source(content))
    assert isinstance(finding, Diagnostic)
    assert (finding.code, finding.line) == ("not-rewritten", 1)
    assert finding.message.startswith("a pattern matches, but: ")


def test_invalid_bytes_in_and_beside_a_match_are_kept() -> None:
    before = b"# \xe9\nold('\xff\xe2\x82 \xc3\xa9') # \xfe\nold(2)"
    assert rewritten(before, ("old($X)", "new($X)")) == before.replace(b"old", b"new")


ENCODINGS = {
    "utf-8": (b"", ""),
    "utf-8-sig": (b"", ""),
    "iso8859-1": (b"", "# coding: latin-1\n"),
    "koi8-r": (b"", "# coding: koi8-r\n"),
    "shift_jis": (b"", "# coding: shift_jis\n"),
    "utf-16-le": (codecs.BOM_UTF16_LE, ""),
    "utf-16-be": (codecs.BOM_UTF16_BE, ""),
    "utf-32-le": (codecs.BOM_UTF32_LE, ""),
}
LINES = {
    "old(1)": "renamed(1)",
    "x = [old('L'), 2]  # old(1)": "x = [renamed('L'), 2]  # old(1)",
    "old(old('L'))": "renamed(renamed('L'))",
    "y = 'old(1) L'": "y = 'old(1) L'",
    'y = """\n\t L\r\n """': 'y = """\n\t L\r\n """',
    'if 1: \told( """\n L""" )': 'if 1: \trenamed("""\n L""")',
    "": "",
}
"""Lines before and after the rewrite. L becomes letters."""


@given(
    encoding=st.sampled_from(sorted(ENCODINGS)),
    lines=st.lists(st.tuples(st.sampled_from(sorted(LINES)), st.sampled_from(["\n", "\r\n"])), max_size=8),
    letters=st.sampled_from(["", "é", "ж", "字", "字é😀"]),
)
def test_no_byte_outside_the_matches_changes(encoding: str, lines: list[tuple[str, str]], letters: str) -> None:
    mark, cookie = ENCODINGS[encoding]
    known = letters.encode(encoding, "ignore").decode(encoding)
    before = "".join(line.replace("L", known) + newline for line, newline in lines)
    after = "".join(LINES[line].replace("L", known) + newline for line, newline in lines)
    rule = compile_rewrite("old($X)", "renamed($X)", "python")
    content = mark + (cookie + before).encode(encoding)
    assert rewrite_content(source(content), [rule]).content == mark + (cookie + after).encode(encoding)


@given(st.lists(st.sampled_from([b"a", "é".encode(), b"\xff", b"\xe2\x82", b"\xf0\x9f", "\ufffd".encode(), b"\n"])))
def test_offsets_around_invalid_bytes_lead_to_the_same_characters(pieces: list[bytes]) -> None:
    file = source(b"".join(pieces), "text")
    text = file.utf8.decode()
    starts = [len(text[:index].encode()) for index in range(len(text) + 1)]
    places = content_offsets(file, starts)
    for index, character in enumerate(text):
        raw = file.content[places[starts[index]] : places[starts[index + 1]]]
        assert raw.decode("utf-8", "replace") == character
    assert (places[0], places[starts[-1]]) == (0, len(file.content))
