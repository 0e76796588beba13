"""Select Graphic Rendition, the control sequences by which programs colour what they print (ECMA-48, 8.3.117)."""

from __future__ import annotations

from codebatch.model.text.lazy_patterns import LatePattern

SGR = LatePattern(r"\x1b\[[0-9;:]{0,64}m")
_SGR_BYTES = LatePattern(rb"\x1b\[[0-9;:]{0,64}m")

COLORS_WANTED = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}
"""Variables that make programs colour what they print, though it goes to a pipe (force-color.org, bixense.com)."""
NO_COLORS = "NO_COLOR"


def with_colors_wanted(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment in which programs print colours. Its own values of COLORS_WANTED stay."""
    return {**COLORS_WANTED, **{name: value for name, value in environment.items() if name != NO_COLORS}}


def without_colors(printed: bytes) -> bytes:
    """Return the output of a program without its colours."""
    return _SGR_BYTES.sub(b"", printed) if b"\x1b" in printed else printed
