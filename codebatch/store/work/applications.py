"""Applications of change sets on disk: write-once files in `applied/` of a work batch (SPEC.md "Changes")."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from codebatch.errors import CorruptFile, StoreUnwritable
from codebatch.model.documents import DocumentError
from codebatch.model.work.application import (
    AppliedChangeSet,
    ChangesApplication,
    applied_change_sets,
    decode_application,
    encode_application,
)
from codebatch.store import layout
from codebatch.store.documents import read_document_bytes
from codebatch.system.files.files import StoreFiles

_APPEND_ATTEMPTS_MAX = 100
_DAMAGE_HINT = "the changes count as not applied: apply them again after you removed this file"


class ApplicationStore:
    """The applications of one work batch."""

    def __init__(self, files: StoreFiles, batch_root: Path) -> None:
        self._files = files
        self._directory = batch_root / layout.APPLIED

    def read(self) -> list[ChangesApplication]:
        """Return all applications in order. Raises CorruptFile if one is damaged."""
        numbers = filter(None, map(layout.parse_application_name, self._files.listing(self._directory)))
        return [self._read(n) for n in sorted(numbers)]

    def read_applied(self) -> frozenset[AppliedChangeSet]:
        """Return the change sets that are applied now. Raises CorruptFile."""
        return applied_change_sets(self.read())

    def append(
        self,
        change_sets: Sequence[AppliedChangeSet],
        *,
        root: bytes,
        at_ns: int,
        is_reversed: bool = False,
        branch: str = "",
    ) -> ChangesApplication:
        """Publish an application under the next number by link(2). On return it is on disk.

        Raises StoreUnwritable or CorruptFile.
        """
        self._files.make_directory(self._directory)
        hidden = self._directory / f".{uuid.uuid4().hex}.tmp"
        for _ in range(_APPEND_ATTEMPTS_MAX):
            application = ChangesApplication(
                n=max((known.n for known in self.read()), default=0) + 1,
                at_ns=at_ns,
                root=root,
                branch=branch,
                is_reversed=is_reversed,
                change_sets=tuple(sorted(change_sets)),
            )
            self._files.write_new(hidden, encode_application(application))
            try:
                path = self._directory / layout.application_name(application.n)
                is_created = self._files.create_exclusive(hidden, path)
            finally:
                self._files.remove(hidden)
            if is_created:
                self._files.sync_directory(self._directory)
                return application
        raise StoreUnwritable(f"cannot create a file in {self._directory}: other processes keep creating files there")

    def _read(self, n: int) -> ChangesApplication:
        path = self._directory / layout.application_name(n)
        try:
            return decode_application(read_document_bytes(self._files, path), n)
        except (FileNotFoundError, DocumentError) as error:
            raise CorruptFile(str(path), f"is damaged: {error}", hint=_DAMAGE_HINT) from error
