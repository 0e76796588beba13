"""Notebooks on the command line."""

from __future__ import annotations

import json

from .process import CommandLine, write

_CELLS = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Shop\n"]},
    {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": ["def price(tea):\n", '    return "4"\n', 'print(price("a"), sugar)\n'],
    },
]


def _run(codebatch: CommandLine, indent: int | None) -> None:
    metadata = {"language_info": {"name": "python"}}
    document = {"cells": _CELLS, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    write(codebatch.directory / "tree" / "a.ipynb", json.dumps(document, indent=indent))
    codebatch("run", "tree", "-q")


def test_a_finding_is_shown_with_its_cell_and_its_line_of_code(codebatch: CommandLine) -> None:
    _run(codebatch, indent=1)
    lines = codebatch("findings").lines
    assert lines[0] == "error F821  1 in 1 file: Undefined name `sugar`"
    assert lines[1:4] == [
        "  a.ipynb:18:19 (cell 2, line 3)",
        '      18 | print(price("a"), sugar)',
        "         |                   ^^^^^",
    ]
    assert codebatch("query", "symbols").lines == ["a.ipynb:16:5 (cell 2, line 1): function price"]
    shown = next(line for line in codebatch("inspect", "a.ipynb:18").lines if line.startswith(">"))
    assert shown.split(maxsplit=2) == [">", "18", 'print(price("a"), sugar)']


def test_the_line_of_code_is_found_in_a_notebook_of_one_line(codebatch: CommandLine) -> None:
    _run(codebatch, indent=None)
    assert codebatch("findings").lines[1:3] == [
        "  a.ipynb:3:19 (cell 2, line 3)",
        '       3 | print(price("a"), sugar)',
    ]


def test_a_pattern_is_found_in_code_that_the_file_has_escaped(codebatch: CommandLine) -> None:
    _run(codebatch, indent=1)
    assert (
        codebatch("find", "--pattern", 'print(price("a"), $X)', "--language", "python")
        .lines[0]
        .startswith("a.ipynb:18:1")
    )
