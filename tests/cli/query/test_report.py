"""`report`: the output file, determinism, and notes about missing results."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest

import codebatch as codebatch_api
from codebatch.model.text.quantities import human_bytes
from codebatch.store import layout
from tests.cli.conftest import Ran
from tests.cli.devices import make_device
from tests.support.command_line import CommandLine, write


def _data(page: bytes) -> dict[str, object]:
    match = re.search(rb'<script type="application/json" id="data">(.*?)</script>', page)
    assert match
    data = json.loads(match[1])
    assert isinstance(data, dict)
    return data


def test_report_is_written_atomically_and_is_deterministic(ran: Ran, tmp_path: Path) -> None:
    link = tmp_path / "link.html"
    target = write(tmp_path / "report.html", "before")
    link.symlink_to(target)
    answer = ran.codebatch("report", "--store", ran.store, "-o", link, "--json").json
    page = target.read_bytes()
    assert link.is_symlink()
    assert (answer["bytes"], answer["path"], answer["complete"]) == (len(page), str(link), True)
    assert ran.codebatch("report", "--store", ran.store, "-o", "-").stdout == page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "report.html"]
    assert str(tmp_path).encode() not in page
    assert os.fsencode(ran.project.parent) not in page


def test_report_contains_the_findings_of_the_batch(ran: Ran) -> None:
    data = _data(ran.codebatch("report", "--store", ran.store, "-o", "-").stdout)
    assert (data["title"], data["batch_id"], data["incomplete"]) == ("project", ran.batch_id, "")
    numbers, tree, rules = data["numbers"], data["tree"], data["rules"]
    assert isinstance(numbers, dict)
    assert isinstance(tree, dict)
    assert isinstance(rules, list)
    assert (numbers["files"], numbers["left_out"]["binary"]) == (9, [1, 0])
    assert {"main.py", "app.js", "Grüße, Welt.py", "caf\\xe9.py"} <= set(tree["names"])
    (example,) = [rule["example"] for rule in rules if rule["code"] == "F401"]
    assert example == {"path": "caf\\xe9.py", "line": 1, "text": ["import sys"]}


def test_numbers_of_a_report_keep_production_code_tests_and_data_apart(codebatch: CommandLine) -> None:
    block = "".join(f"name_{line} = other_name_of_it({line})\n" for line in range(20))
    for name in ("tests/test_a.py", "tests/test_b.py", "tests/test_c.py"):
        write(codebatch.directory / name, block)
    write(codebatch.directory / "a.py", "x = 1\n" * 40)
    write(codebatch.directory / "locale/de.po", 'msgid "a"\nmsgstr "b"\n' * 50)
    write(codebatch.directory / "data.json", "[\n1,\n2\n]\n")
    codebatch("run", ".", "-q")
    numbers = _data(codebatch("report", "-o", "-").stdout)["numbers"]
    assert isinstance(numbers, dict)
    assert (numbers["code"], numbers["production"], numbers["production_duplicated"]) == (100, 40, 0)
    assert (numbers["languages"], numbers["left_out"]) == ({"python": 100}, {"data": [2, 104]})


def test_report_rejects_invalid_targets(ran: Ran, tmp_path: Path) -> None:
    def notes_of_refusal(*words: str | Path) -> str:
        return ran.codebatch("report", "--store", ran.store, *words, status=2).notes

    assert f"cannot write 'r.html': there is no directory '{tmp_path}/none'" in notes_of_refusal(
        "-o", tmp_path / "none" / "r.html"
    )
    assert "is not a file name" in notes_of_refusal("-o", tmp_path)
    assert "is not a file name" in notes_of_refusal("-o", "")
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in notes_of_refusal("-o", tmp_path / "pipe")
    assert "is not a regular file" in notes_of_refusal("-o", "/dev/fd/1"), "the name of a pipe must be rejected"
    for name in ("store.json", "report.html"):
        assert "is in the store" in notes_of_refusal("-o", ran.codebatch.directory / ran.store / name)
    assert "--json cannot be used with -o -" in notes_of_refusal("-o", "-", "--json")


def test_report_is_written_to_the_current_directory_by_default(ran: Ran, tmp_path: Path) -> None:
    """An earlier report is replaced, but no other file."""
    page = tmp_path / "codebatch-report.html"
    report = ("report", "--store", ran.store, "--batch", ran.batch_id)
    ended = ran.codebatch(*report, cwd=tmp_path)
    assert ended.lines == [f"codebatch-report.html: {human_bytes(page.stat().st_size)}; open it: file://{page}"]
    assert page.read_bytes() == ran.codebatch(*report, "-o", "-").stdout
    page.write_bytes(page.read_bytes() + b"older")
    answer = ran.codebatch(*report, "--json", cwd=tmp_path).json
    assert (answer["path"], answer["bytes"]) == (page.name, page.stat().st_size)
    page.write_text("<html>written by hand</html>\n")
    notes = ran.codebatch(*report, cwd=tmp_path, status=2).notes
    assert "'codebatch-report.html' exists and is not a codebatch report" in notes
    assert page.read_text() == "<html>written by hand</html>\n"
    ran.codebatch(*report, "-o", page.name, cwd=tmp_path)
    assert b"codebatch report" in page.read_bytes()


def test_report_file_in_the_tree_makes_no_batch_stale(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".")
    codebatch("report")
    assert "stale" not in codebatch("summary").notes
    assert codebatch("run", ".", "--json").json["action"] == "up to date"
    why = codebatch("files", "--why", "codebatch-report.html").text
    assert "excluded: it is a codebatch report" in why
    elsewhere = codebatch("run", ".", "--store", codebatch.directory.parent / "elsewhere", "--json").json
    assert elsewhere["files"] == 1


def test_null_device_is_written_to_and_not_replaced(ran: Ran, tmp_path: Path) -> None:
    null = make_device(tmp_path / "null", os.devnull)
    link = tmp_path / "link"
    link.symlink_to(null)
    before = null.stat()
    for target in (null, link):
        ended = ran.codebatch("report", "--store", ran.store, "-o", target)
        assert ended.lines[0].startswith(f"{target}: ")
        assert "file://" not in ended.text
    ran.codebatch("export", "sarif", "--store", ran.store, "-o", null)
    ran.codebatch("export", "github", "--store", ran.store, "--summary", null)
    ran.codebatch("trace", "--store", ran.store, "-o", null)
    after = null.stat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "null"]


def test_devices_other_than_null_are_rejected(ran: Ran, tmp_path: Path) -> None:
    zero = make_device(tmp_path / "zero", "/dev/zero")
    for words in (("report",), ("trace",), ("export", "sarif")):
        assert "is not a regular file" in ran.codebatch(*words, "--store", ran.store, "-o", zero, status=2).notes
    assert stat.S_ISCHR(zero.stat().st_mode)


def test_report_of_a_batch_with_missing_objects_is_marked_incomplete(ran: Ran, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(ran.store, store, symlinks=True)
    shutil.rmtree(store / layout.OBJECTS)
    (store / layout.OBJECTS).mkdir()
    ended = ran.codebatch("report", "--store", store, "-o", "-", status=3)
    assert "could not be read" in ended.notes
    assert "could not be read" in str(_data(ended.stdout)["incomplete"])


def test_report_shows_path_restriction_and_missing_tasks(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a" / "x.py", "import b.y\n")
    write(codebatch.directory / "b" / "y.py", "")
    codebatch.shell("git init -q")
    codebatch("run", "a", "--pipeline", "parse")
    data = _data(codebatch("report", "-o", "-", status=3).stdout)
    assert data["paths"] == ["a"]
    assert "restricted to a part of the project" in str(data["incomplete"])
    assert data["asked"] == ["diagnostic", "file"]
    assert data["history_note"]


def test_report_of_two_batches_shows_the_changes(codebatch: CommandLine) -> None:
    steep = "def f(a):\n    if a:\n        for b in a:\n            pass\n"
    write(codebatch.directory / "a.py", "import os\n" + steep)
    write(codebatch.directory / "b.py", "import sys\n")
    codebatch("run", ".")
    write(codebatch.directory / "a.py", "import os\nimport re\n" + steep.replace("pass", "a = b and 1"))
    write(codebatch.directory / "b.py", "")
    codebatch("run", ".", "--pipeline", "full", "--task", "lint")
    part = _data(codebatch("report", "latest~1", "latest", "-o", "-", status=3).stdout)
    assert isinstance(part["since"], dict)
    codebatch("resume")
    since = _data(codebatch("report", "latest~1", "latest", "-o", "-").stdout)["since"]
    assert isinstance(since, dict)
    assert [(row["state"], row["path"], row["line"], row["code"]) for row in since["findings"]] == [
        ("new", "a.py", 2, "F401"),
        ("fixed", "b.py", 1, "F401"),
    ]
    assert since["states"] == {"unchanged": 1, "new": 1, "fixed": 1}
    assert [(row["name"], row["before"], row["after"]) for row in since["functions"]] == [("f", 3, 4)]
    assert "give two batches" in codebatch("report", "latest", "-o", "-", status=2).notes
    assert "give two batches" in codebatch("report", "a", "b", "--batch", "latest", "-o", "-", status=2).notes


def test_report_of_an_empty_tree_has_no_entries(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "empty.txt", "")
    codebatch("run", "tree")
    data = _data(codebatch("report", "-o", "-").stdout)
    assert (data["functions"], data["copies"], data["matrix"], data["rules"]) == ([], [], None, [])


def test_report_above_the_size_limit_omits_details(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    with codebatch_api.open(ran.store, project=ran.project) as store:
        batch = store.batch()
        whole = codebatch_api.make_report(batch).result
        monkeypatch.setattr("codebatch.report.report.PAGE_BYTES_MAX", len(whole) - 1)
        less = codebatch_api.make_report(batch)
    assert less.is_complete
    assert len(less.result) < len(whole)
    assert _data(less.result)["in_all"] == _data(whole)["in_all"]
