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
    told = codebatch("check", "--fail-on", "new-error", "--fail-on", "severity-raised", status=1)
    assert [line.split() for line in told.lines[1:]] == [
        ["condition", "value", "limit", "verdict"],
        ["new-error", "1", "0", "failed"],
        ["severity-raised", "0", "0", "passed"],
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
    snapshot = codebatch("snapshot", ".", "--json").json["snapshot_id"]
    begun = codebatch("batch", "init", "--snapshot", snapshot, "--json").json["batch_id"]
    refused = codebatch("baseline", "create", "known.jsonl", "--batch", begun, "--json", status=3).error
    assert refused["message"].endswith("results)"), "what programs would do is not said to people"
    assert refused["hint"] == f"go on with: codebatch run --batch {begun}"


def test_baseline_is_made_kept_up_and_checked_against(codebatch: CommandLine) -> None:
    here = codebatch.directory
    write(here / "a.py", "import os\nimport re\n")
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    made = codebatch("baseline", "create", "known.jsonl", "--json")
    assert (made.json["findings"], (here / "known.jsonl").read_bytes().count(b"\n")) == (2, 2)
    assert "is there" in codebatch("baseline", "create", "known.jsonl", "--json", status=2).error["message"]
    assert codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new").lines[-1].startswith("0 new, 2 of the")

    write(here / "b.py", "\n\nimport re\nimport sys\n")
    (here / "a.py").unlink()
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    told = codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new", "--json", status=1).json
    assert [row["message"] for row in told["forbidden"]] == ["`sys` imported but unused"]
    assert (told["counts"], told["base"]) == ({"unchanged": 1, "new": 1, "fixed": 1}, None)
    update = codebatch("baseline", "update", "known.jsonl", "--json").json
    assert [update[name] for name in ("findings", "removed", "moved", "added", "left_out")] == [1, 1, 1, 0, 1]
    codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new", status=1)
    assert codebatch("baseline", "update", "known.jsonl", "--accept-new").lines == ["known.jsonl: 2 findings, 1 added"]
    codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new")
    shown = codebatch("baseline", "show", "known.jsonl", "--json").json
    assert shown == [{"tool": "ruff", "code": "F401", "findings": 2, "files": 1}]

    (here / "known.jsonl").write_text("<<<<<<< HEAD\n")
    assert (
        "known.jsonl merge=union" in codebatch("check", "--baseline", "known.jsonl", "--json", status=2).error["hint"]
    )
    assert codebatch("check", "--baseline", "gone.jsonl", "--json", status=2).error["code"] == "invalid_input"
    assert "grave" in codebatch("check", "--baseline", "known.jsonl", "--fail-on", "severity-raised", status=2).notes


def test_what_cannot_be_looked_at_stays_in_a_baseline(codebatch: CommandLine) -> None:
    here = codebatch.directory
    known = "def f():\n    return undefined_one\n"
    write(here / "a.py", known + "print(undefined_two)\n")
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    codebatch("baseline", "create", "known.jsonl")
    # The other line is edited: that is gone, whatever else is.
    write(here / "a.py", known + "\ndef (:\n")
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    told = codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new", "--json", status=1).json
    assert told["counts"] == {"unchanged": 0, "new": 1, "fixed": 1, "not_comparable": 1}
    assert "1 not comparable" in codebatch("check", "--baseline", "known.jsonl", status=1).lines[-1]
    update = codebatch("baseline", "update", "known.jsonl", "--json").json
    assert [update[name] for name in ("findings", "removed", "left_out", "not_comparable")] == [1, 1, 1, 1]
    write(here / "a.py", known)
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new")
