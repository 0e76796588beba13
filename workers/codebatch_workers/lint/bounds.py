"""Limits of the findings that lint reports for a file. Importing this module loads no parser and no rules."""

from __future__ import annotations

# The maximum number of findings of one rule in one file. More would not be read.
FINDINGS_MAX = 1000

# Rules whose message contains the name. Only the first finding for each name is reported, because all have the same
# cause.
ONCE_A_NAME = frozenset({"F405", "F821"})

# Rules of which only the first finding in a file is reported.
ONCE_A_FILE = frozenset(
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
