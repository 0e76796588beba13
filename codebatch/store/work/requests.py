"""Requests on disk: write-once files in `requests/` of a work batch, numbered from 1 (SPEC.md "Requests")."""

from __future__ import annotations

import uuid
from pathlib import Path

from codebatch.errors import CorruptFile, StoreUnwritable
from codebatch.model.documents import DocumentError
from codebatch.model.work.request import Cancel, Open, Request, RequestBody, RequestHead, decode_request, encode_request
from codebatch.store import layout
from codebatch.store.documents import read_document_bytes
from codebatch.system.files.files import StoreFiles

APPEND_ATTEMPTS_MAX = 1000


class RequestStore:
    """The requests of one work batch. Each is read from disk only once."""

    def __init__(self, files: StoreFiles, batch_root: Path) -> None:
        self._files = files
        self._directory = batch_root / layout.REQUESTS
        self._known: list[Request] = []
        self._next_path = self._directory / layout.request_name(1)

    def read(self) -> list[Request]:
        """Return all requests in order, up to the first missing number. Raises StoreCorrupt if one is unreadable.

        On return all returned requests are on disk, so the caller may act on them.
        """
        if self._files.size(self._next_path) is None:
            return self._known  # Checking one name is cheaper than listing the directory.
        names = self._files.listing(self._directory)
        before = len(self._known)
        while (name := layout.request_name(len(self._known) + 1)) in names:
            self._known.append(self._read_request(name, len(self._known) + 1))
        if len(self._known) > before:
            self._next_path = self._directory / name
            self._files.sync_directory(self._directory)
        return self._known

    def append(self, body: RequestBody, *, by: str, at_ns: int) -> Request:
        """Publish a request under the next number by link(2). On return it is on disk.

        Raises StoreUnwritable or StoreCorrupt.
        """
        for _ in range(APPEND_ATTEMPTS_MAX):
            request = Request(RequestHead(n=len(self.read()) + 1, at_ns=at_ns, by=by), body)
            if self.try_append(request):
                return request
        raise StoreUnwritable(f"cannot create a request in {self._directory}: other processes keep creating requests")

    def try_append(self, request: Request) -> bool:
        """Publish a request under its number, which is the next one. If another request has the number, return False.

        Raises StoreUnwritable.
        """
        self._files.make_directory(self._directory)
        if request.n == 1:  # Otherwise a power loss could remove the new directory with its first requests.
            self._files.sync_directory(self._directory.parent)
        hidden = self._directory / f".{uuid.uuid4().hex}.tmp"
        self._files.write_new(hidden, encode_request(request))
        try:
            is_created = self._files.create_exclusive(hidden, self._directory / layout.request_name(request.n))
        finally:
            self._files.remove(hidden)
        if is_created:
            self._files.sync_directory(self._directory)
        return is_created

    def _read_request(self, name: str, n: int) -> Request:
        path = self._directory / name
        try:
            return decode_request(read_document_bytes(self._files, path), n)
        except (FileNotFoundError, DocumentError) as error:
            hint = (
                "no new tasks are started until this request can be read; running tasks continue. "
                "To drop the request, remove this file and all later requests"
            )
            raise CorruptFile(str(path), f"is damaged: {error}", hint=hint) from error


def is_cancelled(files: StoreFiles, batch_root: Path) -> bool:
    """Return whether a batch is cancelled as a whole: the last Cancel request is not followed by an Open request.

    Raises StoreCorrupt.
    """
    bodies = [request.body for request in RequestStore(files, batch_root).read()]
    return next((isinstance(body, Cancel) for body in reversed(bodies) if isinstance(body, Cancel | Open)), False)
