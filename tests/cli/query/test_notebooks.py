"""Notebooks on the command line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.support.command_line import CommandLine, write

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


def _notebook_text(*sources: list[str], indent: int | None = 1) -> str:
    """Return the text of a notebook with cells of Python."""
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=indent)


def _run(codebatch: CommandLine, indent: int | None) -> None:
    metadata = {"language_info": {"name": "python"}}
    document = {"cells": _CELLS, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    write(codebatch.directory / "tree" / "a.ipynb", json.dumps(document, indent=indent))
    codebatch("run", "tree", "-q")


def test_finding_in_a_notebook_shows_its_cell_and_code_line(codebatch: CommandLine) -> None:
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


def test_finding_in_a_one_line_notebook_shows_its_code_line(codebatch: CommandLine) -> None:
    _run(codebatch, indent=None)
    assert codebatch("findings").lines[1:3] == [
        "  a.ipynb:3:19 (cell 2, line 3)",
        '       3 | print(price("a"), sugar)',
    ]


def test_find_matches_code_that_is_escaped_in_the_notebook(codebatch: CommandLine) -> None:
    _run(codebatch, indent=1)
    assert (
        codebatch("find", "--pattern", 'print(price("a"), $X)', "--language", "python")
        .lines[0]
        .startswith("a.ipynb:18:1")
    )


def test_edges_and_duplicates_in_notebooks_have_cells(codebatch: CommandLine) -> None:
    rows = [f"total_{n} = total_{n - 1} + value_{n}\n" for n in range(1, 13)]
    total = ["def total(total_0):\n", *(f"    {row}" for row in rows), "    g()\n"]
    text = _notebook_text(["import sys\n"], total)
    write(codebatch.directory / "tree" / "a.ipynb", _notebook_text(["import os\n", "import other\n"], total))
    write(codebatch.directory / "tree" / "b.ipynb", text)
    write(codebatch.directory / "tree" / "other.py", "x = 1\n")
    codebatch("run", "tree", "-q")
    edges = codebatch("--json", "query", "edges", "--path", "a.ipynb").json["records"]
    assert {(edge["edge_type"], edge["target"], edge["cell"], edge["cell_line"]) for edge in edges} >= {
        ("imports", "other", 1, 2), ("depends", "other.py", 1, 2), ("calls", "g", 2, 14),
    }  # fmt: skip
    (block,) = codebatch("--json", "query", "duplicates", "--path", "b.ipynb").json["records"]
    line = 1 + text.split("\n").index('    "def total(total_0):\\n",')
    assert (block["cell"], block["cell_line"], block["line"], block["other_path"]) == (2, 1, line, "a.ipynb")


_FORMS = ("sarif", "github", "gitlab", "checkstyle", "rdjson")


def _marked_lines(codebatch: CommandLine) -> list[tuple[str, int, int]]:
    """Return the only finding as each format exports it: its message, and its first and last line."""
    data = {form: codebatch.directory / f"{form}.txt" for form in _FORMS}
    for form, path in data.items():
        codebatch("export", form, "-o", str(path))
    (result,) = [each for run in json.loads(data["sarif"].read_text())["runs"] for each in run["results"]]
    region = result["locations"][0]["physicalLocation"]["region"]
    end = region.get("endLine", region["startLine"]) - (region.get("endColumn") == 1 < region.get("endLine", 1))
    places = [(result["message"]["text"], region["startLine"], end)]
    annotation = data["github"].read_text().split("\n")[0]
    fields = dict(each.split("=") for each in annotation.split("::")[1].split(" ", 1)[1].split(","))
    places.append((annotation.split("::")[2], int(fields["line"]), int(fields["endLine"])))
    (issue,) = json.loads(data["gitlab"].read_text())
    places.append((issue["description"], issue["location"]["lines"]["begin"], issue["location"]["lines"]["end"]))
    (error,) = ET.parse(data["checkstyle"]).iter("error")
    places.append((error.attrib["message"], int(error.attrib["line"]), int(error.attrib["line"])))
    (row,) = json.loads(data["rdjson"].read_text())["diagnostics"]
    range_ = row["location"]["range"]
    last = range_["end"]["line"] - (range_["end"]["line"] > range_["start"]["line"])
    places.append((row["message"], range_["start"]["line"], last))
    return places


@pytest.mark.parametrize("indent", [1, None])
def test_exports_mark_the_notebook_line_or_line_1(codebatch: CommandLine, indent: int | None) -> None:
    _run(codebatch, indent=indent)
    line = 18 if indent else 1
    assert _marked_lines(codebatch) == [("Undefined name `sugar` (cell 2, line 3)", line, line)] * len(_FORMS)


@pytest.mark.parametrize("source", ['"x = 1\\nprint(sugar)"', '[\n"x = 1\\nprint(", "sugar)"\n]'])
def test_exports_mark_line_1_for_code_inside_a_multiline_string(codebatch: CommandLine, source: str) -> None:
    text = f'{{"cells": [\n{{"cell_type": "code",\n"source": {source}}}],\n"nbformat": 4}}\n'
    write(codebatch.directory / "tree" / "a.ipynb", text)
    codebatch("run", "tree", "-q")
    assert {(begin, end) for _, begin, end in _marked_lines(codebatch)} == {(1, 1)}
