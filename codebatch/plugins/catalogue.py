"""The tasks that a process knows: those of entry point `codebatch.tasks`, and the own ones of a project (own_tasks.py).

A catalogue is made once, where the configuration is read or a worker starts, and passed to whoever resolves a name.
That of a coordinator is isolated: it imports no task that does not come with codebatch (isolated_tasks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable
from codebatch.model.task import PIPELINES, Json, OwnPlace, SnapshotView, TaskDescription
from codebatch.plugins.input_audit import InputAudit
from codebatch.plugins.user_tasks import OwnSource, OwnTask, load_own_task, read_own_source

ENTRY_POINT_GROUP = "codebatch.tasks"
_BUILT_IN = "codebatch_workers.tasks:"


class TaskIsolation(Protocol):
    """Answers about tasks that may not be imported in this process (isolated_tasks.py)."""

    def describe(self, name: str) -> TaskDescription: ...
    def look_ahead(self, settings: Mapping[str, Mapping[str, Json]]) -> None: ...
    def configure(self, name: str, settings: Mapping[str, Json]) -> dict[str, Json]: ...
    def context_names(self, name: str, config: Mapping[str, Json]) -> tuple[str, ...]: ...
    def prepare(
        self, name: str, settings: Mapping[str, Json], *, is_project: bool
    ) -> tuple[Mapping[str, Json], str] | None: ...
    def evaluate_contexts(
        self, name: str, config: Mapping[str, Json], snapshot: SnapshotView, items: Sequence[Entry]
    ) -> dict[str, ContextTable]: ...


class TaskCatalogue:
    """Tasks by name. Nothing is loaded before it is asked for, and nothing twice.

    `own_places`: where each own task lies; `watch` hears what they look at as they are loaded. `imports` are the names
    that imports have in a batch (model/analysis/imports.py). `isolated` answers for tasks that may not be loaded here.
    """

    isolated: TaskIsolation | None = None

    def __init__(
        self,
        own_places: Mapping[str, OwnPlace] | None = None,
        watch: InputAudit | None = None,
        imports: Iterable[str] = (),
    ) -> None:
        self.own_places = dict(own_places or {})
        self.watch = watch
        self.imports = frozenset(imports)
        self._sources: dict[str, OwnSource] = {}
        self._own: dict[str, OwnTask] = {}

    @cached_property
    def installed(self) -> dict[str, EntryPoint]:
        """Every installed task, not loaded yet. Raises InvalidConfiguration where two claim one name."""
        found: dict[str, EntryPoint] = {}
        for entry_point in entry_points(group=ENTRY_POINT_GROUP):
            other = found.get(entry_point.name)
            if other is not None and other.value != entry_point.value:
                raise InvalidConfiguration(
                    f"two installed packages provide the task {entry_point.name!r}: {other.value} and "
                    f"{entry_point.value}",
                    hint="uninstall one of these packages",
                )
            found[entry_point.name] = entry_point
        return found

    def with_imports(self, names: Iterable[str]) -> TaskCatalogue:
        """A catalogue that knows these imports besides."""
        more = frozenset(names) - self.imports
        if not more:
            return self
        catalogue = TaskCatalogue(self.own_places, self.watch, self.imports | more)
        catalogue.isolated, catalogue._sources, catalogue._own = self.isolated, self._sources, self._own
        return catalogue

    def is_foreign(self, name: str) -> bool:
        """Whether a task of that name does not come with codebatch."""
        if name in self.own_places:
            return True
        entry_point = self.installed.get(name)
        return entry_point is not None and not entry_point.value.startswith(_BUILT_IN)

    def isolation_of(self, name: str) -> TaskIsolation | None:
        """Return the answerer for a task that may not be imported in this process; None if it may."""
        return self.isolated if self.isolated is not None and self.is_foreign(name) else None

    def own_source(self, name: str) -> OwnSource:
        """The file of an own task, as it was when it was first asked for. Raises InvalidConfiguration."""
        if name not in self._sources:
            self._sources[name] = read_own_source(name, self.own_places[name])
        return self._sources[name]

    def own_task(self, name: str) -> OwnTask | None:
        """Load the own task of that name; None if there is none. Raises InvalidConfiguration if it cannot be loaded."""
        if name not in self.own_places:
            return None
        loaded = self.load_own(name)
        if loaded.declaration.scope == "file":
            return loaded
        of_files = (other for other in sorted(self.own_places) if self.load_own(other).declaration.scope == "file")
        needs = (*PIPELINES["full"].tasks, *of_files)
        return replace(loaded, declaration=replace(loaded.declaration, needs=needs))

    def load_own(self, name: str) -> OwnTask:
        """Load an own task, without what it needs of others. Raises InvalidConfiguration."""
        assert self.isolated is None, "a coordinator runs no module of the user's"
        if name not in self._own:
            self._own[name] = load_own_task(name, self.own_places[name], self.own_source(name), self.watch)
        return self._own[name]
