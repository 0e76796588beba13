"""The reports of `check` for other programs, and its annotation in Buildkite."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.command_line import UNPRIVILEGED, CommandLine, permissions_bind, write
from tests.support.git_repositories import NOW, git, make_repository

pytestmark = pytest.mark.slow

FORMS = ("junit", "gitlab", "sarif", "checkstyle", "rdjson")
AGENT = """#!/bin/sh
printf '%s\\n' "$@" > "$RECORD/arguments"
cat > "$RECORD/input"
exit "${AGENT_STATUS:-0}"
"""


def _codes(form: str, data: bytes) -> list[str]:
    """Return the rule IDs of the failures in a report, sorted."""
    if form == "junit":
        tests = ET.fromstring(data).iter("testcase")
        return sorted(
            str(test.get("classname")).rpartition(".")[2] for test in tests if test.find("failure") is not None
        )
    if form == "checkstyle":
        return sorted(str(error.get("source")).rpartition(".")[2] for error in ET.fromstring(data).iter("error"))
    document = json.loads(data)
    if form == "gitlab":
        return sorted(row["check_name"] for row in document)
    if form == "rdjson":
        return sorted(row["code"]["value"] for row in document["diagnostics"])
    return sorted(result["ruleId"] for run in document["runs"] for result in run["results"])


def _outcomes(path: Path) -> dict[str, list[str]]:
    """Return the outcomes of the tests in a JUnit report by class name. The totals of the suite are checked."""
    (suite,) = ET.fromstring(path.read_bytes())
    outcomes: dict[str, list[str]] = {}
    counts = {"tests": 0, "failure": 0, "error": 0, "skipped": 0}
    for test in suite:
        found = [child.tag for child in test]
        outcomes.setdefault(str(test.get("classname")), []).append(found[0] if found else "passed")
        for name in ("tests", *found):
            counts[name] += 1
    totals = {"tests": "tests", "failure": "failures", "error": "errors", "skipped": "skipped"}
    assert {name: int(str(suite.get(total))) for name, total in totals.items()} == counts
    return outcomes


@pytest.fixture
def changed(codebatch: CommandLine) -> CommandLine:
    """A branch with a new error, new warnings, a new cycle, a higher complexity in a renamed file, and new settings."""
    project = codebatch.directory / "p"
    same = "".join(f"    x += {number}\n" for number in range(9))
    old = f"def g(x):\n{same}    if x:\n        return 1\n    return 2\n"
    new = "import b\n" + old.replace("    return 2", "    if x > 2:\n        return 3\n    return undefined")
    make_repository(project, [(NOW, {b"a.py": old.encode(), b"b.py": b"x = 1\n"})])
    git(project, "reset", "-q", "--hard")
    git(project, "mv", "a.py", "c.py")
    write(project / "c.py", new)
    write(project / "b.py", "import c\nimport sys\n\nx = 1\n")
    write(project / "codebatch.toml", "exclude = ['no/']\n")
    git(project, "add", "-A")
    git(project, "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-q", "-m", "m")
    job = CommandLine(project)
    job("run", ".", "-q")
    return job


CONDITIONS = [f"--fail-on={text}" for text in ("new-error", "cycle", "metric:complexity>2", "gate-changed")]


def test_reports_have_everything_that_fails_the_check(changed: CommandLine) -> None:
    """Each format has the same violations, also those that are not findings. JUnit also has the allowed findings."""
    folder = changed.directory.parent
    options = [word for form in FORMS for word in ("--report", f"{form}={folder / form}")]
    ended = changed("check", "HEAD~1", *CONDITIONS, *options, status=1)
    codes = sorted(("F821", "cycle", "cycle", "complexity", "gate-changed"))
    for form in FORMS:
        assert _codes(form, (folder / form).read_bytes()) == codes, form
        assert f"{form} report: {folder / form} (" in ended.notes
    outcomes = _outcomes(folder / "junit")
    assert outcomes.pop("codebatch") == ["passed"]
    assert outcomes.pop("ruff.F401") == ["skipped"] * 3
    assert {outcome for found in outcomes.values() for outcome in found} == {"failure"}
    names = [str(test.get("name")) for test in ET.fromstring((folder / "junit").read_bytes()).iter("testcase")]
    assert "c.py:2:1: g complexity = 3 (was 2 in a.py:1)" in names
    assert "codebatch.toml:1:1: gate-changed settings of the check differ from the base: exclude" in names
    assert (
        f"check {git(changed.directory, 'rev-parse', 'HEAD~1')[:12]} --fail-on new-error --fail-on cycle "
        in ended.notes
    )
    answer = changed("check", "HEAD~1", *CONDITIONS, "--json", "--report", f"gitlab={folder / 'gitlab'}", status=1).json
    assert answer["reports"] == [{"form": "gitlab", "path": str(folder / "gitlab"), "count": 5, "excluded": []}]

    github = CommandLine(changed.directory, {"GITHUB_ACTIONS": "true"})
    annotations = [line for line in github("check", "HEAD~1", *CONDITIONS, status=1).lines if line.startswith("::")]
    setting = "file=codebatch.toml,line=1,endLine=1,col=1,endColumn=1,title=gate-changed (codebatch)"
    assert annotations[0] == f"::error {setting}::settings of the check differ from the base: exclude"
    assert len(annotations) == 5


def test_passed_check_has_reports_without_failures(changed: CommandLine) -> None:
    folder = changed.directory.parent
    options = [word for form in FORMS for word in ("--report", f"{form}={folder / form}")]
    changed("check", "HEAD~1", "--fail-on", "none", *options)
    assert [_codes(form, (folder / form).read_bytes()) for form in FORMS] == [[]] * len(FORMS)
    assert _outcomes(folder / "junit") == {
        "codebatch": ["passed"], "ruff.F401": ["skipped"] * 3, "ruff.F821": ["skipped"],
    }  # fmt: skip


def test_report_of_a_check_that_compared_nothing_has_an_error(codebatch: CommandLine) -> None:
    """An empty report would read as passed. If the user accepts that there is no base, the report is no failure."""
    here = codebatch.directory
    write(here / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    options = [word for form in FORMS for word in ("--report", f"{form}={form}.out")]
    assert "out of date" not in codebatch("check", *options, status=3).notes
    assert _outcomes(here / "junit.out") == {"codebatch": ["error"]}
    assert [_codes(form, (here / f"{form}.out").read_bytes()) for form in ("gitlab", "checkstyle", "rdjson")] == [
        ["incomplete"]
    ] * 3
    for run in json.loads((here / "sarif.out").read_bytes())["runs"]:
        assert run["invocations"][0]["executionSuccessful"] is False
    assert json.loads((here / "gitlab.out").read_bytes())[0]["severity"] == "major"
    codebatch("check", *options, "--allow-no-base")
    assert _outcomes(here / "junit.out") == {"codebatch": ["skipped"]}
    assert json.loads((here / "gitlab.out").read_bytes())[0]["severity"] == "minor"


def test_report_of_an_incomplete_base_has_an_error(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import os\n")
    snapshot = codebatch("snapshot", ".", "--json").json["snapshot_id"]
    base = codebatch("batch", "init", "--snapshot", snapshot, "--json").json["batch_id"]
    write(codebatch.directory / "a.py", "import os, sys\n")
    codebatch("run", ".", "-q")
    codebatch("check", base, "--fail-on", "new", "--report", "junit=a.xml", status=3)
    assert _outcomes(codebatch.directory / "a.xml")["codebatch"] == ["error"]
    reason = "incomplete: 2 changes cannot be judged, because the base has no result for the files"
    github = CommandLine(codebatch.directory, {"GITHUB_ACTIONS": "true"})("check", base, "--fail-on", "new", status=3)
    assert github.lines[-1] == f"::error title=codebatch check::{reason}"
    azure = CommandLine(codebatch.directory, {"TF_BUILD": "True"})("check", base, "--fail-on", "new", status=3)
    assert azure.lines[-1] == f"##vso[task.logissue type=error;]{reason}"
    codebatch("baseline", "create", "known.jsonl", "-q")
    row = json.loads((codebatch.directory / "known.jsonl").read_bytes().splitlines()[0])
    write(codebatch.directory / "known.jsonl", json.dumps({**row, "tool": "other"}) + "\n")
    codebatch("check", "--baseline", "known.jsonl", "--report", "junit=a.xml", status=3)
    assert _outcomes(codebatch.directory / "a.xml")["codebatch"] == ["error"]


def test_report_of_an_incomplete_batch_has_an_error_although_no_base_is_allowed(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("batch", "init", "--snapshot", codebatch("snapshot", ".", "--json").json["snapshot_id"])
    codebatch("check", "--allow-no-base", "--report", "junit=a.xml", status=3)
    assert _outcomes(codebatch.directory / "a.xml")["codebatch"] == ["error"]


def test_check_that_ends_early_leaves_no_report_of_an_earlier_check(codebatch: CommandLine) -> None:
    earlier = write(codebatch.directory / "a.xml", "<passed/>")
    codebatch("check", "--report", "junit=a.xml", status=4)
    assert not earlier.exists()


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("junit", "is not FORMAT=FILE"),
        ("github=a", "is not FORMAT=FILE"),
        ("junit=", "is not a file name"),
        ("junit=-", "standard output has the verdict"),
        ("junit=no/a.xml", "there is no directory"),
        ("junit=.codebatch/a.xml", "is in the store"),
        ("junit=./kept.xml", "cannot be the same file"),
    ],
)
def test_reports_that_cannot_be_written_are_refused(codebatch: CommandLine, report: str, message: str) -> None:
    kept = write(codebatch.directory / "kept.xml", "kept")
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    error = codebatch("check", "--report", "gitlab=kept.xml", "--report", report, "--json", status=2).error
    assert message in error["message"]
    assert kept.read_text() == "kept"
    codebatch("check", "--baseline", "kept.xml", "--report", "junit=./kept.xml", status=2)
    assert kept.read_text() == "kept"


def test_report_does_not_replace_the_file_of_standard_output(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    for device in ("/dev/stdout", "log"):
        ended = codebatch.shell(f"codebatch check --report junit={device} > log", status=2)
        assert "standard output has the verdict" in ended.notes
    codebatch("check", "--allow-no-base", "--report", "junit=/dev/null", "--report", "sarif=/dev/null")


@permissions_bind
def test_failure_to_write_a_report_does_not_hide_the_verdict(changed: CommandLine) -> None:
    """The exit status is that of the failed write. Other reports are written."""
    folder = changed.directory.parent
    (folder / "closed").mkdir(mode=0o500)
    job = CommandLine(changed.directory, prefix=UNPRIVILEGED)
    reports = ("--report", f"junit={folder / 'closed' / 'a.xml'}", "--report", f"gitlab={folder / 'b.json'}")
    ended = job("check", "HEAD~1", *reports, status=4, has_answer=True)
    assert "new-error              1      0  failed" in ended.lines
    assert "cannot write " in ended.notes
    assert _codes("gitlab", (folder / "b.json").read_bytes()) == ["F821"]


@pytest.fixture
def record(changed: CommandLine) -> Path:
    """A directory in which an agent of Buildkite records its arguments and its input."""
    folder = changed.directory.parent / "record"
    write(folder / "bin" / "buildkite-agent", AGENT).chmod(0o755)
    return folder


def _job(changed: CommandLine, record: Path, **variables: str) -> CommandLine:
    path = f"{record / 'bin'}:{changed.environment['PATH']}"
    return CommandLine(changed.directory, {"BUILDKITE": "true", "PATH": path, "RECORD": str(record), **variables})


def test_buildkite_shows_the_verdict_as_an_annotation(changed: CommandLine, record: Path) -> None:
    """It has the Markdown of GitHub's summary, on standard input. Each step has its own annotation."""
    ended = _job(changed, record)("check", "HEAD~1", *CONDITIONS, status=1)
    assert "annotation" not in ended.notes
    assert (record / "arguments").read_text().split() == [
        "annotate", "--style", "error", "--context", "codebatch-check",
    ]  # fmt: skip
    text = (record / "input").read_text()
    assert text.startswith("# codebatch check: not passed\n")
    assert all(
        part in text for part in ("| `cycle` | 2 | 0 | failed |", "undefined", "exclude", "g complexity \\= 3"[:12])
    )
    _job(changed, record, BUILDKITE_STEP_ID="018f-b")("check", "HEAD~1", "--fail-on", "none", "--json")
    assert (record / "arguments").read_text().split()[2:] == ["success", "--context", "codebatch-check-018f-b"]
    _job(changed, record)("check", "HEAD", "HEAD", "--allow-no-base", status=3)
    assert "error\n" in (record / "arguments").read_text()


def test_buildkite_agent_that_fails_does_not_change_the_verdict(changed: CommandLine, record: Path) -> None:
    arguments = ("check", "HEAD~1", "--fail-on", "none")
    failed = _job(changed, record, AGENT_STATUS="3")(*arguments)
    assert "annotation not added by buildkite-agent: it ended with status 3\n" in failed.notes
    missing = CommandLine(changed.directory, {"BUILDKITE": "true"})(*arguments)
    assert "annotation not added by buildkite-agent: it is not on PATH\n" in missing.notes
    # A program of the tree is not run, although PATH leads into it.
    write(changed.directory / "buildkite-agent", f"#!/bin/sh\ntouch {shlex.quote(str(record))}/ran\n").chmod(0o755)
    relative = CommandLine(changed.directory, {"BUILDKITE": "true", "PATH": f".::{changed.environment['PATH']}"})
    assert "it is not on PATH" in relative(*arguments).notes
    assert not (record / "ran").exists()
