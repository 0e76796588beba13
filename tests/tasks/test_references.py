"""Tests of references: every occurrence of a name is found in every language, and no text that looks like one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codebatch.query.filters.filters import last_name
from codebatch_workers.runtime.name_search import references_in
from codebatch_workers.symbols.occurrences.calls import call_references
from codebatch_workers.symbols.occurrences.references import find_references
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.language.languages import every_language
from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.source import SourceFile
from tests.support.source_files import source

_FORMS = Path(__file__).parents[1] / "uses" / "forms"
# The expected role and scope of each `NAME`, in order. Each source also has it in a comment and, if possible, in a
# string.
SOURCES = {
    "python": (
        "a.py",
        "from m import NAME\n# NAME\ndef f():\n  s = 'NAME'\n  return NAME(x.NAME, NAME=1)\nclass NAME(NAME): pass\n",
        "import string:f call:f reference:f reference:f definition:NAME reference:NAME",
    ),
    "javascript": (
        "a.js",
        "import { NAME } from 'NAME';\n// NAME\nfunction NAME() { return NAME(o.NAME, 'NAME'); }\n",
        "import string definition:NAME call:NAME reference:NAME string:NAME",
    ),
    "typescript": (
        "a.ts",
        "interface NAME { x: number }\n/* NAME */\nconst f = (a: NAME): NAME[] => NAME(`NAME`);\n",
        "definition:NAME reference:f reference:f call:f string:f",
    ),
    "tsx": ("a.tsx", "const f = () => <NAME a='NAME'>NAME</NAME>;\n", "call:f string:f reference:f"),
    "c": (
        "a.c",
        '#define NAME 1\n// NAME\nstruct NAME { int NAME; };\nint f(struct NAME *p) { NAME(p->NAME, "NAME"); }\n',
        "definition definition:NAME definition:NAME reference:f call:f reference:f string:f",
    ),
    "cpp": (
        "a.cpp",
        'namespace n { class NAME {}; }\n// NAME\nint f(n::NAME p) { return n::NAME("NAME"); }\n',
        "definition:n::NAME reference:f call:f string:f",
    ),
    "go": (
        "a.go",
        'package p\n// NAME\ntype NAME struct{}\nfunc (n NAME) M() { NAME(n.NAME, "NAME") }\n',
        "definition:NAME reference:NAME.M call:NAME.M reference:NAME.M string:NAME.M",
    ),
    "rust": (
        "a.rs",
        'use a::NAME;\n// NAME\nfn f(x: NAME) { NAME(x.NAME, "NAME"); NAME!(); }\n',
        "import reference:f call:f reference:f string:f call:f",
    ),
    "java": (
        "A.java",
        'import a.NAME;\n// NAME\nclass A extends NAME { NAME f() { return NAME(this.NAME, "NAME"); } }\n',
        "import reference:A reference:A.f call:A.f reference:A.f string:A.f",
    ),
    "bash": (
        "a.sh",
        "NAME() { NAME 'NAME' NAME; }\n# NAME\necho $NAME\n",
        "definition:NAME call:NAME string:NAME string:NAME reference",
    ),
    "csharp": (
        "A.cs",
        'class NAME { NAME F() { return NAME("NAME"); } } // NAME\n',
        "definition:NAME * * string:NAME.F",
    ),
    "ruby": ("a.rb", "class NAME; def f; NAME.new('NAME'); end; end # NAME\n", "definition:NAME * string:NAME.f"),
    "php": (
        "a.php",
        "<?php class NAME { function f() { NAME('NAME'); } } // NAME\n",
        "definition:NAME call:NAME.f string:NAME.f",
    ),
    "kotlin": ("a.kt", 'class NAME { fun f(): NAME = NAME("NAME") } // NAME\n', "definition:NAME * * string:NAME.f"),
    "swift": (
        "a.swift",
        'class NAME { func f() -> NAME { return NAME("NAME") } } // NAME\n',
        "definition:NAME * * string:NAME.f",
    ),
    "scala": ("a.scala", 'class NAME { def f(): NAME = NAME("NAME") } // NAME\n', "definition:NAME * * string:NAME.f"),
    "lua": (
        "a.lua",
        "local function NAME() return NAME('NAME', t.NAME) end -- NAME\n",
        "definition:NAME call:NAME string:NAME *",
    ),
}


@pytest.mark.parametrize("language", SOURCES)
def test_references_include_every_occurrence_of_a_name(language: str) -> None:
    path, source, expected = SOURCES[language]
    references = references_in("NAME", path.encode(), source.encode(), {})
    roles = [f"{row['role']}:{row['scope']}".rstrip(":") for row in references]
    expected_roles = expected.split()
    assert len(roles) == len(expected_roles), roles
    assert [one for one, other in zip(roles, expected_roles, strict=True) if other not in ("*", one)] == []


# Each `NAME` is a reference except after `~`, where it is text. The marks are removed: `+` means a call, `!` a
# definition.
INNER = [
    ("a.rb", "before_action :NAME, only: :'NAME', or: %i[NAME b], so: '~NAME'\n"),
    ("a.rb", "send(:NAME); x(&:NAME); put(NAME:); alias_method :a, :NAME; @~NAME = { NAME: 1, 'NAMED': 2 }\n"),
    ("a.rb", "class A\n  attr_reader :NAME\n  private def !NAME = 1\nend\n"),
    ("a.rs", 'fn f() { println!("{NAME} {NAME:?} {0:NAME$} {:NAME$.1} {{~NAME}} ~NAME", 1, "{~NAME}"); }\n'),
    ("a.rs", 'fn f() { write!(w, "{NAME}"); vec!["{~NAME}"]; log::info!(target: "x", "{NAME}"); g("{~NAME}"); }\n'),
    ("a.rs", 'fn f() { assert_eq!(a, b, "{NAME} {a.~NAME}"); panic!(r#"{NAME}"#); }\n'),
    ("a.rs", '#[error("no {NAME}")]\n#[doc("{~NAME}")]\nstruct A;\n'),
    ("a.rs", "fn f<'~NAME>(x: &'~NAME str) { '~NAME: loop { break '~NAME } }\n"),
    ("a.c", '#define W(x) +NAME(x) /* ~NAME */\n#define B "~NAME" NAME ## x \\\n  + NAME // ~NAME\n#undef NAME\n'),
    ("a.cc", "#define W(x) n::+NAME(x, '~NAME')\n#pragma omp parallel private(NAME)\n#error ~NAME\n"),
    ("a.kt", 'fun f(NAME: Int) = "$NAME ${NAME} \\$~NAME" + """$NAME"""\nfun `!NAME`() = +NAME() + `NAME`.x\n'),
    ("a.scala", 'object A { def `!NAME` = 1; val x = s"$NAME" + `NAME` }\n'),
    ("a.swift", 'func `!NAME`() { print("\\(NAME)"); x = #selector(NAME) }\n'),
    ("A.cs", 'class @!NAME { string F() => $"{NAME}" + nameof(NAME) + "~NAME"; }\n'),
    ("a.sql", 'CREATE TABLE "!NAME" (id int);\nSELECT "NAME".x, \'~NAME\' FROM `NAME`; -- ~NAME\n'),
    (
        "a.sh",
        "trap NAME EXIT\ntrap 'NAME 1; x.~NAME' INT\nexport -f NAME\n[[ -v NAME ]]\nprintf -v NAME ~NAME\n",
    ),
    ("a.sh", "read -r NAME\ncomplete -F NAME ~NAME\ncommand -v NAME\necho ~NAME '~NAME'\neval \"NAME a-~NAME\"\n"),
]


@pytest.mark.parametrize(("path", "marked"), INNER)
def test_references_within_compound_tokens_are_found(path: str, marked: str) -> None:
    source = re.sub("[~+!](?=NAME)", "", marked)
    roles = {"~": None, "+": "call", "!": "definition", "": "reference"}
    expected = [roles[match[1]] for match in re.finditer(r"([~+!]?)NAME\b", marked)]
    role_by_place = {
        (row["line"], row["column"]): row["role"]
        for row in references_in("NAME", path.encode(), source.encode(), {})
        if row["role"] != "string"
    }
    places = [
        (number, match.start() + 1)
        for number, line in enumerate(source.split("\n"), 1)
        for match in re.finditer(r"NAME\b", line)
    ]
    assert [role_by_place.get(place) for place in places] == expected


def test_every_language_with_names_is_tested() -> None:
    named = {language for language in every_language() if LanguageSyntax.of(language).declared_names is not None}
    tables = {path.stem for path in _FORMS.glob("*.toml")}
    assert named - {"sql", "hcl", "zsh"} == tables, "add tests/uses/forms/NAME.toml"


def test_reference_positions_count_code_points_in_any_encoding() -> None:
    source = "s = 'a𐐀b'; bé = 𝒳é = 1; print(bé)\r\n\tbé\r\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        references = references_in("bé", b"a.py", source.encode(encoding), {})
        assert [(row["line"], row["column"], row["end_column"]) for row in references] == [
            (1, 12, 14),
            (1, 31, 33),
            (2, 2, 4),
        ]


def test_file_without_a_tree_has_no_references() -> None:
    assert references_in("NAME", b"a.txt", b"NAME\n", {}) == []
    assert references_in("NAME", b"a.py", b"\0NAME\n", {}) == []
    assert references_in("NAME", b"a.py", b"NAMES NAMED\n", {}) == []


CALLED = b"int g(void);\nint f(void) { return a.NAME(1) + b->x(0); }\nint h(void) { NAME (2); }\n"


def _calls(file: SourceFile) -> list[tuple[int, str, str]]:
    edges = file_outline(file).edges
    return [(e.line, e.target, e.source) for e in edges if e.edge_type == "calls" and last_name(e.target) == "NAME"]


@pytest.mark.parametrize("language", SOURCES)
def test_known_calls_do_not_change_the_references(language: str) -> None:
    path, source, _ = SOURCES[language]
    file = SourceFile(path.encode(), source.encode(), executable=False, contexts={})
    if all(symbol.name != "NAME" for symbol in file_outline(file).symbols):
        assert list(find_references(file, "NAME", _calls(file))) == list(find_references(file, "NAME"))


def test_name_used_only_in_calls_needs_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    file = SourceFile(b"a.c", CALLED, executable=False, contexts={})
    calls, references = _calls(file), list(find_references(file, "NAME"))
    assert [(reference["line"], reference["role"], reference["scope"]) for reference in references] == [
        (2, "call", "f"),
        (3, "call", "h"),
    ]
    monkeypatch.setattr(SourceFile, "parse", None)
    fresh = SourceFile(b"a.c", CALLED, executable=False, contexts={})
    assert list(find_references(fresh, "NAME", calls)) == references


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.c", "void f(void) {\n  NAME(1); // NAME(\n}\n"),
        ("a.c", "void f(void) {\n  // NAME(\n  NA\\\nME(1);\n}\n"),
        ("a.c", "void f(void) {\n  x(NAME, NAME(1));\n}\n"),
        ("a.cpp", "void f() {\n  NAME<int>(1);\n}\n"),
        ("a.py", "def f():\n  g().NAME(1)\n"),
        ("a.c", "void f(void) { NAME(1); } void h(void) { NAME(2); }\n"),
        ("a.py", "def f():\n  (lambda: 1).NAME(1)\n"),
        ("a.py", "@NAME\ndef f(): pass\n"),
        ("a.js", "import(NAME());\n"),
    ],
)
def test_ambiguous_text_requires_the_tree(path: str, source: str) -> None:
    file = SourceFile(path.encode(), source.encode(), executable=False, contexts={})
    spans = [match.span() for match in re.finditer(rb"\bNAME\b", file.utf8)]
    assert call_references(file, spans, _calls(file)) is None
    assert list(find_references(file, "NAME", _calls(file))) == list(find_references(file, "NAME"))


@pytest.mark.parametrize(
    ("path", "content", "name", "lines"),
    [
        ("A.java", "class A { boolean f(Object o) {\n  return o instanceof Q.R(String s); // Q\n} }\n", "Q", [2]),
        ("a.h", "LIB_BEGIN\n/* LIB_BEGIN */\nstruct a { int b; };\nLIB_BEGIN\nint c;\n", "LIB_BEGIN", [1, 4]),
        ("a.c", "INL(void) f(int *a)\n{\n\t*a = 1;\n}\n", "INL", [1]),
        ("A.cs", "class A { void F(int[] x) {\n  x?[async] = 1; // async\n} }\n", "async", [2]),
    ],
)
def test_names_beside_grammar_gaps_are_references(path: str, content: str, name: str, lines: list[int]) -> None:
    assert [row["line"] for row in find_references(source(path, content), name)] == lines
