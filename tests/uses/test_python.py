"""Uses of names in Python, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("function of the file", {"a.py": "def f(): pass\n«f»()\n"}, "exact", ["a.py:1 f"]),
    ("imported function", {"a.py": "def f(): pass\n", "b.py": "from a import f\n«f»()\n"}, "exact", ["a.py:1 f"]),
    ("alias", {"a.py": "def f(): pass\n", "b.py": "from a import f as g\n«g»()\n"}, "exact", ["a.py:1 f"]),
    ("second name of a line", {"a.py": "def f(): pass\ndef g(): pass\n", "b.py": "from a import f, g\n«g»()\n"}, "exact", ["a.py:2 g"]),
    ("name beside a module", {"p/__init__.py": "def f(): pass\ndef g(): pass\n", "p/m.py": "def g(): pass\n", "b.py": "from p import m, f, g\n«g»()\n"}, "exact", ["p/__init__.py:2 g"]),
    ("module", {"a.py": "def f(): pass\n", "b.py": "import a\na.«f»()\n"}, "exact", ["a.py:1 f"]),
    ("module alias", {"p/__init__.py": "", "p/a.py": "def f(): pass\n", "b.py": "import p.a as z\nz.«f»()\n"}, "exact", ["p/a.py:1 f"]),
    ("dotted module", {"p/__init__.py": "", "p/a.py": "def f(): pass\n", "b.py": "import p.a\np.a.«f»()\n"}, "exact", ["p/a.py:1 f"]),
    ("module from a package", {"p/__init__.py": "", "p/a.py": "def f(): pass\n", "b.py": "from p import a\na.«f»()\n"}, "exact", ["p/a.py:1 f"]),
    ("relative", {"p/__init__.py": "", "p/a.py": "def f(): pass\n", "p/b.py": "from .a import f\n«f»()\n"}, "exact", ["p/a.py:1 f"]),
    ("re-export", {"p/__init__.py": "from p.a import f\n", "p/a.py": "def f(): pass\n", "b.py": "from p import f\n«f»()\n"}, "exact", ["p/a.py:1 f"]),
    ("star import", {"a.py": "def f(): pass\n", "b.py": "from a import *\n«f»()\n"}, "exact", ["a.py:1 f"]),
    ("class member", {"a.py": "class A:\n    def f(self): pass\n", "b.py": "from a import A\nA.«f»(1)\n"}, "exact", ["a.py:2 A.f"]),
    ("self", {"a.py": "class A:\n    def f(self): pass\n    def g(self): self.«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("inherited", {"a.py": "class A:\n    def f(self): pass\n", "b.py": "from a import A\nclass B(A):\n    def g(self): self.«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("module variable", {"a.py": "class A:\n    def f(self): pass\napp = A()\n", "b.py": "from a import app\napp.«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("annotated parameter", {"a.py": "class A:\n    def f(self): pass\ndef g(x: A): x.«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("constructed local", {"a.py": "class A:\n    def f(self): pass\ndef g():\n    x = A()\n    x.«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("field", {"a.py": "class A:\n    def f(self): pass\nclass B:\n    a: A\n    def g(self): self.a.«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("nested function", {"a.py": "def f(): pass\ndef g():\n    def f(): pass\n    «f»()\n"}, "exact", ["a.py:3 g.f"]),
    ("parameter hides function", {"a.py": "def f(): pass\ndef g(f): «f»()\n"}, "name", []),
    ("parameter of unknown type", {"a.py": "class A:\n    def f(self): pass\ndef g(x): x.«f»()\n"}, "name", []),
    ("method named as its caller", {"a.py": "class A:\n    def f(self): «f»()\ndef f(): pass\n"}, "exact", ["a.py:3 f"]),
    ("external module", {"a.py": "def join(): pass\n", "b.py": "import os.path\nos.path.«join»()\n"}, "external", []),
    ("import hidden by a local", {"a.py": "def f(): pass\n", "b.py": "from a import f\ndef g():\n    f = 1\n    «f»()\n"}, "name", []),
    ("result of a call", {"a.py": "class A:\n    def f(self): pass\ndef g(): g().«f»()\n"}, "name", []),
    ("keyword argument", {"a.py": "def f(): pass\ng(«f»=1)\n"}, "name", []),
    ("conditional import", {"a.py": "try:\n    from b import f\nexcept ImportError:\n    def f(): pass\n«f»()\n", "b.py": "def f(): pass\n"}, "name", ["a.py:4 f", "b.py:1 f"]),
    ("base outside", {"a.py": "import x\nclass A(x.B):\n    def g(self): self.«f»()\ndef f(): pass\n"}, "name", []),
    ("builtin", {"a.py": "class A:\n    def print(self): «print»()\n"}, "external", []),
    ("one of two branches", {"a.py": "class A:\n    def m(self): ...\nclass B:\n    def m(self): ...\ndef f(x):\n    if x:\n        y = A()\n    else:\n        y = B()\n    y.«m»()\n"}, "name", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
