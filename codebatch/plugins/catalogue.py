"""Catalogues of tasks: the tasks that a process can find by name.

They are installed entry points, custom tasks, and tasks that call a program (command_tasks.py).

A catalogue is created once, when the configuration is read or a worker starts. It is passed to all code that looks up
tasks. The catalogue of a coordinator is isolated: this process imports only tasks that come with codebatch
(isolated_tasks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Protocol

from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.command_table import CommandTaskLocation, TaskLocation
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable
from codebatch.model.task import (
    PIPELINES,
    CustomTaskLocation,
    JsonValue,
    RewriteTaskLocation,
    SnapshotView,
    TaskDescription,
)
from codebatch.plugins.command_tasks import resolve_commands
from codebatch.plugins.input_audit import InputAudit
from codebatch.plugins.user_tasks import CustomTask, CustomTaskSource, load_custom_task, read_custom_task_source

ENTRY_POINT_GROUP = "codebatch.tasks"
REUSE_IS_OFF = "reuse = false"
_BUILT_IN_PREFIX = "codebatch_workers.tasks:"


class IsolatedTaskLoader(Protocol):
    """An interface to ask about foreign tasks, which this process must not import (isolated_tasks.py)."""

    def describe(self, name: str) -> TaskDescription: ...
    def prefetch(self, settings: Mapping[str, Mapping[str, JsonValue]]) -> None: ...
    def configure(self, name: str, settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]: ...
    def context_names(self, name: str, config: Mapping[str, JsonValue]) -> tuple[str, ...]: ...
    def prepare(
        self, name: str, settings: Mapping[str, JsonValue], *, is_project: bool
    ) -> tuple[Mapping[str, JsonValue], str] | None: ...
    def evaluate_contexts(
        self, name: str, config: Mapping[str, JsonValue], snapshot: SnapshotView, items: Sequence[Entry]
    ) -> dict[str, ContextTable]: ...


class TaskCatalogue:
    """Tasks by name. Each is loaded once, on first use.

    - `custom_locations`: the locations of custom tasks.
    - `commands`: the tasks that call a program.
    - `rewrites`: the tasks that consist of rewrites.
    - `watch`: the audit that records what custom tasks read while they are loaded, or None.
    - `import_names`: the names of imports in a batch (model/analysis/imports.py).
    - `isolated_loader`: the object that answers questions about tasks that this process must not import, or None if it
      may import all.
    """

    isolated_loader: IsolatedTaskLoader | None = None

    def __init__(
        self,
        locations: Mapping[str, TaskLocation] | None = None,
        watch: InputAudit | None = None,
        imports: Iterable[str] = (),
    ) -> None:
        self.custom_locations: dict[str, CustomTaskLocation] = {}
        self.commands: dict[str, CommandTaskLocation] = {}
        self.rewrites: dict[str, RewriteTaskLocation] = {}
        for name, location in (locations or {}).items():
            if isinstance(location, CommandTaskLocation):
                self.commands[name] = location
            elif isinstance(location, RewriteTaskLocation):
                self.rewrites[name] = location
            else:
                self.custom_locations[name] = location
        self.watch = watch
        self.import_names = frozenset(imports)
        self._sources: dict[str, CustomTaskSource] = {}
        self._custom_tasks: dict[str, CustomTask] = {}

    @cached_property
    def installed(self) -> dict[str, EntryPoint]:
        """All installed tasks, not yet loaded. Raises InvalidConfiguration if two packages have the same task name."""
        tasks: dict[str, EntryPoint] = {}
        for entry_point in _read_entry_points():
            other = tasks.get(entry_point.name)
            if other is not None and other.value != entry_point.value:
                raise InvalidConfiguration(
                    f"two installed packages provide the task {entry_point.name!r}: {other.value} and "
                    f"{entry_point.value}",
                    hint="uninstall one of these packages",
                )
            tasks[entry_point.name] = entry_point
        return tasks

    def with_imports(self, names: Iterable[str]) -> TaskCatalogue:
        """Return a copy of this catalogue that also has the imports (of findings) with the names `names`."""
        more = frozenset(names) - self.import_names
        if not more:
            return self
        catalogue = TaskCatalogue(self.locations, self.watch, self.import_names | more)
        catalogue.isolated_loader, catalogue._sources, catalogue._custom_tasks = (
            self.isolated_loader,
            self._sources,
            self._custom_tasks,
        )
        return catalogue

    @property
    def locations(self) -> dict[str, TaskLocation]:
        """The locations of all tasks that the configuration defines."""
        return {**self.custom_locations, **self.commands, **self.rewrites}

    def look_up_commands(self, names: Iterable[str]) -> None:
        """Look up the programs of the tasks in `names` that call one, unless this has been done.

        Raises InvalidConfiguration if a program is missing.
        """
        unknown = {name: self.commands[name] for name in names if name in self.commands}
        self.commands |= resolve_commands(
            {name: location for name, location in unknown.items() if not location.program}
        )

    def program_builds(self, names: Iterable[str]) -> dict[str, Digest]:
        """Return for each task in `names` that calls a program the digest of the files outside of the project.

        Raises InvalidConfiguration if a program is missing.
        """
        calling = [name for name in names if name in self.commands]
        self.look_up_commands(calling)
        return {name: self.commands[name].build for name in calling}

    def unkeyed_input(self, name: str) -> str:
        """Return an input of a task that its cache key never covers, as its settings say, or an empty text."""
        if name in self.commands:
            return self.commands[name].table.unkeyed_input
        location = self.custom_locations.get(name)
        return "" if location is None or location.reuse else REUSE_IS_OFF

    def is_known(self, name: str) -> bool:
        """Return whether the catalogue has a task."""
        return name in self.locations or name in self.import_names or name in self.installed

    def is_external(self, name: str) -> bool:
        """Return whether a task does not come with codebatch."""
        if name in self.custom_locations:
            return True
        entry_point = self.installed.get(name)
        return entry_point is not None and not entry_point.value.startswith(_BUILT_IN_PREFIX)

    def task_isolation(self, name: str) -> IsolatedTaskLoader | None:
        """Return the object that answers questions about a task that this process must not import.

        None if this process may import the task.
        """
        return self.isolated_loader if self.isolated_loader is not None and self.is_external(name) else None

    def custom_source(self, name: str) -> CustomTaskSource:
        """Return the source of a custom task.

        The first call reads it; later calls return the same. Raises InvalidConfiguration.
        """
        if name not in self._sources:
            self._sources[name] = read_custom_task_source(name, self.custom_locations[name])
        return self._sources[name]

    def custom_task(self, name: str) -> CustomTask | None:
        """Load the custom task with a name. Return None if there is no such task.

        A task of project scope gets the tasks that it needs. Raises InvalidConfiguration if the task cannot be loaded.
        """
        if name not in self.custom_locations:
            return None
        loaded = self.load_custom(name)
        if loaded.declaration.scope == "file":
            return loaded
        file_tasks = (
            other for other in sorted(self.custom_locations) if self.load_custom(other).declaration.scope == "file"
        )
        needs = (*PIPELINES["full"].tasks, *file_tasks)
        return replace(loaded, declaration=replace(loaded.declaration, needs=needs))

    def load_custom(self, name: str) -> CustomTask:
        """Load a custom task, without the tasks that it needs. Raises InvalidConfiguration."""
        assert self.isolated_loader is None, "a coordinator runs no module of the user's"
        if name not in self._custom_tasks:
            self._custom_tasks[name] = load_custom_task(
                name, self.custom_locations[name], self.custom_source(name), self.watch
            )
        return self._custom_tasks[name]


def _read_entry_points() -> Iterable[EntryPoint]:
    """Return the entry points of tasks. Raises InvalidConfiguration if any installed package has damaged ones."""
    try:
        return entry_points(group=ENTRY_POINT_GROUP)
    except (TypeError, ValueError) as error:
        raise InvalidConfiguration(
            f"the entry points of an installed package cannot be read: {_find_damaged_package() or error}",
            hint="reinstall or remove this package",
        ) from error


def _find_damaged_package() -> str:
    """Return the name and directory of an installed package with damaged entry points, or an empty string."""
    for distribution in distributions():
        try:
            distribution.entry_points  # noqa: B018 - it is parsed
        except (TypeError, ValueError):
            return f"{distribution.metadata['Name'] or 'a package without a name'} in {distribution.locate_file('')}"
    return ""
