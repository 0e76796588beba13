"""Forty changes written by hand with the expected state of each finding. test_hand_made.py runs this table.

A call of a function whose name begins with `bad_` is a finding with that name as code. A call of `long_` is a finding
whose message has the length of its line. Each case has a directory of its own in two trees. In texts, `@` is replaced
by the name of the case, so no line occurs in two cases unless intended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Tree = Mapping[str, str]
# State, matching pass, and the old and the new place as `path:line`. An unchanged finding has no row.
Row = tuple[str, str, str, str]

BACKWARDS = {
    "new": "fixed",
    "fixed": "new",
    "removed": "new",
    "severity_raised": "severity_lowered",
    "severity_lowered": "severity_raised",
}


class Case(NamedTuple):
    """Two trees and their differences.

    `back` has the states of the reverse comparison if they are not the mirror image.
    """

    old: Tree
    new: Tree
    rows: tuple[Row, ...] = ()
    back: tuple[str, ...] | None = None


def numbered(first: int, end: int) -> str:
    """Return lines that occur nowhere else in the case."""
    return "".join(f"row_@({number})\n" for number in range(first, end))


_F = "def f_@():\n    start_@()\n    bad_f(@)\n    end_@()\n"
_G = "def g_@():\n    one_@()\n    bad_g(@)\n    two_@()\n"
_H = "def h_@():\n    begin_@()\n    bad_h(@)\n    finish_@()\n"
_LONG = numbered(0, 12)
_INDENTED = "".join(f"    {line}\n" for line in _LONG.splitlines())

CASES: dict[str, Case] = {
    "nothing": Case({"a.py": _F}, {"a.py": _F}),
    "line-on-top": Case({"a.py": _F}, {"a.py": "top_@()\n" + _F}),
    "blank-lines-on-top": Case({"a.py": _F}, {"a.py": "\n\n\n" + _F}),
    "hundred-lines-between": Case({"a.py": _F + _G}, {"a.py": _F + numbered(0, 100) + _G}),
    "function-before-it-removed": Case({"a.py": _F + _G}, {"a.py": _G}, (("fixed", "", "a.py:3", ""),)),
    "file-renamed": Case({"a.py": _F}, {"b.py": _F}, (("moved", "line", "a.py:3", "b.py:3"),)),
    "file-renamed-and-edited": Case(
        {"a.py": _LONG + _F},
        {"b/c.py": "x_@()\n" + _LONG + _F + "bad_new(@)\n"},
        (("moved", "line", "a.py:15", "b/c.py:16"), ("new", "", "", "b/c.py:18")),
    ),
    "file-renamed-and-replaced": Case(
        {"a.py": _LONG + _F},
        {"b.py": numbered(50, 62) + _G},
        (("removed", "", "a.py:15", ""), ("new", "", "", "b.py:15")),
        ("new", "removed"),
    ),
    "directory-renamed": Case(
        {"old/a.py": _F, "old/b.py": _G},
        {"new/a.py": _F, "new/b.py": _G},
        (("moved", "line", "old/a.py:3", "new/a.py:3"), ("moved", "line", "old/b.py:3", "new/b.py:3")),
    ),
    "file-removed": Case({"a.py": _F}, {}, (("removed", "", "a.py:3", ""),)),
    "file-copied": Case({"a.py": _F}, {"a.py": _F, "b.py": _F}, (("new", "", "", "b.py:3"),), ("removed",)),
    "files-swapped": Case(
        {"a.py": _F, "b.py": _G},
        {"a.py": _G, "b.py": _F},
        (("moved", "context", "b.py:3", "a.py:3"), ("moved", "context", "a.py:3", "b.py:3")),
    ),
    "function-moved-to-another-file": Case(
        {"a.py": _LONG + _F, "b.py": _G}, {"a.py": _LONG, "b.py": _G + _F}, (("moved", "context", "a.py:15", "b.py:7"),)
    ),
    "function-moved-to-a-new-file": Case(
        {"a.py": _LONG + _F}, {"a.py": _LONG, "b.py": _F}, (("moved", "context", "a.py:15", "b.py:3"),)
    ),
    "functions-swapped": Case({"a.py": _F + _G}, {"a.py": _G + _F}, (("moved", "text", "a.py:3", "a.py:7"),)),
    "function-renamed": Case({"a.py": _F}, {"a.py": _F.replace("f_@", "other_@")}),
    "file-split": Case(
        {"a.py": _LONG + _F + numbered(20, 26) + _G},
        {"a.py": _LONG + _F, "b.py": numbered(20, 26) + _G},
        (("moved", "context", "a.py:25", "b.py:9"),),
    ),
    "files-joined": Case({"a.py": _F, "b.py": _G}, {"a.py": _F + _G}, (("moved", "context", "b.py:3", "a.py:7"),)),
    "block-copied-below": Case({"a.py": _F}, {"a.py": _F + _F}, (("new", "", "", "a.py:7"),)),
    "block-copied-to-another-file": Case(
        {"a.py": _F, "b.py": _G}, {"a.py": _F, "b.py": _G + _F}, (("new", "", "", "b.py:7"),)
    ),
    "line-doubled": Case(
        {"a.py": _F}, {"a.py": _F.replace("    bad_f(@)\n", "    bad_f(@)\n" * 2)}, (("new", "", "", "a.py:4"),)
    ),
    "one-of-three-like-ones-fixed": Case(
        {"a.py": _F.replace("end_@()", "bad_f(@)\n    go_@()\n    bad_f(@)")},
        {"a.py": _F.replace("end_@()", "go_@()\n    bad_f(@)")},
        (("fixed", "", "a.py:4", ""),),
    ),
    "two-on-one-line-and-one-fixed": Case(
        {"a.py": "bad_x(@); bad_x(@@)\n"},
        {"a.py": "bad_x(@)\n"},
        (("moved", "message", "a.py:1", "a.py:1"), ("fixed", "", "a.py:1", "")),
    ),
    "two-kinds-on-one-line-and-one-fixed": Case(
        {"a.py": "bad_x(@); bad_y(@)\n"},
        {"a.py": "bad_y(@)\n"},
        (("moved", "message", "a.py:1", "a.py:1"), ("fixed", "", "a.py:1", "")),
    ),
    "fixed": Case({"a.py": _F}, {"a.py": _F.replace("bad_", "good_")}, (("fixed", "", "a.py:3", ""),)),
    "commented-out": Case(
        {"a.py": _F}, {"a.py": _F.replace("bad_f(@)", "pass  # bad-f")}, (("fixed", "", "a.py:3", ""),)
    ),
    "fixed-here-and-made-there": Case(
        {"a.py": _F + _G},
        {"a.py": _F.replace("bad_f", "good_f") + _G.replace("one_@()", "bad_f(@)")},
        # The line cannot be distinguished from a moved line.
        (("moved", "text", "a.py:3", "a.py:6"),),
    ),
    "fixed-here-and-made-twice-there": Case(
        {"a.py": _F + _G},
        {"a.py": _F.replace("bad_f", "good_f") + _G.replace("one_@()", "bad_f(@)").replace("two_@()", "bad_f(@)")},
        (("new", "", "", "a.py:6"), ("new", "", "", "a.py:8"), ("fixed", "", "a.py:3", "")),
    ),
    "all-lines-indented": Case(
        {"a.py": _F},
        {"a.py": "if 1:\n" + "".join(f"    {line}\n" for line in _F.splitlines())},
        (("moved", "text", "a.py:3", "a.py:4"),),
    ),
    "put-into-a-class": Case(
        {"a.py": _F},
        {"a.py": "class C_@:\n" + "".join(f"    {line}\n" for line in _F.splitlines())},
        (("moved", "text", "a.py:3", "a.py:4"),),
    ),
    "edge-put-into-a-class": Case(
        {"a.py": "def f_@():\n    bad_f(@)\n    end_@()\n"},
        {"a.py": "class C_@:\n    def f_@(self):\n        bad_f(@)\n        end_@()\n"},
        (("moved", "text", "a.py:2", "a.py:3"),),
    ),
    "like-lines-put-into-a-class": Case(
        {"a.py": "def f_@():\n" + "    bad_f(@)\n" * 3},
        {"a.py": "class C_@:\n    def f_@(self):\n" + "        bad_f(@)\n" * 4},
        (
            ("moved", "text", "a.py:2", "a.py:4"),
            ("moved", "text", "a.py:3", "a.py:5"),
            ("moved", "text", "a.py:4", "a.py:6"),
            ("new", "", "", "a.py:3"),
        ),
    ),
    "edges-extracted": Case(
        {"a.py": "def f_@():\n    bad_f(@)\n    mid_@()\n    bad_g(@)\n" + _INDENTED},
        {
            "a.py": "def f_@():\n    out_@()\n" + _INDENTED + "\n\n"
            "def out_@():\n    bad_f(@)\n    mid_@()\n    bad_g(@)\n"
        },
        (("moved", "text", "a.py:2", "a.py:18"), ("moved", "text", "a.py:4", "a.py:20")),
    ),
    "extracted-and-copied": Case(
        {"a.py": "def f_@():\n    start_@()\n    bad_f(@)\n    end_@()\n"},
        {
            "a.py": "def f_@():\n    out_@()\n    end_@()\n\n\n"
            "def out_@():\n    bad_f(@)\n\n\ndef g_@():\n    bad_f(@)\n"
        },
        (("new", "", "", "a.py:7"), ("new", "", "", "a.py:11"), ("fixed", "", "a.py:3", "")),
    ),
    "class-renamed": Case(
        {"a.py": "class C_@:\n    def f_@(self):\n        bad_f(@)\n\n    def g_@(self):\n        bad_f(@)\n"},
        {"a.py": "class D_@:\n    def f_@(self):\n        bad_f(@)\n\n    def g_@(self):\n        bad_f(@)\n"},
    ),
    "short-function-moved-to-another-file": Case(
        {"a.py": _LONG + "def f_@():\n    bad_f(@)\n", "b.py": _G},
        {"a.py": _LONG, "b.py": "def f_@():\n    bad_f(@)\n" + _G},
        (("moved", "context", "a.py:14", "b.py:2"),),
    ),
    "short-function-copied-to-another-file": Case(
        {"a.py": _LONG + "def f_@():\n    bad_f(@)\n", "b.py": _G},
        {"a.py": _LONG + "def f_@():\n    bad_f(@)\n", "b.py": "def f_@():\n    bad_f(@)\n" + _G},
        (("new", "", "", "b.py:2"),),
    ),
    "edge-of-a-block-moved-to-another-file": Case(
        {"a.py": _LONG + "def f_@():\n    bad_f(@)\n    one_@()\n    two_@()\n", "b.py": _H},
        {"a.py": _LONG + "def f_@():\n    pass\n", "b.py": _H + "    bad_f(@)\n    one_@()\n    two_@()\n"},
        (("moved", "context", "a.py:14", "b.py:5"),),
    ),
    "tabs-for-spaces": Case({"a.py": _F}, {"a.py": _F.replace("    ", "\t")}, (("moved", "text", "a.py:3", "a.py:3"),)),
    "crlf": Case({"a.py": _F}, {"a.py": _F.replace("\n", "\r\n")}, (("moved", "text", "a.py:3", "a.py:3"),)),
    "no-line-end-at-the-end": Case({"a.py": "x_@()\nbad_x(@)\n"}, {"a.py": "x_@()\nbad_x(@)"}),
    "byte-order-mark": Case({"a.py": "bad_x(@)\n"}, {"a.py": "\ufeffbad_x(@)\n"}),
    "blanks-at-the-end": Case(
        {"a.py": _F}, {"a.py": _F.replace("(@)", "(@)  ")}, (("moved", "text", "a.py:3", "a.py:3"),)
    ),
    "line-edited": Case(
        {"a.py": _F}, {"a.py": _F.replace("(@)", "(@, 1)")}, (("moved", "message", "a.py:3", "a.py:3"),)
    ),
    "line-edited-that-tells-a-number": Case(
        {"a.py": "x_@()\nlong_x(@)\n"}, {"a.py": "x_@()\nlong_x(@, 1)\n"}, (("changed", "message", "a.py:2", "a.py:2"),)
    ),
    "file-emptied": Case({"a.py": _F}, {"a.py": ""}, (("fixed", "", "a.py:3", ""),)),
    "other-languages-line-on-top": Case(
        {"a.js": "bad_x(@);\n", "a.c": "int x = bad_x(@);\n"},
        {"a.js": "'use strict';\nbad_x(@);\n", "a.c": "\nint x = bad_x(@);\n"},
    ),
    "javascript-became-typescript": Case(
        {"a.js": "bad_x(@);\nx_@();\n"}, {"a.ts": "bad_x(@);\nx_@();\n"}, (("moved", "line", "a.js:1", "a.ts:1"),)
    ),
    "long-file-copied": Case({"a.py": _LONG}, {"a.py": _LONG, "b.py": _LONG}),
    "copies-untouched": Case({"a.py": _LONG, "b.py": _LONG}, {"a.py": _LONG, "b.py": _LONG}),
    "copies-edited-alike": Case(
        {"a.py": _LONG, "b.py": _LONG}, {"a.py": _LONG + "more_@()\n", "b.py": _LONG + "more_@()\n"}
    ),
    "severity-raised": Case(
        {"a.py": "grave_@ = 0\nbad_x(@)\n"},
        {"a.py": "grave_@ = 1\nbad_x(@)\n"},
        (("severity_raised", "line", "a.py:2", "a.py:2"),),
    ),
    "rule-off": Case(
        {"a.py": "x_@()  # TODO\n"},
        {"a.py": "y_@()  # TODO\nbad_x(@)\n"},
        (("suppressed", "", "a.py:1", ""), ("new", "", "", "a.py:2")),
        ("not_comparable", "fixed"),
    ),
    "note-of-ours": Case(
        {"a.py": "import os_@\n"},
        {"a.py": "import os_@  # noqa: F401\n"},
        (("suppressed", "", "a.py:1", ""),),
        ("not_comparable",),
    ),
    "failed": Case({"a.py": _F}, {"a.py": _F + "# FAIL\n"}, (("not_comparable", "", "a.py:3", ""),)),
    "timed-out": Case({"a.py": _F}, {"a.py": _F + "# WAIT\n"}, (("not_comparable", "", "a.py:3", ""),)),
    "failed-here-fixed-there": Case(
        {"a.py": _F, "b.py": _G},
        {"a.py": _F + "# FAIL\n", "b.py": _G.replace("bad_", "good_")},
        (("not_comparable", "", "a.py:3", ""), ("fixed", "", "b.py:3", "")),
    ),
    "became-generated": Case(
        {"a.py": "import os_@\n"},
        {"a.py": "# Code generated by x. DO NOT EDIT.\nimport os_@\n"},
        (("severity_lowered", "line", "a.py:1", "a.py:2"),),
    ),
    "generated-before-and-after": Case(
        {"a.py": "# Code generated by x. DO NOT EDIT.\nimport os_@\n"},
        {"a.py": "# Code generated by x. DO NOT EDIT.\n"},
        (("fixed", "", "a.py:2", ""),),
    ),
    "tool-upgraded": Case(
        {"up.py": _F + "old_rule(@)\n"},
        {"up.py": _F + "old_rule(@)\n"},
        (("not_comparable", "", "up.py:5", ""), ("not_comparable", "", "", "up.py:3")),
    ),
}
