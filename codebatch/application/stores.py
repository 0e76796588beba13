"""Where a store is looked for, and where one is made."""

from __future__ import annotations

from pathlib import Path

from codebatch.application import Note, ignore_note
from codebatch.errors import StoreNotFound, StoreUnwritable
from codebatch.query.arguments import path_of
from codebatch.store import layout
from codebatch.store.store import Store, create_store, find_store
from codebatch.store.store import open_store as open_store_at
from codebatch.system.files import Files, RealFiles


class StorePlace:
    """The named place of a store, else the nearest one in the current directory or above it."""

    def __init__(self, named: Path | None = None, files: Files | None = None) -> None:
        self.named = named
        self._files = files or RealFiles()

    def root(self) -> Path | None:
        """Where the store is or would be looked for; None where none was named or found."""
        return self.named or find_store(Path.cwd())

    def exists(self) -> bool:
        """Whether there is a store; if not, `open_or_make` makes one."""
        path = self.root()
        return path is not None and path.exists()

    def open(self) -> Store:
        """The store, which must exist. Raises StoreNotFound or StoreForeign."""
        path = self.root()
        if path is None:
            raise StoreNotFound(
                f"there is no {layout.STORE_DIRECTORY} store in {Path.cwd()} or above it",
                hint="make one with `codebatch run PATH` or `codebatch init`, or name one with --store",
            )
        return open_store_at(self._files, path, is_named=self.named is not None)

    def open_or_make(self, note: Note = ignore_note) -> Store:
        """The store, made where there is none: at the named place, else at the top of the git work tree, else here.

        Raises StoreForeign or StoreUnwritable.
        """
        path = self.root() or project_root(Path.cwd()) / layout.STORE_DIRECTORY
        try:
            store, is_new = create_store(self._files, path, is_named=self.named is not None)
        except StoreUnwritable as error:
            error.hint = f"{error.hint}; or put the store elsewhere with --store PATH"
            raise
        if is_new:
            note(f"new store: {store.root}")
        return store


def open_store(path: str | Path | None = None) -> Store:
    """The store at a path, else the nearest one in the current directory or above it.

    Raises InvalidInput, StoreNotFound or StoreForeign.
    """
    return StorePlace(None if path is None else path_of(path)).open()


def project_root(start: Path) -> Path:
    """The top of the git work tree around a directory, else the directory."""
    return next((directory for directory in (start, *start.parents) if (directory / ".git").exists()), start)
