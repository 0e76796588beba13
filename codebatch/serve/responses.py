"""Responses with JSON documents, and the status of each kind of error."""

from __future__ import annotations

from pathlib import Path

import msgspec
from starlette.responses import Response

from codebatch.errors import (
    BatchIncomplete,
    CodebatchError,
    Forbidden,
    InvalidInput,
    NothingToDo,
    StoreUntrusted,
    UnknownCursor,
    UnknownId,
    WrongBatchKind,
)
from codebatch.model.entry import display_path
from codebatch.serve.bodies import Body, LiveError, LiveErrorBody, error_body
from codebatch.serve.watcher import Frame
from codebatch.work.control.logs import OffsetAfterEnd
from codebatch.work.control.questions import NotWaiting

_STATUSES: tuple[tuple[type[CodebatchError], int], ...] = (
    (Forbidden, 403),
    (StoreUntrusted, 403),
    (UnknownId, 404),
    (UnknownCursor, 410),
    (OffsetAfterEnd, 416),
    (WrongBatchKind, 409),
    (NotWaiting, 409),
    (BatchIncomplete, 409),
    (NothingToDo, 409),
    (InvalidInput, 400),
)
"""The status of each kind of error; of several kinds that fit, the first counts. The status of all others is 500."""


def _path_text(value: object) -> str:
    """Return a path as text for display."""
    assert isinstance(value, Path)
    return display_path(bytes(value))


def json_response(body: Body | Frame, status: int = 200) -> Response:
    """Return a response with a JSON document."""
    data = body.encode() if isinstance(body, Frame) else msgspec.json.encode(body, enc_hook=_path_text)
    return Response(data, status, media_type="application/json")


def error_response(error: CodebatchError, status: int | None = None) -> Response:
    """Return the response that describes an error, by default with the status for its kind."""
    if status is None:
        status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return json_response(error_body(error), status)


def internal_error_response() -> Response:
    """Return the response to a request that caused a bug."""
    hint = "please report this bug; the traceback is in the standard error of `codebatch serve`"
    return json_response(
        LiveError(error=LiveErrorBody(code="internal", message="internal error", hint=hint, exit=70)), 500
    )
