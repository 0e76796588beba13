"""Imports and uses that a change breaks. A case without rows is a change after which the name may still exist."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import codebatch
from codebatch.compare.conditions import BrokenReference
from codebatch.errors import InvalidInput, TaskNotRun
from codebatch.operations.gate.quality_gate import CheckResult
from tests.operations.gate.conftest import SYNTAX_ERROR
from tests.support.git_project import Project

pytestmark = pytest.mark.slow

_A = b"def used():\n    return 1\n\n\ndef other():\n    return 2\n"
_WITHOUT = b"def other():\n    return 2\n"
_B = b"from a import used\n\nprint(used())\n"
_GONE = ("b.py", 1, "unresolved-import", "a.py no longer defines used; it was at a.py:1")
_MISSING = ("b.py", 1, "unresolved-import", "a.used leads to no file; a.py was removed")
_TS = b"export function used() { return 1; }\nexport const other = 2;\n"
_TS_WITHOUT = b"export const other = 2;\n"
_TS_GONE = "a.ts no longer defines used; it was at a.ts:1"
_GO = b"package lib\n\nfunc Used() int { return 1 }\n"
_MAIN = b'package main\n\nimport "example.com/m/lib"\n\nfunc main() { lib.Used() }\n'
_MOD = b"module example.com/m\n"
_JAVA_GONE = "x.Used leads to no file; src/main/java/x/Used.java was removed"
_RS = b"mod a;\nuse crate::a::used;\nfn main() { used(); a::used(); }\n"

Files = dict[str, bytes | None]
Rows = tuple[tuple[str, int, str, str], ...]

# The files before the change, those that it writes (None removes a file), and the broken references.
CASES: dict[str, tuple[Files, Files, Rows]] = {
    "deleted function": ({"a.py": _A, "b.py": _B}, {"a.py": _WITHOUT}, (_GONE,)),
    "renamed function": ({"a.py": _A, "b.py": _B}, {"a.py": _A.replace(b"used", b"reused")}, (_GONE,)),
    "several lines": (
        {"a.py": _A, "b.py": b"from a import (\n    other,\n    used as name,\n)\n"},
        {"a.py": _WITHOUT},
        (("b.py", 3, *_GONE[2:]),),
    ),
    "constant and class": (
        {"a.py": b"LIMIT: int = 3\n\n\n@final\nclass C:\n    pass\n", "b.py": b"from a import LIMIT, C\n"},
        {"a.py": b"x = 1\n"},
        (
            ("b.py", 1, "unresolved-import", "a.py no longer defines LIMIT; it was at a.py:1"),
            ("b.py", 1, "unresolved-import", "a.py no longer defines C; it was at a.py:5"),
        ),
    ),
    "name that is only used or mentioned": (
        {"a.py": _A, "b.py": _B},
        {
            "a.py": b"""\
# used
class C:
    used = 1

    def f(self, x):
        "Replaced used()."
        used = self.used + x.used
        return used

    def __getattr__(self, name):
        return sys.modules["__main__"]
"""
        },
        (_GONE,),
    ),
    "still used in the file": ({"a.py": _A, "b.py": _B}, {"a.py": _WITHOUT + b"print(used(), used)\n"}, (_GONE,)),
    "moved line of the importer": (
        {"a.py": _A, "b.py": _B},
        {"a.py": _WITHOUT, "b.py": b"import os\n\n" + _B},
        (("b.py", 3, *_GONE[2:]),),
    ),
    "renamed importer": (
        {"a.py": _A, "b.py": _B * 4},
        {"a.py": _WITHOUT, "b.py": None, "c.py": _B * 4},
        tuple(("c.py", line, *_GONE[2:]) for line in (1, 4, 7, 10)),
    ),
    "re-export": (
        {"p/__init__.py": b"from .core import used\n", "p/core.py": _A, "b.py": b"from p import used\n"},
        {"p/__init__.py": b"x = 1\n"},
        (("b.py", 1, "unresolved-import", "p/__init__.py no longer defines used; it was at p/core.py:1"),),
    ),
    "end of a chain of re-exports": (
        {"p/__init__.py": b"from .core import used\n", "p/core.py": _A, "b.py": b"from p import used\n"},
        {"p/core.py": _WITHOUT},
        (("p/__init__.py", 1, "unresolved-import", "p/core.py no longer defines used; it was at p/core.py:1"),),
    ),
    "star import": (
        {"p/__init__.py": b"from .core import *\n", "p/core.py": _A, "b.py": b"from p import used\n"},
        {"p/core.py": _WITHOUT},
        (("b.py", 1, "unresolved-import", "p/__init__.py no longer defines used; it was at p/core.py:1"),),
    ),
    "type checking": (
        {"a.py": _A, "b.py": b"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import used\n"},
        {"a.py": _WITHOUT},
        (("b.py", 3, *_GONE[2:]),),
    ),
    "in a function": (
        {"a.py": _A, "b.py": b"def f():\n    from a import used\n    return used\n"},
        {"a.py": _WITHOUT},
        (("b.py", 2, *_GONE[2:]),),
    ),
    "deleted file": ({"a.py": _A, "b.py": _B}, {"a.py": None}, (_MISSING,)),
    "moved file": (
        {"a.py": _A * 9, "b.py": _B},
        {"a.py": None, "c.py": _A * 9},
        (("b.py", 1, "unresolved-import", "a.used leads to no file; a.py was moved to c.py"),),
    ),
    "deleted submodules": (
        {"p/__init__.py": b"", "p/m.py": _A, "p/n.py": _A, "b.py": b"from p import m, n\nimport p.n\n"},
        {"p/n.py": None},
        (
            ("b.py", 1, "unresolved-import", "p.n leads to no file; p/n.py was removed"),
            ("b.py", 2, "unresolved-import", "p.n leads to no file; p/n.py was removed"),
        ),
    ),
    "use through a module": (
        {"a.py": _A, "b.py": b"import a\n\nprint(a.used())\n"},
        {"a.py": _WITHOUT},
        (("b.py", 3, "broken-use", _GONE[3]),),
    ),
    "script": (
        {
            "a.ts": _TS,
            "b.ts": b'import { other, used as name } from "./a";\nconsole.log(other, name());\n',
            "c.ts": b'export { used } from "./a";\n',
            "d.ts": b'import * as all from "./a";\nall.used();\n',
        },
        {"a.ts": _TS_WITHOUT},
        (
            ("b.ts", 1, "unresolved-import", _TS_GONE),
            ("c.ts", 1, "unresolved-import", _TS_GONE),
            ("d.ts", 2, "broken-use", _TS_GONE),
        ),
    ),
    "script in several lines": (
        {
            "a.ts": _TS,
            "c.ts": _TS.replace(b"used", b"kept"),
            "b.ts": b'import {\n  kept,\n} from "./c";\nimport {\n  used,\n} from "./a";\nused(kept);\n',
        },
        {"a.ts": _TS_WITHOUT},
        (("b.ts", 5, "unresolved-import", _TS_GONE),),
    ),
    "member of the same name": (
        {"a.ts": _TS, "b.ts": b'import { used } from "./a";\nused();\n'},
        {"a.ts": b"export class C {\n  used() {}\n}\nconst o = { used: 1 };\n"},
        (("b.ts", 1, "unresolved-import", _TS_GONE),),
    ),
    "index file": (
        {"p/index.ts": b'export * from "./a";\n', "p/a.ts": _TS, "b.ts": b'import { used } from "./p";\nused();\n'},
        {"p/a.ts": _TS_WITHOUT},
        (("b.ts", 1, "unresolved-import", "p/index.ts no longer defines used; it was at p/a.ts:1"),),
    ),
    "deleted script": (
        {"a.ts": _TS, "b.js": b'import { used } from "./a";\nused();\n'},
        {"a.ts": None},
        (("b.js", 1, "unresolved-import", "./a leads to no file; a.ts was removed"),),
    ),
    "go": (
        {"go.mod": _MOD, "lib/l.go": _GO, "main.go": _MAIN},
        {"lib/l.go": b"package lib\n"},
        (("main.go", 5, "broken-use", "lib/l.go no longer defines Used; it was at lib/l.go:3"),),
    ),
    "go package": (
        {"go.mod": _MOD, "lib/l.go": _GO, "main.go": _MAIN},
        {"lib/l.go": None},
        (("main.go", 3, "unresolved-import", "example.com/m/lib leads to no file; lib/l.go was removed"),),
    ),
    "rust": (
        {"Cargo.toml": b'[package]\nname = "m"\n', "src/main.rs": _RS, "src/a.rs": b"pub fn used() {}\n"},
        {"src/a.rs": b"pub fn other() {}\n"},
        (
            ("src/main.rs", 2, "unresolved-import", "src/a.rs no longer defines used; it was at src/a.rs:1"),
            ("src/main.rs", 3, "broken-use", "src/a.rs no longer defines used; it was at src/a.rs:1"),
        ),
    ),
    "script that no longer exports a name": (
        {
            "a.ts": b"function f() {}\nfunction used() {}\nexport { f, used };\nexport function g() { used(); }\n",
            "b.ts": b'import { f, used, g } from "./a";\nused(); f(); g();\n',
            "c.ts": b'import * as a from "./a";\na.g();\na.used();\n',
        },
        {"a.ts": b"function f() {}\nfunction used() {}\nexport { f };\nfunction g() { used(); }\n"},
        (
            ("b.ts", 1, "unresolved-import", "a.ts no longer exports used; it was at a.ts:2"),
            ("b.ts", 1, "unresolved-import", "a.ts no longer exports g; it was at a.ts:4"),
            ("c.ts", 2, "broken-use", "a.ts no longer exports g; it was at a.ts:4"),
            ("c.ts", 3, "broken-use", "a.ts no longer exports used; it was at a.ts:2"),
        ),
    ),
    "script with its only export": (
        {"a.ts": b"export const used = 1;\n", "b.ts": b'import { used } from "./a";\nused;\n'},
        {"a.ts": b"const used = 1;\n"},
        (("b.ts", 1, "unresolved-import", "a.ts no longer exports used; it was at a.ts:1"),),
    ),
    "script that exports the name otherwise": (
        {
            "a.ts": _TS,
            "b.ts": b'import { used, other } from "./a";\nused(); other;\n',
            "c.d.ts": b"export declare function used(): void;\nexport declare const x: number;\n",
            "d.ts": b'import { used } from "./c";\nused();\n',
        },
        {
            "a.ts": b"function used() {}\nconst other = 2;\nconst x = other;\nexport {\n  x as other,\n  used,\n};\n",
            "c.d.ts": b"declare function used(): void;\nexport declare const x: number;\n",
        },
        (),
    ),
    "rust that no longer makes names public": (
        {
            "Cargo.toml": b'[package]\nname = "m"\n',
            "src/main.rs": _RS,
            "src/a.rs": b"pub mod c;\npub fn used() {}\npub(crate) fn kept() {}\n",
            "src/a/c.rs": b"use crate::a::used;\npub fn g() { used(); }\n",
            "src/b.rs": b"use crate::a::kept;\npub fn g() { kept(); }\n",
        },
        {"src/a.rs": b"pub mod c;\nfn used() {}\npub(super) fn kept() {}\n"},
        (
            ("src/main.rs", 2, "unresolved-import", "src/a.rs no longer makes used public; it was at src/a.rs:2"),
            ("src/main.rs", 3, "broken-use", "src/a.rs no longer makes used public; it was at src/a.rs:2"),
        ),
    ),
    "java that no longer makes a class public": (
        {
            "x/Used.java": b"package x;\n\npublic class Used { public static int f() { return 1; } }\n",
            "y/B.java": b"package y;\n\nimport x.Used;\n\nclass B { int g() { return Used.f(); } }\n",
            "test/x/C.java": b"package x;\n\nclass C { int g() { return Used.f(); } }\n",
        },
        {"x/Used.java": b"package x;\n\nclass Used { public static int f() { return 1; } }\n"},
        (("y/B.java", 3, "unresolved-import", "x/Used.java no longer makes Used public; it was at x/Used.java:3"),),
    ),
    "java": (
        {
            "src/main/java/x/Used.java": b"package x;\n\npublic class Used {}\n",
            "src/main/java/x/Kept.java": b"package x;\n\npublic class Kept {}\n",
            "src/main/java/y/B.java": b"package y;\n\nimport x.Used;\n\nclass B { Used u; }\n",
        },
        {"src/main/java/x/Used.java": None},
        (("src/main/java/y/B.java", 3, "unresolved-import", _JAVA_GONE),),
    ),
    # -- The name or file may still exist ------------------------------------------------------------------------------
    "updated importer": ({"a.py": _A, "b.py": _B}, {"a.py": _WITHOUT, "b.py": b"from a import other\n"}, ()),
    "moved with its importer": (
        {"a.py": _A * 9, "b.py": _B},
        {"a.py": None, "c.py": _A * 9, "b.py": b"from c import used\n"},
        (),
    ),
    "never resolved": ({"a.py": _WITHOUT, "b.py": _B}, {"a.py": b"x = 1\n"}, ()),
    "external": ({"a.py": _A, "b.py": b"from yaml import used\n"}, {"a.py": _WITHOUT}, ()),
    "new import": ({"a.py": _A, "b.py": b"x = 1\n"}, {"a.py": _WITHOUT, "b.py": b"from c import used\n"}, ()),
    "assigned instead": ({"a.py": _A, "b.py": _B}, {"a.py": b"used = print\n"}, ()),
    "other definition": (
        {"a.py": _A, "b.py": _B},
        {"a.py": b"def f():\n    global used\n    used = 1\n\n\nf()\n"},
        (),
    ),
    "bound by a statement": ({"a.py": _A, "b.py": _B}, {"a.py": b"for x, used in y:\n    pass\n"}, ()),
    "exported under the name": (
        {"a.ts": _TS, "b.ts": b'import { used } from "./a";\nused();\n'},
        {"a.ts": b"const other = f();\nexport { other as used };\n"},
        (),
    ),
    "in a string": ({"a.py": _A, "b.py": _B}, {"a.py": b'for n in ["used"]:\n    globals()[n] = 1\n'}, ()),
    "__getattr__": ({"a.py": _A, "b.py": _B}, {"a.py": b"def __getattr__(name):\n    return name\n"}, ()),
    "setattr": ({"a.py": _A, "b.py": _B}, {"a.py": b"import sys\n\nsetattr(sys.modules[__name__], f(), 1)\n"}, ()),
    "external star": ({"a.py": _A, "b.py": _B}, {"a.py": b"from yaml import *\n"}, ()),
    "star of the project": (
        {"a.py": _A, "b.py": _B, "c.py": b"x = 1\n"},
        {"a.py": b"from c import *\n", "c.py": _A},
        (),
    ),
    "submodule of the same name": (
        {"p/__init__.py": _A, "b.py": b"from p import used\n"},
        {"p/__init__.py": _WITHOUT, "p/used.py": b"x = 1\n"},
        (),
    ),
    "fallback": (
        {"a.py": _A, "b.py": b"try:\n    from a import used\nexcept ImportError:\n    used = None\n"},
        {"a.py": _WITHOUT},
        (),
    ),
    "condition": (
        {"a.py": _A, "b.py": b"import os\n\nif os.environ:\n    from a import used\nelse:\n    used = None\n"},
        {"a.py": _WITHOUT},
        (),
    ),
    "commented fallback": (
        {"a.py": _A, "b.py": b"try:  # optional\n# old:\n    from a import used\nexcept ImportError:\n    used = 0\n"},
        {"a.py": _WITHOUT},
        (),
    ),
    "condition of several lines": (
        {"a.py": _A, "b.py": b"import os\n\nif (\n    os.environ\n):  # noqa\n    from a import used\n"},
        {"a.py": _WITHOUT},
        (),
    ),
    "conditional item": (
        {"a.rs": b"pub fn used() {}\n", "main.rs": b"mod a;\n#[cfg(test)]\nuse a::used;\nfn main() { used(); }\n"},
        {"a.rs": b"pub fn other() {}\n"},
        (),
    ),
    "fallback of a use": (
        {"a.py": _A, "b.py": b"import a\n\ntry:\n    a.used()\nexcept AttributeError:\n    pass\n"},
        {"a.py": _WITHOUT},
        (),
    ),
    "suppressed": (
        {"a.py": _A, "b.py": b"from a import used  # codebatch: ignore[unresolved-import] next step\n"},
        {"a.py": _WITHOUT},
        (),
    ),
    "package instead of a module": ({"a.py": _A, "b.py": _B}, {"a.py": None, "a/__init__.py": _A}, ()),
    "compiled module": ({"a.py": _A, "b.py": _B}, {"a.py": None, "a.c": b"int x;\n"}, ()),
    "installed package": ({"a.py": _A, "b.py": _B}, {"a.py": None, "requirements.txt": b"A >= 2\n"}, ()),
    "standard library": ({"tomllib.py": _A, "b.py": b"import tomllib\n"}, {"tomllib.py": None}, ()),
    "generated file": ({"a.py": _A, "b.py": _B}, {"a.py": None, ".gitignore": b"a.py\n"}, ()),
    "excluded file": (
        {"p/a.py": _A, "p/__init__.py": b"", "b.py": b"from p.a import used\n"},
        {"codebatch.toml": b'exclude = ["p/a.py"]\n'},
        (),
    ),
    "default export": (
        {"a.ts": b"export default function used() {}\n", "b.ts": b'import used from "./a";\nused();\n'},
        {"a.ts": b"export default () => 1;\n"},
        (),
    ),
    "export of all names": (
        {"a.ts": _TS, "b.ts": b'import { used } from "./a";\nused();\n'},
        {"a.ts": b'export * from "package";\n'},
        (),
    ),
    "commonjs": (
        {"a.js": b"exports.used = function () {};\n", "b.js": b'const { used } = require("./a");\nused();\n'},
        {"a.js": b"Object.assign(exports, f());\n"},
        (),
    ),
    "go package with another file": (
        {"go.mod": _MOD, "lib/l.go": _GO, "main.go": _MAIN},
        {"lib/l.go": b"package lib\n", "lib/l_linux.go": _GO},
        (),
    ),
    "go module of its own": (
        {"go.mod": _MOD, "lib/l.go": _GO, "main.go": _MAIN},
        {"lib/l.go": None, "go.mod": _MOD + b"\nrequire example.com/m/lib v1.0.0\n"},
        (),
    ),
}  # fmt: skip


def _change(tmp_path: Path, before: Files, after: Files) -> Project:
    project = Project(tmp_path, [{os.fsencode(path): data for path, data in before.items() if data is not None}])
    for path in [path for path, data in after.items() if data is None]:
        (project.tree / path).unlink()
    project.commit({path: data for path, data in after.items() if data is not None})
    project.run()
    return project


def _check(project: Project, *conditions: str) -> CheckResult:
    return project.check(*(conditions or ("unresolved-import", "broken-use")), base="main~1")


@pytest.mark.parametrize("name", CASES)
def test_only_references_that_are_certainly_broken_fail_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before, after, rows = CASES[name]
    project = _change(tmp_path, before, after)
    monkeypatch.chdir(project.tree)
    checked = _check(project)
    broken = [change.new for change in checked.forbidden if isinstance(change.new, BrokenReference)]
    assert tuple((each.path, each.line, each.code, each.message) for each in broken) == rows
    assert {judged.condition: judged.value for judged in checked.judged} == {
        code: sum(row[2] == code for row in rows) for code in ("unresolved-import", "broken-use")
    }
    assert checked.has_passed == (not rows)
    assert not any(isinstance(change.new, BrokenReference) for change in checked.allowed)


def test_reference_in_a_file_that_is_not_parsed_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _change(tmp_path, {"a.py": _A, "b.py": _B}, {"a.py": _WITHOUT, "b.py": _B + SYNTAX_ERROR})
    monkeypatch.chdir(project.tree)
    checked = _check(project)
    assert (checked.forbidden, checked.not_judged, checked.has_passed) == ([], 1, False)


def test_check_of_a_part_of_the_project_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files outside of the part can import what the change removes."""
    project = _change(tmp_path, {"p/a.py": _A, "b.py": b"from p.a import used\n"}, {"p/a.py": _WITHOUT})
    monkeypatch.chdir(project.tree)
    part = project.run(path="p")
    assert not project.check("unresolved-import", base="main~1", head=part.id).has_passed
    assert project.check("new-error", base="main~1", head=part.id).has_passed


def test_conditions_need_imports_and_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _change(tmp_path, {"a.py": _A, "b.py": _B}, {"a.py": _WITHOUT})
    monkeypatch.chdir(project.tree)
    project.write({"codebatch.toml": b'[pipelines.mine]\ntasks = ["parse", "symbols"]\n', "known.jsonl": b""})
    project.run(pipeline="mine")
    with pytest.raises(TaskNotRun, match="did not run the task dependencies"):
        _check(project, "unresolved-import")
    with pytest.raises(InvalidInput, match="--fail-on broken-use cannot be used with a baseline"):
        codebatch.check(baseline="known.jsonl", store=project.store, fail_on=["broken-use"])


def test_other_conditions_ignore_broken_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _change(tmp_path, {"a.py": _A, "b.py": _B}, {"a.py": _WITHOUT})
    monkeypatch.chdir(project.tree)
    checked = _check(project, "new", "unresolved-import")
    assert [(judged.condition, judged.value) for judged in checked.judged] == [("new", 0), ("unresolved-import", 1)]
    assert (checked.allowed, checked.counts["new"]) == ([], 0)
    # The lines of broken imports are mostly unchanged.
    assert len(project.check("unresolved-import", base="main~1", changed_lines=True).forbidden) == 1
    assert project.check("new", base="main~1").has_passed


def test_names_that_are_not_utf8_stop_no_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before: Files = {"a.py": _A, "b.py": _B, "caf\udce9.py": _B, "\udce9.py": _A}
    project = _change(tmp_path, before, {"a.py": _WITHOUT, "\udce9.py": None})
    monkeypatch.chdir(project.tree)
    (change,) = _check(project, "unresolved-import").forbidden
    assert change.record.path_bytes == b"b.py"
