"""A linter as a task of a run, against the same linter called by xargs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from bench.measuring import Side, alternate
from bench.rows import Row, SkippedRow, Target, figure_row
from bench.setting import Setting, without

_SCRIPTS_MAX = 1_000
_BYTES_MAX = 40_000
_RATIO_MAX = 1.35
_ARGUMENTS = ("-f", "gcc", "-e", "SC1090,SC1091")
_TABLE = """
[tasks.shellcheck]
command = ["shellcheck", "-f", "gcc", "-e", "SC1090,SC1091", "{files}"]
records = "gcc"
exit_ok = [0, 1]
"""
_SYSTEM_DIRECTORIES = (Path("/usr/share"), Path("/usr/lib"))


def linters(setting: Setting) -> Iterator[Row]:
    """Run ShellCheck over scripts of the corpora and of this machine: as a task, and by xargs."""
    if shutil.which("shellcheck") is None:
        yield SkippedRow(scenario="linters", what="ShellCheck", why="shellcheck is not installed")
        return
    tree, store = setting.scratch / "scripts", setting.scratch / "store"
    try:
        scripts = list(islice(_find_scripts(setting), _SCRIPTS_MAX))
        tree.mkdir()
        for number, script in enumerate(scripts):
            shutil.copyfile(script, tree / f"{number}-{script.name}")
        run = replace(
            setting.codebatch("run", "run", ".", "--store", store, "--quiet", prepare=without(store)), cwd=tree
        )
        (tree / "codebatch.toml").write_text(_TABLE, encoding="utf-8")
        plain = replace(run, name="run without the task", command=[*run.command, "--no-commands"])
        command = f"ls -d *.sh | xargs -P2 -n50 shellcheck {' '.join(_ARGUMENTS)} > /dev/null"
        xargs = Side(name="xargs", command=["sh", "-c", command], cwd=tree, statuses=(0, 123))
        with_task, without_task, by_xargs = alternate([run, plain, xargs], setting.runs)
        ratios = [
            (ours.cpu_s - base.cpu_s) / theirs.cpu_s
            for ours, base, theirs in zip(with_task, without_task, by_xargs, strict=True)
        ]
        yield figure_row(
            "linters", "CPU that the task adds to a cold run", f"{len(scripts):,} scripts", ratios, "of xargs",
            target=Target(limit=_RATIO_MAX, source="SPEC"), note=f"xargs {by_xargs[0].cpu_s:.1f} s",
        )  # fmt: skip
    finally:
        without(tree)()
        without(store)()


def _find_scripts(setting: Setting) -> Iterator[Path]:
    for root in (*(corpus.root for corpus in setting.corpora), *_SYSTEM_DIRECTORIES):
        for path in sorted(root.rglob("*.sh")):
            if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= _BYTES_MAX:
                yield path
