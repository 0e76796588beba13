"""Shortcuts for the start of a process."""

from __future__ import annotations

import sys

_BACKPORTS = "typing_extensions"


def import_msgspec() -> None:
    """Import msgspec without typing_extensions.

    If typing_extensions is installed, msgspec imports it even if `typing` has all that it needs (Python 3.11). That
    import is a third of the time in which Python starts with msgspec.
    """
    if sys.version_info < (3, 11) or not {_BACKPORTS, "msgspec"}.isdisjoint(sys.modules):
        return
    sys.modules[_BACKPORTS] = None  # None in sys.modules makes an import fail, as if the package were not installed.
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[_BACKPORTS]
