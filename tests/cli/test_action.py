"""The GitHub action: its steps run in a clean directory, with GitHub's variables and `fetch-depth: 1`.

The checkout, the cache and the upload are GitHub's own actions, so the tests replace them. Of an upload, only the file
is checked.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write
from tests.support.git_repositories import DAY, NOW, git, make_repository

pytestmark = pytest.mark.slow

ACTION = Path(__file__).parents[2] / ".github" / "action.yml"
REPOSITORY = "owner/app"
_EXPRESSION = re.compile(r"\$\{\{ ?(.*?) ?\}\}")
_NAME = re.compile(r"'[^']*'|((?:inputs|github|steps)\.[\w.-]+)")


@dataclass
class Step:
    """A step of the action: its members, and the environment variables that it sets."""

    members: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


def steps_and_inputs() -> tuple[list[Step], dict[str, str]]:
    """Return the steps, and the defaults of the inputs. The parser covers only the YAML that the action uses."""
    steps: list[Step] = []
    inputs: dict[str, str] = {}
    above = ""
    for line in ACTION.read_text().splitlines():
        depth = len(line) - len(line.lstrip())
        name, _, value = line.strip().removeprefix("- ").partition(": ")
        name, value = name.removesuffix(":"), re.sub(r'\A"(.*)"\Z', r"\1", value)
        if line.startswith("    - "):
            steps.append(Step())
        if not steps:
            above = name if depth == 2 else above
            inputs |= {above: value} if name == "default" else {}
        elif depth <= 6 and not name.startswith("#"):
            steps[-1].members[name] = above = "" if value == "|" else value
            above = name
        elif above == "env":
            steps[-1].environment[name] = value
        elif above == "run":
            steps[-1].members["run"] += f"{line.strip()}\n"
    return steps, inputs


class Runner:
    """A replacement for GitHub, which keeps caches and starts each job in an empty directory of the same name."""

    def __init__(self, root: Path, origin: Path) -> None:
        self.root = root
        self.origin = origin
        self.temp = root / "temp"
        self.workspace = root / "work" / "app"
        self.caches: list[Path] = []
        self.output: dict[str, str] = {}
        self.refuses_uploads = False

    def job(
        self,
        commit: str,
        ref: str,
        base_ref: str = "",
        *,
        before: str = "",
        depth: str = "1",
        source: str = REPOSITORY,
        event_name: str = "",
        **inputs: str,
    ) -> dict[str, str]:
        """Run a job for a commit, and return the outcome of each step by its name.

        `before` is the head before a push, as in the event file. `source` is the repository of a pull request's branch.
        """
        shutil.rmtree(self.workspace, ignore_errors=True)
        shutil.rmtree(self.temp, ignore_errors=True)
        self.workspace.mkdir(parents=True)
        self.temp.mkdir()
        git(self.workspace, "init", "-q")
        git(self.workspace, "remote", "add", "origin", f"file://{self.origin}")
        local = ref.replace("refs/pull/", "refs/remotes/pull/").replace("refs/heads/", "refs/remotes/origin/")
        git(self.workspace, "fetch", "-q", "--no-tags", f"--depth={depth}", "origin", f"+{commit}:{local}")
        git(self.workspace, "checkout", "-q", "--detach", local)
        event = {"before": before, "repository": {"default_branch": "main"}} if before else {}
        (self.temp / "event.json").write_text(json.dumps(event))
        environment = {
            "CI": "true", "GITHUB_EVENT_PATH": str(self.temp / "event.json"),
            "GITHUB_ACTIONS": "true", "GITHUB_SHA": commit, "GITHUB_REF": ref,
            "GITHUB_BASE_REF": base_ref, "GITHUB_WORKSPACE": str(self.workspace), "RUNNER_TEMP": str(self.temp),
        }  # fmt: skip
        steps, defaults = steps_and_inputs()
        names = {f"inputs.{name}": value for name, value in {**defaults, "package": "", **inputs}.items()}
        names |= {
            "github.event_name": event_name or ("pull_request" if base_ref else "push"),
            "github.repository": REPOSITORY,
            "github.event.pull_request.head.repo.full_name": source if base_ref else "",
        }
        return dict(self._outcomes(steps, names, environment))

    def forget_caches(self) -> None:
        """Lose all caches, as after an eviction."""
        for cache in self.caches:
            shutil.rmtree(cache)
        self.caches.clear()

    def _outcomes(
        self, steps: list[Step], names: dict[str, str], environment: dict[str, str]
    ) -> Iterator[tuple[str, str]]:
        """Run the steps. `names` has the values of inputs and contexts, to which those of the steps are added."""
        is_well = True
        for step in steps:
            name, condition = step.members["name"], step.members.get("if", "")
            outcome = "skipped"
            if _is_condition_met(condition, names) and (is_well or "always()" in condition):
                own = {key: _expand(value, names) for key, value in step.environment.items()}
                (self.temp / "output").write_text("")
                outcome = self._do(step, name, {**environment, **own}, names["inputs.store"])
                outputs = (line.partition("=") for line in (self.temp / "output").read_text().splitlines())
                names |= {f"steps.{step.members.get('id')}.outputs.{key}": value for key, _, value in outputs}
            is_well &= outcome != "failure" or "continue-on-error" in step.members
            names[f"steps.{step.members.get('id')}.outcome"] = outcome
            yield name, outcome

    def _do(self, step: Step, name: str, environment: dict[str, str], store: str) -> str:
        if "run" in step.members:
            here = CommandLine(self.workspace, {**environment, "GITHUB_OUTPUT": str(self.temp / "output")})
            script = self.temp / "script.sh"
            script.write_text(step.members["run"])
            ended = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
                cwd=self.workspace, env=here.environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            self.output[name] = ended.stdout + ended.stderr
            assert "Traceback" not in self.output[name]
            return "failure" if ended.returncode else "success"
        if "restore" in step.members["uses"] and self.caches:
            shutil.copytree(self.caches[-1], self.workspace / store)
        elif "save" in step.members["uses"]:
            if not (self.workspace / store).is_dir():  # The action only warns.
                return "success"
            self.caches.append(self.root / f"cache-{len(self.caches)}")
            shutil.copytree(self.workspace / store, self.caches[-1])
        elif "upload-sarif" in step.members["uses"] and self.refuses_uploads:
            return "failure"
        return "success"


def _expand(text: str, names: dict[str, str]) -> str:
    """Replace the expressions in a text by their values."""
    return _EXPRESSION.sub(lambda match: str(_evaluate(match[1], names)), text)


def _is_condition_met(condition: str, names: dict[str, str]) -> bool:
    """Return whether a step is executed, if no step before it has failed."""
    return not condition or bool(_evaluate(_EXPRESSION.sub(r"\1", condition), names))


def _evaluate(expression: str, names: dict[str, str]) -> object:
    """Return the value of an expression. `always()` is true. Names without a value are empty, as in GitHub."""
    python = expression.replace("&&", " and ").replace("||", " or ")
    python = _NAME.sub(lambda match: match[0] if match[1] is None else repr(names.get(match[1], "")), python)
    return eval(python, {"always": lambda: True})


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner for an origin with a branch `main`."""
    origin = tmp_path / "origin"
    make_repository(origin, [(NOW, {b"a.py": b"import re\n"}), (NOW + DAY, {b"a.py": b"import os\n"})])
    git(origin, "config", "user.name", "n")
    git(origin, "config", "user.email", "n@n")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(origin, "reset", "-q", "--hard")
    return Runner(tmp_path, origin)


def _pull_request(origin: Path, path: str, text: str) -> str:
    """Create the commit that GitHub creates to merge a pull request. The request adds a file."""
    git(origin, "checkout", "-qB", "request", "main")
    (origin / path).write_text(text)
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "m")
    git(origin, "checkout", "-q", "--detach", "main")
    git(origin, "merge", "-q", "--no-ff", "-m", "m", "request")
    return git(origin, "rev-parse", "HEAD")


def test_pull_request_fails_only_for_findings_that_it_adds(runner: Runner) -> None:
    main = git(runner.origin, "rev-parse", "main")
    first = runner.job(main, "refs/heads/main", before=git(runner.origin, "rev-parse", "main~1"), depth="2")
    skipped = ["Install", "Upload the part", "Report a failed upload", "Remove old batches"]
    assert [name for name, outcome in first.items() if outcome == "skipped"] == skipped, runner.output
    assert "failure" not in first.values(), runner.output

    bad = runner.job(_pull_request(runner.origin, "b.py", "def f(:\n"), "refs/pull/1/merge", "main")
    assert {name for name, outcome in bad.items() if outcome == "failure"} == {"Check"}
    assert f"commit {main[:12]}, the first parent of GitHub's merge commit" in runner.output["Check"]
    assert "b.py:1:7: error syntax-error" in runner.output["Check"]
    assert "a.py" not in runner.output["Check"]
    sarif = json.loads((runner.temp / "codebatch.sarif").read_text())
    assert {result["ruleId"] for run in sarif["runs"] for result in run["results"]} == {"F401", "syntax-error"}
    assert (bad["Upload SARIF"], bad["Save the store"]) == ("success", "success")

    conditions = {"fail-on": "new-error\nseverity-raised\n"}
    good = runner.job(_pull_request(runner.origin, "c.py", "import sys\n"), "refs/pull/2/merge", "main", **conditions)
    assert good == first, runner.output
    strict = {"fail-on": "# new-error\n\nseverity-raised # a comment\n  new", "upload-sarif": "false"}
    worse = runner.job(_pull_request(runner.origin, "c.py", "import sys\n"), "refs/pull/2/merge", "main", **strict)
    assert (worse["Check"], worse["Write SARIF"], worse["Upload SARIF"]) == ("failure", "skipped", "skipped")
    broken = _pull_request(runner.origin, "b.py", "def f(:\n")
    empty = runner.job(broken, "refs/pull/1/merge", "main", depth="2", **{"fail-on": ""})
    assert empty["Check"] == "failure"
    assert re.search("^new-error +1 +0 +failed$", runner.output["Check"], re.MULTILINE)


def test_inputs_choose_the_base_and_the_lines(runner: Runner) -> None:
    write(runner.origin / "known.jsonl", "")
    main, before = (git(runner.origin, "rev-parse", name) for name in ("main", "main~1"))
    request = _pull_request(runner.origin, "c.py", "import sys\n")
    new = {"fail-on": "new"}
    for inputs, is_red in (
        ({"base": main}, True), ({"base": request}, True), ({"base": f"{main}~1"}, True),
        ({"base": main, "changed-lines": "true"}, True), ({"baseline": "known.jsonl"}, True),
    ):  # fmt: skip
        outcomes = runner.job(request, "refs/pull/2/merge", "main", depth="9", **new, **inputs)
        assert (outcomes["Check"] == "failure") is is_red, runner.output["Check"]
    assert "2 new, 0 in the baseline" in runner.output["Check"]
    assert runner.job(main, "refs/heads/main", depth="9", base=before)["Check"] == "success"
    assert f"batch of commit {before[:12]}" in runner.output["Check"]
    runner.job(main, "refs/heads/main", depth="9", base="--help")
    assert "'--help'" in runner.output["Check"]


LINTER = """[tasks.words]
command = ["./linter", "{files}"]
match = ["*.py"]
records = "gcc"
version = false
"""


@pytest.mark.parametrize(
    ("event_name", "source", "commands", "runs_programs"),
    [
        ("pull_request", REPOSITORY, "auto", True),
        ("pull_request", "stranger/app", "auto", False),
        ("pull_request", "stranger/app", "true", True),
        ("pull_request", "", "auto", False),
        ("pull_request_target", REPOSITORY, "auto", False),
        ("pull_request_target", REPOSITORY, "true", True),
        ("pull_request", REPOSITORY, "false", False),
    ],
)
def test_pull_request_of_a_fork_runs_no_program_of_the_tree(
    runner: Runner, event_name: str, source: str, commands: str, *, runs_programs: bool
) -> None:
    canary = runner.root / "canary"
    write(runner.origin / "linter", f"#!/bin/sh\ntouch {canary}\n")
    (runner.origin / "linter").chmod(0o755)
    request = _pull_request(runner.origin, "codebatch.toml", LINTER)
    runner.refuses_uploads = True
    outcomes = runner.job(
        request, "refs/pull/2/merge", "main", depth="2", event_name=event_name, source=source, commands=commands
    )
    assert outcomes["Check"] == "success", runner.output
    assert canary.exists() == runs_programs
    assert ("::notice title=codebatch::no programs" in runner.output["Run"]) == (
        not runs_programs and commands == "auto"
    )
    assert ("::warning title=codebatch::a job for pull_request_target" in runner.output["Run"]) == (
        event_name != "pull_request"
    )
    is_foreign = source != REPOSITORY
    assert outcomes["Write SARIF"] == ("skipped" if is_foreign else "success")
    assert outcomes["Report a failed upload"] == outcomes["Write SARIF"], "a refused upload does not fail the job"


def test_old_batches_are_not_cached(runner: Runner) -> None:
    for depth in range(1, 5):
        git(runner.origin, "checkout", "-q", "main")
        write(runner.origin / "d.py", f"x = {depth}\n")
        git(runner.origin, "add", "-A")
        git(runner.origin, "commit", "-qm", "m")
        runner.job(git(runner.origin, "rev-parse", "main"), "refs/heads/main", depth="9", keep="2")
    assert len([*(runner.caches[-1] / "batches").iterdir()]) == 2


def test_base_of_the_request_stays_in_the_cache(runner: Runner) -> None:
    """The clone does not have the base, and more jobs ran than batches are kept."""
    runner.job(git(runner.origin, "rev-parse", "main"), "refs/heads/main", depth="2", **{"allow-no-base": "true"})
    for number in range(5):
        request = _pull_request(runner.origin, "c.py", f"x = {number}\n")
        assert runner.job(request, "refs/pull/2/merge", "main")["Check"] == "success", runner.output


def test_unknown_value_of_commands_is_refused(runner: Runner) -> None:
    outcomes = runner.job(git(runner.origin, "rev-parse", "main"), "refs/heads/main", commands="no")
    assert (outcomes["Run"], outcomes["Check"]) == ("failure", "skipped")
    assert "::error title=codebatch::the input `commands` must be" in runner.output["Run"]


def test_push_is_compared_with_the_head_before_it(runner: Runner) -> None:
    """A push of two commits fails for a finding of the first one, also if the store was lost."""
    before = git(runner.origin, "rev-parse", "main")
    git(runner.origin, "checkout", "-q", "main")
    for path, text in (("b.py", "def f(:\n"), ("c.md", "text\n")):
        (runner.origin / path).write_text(text)
        git(runner.origin, "add", "-A")
        git(runner.origin, "commit", "-qm", "m")
    main = git(runner.origin, "rev-parse", "main")
    assert runner.job(main, "refs/heads/main", before=before, depth="3")["Check"] == "failure"
    assert "b.py:1:7: error syntax-error" in runner.output["Check"]
    runner.forget_caches()
    assert runner.job(main, "refs/heads/main", before=before)["Check"] == "failure"
    assert f"git fetch --depth=1 origin {before}, or in actions/checkout set" in runner.output["Check"]


def test_job_without_a_base_fails_unless_this_is_allowed(runner: Runner) -> None:
    first = git(runner.origin, "rev-parse", "main~1")
    assert runner.job(first, "refs/heads/main", before="0" * 40)["Check"] == "failure"
    assert "::error title=codebatch check::not compared: " in runner.output["Check"]
    runner.forget_caches()
    allowed = {"allow-no-base": "true"}
    assert runner.job(first, "refs/heads/main", before="0" * 40, **allowed)["Check"] == "success"
    assert "::warning title=codebatch check::not compared: " in runner.output["Check"]


def test_shallow_clone_without_base_gets_a_fetch_depth_hint(runner: Runner) -> None:
    """The store has a batch of another commit only. The base of the request is not in a clone of depth 1."""
    runner.job(git(runner.origin, "rev-parse", "main~1"), "refs/heads/main")
    outcomes = runner.job(_pull_request(runner.origin, "b.py", "def f(:\n"), "refs/pull/1/merge", "main")
    assert outcomes["Check"] == "failure"
    assert "`fetch-depth: 2`" in runner.output["Check"]


def test_jobs_share_the_work_and_one_joins_their_parts(runner: Runner) -> None:
    main = git(runner.origin, "rev-parse", "main")
    parts = runner.root / "parts"
    parts.mkdir()
    for number in (1, 2):
        job = runner.job(main, "refs/heads/main", part=f"{number}/2")
        assert {name for name, outcome in job.items() if outcome == "success"} == {
            "Restore the store", "Run", "Upload the part",
        }, runner.output  # fmt: skip
        (file,) = runner.temp.glob("*.cbpart")
        shutil.move(file, parts)
    before = git(runner.origin, "rev-parse", "main~1")
    joined = runner.job(main, "refs/heads/main", before=before, depth="2", join=f"{parts}/*.cbpart")
    assert joined["Upload the part"] == "skipped"
    assert {joined[name] for name in ("Run", "Check", "Write SARIF", "Save the store")} == {"success"}, runner.output
    failed = runner.job(main, "refs/heads/main", before=before, depth="2", join=f"{runner.root}/no/*.cbpart")
    assert (failed["Run"], failed["Save the store"]) == ("failure", "skipped"), "the next job would restore this store"
