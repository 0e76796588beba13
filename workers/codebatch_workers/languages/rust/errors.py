"""Errors in files of Rust."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.lint.language_errors import LanguageErrors

ERRORS: Mapping[str, LanguageErrors] = {"rust": LanguageErrors(requires_utf8=True)}
