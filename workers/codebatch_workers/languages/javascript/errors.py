"""Errors in files of JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.lint.language_errors import LanguageErrors

ERRORS: Mapping[str, LanguageErrors] = {"javascript": LanguageErrors(dialect_mark=b"@flow")}
