"""The store in GitHub's actions/cache: the steps of `codebatch help ci`, with the `tar` options of this action."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, Ended, make_many

PAGE = Path(__file__).parents[3] / "codebatch" / "help" / "ci.md"
FILES = 12
FILE_TASKS = 4
_GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")


class Runner:
    """A CI machine. Each job checks out at another path, restores the cache, and saves it under a new key."""

    def __init__(self, codebatch: CommandLine) -> None:
        recipe = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        assert recipe is not None
        self._path = re.findall(r"^ +path: (.*)$", recipe[1], re.MULTILINE)
        self._command, self._check = re.findall(r"^- run: (codebatch .*)$", recipe[1], re.MULTILINE)
        (key,) = re.findall(r"^ +key: (.*)$", recipe[1], re.MULTILINE)
        (restored,) = re.findall(r"^ +restore-keys: (.*)$", recipe[1], re.MULTILINE)
        assert key == restored + "${{ github.sha }}", (
            "each commit needs a new key, and the latest cache must be restored"
        )
        self._codebatch = codebatch
        self.origin = codebatch.directory / "origin"
        self._jobs = self._commits = 0

    def commit(self) -> None:
        """Commit all files of the repository."""
        self._commits += 1
        for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "x")):
            subprocess.run([*_GIT, *arguments], cwd=self.origin, check=True)

    def job(self, *more: str) -> Ended:
        """Run a job and return the output of its command. The checkout is removed afterwards."""
        self._jobs += 1
        checkout = self._codebatch.directory / f"runner-{self._jobs}" / "work"
        subprocess.run([*_GIT, "clone", "-q", self.origin, checkout], check=True)
        cache = self._codebatch.directory / "cache.tar"
        if cache.exists():
            subprocess.run(["tar", "-xf", cache, "-P", "-C", checkout], check=True)
        packs = {path.name for path in checkout.glob(".codebatch/objects/*.pack")}
        ended = self._codebatch(*self._command.split()[1:], *more, cwd=checkout)
        # The first commit has no base to compare with.
        self._codebatch(*self._check.split()[1:], cwd=checkout, status=0 if self._commits > 1 else 3)
        subprocess.run(["tar", "--posix", "-cf", cache, "-P", "-C", checkout, *self._path], check=True)
        self.new_packs = {path.name for path in checkout.glob(".codebatch/objects/*.pack")} - packs
        shutil.rmtree(checkout.parent)
        return ended


@pytest.fixture
def runner(codebatch: CommandLine) -> Runner:
    made = Runner(codebatch)
    make_many(made.origin, FILES)
    made.commit()
    return made


def test_fresh_clone_is_read_but_not_executed_or_stored_again(runner: Runner) -> None:
    first = runner.job("--json").json
    assert first["executed"] == FILES * FILE_TASKS
    ended = runner.job("-v")
    assert f"{FILES} files" in ended.notes
    assert f"({FILES} read)" in ended.notes
    assert "up to date" in ended.text
    assert not runner.new_packs
    again = runner.job("--json").json
    assert (again["executed"], again["result_digest"]) == (0, first["result_digest"])


def test_commit_that_changes_a_file_executes_only_this_file(runner: Runner) -> None:
    runner.job()
    for number in range(2):
        (runner.origin / "package0" / "module000.py").write_text(f"import os{number}\n")
        runner.commit()
        answer = runner.job("--json").json
        assert (answer["executed"], answer["reused"]) == (FILE_TASKS, (FILES - 1) * FILE_TASKS)
        assert len(runner.new_packs) == 1
