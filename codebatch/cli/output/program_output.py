"""Output of the user's programs on a terminal: colours pass, all other control characters are escaped."""

from __future__ import annotations

import re

from codebatch.cli.output.terminal import printable
from codebatch.model.text.color_codes import SGR

LINE_CHARACTERS_MAX = 500
_RESET = "\x1b[0m"
_BEGUN_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;:]*)?\Z")
_OPEN_MAX = 16


class ProgramOutput:
    """The output of one program, line by line.

    A colour that a line leaves on is turned off at the end of the line, and on again in the program's next line. So it
    does not affect other lines.
    """

    def __init__(self, *, is_colored: bool) -> None:
        self._is_colored = is_colored
        self._open: list[str] = []

    def line(self, text: str) -> str:
        """Return a line that is safe on a terminal. Tabs are expanded to spaces."""
        text = text.removesuffix("\r")
        shown = [*self._open]
        columns = at = 0
        for sequence in SGR.finditer(text):
            columns = _show(shown, text[at : sequence.start()], columns)
            at = sequence.end()
            if self._is_colored:
                shown.append(sequence[0])
                self._note(sequence[0])
        _show(shown, text[at:], columns)
        return "".join([*shown, _RESET] if self._open else shown)

    def _note(self, sequence: str) -> None:
        """Update the colours that are on after a sequence. A first parameter of 0, or an empty one, resets all."""
        parameters = sequence[2:-1]
        if not parameters.partition(";")[0].strip("0"):
            self._open = []
        if parameters.strip("0;"):
            self._open = [*self._open, sequence][-_OPEN_MAX:]


def shortened(text: str) -> str:
    """Return at most LINE_CHARACTERS_MAX characters of a line, and the number of omitted characters."""
    omitted = len(text) - LINE_CHARACTERS_MAX
    if omitted <= 0:
        return text
    begin = _BEGUN_SEQUENCE.sub("", text[:LINE_CHARACTERS_MAX])
    return f"{begin}… ({omitted:,} more characters)"


def _show(shown: list[str], text: str, columns: int) -> int:
    """Append text that starts at a column to `shown`. Return the column of its end."""
    before = columns % 8
    spaced = (" " * before + text).expandtabs()[before:] if "\t" in text else text
    shown.append(printable(spaced))
    return columns + len(spaced)
