"""Control sequences for colored output (Select Graphic Rendition, ECMA-48, 8.3.117): requesting and removing them."""

from __future__ import annotations

import re

COLOR_SEQUENCE = re.compile(r"\x1b\[[0-9;:]{0,64}m")
_COLOR_SEQUENCE_BYTES = re.compile(rb"\x1b\[[0-9;:]{0,64}m")

COLOR_VARIABLES = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}
"""Environment variables that make programs print colors even if their output is a pipe (force-color.org, bixense.com).
"""
NO_COLOR_VARIABLE = "NO_COLOR"


def enable_colors(environment: dict[str, str]) -> dict[str, str]:
    """Return a copy of an environment in which programs print colors.

    Variables of COLORS_WANTED that are already set stay.
    """
    return {**COLOR_VARIABLES, **{name: value for name, value in environment.items() if name != NO_COLOR_VARIABLE}}


def strip_color_codes(output: bytes) -> bytes:
    """Return the output of a program without color codes."""
    return _COLOR_SEQUENCE_BYTES.sub(b"", output) if b"\x1b" in output else output
