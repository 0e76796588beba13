"""How much lint tells of a file. Importing this loads no parser and no rules."""

from __future__ import annotations

# Findings of one rule in one file: nobody reads more of them one by one.
FINDINGS_MAX = 1000

# Of these a message says which name is meant, and is told where that is met first: all others have the same cause.
ONCE_A_NAME = frozenset({"F405", "F821"})

# These are told where they are met first.
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
