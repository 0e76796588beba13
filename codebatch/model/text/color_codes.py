"""Select Graphic Rendition, the control sequences for colored output (ECMA-48, 8.3.117)."""

from __future__ import annotations

import re

SGR = re.compile(r"\x1b\[[0-9;:]{0,64}m")
_SGR_BYTES = re.compile(rb"\x1b\[[0-9;:]{0,64}m")

COLORS_WANTED = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}
"""Variables that make programs print colors into a pipe (force-color.org, bixense.com)."""
NO_COLORS = "NO_COLOR"


def with_colors_wanted(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment in which programs print colors. Variables of COLORS_WANTED that are set stay."""
    return {**COLORS_WANTED, **{name: value for name, value in environment.items() if name != NO_COLORS}}


def without_colors(output: bytes) -> bytes:
    """Return the output of a program without color codes."""
    return _SGR_BYTES.sub(b"", output) if b"\x1b" in output else output
