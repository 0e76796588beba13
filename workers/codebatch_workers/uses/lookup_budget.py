"""A bound on the lookups for one use.

Modules that all re-export each other, or classes that are bases of each other, could need any number of lookups.
"""

from __future__ import annotations

LOOKUPS_MAX = 5_000
"""Maximum number of lookups of definitions for one use. A use that needs more is known by name only."""


class TooManyLookups(Exception):
    """A use needs more than LOOKUPS_MAX lookups, so whatever was found for it may be incomplete."""


class LookupBudget:
    """The lookups that remain for the use that is being resolved."""

    def __init__(self) -> None:
        self._left = LOOKUPS_MAX

    def renew(self) -> None:
        """Begin to resolve another use."""
        self._left = LOOKUPS_MAX

    def spend(self) -> None:
        """Count a lookup. Raises TooManyLookups."""
        self._left -= 1
        if self._left < 0:
            raise TooManyLookups
