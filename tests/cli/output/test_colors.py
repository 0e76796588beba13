"""Colors of severities and paths, and links of paths: used only if enabled, and only for existing files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from codebatch.cli.output.colors import Painter, is_colored, supports_links
from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine

PATH, BOLD, RED, END = "\x1b[35m", "\x1b[1m", "\x1b[31m", "\x1b[0m"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for name in ("src/a.py", "src/with space: and colon.py", "Makefile"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("line", "painted"),
    [
        ("src/a.py:1:2: error E1 text", f"{PATH}src/a.py{END}:1:2: {RED}error{END} E1 text"),
        ("  src/a.py:1: A.b calls c.d", f"  {PATH}src/a.py{END}:1: A.b calls c.d"),
        ("Makefile: make, 3 lines", f"{PATH}Makefile{END}: make, 3 lines"),
        ("     1  src/a.py  src/a.py:3  exact", f"     1  {PATH}src/a.py{END}  {PATH}src/a.py{END}:3  exact"),
        ("2 files: src/a.py -> src/b.py", f"2 files: {PATH}src/a.py{END} -> src/b.py"),
        ("diagnostics  1 error, 2 more", f"diagnostics  1 {RED}error{END}, 2 more"),
        ("error E1  3 in 2 files", f"{RED}error{END} E1  3 in 2 files"),
        ("count  code  severity  finds", "count  code  severity  finds"),
        ("src/b.py:1:2: gone, no error", "src/b.py:1:2: gone, no error"),
        ("/etc/passwd ../up.py:1: src/../a.py", "/etc/passwd ../up.py:1: src/../a.py"),
        ("caf\\xe9.py\\x1b[31m: python", "caf\\xe9.py\\x1b[31m: python"),
        ("\ud800/a.py", "\ud800/a.py"),
        ("", ""),
    ],
)
def test_painter_colors_only_severities_and_existing_paths(tree: Path, line: str, painted: str) -> None:
    assert Painter(os.fsencode(tree), has_links=False)(line) == painted
    assert "\x1b[35m" not in Painter(None, has_links=False)(line)


def test_link_contains_host_and_file_and_its_text_shows_the_line(tree: Path) -> None:
    (tree / "src" / "ü%.py").touch()
    painted = Painter(os.fsencode(tree), has_links=True)("src/ü%.py:7: A.b")
    url = f"file://{os.uname().nodename}{tree}/src/%C3%BC%25.py"
    assert painted == f"\x1b]8;;{url}\x1b\\{PATH}src/ü%.py{END}:7\x1b]8;;\x1b\\: A.b"


@pytest.mark.parametrize(
    ("color", "environment", "expected"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("auto", {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color_option_overrides_environment_which_overrides_terminal(
    monkeypatch: pytest.MonkeyPatch, color: str, environment: dict[str, str], expected: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(os, "environ", {"TERM": "xterm", **environment})
    assert is_colored(color) == expected  # type: ignore[arg-type]  # one of the literals


@pytest.mark.parametrize(
    ("term", "is_terminal", "expected"), [("xterm", True, True), ("xterm", False, False), ("linux", True, False)]
)
def test_links_are_enabled_only_for_terminals_that_support_them(
    monkeypatch: pytest.MonkeyPatch, term: str, is_terminal: bool, expected: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("TERM", term)
    assert supports_links() == expected


@pytest.mark.parametrize(
    "command",
    ["errors", "summary", "top --by path", "inspect src/main.py", "files", "references Main", "def Main", "graph"],
)
def test_every_reading_command_obeys_the_color_options(ran: Ran, command: str) -> None:
    """`always` applies in a pipe too, but without links. `never` and `--no-color` override FORCE_COLOR."""
    words = (*command.split(), "--store", "store")
    plain = ran.codebatch(*words)
    assert b"\x1b" not in plain.stdout
    painted = ran.codebatch("--color", "always", *words).text
    assert re.sub(r"\x1b\[\d+m", "", painted) == plain.text
    forced = CommandLine(ran.codebatch.directory, {"FORCE_COLOR": "1"})
    assert forced(*words, "--color", "never").text == forced("--no-color", *words).text == plain.text


def test_reading_commands_color_paths_and_severities(ran: Ran) -> None:
    for command in ("errors", "top --by path", "inspect src/main.py", "files", "references Main"):
        assert PATH in ran.codebatch(*command.split(), "--color", "always", "--store", "store").text, command
    assert RED in ran.codebatch("errors", "--color", "always", "--store", "store").text
