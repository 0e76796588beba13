"""Uses of names in C, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

H = {"a.h": "int f(int n);\n"}
A = {**H, "a.c": '#include "a.h"\nint f(int n) { return n; }\n'}
USER = '#include "a.h"\n'

SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("function of the file", {"a.c": "int f(void) { return 1; }\nint g(void) { return «f»(); }\n"}, "exact", ["a.c:1 f"]),
    ("external function", {**A, "b.c": USER + "int g(void) { return «f»(1); }\n"}, "exact", ["a.c:2 f"]),
    ("address of a function", {**A, "b.c": USER + "int g(void) { return h(«f»); }\n"}, "exact", ["a.c:2 f"]),
    ("not declared in an included header", {"x.h": "int f(int n);\n", "a.c": "int f(int n) { return n; }\n", "b.c": "int g(void) { return «f»(1); }\n"}, "inferred", ["a.c:1 f"]),
    ("own static function", {**A, "b.c": USER + "static int f(int n) { return 0; }\nint g(void) { return «f»(1); }\n"}, "exact", ["b.c:2 f"]),
    ("static function of another file", {**H, "a.c": "static int f(int n) { return n; }\n", "b.c": USER + "int g(void) { return «f»(1); }\n"}, "name", []),
    ("static function that a macro defines", {**A, "b.c": USER + "static int f(int n);\nDEFINE(f)\nint g(void) { return «f»(1); }\n"}, "name", []),
    ("parameter", {**A, "b.c": USER + "int g(int (*f)(int)) { return «f»(1); }\n"}, "name", []),
    ("parameter of a function type", {"a.c": "int f(void) { return 1; }\nint g(int f(void)) { return «f»(); }\n"}, "name", []),
    ("local variable", {"a.c": "int f(void) { return 1; }\nint g(void) { int f = 2; return «f»; }\n"}, "name", []),
    ("local pointer", {"a.c": "int f(void) { return 1; }\nint g(void) { int *f = 0; return *«f»; }\n"}, "name", []),
    ("before the local variable", {"a.c": "int f(void) { return 1; }\nint g(void) { h(«f»()); int f = 2; return f; }\n"}, "exact", ["a.c:1 f"]),
    ("after the block of a local variable", {"a.c": "int f(void) { return 1; }\nint g(void) { { int f = 2; h(f); } return «f»(); }\n"}, "exact", ["a.c:1 f"]),
    ("loop variable", {"a.c": "int f(void) { return 1; }\nint g(void) { for (int f = 0; «f» < 2;) h(); }\n"}, "name", []),
    ("field", {**A, "b.c": USER + "int g(struct s *x) { return x->«f»(1); }\n"}, "name", []),
    ("initialized field", {**A, "b.c": USER + "struct s x = {.«f» = 1};\n"}, "name", []),
    ("label", {"a.c": "int f(void) { return 1; }\nint g(void) { goto «f»; f: return 2; }\n"}, "name", []),
    ("type and function", {"a.c": "struct f { int x; };\nint f(void) { return 1; }\nint g(void) { struct «f» y; }\n"}, "exact", ["a.c:1 f"]),
    ("function and type", {"a.c": "struct f { int x; };\nint f(void) { return 1; }\nint g(void) { return «f»(); }\n"}, "exact", ["a.c:2 f"]),
    ("type of this name as a function", {**A, "b.c": USER + "int g(void) { «f» x; }\n"}, "name", []),
    ("condition", {**A, "b.c": USER + "#ifdef «f»\n#endif\n"}, "name", []),
    ("macro body", {**A, "b.c": USER + "#define g(f) «f»(1)\n"}, "name", []),
    ("parameter of a macro", {"a.c": "#define F(f) g(f)\nstatic int f = 1;\n", "b.c": "#define F(«f») g(f)\nstatic int f = 1;\n"}, "name", []),
    ("prototype beside a macro", {"a.h": "#ifdef X\nint «f»(int n);\n#else\n#define f(n) 0\n#endif\n"}, "name", []),
    ("prototype of a function of the file", {"a.c": "static int «f»(void);\nstatic int f(void) { return 1; }\n"}, "exact", ["a.c:2 f"]),
    ("parameter of a prototype", {"a.c": "static int f;\nint g(int «f»);\n"}, "name", []),
    ("initial value", {"a.c": "int f(void) { return 1; }\nint (*g)(void) = «f»;\n"}, "exact", ["a.c:1 f"]),
    ("declaration of a local", {"a.c": "int f(void) { return 1; }\nint g(void) { int «f» = 2; return f; }\n"}, "name", []),
    ("macro of the file", {"a.c": "#define F(n) n\nint g(void) { return «F»(1); }\n"}, "exact", ["a.c:1 F"]),
    ("function and macro", {"a.c": "int f(int n) { return n; }\n#define f(n) 1\nint g(void) { return «f»(1); }\n"}, "name", ["a.c:1 f", "a.c:2 f"]),
    ("two definitions by condition", {"a.c": "#ifdef X\nint f(void) { return 1; }\n#else\nint f(int n) { return n; }\n#endif\nint g(void) { return «f»(); }\n"}, "name", ["a.c:2 f", "a.c:4 f"]),
    ("two definitions", {**A, "c.c": "int f(int n) { return -n; }\n", "b.c": "int g(void) { return «f»(1); }\n"}, "name", ["a.c:2 f", "c.c:1 f"]),
    ("function of the system", {"b.c": "#include <stdio.h>\nint g(void) { return «puts»(0); }\n"}, "name", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
