"""`work analyze`: a graph for other programs, with any titles of tasks. Nothing is run, and no store is needed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write

HOSTILE = [
    'quo"te', "back\\slash\\", "<b>html</b>", "a -> b; }", "]; x [label=", "`code`", "#35; &amp;", "\\N\\G\\l", "é → ü",
    "line\nbreak\ttab", "end", "'single'", "%% comment", '"]\n  evil --> t0', "\u202eright to left",
]  # fmt: skip


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """The command line beside a list of tasks with hostile titles. Each task needs the one before."""
    tasks = {
        f"t{n}": {"run": "touch ran", "title": title, "text": f"After t{n - 1} is done: {title}" if n else title}
        for n, title in enumerate(HOSTILE)
    }
    write(tmp_path / "work.json", json.dumps({"strategy": "auto", "max_parallel": 3, "tasks": tasks}))
    return CommandLine(tmp_path)


WORDS = ("work", "analyze", "-f", "work.json")


def test_analyze_prints_the_graph_and_runs_nothing(line: CommandLine) -> None:
    analysis = line(*WORDS, "--json").json
    assert (analysis["schema"], analysis["strategy"], len(analysis["edges"])) == (
        "codebatch.work-analyze/1",
        "auto",
        14,
    )
    assert analysis == line(*WORDS, "--format", "json").json
    assert {edge["source"] for edge in analysis["edges"]} == {"inferred"}
    text = line(*WORDS).lines
    assert text[:3] == ["source    work.json", "tasks     15, 14 dependencies", "strategy  auto, 3 at once"]
    assert line("work", "run", "-f", "work.json", "--analyze").lines == text
    assert line(*WORDS, "--no-infer", "--json").json["edges"] == []
    assert line(*WORDS, "--infer-confidence", "0.99", "--json").json["edges"] == []
    assert sorted(path.name for path in line.directory.iterdir()) == ["work.json"]
    assert "wrote keep.toml" in line(*WORDS, "--write", "keep.toml").notes
    assert "cannot write keep.toml: File exists" in line(*WORDS, "--write", "keep.toml", status=2).notes


def test_dot_graph_is_valid_with_hostile_titles(line: CommandLine) -> None:
    graph = line(*WORDS, "--format", "dot").text
    assert graph.count("\n") == 2 + len(HOSTILE) + 14 + 1
    strings = re.compile(r'"(?:[^"\\\n]|\\.)*"')
    bare = strings.sub("S", graph)
    assert re.fullmatch(
        r"digraph work \{\n.*\n(?:  S \[label=S(?:, penwidth=2)?\];\n){15}"
        r"(?:  S -> S \[style=dashed, label=S, tooltip=S\];\n){14}\}\n",
        bare,
    )
    if shutil.which("dot"):
        drawn = json.loads(
            subprocess.run(["dot", "-Tjson"], input=graph.encode(), check=True, capture_output=True).stdout
        )
        assert [node["name"] for node in drawn["objects"]] == [f"t{n}" for n in range(len(HOSTILE))]
        assert len(drawn["edges"]) == 14


def test_mermaid_graph_has_one_line_per_node_with_hostile_titles(line: CommandLine) -> None:
    lines = line(*WORDS, "--format", "mermaid").lines
    nodes, edges = lines[1 : 1 + len(HOSTILE)], lines[1 + len(HOSTILE) :]
    assert lines[0] == "graph LR"
    assert all(re.fullmatch(rf'  t{n}\["t{n}: [^"<>`\\]*"\]', node) for n, node in enumerate(nodes))
    assert [re.fullmatch(r'  t(\d+) -\. "0.95" \.-> t(\d+)', edge) is not None for edge in edges] == [True] * 14


def test_dependency_cycle_is_an_error_with_its_path(line: CommandLine) -> None:
    tasks = {"a": {"run": "x", "needs": ["b"]}, "b": {"run": "x", "needs": ["a"]}}
    write(line.directory / "circle.json", json.dumps({"tasks": tasks}))
    error = line("work", "analyze", "-f", "circle.json", "--json", status=2).error
    assert (error["code"], error["message"]) == (
        "invalid_configuration", "tasks depend on one another in a cycle: a → b → a",
    )  # fmt: skip


def test_run_reports_inferred_dependencies_and_stores_them(line: CommandLine) -> None:
    tasks = {
        "two": {"run": "test -e x", "text": "After one is done."},
        "one": {"run": "touch x", "text": "Before two."},
    }
    write(line.directory / "two.json", json.dumps({"strategy": "auto", "tasks": tasks}))
    ran = line("work", "run", "-f", "two.json", "-q", "-j", "2")
    assert (
        "inferred: 1 dependency\n"
        "task  needs  confidence  why\n"
        "two   one    0.95        its text: “After one is done.”\n" in ran.notes
    )
    (work,) = line.directory.glob(".codebatch/batches/*/work.json")
    assert json.loads(work.read_text())["inferred"] == [
        {
            "task": "two",
            "on": "one",
            "source": "inferred",
            "evidence": "its text: “After one is done.”",
            "confidence": 0.95,
        }
    ]
    assert line("status", "--json").json["tasks"][0]["needs"] == ["one"]
    assert line("work", "run", "-f", "two.json", "-q", "-j", "2", "--yes").notes == ""


def test_rejected_inference_is_reported_without_its_blank_reason(line: CommandLine) -> None:
    answer = {"edges": [{"task": "b", "needs": "a", "confidence": 1.0, "why": " "}]}
    tasks = {"a": {"run": "true", "needs": ["b"]}, "b": {"run": "true"}}
    made = {"strategy": "auto", "infer": {"command": ["printf", json.dumps(answer)]}, "tasks": tasks}
    write(line.directory / "none.json", json.dumps(made))
    assert "rejected: b needs a (1.00): " in line("work", "run", "-f", "none.json", "-q").notes
