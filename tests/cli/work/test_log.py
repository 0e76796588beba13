"""Logs of tasks, on a terminal and in a pipe (SPEC.md "Work commands")."""

from __future__ import annotations

import json

from tests.cli.terminal import on_a_terminal
from tests.cli.work.test_work import line, make_list
from tests.support.command_line import CommandLine

__all__ = ["line"]

PRINTED = "\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b[2J\n"
PRINT = "printf '\\033]0;title\\007\\033[31mred\\033[0m\\033[2J\\n'"
ESCAPED = "\\x1b]0;title\\x07\x1b[31mred\x1b[0m\\x1b[2J\r\n"
"""The text as a terminal receives it, with CR LF instead of LF."""


def test_log_is_escaped_on_a_terminal_and_unchanged_in_a_pipe(line: CommandLine) -> None:
    make_list(line, {"a": f"run = {json.dumps(PRINT + '; exit 1')}"})
    line("work", "run", status=3)
    for words, mark in ((("a",), ""), ((), "[a] ")):
        assert on_a_terminal(line, "work", "log", *words)[0] == mark + ESCAPED
        assert on_a_terminal(line, "work", "log", *words, "--raw")[0] == mark + PRINTED.replace("\n", "\r\n")
        plain = on_a_terminal(line, "work", "log", *words, "--color", "never")[0]
        assert plain == mark + ESCAPED.replace("\x1b[31m", "").replace("\x1b[0m", "")
        assert line("work", "log", *words, "--color", "always").stdout.decode() == mark + PRINTED


def test_task_colors_are_requested_and_shown_if_colors_are_enabled(line: CommandLine) -> None:
    """Variables that the caller or the task sets are not changed."""
    shown = PRINT + '; echo "$FORCE_COLOR $CLICOLOR_FORCE${NO_COLOR-}"'
    make_list(line, {"a": f"run = {json.dumps(shown)}", "b": "run = 'echo $FORCE_COLOR'\nenv.FORCE_COLOR = '3'"})
    line.environment["NO_COLOR"] = "no"
    notes = line("work", "run", "--output", "all", "--color", "always").notes
    assert "[a] \\x1b]0;title\\x07\x1b[31mred\x1b[0m\\x1b[2J\n[a] 1 1\n" in notes
    assert "[b] 3\n" in notes
    line.environment["NO_COLOR"] = ""
    sent, _ = on_a_terminal(line, "work", "run", "--output", "all", shown="stderr")
    assert "\x1b[31mred\x1b[0m\\x1b[2J" in sent
    assert "[a] 1 1" in sent
    notes = line("work", "run", "--output", "all").notes
    assert "[a] \\x1b]0;title\\x07red\\x1b[2J\n[a]  \n" in notes


def test_long_output_line_of_a_failure_is_cut(line: CommandLine) -> None:
    make_list(line, {"a": "run = 'head -c 9000 /dev/zero | tr \\\\0 x; exit 1'"})
    assert "\n        " + "x" * 500 + "… (8,500 more characters)\n" in line("work", "run", status=3).notes
