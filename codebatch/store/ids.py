"""Ids from outside: validated before any path is made of them, then resolved by unique prefix or `latest`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codebatch.errors import AmbiguousId, InvalidId, NotInStore

_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")
_LATEST = re.compile(r"latest(?:~(\d{1,6}))?\Z", re.ASCII)

CANDIDATES_SHOWN_MAX = 10

PassedOver = Callable[[str], None]
"""Told of each thing that cannot be read while another one is looked for, in a sentence for people."""


def latest_offset(reference: str) -> int | None:
    """How many steps back `latest~N` goes; None where the reference is no `latest`."""
    match = _LATEST.match(reference)
    return int(match[1] or 0) if match else None


def resolve_prefix(reference: str, known: Sequence[str], *, noun: str, prefix: str) -> str:
    """The one known id that a reference names: in full, or by a unique prefix with or without `prefix`.

    Raises InvalidId, UnknownId or AmbiguousId.
    """
    if not _REFERENCE.match(reference):
        raise InvalidId(
            f"{reference!r} is not a valid {noun} id",
            hint=f"ids consist of letters, digits, '-' and '_'; see: codebatch {noun} list",
        )
    if reference in known:
        return reference
    found = [id_ for id_ in known if id_.startswith((reference, prefix + reference))]
    if not found:
        raise NotInStore(noun, reference)
    if len(found) > 1:
        shown = ", ".join(found[:CANDIDATES_SHOWN_MAX])
        raise AmbiguousId(f"{reference!r} matches {len(found)} {noun} ids", hint=f"one of: {shown}")
    return found[0]
