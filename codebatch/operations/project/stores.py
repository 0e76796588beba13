"""The location of a store, and opening or creating it."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from codebatch.errors import InvalidInput, StoreNotFound, StoreUnwritable, UnsafeStoreLocation
from codebatch.model.entry import display_path
from codebatch.model.project import REMOVED_PROJECT, ProjectRoot
from codebatch.operations import NoteCallback, ignore_note
from codebatch.operations.project.projects import (
    find_project,
    find_store,
    find_store_above,
    find_unused_store,
    new_store_place,
    store_place_in,
)
from codebatch.query.filters.arguments import path_argument
from codebatch.snapshotting.projects import is_shared_place, shared_place_reason
from codebatch.store.batches.store_directory import StoreDir, create_store, looks_like_store
from codebatch.store.batches.store_directory import open_store as open_store_at
from codebatch.system.files.files import RealFiles, StoreFiles


class StoreLocator:
    """The location of a store: a path that the user named, otherwise the store of the project.

    A named store does not change the project. The project is that of `start`, by default the current directory. `note`
    receives notes about the choice of the store.
    """

    def __init__(
        self,
        named: Path | None = None,
        files: StoreFiles | None = None,
        *,
        start: Path | None = None,
        note: NoteCallback = ignore_note,
    ) -> None:
        self.named = named
        self._files = files or RealFiles()
        self._start = start
        self._note = note

    @property
    def directory(self) -> Path:
        """The directory whose project is used. Raises FileNotFoundError if the current directory was removed."""
        return self._start or Path.cwd()

    @cached_property
    def project(self) -> ProjectRoot | None:
        """The project, or None if the current directory was removed."""
        try:
            return find_project(self.directory)
        except FileNotFoundError:
            return None

    def for_projects(self, projects: Iterable[ProjectRoot]) -> StoreLocator:
        """Return the location of the store for work on paths of some projects: the store of their common project.

        The current project is used instead in two cases: the paths are in several projects, or they have no project and
        are below the current directory.
        """
        first, *other_projects = {project.root: project for project in projects}.values()
        current = self.project
        is_below_current = first.kind == "unmarked" and current is not None and current.holds(first.root)
        if other_projects or (is_below_current and current is not None and not is_shared_place(current.root)):
            return self
        return self.for_directory(Path(os.fsdecode(first.start)))

    def for_directory(self, start: Path) -> StoreLocator:
        """Return the location of the store for work in the project of a directory."""
        return StoreLocator(self.named, self._files, start=start, note=self._note)

    def store_root(self) -> Path | None:
        """Return the path of the store. Return None if no store was named and the project has none.

        A named store may not exist.
        """
        if self.named is not None:
            return self.named
        return None if self.project is None else find_store(self.project)

    def has_store(self) -> bool:
        """Return whether the store exists. If not, `open_or_create` creates it."""
        path = self.store_root()
        return path is not None and path.exists()

    def open(self) -> StoreDir:
        """Return the store, which must exist. Raises StoreNotFound or StoreUntrusted."""
        path = self.store_root()
        if path is None:
            raise self._not_found_error()
        self._note_unused_store()
        return self._with_project(open_store_at(self._files, path, is_named=self.named is not None))

    def _note_unused_store(self) -> None:
        if self.named is None and self.project is not None and (unused := find_unused_store(self.project)) is not None:
            self._note(
                f"the store {unused} is not used, because all work trees of the repository share the store "
                f"{find_store(self.project)}; to use it, add --store {shlex.quote(str(unused))}"
            )

    def open_or_create_store(self, note: NoteCallback = ignore_note) -> StoreDir:
        """Return the store. If it does not exist, create it at the named path, else at the top of the project.

        Raises StoreUntrusted, UnsafeStoreLocation or StoreUnwritable.
        """
        self._note_unused_store()
        place_note = self.new_store_note
        path = self.store_root() or self.new_store_path()
        try:
            store, is_new = create_store(self._files, path, is_named=self.named is not None)
        except StoreUnwritable as error:
            error.hint = f"{error.hint}; or put the store elsewhere with --store PATH"
            raise
        if is_new:
            note(f"created store: {store.root}")
            if place_note:
                note(place_note)
            if self.named is None and self.project is not None and (above := find_store_above(self.project)):
                note(f"the store {above} above this project is not used; to use that store, add --store {above}")
        return self._with_project(store)

    @property
    def new_store_note(self) -> str:
        """A note about the place of a new store that the user does not name, or an empty string."""
        return "" if self.named is not None or self.project is None else new_store_place(self.project)[1]

    def new_store_path(self, *, is_asked: bool = False) -> Path:
        """Return the path at which a new store is created if the user named no path.

        `is_asked` is set if the user explicitly asked for a store. Outside git, this makes the current directory a
        project. Raises UnsafeStoreLocation and StoreNotFound.
        """
        if self.project is None:
            raise self._not_found_error()
        path, _ = new_store_place(self.project)
        if is_asked and self.project.kind != "git":
            path = store_place_in(self.project.start)
        if (reason := shared_place_reason(os.fsencode(path.parent))) is not None:
            raise self._unsafe_location_error(path, reason)
        return path

    def _unsafe_location_error(self, path: Path, reason: str) -> UnsafeStoreLocation:
        error = UnsafeStoreLocation(str(path.parent), reason)
        if self.project is not None and self.project.kind == "git":
            error.hint = f"give a location: --store {shlex.quote(str(path))}"
            if self.project.start != self.project.root:
                start = shlex.quote(os.fsdecode(self.project.start))
                error.hint = f"make the directory a repository: git init {start}; or {error.hint}"
        return error

    def _not_found_error(self) -> StoreNotFound:
        if self.project is None:
            return StoreNotFound("the current directory no longer exists", hint="give a store with --store")
        hint = "create a store with `codebatch run PATH` or `codebatch init`, or give the path of a store with --store"
        root = self.project.root
        default_root = store_place_in(root)
        if (reason := shared_place_reason(root)) is not None:
            store_option = f"--store {shlex.quote(str(default_root))}"
            if looks_like_store(default_root):
                message = f"the store in {default_root.parent} is not used unless --store gives its path"
                return StoreNotFound(f"{message}, because {reason}", hint=f"use this store: {store_option}")
            hint = f"create a store with: codebatch run . {store_option}"
        elif (above := find_store_above(self.project)) is not None:
            hint = f"create a store with `codebatch run PATH`, or use the store above the project: --store {above}"
        elif self.new_store_note:
            hint = f"{self.new_store_note}; or give it a store of its own: codebatch run ."
        return StoreNotFound(f"no store in the project {os.fsdecode(self.project.root)}", hint=hint)

    def _with_project(self, store: StoreDir) -> StoreDir:
        return replace(store, project=self.project or REMOVED_PROJECT)


@contextlib.contextmanager
def open_or_temporary_store(place: StoreLocator) -> Iterator[StoreDir]:
    """Yield the store at a location. If it does not exist, yield a temporary store, which is removed afterwards."""
    if place.has_store():
        yield place.open()
        return
    with tempfile.TemporaryDirectory(prefix="codebatch-") as directory:
        yield StoreLocator(Path(directory) / "store").open_or_create_store()


def open_store(path: str | Path | None = None, project: str | Path | None = None) -> StoreDir:
    """Return the store at a path. Without `path`, return the store of the project.

    The project is the one around the directory `project`, by default the current directory. Raises InvalidInput,
    StoreNotFound or StoreUntrusted.
    """
    return locate_store(path, project).open()


def locate_store(store: str | Path | None, project: str | Path | None) -> StoreLocator:
    """Return the location of a store, by default of the store of the project around the directory `project`.

    By default, this is the current directory. Raises InvalidInput.
    """
    start = None if project is None else path_argument(project)
    if start is not None and not start.exists():
        raise InvalidInput(f"no such directory: {display_path(os.fsencode(start))}")
    named = None if store is None else path_argument(store)
    return StoreLocator(named, start=None if start is None else start.absolute())
