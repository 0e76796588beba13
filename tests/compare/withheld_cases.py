"""Changes after which lint reports other findings on unchanged lines than before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from codebatch_workers.lint.bounds import FINDINGS_PER_FILE_MAX

Tree = Mapping[str, str]
# State, reason, code and `path:line` of a finding that only one batch has.
Row = tuple[str, str, str, str]


class Case(NamedTuple):
    """Two trees and the expected rows of their findings.

    `back` has those of the reverse comparison. Matched findings have no row.
    """

    old: Tree
    new: Tree
    rows: tuple[Row, ...]
    back: tuple[Row, ...]


def _withheld(reason: str, *places: str, code: str = "F821") -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return rows of findings that only the old tree has, and that are neither fixed nor new."""
    rows = tuple(("not_comparable", reason, code, place) for place in places)
    backward_state = "suppressed" if reason == "suppressed" else "not_comparable"
    return tuple((backward_state, *row[1:]) for row in rows), rows


_ONE = "def f_@():\n    return undef_@\n"
_TWO = "def g_@():\n    return undef_@\n"
_TEN = "".join(f"x{item} = '@'\n" for item in range(10))
_FIVE = "".join(f"print(undef_@_{item})\n" for item in "abcde")
_EXPORTS = "from os_@ import path_@\nfrom sys_@ import argv_@\n"
_STRING = 'x = f"""\n{undef_@}\n"""'
_CONTINUED = "x = undef_@ + \\\n    1"

_MANY = "".join(f"# TODO {item} @\n" for item in range(FINDINGS_PER_FILE_MAX - 1)) + "# FIXME @\n"

_KEY = "-----BEGIN RSA PRIVATE KEY-----\n@\n-----END RSA PRIVATE KEY-----\n".replace(
    "@", "MC4CAQAwBQYDK2VwBCIEIHVmz3XyuEusnRgYwDQYJKoZIhvcNAQELBQAwZjELMAkG"
)

CASES: dict[str, Case] = {
    "syntax-error": Case({"a.py": _ONE}, {"a.py": _ONE + "\ndef (:\n"}, *_withheld("unknown", "a.py:2")),
    "syntax-error-and-a-line-edited": Case(
        {"a.py": _ONE + "print(other_@)\n"},
        {"a.py": _ONE + "print(1)\n\ndef (:\n"},
        (("not_comparable", "unknown", "F821", "a.py:2"), ("fixed", "", "F821", "a.py:3")),
        (("not_comparable", "unknown", "F821", "a.py:2"), ("new", "", "F821", "a.py:3")),
    ),
    "too-many-names": Case(
        {"a.py": _FIVE},
        {"a.py": _FIVE + "print(undef_@_f)\n"},
        *_withheld("unknown", *(f"a.py:{line}" for line in range(2, 6))),
    ),
    "note-behind-a-string-of-lines": Case(
        {"a.py": _STRING + "\n"}, {"a.py": _STRING + "  # noqa\n"}, *_withheld("suppressed", "a.py:2")
    ),
    "note-behind-a-continued-line": Case(
        {"a.py": _CONTINUED + "\n"}, {"a.py": _CONTINUED + "  # noqa\n"}, *_withheld("suppressed", "a.py:1")
    ),
    "note-in-capitals": Case(
        {"a.py": _ONE}, {"a.py": _ONE[:-1] + "  # NOQA : F821,E501\n"}, *_withheld("suppressed", "a.py:2")
    ),
    "note-of-other-codes": Case({"a.py": _ONE}, {"a.py": _ONE[:-1] + "  # noqa: E501\n"}, (), ()),
    "note-of-the-file": Case(
        {"a.py": _ONE}, {"a.py": "# ruff: noqa: F821\n" + _ONE}, *_withheld("suppressed", "a.py:2")
    ),
    "range-of-ruff": Case(
        {"a.py": _ONE},
        {"a.py": "# ruff: disable[F821]\n" + _ONE + "# ruff: enable[F821]\n"},
        *_withheld("suppressed", "a.py:2"),
    ),
    "note-for-pylint": Case(
        {"a.py": _ONE},
        {"a.py": _ONE[:-1] + "  # pylint: disable=undefined-variable\n"},
        *_withheld("suppressed", "a.py:2"),
    ),
    "note-for-bandit": Case(
        {"a.py": "print(f'{undef_@}')\n"},
        {"a.py": "print(f'{undef_@}')  # nosec\n"},
        *_withheld("suppressed", "a.py:1"),
    ),
    "noted-and-mended": Case(
        {"a.py": _ONE},
        {"a.py": "# ruff: noqa: F401\n" + _ONE.replace("undef_@", "2")},
        (("fixed", "", "F821", "a.py:2"),),
        (("new", "", "F821", "a.py:2"),),
    ),
    "name-told-where-it-is-met-first": Case(
        {"a.py": _ONE + "\n\n" + _TWO},
        {"a.py": _ONE.replace("undef_@", "1") + "\n\n" + _TWO},
        (),
        (),
    ),
    "name-mended-and-used-anew": Case(
        {"a.py": _ONE},
        {"a.py": _ONE.replace("undef_@", "1") + "\n\nprint(undef_@)\n"},
        (("fixed", "", "F821", "a.py:2"), ("new", "", "F821", "a.py:5")),
        (("fixed", "", "F821", "a.py:5"), ("new", "", "F821", "a.py:2")),
    ),
    "first-of-two-keys-removed": Case({"a.txt": _KEY + "@\n" + _KEY}, {"a.txt": "@\n" + _KEY}, (), ()),
    "line-end-of-another-kind-on-top": Case({"a.txt": "a@\r\nb@\r\nc@\n"}, {"a.txt": "x@\na@\r\nb@\r\nc@\n"}, (), ()),
    "became-compatible": Case(
        {"a.py": "import os_@\nx_@ = 1\n"},
        {"compat.py": "import os_@\nx_@ = 1\n"},
        *_withheld("unknown", "a.py:1", code="F401"),
    ),
    "runs-what-it-is-given": Case(
        {"a.py": _ONE + "exec('x')\n"},
        {"a.py": _ONE + "exec_@ = 'x'\n"},
        (("not_comparable", "unknown", "F821", "a.py:2"), ("fixed", "", "S102", "a.py:3")),
        (("not_comparable", "unknown", "F821", "a.py:2"), ("new", "", "S102", "a.py:3")),
    ),
    "only-imported-for-others": Case(
        {"a.py": _EXPORTS + "x_@ = 1\n"}, {"a.py": _EXPORTS}, *_withheld("unknown", "a.py:1", "a.py:2", code="F401")
    ),
    "default-is-changed-now": Case(
        {"a.py": "def f_@(x=[]):\n    return 1\n"},
        {"a.py": "def f_@(x=[]):\n    x.append(1)\n    return 1\n"},
        (("new", "", "B006", "a.py:1"),),
        (("fixed", "", "B006", "a.py:1"),),
    ),
    "one-of-two-on-a-line-is-defined-now": Case(
        {"a.py": "print(undef_@, other_@)\n"},
        {"a.py": "undef_@ = 1\nprint(undef_@, other_@)\n"},
        (("fixed", "", "F821", "a.py:1"),),
        (("new", "", "F821", "a.py:1"),),
    ),
    "import-is-used-now": Case(
        {"a.py": "import os_@\nx_@ = 1\n"},
        {"a.py": "import os_@\nx_@ = 1\nprint(os_@)\n"},
        (("fixed", "", "F401", "a.py:1"),),
        (("new", "", "F401", "a.py:1"),),
    ),
    "one-too-many": Case(
        {"a.py": _MANY},
        {"a.py": "# TODO: @\n" + _MANY},
        (("new", "", "todo-comment", "a.py:1"), ("not_comparable", "unknown", "todo-comment", "a.py:1000")),
        (("fixed", "", "todo-comment", "a.py:1"), ("not_comparable", "unknown", "todo-comment", "a.py:1000")),
    ),
    "behind-one-too-many": Case(
        {"a.py": _MANY},
        {"a.py": "# TODO: @\n" + _MANY.replace("# FIXME", '"""\n# FIXME') + '"""\n'},
        (("new", "", "todo-comment", "a.py:1"), ("not_comparable", "unknown", "todo-comment", "a.py:1000")),
        (("fixed", "", "todo-comment", "a.py:1"), ("not_comparable", "unknown", "todo-comment", "a.py:1000")),
    ),
    "one-of-less-in-a-string": Case(
        {"a.py": "# TODO 1 @\n# TODO 2 @\n"},
        {"a.py": '# TODO 1 @\n"""\n# TODO 2 @\n"""\n'},
        (("fixed", "", "todo-comment", "a.py:2"),),
        (("new", "", "todo-comment", "a.py:2"),),
    ),
    "became-a-language-without-grammar-and-a-line-edited": Case(
        {"a.py": _TEN + _ONE}, {"a.rst": _TEN + _ONE.replace("undef", "edited")}, *_withheld("not_checked", "a.py:12")
    ),
    "became-text": Case({"a.py": _ONE}, {"a.txt": _ONE}, *_withheld("not_checked", "a.py:2")),
    "of-another-interpreter": Case(
        {"tool": "#!/usr/bin/env python3\n" + _ONE},
        {"tool": "#!/bin/sh\n" + _ONE},
        *_withheld("not_checked", "tool:3"),
    ),
    "became-generated": Case(
        {"a.php": "<?php\n// TODO @\n"},
        {"a.php": "<?php\n// Code generated by x. DO NOT EDIT.\n// TODO @\n"},
        *_withheld("not_checked", "a.php:2", code="todo-comment"),
    ),
    "became-huge": Case(
        {"a.py": _ONE}, {"a.py": _ONE + "# @" + "x" * 8_400_000 + "\n"}, *_withheld("not_checked", "a.py:2")
    ),
    "became-binary": Case({"a.py": _ONE}, {"a.py": _ONE + "\0" * 9}, *_withheld("not_checked", "a.py:2")),
}
