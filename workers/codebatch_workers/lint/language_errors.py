"""Facts about the errors in files of a language: who finds them, and which text is one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from codebatch_workers.syntax.language.parts import LanguagePart, language_part
from codebatch_workers.syntax.source import SourceFile


class LanguageErrors(LanguagePart, frozen=True, kw_only=True):
    """The errors in files of a language.

    - `has_exact_parser`: ruff parses the files, so that errors in their trees do not count.
    - `encoding_problem`: a function that returns the offset of bytes that no parser of the language accepts, and why.
    - `dialect_mark`: text at the beginning of a file in a dialect that the grammar does not support.
    - `requires_utf8`: comments must be valid UTF-8, too.
    - `declared_encoding`: a pattern for the declaration of an encoding that the readers of a file respect.
    - `has_right_to_left_text`: texts for people can be in a language that is written from right to left.
    """

    MODULE: ClassVar[str] = "errors"

    has_exact_parser: bool = False
    encoding_problem: Callable[[SourceFile], tuple[int, str] | None] | None = None
    dialect_mark: bytes = b""
    requires_utf8: bool = False
    declared_encoding: re.Pattern[bytes] | None = None
    has_right_to_left_text: bool = False


def language_errors(language: str) -> LanguageErrors:
    """Return the facts about the errors in files of a language."""
    return language_part(language, LanguageErrors)
