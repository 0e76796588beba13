"""`export`: the exported findings, the output files, and the notes about missing results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import get_args
from urllib.parse import unquote_to_bytes

import pytest

import codebatch as api
from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.interchange.findings import ExportFormat
from codebatch.model.record import SEVERITIES
from codebatch.store import layout
from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine, write

_TASK_OF_WHOLE_FILES = """
from codebatch_workers.api import Diagnostic

def task(file):
    if file.content.startswith(b"# first"):
        place = {"line": 0, "column": 0, "end_line": 0, "end_column": 0}
        yield Diagnostic(path=file.path.decode(), severity="hint", code="first", message="m", tool="whole", **place)
"""


def _results(data: bytes) -> list[dict[str, object]]:
    return [result for run in json.loads(data)["runs"] for result in run["results"]]


def test_exports_are_deterministic_and_complete(ran: Ran) -> None:
    with api.open(ran.store, project=ran.project) as store:
        batch = store.batch()
        count = sum(1 for diagnostic in batch.diagnostics() if diagnostic.severity != "hint")
        for form in get_args(ExportFormat):
            first, again = api.make_export(batch, form), api.make_export(batch, form)
            assert first.is_complete
            assert first.result == again.result
            assert form == "ctags" or first.result.count == count
        with pytest.raises(api.InvalidInput, match="unknown format"):
            api.make_export(batch, "sarrif")  # type: ignore[arg-type]


def test_export_is_the_same_for_few_and_many_files(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    def exported() -> bytes:
        with api.open(ran.store, project=ran.project) as store:
            return api.make_export(store.batch(), "sarif", severity=SEVERITIES).result.data

    few = exported()
    monkeypatch.setattr("codebatch.query.sources.records._FEW_PATHS_MAX", 0)
    assert exported() == few


def test_sarif_has_every_finding_of_the_batch(ran: Ran) -> None:
    with api.open(ran.store, project=ran.project) as store:
        batch = store.batch()
        results = _results(api.make_export(batch, "sarif", severity=SEVERITIES).result.data)
        expected = sorted(
            (
                diagnostic.path_bytes,
                diagnostic.line,
                diagnostic.column,
                diagnostic.end_line,
                diagnostic.end_column,
                diagnostic.code,
                diagnostic.message,
            )
            for diagnostic in batch.diagnostics()
        )
    locations = []
    for result in results:
        place = result["locations"][0]["physicalLocation"]  # type: ignore[index]
        region = place["region"]
        at = [region[name] for name in ("startLine", "startColumn", "endLine", "endColumn")]
        message = result["message"]["text"]  # type: ignore[index]
        locations.append((unquote_to_bytes(place["artifactLocation"]["uri"]), *at, result["ruleId"], message))
    assert sorted(locations) == expected
    assert any(path.endswith(b"caf\xe9.py") for path, *_ in locations)
    known = [result["partialFingerprints"]["codebatch/v1"] for result in results]  # type: ignore[index]
    assert all(len(fingerprint) == 32 for fingerprint in known)


def test_export_of_a_comparison_has_only_new_or_worse_findings(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path)
    tree = tmp_path / "tree"
    write(tree / "a.py", "import os\n\n\ndef f():\n    eval(1)\n")
    write(tree / "b.py", "import sys\n")
    write(tree / "noted.py", "import json\n")
    write(tree / "used.py", "import string\n\nstring.x\n")
    codebatch("run", "tree", "--store", "store")
    write(tree / "a.py", "\nimport os\nimport re\n\n\ndef f():\n    eval(1)\n    eval(1)\n")
    write(tree / "noted.py", "import json  # noqa: F401\n")
    write(tree / "used.py", "import string\n\n")
    codebatch("run", "tree", "--store", "store")
    new, again, noted, used = _results(
        codebatch("export", "sarif", "latest~1", "latest", "--all", "--store", "store").stdout
    )
    assert (new["baselineState"], new["message"]) == ("new", {"text": "`re` imported but unused"})
    # A hint on a changed line precedes a warning on an unchanged line.
    assert (again["ruleId"], used["ruleId"], used["baselineState"]) == ("S307", "F401", "new")
    assert (noted["baselineState"], noted["suppressions"]) == ("unchanged", [{"kind": "inSource"}])
    place = noted["locations"][0]["physicalLocation"]  # type: ignore[index]
    assert place == {"artifactLocation": {"uri": "noted.py", "uriBaseId": "%SRCROOT%"}}
    assert len(codebatch("export", "gitlab", "latest~1", "latest", "--store", "store").json) == 2
    whole = _results(codebatch("export", "sarif", "--all", "--store", "store").stdout)
    assert len(whole) == 6
    for result in (new, again):  # The second `eval` has the same fingerprint if all findings are exported.
        alike = [
            candidate for candidate in whole if candidate.get("partialFingerprints") == result["partialFingerprints"]
        ]
        assert [candidate["locations"] for candidate in alike] == [result["locations"]]
    assert not any("baselineState" in result for result in whole)
    finding = {"path": "a.py", "line": 1, "code": "x", "message": "found", "severity": "error", "tool": "eslint"}
    write(tmp_path / "found.jsonl", json.dumps({"kind": "diagnostic", **finding}))
    codebatch("import", "jsonl", "found.jsonl", "--as", "others", "--store", "store")
    runs = codebatch("export", "sarif", "--store", "store").json["runs"]
    assert {run["tool"]["driver"]["name"]: len(run["results"]) > 0 for run in runs} == {
        "codebatch": False,
        "eslint": True,
        "ruff": True,
    }


def test_exported_findings_stay_at_their_lines_in_the_newer_batch(codebatch: CommandLine) -> None:
    """A finding of a whole file, at line 0, counts as one on a changed line."""
    write(codebatch.directory / "tool.py", _TASK_OF_WHOLE_FILES)
    write(codebatch.directory / "codebatch.toml", "[tasks.whole]\npython = 'tool.py:task'\n")
    write(codebatch.directory / "noted.py", "import json\nx = 1\n")
    write(codebatch.directory / "used.py", "import string\n\nstring.x\n")
    write(codebatch.directory / "z.py", "x = 1\n")
    codebatch("run", ".", "-q")
    write(codebatch.directory / "noted.py", "# ruff: noqa\nimport json\nx = 1\n")
    write(codebatch.directory / "used.py", "import string\n\n")
    write(codebatch.directory / "z.py", "# first\nx = 1\n")
    codebatch("run", ".", "-q")
    results = _results(codebatch("export", "sarif", "latest~1", "latest", "--all").stdout)
    lines = {}
    for result in results:
        place = result["locations"][0]["physicalLocation"]  # type: ignore[index]
        lines[place["artifactLocation"]["uri"]] = place.get("region", {}).get("startLine")
    assert lines == {"noted.py": 2, "used.py": 1, "z.py": None}
    github = codebatch("export", "github", "latest~1", "latest", "--all").lines
    assert ["z.py" in line for line in github] == [True, False], "it is a hint, but on a changed line"


def test_sarif_notes_that_the_older_batch_is_incomplete(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import os\n")
    snapshot = codebatch("snapshot", ".", "--json").json["snapshot_id"]
    older = codebatch("batch", "init", "--snapshot", snapshot, "--json").json["batch_id"]
    write(codebatch.directory / "b.py", "")
    codebatch("run", ".")
    ended = codebatch("export", "sarif", older, "latest", status=3)
    (notification, *_) = ended.json["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == f"the older batch, {older}: 0.0% of the batch is done"
    assert "omitted: 1 finding not comparable with the older batch" in ended.notes
    assert _results(ended.stdout) == []


def test_readtags_finds_the_definitions_that_def_finds(ran: Ran, tmp_path: Path) -> None:
    tags = tmp_path / "tags"
    ran.codebatch("export", "ctags", "--store", ran.store, "-o", tags)
    lines = tags.read_bytes().splitlines()
    assert lines == sorted(lines)
    readtags = shutil.which("readtags")
    if readtags is None:
        pytest.skip("readtags is not installed (universal-ctags)")
    with api.open(ran.store, project=ran.project) as store:
        batch = store.batch()
        for name in {symbol.name for symbol in batch.symbols() if symbol.symbol_type != "import"}:
            output = subprocess.run([readtags, "-t", tags, "-", name], capture_output=True, check=True).stdout
            expected = {
                (symbol.path_bytes, symbol.line)
                for symbol in batch.symbols(name=name)
                if symbol.symbol_type != "import"
            }
            places = {(path, int(line)) for _, path, line in (row.split(b"\t") for row in output.splitlines())}
            assert places == expected


def test_export_replaces_its_file_atomically_and_appends_a_summary(ran: Ran, tmp_path: Path) -> None:
    target, summary = write(tmp_path / "out", "before"), write(tmp_path / "summary.md", "# before\n")
    words = ("export", "github", "--store", ran.store, "-o", target, "--summary", summary, "--json")
    answer = ran.codebatch(*words).json
    assert (answer["path"], answer["form"], answer["bytes"]) == (str(target), "github", target.stat().st_size)
    assert answer["count"] == len(target.read_bytes().splitlines())
    assert summary.read_text(encoding="utf-8").startswith("# before\n## codebatch: ")
    assert "1 hint hidden; include them with --all" in ran.codebatch(*words).notes
    summary.write_bytes(b" " * (1 << 20))
    assert "summary not written" in ran.codebatch(*words).notes
    assert summary.stat().st_size == 1 << 20


def test_sarif_reports_missing_objects_of_the_batch(ran: Ran, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(ran.store, store, symlinks=True)
    shutil.rmtree(store / layout.OBJECTS)
    (store / layout.OBJECTS).mkdir()
    ended = ran.codebatch("export", "sarif", "--store", store, status=3)
    assert "could not be read" in ended.notes
    for run in ended.json["runs"]:
        (invocation,) = run["invocations"]
        assert invocation["executionSuccessful"] is False
        assert "could not be read" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert all("partialFingerprints" not in result for result in _results(ended.stdout))


def test_export_rejects_invalid_options_and_targets(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ran.project)
    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "link")
    messages = {
        ("sarif", "latest"): "give two batches to compare, or none",
        ("sarif", "latest", "latest", "--batch", "latest"): "--batch cannot be used with",
        ("sarif", "--all", "--severity", "error"): "--all cannot be used with --severity",
        ("sarif", "--base-store", "x"): "--base-store cannot be used without BASE and HEAD",
        ("sarif", "--summary", "x"): "--summary cannot be used with sarif",
        ("github", "-o", "x", "--summary", "x"): "cannot be the same file",
        ("sarif", "--json"): "standard output",
        ("sarif", "-o", str(ran.store / "x.sarif")): "is in the store",
        ("sarif", "-o", str(tmp_path / "link")): "is not a regular file",
        ("ctags", "latest", "latest"): "ctags cannot be used with two batches",
        ("ctags", "--all"): "--all cannot be used with ctags",
        ("ctags", "--tool", "ruff"): "`tool` cannot be used with ctags",
        ("sariff",): "'sariff' is not one of",
    }
    for words, message in messages.items():
        assert run_to_exit_status(cli, ["export", *words, "--store", str(ran.store)]) == 2, words
        output = capsys.readouterr()
        assert (output.out, message in output.err) == ("", True), output.err


def test_export_of_a_comparison_is_stale_if_its_newer_batch_is(codebatch: CommandLine) -> None:
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / "store")
    here, there = codebatch.directory / "here", codebatch.directory / "there"
    ids = []
    for tree in (there, here):
        write(tree / "a.py", "import os\n")
        codebatch.shell(f"git init -q {tree}")
        ids.append(codebatch("run", "--json", cwd=tree).json["batch_id"])
    write(there / "a.py", "x = 1\n")  # The base may be stale.
    ended = codebatch("export", "github", *ids, "-q", "-o", "../out", "--json", cwd=here)
    assert (ended.json["project"], ended.json["stale"], ended.notes) == (str(here), False, "")
    ended = codebatch("export", "github", *reversed(ids), "-q", "-o", "../out", "--json", cwd=here)
    assert (ended.json["project"], ended.json["stale"]) == (str(there), True)
    assert f"belongs to project {there}, not to the current project {here}\n" in ended.notes
    assert "results are out of date" in ended.notes
