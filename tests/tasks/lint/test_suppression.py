"""Tests of suppression comments in every language: they count only in comments."""

from __future__ import annotations

import pytest

from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import file_suppressions
from tests.support.resources import cpu_time_below
from tests.support.source_files import source

NOTE = "codebatch: ignore[x]"
# Path, a comment with the suppression, and text that is not a comment.
COMMENTS = [
    ("a.py", "f(1)  # @", 's = """\n# @\n"""'),
    ("a.py", "f(1)  # @", "s = '# @'; f'{s}# @'"),
    ("a.js", "f() // @", "s = '// @'; `/* @ */`; /\\/\\/ @/"),
    ("a.js", "f() /* a\n@ */", 's = "/* @ */"'),
    ("a.ts", "f() // @", "s = `// @`"),
    ("a.tsx", "x = <a>{/* @ */}</a>", "x = <a>// @</a>"),
    ("a.c", "f(); /* @ */", 'char *s = "/* @ */";'),
    ("a.c", "#define A 1 // @", '#define A "// @"'),
    ("a.cpp", "f(); // @", 'auto s = R"(// @)";'),
    ("a.go", "package p // @", "package p\nvar s = `// @`"),
    ("a.rs", "fn f() {} /// @", 'const S: &str = r#"// @"#;'),
    ("a.java", "class A {} // @", 'class A { String s = "// @"; }'),
    ("a.sh", "f # @", "cat <<E\n# @\nE\n"),
    ("a.jsonc", '{} // @', '{"a": "// @"}'),
    ("a.rb", "f # @", "s = '# @'\n__END__\n# @"),
    ("a.php", "<?php f(); # @", "<?php $s = '# @'; ?>\n# @"),
    ("a.php", "<p> <!-- @ -->", "<p> // @"),
    ("a.lua", "f() -- @", "s = [[-- @]]"),
    ("a.cs", "class A {} // @", 'class A { string s = "// @"; }'),
    ("a.kt", "fun f() {} // @", 'val s = "// @"'),
    ("a.swift", "f() // @", 'let s = "// @"'),
    ("a.scala", "object A // @", 'object A { val s = "// @" }'),
    ("a.sql", "select 1; -- @", "select '-- @';"),
    ("a.css", "a { } /* @ */", 'a { content: "/* @ */" }'),
    ("a.html", "<p><!-- @ --></p>", '<p title="<!-- @ -->">@</p>'),
    ("a.html", "<script>\nf() // @\n</script>", "<script>s = '// @'</script>"),
    ("a.tf", "a = 1 # @", 'a = "# @"'),
    ("a.toml", "a = 1 # @", 'a = "# @"'),
    ("a.yaml", "a: 1 # @", 'a: "# @"\nb: |\n  # @'),
    ("a.zsh", "f # @", "s='# @'"),
    # Languages that are not parsed.
    ("a.md", "a <!-- @ --> b", "Write `<!-- @ -->`, or:\n```html\n<!-- @ -->\n```\n@"),
    ("a.pl", "f(); # don't @", "$s = '# @'; @"),
    ("a.dart", "f(); // @", "s = '// @' + \"// \\\" @\";"),
    ("a.sv", "x = 8'hFF; // @", 's = "// @";'),
    ("a.hs", "f' = f -- @", 's = "-- @"'),
    ("a.clj", "'(f) ; @", '(s "; @")'),
    ("a.erl", "f() -> $' . % @", "@"),
    ("a.vue", "<!-- @ -->\n<script>", "<script>\ns = '// @'\n</script>"),
    ("a.xml", "<a/> <!-- a\n@ -->", "<a>@</a>"),
    ("a.svg", "<!-- a\n@ -->", "<!-- a --> @ <!-- b -->"),
    ("Makefile", "a: b # @", 'a: ; echo "# @"'),
    ("a.min.js", "f() /* @ */", "s = '/* @ */'"),
    # The syntax of comments is unknown, so any text counts.
    ("a.txt", "a @", ""),
    ("a.unknown", "a @", ""),
]  # fmt: skip


def _has_suppression(file: SourceFile) -> bool:
    return any(
        file.derived_persistently(file_suppressions).suppresses(line, "x") for line in range(1, file.line_count + 1)
    )


@pytest.mark.parametrize(("path", "comment", "text"), COMMENTS)
def test_suppression_applies_in_comments_but_not_in_strings(path: str, comment: str, text: str) -> None:
    assert _has_suppression(source(path, comment.replace("@", NOTE) + "\n"))
    assert not _has_suppression(source(path, text.replace("@", NOTE) + "\n"))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", "def = 1  # codebatch: ignore\n"),
        ("a.py", "x = (\ny = ]  # codebatch: ignore\n"),
        ("a.js", "let x = = 1; // codebatch: ignore\n"),
        ("a.go", "func ( { /* codebatch: ignore */\n"),
        ("a.js", "(" * 100_001 + " // codebatch: ignore\n"),
    ],
)
def test_suppression_applies_in_unparsable_files(path: str, content: str) -> None:
    assert _has_suppression(source(path, content))


def test_suppression_in_a_docstring_is_ignored() -> None:
    file = source("a.py", '"""Write codebatch: ignore-file to silence."""\nprint(undefined)\n')
    assert not file.derived_persistently(file_suppressions).suppresses(2, "F821")


def test_suppressions_survive_tree_release_and_are_absent_in_huge_files() -> None:
    file = source("a.py", "x  # codebatch: ignore\n")
    assert file.derived_persistently(file_suppressions).suppresses(1, "x")
    file.release()
    assert "tree" not in file.__dict__
    assert file.derived_persistently(file_suppressions).suppresses(1, "x")
    assert "tree" not in file.__dict__
    assert not _has_suppression(source("a.txt", "codebatch: ignore\n" + "x" * (8 * 1024 * 1024)))


@pytest.mark.parametrize("text", ['"\\' * 60_000, "'\\" * 60_000, "`\n" * 60_000, "```\n~~~\n" * 15_000, "/*" * 60_000])
@pytest.mark.parametrize("path", ["a.md", "a.dart", "a.svg"])
def test_any_text_is_scanned_for_suppressions_in_time(path: str, text: str) -> None:
    with cpu_time_below(10):
        _has_suppression(source(path, text + "codebatch: ignore"))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", "# codebatch: ignore[" * 16_000),
        ("a.html", "<script>" + "f() // codebatch: ignore[x]\n" * 10_000 + "</script>"),
    ],
)
def test_many_suppressions_are_read_in_time(path: str, content: str) -> None:
    with cpu_time_below(5):
        assert _has_suppression(source(path, content))
