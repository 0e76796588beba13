"""`-o csv --escape-formulas`: no cell with text begins like a formula, and numbers remain numbers."""

from __future__ import annotations

import csv
import io

import pytest

from codebatch.cli import cli
from codebatch.cli.framework.formats import escaped_formula
from codebatch.cli.reference.interface import describe_interface
from codebatch.model.task import JsonValue
from tests.support.command_line import CommandLine, write

WORDS = {
    "callers": "f",
    "references": "f",
    "hotspots": "--min 1",
    "implementations": "Base",
    "diff": "latest~1 latest --kind file --kind diagnostic",
    "improvements": "latest~1 latest --kind diagnostic",
    "find": "-l python --pattern f($X)",
    "regressions": "latest~1 latest --kind diagnostic",
    "sql": "select_path_from_file",
}
COMMANDS = sorted(
    command.name
    for command in describe_interface(cli).commands
    if any("--escape-formulas" in option.names for option in command.options)
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@a", "'@a"), ("\t=1", "'\t=1"), ("\r=1", "'\r=1"),
        ("\uff1d1", "'\uff1d1"), (["=1", "b"], "'=1, b"), (-1, "-1"), (-1.5, "-1.5"), ("a=1", "a=1"), ("", ""),
        (None, ""), (True, "true"), ("'=1", "'=1"),
    ],
)  # fmt: skip
def test_cell_that_begins_like_a_formula_is_escaped(value: JsonValue, text: str) -> None:
    assert escaped_formula(value) == text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree with names that are formulas, in two batches. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("formulas"))
    body = "".join(f"    value_{number} = compute_it(number={number}, other='the same')\n" for number in range(14))
    body += "\n\nclass Base: ...\n\n\nclass Sub(Base): ...\n"
    for name in ("=1+1.py", "@sum.py", "-2.py", "+3.py"):
        write(
            codebatch.directory / "tree" / name,
            f"import os\n\n\ndef g(x):\n    if x:\n        f(x)\n\n\ndef h():\n{body}",
        )
    codebatch("run", "tree", "--store", "store", "-q")
    write(
        codebatch.directory / "tree" / "=1+1.py",
        f"import sys\n\n\ndef g(x):\n    if x:\n        f(x)\n\n\ndef h():\n{body}",
    )
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def rows(codebatch: CommandLine, command: str, *options: str) -> list[list[str]]:
    words = WORDS.get(command, "").split()
    words = [word.replace("_", " ") for word in words] if command == "sql" else words
    text = codebatch(*command.split(), *words, "--store", "store", "-q", "-o", "csv", *options).text
    return list(csv.reader(io.StringIO(text)))


def test_every_command_that_writes_csv_can_escape_formulas() -> None:
    writing = {
        command.name
        for command in describe_interface(cli).commands
        if any("csv" in option.choices for option in command.options)
    }
    assert set(COMMANDS) == writing
    assert {"sql", "findings", "hotspots", "duplicates", "diff", "find", "query outputs"} <= writing


@pytest.mark.parametrize("command", COMMANDS)
def test_escaped_csv_of_every_command_has_no_formula(tree: CommandLine, command: str) -> None:
    plain, escaped = rows(tree, command), rows(tree, command, "--escape-formulas")
    assert len(plain) == len(escaped)
    changed = 0
    for one, other in zip(plain, escaped, strict=True):
        for before, after in zip(one, other, strict=True):
            assert after in (before, f"'{before}")
            assert not after.startswith(("=", "+", "@"))
            changed += after != before
    assert changed or command in ("query failures", "query stats")


def test_escape_formulas_requires_csv(tree: CommandLine) -> None:
    for form in ("jsonl", "md"):
        notes = tree("findings", "--store", "store", "-o", form, "--escape-formulas", status=2).notes
        assert "--escape-formulas needs -o csv" in notes
    assert "--escape-formulas needs -o csv" in tree("hotspots", "--store", "store", "--escape-formulas", status=2).notes
