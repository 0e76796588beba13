"""SARIF export of as many findings as GitHub accepts from a tool, measured as a whole process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from bench.measuring import alternate, spread
from bench.rows import Row, Target, figure_row
from bench.setting import Setting, answer, without
from bench.trees import copy_without_git

_SECONDS = 2.0
_TASK = '''\
def task(file):
    """long lines, of which every tree has enough"""
    for number, line in enumerate(file.text.split("\\n"), start=1):
        if len(line) > 72:
            yield file.report(number, f"{len(line)} characters", code="long-line")
'''
_SETTINGS = '[tasks.lines]\npython = "lines_task.py:task"\n'


def exports(setting: Setting) -> Iterator[Row]:
    """Export each corpus after a run with a custom task that reports every long line."""
    for corpus in setting.corpora:
        tree, store = setting.scratch / "exported", setting.scratch / "store"
        try:
            copy_without_git(corpus, tree)
            (tree / "codebatch.toml").write_text(_SETTINGS, encoding="utf-8")
            (tree / "lines_task.py").write_text(_TASK, encoding="utf-8")
            run = setting.codebatch("run", "run", ".", "--store", store, "--quiet")
            answer(replace(run, cwd=tree))  # Run the command in the directory of its configuration.
            side = setting.codebatch("export sarif", "export", "sarif", "--store", store, "--quiet")
            runs = json.loads(answer(side))["runs"]
            count = sum(len(run["results"]) for run in runs)
            (usages,) = alternate([side], setting.runs)
            yield figure_row(
                "exports", "SARIF", f"{corpus.name}, {count:,} results", [usage.wall_s for usage in usages], "s",
                target=Target(limit=_SECONDS, source="issue 15"),
                note=f"CPU {spread([usage.cpu_s for usage in usages]).median:.2f} s, "
                f"{max(usage.peak_bytes for usage in usages) / 1e6:.0f} MB",
            )  # fmt: skip
        finally:
            without(tree)()
            without(store)()
