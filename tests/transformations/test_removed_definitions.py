"""Tests of the gate `uses`: changes that remove a definition while other files use it, with real batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.store.objects.packs import encode_damaged_keys
from tests.support.command_line import CommandLine, set_apart, write

TREE = {
    "shop/__init__.py": "",
    "shop/prices.py": "RATE = 2\n\n\ndef price(x):\n    return x\n\n\nclass Tax:\n    def of(self): return 1\n",
    "shop/cart.py": "from shop.prices import RATE, price\n\n\ndef total(x):\n    return price(x) * RATE\n",
    "shop/other.py": "def price(x):\n    return x\n\n\nTEXT = 'price of Tax and RATE'\nprice(1)\n",
    "web/a.js": "import { show } from './b.js';\nshow(1);\n",
    "web/b.js": "export function show(x) { return x; }\nexport function hide(x) { return x; }\n",
    "go/a.go": "package a\n\nfunc Open() int { return 1 }\n",
    "go/b.go": "package a\n\nfunc Use() int { return Open() }\n",
}
TASK = """
EDITS = {edits!r}
def task(file):
    new = file.content
    for path, old, replacement in EDITS:
        if file.path == path.encode():
            new = None if replacement is None else new.replace(old.encode(), replacement.encode())
    yield file.change(new)
"""
Edit = tuple[str, str, str | None]


def refused(codebatch: CommandLine, *edits: Edit, pipeline: str = "full") -> dict[str, str]:
    """Return the evidence of each change that the gate `uses` refuses, by path. Each edit is made by one task."""
    for path, content in TREE.items():
        write(codebatch.directory / "src" / path, content)
    write(codebatch.directory / "tools" / "edit.py", TASK.format(edits=edits))
    settings = "[tasks.edit]\npython = 'tools/edit.py:task'\n[pipelines.small]\ntasks = ['parse', 'edit']\n"
    write(codebatch.directory / "codebatch.toml", settings + "[pipelines.symbols]\ntasks = ['symbols', 'edit']\n")
    set_apart(codebatch, "src")
    codebatch("run", "src", "--pipeline", pipeline)
    rows = codebatch("changes", "--json").records
    assert len(rows) == len({path for path, _, _ in edits})
    assert {row["refused"]["gate"] for row in rows if "refused" in row} <= {"uses"}
    return {row["path"]: row["refused"]["evidence"] for row in rows if "refused" in row}


RENAME = ("shop/prices.py", "def price", "def cost")


@pytest.mark.parametrize(
    ("edit", "evidence"),
    [
        (RENAME, "`price` is removed, but shop/cart.py:1 uses it"),
        (("shop/prices.py", "RATE = 2", "SHARE = 2"), "`RATE` is removed, but shop/cart.py:1 uses it"),
        (("shop/prices.py", "", None), "`RATE` is removed, but shop/cart.py:1 uses it"),
        (("web/b.js", "function show", "function display"), "`show` is removed, but web/a.js:1 uses it"),
        (("go/a.go", "func Open", "func Show"), "`Open` is removed, but go/b.go:3 uses it"),
    ],
)
def test_removal_of_a_used_definition_is_refused(codebatch: CommandLine, edit: Edit, evidence: str) -> None:
    assert refused(codebatch, edit) == {edit[0]: evidence}


@pytest.mark.parametrize(
    "edits",
    [
        [RENAME, ("shop/cart.py", "price", "cost")],
        [RENAME, ("shop/cart.py", "", None)],
        [("shop/prices.py", "class Tax", "class Duty")],
        [("web/b.js", "function hide", "function conceal")],
        [("shop/prices.py", "def price(x):\n    return x", "def price(x, y=1):\n    return x + y")],
        [("shop/prices.py", "def price", "price = None\n\n\ndef cost")],
        [("shop/other.py", "def price", "def cost")],
    ],
)
def test_unused_renamed_and_kept_definitions_pass(codebatch: CommandLine, edits: list[Edit]) -> None:
    assert refused(codebatch, *edits) == {}


def test_changed_file_that_still_uses_the_name_is_evidence(codebatch: CommandLine) -> None:
    """A comment does not count, a use does."""
    imported = ("shop/cart.py", "RATE, price", "RATE, cost")
    assert refused(codebatch, RENAME, imported, ("shop/cart.py", "price(x) * RATE", "cost(x)  # price")) == {}
    kept = refused(codebatch, RENAME, ("shop/cart.py", "return price", "return cost"))
    assert kept == {"shop/prices.py": "`price` is removed, but shop/cart.py:1 uses it"}


def test_refusal_does_not_depend_on_the_selected_paths(codebatch: CommandLine) -> None:
    assert refused(codebatch, RENAME, ("shop/cart.py", "price", "cost")) == {}
    assert codebatch("apply", "--path", "prices", "--dry-run").lines[-1] == "1 file can be written"
    assert set(refused(codebatch, RENAME)) == {"shop/prices.py"}
    assert codebatch("changes", "--path", "prices", "--refused", "--json").records[0]["refused"]["gate"] == "uses"
    assert codebatch("apply", status=1).lines[-1] == "0 files written, 1 left out by gates"


def test_definition_of_one_of_two_equal_lines_is_found(codebatch: CommandLine) -> None:
    method = "    @staticmethod\n    def run(): ..."
    twice = f"class A:\n{method}\n\n\nclass B:\n{method}\n"
    write(codebatch.directory / "src" / "shop" / "twice.py", twice)
    write(codebatch.directory / "src" / "shop" / "user.py", "from shop.twice import A\n\nA.run()\n")
    evidence = refused(codebatch, ("shop/twice.py", twice, twice.replace(method, "    x = 1", 1)))
    assert evidence == {"shop/twice.py": "`A.run` is removed, but shop/user.py:3 uses it"}


def test_change_whose_content_is_missing_is_listed(codebatch: CommandLine) -> None:
    refused(codebatch, RENAME)
    (row,) = codebatch("changes", "--json").records
    for pack in (codebatch.directory / ".codebatch" / "objects").glob("*.pack"):
        pack.with_suffix(".bad").write_bytes(encode_damaged_keys({bytes.fromhex(row["after"])}))
    ended = codebatch("changes")
    assert ended.lines[1].split() == ["shop/prices.py", "edit", "1", "1"]
    assert ended.notes.startswith("the gate `uses` was left out for shop/prices.py: object ")


def test_gate_is_left_out_with_a_note_if_a_task_is_missing(codebatch: CommandLine, tmp_path: Path) -> None:
    assert refused(codebatch, RENAME, pipeline="small") == {}
    assert codebatch("changes").notes == "the gate `uses` was left out: the batch has no task 'symbols'\n"
    assert refused(codebatch, RENAME, pipeline="symbols") == {}
    assert codebatch("changes").notes == "the gate `uses` was left out: the batch has no task 'dependencies'\n"
    assert refused(codebatch, ("shop/cart.py", "* RATE", "+ RATE"), pipeline="symbols") == {}
    assert codebatch("changes").notes == ""
