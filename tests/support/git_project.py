"""A git work tree with a store beside it: commits, branches, batches of commits, and quality gate checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import codebatch
from codebatch.operations.gate.condition_inputs import parse_conditions
from codebatch.operations.gate.quality_gate import CheckResult, GateChecker
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.store.batches.batch_directory import BatchDir
from tests.support.git_repositories import DAY, NOW, git, make_repository
from tests.support.inline_workers import run


class Project:
    """A git work tree with a store beside it. Its first commits are also `origin/main`."""

    def __init__(self, root: Path, commits: Sequence[Mapping[bytes, bytes]]) -> None:
        self.tree = root / "tree"
        self.store = root / "store"
        make_repository(self.tree, [(NOW + at * DAY, files) for at, files in enumerate(commits)])
        git(self.tree, "config", "user.name", "n")
        git(self.tree, "config", "user.email", "n@n")
        git(self.tree, "reset", "-q", "--hard")
        git(self.tree, "update-ref", "refs/remotes/origin/main", "HEAD")
        git(self.tree, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")

    def write(self, files: Mapping[str, bytes]) -> None:
        for path, content in files.items():
            (self.tree / path).parent.mkdir(exist_ok=True)
            (self.tree / path).write_bytes(content)

    def commit(self, files: Mapping[str, bytes]) -> str:
        self.write(files)
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-qm", "m", "--allow-empty")
        return git(self.tree, "rev-parse", "HEAD")

    def run(
        self, commit: str = "", *, path: str = "", pipeline: str | None = None, exclude: tuple[str, ...] = ()
    ) -> BatchDir:
        """Run a batch over the tree or a path in it. A given commit is checked out first."""
        if commit:
            git(self.tree, "checkout", "-q", commit)
        return run(self.tree / path, self.store, configured=self.tree, pipeline=pipeline, exclude=exclude).batch

    def check(
        self,
        *conditions: str,
        base: str | None = None,
        head: str | None = None,
        environment: Mapping[str, str] | None = None,
        changed_lines: bool = False,
        path: str = "",
        today: date | None = None,
        **more: bool,
    ) -> CheckResult:
        execution = ExecutionSettings(configuration=load_configuration(self.tree), jobs=2)
        with codebatch.open(self.store, project=self.tree) as store:
            checker = GateChecker(store, execution, Listener(), environment or {}, today=today, **more)
            return checker.check(parse_conditions(conditions), base, head, changed_lines=changed_lines, path=path)
