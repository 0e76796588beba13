"""The fingerprint `codebatch/v1`. Other programs use it to recognise a finding in later runs (SPEC.md "Exports").

It contains neither path nor line number. So it stays the same if a file is moved, or if lines above the finding are
added or removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from codebatch.compare.matching.findings import MatchableFinding

TEXT_BYTES_MAX = 4096
"""The maximum number of bytes of a line that are hashed, because minified files have very long lines."""
_FINGERPRINT_DIGITS = 32


def fingerprints(findings: Sequence[MatchableFinding]) -> list[str]:
    """Return the fingerprint of each finding of a file: 32 hex digits. No two findings get the same fingerprint."""
    numbers: Counter[tuple[str, str, str, bytes]] = Counter()
    digests = [""] * len(findings)
    for index in sorted(range(len(findings)), key=lambda index: (findings[index].line, findings[index].column, index)):
        finding = findings[index]
        key = finding.tool, finding.code, finding.scope, finding.text[:TEXT_BYTES_MAX]
        numbers[key] += 1
        words = (finding.tool.encode(), finding.code.encode(), finding.scope.encode(), key[3], b"%d" % numbers[key])
        digests[index] = sha256(b"\0".join(words)).hexdigest()[:_FINGERPRINT_DIGITS]
    return digests
