"""Histories of a small tree of several languages: random steps from a seed, applied to a tree on disk."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

SHARDS = "[shard]\nfiles_average = 3\nfiles_min = 2\nfiles_max = 4\n"

_PYTHON = [
    "import os\nimport pkg.m\nfrom . import n\n\n\ndef f(x=[]):\n    return x is 1  # noqa: F632\n",
    "from pkg import *\nimport sys, re\n\nx = (\n",
    "#!/usr/bin/env python3\nimport m\nclass A(m.B):\n    def f(self, code):\n        return eval(code)\n",
    "import pkg.sub.m as q\n\n\ndef long(a, b):\n" + "".join(f"    if a > {n}:\n        b += {n}\n" for n in range(9)),
    "# -*- coding: latin-1 -*-\nTODO = 1  # TODO x\n",
    "",
]
_C = [
    '#include "a.h"\n#include <stdio.h>\n#define X(a) a\nint main(void) { if (1) return X(2); }\n',
    "int f(int a) { return a; }\nint g(int a) { for (;;) { a++; } }\n",
    "class A { int x; };\nnamespace n { int f(); }\n",
    "#ifdef X\nint x;\n#else\nint y = 1\n#endif\n",
]
_SCRIPT = [
    "import { b } from './b';\nimport c from 'c';\nexport const a: number = b == 1;\n",
    "import '@/lib/a';\nexport interface P { x: number }\nexport * from './a';\n",
    "const a = require('x'), b = 2;\nif (a) { b == 1 }\n<<<<<<< HEAD\n",
    "var a=1;" * 300,
]
_RUST = ["mod a;\npub fn f<T>(x: T) -> T { x }\n", "use crate::a::f;\nuse serde::X;\nfn main() { f(1); }\n"]
_GO = ['package main\nimport (\n "fmt"\n "example.com/p/lib"\n)\nfunc main() { fmt.Println(lib.X) }\n', "package lib\n"]
_JSON = ['{"a": [1, 2]}\n', '{"a": [1, 2,]}\n', '{"name": "x"}\n']
_BYTES = [b"\0\1\2", b"x = '\xfc'\n", "x = 'ü'\n".encode("utf-16"), b"", b"\r\n".join([b"a = 1"] * 4), b"\xff\xfe"]

_CONTENTS: dict[str, list[str]] = {
    ".py": _PYTHON, ".pyi": _PYTHON, ".c": _C, ".h": _C, ".cc": _C, ".ts": _SCRIPT, ".js": _SCRIPT, ".tsx": _SCRIPT,
    ".rs": _RUST, ".go": _GO, ".json": _JSON, ".md": ["# A\n\n```py\nx = 1\n```\n"], "": _PYTHON,
}  # fmt: skip
_PLACES = ["", "pkg", "pkg/sub", "web", "web/lib", "native", "native/b", "src", "lib", "Grüße, Welt"]
_STEMS = ["m", "n", "a", "b", "lib", "index", "main", "mod", "setup", "caf\udce9", "a b"]

_ATTRIBUTES = [
    "*.json linguist-language=Python", "pkg/** linguist-generated", "web/* linguist-vendored",
    "*.h linguist-language=C", "*.py eol=crlf", "* text=auto", "m.* linguist-language=TypeScript",
    "*.py -linguist-generated", "a* linguist-language", "[attr]gen linguist-generated",
    "src/** linguist-documentation", "*.c linguist-language=C++ gen",
]  # fmt: skip
_RUFF = [
    "lint.select = ['F', 'E', 'D']\n", "extend = '../more.toml'\n", "line-length = 10\nlint.select = ['E501']\n",
    "lint.per-file-ignores = {'m.py' = ['F401']}\n", "", "src = ['pkg']\nlint.select = ['I', 'F']\n", "broken",
]  # fmt: skip
_PYPROJECT = [
    "[project]\nversion = '1'\n", "[project]\nversion = '2'\n", "[project]\nrequires-python = '>=3.12'\n[tool.ruff]\n",
    "[tool.ruff.lint]\nselect = ['UP', 'F']\n", "[project]\nname = 'm'\ndependencies = ['x']\n",
]  # fmt: skip
_MANIFESTS: dict[str, list[str]] = {
    "package.json": ['{"name": "x", "main": "web/a.ts"}', '{"imports": {"#a": "./web/a.ts"}}'],
    "web/package.json": ['{"name": "c", "exports": {".": "./b.ts"}}', '{"name": "d"}'],
    "tsconfig.json": ['{"compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["web/*"]}}}', '{"extends": "./base"}'],
    "base.json": ['{"compilerOptions": {"paths": {"c": ["./web/lib/a.ts"]}}}'],
    "Cargo.toml": ['[package]\nname = "x"\n', '[package]\nname = "serde"\n[lib]\npath = "src/a.rs"\n'],
    "go.mod": ["module example.com/p\n", "module example.com/q\nreplace example.com/p => ./lib\n"],
    ".gitignore": ["*.json\n", "web/\n!web/a.ts\n", "m.*\n"],
    ".codebatchignore": ["native\n", "*.go\n"],
    "more.toml": ["lint.select = ['F', 'UP']\n", "line-length = 20\nlint.select = ['E']\n"],
}  # fmt: skip
_CONFIGURED = [
    "", "[tasks.lint]\noff = ['F401']\n", "[tasks.lint]\non = ['unused-*', 'shadow*']\n",
    "[tasks.lint.ruff]\nconfig = 'project'\n", "[tasks.lint]\nseverity = {'F*' = 'hint'}\n",
    "[tasks.parse]\nemit_ast = true\n", "[[tasks.lint.paths]]\nmatch = ['pkg/']\noff = ['*']\n",
    "[tasks.lint.todo]\nwords = ['A']\n",
    "[[tasks.lint.rules]]\nid = 'no-eval'\nlanguage = 'python'\nquery = '(call) @found'\nmessage = 'a call'\n",
]  # fmt: skip
_OWN = "[tasks.words]\npython = 'tools/words.py:task'\nfiles = ['tools/words.txt']\n"
_OWN_FILES = {
    "tools/words.py": [
        """from pathlib import Path
from codebatch_workers.api import Metric
def task(file):
    words = Path(__file__).with_name("words.txt").read_bytes().split()
    return [Metric(path=file.path.decode(), metric="words", value=sum(map(file.content.count, words)))]
""",
        "def task(file):\n    return []\n",
        "def task(file):\n    return [[]][len(file.content) % 2]\n",
    ],
    "tools/words.txt": ["import def", "x", ""],
}
_RULES = [
    SHARDS,
    SHARDS,
    SHARDS,
    "[shard]\nfiles_average = 2\nfiles_min = 1\nfiles_max = 3\n",
    "[shard]\nbytes_max = 90\n",
]

Step = Callable[[], None]


class History:
    """A tree and the random steps that change it. Equal seeds give equal histories."""

    def __init__(self, tree: Path, seed: int) -> None:
        self.tree = tree
        self._random = random.Random(seed)
        self._past: list[dict[str, tuple[bytes, bool]]] = []
        tree.mkdir()
        (
            tree / ".git"
        ).mkdir()  # The directory makes the tree a project, so that a run can be restricted to a part of it.
        if seed % 2:
            subprocess.run(["git", "init", "-q", tree], check=True)
        self._write("codebatch.toml", SHARDS)
        for _ in range(self._random.randint(4, 14)):
            self._add()
        self._steps: Mapping[str, tuple[int, Step]] = {
            "edit": (6, self._edit),
            "add": (3, self._add),
            "remove": (2, self._remove),
            "rename": (3, self._rename),
            "chmod": (2, self._chmod),
            "make equal": (3, self._make_equal),
            "import": (3, self._import),
            "attributes": (2, lambda: self._some_lines(".gitattributes", _ATTRIBUTES)),
            "package": (2, self._package),
            "ruff": (2, self._ruff),
            "pyproject": (1, lambda: self._maybe(self._path("pyproject.toml"), _PYPROJECT)),
            "manifest": (3, self._manifest),
            "configure": (3, self._configure),
            "own task": (2, self._own_task),
            "go back": (3, self._go_back),
            "touch": (1, self._touch),
            "link": (1, self._link),
        }

    def step(self) -> str:
        """Apply one to three changes. Return their names."""
        self._past.append(self.files())
        names = self._random.choices(
            [*self._steps], [weight for weight, _ in self._steps.values()], k=self._random.choice((1, 1, 1, 2, 3))
        )
        for name in names:
            self._steps[name][1]()
        return ", ".join(names)

    def files(self) -> dict[str, tuple[bytes, bool]]:
        """Return content and executable bit of every file by path."""
        contents = {}
        for directory, below, names in os.walk(self.tree):
            below[:] = [name for name in below if name != ".git"]
            for name in names:
                path = Path(directory, name)
                if not path.is_symlink():
                    is_executable = os.access(path, os.X_OK) and path.stat().st_mode & 0o100 != 0
                    contents[str(path.relative_to(self.tree))] = path.read_bytes(), is_executable
        return contents

    def places(self) -> list[str]:
        """Return the directories that contain a file."""
        return sorted({str(Path(path).parent) for path in self.files()})

    def _write(self, path: str, content: str | bytes) -> None:
        """Write a file unless a link, a directory or a file is in the way."""
        target = self.tree / path
        directories = [above for above in target.parents if self.tree in above.parents]
        if (
            target.is_symlink()
            or target.is_dir()
            or any(directory.is_symlink() or directory.is_file() for directory in directories)
        ):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)

    def _any(self) -> str:
        return self._random.choice(sorted(set(self.files()) - {"codebatch.toml"}) or ["m.py"])

    def _path(self, name: str) -> str:
        place = self._random.choice(["", "", "pkg", "pkg/sub", "web"])
        return f"{place}/{name}" if place else name

    def _new(self) -> str:
        suffix = self._random.choice([*_CONTENTS])
        place = self._random.choice(_PLACES)
        return os.path.join(place, self._random.choice(_STEMS) + suffix)

    def _content(self, path: str) -> str | bytes:
        if self._random.random() < 0.15:
            return self._random.choice(_BYTES)
        return self._random.choice(_CONTENTS.get(Path(path).suffix, _PYTHON))

    def _edit(self) -> None:
        path = self._any()
        if self._random.random() < 0.5:
            self._write(path, self._content(path))
        elif (self.tree / path).is_file():
            self._write(path, (self.tree / path).read_bytes() + b"\n# %d\n" % self._random.randrange(5))

    def _add(self) -> None:
        path = self._new()
        self._write(path, self._content(path))

    def _remove(self) -> None:
        (self.tree / self._any()).unlink(missing_ok=True)

    def _rename(self) -> None:
        source, target = self.tree / self._any(), self.tree / self._new()
        if source.is_file() and not target.exists():
            self._write(str(target.relative_to(self.tree)), source.read_bytes())
            source.unlink()

    def _chmod(self) -> None:
        path = self.tree / self._any()
        if path.is_file():
            path.chmod(path.stat().st_mode ^ 0o111)

    def _make_equal(self) -> None:
        source = self.tree / self._any()
        if source.is_file():
            self._write(self._any(), source.read_bytes())

    def _import(self) -> None:
        path = self._any()
        line = {
            ".py": "import pkg.m\n", ".ts": "import './a';\n", ".js": "import '../web/b';\n", ".c": '#include "a.h"\n',
            ".rs": "use crate::lib::f;\n", ".go": '// import\n',
        }.get(Path(path).suffix, "from . import m\n")  # fmt: skip
        if (self.tree / path).is_file():
            self._write(path, line.encode() + (self.tree / path).read_bytes())

    def _package(self) -> None:
        self._maybe(self._path("__init__.py"), ["", "from . import m\n"])

    def _ruff(self) -> None:
        self._maybe(self._path(self._random.choice(["ruff.toml", ".ruff.toml"])), _RUFF)

    def _manifest(self) -> None:
        path = self._random.choice([*_MANIFESTS])
        self._maybe(path, _MANIFESTS[path])

    def _maybe(self, path: str, contents: list[str]) -> None:
        if (self.tree / path).is_file() and self._random.random() < 0.4:
            (self.tree / path).unlink()
        else:
            self._write(path, self._random.choice(contents))

    def _some_lines(self, name: str, lines: list[str]) -> None:
        self._write(self._path(name), "\n".join(self._random.sample(lines, self._random.randint(0, 3))) + "\n")

    def _configure(self) -> None:
        own = _OWN if (self.tree / "tools/words.txt").exists() and (self.tree / "tools/words.py").exists() else ""
        parts = ["", "", "", "pipeline = 'parse'", "pipeline = 'analyze'"], _RULES, _CONFIGURED, ["", own]
        self._write("codebatch.toml", "\n".join(map(self._random.choice, parts)))

    def _own_task(self) -> None:
        path = self._random.choice([*_OWN_FILES])
        self._write(path, self._random.choice(_OWN_FILES[path]))

    def _touch(self) -> None:
        if (self.tree / self._any()).is_file():
            os.utime(self.tree / self._any(), ns=(1, self._random.randrange(10**18)))

    def _link(self) -> None:
        path = self.tree / self._new()
        if path.parent.is_dir() and not path.exists() and not path.is_symlink():
            path.symlink_to(self._random.choice(["m.py", "pkg", "nowhere"]))

    def _go_back(self) -> None:
        """Restore the tree of an earlier step, as when a branch is checked out again."""
        past_files = self._random.choice(self._past[-4:])
        for path in sorted(set(self.files()) - set(past_files)):
            (self.tree / path).unlink()
        for path, (content, is_executable) in past_files.items():
            target = self.tree / path
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            for ancestor in target.parents:
                if ancestor.is_symlink() or ancestor.is_file():
                    ancestor.unlink()
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o755 if is_executable else 0o644)
