"""Syntax of HCL, JSON, SQL, TOML and YAML."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "hcl": LanguageSyntax(is_data=True),
    "json": LanguageSyntax(is_data=True),
    "jsonc": LanguageSyntax(is_data=True),
    "sql": LanguageSyntax(is_approximate=True),
    "toml": LanguageSyntax(is_data=True),
    "yaml": LanguageSyntax(is_data=True),
}
