"""Output of the user's programs on a terminal. Colours are kept, and all other control characters are escaped."""

from __future__ import annotations

import re

from codebatch.cli.output.terminal import printable_line
from codebatch.model.text.color_codes import COLOR_SEQUENCE

LINE_CHARACTERS_MAX = 500
_COLOR_RESET = "\x1b[0m"
_UNFINISHED_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;:]*)?\Z")
_OPEN_SEQUENCES_MAX = 16


class ProgramOutput:
    """The output of one program, line by line.

    If a line ends while a colour is on, the colour is turned off there. It is turned on again in the next line of this
    program. So it does not affect lines of other programs.
    """

    def __init__(self, *, is_colored: bool) -> None:
        self._is_colored = is_colored
        self._open_sequences: list[str] = []

    def printable_line(self, text: str) -> str:
        """Return a line that is safe to print on a terminal. Tabs become spaces."""
        text = text.removesuffix("\r")
        previous_lines = [*self._open_sequences]
        columns = at = 0
        for sequence in COLOR_SEQUENCE.finditer(text):
            columns = _show(previous_lines, text[at : sequence.start()], columns)
            at = sequence.end()
            if self._is_colored:
                previous_lines.append(sequence[0])
                self._note_sequence(sequence[0])
        _show(previous_lines, text[at:], columns)
        return "".join([*previous_lines, _COLOR_RESET] if self._open_sequences else previous_lines)

    def _note_sequence(self, sequence: str) -> None:
        """Record which colours are on after a control sequence.

        A sequence whose first parameter is 0 or empty turns all colours off.
        """
        parameters = sequence[2:-1]
        if not parameters.partition(";")[0].strip("0"):
            self._open_sequences = []
        if parameters.strip("0;"):
            self._open_sequences = [*self._open_sequences, sequence][-_OPEN_SEQUENCES_MAX:]


def shorten_line(text: str) -> str:
    """Return a line with at most LINE_CHARACTERS_MAX characters.

    If it is cut, the number of omitted characters is appended.
    """
    omitted = len(text) - LINE_CHARACTERS_MAX
    if omitted <= 0:
        return text
    begin = _UNFINISHED_SEQUENCE.sub("", text[:LINE_CHARACTERS_MAX])
    return f"{begin}… ({omitted:,} more characters)"


def _show(lines: list[str], text: str, columns: int) -> int:
    """Append a piece of a line to `lines`, with tabs expanded and control characters escaped.

    `columns` is the column at which the piece begins. Return the column at which it ends.
    """
    before = columns % 8
    spaced = (" " * before + text).expandtabs()[before:] if "\t" in text else text
    lines.append(printable_line(spaced))
    return columns + len(spaced)
