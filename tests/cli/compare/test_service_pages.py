"""The jobs of `codebatch help ci-services` and `ci-more`, run with the variables of each service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from codebatch.operations.history.ci_services import CI_SERVICES
from tests.support.command_line import CommandLine, write
from tests.support.git_repositories import git

PAGES = Path(__file__).parents[3] / "codebatch" / "help"
BLOCK = re.compile(r"^\*\*([\w ]+)\*\* \(`(\S+)`.*?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"\bcodebatch ((?:run|check)\b[^\n&']*)")
JOBS = {
    name: (language, text)
    for page in ("ci-services", "ci-more")
    for name, _, language, text in BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
}
WHOLE_HISTORY = {
    "GitHub": "fetch-depth: 0",
    "GitLab": 'GIT_DEPTH: "0"',
    "Jenkins": "+refs/heads/*:refs/remotes/origin/*",
    "Buildkite": "git fetch origin",
    "Azure Pipelines": "fetchDepth: 0",
    "CircleCI": "method: full",
    "Bitbucket": "depth: full",
    "Travis": "depth: false",
    "TeamCity": '"teamcity.git.fetchAllHeads", "true"',
}
"""The setting of each job by which the clone has the base."""
PULL_REQUEST = {
    "GitLab": {"GITLAB_CI": "true", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"},
    "Jenkins": {"JENKINS_URL": "https://j", "CHANGE_TARGET": "main"},
    "Buildkite": {"BUILDKITE": "true", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main"},
    "Azure Pipelines": {"TF_BUILD": "True", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"},
    "CircleCI": {"CIRCLECI": "true", "CI": "true"},
    "Bitbucket": {"BITBUCKET_BUILD_NUMBER": "1", "BITBUCKET_PR_DESTINATION_BRANCH": "main"},
    "Travis": {"TRAVIS": "true", "TRAVIS_PULL_REQUEST": "1", "TRAVIS_BRANCH": "main"},
    "TeamCity": {"TEAMCITY_VERSION": "2025.11"},
}


def test_each_service_has_a_job_with_the_whole_history() -> None:
    assert {service.name for service in CI_SERVICES} == JOBS.keys() == WHOLE_HISTORY.keys()
    for name, (language, text) in JOBS.items():
        assert WHOLE_HISTORY[name] in text, name
        if language == "yaml":
            parsed: Any = yaml.safe_load(text)
            assert isinstance(parsed, dict)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PULL_REQUEST))
def test_job_of_a_pull_request_fails_and_writes_the_reports_that_it_names(codebatch: CommandLine, name: str) -> None:
    origin = codebatch.directory / "origin"
    write(origin / "a.py", "x = 1\n")
    identity = ("-c", "user.name=n", "-c", "user.email=n@n")
    git(origin, "init", "-q", "-b", "main")
    git(origin, "add", "-A")
    git(origin, *identity, "commit", "-q", "-m", "m")
    git(origin, "checkout", "-q", "-b", "change")
    write(origin / "a.py", "def f(:\n")
    git(origin, *identity, "commit", "-q", "-a", "-m", "m")
    git(origin, "checkout", "-q", "main")
    git(codebatch.directory, "clone", "-q", "-b", "change", str(origin), "work")

    _, text = JOBS[name]
    work = codebatch.directory / "work"
    store = {"CODEBATCH_STORE": str(codebatch.directory / "stores" / "PROJECT")}
    job = CommandLine(work, {**PULL_REQUEST[name], **store})
    run, check = (match.strip() for match in COMMAND.findall(re.sub(r"# .*", "", text)))
    job(*run.split())
    for folder in re.findall(r"mkdir -p (\S+)", text):
        (work / folder).mkdir()
    ended = job(*check.split(), status=1)
    assert "new-error              1      0  failed" in ended.lines
    assert f"batch of commit {git(origin, 'rev-parse', 'main')[:12]}" in ended.notes
    assert "out of date" not in ended.notes
    for report in re.findall(r"--report \w+=(\S+)", check):
        assert (work / report).stat().st_size > 0
        assert "test-results/" in report or text.count(report) >= 2, "the service gets the report"
