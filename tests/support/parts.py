"""Projects whose parts are run and joined in this process, and the outputs of their batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.test_store_fuzz import Answer, ask
from tests.support.command_line import write

SETTINGS = """
[shard]
files_average = 3
files_min = 2
files_max = 4
[tasks.picky]
python = "picky.py:task"
[tasks.marked]
python = "marked.py:task"
reuse = false
"""
PICKY = "def task(file):\n    if b'fail' in file.path:\n        raise ValueError('this one not')\n    return ()\n"
CONTENTS = {
    "py": "import os\n\n\ndef f(x=[]):\n    return x is 1\n",
    "c": '#include "a.h"\nint main(void) { return f(1); }\n',
    "js": "import './e';\nexport const a = b == 1;\n",
    "txt": "",
}
NAMES_OF_A_TREE = [f"{letter}.py" for letter in "abcdefghij"]


def make_tree(tree: Path, names: list[str], settings: str = SETTINGS) -> Path:
    """Write a tree with custom tasks. A task fails for each path that contains `fail`."""
    write(tree / "codebatch.toml", settings)
    write(tree / "picky.py", PICKY)
    write(tree / "marked.py", "def task(file):\n    return ()\n")
    for name in names:
        write(tree / name, CONTENTS[name.rpartition(".")[2]])
    return tree


def ask_in(tree: Path, *words: str, status: int | None = 0) -> Answer:
    """Run a command in this process, in a directory, and check its exit status unless it is None."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        answer = ask((*words, "--json", "-q"))
    assert status in (None, answer.status), answer.stderr
    return answer


def decode_answer(answer: Answer) -> dict[str, Any]:
    """Return the JSON answer of a command."""
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def answer_of_part(tree: Path, part: str, store: Path, to: Path) -> dict[str, Any]:
    """Run a part and return its answer."""
    return decode_answer(ask_in(tree, "run", "--part", part, ".", "--store", str(store), "--part-output", str(to)))


def run_part(tree: Path, part: str, store: Path, to: Path) -> Path:
    """Run a part and return the path of its file."""
    return Path(answer_of_part(tree, part, store, to)["file"])


def read_outputs(store: Path) -> Mapping[str, bytes]:
    """Return the bytes of all outputs of the latest batch."""
    outputs = max(store.glob("batches/batch-*")) / "outputs"
    assert len(list(outputs.iterdir())) == 1
    return {str(path.relative_to(outputs)): path.read_bytes() for path in outputs.rglob("*") if path.is_file()}


def read_plain_outputs(tree: Path, store: Path) -> Mapping[str, bytes]:
    """Run without parts, and return the bytes of all outputs."""
    ask_in(tree, "run", ".", "--store", str(store), status=None)
    return read_outputs(store)
