"""What the command line says of itself holds."""

from __future__ import annotations

from codebatch.cli.interface import ANSWERS

from .test_help import command_of, every_command

NOT_OF_COMMANDS = {"batch-outputs", "error", "files-why", "graph-cycles", "graph-dot", "part", "verify-trust"}
WITHOUT_JSON_OF_OURS = {"ast"}
"""What they answer is whole as it comes: a syntax tree."""


def test_every_command_has_an_answer_with_a_schema() -> None:
    same: dict[int, str] = {}
    for words in every_command():
        command = command_of(words)
        if not hasattr(command, "commands") and words:
            same.setdefault(id(command), "-".join(words))
    assert set(same.values()) == (ANSWERS.keys() - NOT_OF_COMMANDS) | WITHOUT_JSON_OF_OURS
