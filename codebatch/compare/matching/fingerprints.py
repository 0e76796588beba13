"""`codebatch/v1`: by what other programs know a finding again from one run to the next (SPEC.md "Exports").

Neither its path nor its line is in it. So it holds while a file is moved, and while lines come and go above.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from codebatch.compare.matching.findings import MatchableFinding

NAME = "codebatch/v1"
TEXT_BYTES_MAX = 4096
"""Of the text of a line: what is minified stands in one of millions."""
_DIGITS = 32


def fingerprints(found: Sequence[MatchableFinding]) -> list[str]:
    """The fingerprint of each finding of one file, 32 hex digits; no two are alike."""
    numbers: Counter[tuple[str, str, str, bytes]] = Counter()
    told = [""] * len(found)
    for index in sorted(range(len(found)), key=lambda index: (found[index].line, found[index].column, index)):
        one = found[index]
        key = one.tool, one.code, one.scope, one.text[:TEXT_BYTES_MAX]
        numbers[key] += 1
        words = (one.tool.encode(), one.code.encode(), one.scope.encode(), key[3], b"%d" % numbers[key])
        told[index] = sha256(b"\0".join(words)).hexdigest()[:_DIGITS]
    return told
