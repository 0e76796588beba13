"""Programs that run shell commands. Each gets the same commands in its own format.

A runner writes its input into an empty directory and is called there. To resume after a kill, each program needs its
own calls: `again` returns them in order.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench.graphs import DONE, Graph, Job, write_witness
from bench.measuring import Side

STORE = "store"

Call = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """One program that runs shell commands.

    `knows_needs` tells whether commands can wait for others. If `again` is None, the first call also resumes.
    """

    name: str
    program: str
    knows_needs: bool
    write: Callable[[Graph, Path], None]
    call: Callable[[int], Call]
    again: Callable[[int], Sequence[Call]] | None = None

    def path(self) -> str | None:
        """Return the path of the program next to this interpreter or on PATH, or None."""
        sibling = Path(sys.executable).with_name(self.program)
        return str(sibling) if sibling.exists() else shutil.which(self.program)

    def command(self, slots: int) -> Call:
        """Return the command line that runs everything, `slots` commands at once."""
        return [self.path() or self.program, *self.call(slots)]

    def commands_again(self, slots: int) -> Sequence[Call]:
        """Return the command lines that resume after the program was killed."""
        if self.again is None:
            return [self.command(slots)]
        return [[self.path() or self.program, *call] for call in self.again(slots)]

    def side(self, graph: Graph, directory: Path, slots: int) -> Side:
        """Return a side that runs a graph.

        Each turn has a new directory; the previous directory is renamed, not removed.

        After a removal, ext4 skips the freed inodes one by one for up to six minutes (`recently_deleted` in
        fs/ext4/ialloc.c). During that time, creating a file takes seven times as long.
        """
        turns = count(1)

        def prepare() -> None:
            if directory.exists():
                directory.rename(f"{directory}.{next(turns)}")
            directory.mkdir()
            write_witness(directory)
            self.write(graph, directory)

        return Side(
            name=self.name,
            command=self.command(slots),
            cwd=directory,
            prepare=prepare,
            # GNU parallel reads the shell for its commands from SHELL. Some programs write files below HOME.
            environment={"SHELL": "/bin/sh", "HOME": f"{directory}/no-home"},
        )

    def version(self) -> str:
        """Return the first number that the program prints for `--version`, or "?"."""
        done = subprocess.run([self.path() or self.program, "--version"], capture_output=True, text=True, check=False)
        match = re.search(r"\d+[\d.]*", done.stdout)
        return match.group() if match else "?"


def _target(job: Job) -> str:
    return _file(job.name) if job.leaves else job.name


def _file(name: str) -> str:
    return f"{DONE}/{name}"


def _needed(job: Job) -> list[str]:
    return [_file(need) if job.leaves else need for need in job.needs]


def _write_toml(graph: Graph, directory: Path) -> None:
    tables = []
    for job in graph:
        needs = f"needs = {json.dumps(job.needs)}\n" if job.needs else ""
        tables.append(f"[tasks.{job.name}]\nrun = {json.dumps(job.run)}\n{needs}")
    (directory / "work.toml").write_text("\n".join(tables))


def _write_lines(graph: Graph, directory: Path) -> None:
    (directory / "commands").write_text("".join(f"{job.run}\n" for job in graph))


def _write_makefile(graph: Graph, directory: Path) -> None:
    targets = " ".join(map(_target, graph))
    phony = " ".join(job.name for job in graph if not job.leaves)
    rules = [f".PHONY: all {phony}\nall: {targets}\n"]
    rules += [f"{_target(job)}: {' '.join(_needed(job))}\n\t@{job.run}\n" for job in graph]
    (directory / "Makefile").write_text("".join(rules))


def _write_ninja(graph: Graph, directory: Path) -> None:
    rules = ["rule run\n  command = $run\n"]
    rules += [f"build {_target(job)}: run {' '.join(_needed(job))}\n  run = {job.run}\n" for job in graph]
    (directory / "build.ninja").write_text("".join(rules))


def _write_justfile(graph: Graph, directory: Path) -> None:
    recipes = [f"[parallel]\nall: {' '.join(job.name for job in graph)}\n"]
    recipes += [f"[parallel]\n{job.name}: {' '.join(job.needs)}\n    @{job.run}\n" for job in graph]
    (directory / "justfile").write_text("\n".join(recipes))


def _write_taskfile(graph: Graph, directory: Path) -> None:
    # The built-in shell of task would run `true` without a process, so call `sh` as all other runners do.
    tasks: dict[str, dict[str, list[str]]] = {"default": {"deps": [job.name for job in graph]}}
    for job in graph:
        status = {"status": [f"test -f {_file(job.name)}"]} if job.leaves else {}
        tasks[job.name] = {"cmds": [f"sh -c {shlex.quote(job.run)}"], "deps": list(job.needs), **status}
    # JSON is a subset of YAML.
    text = json.dumps({"version": "3", "silent": True, "run": "once", "tasks": tasks})
    (directory / "Taskfile.yml").write_text(text)


_DODO = """
def task_job():
    for name, run, needs, targets in {jobs!r}:
        kept = {{"targets": targets, "uptodate": [True]}} if targets else {{}}
        yield {{"name": name, "actions": [run], "task_dep": ["job:" + need for need in needs], **kept}}
"""


def _write_dodo(graph: Graph, directory: Path) -> None:
    jobs = [(job.name, job.run, job.needs, [_file(job.name)] if job.leaves else []) for job in graph]
    (directory / "dodo.py").write_text(_DODO.format(jobs=jobs))


_SNAKEFILE = """
JOBS = {jobs!r}

rule all:
    input: ["{done}/" + name for name in JOBS]

rule job:
    input: lambda wildcards: ["{done}/" + need for need in JOBS[wildcards.name][1]]
    output: touch("{done}/{{name}}")
    params: run=lambda wildcards: JOBS[wildcards.name][0]
    shell: "{{params.run}}"
"""


def _write_snakefile(graph: Graph, directory: Path) -> None:
    jobs = {job.name: (job.run, job.needs) for job in graph}
    (directory / "Snakefile").write_text(_SNAKEFILE.format(jobs=jobs, done=DONE))


CODEBATCH = Runner(
    name="codebatch",
    program="codebatch",
    knows_needs=True,
    write=_write_toml,
    call=lambda slots: ["work", "run", "-f", "work.toml", "-j", str(slots), "--store", STORE],
    again=lambda _: [["resume", "--batch", "latest", "--store", STORE]],
)
PARALLEL = Runner(
    name="GNU parallel",
    program="parallel",
    knows_needs=False,
    write=_write_lines,
    call=lambda slots: ["-j", str(slots), "--joblog", "log", "::::", "commands"],
    again=lambda slots: [["-j", str(slots), "--joblog", "log", "--resume", "::::", "commands"]],
)
XARGS = Runner(
    name="xargs",
    program="xargs",
    knows_needs=False,
    write=_write_lines,
    call=lambda slots: ["-d", "\\n", "-n", "1", "-P", str(slots), "-a", "commands", "sh", "-c"],
)
MAKE = Runner(
    name="make",
    program="make",
    knows_needs=True,
    write=_write_makefile,
    call=lambda slots: ["-j", str(slots)],
)
NINJA = Runner(
    name="ninja",
    program="ninja",
    knows_needs=True,
    write=_write_ninja,
    call=lambda slots: ["-j", str(slots)],
)
JUST = Runner(
    name="just",
    program="just",
    knows_needs=True,
    write=_write_justfile,
    call=lambda slots: ["--jobs", str(slots)],
)
TASK = Runner(
    name="task",
    program="task",
    knows_needs=True,
    write=_write_taskfile,
    call=lambda slots: ["--concurrency", str(slots)],
)
DOIT = Runner(
    name="doit",
    program="doit",
    knows_needs=True,
    write=_write_dodo,
    call=lambda slots: ["-n", str(slots)],
)
SNAKEMAKE = Runner(
    name="snakemake",
    program="snakemake",
    knows_needs=True,
    write=_write_snakefile,
    call=lambda slots: ["--cores", str(slots), "--quiet", "all"],
    again=lambda slots: [["--unlock"], ["--cores", str(slots), "--quiet", "all", "--rerun-incomplete"]],
)
PEERS = (PARALLEL, XARGS, MAKE, NINJA, JUST, TASK, DOIT, SNAKEMAKE)


def runners_here(*, with_needs: bool = False) -> list[Runner]:
    """Return codebatch and the installed peers.

    If `with_needs` is set, leave out peers whose commands cannot wait for others.
    """
    peers = [peer for peer in PEERS if peer.path() and (peer.knows_needs or not with_needs)]
    return [CODEBATCH, *peers]
