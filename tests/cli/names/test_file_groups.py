"""Rows are grouped by file and limited on a terminal, and one line each in a pipe."""

from __future__ import annotations

import json

import pytest

from codebatch.cli.answers.file_groups import FILES_SHOWN
from tests.cli.terminal import on_a_terminal
from tests.support.command_line import CommandLine, write

FILES = FILES_SHOWN + 12


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree in which many files use a name. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("groups"), {"NO_COLOR": "1"})
    write(codebatch.directory / "lib.py", "def price(n):\n    return n\n")
    for number in range(FILES - 1):
        directory = "app" if number < 40 else "web"
        text = f"from lib import price\n\n\ndef total():\n    return price({number})  # see below\n"
        write(codebatch.directory / directory / f"m{number:02}.py", text)
    codebatch("run", ".", "-q")
    return codebatch


def test_references_are_grouped_counted_and_cut_on_a_terminal(analysed: CommandLine) -> None:
    text, notes = on_a_terminal(analysed, "references", "price")
    lines = text.replace("\r", "").splitlines()
    assert lines[:4] == [
        f"{2 * FILES - 1} uses in {FILES} files",
        "app/m00.py",
        "  1:17  import  from lib import price",
        "  5:12  call    return price(0)  # see below",
    ]
    assert sum(not line.startswith(" ") for line in lines[1:]) == FILES_SHOWN
    assert notes.splitlines() == [
        f"not shown: 24 uses in 12 files; show all with --limit {FILES}",
        "  call 12 (--role call), import 12 (--role import)",
        "  web 24 (--path /web)",
    ]
    everything, notes = on_a_terminal(analysed, "references", "price", "--limit", str(FILES))
    assert (everything.count("\n"), notes) == (3 * FILES, "")
    narrowed, _ = on_a_terminal(analysed, "references", "price", "--path", "/web", "--role", "call")
    assert narrowed.startswith("21 uses in 21 files\r\nweb/m40.py\r\n  5:12  call  return price(40)  # see below\r\n")


def test_callers_are_grouped_on_a_terminal(analysed: CommandLine) -> None:
    text, notes = on_a_terminal(analysed, "callers", "price", "--limit", "1")
    assert text.replace("\r", "").splitlines() == [
        f"{FILES - 1} calling functions in {FILES - 1} files",
        "app/m00.py",
        "  5  total  calls price (inferred)",
    ]
    assert "not shown: 60 calling functions in 60 files; show all with --limit 61\n" in notes


def test_impact_is_cut_on_a_terminal(analysed: CommandLine) -> None:
    text, notes = on_a_terminal(analysed, "impact", "lib.py")
    assert len(text.splitlines()) == 1 + FILES_SHOWN + 1
    assert f"{FILES - 1} dependents, {FILES - 1} direct\r\n" in text
    assert "not shown: 11 dependents; show all with --limit 61\n  distance 1 11 (--depth 1)\n" in notes
    rows = analysed("impact", "lib.py", "--path", "/web", "--json").records
    assert len(rows) == 21
    assert "none: no dependents of lib.py whose path contains 'nowhere' in 0 files" in (
        analysed("impact", "lib.py", "--path", "nowhere").notes
    )


def test_answers_for_programs_have_all_rows_unless_limited(analysed: CommandLine) -> None:
    total = 2 * FILES - 1
    piped = analysed("references", "price")
    assert piped.lines[0] == "app/m00.py:1:17: import"
    assert len(piped.lines) == total
    assert piped.notes == f"{total} uses in {FILES} files\n"
    assert len(analysed("references", "price", "--json").records) == total
    assert len(analysed("references", "price", "-o", "jsonl").lines) == total
    limited = analysed("references", "price", "--limit", "2")
    assert len(limited.lines) == 4
    assert f"not shown: {total - 4} uses in {FILES - 2} files; show all with --limit {FILES}\n" in limited.notes
    assert len(analysed("references", "price", "--limit", "2", "--json").records) == 4
    rows = [json.loads(line) for line in analysed("callers", "price", "--limit", "1", "-o", "jsonl").lines]
    call = {"path": "app/m00.py", "scope": "total", "line": 5, "target": "price", "calls": 1}
    assert rows == [call | {"resolution": "inferred", "candidates": 1, "through": ""}]
    assert analysed("callers", "price", "-o", "csv").lines[:2] == [
        "path,line,scope,target,calls,resolution",
        "app/m00.py,5,total,price,1,inferred",
    ]
    plain, _ = on_a_terminal(analysed, "references", "price", "-o", "plain", "--limit", "1")
    assert plain == "app/m00.py:1:17: import\r\napp/m00.py:5:12: call in total\r\n"
