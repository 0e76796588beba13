"""`duplicates`: copied blocks from largest to smallest, each listed once, with their source side by side."""

from __future__ import annotations

import csv
import json
import random
from io import StringIO

import pytest

from tests.cli.terminal import on_a_terminal
from tests.support.command_line import CommandLine, write


def code(seed: str, lines: int) -> str:
    return "".join(
        f"    {seed}_{number} = compute_{seed}(number={number}, other='{seed}')\n" for number in range(lines)
    )


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree with copied blocks and its batch. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("copied"))
    tree = codebatch.directory / "tree"
    for place in ("a.py", "b.py", "tests/test_a.py"):
        write(tree / place, f"def f_{place[0]}():\n{code('x', 14)}")
    write(tree / "c.py", f"def c():\n{code('y', 20)}\n\ndef d():\n{code('y', 20)}".replace("y_3 =", "y\x1b[31m\t=", 1))
    write(tree / "tests/test_b.py", f"def b():\n{code('z', 30)}\n\ndef e():\n{code('z', 30)}")
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def test_duplicates_lists_each_block_once_from_largest_to_smallest(copied: CommandLine) -> None:
    answer = copied("duplicates", "--store", "store", "--json").json
    assert [(block["lines"], [place["path"] for place in block["locations"]]) for block in answer["blocks"]] == [
        (16, ["c.py", "c.py"]),
        (14, ["a.py", "b.py", "tests/test_a.py"]),
    ]
    assert (answer["count"], answer["excluded"], answer["complete"]) == (2, 1, True)
    assert answer["blocks"][1]["locations"][0] == {"path": "a.py", "line": 2, "end_line": 16}
    assert copied("duplicates", "--store", "store", "--all", "--json").json["blocks"][0]["lines"] == 30


@pytest.mark.parametrize(
    ("arguments", "expected"), [(("--min", "16"), [16]), (("--path", "b.py"), [14]), (("--limit", "1"), [16])]
)
def test_duplicates_options_select_blocks(copied: CommandLine, arguments: tuple[str, ...], expected: list[int]) -> None:
    answer = copied("duplicates", "--store", "store", *arguments, "--json").json
    assert [block["lines"] for block in answer["blocks"]] == expected


def test_locations_of_the_first_block_are_listed_vertically_in_a_pipe(copied: CommandLine) -> None:
    ended = copied("duplicates", "--store", "store", "--path", "a.py")
    assert ended.lines[0] == "   1  14 lines  a.py:2 = b.py:2 = tests/test_a.py:2"
    assert ended.lines[2:4] == ["a.py:2", "     2      x_0 = compute_x(number=0, other='x')"]
    assert ended.lines[15] == "b.py:2"
    assert ended.lines[-1] == "   …  full source: codebatch duplicates --show 1"
    shown = copied("duplicates", "--store", "store", "--show", "2")
    assert shown.lines[0] == "   2  14 lines  a.py:2 = b.py:2 = tests/test_a.py:2"
    assert len(shown.lines) == 2 + 2 * 15
    assert "blocks found: 2" in copied("duplicates", "--store", "store", "--show", "3", status=2).notes


@pytest.mark.parametrize(("columns", "is_beside"), [(100, True), (20, False)])
def test_locations_are_side_by_side_on_a_wide_terminal(copied: CommandLine, columns: int, is_beside: bool) -> None:
    arguments = ("duplicates", "--store", "store", "--show", "2", "-q", "--no-color")
    lines = on_a_terminal(copied, *arguments, columns=columns)[0].splitlines()
    assert any(line.startswith("a.py:2  ") and " | b.py:2" in line for line in lines) is is_beside
    assert not is_beside or max(map(len, lines[2:])) <= columns


def test_duplicates_escapes_control_characters(copied: CommandLine) -> None:
    ended = copied("duplicates", "--store", "store", "--show", "1")
    assert "\x1b" not in ended.text


def test_csv_has_a_row_for_each_location(copied: CommandLine) -> None:
    ended = copied("duplicates", "--store", "store", "-o", "csv", "--path", "a.py")
    assert ended.lines[:2] == ["number,lines,copies,path,line,end_line", "1,14,3,a.py,2,16"]


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree with three equal functions, and one that differs in its last line. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("nested"))
    body = code("x", 12)
    three = "".join(f"def {name}():\n{body}    return x_11 + x_0 + len('{'x' * 20}')\n\n\n" for name in ("b", "c", "d"))
    write(codebatch.directory / "tree" / "a.py", f"def a():\n{body}    return 0\n\n\n{three}")
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def test_machine_formats_list_every_location_with_its_end(nested: CommandLine) -> None:
    """The location of a partial copy is listed too. No location is shown only as a count, and none twice."""
    places = [("a.py", 18, 31), ("a.py", 34, 47), ("a.py", 50, 63), ("a.py", 2, 14)]
    (block,) = nested("duplicates", "--store", "store", "--json").json["blocks"]
    assert (block["lines"], block["copies"]) == (13, 4)
    assert [(place["path"], place["line"], place["end_line"]) for place in block["locations"]] == places
    assert [place.get("lines") for place in block["locations"]] == [None, None, None, 12]
    text = nested("duplicates", "--store", "store", "-o", "csv").text
    assert [(row["path"], int(row["line"]), int(row["end_line"])) for row in csv.DictReader(StringIO(text))] == places
    text = nested("duplicates", "--store", "store", "-o", "jsonl").text
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["path"], row["line"], row["end_line"]) for row in rows] == places
    assert [row["lines"] for row in rows] == [13, 13, 13, 12]


def test_plain_output_marks_partial_locations(nested: CommandLine) -> None:
    ended = nested("duplicates", "--store", "store", "--show", "1")
    assert ended.lines[0] == "   1  13 lines  a.py:18 = a.py:34 = a.py:50 = a.py:2 (12 lines)"
    ended = nested("duplicates", "--store", "store")
    assert ended.lines[0] == "   1  13 lines  a.py:18 = a.py:34 = a.py:50 (and 1 more)"
    assert "more; show them" not in ended.notes


def test_duplicates_finds_locations_missing_from_records(codebatch: CommandLine) -> None:
    """The files are parts of one text.

    Each location of each block is listed, or lies in a longer location that is listed.
    """
    chance = random.Random(3)
    text = [f"    value_{number} = compute(step={number}, name='n{number * 7 % 100}')" for number in range(60)]
    trees: dict[str, list[str]] = {}
    for number in range(14):
        start = chance.randrange(0, 40)
        body = text[start : start + chance.randrange(10, 40)]
        comment = ["", "    # a comment of its own"] if number % 2 else []
        trees[f"f{number:02}.py"] = [f"def f{number}():", *comment, *body, f"    return {number}"]
        write(codebatch.directory / "tree" / f"f{number:02}.py", "\n".join(trees[f"f{number:02}.py"]) + "\n")
    codebatch("run", "tree", "--store", "store", "-q")
    records = codebatch("query", "duplicates", "--store", "store", "--json").records
    named = {(record["path"], record["line"]) for record in records}
    named |= {(record["other_path"], record["other_line"]) for record in records}
    blocks = codebatch("duplicates", "--store", "store", "--json").json["blocks"]
    listed = [(record["path"], record["line"], record["end_line"]) for block in blocks for record in block["locations"]]
    assert len(set(listed)) == len(listed)
    of_groups = {record["group"]: (record["path"], record["line"], record["end_line"]) for record in records}
    missed = 0
    for path, line, end_line in of_groups.values():
        block = trees[path][line - 1 : end_line - 1]
        for other, lines in trees.items():
            for at in range(len(lines) - len(block) + 1):
                if lines[at : at + len(block)] == block:
                    missed += (other, at + 1) not in named
                    assert any(
                        other == path and len(block) - (min(end, at + 1 + len(block)) - max(line, at + 1)) < 10
                        for path, line, end in listed
                    )
    assert missed, "the test needs a location that no record has"


def test_duplicates_without_its_task_names_the_pipeline_to_run(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "")
    codebatch("run", ".", "--pipeline", "parse", "-q")
    assert (
        "run with: codebatch run --pipeline full; also in the pipeline analyze"
        in codebatch("duplicates", status=2).notes
    )
