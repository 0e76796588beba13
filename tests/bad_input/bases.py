"""A changed tree, and a store with three older batches of it: settled, interrupted, merged."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from codebatch.model.documents import encode_document
from codebatch.store.results.untrusted import UntrustedFile
from tests.bad_input.test_store_fuzz import Answer, ask
from tests.support.command_line import write
from tests.support.inline_workers import inline

SECONDS_MAX = 20
SETTINGS = "[shard]\nfiles_average = 2\nfiles_min = 2\nfiles_max = 2\n"
SOURCES = {
    "a.py": "import b\n\n\ndef f(x=[]):\n    return x is 1\n",
    "b.py": "import os\n",
    "c.c": '#include "c.h"\nint main(void) { return f(1); }\n',
    "c.h": "int f(int a);\n",
    "d.ts": "import './e';\nexport const a: number = b == 1;\n",
    "e.ts": "export interface P { x: number }\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """A tree with a store of older batches.

    `digests` has the expected result digests: the tree `tree` has changed since, `elsewhere` has not.
    """

    root: Path
    digests: Mapping[str, str]

    @property
    def store(self) -> Path:
        """The original store. It is never written to: trials use a copy."""
        return self.root / "store"

    def copied(self, to: Path) -> Path:
        """Copy the store by hard links, which is fast."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.store, to, symlinks=True, copy_function=os.link)
        return to

    def run(self, store: Path, *more: str, tree: str = "tree") -> Answer:
        """Run `codebatch run TREE` in this process."""
        return ask(("run", str(self.root / tree), "--json", "-q", "--store", str(store), *more))

    def problem_of(self, answer: Answer, tree: str = "tree", *, may_say: Collection[str] = ()) -> str:
        """Return what is wrong with the answer of a run, or an empty string. The run may end with the errors `may_say`.

        Damage in an older batch is a cache miss, not an error.
        """
        if answer.status in (3, 4) and may_say and bool(answer.stdout) == (answer.status == 3):
            error = json.loads(answer.stderr.splitlines()[-1])["error"]
            return "" if error["code"] in may_say else f"an error: {answer.stderr}"
        if answer.status != 0:
            return f"status {answer.status}: {answer.stderr[-1500:]}"
        return "" if json.loads(answer.stdout)["result_digest"] == self.digests[tree] else "a wrong digest"


def make_bases(root: Path) -> Bases:
    """Create the bases. Each batch has results that no other batch has."""
    tree, store = root / "tree", root / "store"
    bases = Bases(root=root, digests={})
    write(tree / "codebatch.toml", SETTINGS)
    with inline(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        for name, text in SOURCES.items():
            write(tree / name, text)
        assert bases.run(store).status == 0
        write(tree / "c.h", "int f(int b);\n")
        write(tree / "d.ts", "let x = 1;\n")
        assert bases.run(store, "--task", "symbols").status == 0
        write(tree / "b.py", "import sys\n")
        write(tree / "c.h", SOURCES["c.h"])
        shutil.copytree(tree, root / "elsewhere")
        latest = bases.run(store)
        assert latest.status == 0
        write(store / "untrusted.json", encode_document(UntrustedFile(keys=())))
        for name in ("b.py", "d.ts"):
            write(tree / name, SOURCES[name])
        write(tree / "c.h", "int f(int b);\n")
        fresh = bases.run(root / "anew")
        shutil.rmtree(root / "anew")
    states = [sorted(entry.name for entry in path.iterdir()) for path in sorted(store.glob("batches/*"))]
    assert ["settled.json" in names for names in states] == [True, False, False]
    assert ["outcomes" in names for names in states] == [False, True, True]
    digests = {"tree": fresh, "elsewhere": latest}
    return Bases(
        root=root, digests={name: json.loads(answer.stdout)["result_digest"] for name, answer in digests.items()}
    )


class Hung(BaseException):
    """A command did not end in time."""


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Raise Hung in the body if it does not end within the time limit."""

    def ring(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS_MAX)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
