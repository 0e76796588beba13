"""C and C++: files are linked by functions that headers declare, and by members of classes."""

# ruff: noqa: E501  # Each project is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.tasks.resolution.implicit_links import implicit_links

H = {"a.h": "int f(int n);\n"}
C = {"a.c": '#include "a.h"\nint f(int n) { return n; }\n'}

PROJECTS: list[tuple[str, Mapping[str, str], list[str]]] = [
    ("call", {**H, **C, "b.c": '#include "a.h"\nint g(void) { return f(1); }\n'}, ["b.c -> a.c exact f"]),
    ("declared in another header", {"all.h": "int f(int n);\n", "a.c": "int f(int n) { return n; }\n", "b.c": '#include "all.h"\nint g(void) { return f(1); }\n'}, ["b.c -> a.c exact f"]),
    ("pointer result", {"all.h": "char *f(int n);\n", "a.c": "char *f(int n) { return 0; }\n", "b.c": '#include "all.h"\nint g(void) { f(1); }\n'}, ["b.c -> a.c exact f"]),
    ("header named after the file", {"a.h": "DECLARE(f)\n", **C, "b.c": '#include "a.h"\nint g(void) { return f(1); }\n'}, ["b.c -> a.c exact f"]),
    ("header not included", {"all.h": "int f(int n);\n", "x/a.c": "int f(int n) { return n; }\n", "b.c": "int g(void) { return f(1); }\n"}, ["b.c -> x/a.c file f"]),
    ("not declared, other directory", {"x/a.c": "int f(int n) { return n; }\n", "b.c": "int g(void) { return f(1); }\n"}, []),
    ("address in a table", {**H, **C, "b.c": '#include "a.h"\nstruct t x[] = {{"f", f}, {.g = f}};\n'}, ["b.c -> a.c exact f"]),
    ("passed as an argument", {**H, **C, "b.c": '#include "a.h"\nint g(void) { run(f); }\n'}, ["b.c -> a.c exact f"]),
    ("variable of a table", {"a.c": "const struct t one = {0};\n", "b.c": "extern const struct t one;\nconst struct t *x[] = {&one};\n"}, ["b.c -> a.c file one"]),
    ("static function elsewhere", {**H, "a.c": "static int f(int n) { return n; }\n", "b.c": '#include "a.h"\nint g(void) { return f(1); }\n'}, []),
    ("own static function", {**H, **C, "b.c": "static int f(int n) { return n; }\nint g(void) { return f(1); }\n"}, []),
    ("prototype of a static function", {"a.h": "extern int one;\n", "a.c": "static int f(void);\nint one = 1;\nstatic int f(void) { return 1; }\n", "b.c": '#include "a.h"\nint *g[] = {&one};\n'}, ["b.c -> a.c exact one"]),
    ("parameter of this name", {**H, **C, "b.c": '#include "a.h"\nint g(int (*f)(int)) { return f(1); }\n'}, ["b.c -> a.c file f"]),
    ("local of this name", {**H, **C, "b.c": '#include "a.h"\nint g(void) { int f = 1; return h(f); }\n'}, []),
    ("pointer of this name", {**H, **C, "b.c": '#include "a.h"\nint g(void) { int (*f)(int) = h; return f(1); }\n'}, ["b.c -> a.c file f"]),
    ("macro of this name", {"a.h": "int f(int n);\n#define f(n) g(n)\n", "a.c": "int f(int n) { return n; }\n", "b.c": '#include "a.h"\nint h(void) { return f(1); }\n'}, ["b.c -> a.c file f"]),
    ("two definitions", {**H, **C, "a2.c": "int f(int n) { return -n; }\n", "b.c": '#include "all.h"\nint g(void) { return f(1); }\n'}, ["b.c -> a.c name f", "b.c -> a2.c name f"]),
    ("two definitions, one named after the header", {**H, **C, "a2.c": "int f(int n) { return -n; }\n", "b.c": '#include "a.h"\nint g(void) { return f(1); }\n'}, ["b.c -> a.c file f"]),
    ("substitute for a system function", {"compat.h": "int f(int n);\n", "compat/a.c": "int f(int n) { return n; }\n", "b.c": '#include "compat.h"\nint g(void) { return f(1); }\n'}, ["b.c -> compat/a.c file f"]),
    ("defined in a test", {**H, "tests/a.c": "int f(int n) { return n; }\n", "src/b.c": '#include "a.h"\nint g(void) { return f(1); }\n'}, []),
    ("field", {**H, **C, "b.c": '#include "a.h"\nint g(struct t *x) { return x->f(1); }\n'}, []),
    ("members of a class", {"a.hpp": "class A { int f(); };\n", "a.cpp": '#include "a.hpp"\nint A::f() { return 1; }\n'}, ["a.hpp -> a.cpp exact A"]),
    ("class in a namespace", {"a.hpp": "namespace n { class A { int f(); }; }\n", "a.cpp": "namespace n { int A::f() { return 1; } }\n"}, ["a.hpp -> a.cpp exact n::A"]),
    ("namespace of a using directive", {"a.hpp": "namespace n { class A { int f(); }; }\n", "a.cpp": "using namespace n;\nint A::f() { return 1; }\n", "b.cpp": "int A::f() { return 2; }\n"}, ["a.hpp -> a.cpp file n::A"]),
    ("two classes of one name", {"a.hpp": "class A { int f(); };\n", "b.hpp": "class A { int f(); };\n", "a.cpp": "int A::f() { return 1; }\n"}, ["a.hpp -> a.cpp file A"]),
    ("members in two files", {"a.hpp": "class A { int f(); int g(); };\n", "a.cpp": "int A::f() { return 1; }\n", "b.cpp": "int A::g() { return 1; }\n"}, ["a.hpp -> a.cpp exact A", "a.hpp -> b.cpp exact A"]),
    ("function of another namespace", {"a.hpp": "namespace n { int f(int); }\n", "a.cpp": "namespace n { int f(int x) { return x; } }\n", "b.cpp": '#include "a.hpp"\nint g() { return m::f(1); }\n'}, []),
    ("function in C++ can be overloaded", {"a.hpp": "namespace n { int f(int); }\n", "a.cpp": "namespace n { int f(int x) { return x; } }\n", "b.cpp": '#include "a.hpp"\nint g() { return n::f(1); }\n'}, ["b.cpp -> a.cpp file n::f"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "links"), [project[1:] for project in PROJECTS], ids=[each[0] for each in PROJECTS])
def test_external_names_are_linked(files: Mapping[str, str], links: list[str]) -> None:
    assert implicit_links(files) == links
