"""The commit at which a change begins: in clones as CI services make them, and with what the services state."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

import pytest

from codebatch.git.ancestry import Repository
from codebatch.git.repository import GitError, find_git
from codebatch.operations.history.branch_point import BranchPoint, NoBranchPoint, find_branch_point
from codebatch.operations.history.ci_services import read_ci_change
from codebatch.store.batches.batch_directory import BatchDir
from tests.support.git_repositories import git

_COMMITS = {
    # name: (parents, files); `bug` is in the first commit of each change.
    "m0": "", "m1": "m0", "c1": "m0", "c2": "c1", "p1": "m1", "p2": "p1",
    # A merge of the request, as services make it, and a merge of main into the branch.
    "merge": "m1 c2", "synced": "c2 m1", "other": "c1",
}  # fmt: skip


class _Origin(NamedTuple):
    """A bare repository with the commits of the tests, by name."""

    path: Path
    commits: dict[str, str]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> _Origin:
    path = tmp_path_factory.mktemp("origin")
    git(path, "init", "-q", "--bare", "-b", "main")
    git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    stream, marks = [], {name: number for number, name in enumerate(_COMMITS, 1)}
    for name, parents in _COMMITS.items():
        stream.append(
            f"commit refs/heads/{name}\nmark :{marks[name]}\ncommitter n <n@n> {marks[name]}00 +0000\ndata 1\nm\n"
        )
        stream += [
            f"{word} :{marks[parent]}\n" for word, parent in zip(("from", "merge"), parents.split(), strict=False)
        ]
        stream.append(f"M 100644 inline {name}\ndata 0\n\n")
    git(path, "fast-import", "--quiet", given="".join(stream).encode())
    commits = {name: git(path, "rev-parse", name) for name in _COMMITS}
    for name in _COMMITS:
        git(path, "update-ref", "-d", f"refs/heads/{name}")
    return _Origin(path, commits)


def _clone(origin: _Origin, directory: Path, head: str, fetched: str, depth: int) -> Repository:
    """Make a clone as CI services do: `git init`, and a fetch of the named commits as branches of the remote."""
    directory.mkdir()
    git(directory, "init", "-q", "-b", "none")
    git(directory, "remote", "add", "origin", f"file://{origin.path}")
    words = [word.partition("=") for word in fetched.split()]
    refs = [f"+{origin.commits[commit]}:refs/remotes/origin/{branch}" for branch, _, commit in words]
    limit = [f"--depth={depth}"] if depth else []
    git(directory, "fetch", "-q", "--no-tags", *limit, "origin", origin.commits[head], *refs)
    git(directory, "update-ref", "--no-deref", "HEAD", origin.commits[head])
    program = find_git()
    assert program is not None
    return Repository(program, bytes(directory))


def _find(
    origin: _Origin,
    repository: Repository,
    head: str,
    environment: str,
    *,
    is_clean: bool = True,
    analysed: str = "",
) -> BranchPoint:
    """Return the branch point of a commit. `{name}` in the environment is the hash of a commit."""
    values = dict(word.split("=", 1) for word in environment.format(**origin.commits).split())
    about = SimpleNamespace(commit=origin.commits[head], is_clean=is_clean)
    batch = cast(BatchDir, SimpleNamespace(id="batch-1", about=about))
    change = read_ci_change(values)
    return find_branch_point(batch, repository, change, {origin.commits[name] for name in analysed.split()})


_GITHUB = "GITHUB_ACTIONS=true"
_GITHUB_MERGE = f"{_GITHUB} GITHUB_BASE_REF=main GITHUB_REF=refs/pull/7/merge GITHUB_SHA={{merge}}"
_GITLAB = "GITLAB_CI=true CI_DEFAULT_BRANCH=main"
_GITLAB_REQUEST = f"{_GITLAB} CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main CI_MERGE_REQUEST_DIFF_BASE_SHA={{m0}}"
_BUILDKITE = "BUILDKITE=true BUILDKITE_PIPELINE_DEFAULT_BRANCH=main"
_AZURE = "TF_BUILD=True SYSTEM_PULLREQUEST_TARGETBRANCH=refs/heads/main"
_BITBUCKET = "BITBUCKET_BUILD_NUMBER=1 BITBUCKET_PR_DESTINATION_BRANCH=main BITBUCKET_PR_DESTINATION_COMMIT={m1:.12}"
_TRAVIS = "TRAVIS=true TRAVIS_PULL_REQUEST=7 TRAVIS_BRANCH=main"

_BASES = [
    # (environment, HEAD, fetched branches, depth, the expected base)
    # Requests: the clone has the target branch.
    ("GITHUB_BASE_REF=main", "c2", "main=m1", 0, "m0"),
    (_GITLAB_REQUEST, "c2", "main=m1", 0, "m0"),
    (f"{_BUILDKITE} BUILDKITE_PULL_REQUEST_BASE_BRANCH=main", "c2", "main=m1", 0, "m0"),
    ("JENKINS_URL=x CHANGE_TARGET=main", "c2", "main=m1", 0, "m0"),
    (_AZURE, "c2", "main=m1", 0, "m0"),
    (_BITBUCKET, "c2", "main=m1", 0, "m0"),
    (_TRAVIS, "c2", "main=m1", 0, "m0"),
    # The branch merged main, so its changes are not those of the branch.
    ("GITHUB_BASE_REF=main", "synced", "main=m1", 0, "m1"),
    ("JENKINS_URL=x CHANGE_TARGET=main", "synced", "main=p2", 0, "m1"),
    # The merge commit of the service: its first parent, also in a clone of depth 2 without the target.
    (_GITHUB_MERGE, "merge", "", 2, "m1"),
    (_GITHUB_MERGE, "merge", "", 1, "m1"),
    (f"{_AZURE} BUILD_SOURCEBRANCH=refs/pull/7/merge BUILD_SOURCEVERSION={{merge}}", "merge", "", 2, "m1"),
    (_BITBUCKET, "synced", "", 2, "m1"),
    (f"{_GITLAB_REQUEST} CI_MERGE_REQUEST_TARGET_BRANCH_SHA={{m1}}", "merge", "", 2, "m1"),
    # A merge ref of another commit states nothing about HEAD.
    (_GITHUB_MERGE, "c2", "main=m1", 0, "m0"),
    # The target branch is missing, but the service states a commit.
    (_GITLAB_REQUEST, "c2", "", 3, "m0"),
    (_GITLAB_REQUEST, "c2", "", 1, "m0"),
    ("BUILDKITE=true BUILDKITE_MERGE_QUEUE_BASE_COMMIT={m1}", "merge", "", 2, "m1"),
    # Pushes of a branch, from the default branch that the service states, that the remote names, or the only usual one.
    (_GITLAB + " CI_COMMIT_BEFORE_SHA={c1}", "c2", "main=m1", 0, "m0"),
    (_BUILDKITE, "c2", "main=m1 feat=c2", 0, "m0"),
    ("CIRCLECI=true", "c2", "main=m1 feat=c2", 0, "m0"),
    ("CI=true", "c2", "HEAD=m1 feat=c2", 0, "m0"),
    ("CI=true", "c2", "HEAD=m1 main=c1 master=c2", 0, "m0"),
    ("", "c2", "master=m1 feat=c2", 0, "m0"),
    ("", "c2", "trunk=m1", 0, "m0"),
    # Pushes of the default branch, with several commits.
    (_GITLAB + " CI_COMMIT_BEFORE_SHA={m1}", "p2", "main=p2", 0, "m1"),
    (_GITLAB + " CI_COMMIT_BEFORE_SHA={m1}", "p2", "main=p2", 1, "m1"),
    ("TRAVIS=true TRAVIS_PULL_REQUEST=false TRAVIS_COMMIT_RANGE={m1:.12}...{p2:.12}", "p2", "main=p2", 0, "m1"),
    ("JENKINS_URL=x GIT_PREVIOUS_SUCCESSFUL_COMMIT={m1} GIT_PREVIOUS_COMMIT={p1}", "p2", "main=p2", 0, "m1"),
    # After a forced push, the head before it is no ancestor.
    (_GITLAB + " CI_COMMIT_BEFORE_SHA={other}", "p2", "main=p2", 0, "other"),
    # The branch of another default.
    ("GITLAB_CI=true CI_DEFAULT_BRANCH=dev CI_COMMIT_BEFORE_SHA={m1}", "p2", "dev=p2 main=m0", 0, "m1"),
    ("", "p2", "main=p2", 0, "p1"),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "head", "fetched", "depth", "base"), _BASES)
def test_change_begins_at_the_stated_base(
    origin: _Origin, tmp_path: Path, environment: str, head: str, fetched: str, depth: int, base: str
) -> None:
    repository = _clone(origin, tmp_path / "c", head, fetched, depth)
    point = _find(origin, repository, head, environment)
    assert point.commit == origin.commits[base], point
    is_missing = repository.find(point.commit) is None
    assert bool(point.advice) is is_missing
    if is_missing:
        subprocess.run(point.advice.partition(", or ")[0], shell=True, cwd=repository.directory, check=True)
        assert repository.find(point.commit) == point.commit


_REFUSALS = [
    # (environment, HEAD, fetched branches, depth, a part of the message, whether a base exists)
    ("GITHUB_BASE_REF=main", "c2", "", 1, "in actions/checkout set `fetch-depth: 0`", True),
    ("GITHUB_BASE_REF=main", "c2", "main=m1", 1, "in actions/checkout set `fetch-depth: 0`", True),
    ("GITLAB_CI=true CI_DEFAULT_BRANCH=main", "c2", "main=m1", 1, "set the variable `GIT_DEPTH: 0`", True),
    ("BUILDKITE=true BUILDKITE_PULL_REQUEST_BASE_BRANCH=main", "c2", "", 0, "branch main, into which", True),
    ("JENKINS_URL=x CHANGE_TARGET=main", "c2", "feat=c2", 0, "branch main, into which", True),
    (_AZURE, "c2", "", 1, "set `fetchDepth: 0`", True),
    (_BITBUCKET, "c2", "", 1, "`clone: depth: full`", True),
    (_TRAVIS, "c2", "", 2, "`git: depth: false`", True),
    ("CIRCLECI=true", "c2", "main=m1", 1, "`method: full`", True),
    (_BUILDKITE, "c2", "feat=c2", 0, "the default branch main is not in this clone", True),
    ("GITHUB_BASE_REF=main", "m0", "main=m1", 0, "origin/main contains HEAD, so the change", True),
    (_BUILDKITE, "p2", "main=p2", 0, "contains HEAD, and Buildkite does not state the head before the push", False),
    ("CI=true", "p2", "main=p2", 0, "and the CI service does not state", False),
    ("", "c2", "feat=c2", 0, "neither a CI service nor the clone names the branch", False),
    ("", "c2", "main=m1 master=m0", 0, "neither a CI service nor the clone names the branch", False),
    ("CI=true", "c2", "feat=c2", 0, "neither a CI service nor the clone names the branch", False),
    ("", "m0", "main=m0", 0, "is the first commit", False),
    (_GITLAB + " CI_COMMIT_BEFORE_SHA=" + "0" * 40, "m0", "main=m0", 0, "is the first commit", False),
]


@pytest.mark.parametrize(("environment", "head", "fetched", "depth", "part", "exists"), _REFUSALS)
def test_missing_base_is_refused_with_the_command_of_the_service(
    origin: _Origin, tmp_path: Path, environment: str, head: str, fetched: str, depth: int, part: str, exists: bool
) -> None:
    repository = _clone(origin, tmp_path / "c", head, fetched, depth)
    with pytest.raises(GitError, match=re.escape(part)) as caught:
        _find(origin, repository, head, environment)
    assert isinstance(caught.value, NoBranchPoint) is not exists
    others = {"actions/checkout", "GIT_DEPTH", "fetchDepth", "depth: full", "depth: false", "method: full"}
    assert sum(other in str(caught.value) for other in others) <= 1


def test_command_that_is_advised_fetches_the_target(origin: _Origin, tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    git(tmp_path, "clone", "-q", "--bare", str(origin.path), "remote")
    git(remote, "update-ref", "refs/heads/main", origin.commits["m1"])
    for depth in (0, 1):
        repository = _clone(_Origin(remote, origin.commits), tmp_path / f"c{depth}", "c2", "", depth)
        with pytest.raises(GitError, match="fetch it: ") as caught:
            _find(origin, repository, "c2", "JENKINS_URL=x CHANGE_TARGET=main")
        command = str(caught.value).partition("fetch it: ")[2].partition(", or")[0]
        subprocess.run(command, shell=True, cwd=repository.directory, check=True, stderr=subprocess.DEVNULL)
        assert _find(origin, repository, "c2", "JENKINS_URL=x CHANGE_TARGET=main").commit == origin.commits["m0"]


@pytest.mark.parametrize(
    ("environment", "analysed", "base"),
    [
        ("", "m0 m1", "m1"),
        (_BUILDKITE, "m0", "m0"),
        # A batch of a merged branch is not an earlier head of the default branch.
        (_BUILDKITE, "m0 c2 c1", "m0"),
        # HEAD itself is not an earlier head, even if it was analysed with other patterns.
        ("", "merge m0", "m0"),
        # What the service states is more precise.
        (_GITLAB + " CI_COMMIT_BEFORE_SHA={m1}", "m0", "m1"),
    ],
)
def test_last_analysed_commit_is_the_base_on_the_default_branch(
    origin: _Origin, tmp_path: Path, environment: str, analysed: str, base: str
) -> None:
    repository = _clone(origin, tmp_path / "c", "merge", "main=merge", 0)
    assert _find(origin, repository, "merge", environment, analysed=analysed).commit == origin.commits[base]


def test_advice_for_an_unknown_default_branch_lets_the_clone_know_it(origin: _Origin, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(origin.path), "remote")
    for name, commit in (("main", "m1"), ("master", "m0"), ("feat", "c2")):
        git(tmp_path / "remote", "update-ref", f"refs/heads/{name}", origin.commits[commit])
    repository = _clone(_Origin(tmp_path / "remote", origin.commits), tmp_path / "c", "c2", "main=m1 master=m0", 0)
    with pytest.raises(NoBranchPoint, match="to ask the remote: ") as caught:
        _find(origin, repository, "c2", "")
    subprocess.run(str(caught.value).partition("to ask the remote: ")[2].split(), cwd=repository.directory, check=True)
    assert _find(origin, repository, "c2", "").description == "the merge base with origin/HEAD"


def test_uncommitted_changes_begin_at_head_but_not_in_ci(origin: _Origin, tmp_path: Path) -> None:
    """A CI job often writes files, and the commits of the push are then part of the change nevertheless."""
    repository = _clone(origin, tmp_path / "c", "p2", "main=p2", 0)
    assert _find(origin, repository, "p2", "", is_clean=False).commit == origin.commits["p2"]
    with pytest.raises(NoBranchPoint):
        _find(origin, repository, "p2", "CI=true", is_clean=False)
    stated = _GITLAB + " CI_COMMIT_BEFORE_SHA={m1}"
    assert _find(origin, repository, "p2", stated, is_clean=False).commit == origin.commits["m1"]
    branch = _clone(origin, tmp_path / "d", "c2", "main=m1", 0)
    assert _find(origin, branch, "c2", "", is_clean=False).commit == origin.commits["m0"]


def test_remote_of_another_name_and_local_branches_are_used(origin: _Origin, tmp_path: Path) -> None:
    repository = _clone(origin, tmp_path / "c", "c2", "main=m1", 0)
    git(tmp_path / "c", "remote", "rename", "origin", "upstream")
    assert _find(origin, repository, "c2", "").description == "the merge base with upstream/main"
    git(tmp_path / "c", "update-ref", "refs/heads/main", origin.commits["m1"])
    git(tmp_path / "c", "remote", "remove", "upstream")
    assert _find(origin, repository, "c2", "").description == "the merge base with main"
    for name in ("one", "two"):
        git(tmp_path / "c", "remote", "add", name, "file:///dev/null")
    assert repository.remote == ""
