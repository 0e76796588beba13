"""What gates are held against: a store, a batch in it, and this program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from codebatch.errors import CodebatchError, StoreCorrupt, StoreNotFound
from codebatch.operations.project.stores import StorePlace
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.selftests.findings import GateContext
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store import StoreDir


class SubjectCommand(NamedTuple):
    """A command as its user sees it: its words, its help, its options."""

    name: str
    help: str
    options: frozenset[str]


class Program(NamedTuple):
    """The commands that there are, and the names of those that are told of. `broken`: why others cannot be had.

    `described` are those of `api --json`, by name, with the options that it says each has; None where some are broken.
    """

    commands: tuple[SubjectCommand, ...]
    told: tuple[str, ...]
    broken: tuple[str, ...] = ()
    described: Mapping[str, frozenset[str]] | None = None


class Subject:
    """What is looked at, each when it is first asked for.

    `reference` names the batch, by default the latest. `execution` and `program` are made for those gates that need
    them.
    """

    def __init__(
        self,
        place: StorePlace,
        reference: str | None,
        *,
        execution: Callable[[], ExecutionSettings],
        program: Callable[[], Program],
        listener: Listener,
    ) -> None:
        self.place = place
        self.reference = reference
        self.listener = listener
        self._execution = execution
        self._program = program

    def check_names(self) -> None:
        """Raises what a store or a batch raises that was named and is not there. What is damaged is for the gates."""
        try:
            self.store  # noqa: B018 - it is kept
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
        """The batch. Raises as the store does, and InvalidInput where there is none of that name."""
        if isinstance(self._batch, CodebatchError):
            raise self._batch
        return self._batch

    @cached_property
    def _batch(self) -> BatchDir | CodebatchError:
        """Looked for once, so that all gates are of the same one, and that there is none is told once."""
        try:
            return resolve_batch(self.store, self.reference, self.listener.note)
        except CodebatchError as error:
            return error

    @cached_property
    def execution(self) -> ExecutionSettings:
        """How batches are executed here. Raises InvalidConfiguration."""
        return self._execution()

    @cached_property
    def program(self) -> Program:
        """What this program can be asked."""
        return self._program()

    def context(self, *, with_batch: bool) -> GateContext:
        """What a gate was held against, with the batch where it is of one."""
        store: StoreDir | None = None
        batch: BatchDir | None = None
        with contextlib.suppress(CodebatchError):  # The gate has told it.
            store = self.store
            batch = self.batch if with_batch else None
        return GateContext(
            store=None if store is None else str(store.root),
            batch_id=None if batch is None else batch.id,
            snapshot_id=None if batch is None else batch.about.snapshot_id,
        )
