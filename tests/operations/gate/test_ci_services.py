"""What each CI service states about a change: its documented variables, and the files that they name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from codebatch.operations.history.ci_services import CI_SERVICES, CiChange, read_ci_change

_A, _B, _ZERO = "a" * 40, "b" * 40, "0" * 40

_STATEMENTS: list[tuple[Mapping[str, str], dict[str, str]]] = [
    (
        {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": _A},
        {"service": "GitHub", "target_branch": "main", "built_merge": _A},
    ),
    (
        {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_REF": "refs/pull/7/head", "GITHUB_SHA": _A},
        {"service": "GitHub", "target_branch": "main"},
    ),
    ({"GITHUB_BASE_REF": "main"}, {"service": "GitHub", "target_branch": "main"}),
    (
        {"GITLAB_CI": "true", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_DIFF_BASE_SHA": _A,
         "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "", "CI_COMMIT_BEFORE_SHA": _ZERO, "CI_DEFAULT_BRANCH": "trunk"},
        {"service": "GitLab", "target_branch": "main", "base": _A, "default_branch": "trunk"},
    ),
    (
        {"GITLAB_CI": "true", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": _B, "CI_MERGE_REQUEST_DIFF_BASE_SHA": _A},
        {"service": "GitLab", "target_commit": _B, "base": _A},
    ),
    (
        {"GITLAB_CI": "true", "CI_COMMIT_BEFORE_SHA": _A, "CI_DEFAULT_BRANCH": "main"},
        {"service": "GitLab", "pushed_before": _A, "default_branch": "main"},
    ),
    (
        {"CI_MERGE_REQUEST_DIFF_BASE_SHA": _A, "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME": "main"},
        {"service": "GitLab", "target_branch": "main", "base": _A},
    ),
    (
        {"BUILDKITE": "true", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main", "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "dev"},
        {"service": "Buildkite", "target_branch": "main", "default_branch": "dev"},
    ),
    (
        {"BUILDKITE": "true", "BUILDKITE_MERGE_QUEUE_BASE_BRANCH": "main", "BUILDKITE_MERGE_QUEUE_BASE_COMMIT": _A},
        {"service": "Buildkite", "target_branch": "main", "base": _A},
    ),
    (
        {"TF_BUILD": "True", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/rel/1", "BUILD_SOURCEVERSION": _A,
         "BUILD_SOURCEBRANCH": "refs/pull/12/merge"},
        {"service": "Azure Pipelines", "target_branch": "rel/1", "built_merge": _A},
    ),
    ({"CIRCLECI": "true", "CIRCLE_BRANCH": "feat"}, {"service": "CircleCI"}),
    (
        {"BITBUCKET_BUILD_NUMBER": "1", "BITBUCKET_PR_DESTINATION_BRANCH": "main",
         "BITBUCKET_PR_DESTINATION_COMMIT": _A[:12]},
        {"service": "Bitbucket", "target_branch": "main", "target_commit": _A[:12]},
    ),
    (
        {"TRAVIS": "true", "TRAVIS_PULL_REQUEST": "7", "TRAVIS_BRANCH": "main", "TRAVIS_COMMIT_RANGE": f"{_A}...{_B}"},
        {"service": "Travis", "target_branch": "main"},
    ),
    (
        {"TRAVIS": "true", "TRAVIS_PULL_REQUEST": "false", "TRAVIS_BRANCH": "feat",
         "TRAVIS_COMMIT_RANGE": f"{_A[:12]}...{_B[:12]}"},
        {"service": "Travis", "pushed_before": _A[:12]},
    ),
    ({"TEAMCITY_VERSION": "2025.1"}, {"service": "TeamCity"}),
    ({"JENKINS_URL": "https://ci/", "CHANGE_TARGET": "main"}, {"service": "Jenkins", "target_branch": "main"}),
    ({"CHANGE_TARGET": "main"}, {"service": "Jenkins", "target_branch": "main"}),
    (
        {"JENKINS_HOME": "/j", "GIT_PREVIOUS_SUCCESSFUL_COMMIT": "null", "GIT_PREVIOUS_COMMIT": _A,
         "BRANCH_NAME": "dev", "BRANCH_IS_PRIMARY": "true"},
        {"service": "Jenkins", "pushed_before": _A, "default_branch": "dev"},
    ),
    (
        {"JENKINS_HOME": "/j", "GIT_PREVIOUS_SUCCESSFUL_COMMIT": _B, "GIT_PREVIOUS_COMMIT": _A, "BRANCH_NAME": "dev"},
        {"service": "Jenkins", "pushed_before": _B},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "statement"), _STATEMENTS, ids=lambda value: next(iter(value)))
def test_variables_of_a_service_name_the_base(environment: Mapping[str, str], statement: dict[str, str]) -> None:
    change = read_ci_change({"CI": "true", **environment})
    assert change.is_in_ci
    stated = {name: value for name, value in change._asdict().items() if isinstance(value, str) and value}
    stated.pop("clone_setting", None)
    assert stated == statement


@pytest.mark.parametrize(("value", "is_in_ci"), [("true", True), ("1", True), ("", False), ("false", False)])
def test_other_services_are_known_by_the_usual_variable(value: str, is_in_ci: bool) -> None:
    assert read_ci_change({"CI": value}) == CiChange(is_in_ci=is_in_ci)
    assert read_ci_change({}) == CiChange()


def test_every_service_names_its_documentation_and_a_marker() -> None:
    assert [service.name for service in CI_SERVICES if not service.documentation.startswith("https://")] == []
    for service in CI_SERVICES:
        for marker in service.markers:
            assert read_ci_change({marker: "true"}).service == service.name


_EVENTS: list[tuple[object, dict[str, str], dict[str, str]]] = [
    (
        {"ref": "refs/heads/main", "before": _A, "after": _B, "repository": {"default_branch": "main"}},
        {},
        {"pushed_before": _A, "default_branch": "main"},
    ),
    ({"before": _ZERO, "repository": {"default_branch": "dev"}}, {}, {"default_branch": "dev"}),
    (
        {"merge_group": {"base_sha": _A, "base_ref": "refs/heads/main"}, "repository": {"default_branch": "main"}},
        {},
        {"target_commit": _A, "target_branch": "main", "default_branch": "main"},
    ),
    # In an event of a pull request, `before` is an earlier head of the same branch.
    ({"before": _A, "pull_request": {}}, {"GITHUB_BASE_REF": "main"}, {"target_branch": "main"}),
    ({"before": 7, "repository": []}, {}, {}),
    ([], {}, {}),
]


@pytest.mark.parametrize(("event", "variables", "statement"), _EVENTS)
def test_event_file_of_github_is_read(
    tmp_path: Path, event: object, variables: dict[str, str], statement: dict[str, str]
) -> None:
    (tmp_path / "event.json").write_text(json.dumps(event))
    change = read_ci_change({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(tmp_path / "event.json"), **variables})
    setting = change.clone_setting
    assert change == CiChange(service="GitHub", is_in_ci=True, clone_setting=setting, **statement)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, None])
def test_damaged_event_file_states_nothing(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "event.json").write_bytes(content)
    change = read_ci_change({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})
    assert (change.service, change.pushed_before) == ("GitHub", "")


def test_parameters_of_teamcity_are_read_from_the_file_that_the_properties_name(tmp_path: Path) -> None:
    (tmp_path / "build").write_text(f"# c\nteamcity.configuration.properties.file={tmp_path}/conf\nx\\:y = 1\n")
    (tmp_path / "conf").write_text("teamcity.pullRequest.target.branch=refs/heads/rel\\:1\n")
    change = read_ci_change({"TEAMCITY_VERSION": "1", "TEAMCITY_BUILD_PROPERTIES_FILE": str(tmp_path / "build")})
    assert change.target_branch == "rel:1"
