"""Tasks that wait: whether a run starts as many workers as requested, and how much time that saves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.measuring import alternate
from bench.rows import Row, Target, figure_row
from bench.setting import REPOSITORY, Setting, without

_FILES = 4000
_DIRECTORIES = 20
_JOBS = (8, 16, 32, 64)
_SHARE_SECONDS = 40.0
_SHORT_SECONDS = 0.05
_SHARE_TARGET = Target(limit=1.15, source="SPEC.md Scheduling")
_TASK = REPOSITORY / "bench" / "probes" / "nap" / "nap.py"


def many_workers(setting: Setting) -> Iterator[Row]:
    """Run files that wait 40 s in total for each worker; then files that wait 50 ms each, where starts weigh more."""
    root = setting.scratch / "waiting"
    for jobs in _JOBS:
        yield from _row(setting, root, jobs, _SHARE_SECONDS * jobs / _FILES, _SHARE_TARGET)
    for jobs in _JOBS:
        yield from _row(setting, root, jobs, _SHORT_SECONDS, None)


def _row(setting: Setting, root: Path, jobs: int, seconds: float, target: Target | None) -> Iterator[Row]:
    store = setting.scratch / "store"
    try:
        _make_project(root, seconds)
        side = setting.codebatch(
            "run", "run", "tree", "--task", "nap", "-j", str(jobs), "--store", store, "--quiet", prepare=without(store)
        )
        (turns,) = alternate([replace(side, cwd=root)], setting.runs)
        share = seconds * _FILES / jobs
        cpu_s = sorted(usage.cpu_s for usage in turns)[len(turns) // 2]
        yield figure_row(
            "many-workers",
            f"-j {jobs}, {seconds * 1000:.0f} ms a file, whole process, wall",
            f"{_FILES:,} small files",
            [usage.wall_s / share for usage in turns],
            f"x work / {jobs}",
            target=target,
            peer=f"work / {jobs} = {share:.2f} s",
            note=f"{workers_started(store)} workers were started; CPU {cpu_s:.1f} s in all",
        )
    finally:
        without(root)()
        without(store)()


def _make_project(root: Path, seconds: float) -> None:
    for number in range(_FILES):
        path = root / "tree" / str(number % _DIRECTORIES) / f"{number:04}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(seconds))
    shutil.copy2(_TASK, root)
    (root / "codebatch.toml").write_text('[tasks.nap]\npython = "nap.py:task"\n')


def workers_started(store: Path) -> int:
    """Return the number of workers that the only run in a store started."""
    return sum(path.read_bytes().count(b'"event":"spawned"') for path in store.glob("batches/*/journal/*"))
