"""Results of a search in one file."""

from __future__ import annotations

import msgspec

from codebatch.model.task import Json


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """The matches in a file as JSON objects, or only their number if the caller asked for a count.

    `unread` is the reason why the file was not searched, `lost` the reason why the result is unknown. `has_errors`
    means that the grammar could not parse the whole file, so matches in the rest may be missing.
    """

    rows: tuple[dict[str, Json], ...] = ()
    places: int = 0
    unread: str = ""
    lost: str = ""
    has_errors: bool = False
