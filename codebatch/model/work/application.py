"""Applications of the change sets of a work batch: documents in `applied/` (SPEC.md "Changes")."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.documents import Document, DocumentError, InstantNs, decode_document, encode_document
from codebatch.model.work.command import CommandId

APPLICATION_FORMAT = 1


class AppliedChangeSet(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A change set whose changes were all written, and the task that made it."""

    task: CommandId
    changes: Digest


class ChangesApplication(Document, frozen=True, kw_only=True):
    """One call of `apply` for a work batch.

    - `n`: its number. Applications are numbered from 1.
    - `root`: the absolute path of the directory of the files.
    - `branch`: the branch that has the changes. Empty if they were written to the files.
    - `is_reversed`: the changes were undone.
    - `change_sets`: the change sets that are applied now. If `is_reversed` is set, those that are not any more.
    """

    format: int = APPLICATION_FORMAT
    n: int
    at_ns: InstantNs
    root: bytes
    branch: str = ""
    is_reversed: bool = False
    change_sets: tuple[AppliedChangeSet, ...]


def encode_application(application: ChangesApplication) -> bytes:
    """Return the bytes of the file of an application."""
    return encode_document(application)


def decode_application(data: bytes, n: int) -> ChangesApplication:
    """Decode the file of the application with the number `n`. Raises DocumentError."""
    application = decode_document(data, ChangesApplication, APPLICATION_FORMAT)
    if application.n != n:
        raise DocumentError(f"it has number {application.n}")
    return application


def applied_change_sets(applications: Iterable[ChangesApplication]) -> frozenset[AppliedChangeSet]:
    """Return the change sets that are applied after all applications, which are in order."""
    applied: set[AppliedChangeSet] = set()
    for application in applications:
        if application.is_reversed:
            applied.difference_update(application.change_sets)
        else:
            applied.update(application.change_sets)
    return frozenset(applied)
