"""Errors in files of Go."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.lint.language_errors import LanguageErrors

ERRORS: Mapping[str, LanguageErrors] = {"go": LanguageErrors(requires_utf8=True)}
