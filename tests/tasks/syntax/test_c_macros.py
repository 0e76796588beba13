"""Tests of C and C++ with unexpanded macros: names, scopes and metrics, on small sources."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch_workers.languages.c.conditionals import with_first_arms
from codebatch_workers.languages.c.macros import replace_macros
from codebatch_workers.symbols.occurrences.references import find_references
from codebatch_workers.symbols.outline import file_outline
from tests.support.source_files import file_metrics, source


@pytest.mark.parametrize(
    ("code", "symbols"),
    [
        ("LUA_API lua_Unsigned lua_rawlen (lua_State *L, int idx) { f(); }", "function lua_rawlen(L idx)"),
        ("static INLINE foo_t name(int a) { f(); }", "function name(a)"),
        ("XMLPUBFUN xmlDocPtr XMLCALL\n\txmlNewDoc(const char *v) { f(); }", "function xmlNewDoc(v)"),
        ("PHPAPI void *name(int a) { f(); }", "function name(a)"),
        ("static void printflike(3, 4)\nname(char *a) { f(); }", "function name(a)"),
        ("static foo_t *\n__attribute ((pure)) internal\nname (int *err) { f(); }", "function name(err)"),
        ("EXPORT ALLOC\nvoid NOTHROW *\nATTR(malloc) SIZE(1)\nname(size_t size) { f(); }", "function name(size)"),
        ("ATTR(constructor)\nstatic void WINAPI\nname(void) { f(); }", "function name()"),
        ("static PATH(a, \"B\")\nstatic PATH(c, \"D\")\n\nstatic int name(int x) { f(); }", "function name(x)"),
        ("int ZEXPORT name(a, b)\n    foo_t a;\n    int b;\n{ f(); }", "function name(a b)"),
        ("static char *name (error)\nDWORD error;\n{ f(); }", "function name(error)"),
        ("API int (luaL_foo) (lua_State *L) { f(); }", "function luaL_foo(L)"),
        ("API void *(luaL_foo) (lua_State *L) { f(); }", "function luaL_foo(L)"),
        ("void name(void) NORETURN { f(); }", "function name()"),
        ("static STACK_OF(X509) *name(int a) { f(); }", "function name(a)"),
        ("TEST_BEGIN(name) { int a; f(); }", "function name()"),
        ("#ifdef A\nstatic DWORD WINAPI name(LPVOID p)\n#else\nint name(void)\n#endif\n{ f(); }", "function name(p)"),
        ("void name(int a\n#ifdef X\n , int b\n#endif\n )\n{ f(); }", "function name(a b)"),
        ("int name(void) {\n#ifdef X\n if (a) {\n#else\n if (b) {\n#endif\n f(); }\n}", "function name()"),
        ("int name(void) {\n if (a) { }\n#ifdef X\n else if (b) { int c; }\n#endif\n f(); }", "function name()"),
        ("int name(void) {\n#if 0\n {\n#else\n f();\n#endif\n}", "function name()"),
    ],
)  # fmt: skip
def test_function_behind_macros_has_its_name_and_calls(code: str, symbols: str) -> None:
    outline = file_outline(source("a.c", code))
    rendered = [f"{symbol.symbol_type} {symbol.qualified}({' '.join(symbol.parameters)})" for symbol in outline.symbols]
    assert rendered == [symbols]
    name = symbols.split()[1].split("(")[0]
    assert [edge.source for edge in outline.edges if edge.target == "f"] == [name]


@pytest.mark.parametrize(
    ("code", "symbols"),
    [
        ("ZEXTERN int ZEXPORT deflate OF((z_streamp strm, int flush));", []),
        ("CURL_EXTERN ALLOC_FUNC char *curl_dbg_strdup(const char *str, int line);", []),
        ("EXTSPEC void nedmalloc_stats(void) THROWSPEC;", []),
        ("LUALIB_API int (luaL_foo) (lua_State *L);\nint (luaL_bar) (int);", []),
        ("LUA_API mstime_t (*pointer)(Key *key) ATTR;\nAPI int (*hook)(void) = 0;", ["pointer", "hook"]),
        ("typedef voidpf (*alloc_func) OF((voidpf opaque, uInt items));", ["alloc_func"]),
        ("local const z_crc_t FAR table[][256] = { {1} };", ["table"]),
        ("static int foo UNUSED = 1;\nint x ALIGN(8);", ["foo", "x"]),
        ("static const bool known =\n#ifdef X\n true\n#else\n false\n#endif\n;", ["known"]),
    ],
)
def test_declaration_behind_macros_yields_its_name_and_no_prototype(code: str, symbols: list[str]) -> None:
    assert [symbol.name for symbol in file_outline(source("a.c", code)).symbols] == symbols


def test_macro_block_belongs_to_its_function() -> None:
    file = source("a.c", "int run(int n) {\n  vmcase(OP_MOVE) { int local; f(); }\n  each_cpu(i) { g(); }\n}\n")
    outline = file_outline(file)
    assert [symbol.qualified for symbol in outline.symbols] == ["run"]
    assert [(edge.source, edge.target) for edge in outline.edges] == [("run", "f"), ("run", "g")]
    assert (file_metrics(file)["functions"], file_metrics(file)["complexity"]) == (1, 3)
    nested = file_outline(source("a.c", "int run(int n) {\n  int inner(int x) { f(); }\n}\n"))
    assert [symbol.qualified for symbol in nested.symbols] == ["run", "run.inner"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a.c", "#define inline\nint int;\nunsigned void\nX if (a) { int b; }\n"),
        ("a.c", "struct { int } x; T OF((void *, int));\n"),
        ("a.cpp", "class class { public: int private; void new(); };\n"),
        ("a.go", "package a\nfunc range() {}\nvar if = 1\ntype func struct { for int }\n"),
        ("a.java", "class new { int for; void while() {} }\n"),
        ("a.py", "def if(): pass\nclass for: pass\nimport = 1\n"),
        ("a.rs", "fn match() {}\nstruct fn { let: u8 }\n"),
    ],
)
def test_reserved_word_is_never_a_symbol_name(path: str, code: str) -> None:
    words = set(re.findall(r"\w+", code)) - {"a", "b", "x", "OF", "T", "X", "package", "u8", "pass"}
    named = {symbol.name for symbol in file_outline(source(path, code)).symbols if symbol.symbol_type != "macro"}
    assert not named & words


@pytest.mark.parametrize(
    "code",
    [
        "static const unsigned long long a, *b[3];\nextern struct s *f(struct s *, int (*)(void));\nenum e x = A;\n",
        "int f(f) int (*a)(); { return a(); }\nlong g(x, y) long x; struct s *y; { return x; }\nmain() { g(1, 2); }\n",
        "typedef int (*fn)(int);\ntypedef struct s t, *u;\nint __attribute__((pure)) h(void) { return 0; }\n",
        "/* some prose in a comment (with more\n   words) and *stars */\nint x; // a b c(d) e\n",
        "#if A\nint f(void) { return 1; }\n#else\nint f(void) { return 2; }\n#endif\n",
        "void f(void) {\n#ifdef A\n  g();\n#endif\n  if (a) b();\n  return (int) c;\n}\n",
        "#ifndef H\n#define H\nint f(void);\n#endif\n",
        "M(int, f)\n  __attribute__ ((noreturn));\n__attribute__ ((pure));\n",
        "#if A /* one\n two */\nint f(void) { return '{'; }\n#endif\n",
    ],
)
def test_regular_code_is_not_rewritten(code: str) -> None:
    text = code.encode()
    assert with_first_arms(text, "c") == replace_macros(text) == text


def test_macro_hidden_from_the_grammar_is_still_a_reference() -> None:
    code = (
        'API int CALL f(void) { return 1; } // API\n#ifdef X\nint g(API a)\n#else\nint g(CALL b)\n#endif\n{ "CALL"; }\n'
    )
    file = source("a.c", code)
    assert [reference["line"] for reference in find_references(file, "API")] == [1, 3]
    assert [reference["line"] for reference in find_references(file, "CALL")] == [1, 5, 7]
    assert [reference["role"] for reference in find_references(file, "f")] == ["definition"]


_PARTS = (
    *("__attribute__ ((a))", "static", "extern", "typedef", "const", "if", "asm", "struct", "int", "foo_t", "FOO", "f"),
    *("FOO(a)", "(a)", "(int a)", "((int a))", "(*f)", "[3]", "*", "(", ")", ";", "{", "}", ",", "=", "/*x*/"),
    *("#if X\n", "#else\n", "#endif\n", "\n", "\n", "  ", "    "),
)


@given(st.lists(st.sampled_from(_PARTS), max_size=16), st.sampled_from(["", " "]))
def test_macro_rewriting_preserves_the_text_length(parts: list[str], between: str) -> None:
    text = between.join(parts).encode()
    assert len(replace_macros(with_first_arms(text, "c"))) == len(text)


@pytest.mark.parametrize(
    "part",
    [
        *(b"\nint f(", b"\nint A f(() ", b"\nA b c(x) d", b"\nA(x)", b"\nstatic A(x)\n", b"\na", b"\n \t", b"\"'("),
        *(b"\n#if X\n{\n#endif", b"\n#if /*", b"\n#if X\n{ /* ", b"\n#else\n{", b"\n#if X\n /* */"),
        *(b"\nfoo(\n#if X\n#endif", b"\n#if X\n if (a)\n#endif", b"\n    a b c((", b"\n    a b c((x));"),
    ],
)
def test_hostile_macros_are_rewritten_in_linear_time(part: bytes) -> None:
    def seconds(count: int) -> float:
        text = b"\n#if X\n{" + part * count
        start = process_time()
        assert len(replace_macros(with_first_arms(text, "c"))) == len(text)
        return process_time() - start

    assert min(seconds(1_500) for _ in range(3)) < 20 * seconds(250) + 0.05  # A busy machine may delay any single run.
