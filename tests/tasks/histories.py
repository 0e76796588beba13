"""Check incremental `duplicates` over a history: `python -m tests.tasks.histories GIT_DIR [COMMITS [END]]`.

Follow the first parents of END (HEAD), oldest first, and update the result from commit to commit. Fail at the first
commit where the updated result differs from a full run. Where the task would start over, it is updated nevertheless, so
that this too is compared with a full run. For each commit, print the number of files with fingerprints and of files
read again, and CPU seconds of the update and the full run. The output of `analyze` is computed beforehand.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import pytest

from codebatch.model.record import Fingerprints
from codebatch_workers.duplicates.fingerprints import make_fingerprints
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks import duplicates
from tests.tasks.states import Result, State, analyzed, patched, whole

_FILE_MODES = (b"100644", b"100755")


class History:
    """The states of a repository's tree. Content that does not change between states is read and analysed once."""

    def __init__(self, git_dir: str) -> None:
        self._git = ["git", "--git-dir", git_dir]
        self._known: dict[tuple[bytes, bytes], tuple[bytes, Fingerprints | None]] = {}
        self._reader = subprocess.Popen([*self._git, "cat-file", "--batch"], stdin=-1, stdout=-1)

    def commits(self, count: int, end: str) -> list[str]:
        """Return the last commits, oldest first."""
        command = [*self._git, "rev-list", "--first-parent", f"--max-count={count}", end]
        return subprocess.check_output(command, text=True).split()[::-1]

    def state(self, commit: str) -> State:
        """Return the files of a commit by path. Files that a partial clone lacks are left out."""
        listed = subprocess.check_output([*self._git, "ls-tree", "-r", "-z", commit]).split(b"\0")[:-1]
        known = {}
        for line in listed:
            fields, path = line.split(b"\t", 1)
            mode, _, name = fields.split()
            if mode in _FILE_MODES and (content := self._content(path, name)) is not None:
                known[path] = (content, mode == b"100755", name)

        def analyze(file: SourceFile) -> Fingerprints | None:
            return self._known[file.path, known[file.path][2]][1]

        return analyzed(
            (_source(path, content, is_executable) for path, (content, is_executable, _) in known.items()), analyze
        )

    def _content(self, path: bytes, name: bytes) -> bytes | None:
        if (path, name) not in self._known:
            content = self._read(name)
            if content is None:
                return None
            self._known[path, name] = (content, make_fingerprints(_source(path, content, is_executable=False)))
        return self._known[path, name][0]

    def _read(self, name: bytes) -> bytes | None:
        requests, responses = self._reader.stdin, self._reader.stdout
        assert requests is not None
        assert responses is not None
        requests.write(name + b"\n")
        requests.flush()
        header = responses.readline().split()
        return None if header[-1] == b"missing" else responses.read(int(header[-1]) + 1)[:-1]


def _source(path: bytes, content: bytes, is_executable: bool) -> SourceFile:
    return SourceFile(path, content, executable=is_executable, contexts={})


class Count:
    """Counts over all commits."""

    def __init__(self) -> None:
        self.changed = self.made_anew = 0
        self.update_seconds: list[float] = []
        self.whole_seconds: list[float] = []
        self.files_read: list[int] = []

    def __str__(self) -> str:
        update, every = statistics.median(self.update_seconds), statistics.median(self.whole_seconds)
        return (
            f"{len(self.files_read)} commits, {self.changed} of them change the result, {self.made_anew} are made anew;"
            f" CPU of the median: update {update:.3f} s, whole {every:.3f} s;"
            f" files read again: median {statistics.median(self.files_read):.0f}, greatest {max(self.files_read)}"
        )


def compare(before: State, now: State, result: Result, count: Count) -> Result:
    """Return the result of a state after updating the result of the state before.

    Raises AssertionError if the update differs from a full run.
    """
    start = time.process_time()
    after = patched(result, before, now)
    middle = time.process_time()
    count.files_read.append(len(now.read_again))
    expected = whole(now)
    count.update_seconds.append(middle - start)
    count.whole_seconds.append(time.process_time() - middle)
    count.changed += expected != result
    if after is None:
        count.made_anew += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(duplicates, "_READ_SHARE_MAX", 1)
            after = patched(result, before, now)
    assert after == expected
    return expected


def main(git_dir: str, commits: str = "100", end: str = "HEAD") -> None:
    """Run the command line that the module describes."""
    history = History(git_dir)
    first, *names = history.commits(int(commits) + 1, end)
    before = history.state(first)
    result = whole(before)
    count = Count()
    for name in names:
        now = history.state(name)
        files = sum(map(bool, now.said["analyze"].values()))
        result = compare(before, now, result, count)
        before = now
        print(name, f"{files} {count.files_read[-1]} {count.update_seconds[-1]:.3f} {count.whole_seconds[-1]:.3f}")
    files = sum(map(bool, before.said["analyze"].values()))
    print(f"{git_dir}: {len(before.files)} files, {files} with fingerprints, {len(result)} with blocks; {count}")


if __name__ == "__main__":
    main(*sys.argv[1:])
