"""Invisible characters, and characters that control a terminal, are shown as escape sequences."""

from __future__ import annotations

import json
import os
import re
import sys
import tty
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.cli.output import streams
from codebatch.cli.output.terminal import escape_controls, printable_line


def test_control_format_and_separator_characters_are_escaped() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    # Python knows only the characters that its Unicode version assigns.
    hidden = [char for char in every if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")]
    assert [char for char in hidden if not re.fullmatch(r"\\(n|r|t|x..|u.{4}|U.{8})", printable_line(char))] == []


def test_printable_leaves_visible_characters_unchanged() -> None:
    text = "Grüße, Мир, 世界, עברית, देवनागरी, é, 🙂, a b"
    assert printable_line(text) == text


def test_printable_shows_a_zero_width_space() -> None:
    assert printable_line("ad\u200bmin.py") == "ad\\u200bmin.py"


@given(st.text())
def test_harmless_passes_only_tabs_and_line_ends_of_control_characters(text: str) -> None:
    shown = escape_controls(text)
    assert printable_line(shown.replace("\r\n", "").replace("\n", "").replace("\t", "")) == re.sub(
        r"\r\n|\n|\t", "", shown
    )
    assert escape_controls(shown) == shown
    if printable_line(text) == text:
        assert shown == text


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_made_harmless_decodes_to_the_same_value(value: object) -> None:
    written = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    assert json.loads(escape_controls(written, in_json=True)) == value


def test_stream_to_a_terminal_passes_no_foreign_control_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for text, lines, and bytes that split a character. Control sequences of codebatch itself pass."""
    controller, terminal = os.openpty()
    tty.setraw(terminal)
    with monkeypatch.context() as patched:
        patched.setattr(streams, "STDOUT_DESCRIPTOR", terminal)
        patched.setattr(sys, "stdout", sys.stdout)
        patched.setattr(sys, "stderr", sys.stderr)
        streams.set_up_streams()
        print("a\x1b[2Jb\tc")
        sys.stdout.writelines(["d\x9b\n", "e\r\n"])
        sys.stdout.flush()
        for piece in (b'"f\x1b', "g\u202e".encode()[:2], "g\u202e".encode()[2:], b'\xff"\n'):
            sys.stdout.buffer.write(piece)
        streams.write_with_colors(sys.stdout, "\x1b[31mh\x1b[0m\n")
        sys.stdout.flush()
    expected = "a\\x1b[2Jb\tc\nd\\x9b\ne\r\n" + '"f\\u001bg\\u202e\\xff"\n' + "\x1b[31mh\x1b[0m\n"
    sent = b""
    while len(sent) < len(expected):
        sent += os.read(controller, 4096)
    for descriptor in (controller, terminal):
        os.close(descriptor)
    assert sent.decode() == expected
