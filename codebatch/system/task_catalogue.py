"""The tasks that a process knows: those of entry point `codebatch.tasks`, and the own ones of a project (own_tasks.py).

A catalogue is made once, where the configuration is read or a worker starts, and passed to whoever resolves a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.task import PIPELINES, OwnPlace
from codebatch.system.installed import EntryPoint, installed_here
from codebatch.system.own_tasks import OwnTask, load_own_task
from codebatch.system.watch import Watch

ENTRY_POINT_GROUP = "codebatch.tasks"


class TaskCatalogue:
    """Tasks by name. Nothing is loaded before it is asked for, and nothing twice.

    `own_places`: where each own task lies; `watch` hears what they look at as they are loaded. `imports` are the names
    that imports have in a batch (model/imported.py).
    """

    def __init__(
        self,
        own_places: Mapping[str, OwnPlace] | None = None,
        watch: Watch | None = None,
        imports: Iterable[str] = (),
    ) -> None:
        self.own_places = dict(own_places or {})
        self.watch = watch
        self.imports = frozenset(imports)
        self._own: dict[str, OwnTask] = {}

    @cached_property
    def installed(self) -> dict[str, EntryPoint]:
        """Every installed task, not loaded yet. Raises InvalidConfiguration where two claim one name."""
        found: dict[str, EntryPoint] = {}
        for entry_point in installed_here().entry_points(ENTRY_POINT_GROUP):
            other = found.get(entry_point.name)
            if other is not None and other.value != entry_point.value:
                raise InvalidConfiguration(
                    f"two installed packages declare the task {entry_point.name!r}: "
                    f"{other.value} and {entry_point.value}",
                    hint="uninstall one of them",
                )
            found[entry_point.name] = entry_point
        return found

    def with_imports(self, names: Iterable[str]) -> TaskCatalogue:
        """A catalogue that knows these imports besides."""
        more = frozenset(names) - self.imports
        return TaskCatalogue(self.own_places, self.watch, self.imports | more) if more else self

    def own_task(self, name: str) -> OwnTask | None:
        """The own task of that name, None where there is none. Raises InvalidConfiguration if it cannot be loaded."""
        if name not in self.own_places:
            return None
        loaded = self._load(name)
        if loaded.declaration.scope == "file":
            return loaded
        of_files = (other for other in sorted(self.own_places) if self._load(other).declaration.scope == "file")
        needs = (*PIPELINES["full"].tasks, *of_files)
        return replace(loaded, declaration=replace(loaded.declaration, needs=needs))

    def _load(self, name: str) -> OwnTask:
        if name not in self._own:
            self._own[name] = load_own_task(name, self.own_places[name], self.watch)
        return self._own[name]
