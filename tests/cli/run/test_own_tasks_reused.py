"""Results of custom tasks are reused if they depend only on inputs that the cache key covers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from codebatch.model.outcome import decode_commit
from codebatch_workers.examples import banned_words, layers
from tests.cli.run.test_explain_miss import SHARDS, explain
from tests.support.command_line import CommandLine, set_apart, write
from tests.support.worker_processes import run_with_kills

FILES = 12
COUNT = """
from codebatch.model.record import Metric
def task(file):
    path, path_b64 = file.path_fields
    yield Metric(path=path, path_b64=path_b64, metric="words", value=len(file.utf8.split()) + {plus})
"""
TABLE = "[tasks.words]\npython = 'tools/words.py:task'\n"


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    """A tree of three shards, and a custom task with its input file outside of the tree. There is no batch yet."""
    for number in range(FILES):
        write(codebatch.directory / "tree" / f"m{number:02d}.txt", f"one two {number}\n")
    write(codebatch.directory / "tools" / "words.txt", "7")
    set_apart(codebatch, "tree")
    write_task(codebatch, "0")
    return codebatch


def write_task(codebatch: CommandLine, plus: str, table: str = "", module: str = "") -> None:
    """Write a custom task that adds `plus`, which may be any expression, to its counts."""
    code = f"import os, sys\nHERE = {str(codebatch.directory)!r}\n{module}\n{COUNT.format(plus=plus)}"
    write(codebatch.directory / "tools" / "words.py", code)
    write(codebatch.directory / "codebatch.toml", SHARDS + TABLE + table)


def run_and_count_executed(codebatch: CommandLine, *options: str) -> int:
    """Run codebatch, and return the number of files that the custom task was executed for."""
    codebatch("run", "tree", *options)
    return explain(codebatch, "--task", "words")["words"][0]


def metric_values(codebatch: CommandLine) -> list[int]:
    return [record["value"] for record in codebatch("query", "outputs", "--task", "words", "--json").records]


READ = "int(open(HERE + '/tools/words.txt').read())"


def test_cache_key_decides_which_files_are_reexecuted(project: CommandLine) -> None:
    """The changes are: a file, then the task's input, then the task's setting, its tools and its code."""
    write_task(project, READ, "files = ['tools/words.txt']\n")
    assert run_and_count_executed(project) == FILES
    write(project.directory / "tree" / "m03.txt", "one\n")
    ended = project("run", "tree", "--json")
    assert ended.json["inputs_outside_key"] == {}
    assert "words" not in ended.notes
    assert explain(project, "--task", "words") == {"words": (1, FILES - 1, {"content": 1})}
    assert (ended.json["executed"], ended.json["reused"]) == (5, 5 * (FILES - 1))
    fresh = project("run", "tree", "--json", "--store", "anew").json
    assert fresh["result_digest"] == ended.json["result_digest"]
    write(project.directory / "tools" / "words.txt", "8")
    assert run_and_count_executed(project) == FILES
    assert metric_values(project)[0] == 11
    assert explain(project, "--task", "words")["words"][2] == {"implementation": FILES}
    write_task(project, READ, "files = ['tools/words.txt']\ntools = ['msgspec']\n")
    assert run_and_count_executed(project) == FILES
    assert explain(project, "--task", "words")["words"][2] == {"tool msgspec": FILES}
    write(project.directory / "tools" / "words.txt", "7")
    write_task(project, READ, "files = ['tools/words.txt']\n")
    assert project("run", "tree", "--json").json["executed"] == 0, "the results of the original state were not reused"
    assert metric_values(project)[0] == 10


CONFIGURED = """
import msgspec
from codebatch.model.record import Metric
class Config(msgspec.Struct):
    least: int = 1
def task(file, config: Config):
    import tool_of_theirs
    yield Metric(path=file.path.decode(), metric="words", value=config.least + tool_of_theirs.X)
"""


def _install(site: Path, version: str, value: int) -> None:
    for old in site.glob("*.dist-info/METADATA"):
        old.unlink()
        old.parent.rmdir()
    metadata = f"Metadata-Version: 2.1\nName: tool_of_theirs\nVersion: {version}\n"
    write(site / f"tool_of_theirs-{version}.dist-info" / "METADATA", metadata)
    # The length differs for each version, because Python reuses compiled code within a second if the size is equal.
    write(site / "tool_of_theirs.py", f"X = {value}  # {version}\n")


def test_cache_key_covers_configuration_and_imported_versions(
    project: CommandLine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = tmp_path_factory.mktemp("site-packages")
    project.environment["PYTHONPATH"] = str(site)
    _install(site, "1.0", 10)
    write(project.directory / "tools" / "words.py", CONFIGURED)
    first = project("run", "tree", "--json").json
    assert first["inputs_outside_key"] == {}
    write(project.directory / "codebatch.toml", SHARDS + TABLE + "least = 2\n")
    assert run_and_count_executed(project) == FILES
    assert explain(project, "--task", "words")["words"][2] == {"setting least": FILES}
    _install(site, "1.0.1", 20)
    assert run_and_count_executed(project) == FILES
    assert explain(project, "--task", "words")["words"][2] == {"tool tool_of_theirs": FILES}
    assert metric_values(project) == [22] * FILES
    write(project.directory / "tree" / "m03.txt", "one\n")
    assert run_and_count_executed(project) == 1


def test_results_of_bundled_examples_are_reused(project: CommandLine) -> None:
    for example in (banned_words.__file__, layers.__file__):
        shutil.copy(example, project.directory / "tools")
    table = "[tasks.{0}]\npython = 'tools/{0}.py:task'\n{1} = ['one']\n"
    tables = table.format("banned_words", "words") + table.format("layers", "layers")
    write(project.directory / "codebatch.toml", SHARDS + tables)
    project("run", "tree")
    write(project.directory / "tree" / "m03.txt", "one\n")
    answer = project("run", "tree", "--json").json
    assert (answer["executed"], answer["inputs_outside_key"]) == (5, {})


def test_kill_9_does_not_lose_the_outside_key_mark(project: CommandLine) -> None:
    """The mark is stored in the same file as the result, so it cannot be lost alone."""
    write_task(project, f"(__import__('time').sleep(0.02) or {READ})")
    store = project.directory / ".codebatch"
    assert run_with_kills(project, ["run", "tree", "-j", "2"], store, points=[1, 2], seed=1) > 0
    commits = [decode_commit(path.read_bytes()) for path in store.glob("batches/*/outcomes/*.words.*")]
    outcomes = [one for commit in commits for one in commit.outcomes if (one.task, one.type) == ("words", "result")]
    assert {one.inputs_outside_key for one in outcomes} == {"open tools/words.txt"}
    write(project.directory / "tree" / "m03.txt", "one\n")
    assert run_and_count_executed(project) == FILES


def test_results_with_inputs_outside_the_key_are_reported_and_not_reused(project: CommandLine) -> None:
    write_task(project, READ)
    ended = project("run", "tree", "--json")
    assert ended.json["inputs_outside_key"] == {"words": "open tools/words.txt"}
    assert ended.notes.count("results of words are not reused by later runs") == 1
    assert "open tools/words.txt" in ended.notes
    write(project.directory / "tools" / "words.txt", "9")
    write(project.directory / "tree" / "m03.txt", "one\n")
    ended = project("run", "tree", "--json")
    assert (ended.json["executed"], ended.json["reused"]) == (4 + FILES, 4 * (FILES - 1))
    assert metric_values(project) == [12, 12, 12, 10, *[12] * 8], "a result with the older input was reused"
    assert explain(project, "--task", "words")["words"][2] == {
        "outside_key open tools/words.txt": FILES - 1,
        "content": 1,
    }
    text = project("explain-miss", "m00.txt", "--task", "words").text
    assert "the older result depends on inputs not covered by the cache key: open tools/words.txt" in text
    ended = project("run", "tree", "--json")
    assert (ended.json["action"], ended.json["inputs_outside_key"]) == ("up to date", {"words": "open tools/words.txt"})
    manifests = project.directory.glob(".codebatch/batches/*/outputs/*/manifest.json")
    assert not any(str(project.directory).encode() in path.read_bytes() for path in manifests)


def test_reverted_tree_reexecutes_tasks_with_inputs_outside_the_key(project: CommandLine) -> None:
    """After a switch to another branch and back, results that the key covers are reused. The others are executed."""
    write_task(project, READ)
    project("run", "tree")
    write(project.directory / "tree" / "m03.txt", "one\n")
    project("run", "tree")
    write(project.directory / "tools" / "words.txt", "100")
    write(project.directory / "tree" / "m03.txt", "one two 3\n")
    answer = project("run", "tree", "--json").json
    assert (answer["action"], answer["executed"]) == ("new", FILES)
    assert metric_values(project) == [103] * FILES
    write_task(project, "0")
    project("run", "tree")
    write(project.directory / "tree" / "m03.txt", "one\n")
    project("run", "tree")
    write(project.directory / "tree" / "m03.txt", "one two 3\n")
    assert project("run", "tree", "--json").json["action"] == "up to date", "the key covers all inputs"


def test_outside_key_mark_is_stored_in_the_commit(project: CommandLine) -> None:
    """The base was never merged, so only its registers have the mark."""
    write_task(project, READ)
    project("run", "tree", "--task", "words")
    (batch,) = project.directory.glob(".codebatch/batches/*")
    assert not (batch / "outputs").exists() or not list((batch / "outputs").iterdir())
    commits = [json.loads(path.read_bytes()) for path in (batch / "outcomes").glob("*.words.r1")]
    outcomes = [outcome for commit in commits for outcome in commit["outcomes"]]
    assert {outcome["inputs_outside_key"] for outcome in outcomes} == {"open tools/words.txt"}
    write(project.directory / "tree" / "m03.txt", "one\n")
    assert run_and_count_executed(project) == FILES


def test_task_with_reuse_false_is_not_reused(project: CommandLine) -> None:
    write_task(project, "len(os.environ['HOME'])", "reuse = false\n")
    ended = project("run", "tree", "--json")
    assert (ended.json["inputs_outside_key"], "taken over" in ended.notes) == ({}, False), (
        "a note about `reuse = false` is superfluous"
    )
    write(project.directory / "tree" / "m03.txt", "one\n")
    assert run_and_count_executed(project) == FILES
    assert explain(project, "--task", "words")["words"][2] == {"reuse_off": FILES}
    write_task(project, "len(os.environ['HOME'])")
    write(project.directory / "tree" / "m04.txt", "one\n")
    assert run_and_count_executed(project) == FILES, "a result from before `reuse` was changed was reused"
    write(project.directory / "tree" / "m05.txt", "one\n")
    assert run_and_count_executed(project) == 1
    assert project("config", "show", "--json").json["tasks"]["value"]["words"].keys() == {"python"}


SUM = """
from codebatch.model.record import Metric
def task(project):
    words = sum(metric.value for _, metrics in project.records("words", "metric") for metric in metrics)
    size = sum(len(project.read(file)) for file in project.files)
    yield Metric(path="m00.txt", metric="sum", value=words + size + {plus})
"""


@pytest.mark.parametrize(("plus", "of_sum", "reused"), [("0", "0", {"sum"}), ("0", READ, set()), (READ, "0", set())])
def test_project_task_is_reused_only_if_no_input_is_outside_the_key(
    project: CommandLine, plus: str, of_sum: str, reused: set[str]
) -> None:
    table = "[tasks.sum]\npython = 'tools/sum.py:task'\n[tasks.other]\npython = 'tools/other.py:task'\n"
    write_task(project, plus, table)
    here = f"HERE = {str(project.directory)!r}\n"
    write(project.directory / "tools" / "sum.py", here + SUM.format(plus=of_sum))
    write(project.directory / "tools" / "other.py", SUM.format(plus="1"))
    project("run", "tree")
    write(project.directory / "tools" / "other.py", SUM.format(plus="2"))
    project("run", "tree")
    explained = explain(project)
    assert {name for name in ("sum", "other") if not explained[name][0]} == reused
    assert explained["words"][1] == (FILES if plus == "0" else 0)


def test_verify_marks_a_nondeterministic_task_which_is_then_not_reused(project: CommandLine) -> None:
    write_task(project, "os.getpid()")
    assert run_and_count_executed(project) == FILES
    report: dict[str, Any] = project("verify", "--sample", "100%", "--json", status=1).json
    assert {entry["task"] for entry in report["untrusted"]} == {"words"}
    write(project.directory / "tree" / "m03.txt", "one\n")
    assert run_and_count_executed(project) == FILES
    assert explain(project, "--task", "words")["words"][2] == {"content": 1, "untrusted words": FILES - 1}
