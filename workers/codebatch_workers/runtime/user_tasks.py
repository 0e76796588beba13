"""Tasks of the project's own: functions, run as tasks (codebatch/plugins/user_tasks.py), and watched as they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from codebatch.model.plan import PlannedTask
from codebatch.model.record import Record
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.input_audit import InputAudit
from codebatch.plugins.key_coverage import KeyCoverage
from codebatch.plugins.user_tasks import OwnTask
from codebatch_workers.api.project import Project
from codebatch_workers.syntax.source import SourceFile

Check = Callable[[object, SourceFile | None], list[Record]]
_NOT_TO_BE_REUSED = "reuse = false"
_UNWATCHED = "nobody watched"


class _Function:
    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        config: msgspec.Struct | None,
        watch: InputAudit | None,
        check: Check,
    ) -> None:
        self._name = name
        self._check = check
        self._function = function
        self._arguments = () if config is None else (config,)
        self._watch = watch

    def _call(self, given: object, file: SourceFile | None = None) -> list[Record]:
        """What the function gives, checked: all of it, for a generator has done nothing before."""
        if self._watch is None:
            return self._checked(given, file)
        return self._watch.during(self._name, self._checked, given, file)

    def _checked(self, given: object, file: SourceFile | None) -> list[Record]:
        return self._check(self._function(given, *self._arguments), file)


class FileFunction(_Function):
    """Calls a function for each file."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """What the function gives. Raises TypeError or ValueError where that is no record of the file."""
        return self._call(file, file)


class ProjectFunction(_Function):
    """Calls a function for the project."""

    def run_project(self, project: Project) -> list[Record]:
        """What the function gives. Raises TypeError or ValueError where that is no record."""
        return self._call(project)


class OwnTasks:
    """The own tasks of a worker, and whether what they find may be taken over by other batches."""

    def __init__(self, catalogue: TaskCatalogue, store: Path | None, check: Check) -> None:
        """Tasks of project scope are given what lies in `store`; `check` is as `check_records`."""
        self._check = check
        self._catalogue = catalogue
        self._store = [] if store is None else [str(store)]

    def task(self, own: OwnTask, planned: PlannedTask, config: msgspec.Struct) -> FileFunction | ProjectFunction:
        """An own task as it is planned."""
        watch, name = self._catalogue.watch, planned.name
        is_of_project = planned.scope == "project"
        if watch is not None:
            place = self._catalogue.own_places[name]
            besides = self._store if is_of_project else ()
            coverage = KeyCoverage(own.source, place, planned.tools, besides=besides)
            watch.judge(name, coverage, own.source.named)
        wrap = ProjectFunction if is_of_project else FileFunction
        return wrap(name, own.function, config if own.takes_config else None, watch, self._check)

    def unkeyed(self, name: str) -> str:
        """What a task's results so far rest on besides its key, for people; empty where nothing that was seen."""
        own = self._catalogue.own_task(name)
        if own is None:
            return ""
        place, watch = self._catalogue.own_places[name], self._catalogue.watch
        changed = own.source.changed_file(place)
        if not place.reuse:
            return _NOT_TO_BE_REUSED
        if changed is not None:
            return f"{changed} changed during the run"
        return _UNWATCHED if watch is None else watch.found(name)
