"""What holds for all tasks together: the command line over the files, the first file over the others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import UNSET

from codebatch.errors import InvalidInput
from codebatch.model.work import RETRIES_MAX, Answering, OnBlocked, OnFailure, Strategy
from codebatch.system.host import usable_cores
from codebatch.work.asking import answering_of
from codebatch.work.checking import Place, TableChecker, sound_part
from codebatch.work.files import WorkFile
from codebatch.work.problems import Problems
from codebatch.work.tables import SettingsTable

PARALLEL_MAX = 8
"""Commands at once where nobody says how many."""

_OF_A_FILE = frozenset({"defaults", "tasks"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """What the command line, or a program, says over the files. None: what the files say.

    `env`: `NAME=VALUE`, which the batch keeps, or `NAME`, whose value is that of whoever conducts. `tasks` chooses
    those, with all that they need; `only`, without. Every task is tried again `retry` times.
    """

    max_parallel: int | None = None
    strategy: Strategy | None = None
    on_failure: OnFailure | None = None
    failures_max: int | None = None
    env: Sequence[str] = ()
    tasks: Sequence[str] = ()
    only: bool = False
    retry: int | None = None
    wait_answers: bool = False

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        for name in ("max_parallel", "failures_max"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInput(f"{name} is {value}, and must be at least 1")
        if self.retry is not None and not 0 <= self.retry <= RETRIES_MAX:
            raise InvalidInput(f"retry is {self.retry}, and must be from 0 to {RETRIES_MAX}")
        if self.only and not self.tasks:
            raise InvalidInput("no task is named of which there are to be no others", hint="name the tasks")

    def environment(self) -> dict[str, str]:
        """What `env` sets, as it stands in a file."""
        pairs = (each.partition("=") for each in self.env)
        return {name: value if is_set else f"${name}" for name, is_set, value in pairs}


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a batch, decided."""

    root: Path
    strategy: Strategy
    max_parallel: int
    on_failure: OnFailure
    failures_max: int
    pools: Mapping[str, int]
    on_blocked: OnBlocked = "end"
    answering: Answering | None = None
    notes: list[str] = field(default_factory=list)


def settings_of(
    files: Sequence[WorkFile], options: WorkOptions, checker: TableChecker, problems: Problems
) -> tuple[Settings, list[SettingsTable]]:
    """What holds for the batch, and what each file sets, of which `env` and `clean_env` hold for its own tasks.

    What is wrong is told to `problems`, and left out here.
    """
    tables = [_table(file, checker) for file in files]
    if options.env:
        checker.check_environment(Place("--env", ""), options.environment())
    first, notes = tables[0], []
    pools = {name: size for table in reversed(tables) for name, size in table.pools.items()}
    roots = [file.directory / table.root for file, table in zip(files, tables, strict=True)]
    roots = [Path(os.path.realpath(root)) for root in roots]
    if not roots[0].is_dir():
        problems.add(f"{files[0].place()} sets root to {first.root!r}, which is no directory")
    for file, root in zip(files[1:], roots[1:], strict=True):
        if root != roots[0]:
            notes.append(f"the tasks of {file.name} start in {roots[0]}, the root of {files[0].name}")
    strategy, max_parallel = _parallel(first, options, files[0].name, notes)
    on_failure = first.on_failure if options.on_failure is None else msgspec.convert(options.on_failure, OnFailure)
    failures_max = options.failures_max or first.failures_max
    if failures_max != 1 and on_failure != "stop":
        notes.append(f"failures_max is {failures_max}, and nothing stops at it: on_failure is {on_failure!r}")
    if any("=" in each for each in options.env):
        notes.append("the batch keeps the values that --env sets; --env NAME takes those of whoever conducts it")
    on_blocked = "wait" if options.wait_answers else first.on_blocked
    answering = (
        None if first.answering is UNSET else answering_of(first.answering, files[0].place("answering"), problems)
    )
    settings = Settings(roots[0], strategy, max_parallel, on_failure, failures_max, pools, on_blocked, answering, notes)
    return settings, tables


def _table(file: WorkFile, checker: TableChecker) -> SettingsTable:
    document = {key: value for key, value in file.document.items() if key not in _OF_A_FILE}
    is_sound = checker.check(file.place(), "settings", document)
    return msgspec.convert(document if is_sound else sound_part(document, SettingsTable), SettingsTable)


def _parallel(first: SettingsTable, options: WorkOptions, name: str, notes: list[str]) -> tuple[Strategy, int]:
    """The strategy, and how many commands run at once."""
    asked = options.max_parallel or (None if first.max_parallel is UNSET else first.max_parallel)
    strategy = options.strategy or (None if first.strategy is UNSET else first.strategy)
    if strategy is None:
        strategy = "parallel" if (asked or 1) > 1 else "serial"
    if strategy == "parallel":
        return strategy, asked or min(usable_cores(), PARALLEL_MAX)
    if options.strategy is None and (options.max_parallel or 1) > 1:
        notes.append(f'{name} says strategy = "serial": one at a time, unless --strategy parallel says otherwise')
    return strategy, 1
