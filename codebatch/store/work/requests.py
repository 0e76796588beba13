"""Requests on disk: write-once files in a work batch's `requests/`, numbered from 1 by link(2) (SPEC.md "Requests")."""

from __future__ import annotations

import uuid
from pathlib import Path

from codebatch.errors import CorruptFile, StoreUnwritable
from codebatch.model.documents import DocumentError
from codebatch.model.work.request import Cancel, Open, Request, RequestBody, RequestHead, decode_request, encode_request
from codebatch.store import layout
from codebatch.store.documents import read_document_bytes
from codebatch.system.files.files import Files

ATTEMPTS_MAX = 1000


class Requests:
    """The requests of one work batch: what was read before is not read again."""

    def __init__(self, files: Files, batch_root: Path) -> None:
        self._files = files
        self._directory = batch_root / layout.REQUESTS
        self._known: list[Request] = []
        self._awaited = self._directory / layout.request_name(1)

    def read(self) -> list[Request]:
        """All requests, in order, up to the first number that is not there. Raises StoreCorrupt for one unreadable.

        They are on disk on return: whoever acts on one may rely on it.
        """
        if self._files.size(self._awaited) is None:
            return self._known  # To look for one name takes less than to list those that there are.
        names = self._files.listing(self._directory)
        before = len(self._known)
        while (name := layout.request_name(len(self._known) + 1)) in names:
            self._known.append(self._read(name, len(self._known) + 1))
        if len(self._known) > before:
            self._awaited = self._directory / name
            self._files.sync_directory(self._directory)
        return self._known

    def append(self, body: RequestBody, *, by: str, at_ns: int) -> Request:
        """Make a request the next one. On return it is on disk. Raises StoreUnwritable, StoreCorrupt."""
        self._files.make_directory(self._directory)
        hidden = self._directory / f".{uuid.uuid4().hex}.tmp"
        for _ in range(ATTEMPTS_MAX):
            request = Request(RequestHead(n=len(self.read()) + 1, at_ns=at_ns, by=by), body)
            self._files.write_new(hidden, encode_request(request))
            try:
                is_ours = self._files.create_exclusive(hidden, self._directory / layout.request_name(request.n))
            finally:
                self._files.remove(hidden)
            if is_ours:
                self._files.sync_directory(self._directory)
                return request
        raise StoreUnwritable(f"cannot create a request in {self._directory}: other processes keep creating requests")

    def _read(self, name: str, n: int) -> Request:
        path = self._directory / name
        try:
            return decode_request(read_document_bytes(self._files, path), n)
        except (FileNotFoundError, DocumentError) as error:
            hint = (
                "no new tasks are started until this request can be read; running tasks continue. "
                "To drop the request, remove this file and all later requests"
            )
            raise CorruptFile(str(path), f"is damaged: {error}", hint=hint) from error


def is_cancelled(files: Files, batch_root: Path) -> bool:
    """Whether a Cancel of all of a batch stands, of an analysis: no Open came behind it. Raises StoreCorrupt."""
    bodies = [request.body for request in Requests(files, batch_root).read()]
    return next((isinstance(body, Cancel) for body in reversed(bodies) if isinstance(body, Cancel | Open)), False)
