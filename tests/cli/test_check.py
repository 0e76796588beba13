"""`check` as CI calls it: what it ends with, what it says, and to whom."""

from __future__ import annotations

import json

import pytest

from .process import CommandLine, write

pytestmark = pytest.mark.slow


def test_check_ends_with_what_came_of_it(codebatch: CommandLine) -> None:
    """Outside of git: the batch before is the base."""
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("run", ".", "-q")
    first = codebatch("check", "--json")
    assert (first.json["base"], first.json["passed"], first.json["conditions"]) == (None, True, [])
    assert "nothing to compare with, so all is old" in codebatch("check", "-q").notes

    write(codebatch.directory / "b\x1b.py", "def f(:\n")
    codebatch("run", ".", "-q")
    told = codebatch("check", "--fail-on", "new-error", "--fail-on", "worse", status=1)
    assert [line.split() for line in told.lines[1:]] == [
        ["condition", "value", "limit", "verdict"],
        ["new-error", "1", "0", "failed"],
        ["worse", "0", "0", "passed"],
        ["1", "new,", "1", "unchanged"],
    ]
    assert told.lines[0].startswith("b\\x1b.py:1:7: error syntax-error ")
    assert told.lines[0].endswith("[new]")
    assert told.notes.endswith("failed: new-error (1 time)\n")
    answer = codebatch("--json", "check", status=1).json
    assert (answer["passed"], answer["counts"]["new"]) == (False, 1)
    assert [row["code"] for row in answer["forbidden"]] == ["syntax-error"]
    assert codebatch("check", "latest", "latest").lines[-1] == "2 unchanged"

    assert "one of: new-error, " in codebatch("check", "--fail-on", "newest", "--json", status=2).error["hint"]
    assert codebatch("check", "no-such", "--json", status=2).error["code"] == "unknown_id"


def test_what_head_lacks_wins_over_what_it_has(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("run", ".", "-q")
    write(codebatch.directory / "b.py", "def f(:\n")
    codebatch("run", ".", "-q", "--task", "parse")
    told = codebatch("check", "latest~1", "latest", "--json", status=3)
    assert json.loads(told.stdout)["complete"] is False
    assert "incomplete: " in told.notes
