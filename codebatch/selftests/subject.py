"""The subject of self-tests, and the violations that they find in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import msgspec

from codebatch.errors import StoreCorrupt, StoreNotFound
from codebatch.operations import NoteCallback
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir


class GateFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A violation that a self-test found: its location, the expected and the actual value, and a suggestion. Unknown
    values are null.
    """

    message: str
    location: str | None = None
    expected: str | None = None
    actual: str | None = None
    suggestion: str | None = None


@dataclass(kw_only=True)
class SelftestSubject:
    """The subject of self-tests. Each part is opened when it is first used.

    `reference` names the batch, by default the latest. `execution` and `load_commands` are called only for self-tests
    that need them. `load_commands` returns the number of commands, and raises ImportError or AttributeError if one of
    them cannot be loaded.
    """

    place: StoreLocator
    reference: str | None
    execution: Callable[[], ExecutionSettings]
    load_commands: Callable[[], int]
    listener: Listener

    def check_reference(self) -> None:
        """Raise an error if the user named a store or batch that does not exist.

        Damage raises no error here, because the self-tests report it.
        """
        try:
            self.store  # noqa: B018 - opens and caches the store
            if self.reference is not None:
                self.batch  # noqa: B018
        except StoreNotFound:
            if self.place.named is not None or self.reference is not None:
                raise
        except StoreCorrupt:
            pass

    @cached_property
    def store(self) -> StoreDir:
        """The store. Raises StoreNotFound, StoreUntrusted or StoreCorrupt."""
        return self.place.open()

    @cached_property
    def batch(self) -> BatchDir:
        """The batch. Raises the errors of `store`, and InvalidInput if there is no such batch."""
        return resolve_batch(self.store, self.reference, self.note_once)

    @cached_property
    def note_once(self) -> NoteCallback:
        """The `note` of the listener, which several self-tests give the same text."""
        return cache(self.listener.note)
