"""analyze: numbers, in a fixed order, none invented."""

from __future__ import annotations

import pytest

from codebatch_workers.tasks.analyze import metrics
from tests.tasks.support import source

ORDER = [
    "bytes",
    "lines",
    "code",
    "comment",
    "blank",
    "functions",
    "classes",
    "imports",
    "complexity",
    "max_complexity",
]

PYTHON = '''\
# a comment
import os, sys
from x import (
    y,
)


class A:
    """Text is code."""

    def m(self):  # beside code
        for a in b:
            if a and b or c:
                pass
            elif d:
                return 1 if e else 2

        def inner():
            return [x for x in y if x]

    async def n(self):
        try:
            while True:
                pass
        except E:
            match x:
                case 1: pass


if A:
    pass
'''


def test_metrics_of_python_are_those_counted_by_hand() -> None:
    found = metrics(source("a.py", PYTHON))
    assert list(found) == ORDER
    # m: 1 + for, if, and, or, elif, ternary; inner: 1 + for, if; n: 1 + while, except, case; and the module's if.
    expected = [len(PYTHON), 31, 23, 1, 7, 3, 1, 2, 7 + 3 + 4 + 1, 7]
    assert list(found.values()) == expected


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (
            "a.js",
            "const f = a => a && b ? 1 : 2; // x\n/* y\n\n z */ function g() { f ??= 1 }\n",
            (2, 1, 1, 2, 0, 0, 5, 3),
        ),
        (
            "a.c",
            "/* a\n * b */\nint f(int x) { switch (x) { case 1: case 2: break; default: ; } return x && 1; }\n",
            (1, 2, 0, 1, 0, 0, 4, 4),
        ),
        ("a.go", "package a\nfunc f() { for { if a || b { } } }\ntype S struct{}\n", (3, 0, 0, 1, 1, 0, 4, 4)),
        (
            "a.rs",
            "fn f() -> R { let x = a?; match x { 1 => 2, _ => 3 } }\n/// doc\nstruct S;\n",
            (2, 1, 0, 1, 1, 0, 4, 4),
        ),
        ("a.java", "import a.B;\nclass A { void f() { if (a && b) {} } }\n", (2, 0, 0, 1, 1, 1, 3, 3)),
        ("a.sh", "f() { if a; then b && c; fi; }\n# x\n", (1, 1, 0, 1, 0, 0, 3, 3)),
        ("a.ts", "interface I {}\nenum E { A }\nclass C { m() { return 1 } }\n", (3, 0, 0, 1, 3, 0, 1, 1)),
    ],
)
def test_structure_is_counted_alike_in_every_language(path: str, content: str, expected: tuple[int, ...]) -> None:
    found = metrics(source(path, content))
    assert tuple(found[name] for name in ["code", "comment", "blank", *ORDER[5:]]) == expected


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.md", b"a\n\n b\n", {"bytes": 6, "lines": 3, "blank": 1}),
        ("a.bin", b"\0\0", {"bytes": 2}),
        ("a.py", b"", {"bytes": 0, "lines": 0, "blank": 0}),
        ("a.json", b"{}\n", {"bytes": 3, "lines": 1, "code": 1, "comment": 0, "blank": 0}),
        ("a.txt", b"a\r\n\r\n\x0c\n", {"bytes": 7, "lines": 3, "blank": 2}),
    ],
)
def test_what_is_not_known_is_not_invented(path: str, content: bytes, expected: dict[str, int]) -> None:
    assert metrics(source(path, content)) == expected


def test_elif_chain_counts_all_its_branches() -> None:
    found = metrics(source("a.py", "def f(x):\n    if x: pass\n" + "    elif x: pass\n" * 100))
    assert found["max_complexity"] == 102
