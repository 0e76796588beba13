"""Errors in files of JSON, TOML and YAML."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.lint.language_errors import LanguageErrors

ERRORS: Mapping[str, LanguageErrors] = {
    "json": LanguageErrors(has_right_to_left_text=True),
    "toml": LanguageErrors(requires_utf8=True),
    "yaml": LanguageErrors(requires_utf8=True, has_right_to_left_text=True),
}
