"""Tests of false positives of ruff: doubtful findings are not reported, and similar true findings are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from tree_sitter import Node

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.false_positives import _NODE_FILTERS, _TEXT_FILTERS, is_doubtful_finding
from codebatch_workers.lint.python.injected_names import enclosing_nodes
from codebatch_workers.lint.python.statements import _ParsedPieces, node_in_function, node_in_statement
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.syntax.source import SourceFile
from tests.support.resources import cpu_time_below
from tests.support.source_files import lint_all, source

RAISES = "import pytest\nwith pytest.raises(ValueError):\n    "


CASES = [
    # B018, B015: an expression that is evaluated because it raises, or because reading has an effect.
    (RAISES + "1 + x\n", ["3:9 F821"]),
    (RAISES + "x < 1\n", ["3:5 F821"]),
    ("try:\n    xrange\nexcept NameError:\n    xrange = range\n", []),
    ("try:\n    pass\nexcept NameError:\n    [1]\n", ["4:5 B018"]),
    ("import os\nimport re\nos\nos, re.X\n[os]\n", ["5:1 B018"]),
    ("import os\n[os.name, os.environ['a']]\n[os.name, os]\n", ["3:1 B018"]),
    ("import os\nos.environ\nos.environ['é']\n1 / 0\n", []),
    ("import os\nx = 'éééé'; os.environ\n1 / 0\n", []),
    ("with open('a') as f:\n    f == 1\n    [f]\n", ["2:5 B015", "3:5 B018"]),
    ("# Data.\n{'a': [1]}\n", []),
    ("import os\n{'a': [1]}\nos.nice(1)\n", ["2:1 B018"]),
    # B006: a default that is not changed.
    ("def f(a=[], *, b: dict = {}):\n    return [a, b['x'], b == {}]\n", []),
    ("def f(a=[]):\n    a.append(1)\n", ["1:9 B006"]),
    ("def f(*, b: dict = {}):\n    b['é'] = 1\n", ["1:20 B006"]),
    ("def f(b={}):\n    del b['x']\n", ["1:9 B006"]),
    ("def f(b={}, c=[]):\n    c += 1\n    x.b['y'] = 1\n", ["1:15 B006", "3:5 F821"]),
    ("def f(n, _seen=[], cache={}, memo_of={}):\n    _seen.append(n)\n    cache[n] = memo_of[n] = n\n", []),
    ("def f(n, m={}):\n    if n in m:\n        return m[n]\n    m[n] = n\n", []),
    ("def f(n, m={}):\n    if n in m.x:\n        return m[n]\n    m[n] = n\n", ["1:12 B006"]),
    # B002: two signs that are not a decrement.
    ("def f(n):\n    return -(-n), -(-(-n)), --abs(n), --n, ++n.x[0]\n", ["2:39 B002", "2:44 B002"]),
    # B025, B030: the syntax of Python 2 for the name of an exception.
    (
        "try:\n    x = 1\nexcept OSError, e:\n    x = 2\nexcept KeyError, e:\n    x = 3\n",
        ["3:17 F821", "5:18 F821"][:1],
    ),
    ("try:\n    x = 1\nexcept (OSError, 1):\n    x = 2\n", ["3:18 B030"]),
    # F507: the format may get a mapping.
    ("x = 'a' % (locals())\ny = 'a' % (1,)\n", ["2:5 F507"]),
    # F822: names that are assigned by text.
    ("import enum\n__all__ = ['a']\nglobals().update(enum.x)\n", []),
    ("__all__ = ['a']\ndef f():\n    return 1\n", ["1:12 F822"]),
    # F823: a name from the iteration before.
    ("text = 1\ndef f(a):\n    while a:\n        a(text)\n        text = a()\n", ["5:9 F841"]),
    ("text = 1\ndef f(a):\n    a(text)\n    text = a()\n", ["3:7 F823", "4:5 F841"]),
    # PLE0237: a slot that the class defines by other means.
    ("class A(metaclass=M):\n    __slots__ = ('a',)\n    def __init__(self):\n        self.b = 1\n", ["1:19 F821"]),
    ("class A:\n    __slots__ = ('a',)\n    def __init__(self):\n        self.b = 1\n", ["4:9 PLE0237"]),
    (
        "class A:\n    __slots__ = ('a',)\n    def __init__(self):\n        self.b = 1\n    @a\n    def b(self): ...\n",
        ["5:6 F821"],
    ),
    # RUF009: a function that makes a field.
    (
        "from dataclasses import dataclass\nimport a\n@dataclass\nclass A:\n    b: A = a.field()\n    c: A = a.b()\n",
        ["6:12 RUF009"],
    ),
    # G010, PLE1205: another logger.
    ("from twisted.logger import A\nlogger = A()\nlogger.warn('a')\nlogger.info('a', 1)\n", []),
    ("import logging\nlogging.warn('a')\nlogging.info('a', 1)\n", ["2:9 G010", "3:1 PLE1205"]),
    # PIE794: a field that is read in between, or only annotated.
    ("class A:\n    a = 1\n    b = a\n    a = 2\n    c: int\n    c = property(1)\n", []),
    ("class A:\n    a = 1\n    b = print.a\n    a = 2\n", ["4:5 PIE794"]),
    # F821: a name that gettext installs.
    ("print(_('a'), _a)\n", ["1:15 F821"]),
    # S506: a loader that is not one of YAML's unsafe ones.
    (
        "from yaml import load, A, Loader\ndef f(l):\n    load(1, l)\n    load(1, A)\n    load(1, Loader)\n",
        ["5:13 S506"],
    ),
    # Syntax errors hide other findings.
    ("import os\nprint 'a'\n", []),
    # F821: a name that another module provides.
    ("from a import Literal\nx: Literal['db'] | None = None\n", []),
    ("from a import L\nx: L['db'] = 1\n", ["2:7 F821"]),
    (
        "import sys\nif sys.version_info[0] < 3:\n    x = long(1)\nelse:\n    x = unicode(1)\ny = long(1)\n",
        ["6:5 F821"],
    ),
    ("try:\n    x = unicode\nexcept NameError:\n    x = str\n", []),
    ("import x\na = str if x.PY2 else unicode\nb = str if x.y else long\n", ["3:21 F821"]),
    ("if x > 3:\n    y = long\n", ["1:4 F821", "2:9 F821"]),
    ("c.a = 1\nd['b'] = 2\nc.a == d\n", ["3:1 B015"]),
    ("c.a = 1\nprint(d)\n", ["2:7 F821"]),
    ("import os\nos.nice(c)\nc.a = 1\n", ["2:9 F821"]),
    ("import os\nexec(os.environ['a'])\nos.nice(c)\n", ["2:1 S102"]),
    ("import sys\nif sys.version_info[0] < 3:\n    def f():\n        return unicode('a')\n", []),
    ("def f(a):\n    while a:\n        a(b)\n        c, b = a()\n", []),
    ("def f(a):\n    while a:\n        a(b)\n    b = a()\n", ["3:11 F821", "4:5 F841"]),
    ("def f(a):\n    a(b)\n    b = a()\n", ["2:7 F821", "3:5 F841"]),
    # PLE0302: a method without self, in an interface.
    ("class A:\n    def a(b): ...\n    def __contains__(b): ...\n", []),
    ("class A:\n    def a(self): ...\n    def __contains__(b): ...\n", ["3:9 PLE0302"]),
    ("class A(Interface):\n    def __contains__(b): ...\n", ["1:9 F821"]),
    # F811: the name of an exception; RUF040: a message in bytes.
    (
        "try:\n    x = 1\nexcept ValueError as e:\n    x = 2\nexcept OSError as e:\n    x = 3\n",
        ["3:22 F841", "5:19 F841"],
    ),
    ("import a\nassert a, b'c'\nassert a, 1\n", ["3:11 RUF040"]),
    # PLE0604: names that are unpacked.
    ("import a\n__all__ = (\n    'b',\n    *a.__all__,\n)\n", ["3:5 F822"]),
    ("__all__ = [b'a']\n", ["1:1 PLE0604"]),
    ("for x in 'ab':\n    globals()[x] = 1\na.nice(c)\n", []),
    ("globals()['a'] == 1\na.nice(c)\n", ["1:1 B015", "2:1 F821", "2:8 F821"]),
    # If many names are undefined, only the first is reported: the file is probably a fragment.
    ("f(b, c, d, e)\n", ["1:1 F821", "1:3 F821", "1:6 F821", "1:9 F821", "1:12 F821"]),
    ("f(b, c, d, e, g)\n", ["1:1 F821"]),
    # PIE796: values that are created by a call.
    (
        "import enum\nclass A(enum.Enum):\n    B = object()\n    C = object()\n    D = 1\n    E = 1\n",
        ["6:5 PIE796"],
    ),
    # Each name is reported once.
    ("print(a, b)\nprint(a)\n", ["1:7 F821", "1:10 F821"]),
    # F401: an import that is used in a type comment.
    ("from a import B, C as D\nx = None  # type: list[B] | D\ny = 1  # type: ignore[B]\n", []),
    ("from a import B\ny = 1  # type: ignore[B]\n", ["1:15 F401"]),
    ('"""Names."""\nfrom a import B\nfrom c import D\n', []),
    ("import os\n", ["1:8 F401"]),
    # F401: an import that is used in a text that is a type.
    ("from typing import TYPE_CHECKING as T, A\nif T:\n    from b import C, D\nx = A['C', 'D.e']\n", ["3:22 F401"]),
    # Findings that are suppressed for another linter; then F401: an import for its side effect.
    ("from mpl_toolkits.mplot3d import Axes3D\nimport readline\nimport this\nimport these\n", ["4:8 F401"]),
    ("from sklearn.experimental import enable_halving_search_cv, other\n\nx = 1\n", ["1:60 F401"]),
    ("import os  # pylint: disable=unused-import\nimport re  # pylint\n", ["2:8 F401"]),
    ("import ssl\nassert (\n    1, ssl)  # nosec\n", []),
    ("import os  # ruff: ignore[unused-import]\nimport re  # ruff\n", ["2:8 F401"]),
    ("print(a)  # ty: ignore[unresolved-reference]\nprint(b)  # type: ignore[name-defined]\n", []),
    ("print(a)  # type: ignore[attr-defined]\nprint(b)  # ty: ignore\n", ["1:7 F821", "2:7 F821"]),
    # F811: a fixture that pytest passes by name, and names that another definition replaces.
    ("from a import b, d\n\ndef test_c(b):\n    assert b\n", ["1:18 F401"]),
    ("import pytest\nfrom a import b\n@pytest.fixture\ndef c(b): ...\ndef test_a(): ...\n", []),
    ("from a import b\n\ndef c(b):\n    assert b\n", ["1:15 F401", "3:7 F811"]),
    ("def f():\n    global f\n    f = g\n    return f()\ndef g(): ...\n", []),
    # F821: names that are deleted at the end, filled in by a template, or resolved by SQLAlchemy.
    ("import os, re\nx: os.PathLike = 1\ny: re.A = z\ndel os, re\n", ["3:11 F821"]),
    ("print(__SITE_PREFIX__, __site__)\n", ["1:24 F821"]),
    ("from a import Mapped, L\nclass A:\n    b: Mapped[list['B']]\n    c: L['C']\n", ["4:11 F821"]),
    # F822: a name that is defined as an alias by text.
    ("__all__ = ['A', 'B', 'C']\nclass A:\n    alias = ('B',)\n", ["1:22 F822"]),
    # PLE1307: a width that is an argument.
    ("print('%-*s %5.1f%%' % (1 + 2, 'a', 1.5), '%.*f' % (2, 0.5), '%d' % 'a')\n", ["1:62 PLE1307"]),
    # B030: an exception that a condition chooses.
    ("a = None\ntry:\n    x = 1\nexcept OSError if a is None else (a.E, OSError):\n    x = 2\n", []),
    # PLW0127: a name that is exported by the assignment; one of several targets.
    ("from a import b, c\nb = b\nclass D:\n    c = c\n", []),
    ("def f(a, b):\n    a, b = a, 1\n    a, b = a, b\n    a = a\n", ["3:5 PLW0127", "3:8 PLW0127", "4:5 PLW0127"]),
    ("def f(a):\n    b = b = a()\n    return b\n", ["2:5 PLW0127"]),
    # LOG014: a function that handles an exception.
    ("import logging\ndef f(a, exc):\n    logging.error('a', exc_info=True)\n", []),
    ("import logging\ndef f(a: OSError):\n    logging.error('a', exc_info=True)\n", []),
    ("import logging\ndef f(a):\n    logging.error('a', exc_info=True)\n", ["3:24 LOG014"]),
    # PLW0128, S503.
    ("a, _, dummy, dummy, x, x = range(6)\nbb, cc, cc = range(3)\nprint(cc)\n", ["2:9 PLW0128"]),
    ("def f(a):\n    nil, bb, nil, nil = a\n    return bb\n", []),
    ("def f(a):\n    bb, bb = a\n    return bb\n", ["2:9 PLW0128"]),
    ("import ssl\ndef f(v=ssl.PROTOCOL_SSLv23, w=ssl.PROTOCOL_SSLv3): ...\n", ["2:32 S503"]),
    # RUF032: numbers that are exact in binary.
    ("from decimal import Decimal\nDecimal(1.25)\nDecimal(-2.5)\nDecimal(0.1)\n", ["4:9 RUF032"]),
    # T100: a debugger that is a feature of the program.
    ("import pdb\ndef f(a):\n    if a:\n        pdb.set_trace()\n", []),
    ("def f(a):\n    breakpoint()\n", ["2:5 T100"]),
    # Methods without any parameter, as in broken code.
    ("class A:\n    def b(): ...\n    def __contains__(): ...\n", []),
    # Numbers with any exponent are checked in time.
    (
        "from decimal import Decimal\nDecimal(1e-99999999)\nDecimal(1e99999999)\nDecimal(1e-9999999999999999999)\n",
        ["2:9 RUF032", "3:9 RUF032", "4:9 RUF032"],
    ),
]
_TOKEN = re.compile(r"\w+|[^\w\s]")


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_doubtful_findings_are_not_reported(text: str, expected: list[str], tmp_path: Path) -> None:
    (findings,) = lint_all([source("a.py", text)], tmp_path)
    assert [f"{finding.line}:{finding.column} {finding.code}" for finding in findings] == expected


@pytest.mark.parametrize("path", ["p/__init__.py", "p/_compat.py", "p/compat/a.py"])
def test_imports_in_reexporting_modules_count_as_used(path: str, tmp_path: Path) -> None:
    assert lint_all([source(path, "import os\n"), source("p/a.py", "import os\n")], tmp_path)[0] == []


def test_import_that_tests_for_availability_counts_as_used(tmp_path: Path) -> None:
    text = "try:\n    import a\nexcept ImportError:\n    x = 1\nimport b\n"
    (findings,) = lint_all([source("a.py", text)], tmp_path)
    assert [finding.line for finding in findings] == [5]


def test_doubted_codes_are_known_rules() -> None:
    assert SEVERITY_BY_CODE.keys() >= {*_NODE_FILTERS, *_TEXT_FILTERS}


@pytest.mark.parametrize("text", [text for text, _ in CASES])
def test_any_finding_in_broken_code_can_be_checked_for_doubt(text: str) -> None:
    """ruff may report any rule at any place. An exception in the check would fail the file."""
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    for start, end in tokens[::3]:
        file = source("a.py", text[:start] + text[end:])
        code = file.utf8.decode()
        for first, last in (match.span() for match in _TOKEN.finditer(code)):
            (line, column), (end_line, end_column) = _place(code, first), _place(code, last)
            for rule in (*_NODE_FILTERS, *_TEXT_FILTERS):
                finding = Diagnostic(
                    path="a.py", line=line, column=column, end_line=end_line, end_column=end_column,
                    severity="error", code=rule, message="", tool="ruff",
                )  # fmt: skip
                assert is_doubtful_finding(file, finding) in (True, False)


_LONG_STATEMENTS = """
@wraps(a)
def b(c): return c
x = [
a, b,
]
if a: b
elif c:
    b = c
# c
else:
  d
"""
_TEXTS = [
    *(text for text, _ in CASES),
    "a\n" * 20 + _LONG_STATEMENTS,
    f"def f():\n    '''\na\nb\n    '''\n    return c\nd\n\n{_LONG_STATEMENTS}",
    "a = 1 + \\\nb\nc\n" * 3,
    "class C:\\\nb = 1\r\n\\\n\r\n",
    Path(inspect.getfile(SourceFile)).read_text(),
]


@pytest.mark.parametrize("text", _TEXTS)
def test_partial_parse_yields_the_same_surroundings_as_a_full_parse(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch_workers.lint.python.statements._PIECE_REQUESTS_MAX", len(text))
    whole, file = source("a.py", text), source("a.py", text)
    assert whole.tree is not None
    for start, end in (match.span() for match in _TOKEN.finditer(text)):
        expected = whole.tree.root_node.descendant_for_byte_range(start, end)
        assert expected is not None
        for node in (node_in_statement(file, start, end), node_in_function(file, start, end)):
            assert node is None or _ancestor_nodes(node) == _ancestor_nodes(expected)
    if text.startswith("a\na"):
        assert node_in_statement(file, text.index("  d"), len(text)) is not None


_FUNCTIONS = (
    """
class A:
    def f(self):
        def g():
            pass
        b() == c
        # d

    def h(self):
        if e:
            pass
        else:
            e() == f
    g() == h
"""
    + "x\n" * 20
)


@pytest.mark.parametrize(("text", "lines"), [("b() == c", (3, 8)), ("e() == f", (9, 13)), ("g() == h", None)])
def test_function_is_parsed_completely_and_alone(text: str, lines: tuple[int, int] | None) -> None:
    file = source("a.py", _FUNCTIONS)
    start = _FUNCTIONS.index(text)
    node = node_in_function(file, start, start + len(text))
    assert (node is not None, [*file.derived(_ParsedPieces).trees]) == (lines is not None, [lines] if lines else [])


def test_file_with_many_requests_is_parsed_as_a_whole() -> None:
    file = source("a.py", "x\n" * 10 + "def f():\n    with raises(A):\n        b() == c\n" + "x\n" * 10)
    start = file.utf8.index(b"b()")
    nodes = [node_in_function(file, start, start + 8) for _ in range(101)]
    assert nodes[-1] is None
    assert [node.type for node in nodes if node is not None] == ["comparison_operator"] * 100


def _ancestor_nodes(node: Node) -> list[tuple[str, int, int]]:
    """Return the nodes around a node up to the module, which may have another range in a partial parse."""
    return [
        (ancestor.type, ancestor.start_byte, ancestor.end_byte)
        for ancestor in enclosing_nodes(node)
        if ancestor.parent is not None
    ]


def test_finding_in_a_generated_line_is_not_doubted() -> None:
    finding = Diagnostic(
        path="a.py", line=1, column=1, end_line=1, end_column=2, severity="error", code="E741", message="", tool="ruff"
    )
    assert not is_doubtful_finding(source("a.py", f"x = '{'a' * 11_000}'\n"), finding)


def test_long_lines_are_checked_in_time() -> None:
    with cpu_time_below(5):
        for text in ("globals()[" * 50_000 + "\nx\n", "def f(b=[]):\n    " + "b[" * 50_000 + "\n"):
            file = source("a.py", text)
            line, column = (2, 1) if text.startswith("g") else (1, 9)
            finding = Diagnostic(
                path="a.py", line=line, column=column, end_line=line, end_column=column + 1,
                severity="error", code="F821" if line == 2 else "B006", message="", tool="ruff",
            )  # fmt: skip
            is_doubtful_finding(file, finding)


def _place(text: str, at: int) -> tuple[int, int]:
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1
