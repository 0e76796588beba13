"""Uses of names in Go, resolved to definitions. go/types confirms the shapes."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

_MODULE = {"go.mod": "module m\n"}
_A = "package a\n\nfunc F() *T { return nil }\n\ntype T struct { n int; next *T }\n\nfunc (t *T) M() (int, T) { return 0, T{} }\n\nvar V T\n\ntype I interface { M() }\n"
_USE = 'package b\n\nimport "m/a"\n\n'

SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("function of the file", {"a.go": "package a\nfunc f() {}\nfunc g() { «f»() }\n"}, "exact", ["a.go:2 f"]),
    ("function of the package", {"a.go": "package a\nfunc f() {}\n", "b.go": "package a\nfunc g() { «f»() }\n"}, "exact", ["a.go:2 f"]),
    ("function passed", {"a.go": "package a\nfunc f() {}\nvar g = h(«f»)\n"}, "exact", ["a.go:2 f"]),
    ("package function", {"a/a.go": _A, "b.go": _USE + "var x = a.«F»()\n"}, "exact", ["a/a.go:3 F"]),
    ("package type", {"a/a.go": _A, "b.go": _USE + "var x a.«T»\n"}, "exact", ["a/a.go:5 T"]),
    ("alias of a package", {"a/a.go": _A, "b.go": 'package b\nimport z "m/a"\nvar x = z.«F»()\n'}, "exact", ["a/a.go:3 F"]),
    ("package named unlike its directory", {"x/a.go": _A, "b.go": 'package b\nimport "m/x"\nvar x = a.«F»()\n'}, "exact", ["x/a.go:3 F"]),
    ("dot import", {"a/a.go": _A, "b.go": 'package b\nimport . "m/a"\nvar x = «F»()\n'}, "exact", ["a/a.go:3 F"]),
    ("receiver", {"a.go": _A + "func (t *T) g() { t.«M»() }\n"}, "inferred", ["a.go:7 T.M"]),
    ("parameter", {"a/a.go": _A, "b.go": _USE + "func g(x *a.T) { x.«M»() }\n"}, "inferred", ["a/a.go:7 T.M"]),
    ("interface", {"a/a.go": _A, "b.go": _USE + "func g(x a.I) { x.«M»() }\n"}, "inferred", ["a/a.go:11 I.M"]),
    ("variable", {"a/a.go": _A, "b.go": _USE + "func g() { a.V.«M»() }\n"}, "inferred", ["a/a.go:7 T.M"]),
    ("composite literal", {"a/a.go": _A, "b.go": _USE + "func g() { x := &a.T{}; x.«M»() }\n"}, "inferred", ["a/a.go:7 T.M"]),
    ("new", {"a/a.go": _A, "b.go": _USE + "func g() { x := new(a.T); x.«M»() }\n"}, "inferred", ["a/a.go:7 T.M"]),
    ("type assertion", {"a/a.go": _A, "b.go": _USE + "func g(y any) { x, ok := y.(*a.T); x.«M»() }\n"}, "inferred", ["a/a.go:7 T.M"]),
    ("result of a function", {"a/a.go": _A, "b.go": _USE + "func g() { x := a.F(); x.«M»() }\n"}, "inferred", ["a/a.go:7 T.M"]),
    ("second result of a method", {"a.go": _A + "func (t *T) g() { _, x := t.M(); x.«n» = 1 }\n"}, "inferred", ["a.go:5 T.n"]),
    ("field of a field", {"a.go": _A + "func g(t T) { t.next.«n» = 1 }\n"}, "inferred", ["a.go:5 T.n"]),
    ("method in another file", {"a.go": "package a\ntype T struct{}\n", "b.go": "package a\nfunc (t T) M() {}\n", "c.go": "package a\nfunc g(t T) { t.«M»() }\n"}, "inferred", ["b.go:2 T.M"]),
    ("promoted method", {"a.go": _A + "type U struct { *T }\nfunc g(u U) { u.«M»() }\n"}, "inferred", ["a.go:7 T.M"]),
    ("key of a literal", {"a/a.go": _A, "b.go": _USE + "var x = a.T{«next»: nil}\n"}, "exact", ["a/a.go:5 T.next"]),
    ("key of a literal in a slice", {"a.go": _A + "var x = []*T{{«n»: 1}}\n"}, "exact", ["a.go:5 T.n"]),
    ("key of a map", {"a.go": "package a\nconst K = 1\nvar x = map[int]int{«K»: 1}\n"}, "exact", ["a.go:2 K"]),
    ("chain over two lines", {"a.go": _A + "func g(t T) { t.\n\t«M»() }\nfunc M() {}\n"}, "inferred", ["a.go:7 T.M"]),
    ("type with the name of a field", {"a.go": "package a\ntype U struct { T «T» }\ntype T int\n"}, "exact", ["a.go:3 T"]),
    ("method named as its caller", {"a.go": "package a\ntype T int\nfunc (t T) f() { «f»() }\nfunc f() {}\n"}, "exact", ["a.go:4 f"]),
    ("local hides function", {"a.go": "package a\nfunc f() {}\nfunc g() { f := h(); «f»() }\n"}, "name", []),
    ("value sees the outer name", {"a.go": "package a\nfunc f() int { return 1 }\nfunc g() { f := «f»(); _ = f }\n"}, "exact", ["a.go:2 f"]),
    ("type of a parameter of this name", {"a.go": "package a\ntype t int\nfunc g(t «t») {}\n"}, "exact", ["a.go:2 t"]),
    ("parameter hides function", {"a.go": "package a\nfunc f() {}\nfunc g(f func()) { «f»() }\n"}, "name", []),
    ("block ends", {"a.go": "package a\nfunc f() {}\nfunc g() { { f := 1; _ = f }; «f»() }\n"}, "exact", ["a.go:2 f"]),
    ("local hides import", {"a/a.go": _A, "b.go": _USE + "func g(a X) { a.«F»() }\n"}, "name", []),
    ("local type", {"a.go": "package a\ntype T int\nfunc g() { type T int; var x «T» }\n"}, "exact", ["a.go:3 g.T"]),
    ("type parameter", {"a.go": "package a\ntype T int\nfunc g[T any](x «T») {}\n"}, "name", []),
    ("field of an anonymous struct", {"a.go": "package a\ntype want int\nvar x struct { «want» int }\n"}, "name", []),
    ("key of an anonymous struct", {"a.go": "package a\ntype want int\nvar x = []struct{ want int }{{«want»: 1}}\n"}, "name", []),
    ("type named as the package", {"a.go": "package a\ntype a int\n", "b.go": "package a\nvar x «a»\n"}, "exact", ["a.go:2 a"]),
    ("embedded field hides a deeper method", {"a.go": "package a\ntype T struct { E; F }\ntype E int\ntype F int\nfunc (f F) E() {}\nfunc g(t T) { t.«E»() }\n"}, "name", []),
    ("external package", {"a.go": 'package a\nimport "fmt"\nfunc Println() {}\nfunc g() { fmt.«Println»() }\n'}, "external", []),
    ("result of a call", {"a.go": _A + "func M() {}\nfunc g() { F().«M»() }\n"}, "name", []),
    ("files for two systems", {"a_linux.go": "package a\nfunc f() {}\n", "a_windows.go": "package a\nfunc f() {}\n", "b.go": "package a\nfunc g() { «f»() }\n"}, "name", ["a_linux.go:2 f", "a_windows.go:2 f"]),
    ("other package of the directory", {"a.go": "package a\nfunc f() {}\n", "a_test.go": "package a_test\nfunc g() { «f»() }\n"}, "name", []),
    ("slice of a type", {"a.go": _A + "func M() {}\nfunc g(t []T) { t.«M»() }\n"}, "name", []),
    ("builtin", {"a.go": "package a\nfunc (t T) len() { «len»() }\n"}, "name", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked({**_MODULE, **files}) == (certainty, places)
