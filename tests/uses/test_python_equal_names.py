"""Python: definitions with equal names. A use is exact only if scope and imports leave no other definition."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

F = "def f(): pass\n"
SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("method named as its caller", {"a.py": f"{F}class A:\n    def f(self): return «f»()\n"}, "exact", ["a.py:1 f"]),
    ("import hidden by a parameter", {"a.py": F, "b.py": "from a import f\ndef g(f): return «f»()\n"}, "name", []),
    ("import hidden by an import", {"a.py": F, "c.py": F, "b.py": "from a import f\ndef g():\n    from c import f\n    return «f»()\n"}, "exact", ["c.py:1 f"]),
    ("import in another function", {"a.py": F, "b.py": "def g():\n    from a import f\ndef h(): return «f»()\n"}, "name", []),
    ("re-export chain", {"p/__init__.py": "from .q import f\n", "p/q/__init__.py": "from .r import f\n", "p/q/r.py": F, "b.py": "from p import f\n«f»()\n"}, "exact", ["p/q/r.py:1 f"]),
    ("module named as its function", {"x/__init__.py": "from .x import x\n", "x/x.py": "def x(): pass\n", "b.py": "from x import x\n«x»()\n"}, "exact", ["x/x.py:1 x"]),
    ("class attribute and function", {"a.py": f"{F}class A:\n    f = 1\n    def g(self): return «f»()\n"}, "exact", ["a.py:1 f"]),
    ("class attribute in its class", {"a.py": f"{F}class A:\n    f = 1\n    g = «f»\n"}, "exact", ["a.py:3 A.f"]),
    ("class attribute before it is bound", {"a.py": f"{F}class A:\n    f = «f»\n"}, "exact", ["a.py:1 f"]),
    ("method in an annotation of another", {"a.py": "class list: pass\nclass A:\n    def list(self) -> «list»: pass\n"}, "exact", ["a.py:1 list"]),
    ("default value and parameter", {"a.py": f"{F}def g(f=«f»): pass\n"}, "exact", ["a.py:1 f"]),
    ("annotation and parameter", {"a.py": "class date: pass\ndef g(date: «date»): pass\n"}, "exact", ["a.py:1 date"]),
    ("comprehension variable", {"a.py": f"{F}x = [«f» for f in y]\n"}, "name", []),
    ("first iterable of a comprehension", {"a.py": f"{F}x = [f for f in «f»()]\n"}, "exact", ["a.py:1 f"]),
    ("class attribute in a comprehension", {"a.py": f"{F}class A:\n    f = 1\n    x = [«f» for y in z]\n"}, "exact", ["a.py:1 f"]),
    ("walrus in a comprehension", {"a.py": f"{F}def g():\n    [f := 1 for y in z]\n    return «f»\n"}, "name", []),
    ("global name that a function sets", {"a.py": "f = 0\ndef g():\n    global f\n    f = 1\n    return «f»\n"}, "exact", ["a.py:1 f"]),
    ("local of the function around", {"a.py": f"{F}def g():\n    f = 1\n    def h():\n        nonlocal f\n        f = 2\n        return «f»\n"}, "name", []),
    ("name of a pattern", {"a.py": f"{F}def g(x):\n    match x:\n        case [f, *y]: return «f»\n"}, "name", []),
    ("class of a pattern", {"a.py": "class A: pass\ndef g(x):\n    match x:\n        case «A»(): pass\n"}, "exact", ["a.py:1 A"]),
    ("name of an exception", {"a.py": f"{F}def g():\n    try: pass\n    except E as f: return «f»\n"}, "name", []),
    ("type parameter", {"a.py": "class T: pass\ndef g[T](x): return «T»\n"}, "name", []),
    ("type argument is no type parameter", {"a.py": "class T: pass\nx: dict[str, T]\ny = «T»\n"}, "exact", ["a.py:1 T"]),
    ("function or variable", {"a.py": "def g(x):\n    if x: h = 1\n    else:\n        def h(): pass\n    return «h»\n"}, "name", ["a.py:4 g.h"]),
    ("keyword named as a function", {"a.py": f"{F}g(«f»=1)\n"}, "name", []),
    ("attribute of an unknown object", {"a.py": f"{F}def g(x): x.«f»()\n"}, "name", []),
    ("result of an external function", {"a.py": f"import b\n{F}b.g().«f»()\n"}, "name", []),
    ("super", {"a.py": "class A:\n    def f(self): pass\nclass B(A):\n    def f(self): super().«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("decorator", {"a.py": "def d(x): return x\nclass A:\n    def d(self): pass\n    @«d»\n    def e(self): pass\n"}, "exact", ["a.py:3 A.d"]),
    ("private name of a star import", {"a.py": "def _f(): pass\n", "b.py": "from a import *\n«_f»()\n"}, "name", []),
    ("name that __all__ leaves out", {"a.py": f"__all__ = ['g']\n{F}def g(): pass\n", "b.py": "from a import *\n«f»()\n"}, "name", []),
    ("name that __all__ may leave out", {"a.py": f"__all__ = make()\n{F}", "b.py": "from a import *\n«f»()\n"}, "inferred", ["a.py:2 f"]),
    ("star import of an external module", {"a.py": F, "b.py": "from a import *\nfrom outside import *\n«f»()\n"}, "inferred", ["a.py:1 f"]),
    ("comment that ends with a dot", {"a.py": f"class A: pass\n{F}# See A.\n«f»()\n"}, "exact", ["a.py:2 f"]),
    ("other member of the package", {"p/__init__.py": "", "p/a.py": F, "p/c.py": F, "b.py": "import p.a\nimport p.c\np.a.«f»()\n"}, "exact", ["p/a.py:1 f"]),
    ("base after an unknown base", {"a.py": "import x\nclass A:\n    def f(self): pass\nclass B(x.Y, A): pass\nB.«f»\n"}, "inferred", ["a.py:3 A.f"]),
    ("variable of a base", {"a.py": "class A:\n    f = 1\nclass B(A): pass\nB.«f»\n"}, "inferred", ["a.py:2 A.f"]),
    ("object that a with statement enters", {"a.py": "class A:\n    def __enter__(self: T) -> T: return self\n    def f(self): pass\ndef g():\n    with A() as x: x.«f»()\n"}, "inferred", ["a.py:3 A.f"]),
    ("object of an asynchronous with statement", {"a.py": "class A:\n    async def __aenter__(self): return self\n    def f(self): pass\nasync def g():\n    async with A() as x: x.«f»()\n"}, "inferred", ["a.py:3 A.f"]),
    ("diamond of bases", {"a.py": "class A:\n    f = 1\nclass B(A): pass\nclass C(A):\n    f = 2\nclass D(B, C): pass\nD.«f»\n"}, "inferred", ["a.py:2 A.f"]),
    ("variable set to two classes", {"a.py": "class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\ndef g(c):\n    x = A() if c else B()\n    x.«f»()\n"}, "name", []),
    ("last assignment before the use", {"a.py": "class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\ndef g():\n    x = A()\n    x = B()\n    x.«f»()\n"}, "inferred", ["a.py:4 B.f"]),
    ("parameter of a function with a result type", {"a.py": "class A:\n    def f(self): pass\ndef g(x) -> A: x.«f»()\n"}, "name", []),
    ("loop over objects of a class", {"a.py": "class A:\n    def f(self): pass\ndef g():\n    for x in A(): x.«f»()\n"}, "name", []),
    ("loop over a list of a class", {"a.py": "class A:\n    def f(self): pass\ndef g(xs: list[A]):\n    for x in xs: x.«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("result of a function", {"a.py": "class A:\n    def f(self): pass\ndef g() -> 'A': ...\ng().«f»()\n"}, "inferred", ["a.py:2 A.f"]),
    ("result of a decorated function", {"a.py": "class A:\n    def f(self): pass\n@d\ndef g(): return A()\ng().«f»()\n"}, "name", []),
    ("field that a base declares", {"a.py": "class A:\n    f: int\nclass B(A):\n    def __init__(self): self.f = 1\n    def g(self): return self.«f»\n"}, "inferred", ["a.py:2 A.f"]),
    ("name that a class body binds itself", {"a.py": "__module__ = 1\nclass A: x = «__module__»\n"}, "name", []),
    ("arrow before a type", {"a.py": "class A: pass\nx = (1,)\ndef g(\n) -> «A»: pass\n"}, "exact", ["a.py:1 A"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "certainty", "places"), [pytest.param(*shape, id=name) for name, *shape in SHAPES])
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
