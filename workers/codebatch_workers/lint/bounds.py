"""Limits on the findings that lint reports for a file. This module imports no parser and no rules."""

from __future__ import annotations

# The maximum number of findings of one rule in one file. Users do not read more.
FINDINGS_PER_FILE_MAX = 1000

# Rules whose message contains a name. All findings of a rule for one name have the same cause, so only the first one is
# reported.
CODES_ONCE_PER_NAME = frozenset({"F405", "F821"})

# Rules that report only their first finding in a file.
CODES_ONCE_PER_FILE = frozenset(
    {
        "byte-order-mark",
        "invalid-encoding",
        "lone-carriage-return",
        "missing-final-newline",
        "mixed-line-endings",
        "nul-character",
        "private-key",
        "shebang-not-executable",
    }
)
