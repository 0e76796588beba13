"""Syntax of HCL, JSON, SQL, TOML and YAML."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "hcl": LanguageSyntax(
        is_data=True,
        queries=("hcl",),
    ),
    "json": LanguageSyntax(
        is_data=True,
        queries=("json",),
    ),
    "jsonc": LanguageSyntax(
        is_data=True,
        queries=("json",),
    ),
    "sql": LanguageSyntax(
        is_approximate=True,
        queries=("sql",),
    ),
    "toml": LanguageSyntax(
        is_data=True,
        queries=("toml",),
    ),
    "yaml": LanguageSyntax(
        is_data=True,
        queries=("yaml",),
    ),
}
