"""Lines that linters print beside their findings: summaries, headings, and lines that belong to a finding.

A report in lines is understood if each other line is a finding. So each expression describes a whole line of known
programs: a line is never taken for a summary because of a single word.
"""

from __future__ import annotations

import re

_NOUN = r"(?:errors?|warnings?|problems?|issues?|violations?|offenses?|suggestions?|informations?|hints?|files?)"
_COUNTED = rf"(?:\d+|no) (?:\w+ )?{_NOUN}"
_SUMMARY = (
    rf"\W*(?:Found |Total: |Checked |Summary: )?{_COUNTED}(?:(?:, | and |, and | in | / | from | \(){_COUNTED}\)?)*"
    r"(?: (?:found|generated|inspected|checked|emitted))?(?: in \d[\d.]* ?m?s)?[.!:]?"
)
_BANNERS = (
    _SUMMARY,
    r"\d+",  # flake8 --count
    r"Success: no issues found in \d+ source files?",  # mypy
    r"Found \d+ errors? in \d+ files? \((?:errors prevented further checking|checked \d+ source files?)\)",
    r"All checks passed!|\[\*\] .+ fixable .+",  # ruff
    r"\*{5,} Module \S+|Your code has been rated at .+",  # pylint
    r"Checking \S+ +(?:OK|\d+ warnings?)|Checking \S+ \.\.\.|\d+/\d+ files checked .+",  # luacheck, cppcheck
    r"\d+ files? inspected, .+ detected.*",  # rubocop
    r"compilation terminated\.|Suppressed \d+ warnings .+|Use -(?:header-filter|system-headers)[= ].+",  # gcc, clang
    r"No syntax errors detected in .+|.+ syntax OK|Syntax OK",  # php, perl, ruby
    r"# \S+",  # go vet
    r"\* \w+: \d+",  # golangci-lint
    r"(?:Passed|Failed): \d+ failure\(s\), .+",  # ansible-lint
    r"markdownlint-cli2 v.+|Finding: .+|Linting: \d+ file.+|Summary: \d+ error.+",
    r"Linting .+ \(\d+/\d+\)|Done linting! .+",  # swiftlint
)
_CONTEXTS = (
    r"(?:In file included )?from .+[,:]",
    r".+: In (?:\w+ )*(?:function|constructor|destructor|instantiation|substitution)\b.*:",
    r".+: At (?:top level|global scope|end of source):",
)
_KNOWN_LINE = re.compile("|".join((*_BANNERS, *_CONTEXTS)), re.IGNORECASE)
_MARK = re.compile(r"[\s|]*[~^][\s~^-]*(?:[~^].*)?")
_LETTER = re.compile(r"[^\W_]")


def is_banner_line(line: str, next_line: str, *, follows_finding: bool) -> bool:
    """Return whether a line without a finding is known to report no problem.

    `follows_finding`: only such lines are between the last finding and this line. Then an indented line belongs to this
    finding, as does a line of code that `next_line` marks.
    """
    if not _LETTER.search(line):
        return True
    if follows_finding and (line[0].isspace() or _MARK.fullmatch(next_line) is not None):
        return True
    return _KNOWN_LINE.fullmatch(line.strip()) is not None
