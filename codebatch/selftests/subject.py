"""The subject of self-tests: a store, a batch in it, and this program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from codebatch.errors import CodebatchError, StoreCorrupt, StoreNotFound
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.selftests.findings import GateContext
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir


class SubjectCommand(NamedTuple):
    """A command of the command line: its words, help and options, and whether `api --json` lists it."""

    name: str
    help: str
    options: frozenset[str]
    is_described: bool


class SelftestSubject:
    """The subject of self-tests. Each part is opened when it is first used.

    `reference` names the batch, by default the latest. `execution` and `commands` are functions that return the
    settings and the commands. They are called only for self-tests that need these results.
    """

    def __init__(
        self,
        place: StoreLocator,
        reference: str | None,
        *,
        execution: Callable[[], ExecutionSettings],
        commands: Callable[[], Sequence[SubjectCommand]],
        listener: Listener,
    ) -> None:
        self.place = place
        self.reference = reference
        self.listener = listener
        self._execution = execution
        self._commands = commands

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

    @property
    def batch(self) -> BatchDir:
        """The batch. Raises the errors of `store`, and InvalidInput if there is no such batch."""
        if isinstance(self._batch_or_error, CodebatchError):
            raise self._batch_or_error
        return self._batch_or_error

    @cached_property
    def _batch_or_error(self) -> BatchDir | CodebatchError:
        """The batch, or the error that was raised when it was opened.

        The batch is opened only once. So all self-tests check the same batch, and notes are not repeated.
        """
        try:
            return resolve_batch(self.store, self.reference, self.listener.note)
        except CodebatchError as error:
            return error

    @cached_property
    def execution(self) -> ExecutionSettings:
        """The settings for executing batches. Raises InvalidConfiguration."""
        return self._execution()

    @cached_property
    def commands(self) -> Sequence[SubjectCommand]:
        """The commands of this program. Raises ImportError or AttributeError if one of them cannot be loaded."""
        return self._commands()

    def gate_context(self, *, with_batch: bool) -> GateContext:
        """Return the store, batch and snapshot that a self-test checked, for its result.

        The batch and snapshot are included only with `with_batch`.
        """
        store: StoreDir | None = None
        batch: BatchDir | None = None
        with contextlib.suppress(CodebatchError):  # The self-test has already reported the error.
            store = self.store
            batch = self.batch if with_batch else None
        return GateContext(
            store=None if store is None else str(store.root),
            batch_id=None if batch is None else batch.id,
            snapshot_id=None if batch is None else batch.about.snapshot_id,
        )
