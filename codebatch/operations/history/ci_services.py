"""The base that a CI service states for the change that it builds.

Each row of CI_SERVICES has the variables of one service, as its documentation defines them. All values are untrusted: a
commit must be a hash, and a branch is only looked up below the refs of a remote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

Variables = Mapping[str, str]

_COMMIT = re.compile(r"[0-9a-f]{7,64}\Z", re.ASCII)
_NO_COMMIT = re.compile(r"0+\Z", re.ASCII)
_MERGE_REF = re.compile(r"refs/pull/\d+/merge\Z", re.ASCII)
_PROPERTY = re.compile(r"([^#!\s][^=:]*?)\s*[=:]\s*(.*)\Z")
_FILE_BYTES_MAX = 16 << 20


class CiService(NamedTuple):
    """The variables of a CI service. Of several variables, the first that is set counts.

    - `markers`: variables that only jobs of this service have. Each job has at least one.
    - `target_commit`, `target_branch`: the head and the name of the branch into which the change will be merged.
    - `base`: the commit from which the change started.
    - `pushed_before`: the head of the built branch before the push. Only pushes have it.
    - `default_branch`: the name of the default branch.
    - `built_ref`, `built_commit`: the ref and the commit of the job. They identify a merge commit of the service.
    - `clone_setting`: how a job gets more history. `{}` is the number of commits; 0 means all.
    - `read_more`: returns values that the variables contain only indirectly.
    """

    name: str
    documentation: str
    markers: tuple[str, ...]
    target_commit: tuple[str, ...] = ()
    target_branch: tuple[str, ...] = ()
    base: tuple[str, ...] = ()
    pushed_before: tuple[str, ...] = ()
    default_branch: tuple[str, ...] = ()
    built_ref: str = ""
    built_commit: str = ""
    clone_setting: str = ""
    read_more: Callable[[Variables], Variables] = dict


class CiChange(NamedTuple):
    """The statements of the environment about the change that is built. Unknown members are empty.

    `service` is the name of the service; `is_in_ci` is also set in services that are not in the table. `built_merge` is
    the merge commit that the service made for a pull request.
    """

    service: str = ""
    is_in_ci: bool = False
    target_commit: str = ""
    target_branch: str = ""
    base: str = ""
    pushed_before: str = ""
    default_branch: str = ""
    built_merge: str = ""
    clone_setting: str = ""


def read_ci_change(environment: Variables) -> CiChange:
    """Return the statements of the CI service of this job about the change. Files that the service names are read."""
    for service in CI_SERVICES:
        known = (*service.target_commit, *service.target_branch, *service.base)
        if any(environment.get(name) for name in (*service.markers, *known)):
            return _read_service(service, {**environment, **service.read_more(environment)})
    return CiChange(is_in_ci=environment.get("CI", "").lower() not in ("", "0", "false"))


def _read_service(service: CiService, variables: Variables) -> CiChange:
    def first(names: tuple[str, ...]) -> str:
        return next(filter(None, (variables.get(name, "") for name in names)), "")

    def commit(*names: str) -> str:
        values = (variables.get(name, "") for name in names)
        return next((value for value in values if _COMMIT.match(value) and not _NO_COMMIT.match(value)), "")

    is_merge = _MERGE_REF.match(variables.get(service.built_ref, ""))
    return CiChange(
        service=service.name,
        is_in_ci=True,
        target_commit=commit(*service.target_commit),
        target_branch=first(service.target_branch).removeprefix("refs/heads/"),
        base=commit(*service.base),
        pushed_before=commit(*service.pushed_before),
        default_branch=first(service.default_branch).removeprefix("refs/heads/"),
        built_merge=commit(service.built_commit) if is_merge else "",
        clone_setting=service.clone_setting,
    )


def _read_github_event(environment: Variables) -> Variables:
    """Return the members of the event file. Only pushes and merge queues need it."""
    try:
        event = json.loads(_read_file(environment.get("GITHUB_EVENT_PATH", "")))
    except (ValueError, RecursionError):
        return {}

    def text(*keys: str) -> str:
        value: object = event
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, str) else ""

    return {
        # In an event of a pull request, `before` is the earlier head of its own branch.
        "event.before": "" if environment.get("GITHUB_BASE_REF") else text("before"),
        "event.merge_group.base_sha": text("merge_group", "base_sha"),
        "event.merge_group.base_ref": text("merge_group", "base_ref"),
        "event.repository.default_branch": text("repository", "default_branch"),
    }


def _read_jenkins_branch(environment: Variables) -> Variables:
    """Return the built branch as the default branch if Jenkins states that it is the primary one."""
    return {"primary": environment.get("BRANCH_NAME", "")} if environment.get("BRANCH_IS_PRIMARY") == "true" else {}


def _read_travis_range(environment: Variables) -> Variables:
    """Return the branch and the commit that Travis states. For a pull request, TRAVIS_BRANCH is its target."""
    first = environment.get("TRAVIS_COMMIT_RANGE", "").partition("..")[0]
    is_request = environment.get("TRAVIS_PULL_REQUEST", "false") != "false"
    return {"target": environment.get("TRAVIS_BRANCH", "")} if is_request else {"before": first}


def _read_teamcity_parameters(environment: Variables) -> Variables:
    """Return the parameters of the build. The file of system properties names the file that has them."""
    system = _parse_properties(_read_file(environment.get("TEAMCITY_BUILD_PROPERTIES_FILE", "")))
    return _parse_properties(_read_file(system.get("teamcity.configuration.properties.file", "")))


def _parse_properties(data: bytes) -> dict[str, str]:
    """Parse a file of Java properties. Lines that continue on the next line are not supported."""
    matches = map(_PROPERTY.match, data.decode("latin-1").splitlines())
    return {match[1]: re.sub(r"\\(.)", r"\1", match[2]) for match in matches if match is not None}


def _read_file(path: str) -> bytes:
    with suppress(OSError, ValueError):
        if path and Path(path).is_file():
            with open(path, "rb") as file:
                return file.read(_FILE_BYTES_MAX)
    return b""


CI_SERVICES = (
    CiService(
        name="GitHub",
        documentation="https://docs.github.com/en/actions/reference/workflows-and-actions/variables",
        markers=("GITHUB_ACTIONS",),
        target_commit=("event.merge_group.base_sha",),
        target_branch=("GITHUB_BASE_REF", "event.merge_group.base_ref"),
        pushed_before=("event.before",),
        default_branch=("event.repository.default_branch",),
        built_ref="GITHUB_REF",
        built_commit="GITHUB_SHA",
        clone_setting="in actions/checkout set `fetch-depth: {}`",
        read_more=_read_github_event,
    ),
    CiService(
        name="GitLab",
        documentation="https://docs.gitlab.com/ci/variables/predefined_variables/",
        markers=("GITLAB_CI",),
        # Only pipelines for merged results have the first commit; HEAD is then a merge with it.
        target_commit=("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_SHA"),
        target_branch=("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME"),
        base=("CI_MERGE_REQUEST_DIFF_BASE_SHA",),
        pushed_before=("CI_COMMIT_BEFORE_SHA",),
        default_branch=("CI_DEFAULT_BRANCH",),
        clone_setting="in .gitlab-ci.yml set the variable `GIT_DEPTH: {}`",
    ),
    CiService(
        name="Buildkite",
        documentation="https://buildkite.com/docs/pipelines/configure/environment-variables",
        markers=("BUILDKITE",),
        target_branch=("BUILDKITE_PULL_REQUEST_BASE_BRANCH", "BUILDKITE_MERGE_QUEUE_BASE_BRANCH"),
        base=("BUILDKITE_MERGE_QUEUE_BASE_COMMIT",),
        default_branch=("BUILDKITE_PIPELINE_DEFAULT_BRANCH",),
    ),
    CiService(
        name="Azure Pipelines",
        documentation="https://learn.microsoft.com/azure/devops/pipelines/build/variables",
        markers=("TF_BUILD",),
        target_branch=("SYSTEM_PULLREQUEST_TARGETBRANCH",),
        built_ref="BUILD_SOURCEBRANCH",
        built_commit="BUILD_SOURCEVERSION",
        clone_setting="in the step `checkout` set `fetchDepth: {}`",
    ),
    CiService(
        name="CircleCI",
        documentation="https://circleci.com/docs/reference/variables/",
        markers=("CIRCLECI",),
        clone_setting="in the step `checkout` set `method: full`",
    ),
    CiService(
        name="Bitbucket",
        documentation="https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets/",
        markers=("BITBUCKET_BUILD_NUMBER",),
        target_commit=("BITBUCKET_PR_DESTINATION_COMMIT",),
        target_branch=("BITBUCKET_PR_DESTINATION_BRANCH",),
        clone_setting="in bitbucket-pipelines.yml set `clone: depth: full`",
    ),
    CiService(
        name="Travis",
        documentation="https://docs.travis-ci.com/user/environment-variables/#default-environment-variables",
        markers=("TRAVIS",),
        target_branch=("target",),
        pushed_before=("before",),
        clone_setting="in .travis.yml set `git: depth: false`",
        read_more=_read_travis_range,
    ),
    CiService(
        name="TeamCity",
        documentation="https://www.jetbrains.com/help/teamcity/predefined-build-parameters.html",
        markers=("TEAMCITY_VERSION",),
        target_branch=("teamcity.pullRequest.target.branch",),
        read_more=_read_teamcity_parameters,
    ),
    # Jenkins is last, because its jobs often run for other services, whose variables are more precise.
    CiService(
        name="Jenkins",
        documentation="https://www.jenkins.io/doc/book/pipeline/multibranch/ and https://plugins.jenkins.io/git/",
        markers=("JENKINS_URL", "JENKINS_HOME"),
        target_branch=("CHANGE_TARGET",),
        pushed_before=("GIT_PREVIOUS_SUCCESSFUL_COMMIT", "GIT_PREVIOUS_COMMIT"),
        default_branch=("primary",),
        read_more=_read_jenkins_branch,
    ),
)
