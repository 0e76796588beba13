"""Tests of names in deferred code: names bound when the code runs are defined, and names that it reads are used.

Each source without a finding runs without a NameError under CPython. Each other source raises one, or has an unused
import or variable.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.source_files import lint_all, source

HANDLER = "try:\n    raise ValueError('x')\nexcept ValueError as e:\n    "
IN_FUNCTION = "def f():\n    try:\n        raise ValueError('x')\n    except ValueError as e:\n        "
FOO = "class Foo:\n    B = [2]\n    "


@pytest.mark.parametrize(
    "text",
    [
        HANDLER + "def show():\n        print(e)\n    show()\n",
        HANDLER + "print((lambda: e)())\n",
        HANDLER + "class A:\n        def m(self):\n            return e\n        n = lambda self: e\n    A().m()\n",
        IN_FUNCTION + "return (lambda: e)()\nf()\n",
        IN_FUNCTION + "return [lambda: f'{e}' for _ in range(2)][0]()\nf()\n",
        IN_FUNCTION + "try:\n            pass\n        finally:\n            def g():\n                def h():\n"
        "                    return e\n                return h()\n            g()\nf()\n",
        (
            "def f():\n    try:\n        raise ExceptionGroup('x', [ValueError('y')])\n    except* ValueError as e:\n"
            "        print((lambda: e)())\nf()\n"
        ),
        FOO + "Q = (s for f in B for s in Foo.B)\nprint(list(Foo.Q))\n",
        FOO + "Q = (Foo.B for f in B)\nprint(list(Foo.Q))\n",
        FOO + "Q = (f for f in B if Foo)\nprint(list(Foo.Q))\n",
        FOO + "def m(self, x=(Foo for _ in B)):\n        return list(x)\nFoo().m()\n",
        "g = (later for _ in [1])\nlater = 1\nprint(list(g))\n",
        "class A:\n    g = (later() for _ in [1])\ndef later(): ...\nprint(list(A.g))\n",
        "def f():\n    x = 1\n    def g():\n        return x\n    g()\n    del x\nf()\n",
        "def f():\n    import os, re\n    g = lambda: os.name, re\n    g[0]()\n    del re, os\nf()\n",
        "for n in range(3):\n    def p(m=n):\n        return m, n\n    p()\ndel n\n",
    ],
)
def test_names_bound_before_deferred_use_have_no_finding(text: str, tmp_path: Path) -> None:
    (findings,) = lint_all([source("a.py", text)], tmp_path)
    assert [(finding.line, finding.code) for finding in findings if finding.code in ("F821", "F841", "F401")] == []
    if "except*" not in text:
        exec(compile(text, "a.py", "exec"), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HANDLER + "print(e)\nprint((lambda: e)())\n", ["5 F821"]),
        (HANDLER + "print(e)\nelse:\n    def g():\n        return e\n    g()\n", ["7 F821"]),
        (IN_FUNCTION + "return (lambda e: e.e)(e=1)\n", ["4 F841"]),
        (IN_FUNCTION + "return 'e'\n    e()\n", ["4 F841", "6 F821"]),
        (IN_FUNCTION + "def g():\n            e = 1\n            return 2\n        return g\n", ["4 F841", "6 F841"]),
        (FOO + "Q = [Foo.B for f in B]\n", ["3 F821"]),
        (FOO + "Q = (s for s in Foo.B)\n", ["3 F821"]),
        (FOO + "Q = list(Foo.B for f in B)\n", ["3 F821"]),
        (FOO + "Q = ','.join((Foo.B for f in B))\n", ["3 F821"]),
        (FOO + "Q = (Fop.B for f in B)\n", ["3 F821"]),
        ("g = (before for _ in [1])\nprint(list(g))\n", ["1 F821"]),
        ("def f():\n    def g():\n        return x\n    g()\n    del y.x\n", ["3 F821", "5 F821"]),
    ],
)
def test_unbound_and_unused_names_are_reported(text: str, expected: list[str], tmp_path: Path) -> None:
    (findings,) = lint_all([source("a.py", text)], tmp_path)
    assert [f"{finding.line} {finding.code}" for finding in findings if finding.code in ("F821", "F841")] == expected


IMPORTS = "from m import a, b, c\n__all__ = ['a']\n"


@pytest.mark.parametrize(
    ("text", "unused"),
    [
        (IMPORTS + "__all__.extend(['b'])\n__all__.append(\"c\")\n", []),
        (IMPORTS + "__all__.insert(0, 'b')\n__all__[:] = [*__all__, 'c']\n", []),
        (IMPORTS + "__all__ += [\n    'b',\n]\n__all__.extend(('c',))\n", []),
        ("from m import a, b, c\n__all__ = [*['a'], 'b']\n", ["m.c"]),
        ("from m import a, b, c\n__all__ = ['a'] + (['b'] if c else [])\n", []),
        (IMPORTS + "__all__.remove('b')\nx = 'c'\n", ["m.b", "m.c"]),
        (IMPORTS + "x = 'b'\n", ["m.b", "m.c"]),
    ],
)
def test_names_in_all_count_as_used(text: str, unused: list[str], tmp_path: Path) -> None:
    (findings,) = lint_all([source("a.py", text)], tmp_path)
    assert [finding.message.split("`")[1] for finding in findings if finding.code == "F401"] == unused


@pytest.mark.parametrize(
    ("names", "is_error"),
    [
        ("A.__name__, 'b'", False),
        ("str('b')", False),
        ("*x.y", False),
        ("'a', A", True),
        ("'a', 1", True),
        ("b'a', A.x", True),
    ],
)
def test_possible_text_in_all_is_not_an_invalid_object(names: str, is_error: bool, tmp_path: Path) -> None:
    text = f"import x\nclass A: ...\nx.b = 1\n__all__ = [{names}]\n"
    (findings,) = lint_all([source("a.py", text)], tmp_path)
    assert ("PLE0604" in [finding.code for finding in findings]) == is_error
