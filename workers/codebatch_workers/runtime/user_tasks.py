"""Custom tasks: functions of a project, called as tasks (codebatch/plugins/user_tasks.py).

While a function runs, an audit hook records the inputs that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import msgspec

from codebatch.model.plan import PlannedTask
from codebatch.model.record import Record
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.input_audit import InputAudit
from codebatch.plugins.key_coverage import KeyCoverage
from codebatch.plugins.user_tasks import CustomTask
from codebatch_workers.api.project import Project
from codebatch_workers.runtime.changes.gates import TaskApplication
from codebatch_workers.syntax.source import SourceFile

RecordCheck = Callable[[object, SourceFile | None, TaskApplication | None], list[Record]]
_INPUTS_NOT_AUDITED = "nobody watched"


class _FunctionTask:
    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        config: msgspec.Struct | None,
        watch: InputAudit | None,
        check: RecordCheck,
    ) -> None:
        self._name = name
        self._check = check
        self._function = function
        self._arguments = () if config is None else (config,)
        self._watch = watch

    def _call_function(self, argument: object) -> list[object]:
        """Call the function, and return its values.

        The audit also covers the iteration, because a generator executes only when its values are taken. It does not
        cover the validation, which may write to the store.
        """
        if self._watch is None:
            return self._call_and_collect(argument)
        return self._watch.audit_call(self._name, self._call_and_collect, argument)

    def _call_and_collect(self, argument: object) -> list[object]:
        return list(cast("Iterable[object]", self._function(argument, *self._arguments) or ()))


class FileFunctionTask(_FunctionTask):
    """A custom task that is called for each file."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return the function's records. Raises TypeError or ValueError if a value is not a record of the file."""
        return self._check(self._call_function(file), file, self._call_function)


class ProjectFunctionTask(_FunctionTask):
    """A custom task that is called once, for the whole project."""

    def run_project(self, project: Project) -> list[Record]:
        """Return the records of the function. Raises TypeError or ValueError if a value is not a record."""
        return self._check(self._call_function(project), None, None)


class CustomTasks:
    """The custom tasks of a worker. For each, it also determines whether other batches may reuse the results."""

    def __init__(self, catalogue: TaskCatalogue, store: Path | None, check: RecordCheck) -> None:
        """Custom project tasks may read `store`. `check` validates records like `validate_records`."""
        self._check = check
        self._catalogue = catalogue
        self._store = [] if store is None else [str(store)]

    def task(
        self, custom_task: CustomTask, planned: PlannedTask, config: msgspec.Struct
    ) -> FileFunctionTask | ProjectFunctionTask:
        """Return the object that runs a custom task, as the plan describes the task."""
        watch, name = self._catalogue.watch, planned.name
        is_of_project = planned.scope == "project"
        if watch is not None:
            place = self._catalogue.custom_locations[name]
            product_directories = self._store if is_of_project else ()
            coverage = KeyCoverage(
                custom_task.source, place, planned.tools, own_package_directories=product_directories
            )
            watch.set_coverage(name, coverage, custom_task.source.named)
        wrap = ProjectFunctionTask if is_of_project else FileFunctionTask
        return wrap(name, custom_task.function, config if custom_task.takes_config else None, watch, self._check)

    def uncovered_inputs(self, name: str) -> str:
        """Return the reason why other batches must not reuse the results of a task, or an empty text if they may.

        There are three reasons: the settings of the task say so, the task read an input that its cache key does not
        cover, or a source file of the task changed during the run.
        """
        unkeyed_input = self._catalogue.unkeyed_input(name)
        if unkeyed_input:
            return unkeyed_input
        custom_task = self._catalogue.custom_task(name)
        if custom_task is None:
            return ""
        place, watch = self._catalogue.custom_locations[name], self._catalogue.watch
        changed = custom_task.source.changed_file(place)
        if changed is not None:
            return f"{changed} changed during the run"
        return _INPUTS_NOT_AUDITED if watch is None else watch.first_uncovered_input(name)
