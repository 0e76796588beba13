"""`check` in CI: its exit statuses, output and annotations."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.support.command_line import CommandLine, write
from tests.support.git_repositories import NOW, git, make_repository

pytestmark = pytest.mark.slow


def test_check_reports_conditions_and_fails_if_one_is_violated(codebatch: CommandLine) -> None:
    """Outside of git, the previous batch is the base."""
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("run", ".", "-q")
    first = codebatch("check", "--json", status=3)
    assert (first.json["base"], first.json["passed"], first.json["conditions"]) == (None, False, [])
    assert first.json["compared"] is False
    nothing = (
        "not compared: the directory is not in a git repository, "
        "and no finished older batch has the same source, patterns and pipeline"
    )
    assert first.notes.startswith(f"{nothing}\nthe check has not passed: name the base with ")
    assert codebatch("check", "-q", status=3).lines == [nothing]
    allowed = codebatch("check", "--allow-no-base", "--json")
    assert (allowed.json["passed"], allowed.json["compared"], allowed.notes) == (False, False, f"{nothing}\n")

    write(codebatch.directory / "b\x1b.py", "print(f)\n")
    codebatch("run", ".", "-q")
    ended = codebatch("check", "--fail-on", "new-error", "--fail-on", "severity-raised", status=1)
    assert [line.split() for line in ended.lines[1:]] == [
        ["1", "|", "print(f)"],
        ["|", "^"],
        ["condition", "value", "limit", "verdict"],
        ["new-error", "1", "0", "failed"],
        ["severity-raised", "0", "0", "passed"],
        ["1", "new,", "1", "unchanged"],
        ["to", "list", "one", "state:", *ended.lines[-1].split()[4:]],
    ]
    assert ended.lines[0].startswith("b\\x1b.py:1:7: error F821 ")
    assert ended.lines[0].endswith("[new]")
    assert ended.notes.splitlines()[-2:] == [
        "failed: new-error (1 time)",
        "to accept a finding, add a comment to its line: codebatch: ignore[F821] and the reason",
    ]
    answer = codebatch("--json", "check", status=1).json
    assert (answer["passed"], answer["counts"]["new"]) == (False, 1)
    assert [row["code"] for row in answer["forbidden"]] == ["F821"]
    itself = codebatch("check", "latest", "latest", "--allow-no-base", status=3)
    assert itself.lines == ["not compared: BASE (latest) and HEAD are the same batch"]
    assert "--allow-no-base" not in itself.notes

    warned = codebatch("check", "--fail-on", "none").lines
    assert (warned[0].endswith("[new, allowed]"), warned[1]) == (True, "1 new, 1 unchanged")
    codebatch("check", "--fail-on", "none", "--fail-on", "new", status=2)
    assert "one of: new-error, " in codebatch("check", "--fail-on", "newest", "--json", status=2).error["hint"]
    assert codebatch("check", "no-such", "--json", status=2).error["code"] == "unknown_id"


def test_check_rejects_a_run_of_a_subdirectory_as_head(codebatch: CommandLine) -> None:
    """In a subdirectory, `run` covers only this directory. `check` must not ignore its findings."""
    write(codebatch.directory / "src/a.py", "import os\n")
    codebatch("init")
    codebatch("run", ".", "-q")
    codebatch("run", "src", "-q")
    codebatch("check", "--allow-no-base", status=0)
    write(codebatch.directory / "src/b.py", "def f(:\n")
    src = codebatch.directory / "src"
    codebatch("run", "-q", cwd=src)
    codebatch("baseline", "create", "../kept", "-q", cwd=src)
    assert codebatch("check", "--baseline", "../kept", "--json", cwd=src, status=3).error["code"] == "batch_incomplete"
    error = codebatch("check", "-q", "--json", cwd=src, status=3).error
    assert error["code"] == "batch_incomplete"
    codebatch.shell(error["hint"].partition(": ")[2])
    codebatch("check", cwd=src, status=1)


def test_check_of_an_incomplete_head_exits_with_status_3(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("run", ".", "-q")
    write(codebatch.directory / "b.py", "def f(:\n")
    codebatch("run", ".", "-q", "--task", "parse")
    ended = codebatch("check", "latest~1", "latest", "--json", status=3)
    assert json.loads(ended.stdout)["complete"] is False
    assert "incomplete: " in ended.notes
    snapshot = codebatch("snapshot", ".", "--json").json["snapshot_id"]
    batch_id = codebatch("batch", "init", "--snapshot", snapshot, "--json").json["batch_id"]
    error = codebatch("baseline", "create", "known.jsonl", "--batch", batch_id, "--json", status=3).error
    assert error["message"].endswith("results)"), "the message must not have details for programs"
    assert error["hint"] == f"resume it with: codebatch resume --batch {batch_id}"


def test_baseline_is_created_updated_and_checked(codebatch: CommandLine) -> None:
    here = codebatch.directory
    write(here / "a.py", "import os\nimport re\n")
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    created = codebatch("baseline", "create", "known.jsonl", "--json")
    assert (created.json["findings"], (here / "known.jsonl").read_bytes().count(b"\n")) == (2, 2)
    assert "already exists" in codebatch("baseline", "create", "known.jsonl", "--json", status=2).error["message"]
    assert codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new").lines[-1].startswith("0 new, 2 in the")

    write(here / "b.py", "\n\nimport re\nimport sys\n")
    (here / "a.py").unlink()
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    answer = codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new", "--json", status=1).json
    assert [row["message"] for row in answer["forbidden"]] == ["`sys` imported but unused"]
    assert (answer["counts"], answer["base"]) == ({"unchanged": 1, "new": 1, "fixed": 1}, None)
    update = codebatch("baseline", "update", "known.jsonl", "--json").json
    assert [update[name] for name in ("findings", "removed", "moved", "added", "excluded")] == [1, 1, 1, 0, 1]
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
    assert (
        "neither severities nor metrics"
        in codebatch("check", "--baseline", "known.jsonl", "--fail-on", "severity-raised", status=2).notes
    )


def test_baseline_retains_findings_that_are_not_comparable(codebatch: CommandLine) -> None:
    here = codebatch.directory
    known = "def f():\n    return undefined_one\n"
    write(here / "a.py", known + "print(undefined_two)\n")
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    codebatch("baseline", "create", "known.jsonl")
    # The finding on the edited line is fixed, although others are not comparable.
    write(here / "a.py", known + "\ndef (:\n")
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    answer = codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new", "--json", status=1).json
    assert answer["counts"] == {"unchanged": 0, "new": 1, "fixed": 1, "not_comparable": 1}
    assert "1 not comparable" in codebatch("check", "--baseline", "known.jsonl", status=1).lines[-1]
    update = codebatch("baseline", "update", "known.jsonl", "--json").json
    assert [update[name] for name in ("findings", "removed", "excluded", "not_comparable")] == [1, 1, 1, 1]
    write(here / "a.py", known)
    codebatch("run", ".", "-q", "--exclude", "known.jsonl")
    codebatch("check", "--baseline", "known.jsonl", "--fail-on", "new")


def _count_listed_regressions(codebatch: CommandLine, command: str) -> int:
    """Return the number of regressions that a command from an answer lists."""
    words = shlex.split(command)
    assert words[0] == "codebatch"
    return sum(line.startswith("  ") for line in codebatch(*words[1:]).lines)


def test_check_lists_new_findings_that_no_condition_forbids(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q", "--store", "s t")
    write(codebatch.directory / "a.py", "import os\n")
    write(codebatch.directory / "b.py", "def f(x):\n    assert (x, 1)\n    print(undefined)\n")
    codebatch("run", ".", "-q", "--store", "s t")
    ended = codebatch("check", "--store", "s t", "--fail-on", "metric:complexity>9")
    codes = [line.split()[2] for line in ended.lines if line.endswith("[new, allowed]")]
    assert codes == ["F631", "F821", "F401"], "the most severe findings come first"
    answer = codebatch("check", "--json", "--store", "s t", status=1).json
    assert [row["code"] for row in answer["forbidden"]] == codes[:2]
    assert [row["code"] for row in answer["allowed"]] == codes[2:]
    assert (answer["compared"], answer["allowed_count"]) == (True, 1)
    assert _count_listed_regressions(codebatch, answer["list_command"]) == 3
    assert "--limit" not in answer["list_command"]


def test_every_count_names_the_command_that_lists_it(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import os\nimport re\n\n\ndef f(x):\n    return x\n")
    codebatch("run", ".", "-q")
    write(
        codebatch.directory / "a.py",
        "import sys\nimport re\n\n\ndef f(x):\n    if x:\n        return 1\n    return x\n",
    )
    codebatch("run", ".", "-q")
    lines = codebatch("check", "--fail-on", "metric:complexity>9").lines
    command = lines[-1].removeprefix("to list one state: ")
    counts = dict(part.split(" ", 1)[::-1] for part in lines[-2].split(", "))
    assert {"new", "fixed", "worsened", "unchanged"} <= counts.keys()
    *words, state = shlex.split(command)[1:]
    assert state in counts
    for name, count in counts.items():
        listed = codebatch(*words, name.replace(" ", "_"))
        assert f"{name}, {count}" in listed.lines
        assert sum(line.startswith("  ") for line in listed.lines) == int(count)
        answer = codebatch(*words, name.replace(" ", "_"), "--json").json
        members = ("added", "removed", "changed", "moved", "suppressed", "not_comparable", "unchanged")
        assert sum(len(answer[member]) for member in members) == int(count)


def test_list_of_a_state_is_cut_but_its_count_is_not(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    for number in range(3):
        write(codebatch.directory / f"m{number}.py", "import os\n")
    codebatch("run", ".", "-q")
    listed = codebatch("regressions", "--limit", "2")
    assert (listed.lines[0], len(listed.lines[1:3]), listed.notes) == (
        "new, 3", 2, "1 more; show them with --limit 3\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        (("--path", "typo/"), "no analysed file matches the path 'typo/'"),
        (("--lang", "cobol"), "no analysed file is cobol"),
        (("--tool", "eslint"), "no task reports findings of the tool 'eslint'"),
        (("--kind", "metric", "--metric", "complexty"), "no record has the metric 'complexty'"),
    ],
)
def test_filter_that_nothing_can_pass_does_not_pass_a_gate(
    codebatch: CommandLine, filters: tuple[str, ...], reason: str
) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("run", ".", "-q")
    for command in ("diff", "regressions", "improvements"):
        ended = codebatch(command, *filters, "--exit-code", status=3)
        assert ended.notes.endswith(f"not compared: {reason}\n")
        codebatch(command, *filters)
    if "--kind" not in filters:
        ended = codebatch("export", "sarif", "latest~1", "latest", *filters, "-o", "a.sarif", status=3)
        assert f"incomplete: {reason}\n" in ended.notes
        is_refused = "--tool" in filters
        codebatch("export", "sarif", *filters, "-o", "b.sarif", status=2 if is_refused else 3)
        written = [codebatch.directory / "a.sarif", codebatch.directory / "b.sarif"]
        assert written[1].exists() != is_refused
        for path in written[: 1 if is_refused else 2]:
            runs = json.loads(path.read_bytes())["runs"]
            assert {run["invocations"][0]["executionSuccessful"] for run in runs} <= {False}
    # A filter that files or tasks pass gives a firm answer, even if it is empty.
    codebatch("improvements", "--path", "a.py", "--tool", "ruff", "--lang", "python", "--exit-code")


def test_regressions_say_what_was_compared(codebatch: CommandLine) -> None:
    """The help promises findings only, so `none` does not stand for worsened metrics."""
    write(codebatch.directory / "a.py", "def f(x):\n    return x\n")
    codebatch("run", ".", "-q")
    write(codebatch.directory / "a.py", "def f(x):\n    if x:\n        return 1\n    return x\n")
    codebatch("run", ".", "-q")
    for command in ("regressions", "improvements"):
        assert "metric" not in codebatch("help", "commands").text.partition(command)[2].splitlines()[0]
        first, second, *_ = [line for line in codebatch(command, "--help").lines if line.strip()][1:]
        assert "metric" not in first
        assert "With --kind metric" in second
        assert codebatch(command).notes == "none\n"
    assert codebatch("regressions", "--kind", "metric").lines[0] == "worsened, 6"


def test_check_limits_long_lists_and_counts_the_omitted_findings(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q", "--exclude", "known")
    codebatch("baseline", "create", "known")
    for number in range(52):
        write(codebatch.directory / f"m{number:02d}.py", "import os\n")
    codebatch("run", ".", "-q", "--exclude", "known")
    ended = codebatch("check")
    assert sum(line.endswith("[new, allowed]") for line in ended.lines) == 50
    (more,) = [line for line in ended.lines if line.startswith("2 more allowed; list all with: ")]
    assert _count_listed_regressions(codebatch, more.partition(": ")[2]) == 52
    answer = codebatch("check", "--json").json
    assert (len(answer["allowed"]), answer["allowed_count"]) == (50, 52)
    assert "2 more that fail the check; list all with --json" in codebatch("check", "--fail-on", "new", status=1).lines

    of_baseline = codebatch("check", "--baseline", "known", "--json").json
    assert (len(of_baseline["allowed"]), of_baseline["allowed_count"], of_baseline["compared"]) == (50, 52, True)
    words = shlex.split(of_baseline["list_command"])
    assert len(codebatch(*words[1:], status=1).json["forbidden"]) == 52


def test_batch_without_files_is_not_compared(codebatch: CommandLine) -> None:
    """A check that read nothing has not passed, whatever the base."""
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q", "--exclude", "known")
    codebatch("baseline", "create", "known")
    (codebatch.directory / "a.py").unlink()
    codebatch("run", ".", "-q", "--exclude", "known", "--allow-empty")
    for arguments in ((), ("latest~1",), ("--baseline", "known")):
        ended = codebatch("check", *arguments, status=3)
        (line,) = ended.lines
        assert ended.notes.endswith("the check has not passed: accept this with --allow-no-base\n")
        assert codebatch("check", *arguments, "--allow-no-base").lines == [line]
        assert line.endswith("has no files, so nothing was checked")
        answer = codebatch("check", *arguments, "--json", status=3).json
        assert (answer["passed"], answer["compared"], answer["list_command"]) == (False, False, None)


def test_findings_without_a_result_in_the_base_are_not_judged(codebatch: CommandLine) -> None:
    """Such findings may be older than the change, so the check neither passes nor fails."""
    write(codebatch.directory / "a.py", "import os\n")
    snapshot = codebatch("snapshot", ".", "--json").json["snapshot_id"]
    base = codebatch("batch", "init", "--snapshot", snapshot, "--json").json["batch_id"]
    write(codebatch.directory / "a.py", "import os, sys\n")
    codebatch("run", ".", "-q")
    ended = codebatch("check", base, "--fail-on", "new", status=3)
    assert "incomplete: 2 changes cannot be judged, because the base has no result for the files\n" in ended.notes
    answer = codebatch("check", base, "--fail-on", "new", "--json", status=3).json
    assert (answer["passed"], answer["compared"], answer["not_judged"]) == (False, True, 2)
    assert codebatch("check", base, "--json").json["passed"] is True, "warnings do not matter here"
    assert codebatch("check", base, "--fail-on", "new", "--allow-incomparable", "--json").json["passed"] is True


def test_github_job_warns_that_nothing_was_compared(codebatch: CommandLine) -> None:
    """The annotation is on standard output, but with --json it is on standard error. Newlines and `%` are escaped."""
    job = CommandLine(codebatch.directory, {"GITHUB_ACTIONS": "true"})
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    allowed = job("check", "-q", "--allow-no-base").lines
    assert allowed[1] == f"::warning title=codebatch check::{allowed[0]}"
    assert allowed[0].startswith("not compared: ")
    ended = job("check", "--json", status=3)
    error = f"::error title=codebatch check::{allowed[0]}"
    assert (ended.json["compared"], error in ended.notes.splitlines()) == (False, True)
    assert "::" not in codebatch("check", status=3).text
    assert "::" not in CommandLine(codebatch.directory, {"GITHUB_ACTIONS": "false"})("check", status=3).text
    codebatch("baseline", "create", "known.jsonl")
    assert "::" not in job("check", "--baseline", "known.jsonl").text
    refused = codebatch("check", "--baseline", "known.jsonl", "--fail-on", "gate-changed", status=2)
    assert "gate-changed cannot be used with a baseline" in refused.notes


def test_github_job_that_fails_without_a_base_is_annotated(codebatch: CommandLine) -> None:
    origin = codebatch.directory / "a%b"
    make_repository(origin, [(NOW + at, {b"a.py": b"x = %d\n" % at}) for at in range(2)])
    git(codebatch.directory, "clone", "-q", f"file://{origin}", "clone")
    git(codebatch.directory / "clone", "remote", "set-head", "origin", "-d")
    job = CommandLine(codebatch.directory / "clone", {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "x%\n"})
    job("run", ".", "-q")
    git(job.directory, "checkout", "-q", "HEAD~1")
    job("run", ".", "-q")
    line, annotation = job("check", status=3).lines
    message = "branch x%25%0A, into which the change will be merged, is not in this clone; fetch it: "
    assert annotation.startswith(f"::error title=codebatch check::not compared: {message}")
    assert line.startswith("not compared: ")
    assert job("check", "--json", status=3).json["passed"] is False
    assert job("check", "--allow-no-base", status=3).lines[1] == annotation, "the base is named, but missing"


def test_failed_check_shows_lines_and_how_to_repeat_it_in_each_service(codebatch: CommandLine) -> None:
    """The findings are annotations, and the summary has the verdict. A metric has no finding, but a place."""
    project = codebatch.directory / "p"
    changed = b'def f(x):\n    ValueError("50%;]")\n    return x if x else 1\n'
    make_repository(project, [(NOW, {b"a.py": b"x = 1\n"}), (NOW + 1, {b"a.py": changed})])
    git(project, "reset", "-q", "--hard")
    base = git(project, "rev-parse", "HEAD~1")
    summary = codebatch.directory / "summary.md"
    summary.write_text("# earlier\n")
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    github, azure = CommandLine(project, variables), CommandLine(project, {"TF_BUILD": "True"})
    github("run", ".", "-q")
    conditions = ("--fail-on", "new", "--fail-on", "metric:complexity>1")
    message = "Missing `raise` statement on exception"
    ended = github("check", base, *conditions, status=1)
    assert [line.strip() for line in ended.lines[1:3]] == ['2 | ValueError("50%;]")', "| ^^^^^^^^^^^^^^^^^^^"]
    assert [line for line in ended.lines if line.startswith("::")] == [
        f"::error file=a.py,line=2,endLine=2,col=5,endColumn=24,title=PLW0133 (ruff)::{message}",
        "::error file=a.py,line=1,endLine=1,col=1,endColumn=1,title=complexity (codebatch)::f complexity = 2",
    ]
    repeat = f"codebatch run . && codebatch check {base[:12]} --fail-on new --fail-on 'metric:complexity>1'"
    assert f"to repeat this on your machine: {repeat}\n" in ended.notes
    store = ("--store", str(project / ".codebatch"))
    assert f"to repeat this on your machine: {repeat}\n" in github("check", base, *conditions, *store, status=1).notes
    text = summary.read_text()
    assert text.startswith("# earlier\n# codebatch check: not passed\n")
    assert all(part in text for part in ("| `new` | 1 | 0 | failed |", repeat, "| a\\.py\\:2 | error | PLW0133 |"))

    commands = [line for line in azure("check", base, *conditions, status=1).lines if line.startswith("##")]
    place = "type=error;sourcepath=a.py;linenumber=2;columnnumber=5;code=PLW0133;"
    assert commands[0] == f"##vso[task.logissue {place}]{message}"
    assert commands[1].endswith(";linenumber=1;columnnumber=1;code=complexity;]f complexity = 2")
    assert "::" not in CommandLine(project)("check", base, status=1).text
    lost = CommandLine(project, {**variables, "GITHUB_STEP_SUMMARY": str(codebatch.directory / "no" / "summary")})
    assert "summary not written: No such file or directory\n" in lost("check", base, status=1).notes


def test_violations_that_a_service_does_not_show_are_counted(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    write(codebatch.directory / "a.py", 'ValueError("")\n' * 12)
    codebatch("run", ".", "-q")
    ended = CommandLine(codebatch.directory, {"GITHUB_ACTIONS": "true"})("check", "-q", status=1)
    assert sum(line.startswith("::error ") for line in ended.lines) == 10
    assert "2 more are not annotated, because GitHub shows at most 10 per step\n" in ended.notes
    azure = CommandLine(codebatch.directory, {"TF_BUILD": "True"})("check", "-q", status=1).notes
    assert "2 more are not annotated, because Azure Pipelines shows at most 10 per step\n" in azure


def test_findings_that_settings_hide_are_shown_in_each_output(codebatch: CommandLine) -> None:
    """A change turns a rule off and adds an error that this rule would report."""
    make_repository(codebatch.directory, [(NOW, {b"a.py": b"x = 1\n", b".gitignore": b"/.codebatch\n"})])
    git(codebatch.directory, "reset", "-q", "--hard")
    git(codebatch.directory, "checkout", "-qb", "change")
    write(codebatch.directory / "codebatch.toml", '[tasks.lint]\noff = ["F821"]\n')
    write(codebatch.directory / "b.py", "print(nope)\n")
    git(codebatch.directory, "add", "-A")
    git(codebatch.directory, "-c", "user.name=n", "-c", "user.email=n", "commit", "-qm", "m")
    codebatch("run", ".", "-q")
    passed = codebatch("check", "main")
    hidden = "1 finding is no longer looked for: codebatch.toml: tasks.lint.off"
    assert hidden in passed.notes.splitlines()
    assert codebatch("check", "main", "--json").json["hidden"] == {"findings": 1, "lowered": 0, "unknown_reason": ""}
    failed = codebatch("check", "main", "--settings-from", "base", status=1)
    assert failed.lines[0].startswith("b.py:1:7: error F821 ")
    assert " --settings-from base\n" in failed.notes
    refused = codebatch("check", "--settings-from", "base", "--baseline", "b", "--json", status=2)
    assert refused.error["message"].endswith("which need BASE")

    summary = codebatch.directory / "summary.md"
    job = CommandLine(codebatch.directory, {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)})
    assert job("check", "main").lines[-1] == f"::warning title=codebatch check::{hidden}"
    assert hidden in summary.read_text()
    azure = CommandLine(codebatch.directory, {"TF_BUILD": "True"})
    assert azure("check", "main").lines[-1] == f"##vso[task.logissue type=warning;]{hidden}"


def test_broken_import_is_shown_like_a_finding(codebatch: CommandLine) -> None:
    """Its row, annotation and summary are those of a finding, with the line of the import."""
    project = codebatch.directory / "p"
    files = {b"a.py": b"def used():\n    return 1\n", b"b.py": b"from a import used\n\nprint(used())\n"}
    make_repository(project, [(NOW, files), (NOW + 1, {**files, b"a.py": b"x = 1\n"})])
    git(project, "reset", "-q", "--hard")
    summary = codebatch.directory / "summary.md"
    job = CommandLine(project, {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)})
    job("run", ".", "-q")
    check = ("check", "HEAD~1", "--fail-on", "unresolved-import")
    message = "a.py no longer defines used; it was at a.py:1"
    ended = job(*check, status=1)
    assert ended.lines[0] == f"b.py:1:15: error unresolved-import {message} [codebatch] [new]"
    assert [line.split() for line in ended.lines[1:3]] == [["1", "|", "from", "a", "import", "used"], ["|", "^^^^"]]
    place = "file=b.py,line=1,endLine=1,col=15,endColumn=19,title=unresolved-import (codebatch)"
    assert f"::error {place}::{message}" in ended.lines
    assert "| `unresolved-import` | 1 | 0 | failed |" in summary.read_text()
    assert "codebatch: ignore[unresolved-import] and the reason\n" in ended.notes
    (row,) = job(*check, "--json", status=1).json["forbidden"]
    assert (row["kind"], row["path"], row["line"], row["code"], row["state"]) == (
        "diagnostic",
        "b.py",
        1,
        "unresolved-import",
        "new",
    )


def test_broken_imports_fail_the_check_by_default_if_the_batches_have_imports(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "def used(): ...\n")
    write(codebatch.directory / "b.py", "from a import used\n")
    codebatch("run", ".", "-q")
    codebatch("baseline", "create", "known.jsonl")
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    failed = codebatch("check", status=1)
    assert failed.lines[0].startswith("b.py:1:15: error unresolved-import a.py no longer defines used")
    assert "nothing found in either batch" not in failed.lines, "a broken import is in no batch"
    for options in (("--changed-lines",), ("--fail-on", "new-error"), ("--baseline", "known.jsonl")):
        rows = codebatch("check", *options, "--json").json["conditions"]
        assert [row["condition"] for row in rows] == ["new-error"]

    left_out = "unresolved-import was not judged: batch "
    write(codebatch.directory / "codebatch.toml", "[pipelines.quick]\ntasks = ['parse', 'lint']\n")
    cases = ((["a.py"], "is restricted to paths"), ([".", "--pipeline", "quick"], "the task dependencies"))
    for arguments, reason in cases:
        ids = []
        for text in ("y = 1\n", "z = 1\n"):
            write(codebatch.directory / "a.py", text)
            ids.append(codebatch("run", *arguments, "--json").json["batch_id"])
        checked = codebatch("check", *ids)
        assert left_out in checked.notes, checked.notes
        assert reason in checked.notes


def test_check_of_a_path_names_it_and_gives_no_advice_that_cannot_help(codebatch: CommandLine) -> None:
    """No comment suppresses a finding about a suppression."""
    write(codebatch.directory / "codebatch.toml", '[tasks.lint]\non = ["suppression-without-reason"]\n')
    write(codebatch.directory / "src/a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    write(codebatch.directory / "src/a.py", "import os  # noqa\n")
    codebatch("run", ".", "-q")
    ended = codebatch("check", "--fail-on", "suppression-without-reason", "--path", "/src/", status=1)
    assert ended.lines[0].startswith("src/a.py:1:14: warning suppression-without-reason ")
    assert "only changes of files with the path '/src/' are judged" in ended.notes
    assert "to accept a finding" not in ended.notes
    answer = codebatch("check", "--fail-on", "new", "--path", "/src/", "--json", status=1).json
    assert (answer["path"], " --path /src/" in answer["list_command"]) == ("/src/", True)
    error = codebatch("check", "--path", "/no/", "--json", status=2).error
    assert error["message"] == "no analysed file matches the path '/no/'"
