"""Results of a search in one file."""

from __future__ import annotations

import msgspec

from codebatch.model.task import JsonValue


class FileSearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The matches in a file: `rows` as JSON objects, or only their number in `places` if the caller asked for a count.

    - `unread`: the reason why the file was not searched, or empty.
    - `lost`: the reason why the result is unknown, or empty.
    - `has_errors`: the grammar could not parse the whole file, so matches in the unparsed part may be missing.
    """

    rows: tuple[dict[str, JsonValue], ...] = ()
    places: int = 0
    unread: str = ""
    lost: str = ""
    has_errors: bool = False
