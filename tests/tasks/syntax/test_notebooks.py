"""Tests of notebooks: the Python code of their cells, located by lines of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codebatch.model.record import Diagnostic, Metric, Record, Symbol
from codebatch_workers.syntax.cells import with_cell_locations
from codebatch_workers.syntax.source import SourceFile
from tests.support.source_files import created, file_metrics, lint_all, parse, source

PYTHON = {"language_info": {"name": "python"}}


def notebook_text(*cells: str | tuple[str, str], metadata: Any = PYTHON, indent: int | None = 1) -> str:
    """Return the text of a notebook. A cell given as a pair has another type than code."""
    cell_objects = []
    for cell in cells:
        kind, text = cell if isinstance(cell, tuple) else ("code", cell)
        cell_objects.append(
            {"cell_type": kind, "metadata": {}, "outputs": [], "source": text.splitlines(keepends=True)}
        )
    return json.dumps({"cells": cell_objects, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}, indent=indent)


def notebook(*cells: str | tuple[str, str], metadata: Any = PYTHON, indent: int | None = 1) -> SourceFile:
    return source("a.ipynb", notebook_text(*cells, metadata=metadata, indent=indent))


def _line_containing(file: SourceFile, text: str) -> int:
    return next(at for at, line in enumerate(file.content.decode().split("\n"), 1) if text in line)


def _placed(file: SourceFile, records: list[Record]) -> list[tuple[int, object, object]]:
    placed = with_cell_locations(file, records)
    return [
        (record.line, record.cell, record.cell_line) for record in placed if isinstance(record, (Diagnostic, Symbol))
    ]


def test_notebook_findings_match_ruff_with_cell_and_line(tmp_path: Path) -> None:
    file = notebook("import os", ("markdown", "# Title\n"), "import sys\nx = 1\nprint(sys, undefined)\n")
    (findings,) = lint_all([file], tmp_path)
    assert [(finding.code, finding.column) for finding in findings] == [("F401", 8), ("F821", 12)]
    assert _placed(file, [*findings]) == [
        (_line_containing(file, "import os"), 1, 1),
        (_line_containing(file, "undefined"), 3, 3),
    ]


def test_names_are_known_across_cells_and_an_expression_may_end_a_cell(tmp_path: Path) -> None:
    file = notebook("import os\n", "os.getcwd()\nx = [1]\nx\n", "display(x)\nget_ipython()\n")
    assert lint_all([file], tmp_path) == [[]]


def test_redefinition_in_another_cell_is_a_hint(tmp_path: Path) -> None:
    """Users run cells repeatedly and in any order. Within a cell, the first definition is lost."""
    file = notebook("import os\n", ("markdown", "text"), "import os\nimport os\n")
    (findings,) = lint_all([file], tmp_path)
    redefined = [finding for finding in findings if finding.code == "F811"]
    assert [
        (place[1:], finding.severity) for place, finding in zip(_placed(file, [*redefined]), redefined, strict=True)
    ] == [
        ((3, 1), "hint"),
        ((3, 2), "warning"),
    ]


def test_notebook_symbols_and_metrics_cover_code_cells_only(tmp_path: Path) -> None:
    file = notebook("# a\n\nx = 1\n", ("markdown", "text"), "def f(a):\n    if a:\n        return 1\n")
    records = created("symbols", tmp_path).run_file(file)
    assert _placed(file, records) == [(_line_containing(file, "x = 1"), 1, 3), (_line_containing(file, "def f"), 3, 1)]
    metrics = file_metrics(file)
    assert (metrics["lines"], metrics["code"], metrics["comment"], metrics["blank"]) == (6, 4, 1, 1)
    assert (metrics["functions"], metrics["max_complexity"]) == (1, 2)
    located = with_cell_locations(file, created("analyze", tmp_path).run_file(file))
    assert {
        (record.cell, record.cell_line) for record in located if isinstance(record, Metric) and record.symbol == "f"
    } == {(3, 1)}


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nx = 1\n",
        "!pip install a \\\n  b\nx = 1\n",
        "if 1:\n    !ls\n    %cd ..\n",
        "x = !ls\ny = %sql select 1\n",
        "%%bash\nfor a in *; do echo $a; done\n",
        "%%time\nx = 1\n",
        "print?\nlist.append??\n?print\n",
        "await x\n",
    ],
)
def test_ipython_commands_are_not_errors(cell: str) -> None:
    file = notebook("x = 1\n", cell)
    record, errors = parse(file)
    assert (record.lang, record.parse, errors) == ("python", "ok", [])


def test_modulo_at_the_start_of_a_line_is_not_a_command() -> None:
    assert notebook("x = (7\n     % 3\n     != 2)\n").has_syntax_error is False


def test_syntax_error_is_reported_in_its_cell() -> None:
    file = notebook("x = 1\n", "y = 2\nx = (\n")
    record, errors = parse(file)
    assert record.parse == "errors"
    assert [place[1:] for place in _placed(file, [*errors])] == [(2, 3)] or _placed(file, [*errors])[0][1] == 2


def test_single_line_notebook_counts_lines_over_its_cells(tmp_path: Path) -> None:
    file = notebook("import os\n", ("markdown", "text"), "x = 1\nimport sys", indent=None)
    assert file.utf8 == b"import os\nx = 1\nimport sys\n"
    (findings,) = lint_all([file], tmp_path)
    assert _placed(file, [*findings]) == [(1, 1, 1), (3, 3, 2)]


def test_cell_source_as_a_string_is_parsed_like_a_list(tmp_path: Path) -> None:
    text = json.dumps(
        {"cells": [{"cell_type": "code", "source": "x = 1\nimport os"}], "metadata": PYTHON, "nbformat": 4}, indent=1
    )
    file = source("a.ipynb", text)
    (findings,) = lint_all([file], tmp_path)
    assert _placed(file, [*findings]) == [(2, 1, 2)]


@pytest.mark.parametrize(
    "content",
    [
        notebook_text("x <- 1\n", metadata={"kernelspec": {"name": "ir", "language": "R"}}),
        '{"nbformat": 3, "worksheets": []}\n',
        '{"cells": 1, "nbformat": 4}\n',
        '{"cells": [], "nbformat": 4} {}\n',
        '["a"]\n',
        '"a"\n',
        "{}\n",
    ],
)
def test_file_that_is_not_a_python_notebook_is_json(content: str) -> None:
    file = source("a.ipynb", content)
    assert (file.language, file.notebook) == ("json", None)
    assert file.utf8 == content.encode()


def test_broken_notebook_is_broken_json() -> None:
    record, errors = parse(source("a.ipynb", notebook_text("x = 1\n")[:-2]))
    assert (record.lang, record.parse) == ("json", "errors")
    assert errors


@pytest.mark.parametrize("language", ["Jupyter Notebook", "Python"])
def test_attributes_do_not_change_the_language_of_a_notebook(language: str) -> None:
    contexts = {"attributes": f"language={language}".encode()}
    assert source("a.ipynb", notebook_text("x = 1\n"), contexts).language == "python"
    assert source("a.ipynb", "{}\n", contexts).language == "json"


def test_invalid_cells_are_skipped() -> None:
    source_of_odd = '[1, "\\ud800\\n", "x = 1"]'
    cells = f'1, {{}}, {{"cell_type": "code"}}, {{"cell_type": "code", "source": {source_of_odd}}}'
    text = f'{{"cells": [{cells}], "nbformat": 4}}'
    file = source("a.ipynb", text)
    assert file.language == "python"
    assert file.utf8.endswith(b"x = 1\n")
