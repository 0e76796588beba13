"""Syntax of HCL, JSON, SQL, TOML and YAML."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.names import names_by_field

SYNTAX: Mapping[str, LanguageSyntax] = {
    "hcl": LanguageSyntax(
        is_data=True,
        queries=("hcl",),
        declared_names=names_by_field,
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
        declared_names=names_by_field,
        name_marks=(b'"', b"`", b"["),
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
