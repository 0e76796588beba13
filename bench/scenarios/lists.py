"""Realistic task lists: a directory of Markdown files, and a long list in JSON lines. No task is run."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bench.measuring import alternate
from bench.rows import Row, Target, figure_row
from bench.setting import Setting

_FILES = 1_000
_SOURCE = "conductor design, numbers of lists"
_TASKS = 50_000
_CHAIN = 10
_READ_SECONDS = Target(limit=1.0, source=_SOURCE)
_LONG_SECONDS = Target(limit=5.0, source=_SOURCE)
_WORDS = "Some more words about what is to be done there, and how it is seen that it is. " * 8


def lists(setting: Setting) -> Iterator[Row]:
    """Measure a directory of Markdown files, then JSON lines."""
    yield from markdown(setting)
    yield from json_lines(setting)


def markdown(setting: Setting) -> Iterator[Row]:
    """Run `work analyze` on a thousand files that each need two others, with and without inference from their texts."""
    directory = setting.scratch / "tasks"
    directory.mkdir(exist_ok=True)
    for n in range(_FILES):
        needs = sorted({f"{n // 2:04}-task", f"{n // 3:04}-task"} - {f"{n:04}-task"})
        text = f"---\nneeds: {needs}\npriority: high\ntags: [a, b]\n---\n# Title of {n}\n\nAdd src/f{n}.py. {_WORDS}\n"
        (directory / f"{n:04}-task.md").write_text(text, encoding="utf-8")
    words = ["work", "analyze", "-f", str(directory), "--command", "true", "--quiet"]
    sides = [
        setting.codebatch("read and checked", *words),
        setting.codebatch("read, checked and inferred", *words, "--strategy", "auto"),
    ]
    targets = (_READ_SECONDS, None)
    for side, usages, target in zip(sides, alternate(sides, setting.runs_of_short), targets, strict=True):
        corpus = f"{_FILES:,} markdown files"
        cpu = [usage.cpu_s for usage in usages]
        yield figure_row("lists", f"CPU, whole process: {side.name}", corpus, cpu, "s", target=target)


def json_lines(setting: Setting) -> Iterator[Row]:
    """Run `work run --dry-run` on 50,000 tasks in chains of ten."""
    path = setting.scratch / "many.jsonl"
    tasks = ({"id": f"t{n:05}", "run": "true", "needs": [f"t{n - 1:05}"] if n % _CHAIN else []} for n in range(_TASKS))
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks), encoding="utf-8")
    side = setting.codebatch("rehearsed", "work", "run", "--dry-run", "-f", str(path), "--quiet")
    (usages,) = alternate([side], setting.runs_of_short)
    cpu = [usage.cpu_s for usage in usages]
    yield figure_row("lists", "CPU, whole process: rehearsed", f"{_TASKS:,} tasks", cpu, "s", target=_LONG_SECONDS)
