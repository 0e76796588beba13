"""Tests of dependencies inferred under `auto`: their reasons, their storage, and `infer` commands with any output."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codebatch.errors import InvalidInput, InvalidWork, NothingToDo
from codebatch.model.work.work_batch import RejectedEdge, Work, decode_work, encode_work
from codebatch.operations.project.stores import StoreLocator
from codebatch.work.control.analysis import analyze_list, edges_as_toml
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.run import run_files
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList
from tests.work.reading import read

LIST = """
strategy = "auto"
max_parallel = 2
[defaults]
run = "true"
[tasks.schema]
text = "Create db/users.sql."
[tasks.login]
text = "Depends on `schema`."
needs = ["docs"]
[tasks.docs]
text = "After login is done, write docs/a.md."
[tasks.part]
text = "Look at db/users.sql."
each = { values = ["a", "b"] }
"""


def read_with_infer_program(
    directory: Path, program: str, seconds: float = 20, options: WorkOptions | None = None
) -> WorkList:
    """Read a list whose `infer` command is a Python program."""
    (directory / "infer.py").write_text(program, encoding="utf-8")
    command = json.dumps([sys.executable, "infer.py"])
    text = LIST.replace("[defaults]", f"[infer]\ncommand = {command}\ntimeout_seconds = {seconds}\n[defaults]", 1)
    return read(directory, text, options or WorkOptions())


def inferred_edges(listed: WorkList) -> list[tuple[str, str, str]]:
    return [(edge.task, edge.on, edge.source) for edge in listed.work.inferred]


RULES = [("login", "schema", "inferred"), ("part/a", "schema", "inferred"), ("part/b", "schema", "inferred")]


def test_inferred_dependency_has_a_reason(tmp_path: Path) -> None:
    work_list = read(tmp_path, LIST)
    assert inferred_edges(work_list) == RULES
    assert work_list.work.inferred[0].evidence == "its text: \u201cDepends on `schema`.\u201d"
    assert {(edge.task, edge.on) for edge in work_list.work.edges} == {
        ("login", "docs"),
        *((a, b) for a, b, _ in RULES),
    }
    assert [(rejected.task, rejected.on, rejected.reason) for rejected in work_list.rejected_edges] == [
        ("docs", "login", "it would create a cycle: login → docs exists")
    ]
    assert decode_work(encode_work(work_list.work)) == work_list.work
    assert (work_list.work.strategy, work_list.work.max_parallel) == ("auto", 2)
    assert read(tmp_path, LIST, WorkOptions(tasks=("part/a",))).work.order == ("schema", "part/a")
    assert inferred_edges(read(tmp_path, LIST, WorkOptions(tasks=("part/a",)))) == RULES[1:2]
    assert inferred_edges(read(tmp_path, LIST, WorkOptions(infer_confidence=0.9))) == RULES[:1]
    assert read(tmp_path, LIST, WorkOptions(infer=False)).rejected_edges == ()
    assert inferred_edges(read(tmp_path, LIST, WorkOptions(strategy="parallel"))) == []
    with pytest.raises(InvalidInput, match="infer_confidence must be from 0 to 1, not 2"):
        WorkOptions(infer_confidence=2)


def test_infer_command_provides_dependencies(tmp_path: Path) -> None:
    program = """
import json, sys
tasks = {task["id"]: task for task in json.load(sys.stdin)["tasks"]}
assert list(tasks) == ["schema", "login", "docs", "part"] and tasks["login"]["needs"] == ["docs"]
edges = [{"task": "schema", "needs": "part", "why": "because", "confidence": 0.7}, {"task": "nobody", "needs": "docs"},
         {"task": "docs", "needs": "docs"}, {"task": "docs", "needs": "login"}, {"task": "login", "needs": "docs"},
         {"task": "docs", "needs": "schema", "confidence": 7}, {"task": "docs", "needs": "part", "confidence": 0.1}]
print(json.dumps({"edges": edges}))
"""
    work_list = read_with_infer_program(tmp_path, program)
    assert inferred_edges(work_list) == [("schema", "part/a", "command"), ("schema", "part/b", "command")]
    assert work_list.work.inferred[0].evidence == "because"
    assert [edge.reason for edge in work_list.rejected_edges] == [
        "it would create a cycle: login → docs exists", "its confidence is below 0.5",
    ]  # fmt: skip
    (note,) = work_list.warnings
    for message in ("'nobody' needs 'docs': no task 'nobody'", "it is the same task", "is not between 0 and 1"):
        assert message in note


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('garbage')", "printed invalid output"),
        ('print(\'{"edges": [{"task": 3}]}\')', "printed invalid output"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "printed invalid output"),
        ("print('[' * 100000)", "printed invalid output"),
        ("pass", "printed invalid output"),
        ("import sys; print('no model', file=sys.stderr); sys.exit(3)", "it ended with status 3: no model"),
        ("import os; os.kill(os.getpid(), 9)", "it ended with status -9"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "it printed more than 16,777,216 bytes"),
        (
            "import os\nos.close(0); os.close(1); os.close(2)\nimport time; time.sleep(100_000)",
            "it did not end within 1 sec",
        ),
        ("import time; time.sleep(100_000)", "it did not end within 1 seconds"),
        ("import os, time\nif not os.fork(): time.sleep(100_000)", "printed invalid output"),
    ],
)
def test_failed_infer_command_is_reported_and_rules_apply(tmp_path: Path, program: str, message: str) -> None:
    work_list = read_with_infer_program(tmp_path, program, 1 if "within 1 sec" in message else 100_000)
    assert inferred_edges(work_list) == RULES
    (note,) = work_list.warnings
    assert message in note
    assert "using the built-in rules" in note


def test_missing_or_skipped_infer_command_is_reported(tmp_path: Path) -> None:
    text = LIST.replace("[defaults]", '[infer]\ncommand = ["./no-such"]\n[defaults]', 1)
    assert "cannot be started: No such file or directory" in read(tmp_path, text).warnings[0]
    work_list = read_with_infer_program(tmp_path, "open('touched', 'w')", options=WorkOptions(infer_command=False))
    assert "was not run, so its dependencies are not shown" in work_list.notes[0]
    assert not (tmp_path / "touched").exists()
    work_list = read_with_infer_program(tmp_path, "open('touched', 'w')", options=WorkOptions(strategy="parallel"))
    assert work_list.notes == ("the `infer` command is not run: `strategy` is 'parallel'",)


def test_analysis_reports_the_makespan_and_the_critical_path(tmp_path: Path) -> None:
    text = 'max_parallel = 2\npools = { db = 1 }\n[defaults]\nrun = "true"\n[tasks.a]\nexpected_seconds = 10\n'
    text += "".join(f'[tasks.{name}]\nneeds = ["a"]\npools = {{ db = 1 }}\nexpected_seconds = 5\n' for name in "bc")
    analysis = analyze_list(read(tmp_path, text + '[tasks.d]\nafter = ["b"]\n'))
    assert (analysis.seconds, analysis.critical_seconds, analysis.critical_path) == (20.0, 16.0, ("a", "b", "d"))
    assert [(item.max_parallel, item.seconds) for item in analysis.makespans] == [(1, 21.0), (2, 20.0), (4, 20.0)]
    assert [(item.pool, item.seconds_without) for item in analysis.binding_pools] == [("db", 16.0)]
    assert [task.level for task in analysis.tasks] == [0, 1, 1, 2]
    assert [(edge.task, edge.on, edge.kind, edge.source) for edge in analysis.edges][-1] == ("d", "b", "after", "file")
    assert analysis.with_estimate == 3


def test_inferred_dependencies_are_written_as_toml(tmp_path: Path) -> None:
    toml = edges_as_toml(analyze_list(read(tmp_path, LIST)).edges)
    run = "".join(f'\n[tasks.{name}]\nrun = "true"' for name in ("schema", "docs"))
    work_list = read(tmp_path, f'defaults.run = "true"\n{toml}{run}')
    assert [(edge.task, edge.on) for edge in work_list.work.edges] == [("login", "schema"), ("part", "schema")]


def test_cycle_is_reported_before_inference(tmp_path: Path) -> None:
    text = LIST.replace("[tasks.docs]", '[tasks.docs]\nneeds = ["login"]')
    with pytest.raises(InvalidWork, match="in a cycle: login → docs → login"):
        read(tmp_path, text)


class RejectingListener(WorkListener):
    """A listener that rejects the inferred dependencies."""

    def agrees(self, work: Work, left_out: Sequence[RejectedEdge]) -> bool:
        return False


def test_hint_after_rejection_shows_the_same_list(tmp_path: Path) -> None:
    program = 'print(\'{"edges": [{"task": "login", "needs": "schema"}]}\')'
    read_with_infer_program(tmp_path, program)
    options = WorkOptions(tasks=("login",), tags=(), command="echo it's", infer_confidence=0.7)
    with pytest.raises(NothingToDo) as raised:
        run_files(
            (tmp_path / "work.toml",), options, StoreLocator(tmp_path / "store"), keep=1, listener=RejectingListener()
        )
    assert raised.value.hint is not None
    command = re.search(r": (codebatch [^;]*);", raised.value.hint)
    assert command is not None
    assert shlex.split(command[1]) == [
        *("codebatch", "work", "analyze", "--file", str(tmp_path / "work.toml"), "--command", "echo it's"),
        *("--infer-confidence", "0.7", "--run-infer", "login"),
    ]
    assert not (tmp_path / "store").exists()
