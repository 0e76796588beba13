"""Scopes and names of Python files."""

from __future__ import annotations

import pytest

from codebatch_workers.syntax.bindings import find_bindings
from tests.support.source_files import source

# Each text has one use of `x`, which is the last one. The numbers are the lines of the definitions that it sees.
SEEN = {
    "x = 1\nx": [1],
    "def f():\n x = 1\nx": [],
    "x = 1\ndef f(x): x": [2],
    "x = 1\ndef f(y=x): pass": [1],
    "x = 1\ndef f(x=x): pass": [1],
    "x = 1\ndef f(x: x): pass": [1],
    "x = 1\ndef f() -> x: x = 2": [1],
    "x = 1\nlambda x: x": [2],
    "x = 1\nlambda x=x: 0": [1],
    "x = 1\nclass A:\n x = 2\n def f(self): x": [1],
    "x = 1\nclass A:\n x = 2\n y = x": [3],
    "x = 1\nclass A:\n x = x": [1],
    "x = 1\nclass A:\n def x(self): pass\n def y(self): x": [1],
    "x = 1\nclass A:\n x = 2\n def f(self, y=x): pass": [3],
    "x = 1\nclass A:\n x = 2\n [x for y in z]": [1],
    "x = 1\nclass A:\n x = 2\n [y for y in x]": [3],
    "x = 1\n[x for x in y]": [2],
    "x = 1\n[x for x in y for z in x]": [2],
    "x = 1\ndef f():\n [y for y in z if (x := y)]\n x": [3],
    "x = 1\ndef f():\n global x\n x = 2\n x": [1, 4],
    "x = 1\ndef f():\n x = 2\n def g():\n  nonlocal x\n  x = 3\n x": [3, 6],
    "x = 1\ndef f():\n del x\n x": [3],
    "x = 1\ndef f():\n for x, y in z: x": [3],
    "x = 1\ndef f():\n with a() as (x, y): x": [3],
    "x = 1\ndef f():\n try: pass\n except E as x: x": [4],
    "x = 1\ndef f(*x): x": [2],
    "x = 1\ndef f(**x: int): x": [2],
    "x = 1\ndef f():\n match y:\n  case {'a': x}: x": [4],
    "x = 1\ndef f():\n match y:\n  case A(b=x): x": [4],
    "x = 1\ndef f():\n match y:\n  case [1, *x]: x": [4],
    "x = 1\ndef f():\n match y:\n  case int() as x: x": [4],
    "x = 1\ndef f():\n match y:\n  case m.x: x": [1],
    "x = 1\ndef f():\n import x.y\n x": [3],
    "x = 1\ndef f():\n import y as x\n x": [3],
    "import x\ndef x(): pass\nx = 1\nimport x\nx": [1, 2, 3, 4],
    "x = 1\ndef f():\n from y import x as z\n x": [1],
    "x = 1\ndef f[x](y): x": [2],
    "x = 1\nclass A[x]:\n y: x": [2],
    "x = 1\ntype A[x] = x": [2],
    "type x = int\nx": [1],
    "y: dict[str, x]\nx": [],
    "x = 1\ndef f():\n class x: pass\n x": [3],
    "def f():\n class A: pass\n A\nclass x: pass\nx": [4],
}


@pytest.mark.parametrize(("text", "lines"), SEEN.items(), ids=SEEN)
def test_a_use_sees_definitions(text: str, lines: list[int]) -> None:
    file = source("a.py", text)
    bindings = find_bindings(file)
    assert bindings is not None
    found = bindings.find_definitions(_last_use(text), b"x")
    assert list(dict.fromkeys(file.line(definition.start) for definition in found[1]) if found else ()) == lines


def _last_use(text: str) -> int:
    """Return the offset of the last `x`, or of the one in the default value or type before the end of a function."""
    uses = {"y=x)": 2, "x=x)": 2, "x: x)": 3, "-> x": 3, "x=x:": 2}
    for part, offset in uses.items():
        if part in text:
            return text.index(part) + offset
    return text.rindex("x")
