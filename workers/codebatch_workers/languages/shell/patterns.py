"""Patterns and rewrites of Bash and Zsh."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.patterns.language_patterns import CodeLiteral, LanguagePatterns, RuleExample


def _find_forbidden(code: bytes, literal: bytes, _contexts: Mapping[str, bytes]) -> str:
    is_in_backquotes = literal.startswith(b"`") and (b"`" in code or b"\\" in code)
    return "a backslash or ` there" if is_in_backquotes else ""


_SHELL = LanguagePatterns(
    example=RuleExample("eval $$$", "eval runs what it is given", 'eval "$1"\n', 'echo "$1"\n'),
    stand_ins=("{n}", "{n}|;"),
    blocks=frozenset(
        {
            "program",
            "compound_statement",
            "subshell",
            "do_group",
            "if_statement",
            "elif_clause",
            "else_clause",
            "case_item",
        }
    ),
    expressions=frozenset({"compound_statement", "function_definition"}),
    has_words=True,
    literal=CodeLiteral("command_substitution", _find_forbidden, text_types=frozenset()),
)

PATTERNS = {"bash": _SHELL, "zsh": _SHELL}
