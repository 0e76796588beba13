"""Syntax of Lua."""

from __future__ import annotations

from codebatch_workers.languages.lua.declared_names import declared_names
from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX = {
    "lua": LanguageSyntax(
        queries=("lua",),
        declared_names=declared_names,
        comments=("--",),
        parameter_nodes=frozenset({"identifier", "vararg_expression"}),
    )
}
