"""Uses of names in C#, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

A = """namespace A;
public class Base { public Base B; public void M() {} public static void S(int a) {} public class Inner { public void I() {} } }
public class Child : Base { public void N(int a) {} public void N(int a, int b) {} public void O(string s) {} public void O(int i) {} public override string ToString() => null; }
public enum Color { Red }
public interface IThing { void T(); Task<Child> Get(); }
public class Thing : IThing { public void T() {} public Child C { get; } public Task<Child> Get() => null; }
public partial class Part { public void P1() {} }
public class RouteAttribute {}
public class Box<T> { public void G() {} }
public class Ext : External { public void X() {} }
"""


def use(code: str, header: str = "namespace A;") -> Mapping[str, str]:
    return {"a.cs": A, "u.cs": f"{header}\n{code}\n"}


def method(code: str, parameters: str = "", members: str = "", base: str = "") -> Mapping[str, str]:
    return use(f"class U {base} {{ {members} void F({parameters}) {{ {code} }} }}")


SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("type of the namespace", method("new «Base»();"), "exact", ["a.cs:2 Base"]),
    ("type by using", use("class U { «Base» b; }", "using A;\nnamespace X;"), "exact", ["a.cs:2 Base"]),
    ("type of another namespace", use("class U { «Base» b; }", "namespace X;"), "name", []),
    ("alias", use("class U { «Z» b; }", "using Z = A.Base;\nnamespace X;"), "exact", ["a.cs:2 Base"]),
    ("written in full", use("class U { A.«Base» b; }", "namespace X;"), "exact", ["a.cs:2 Base"]),
    ("namespace", use("class U { «A».Base b; }", "namespace X;"), "name", []),
    ("nested type", method("new Base.«Inner»();"), "exact", ["a.cs:2 Base.Inner"]),
    ("attribute", use("[«Route»] class U {}"), "exact", ["a.cs:8 RouteAttribute"]),
    ("type argument", method("List<«Base»> x;"), "exact", ["a.cs:2 Base"]),
    ("type parameter", use("class U<Base> { «Base» b; }"), "name", []),
    ("other arity", use("class U { «Box» b; Box<int> c; }"), "name", []),
    ("own type of the same name", use("class Base {} class U { «Base» b; }", "using A;\nnamespace X;"), "exact", ["u.cs:3 Base"]),
    ("static method", method("Base.«S»(1);"), "exact", ["a.cs:2 Base.S"]),
    ("inherited static method", method("Child.«S»(1);"), "exact", ["a.cs:2 Base.S"]),
    ("enum member", method("var c = Color.«Red»;"), "exact", ["a.cs:4 Color.Red"]),
    ("enum", method("var c = «Color».Red;"), "exact", ["a.cs:4 Color"]),
    ("overload by number of arguments", method("c.«N»(1, 2);", "Child c"), "inferred", ["a.cs:3 Child.N"]),
    ("overload by type", method("c.«O»(1);", "Child c"), "inferred", ["a.cs:3 Child.O"]),
    ("method of an object", method("«N»(1);", base=": Child"), "exact", ["a.cs:3 Child.N"]),
    ("inherited method", method("this.«M»();", base=": Child"), "exact", ["a.cs:2 Base.M"]),
    ("base", method("base.«M»();", base=": Child", members="void M() {}"), "exact", ["a.cs:2 Base.M"]),
    ("hiding method", method("«M»();", base=": Child", members="new void M() {}"), "exact", ["u.cs:2 U.M"]),
    ("overload in a base", method("«M»();", base=": Child", members="void M(int i = 0) {}"), "name", ["a.cs:2 Base.M", "u.cs:2 U.M"]),
    ("class with an external base", method("«X»();", base=": Ext"), "inferred", ["a.cs:10 Ext.X"]),
    ("method of an external base", method("«Y»();", base=": Ext"), "name", []),
    ("local function", method("void M() {} «M»();", base=": Child"), "exact", ["u.cs:2 U.F.M"]),
    ("parameter named as a method", method("«M»();", "Action M", base=": Child"), "name", []),
    ("parameter named as a type", method("«Base».S(1);", "Child Base"), "name", []),
    ("property named as its type", method("«Color».ToString();", members="Color Color { get; }"), "name", []),
    ("property named as another type", method("Base.«N»(1);", members="Child Base { get; }"), "inferred", ["a.cs:3 Child.N"]),
    ("interface does not give members to a class", method("«T»();", base=": Base, IThing"), "name", []),
    ("parameter", method("b.«M»();", "Base b"), "inferred", ["a.cs:2 Base.M"]),
    ("lambda parameter", method("G((Base b) => b.«M»());"), "inferred", ["a.cs:2 Base.M"]),
    ("parameter of another function", method("b.«M»();", members="void G(Base b) {}"), "name", []),
    ("constructed variable", method("var b = new Base(); b.«M»();"), "inferred", ["a.cs:2 Base.M"]),
    ("variable of another block", method("{ Base b = null; } b.«M»();"), "name", []),
    ("variable of a pattern", method("if (o is Base b) b.«M»();", "object o"), "inferred", ["a.cs:2 Base.M"]),
    ("field", method("f.«M»();", members="Base f;"), "inferred", ["a.cs:2 Base.M"]),
    ("field of a field", method("f.B.«M»();", members="Base f;"), "inferred", ["a.cs:2 Base.M"]),
    ("null-conditional", method("b?.«M»();", "Base b"), "inferred", ["a.cs:2 Base.M"]),
    ("cast", method("((Base)o).«M»();", "object o"), "inferred", ["a.cs:2 Base.M"]),
    ("awaited result", method("var c = await t.Get(); c.«N»(1);", "IThing t"), "inferred", ["a.cs:3 Child.N"]),
    ("result that is not awaited", method("var c = t.Get(); c.«N»(1);", "IThing t"), "name", []),
    ("element of a list", method("l[0].«M»();", "List<Base> l"), "name", []),
    ("element of an array", method("l.«M»();", "Base[] l"), "name", []),
    ("object initializer", method("new Thing { «C» = null };", members="int C;"), "exact", ["a.cs:6 Thing.C"]),
    ("initializer of another object", method("Base b = new() { «B» = null };", members="int B;"), "name", []),
    ("type that contains its constructor", use("class V { V() {} class W { public static void S() {} } void F() { V.W.«S»(); } }"), "exact", ["u.cs:2 V.W.S"]),
    ("named argument", method("G(«M»: 1);", base=": Base"), "name", []),
    ("extension method", {**use("static class E { static void X(this Base b) {} void F(Base b) { b.«X»(); } }")}, "name", []),
    ("other part of a type", {**use("partial class Part { void F() { Part p; «P1»(); } }")}, "exact", ["a.cs:7 Part.P1"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "certainty", "places"), [pytest.param(*shape, id=name) for name, *shape in SHAPES])
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
