"""Errors in files of HTML and Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch_workers.lint.language_errors import LanguageErrors

ERRORS: Mapping[str, LanguageErrors] = {
    "html": LanguageErrors(
        declared_encoding=re.compile(rb"charset\s*=\s*[\"']?([\w.-]+)", re.IGNORECASE), has_right_to_left_text=True
    ),
    "markdown": LanguageErrors(has_right_to_left_text=True),
}
