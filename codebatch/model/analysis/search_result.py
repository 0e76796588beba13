"""What looking for something in one file came to."""

from __future__ import annotations

import msgspec

from codebatch.model.task import Json


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """The places in it, as JSON has them, or how many they are where that was asked.

    `unread` says why nothing could be looked for, and `lost` why it is not known what there is. `has_errors`: the
    grammar cannot read all of it, and in the rest there may be more.
    """

    rows: tuple[dict[str, Json], ...] = ()
    places: int = 0
    unread: str = ""
    lost: str = ""
    has_errors: bool = False
