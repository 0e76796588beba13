"""IDs given by users. They are validated before they become part of a path, then resolved to one known ID."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codebatch.errors import AmbiguousId, InvalidId, NotInStore

_REFERENCE_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")
_LATEST_REFERENCE = re.compile(r"latest(?:~(\d{1,6}))?\Z", re.ASCII)

CANDIDATES_SHOWN_MAX = 10

SkipCallback = Callable[[str], None]
"""A callback that is called with a message for each file, line or batch that is skipped because it cannot be read."""


def latest_offset(reference: str) -> int | None:
    """Return N of a reference `latest~N`, 0 for `latest`, and None for any other reference."""
    match = _LATEST_REFERENCE.match(reference)
    return int(match[1] or 0) if match else None


def resolve_prefix(reference: str, known: Sequence[str], *, noun: str, prefix: str) -> str:
    """Return the one ID in `known` that a reference names in full or by a unique prefix.

    The reference may omit `prefix`: `2026` names `batch-2026…`. `noun` names the kind of ID in errors. Raises
    InvalidId, UnknownId or AmbiguousId.
    """
    if not _REFERENCE_PATTERN.match(reference):
        raise InvalidId(
            f"{reference!r} is not a valid {noun} id",
            hint=f"ids consist of letters, digits, '-' and '_'; see: codebatch {noun} list",
        )
    if reference in known:
        return reference
    matches = [id_ for id_ in known if id_.startswith((reference, prefix + reference))]
    if not matches:
        raise NotInStore(noun, reference)
    if len(matches) > 1:
        candidates_text = ", ".join(matches[:CANDIDATES_SHOWN_MAX])
        raise AmbiguousId(f"{reference!r} matches {len(matches)} {noun} ids", hint=f"one of: {candidates_text}")
    return matches[0]
