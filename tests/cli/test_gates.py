"""`gate`: output and exit statuses for self-tests that pass, fail and are skipped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # its stubs are another distribution
import pytest

from tests.support.command_line import CommandLine, write

from .conftest import Ran

SCHEMAS = Path(__file__).parents[2] / "schemas"


def _check_schema(answer: dict[str, object]) -> None:
    name = str(answer["schema"]).removeprefix("codebatch.").removesuffix("/1")
    jsonschema.validate(answer, json.loads((SCHEMAS / f"{name}-answer.json").read_bytes()))


@pytest.fixture
def store(ran: Ran, tmp_path: Path) -> Path:
    """A copy of the store, for tests that damage it."""
    shutil.copytree(ran.store, tmp_path / "store", symlinks=True)
    return tmp_path / "store"


@pytest.fixture
def project_command_line(ran: Ran) -> CommandLine:
    """The command line in the project."""
    return CommandLine(ran.project)


def test_intact_store_passes_every_group_that_has_all_self_tests(
    project_command_line: CommandLine, store: Path
) -> None:
    report = project_command_line("gate-bundle", "release", "--store", store, "--json").json
    _check_schema(report)
    assert (report["bundle_name"], report["passed"], report["failed_count"]) == ("release", True, 0)
    assert report["results"][0]["context"]["store"] == str(store)
    skipped = [result["gate_id"] for result in report["results"] if result["outcome"] == "skipped"]
    assert skipped == []
    lines = project_command_line("gate", "bundle", "--store", store).lines
    assert " 1 batch, " in lines[0]
    assert lines[-1] == "8 passed", "a self-test must have built an index"


def test_failed_self_test_exits_with_1_and_prints_location_and_hint(
    project_command_line: CommandLine, store: Path
) -> None:
    write(store / "stray", "")
    ended = project_command_line("gate", "run", "P2-G6", "--store", store, status=1)
    assert ended.lines[0].startswith("failed   no-foreign-files           1 failure; ")
    assert ended.lines[1:] == [
        "    stray: not part of the store layout",
        f"      hint: move it away: {store / 'stray'}",
    ]
    report = project_command_line("gate-run", "truth-guard", "--store", store, "--json", status=1).json
    _check_schema(report)
    assert (report["gate_id"], report["failures"][0]["location"]) == ("no-foreign-files", "stray")
    (store / "store.json").write_text("{")
    report = project_command_line("gate-bundle", "--store", store, "--fail-fast", "--json", status=1).json
    assert [result["gate_id"] for result in report["results"]] == ["store-schema"]


def test_hints_of_self_tests_name_the_given_store(project_command_line: CommandLine, store: Path) -> None:
    project_command_line("batch", "init", "--pipeline", "parse", "--store", store)
    report = project_command_line("gate-run", "plan-covered", "--store", store, "--json", status=1).json
    assert report["failures"][0]["suggestion"].endswith(f"{report['context']['batch_id']} --store {store}")
    ended = project_command_line("gate-run", "outputs-match", "--store", store, "-q", status=3)
    assert ended.lines[0].endswith(f" --store {store}")
    assert ended.notes == "incomplete: skipped outputs-match\n"


def test_self_tests_that_need_a_store_are_skipped_without_a_store(codebatch: CommandLine) -> None:
    assert codebatch("gate-bundle", "--json", status=3).json["passed"] is False
    ended = codebatch("gate-bundle", "-q", status=3)
    assert ended.lines[-1] == "1 passed, 7 skipped"
    assert ended.notes.startswith("incomplete: skipped store-schema, ")
    assert codebatch("gate-run", "store-schema", "--json", status=3).json["outcome"] == "skipped"
    assert codebatch("gate-run", "objects", "--store", "none", "--json", status=4).error["code"] == "store_not_found"
    assert codebatch("gate-run", "all", status=2).notes.splitlines()[1].endswith("codebatch selftest bundle all")
    assert not (codebatch.directory / "none").exists()


def test_self_tests_are_listed_and_explained_without_a_store(codebatch: CommandLine) -> None:
    ended = codebatch("gate", "list", "--json")
    jsonschema.validate(ended.json, json.loads((SCHEMAS / "gate-list-answer.json").read_bytes()))
    assert [gate["gate_id"] for gate in ended.json if "P1-G1" in gate["aliases"]] == ["store-schema"]
    assert codebatch("gate-list", "--json").stdout == ended.stdout
    chosen = codebatch("gate-list", "--tag", "phase2", "--status", "ENFORCED").lines[1:]
    assert [line.split()[0] for line in chosen] == ["no-foreign-files", "plan-covered"]
    assert codebatch("gate-list", "--tag", "nope").text == ""
    explained = codebatch("gate-explain", "P5-G3", "--json").json
    _check_schema(explained)
    assert codebatch("gate", "explain", "resume-equals").lines[-1] == f"writes     {explained['writes']}"
    assert codebatch("gate", "explain", "task-order").lines[-1] == "writes     nothing"
