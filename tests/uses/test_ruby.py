"""Uses of names in Ruby, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

A = {"lib/a.rb": "class A\n  def self.f; end\n  def g; end\n  X = 1\nend\n"}
M_B = {"lib/m/b.rb": "module M\n  class B\n    def self.f; end\n  end\nend\n"}

SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("class", {**A, "b.rb": "«A».new\n"}, "exact", ["lib/a.rb:1 A"]),
    ("constant of a class", {**A, "b.rb": "A::«X»\n"}, "exact", ["lib/a.rb:4 A.X"]),
    ("class method", {**A, "b.rb": "A.«f»\n"}, "exact", ["lib/a.rb:2 A.f"]),
    ("method of an instance, called on the class", {**A, "b.rb": "A.«g»\n"}, "name", []),
    ("written in full", {**M_B, "b.rb": "M::B.«f»\n"}, "exact", ["lib/m/b.rb:3 M.B.f"]),
    ("enclosing module", {**M_B, "lib/m/c.rb": "module M\n  class C\n    def g; «B».f; end\n  end\nend\n"}, "exact", ["lib/m/b.rb:2 M.B"]),
    ("constant of the class", {"a.rb": "class A\n  X = 1\n  def f; «X»; end\nend\n"}, "exact", ["a.rb:2 A.X"]),
    ("constant of the enclosing class", {"a.rb": "class A\n  X = 1\n  class B\n    def f; «X»; end\n  end\nend\n"}, "exact", ["a.rb:2 A.X"]),
    ("constant that is not in the nesting", {"a.rb": "class A\n  X = 1\nend\nclass A::B\n  def f; «X»; end\nend\n"}, "name", []),
    ("inner before outer", {"a.rb": "X = 0\nclass A\n  X = 1\n  def f; «X»; end\nend\n"}, "exact", ["a.rb:3 A.X"]),
    ("outermost, from a class with a superclass", {"a.rb": "X = 0\nclass A < B\n  def f; «X»; end\nend\n"}, "inferred", ["a.rb:1 X"]),
    ("same name, other scope", {**M_B, "c.rb": "module M\n  B\nend\nmodule N\n  «B»\nend\n"}, "name", []),
    ("superclass with the name of an inner class", {"a.rb": "class B; end\nclass A < «B»\n  class B; end\nend\n"}, "exact", ["a.rb:1 B"]),
    ("constant of a value", {**A, "b.rb": "x.class::«X»\n"}, "name", []),
    ("self in an instance method", {"a.rb": "class A\n  def f; end\n  def g; self.«f»; end\nend\n"}, "inferred", ["a.rb:2 A.f"]),
    ("self in a class method", {"a.rb": "class A\n  def f; end\n  def self.f; end\n  def self.g; self.«f»; end\nend\n"}, "inferred", ["a.rb:3 A.f"]),
    ("self in a class body", {"a.rb": "class A\n  def f; end\n  self.«f»\nend\n"}, "name", []),
    ("singleton class", {"a.rb": "class A\n  class << self\n    def f; end\n  end\nend\nA.«f»\n"}, "exact", ["a.rb:3 A.f"]),
    ("method of a variable", {**A, "b.rb": "def h(a) = a.«f»\n"}, "name", []),
    ("method without a receiver", {"a.rb": "def f; end\ndef g(f) = «f»\n"}, "name", []),
    ("method named as its class", {"a.rb": "class A\n  def A; end\n  def g; self.«A»; end\nend\n"}, "inferred", ["a.rb:2 A.A"]),
    ("two classes", {"x.rb": "class A; end\n", "y.rb": "class A; end\n", "b.rb": "«A».new\n"}, "name", ["x.rb:1 A", "y.rb:1 A"]),
    ("constant of a gem", {**A, "b.rb": "«Gem2».new\n"}, "name", []),
    ("class of the core", {"string.rb": "class String\n  def f; end\nend\n", "b.rb": "«String».new\n"}, "name", []),
    ("redefined method", {"a.rb": "class A\n  def self.f; end\n  def self.f; end\nend\nA.«f»\n"}, "name", ["a.rb:2 A.f", "a.rb:3 A.f"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
