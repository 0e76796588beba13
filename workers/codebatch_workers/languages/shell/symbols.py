"""Definitions and names of Bash and Zsh."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.shell.inner_names import is_argument, is_in_command
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime

_SHELL = LanguageSymbols(
    capitals_are_constants=True,
    inner_names={"raw_string": is_in_command, "string_content": is_in_command, "word": is_argument},
    load_time=LoadTime(function_nodes=frozenset({"function_definition"})),
)
SYMBOLS: Mapping[str, LanguageSymbols] = {"bash": _SHELL, "zsh": _SHELL}
