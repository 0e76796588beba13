"""Commands in trees of their own: the cost of making, reading and removing trees, beside git itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measuring import Side, Usage, alternate
from bench.rows import Row, Target, pair_row
from bench.setting import Setting
from bench.trees import many_files

_TASKS = 20
_FILES_MIN = 5_000
_CPU = Target(limit=1.5)
_GIT = """
for number in $(seq 20); do
    git worktree add --quiet --detach --lock "$1/$number"
    git -C "$1/$number" status > /dev/null
done
"""
_COMMIT = "git -c user.name=bench -c user.email=bench@localhost commit --quiet --message files"


def isolated(setting: Setting) -> Iterator[Row]:
    """Measure commands that do nothing in trees of their own, without the cost of the same commands in one directory.

    git makes as many work trees, and reads each of them once. It does not remove them, but we do.
    """
    project, trees = setting.scratch / "project", setting.scratch / "trees"
    files = many_files(setting.corpora, project, files_min=_FILES_MIN)
    clear = _clearing(trees, project / ".git/worktrees", project / ".codebatch", setting.scratch / ".codebatch")
    commit = Side(name="commit", command=["sh", "-c", f"git rev-parse -q --verify HEAD || {_COMMIT}"], cwd=project)
    alternate([commit], 0)
    kinds = ("none", "worktree", "copy")
    sides = [
        setting.codebatch(kind, "work", "run", "-q", "-f", _write_list(setting.scratch, kind), prepare=clear)
        for kind in kinds
    ]
    git = Side(name="git", command=["sh", "-c", _GIT, "git", str(trees)], cwd=project, prepare=clear)
    plain, *ours, theirs = alternate([*sides, git], setting.runs)
    clear()
    for kind, usages in zip(kinds[1:], ours, strict=True):
        yield pair_row(
            "commands-isolated",
            f'{_TASKS} tasks with isolation = "{kind}"',
            f"{files:,} files",
            ours=("codebatch", [_difference(one, other) for one, other in zip(usages, plain, strict=True)]),
            theirs=("git worktree add, git status", theirs),
            by="cpu",
            target=_CPU,
            note="without the cost of the same tasks that are not isolated",
        )
    shutil.rmtree(project)


def _difference(one: Usage, other: Usage) -> Usage:
    return Usage(wall_s=one.wall_s - other.wall_s, cpu_s=one.cpu_s - other.cpu_s, peak_bytes=one.peak_bytes)


def _write_list(directory: Path, kind: str) -> Path:
    path = directory / f"{kind}.toml"
    tasks = "".join(f'[tasks.t{number}]\nrun = "true"\n' for number in range(_TASKS))
    path.write_text(
        f'root = "project"\n[trees]\ndirectory = "trees"\n[defaults]\nisolation = "{kind}"\n{tasks}', encoding="utf-8"
    )
    return path


def _clearing(*paths: Path) -> Callable[[], None]:
    """Return a preparation that removes all trees, their registrations and the store."""

    def clear() -> None:
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)

    return clear
