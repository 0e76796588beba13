"""The language-neutral rules of lint. Each rule searches the bytes of a file and yields byte offsets.

Rules about style skip generated, minified and vendored files, because developers do not edit these.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from codebatch.model.record import Severity
from codebatch_workers.lint.rule import RuleMatch, TextRule
from codebatch_workers.lint.settings import TodoPolicy
from codebatch_workers.lint.suppression_rules import SUPPRESSION_RULES
from codebatch_workers.lint.unused import shadowed_names, unused_imports, unused_variables
from codebatch_workers.syntax.language.languages import TEMPLATE_LANGUAGES, has_grammar
from codebatch_workers.syntax.source import SourceFile

HUGE_LINE_BYTES_MIN = 10_000

_BIDI_CONTROL = re.compile(rb"\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
# Control characters that hardly occur in text. In random data, about every tenth byte is one of them.
_CONTROL_CHARACTER = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f]")
_BYTES_PER_CONTROL_MIN = 50
_EXAMINED_BYTES_MAX = 8192
# The header of a private key. A line end must follow, or the escape sequence of one in a string literal. After this,
# base64 or a second header must follow.
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"[ \t\"'+,;]{0,8}(?:\\r)?(?:\\n|\r?\n)[\s\"'+\\]{0,64}[A-Za-z0-9+/=]{4,}(?![\w.(\[])"
)
# A key with fewer characters, or with fewer different characters, is a placeholder. The shortest real key, of Ed25519,
# has 64 characters.
_KEY_CHARACTERS_MIN = 60
_KEY_DIFFERENT_MIN = 10
_KEY_BYTES_MAX = 32_768
_KEY_PART = re.compile(rb"[A-Za-z0-9+/=]{16,}")
_TRAILING_BLANKS = re.compile(rb"[ \t]+(?=\r?(?:\n|\Z))")
_LINE_END = re.compile(rb"\r?\n")
_MIXED_INDENT = re.compile(rb"^(?: +\t|\t+ +\t)[ \t]*", re.MULTILINE)

# Languages whose text may run from right to left.
_RIGHT_TO_LEFT_TEXT_LANGUAGES = TEMPLATE_LANGUAGES | {
    "csv", "gettext", "properties", "rst", "svg", "text", "tsv", "xml"
}  # fmt: skip
# Finds bytes that could not be decoded.
_REPLACEMENT_CHARACTER = re.compile("\N{REPLACEMENT CHARACTER}".encode())


def _merge_conflict(file: SourceFile) -> Iterator[RuleMatch]:
    utf8 = file.utf8
    position = 0
    while True:
        start = utf8.find(b"<<<<<<< ", position)
        middle = utf8.find(b"\n=======", start)
        end = utf8.find(b"\n>>>>>>> ", middle)
        if min(start, middle, end) < 0:
            return
        line_end = utf8.find(b"\n", end + 1)
        position = line_end if line_end >= 0 else len(utf8)
        if start == 0 or utf8[start - 1] == 0x0A:
            yield start, start + 7, "merge conflict left in the file"


def _invalid_encoding(file: SourceFile) -> Iterator[RuleMatch]:
    """Yield a finding if a file has bytes that are invalid in its encoding.

    A file in a language without a grammar has no such finding. Its encoding may be known to its readers, or declared in
    the file.
    """
    if not file.encoding_problem or not _is_decoded_by_parser(file) or _is_likely_binary(file.content):
        return
    rules = file.syntax
    if not rules.requires_utf8 and _has_errors_only_in_comments(file):
        return
    declaration = rules.encoding_declaration
    declared = None if declaration is None else declaration.search(file.content, 0, _EXAMINED_BYTES_MAX)
    if declared is None or declared[1].lower() in (b"utf-8", b"utf8"):
        yield 0, 0, file.encoding_problem


def _has_errors_only_in_comments(file: SourceFile) -> bool:
    comments = file.captures.get("comment", ())
    starts = [node.start_byte for node in comments]
    for match in _REPLACEMENT_CHARACTER.finditer(file.utf8):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or comments[before].end_byte <= match.start():
            return False
    return bool(comments)


def _is_decoded_by_parser(file: SourceFile) -> bool:
    return not file.syntax.is_prose and has_grammar(file.language)


def _is_likely_binary(content: bytes) -> bool:
    """Return whether content with invalid bytes is probably binary data, because it has many control characters."""
    looked_at = content[:_EXAMINED_BYTES_MAX]
    return len(_CONTROL_CHARACTER.findall(looked_at)) * _BYTES_PER_CONTROL_MIN > len(looked_at)


def _nul_character(file: SourceFile) -> Iterator[RuleMatch]:
    if _is_decoded_by_parser(file):
        offset = file.utf8.index(b"\0")
        yield offset, offset + 1, "NUL character in a text file"


def _bidi_control(file: SourceFile) -> Iterator[RuleMatch]:
    has_such_text = file.language in _RIGHT_TO_LEFT_TEXT_LANGUAGES or (file.syntax.has_right_to_left_text)
    if has_such_text or file.file_class == "minified":
        return
    for match in _BIDI_CONTROL.finditer(file.utf8):
        code_point = ord(match[0].decode("utf-8"))
        yield (
            match.start(),
            match.end(),
            f"bidirectional control U+{code_point:04X}: the code may not do what it appears to",
        )


def _private_key(file: SourceFile) -> Iterator[RuleMatch]:
    first, *more = [*(match for match in _PRIVATE_KEY.finditer(file.utf8) if _is_private_key(file.utf8, match)), None]
    if first is not None:
        count = f"{len(more)} private keys in this file, the first" if len(more) > 1 else "private key in the project"
        yield first.start(), first.start() + first[0].index(b"-----", 5) + 5, count


def _is_private_key(utf8: bytes, head: re.Match[bytes]) -> bool:
    """Return whether the text after the header of a private key is long and varied enough for a real key.

    Examples in documentation are shorter.
    """
    start = head.start() + head[0].index(b"-----", 5) + 5
    end = utf8.find(b"-----END", start, start + _KEY_BYTES_MAX)
    body = b"".join(_KEY_PART.findall(utf8, start, end))
    return end >= 0 and len(body) >= _KEY_CHARACTERS_MIN and len(set(body)) >= _KEY_DIFFERENT_MIN


def _mixed_line_endings(file: SourceFile) -> Iterator[RuleMatch]:
    utf8 = file.utf8
    crlf = utf8.count(b"\r\n")
    if crlf and crlf != utf8.count(b"\n"):
        first = utf8.find(b"\n")
        is_crlf = utf8[first - 1 : first] == b"\r"
        other = next(match for match in _LINE_END.finditer(utf8) if (len(match[0]) == 2) != is_crlf)
        expected, actual = ("CRLF", "LF") if is_crlf else ("LF", "CRLF")
        yield other.start(), other.start(), f"line ends with {actual}, but the first line of the file with {expected}"


def _lone_carriage_return(file: SourceFile) -> Iterator[RuleMatch]:
    utf8 = file.utf8
    if utf8.count(b"\r") != utf8.count(b"\r\n"):
        match = re.search(rb"\r(?!\n)", utf8)
        assert match is not None
        yield match.start(), match.start() + 1, "carriage return without a line feed"


def _shebang_not_executable(file: SourceFile) -> Iterator[RuleMatch]:
    if not file.executable and file.utf8.startswith(b"#!/"):
        end = file.utf8.find(b"\n")
        yield 0, end if end >= 0 else len(file.utf8), "script with an interpreter line is not executable"


def _byte_order_mark(file: SourceFile) -> Iterator[RuleMatch]:
    if file.content.startswith(b"\xef\xbb\xbf"):
        yield 0, 0, "byte order mark in a UTF-8 file"


def _huge_line(file: SourceFile) -> Iterator[RuleMatch]:
    starts = [*file.line_starts, len(file.utf8) + 1]
    for start, after in pairwise(starts):
        if after - start > HUGE_LINE_BYTES_MIN:
            yield start, after - 1, f"line of {after - start - 1} bytes"


def _missing_final_newline(file: SourceFile) -> Iterator[RuleMatch]:
    if not file.utf8.endswith(b"\n"):
        yield len(file.utf8), len(file.utf8), "no newline at end of file"


def _trailing_whitespace(file: SourceFile) -> Iterator[RuleMatch]:
    for match in _TRAILING_BLANKS.finditer(file.utf8):
        yield match.start(), match.end(), "trailing whitespace"


def _mixed_indentation(file: SourceFile) -> Iterator[RuleMatch]:
    for match in _MIXED_INDENT.finditer(file.utf8):
        yield match.start(), match.end(), "spaces before tabs in the indentation"


def todo_finder(policy: TodoPolicy) -> Callable[[SourceFile], Iterator[RuleMatch]]:
    """Return a function that finds the words of `policy` in comments, except for occurrences that `policy` allows."""
    words = re.compile(rb"\b(?:%s)\b" % b"|".join(re.escape(word.encode()) for word in policy.words))
    allow = re.compile(policy.allow.encode()) if policy.allow else None

    def find(file: SourceFile) -> Iterator[RuleMatch]:
        for node in file.captures.get("comment", ()):
            for match in words.finditer(file.utf8, node.start_byte, node.end_byte):
                if allow is None or not allow.match(file.utf8, match.start(), node.end_byte):
                    yield match.start(), match.end(), f"{match[0].decode('utf-8', 'replace')} comment"

    return find


def _off_by_default(
    code: str,
    severity: Severity,
    summary: str,
    find: Callable[[SourceFile], Iterator[RuleMatch]],
) -> TextRule:
    """Return a style rule that is off by default."""
    return TextRule(code=code, severity=severity, summary=summary, find=find, is_on=False, is_style=True)


TEXT_RULES: tuple[TextRule, ...] = (
    TextRule(
        code="merge-conflict",
        severity="error",
        summary="all three markers of a conflict",
        find=_merge_conflict,
        needle=b"\n=======",
    ),
    TextRule(
        code="private-key",
        severity="warning",
        summary="a PEM or PGP private key, once per file",
        find=_private_key,
        needle=b"-----BEGIN ",
    ),
    TextRule(
        code="bidi-control",
        severity="warning",
        summary="U+202A-202E, U+2066-2069 in code",
        find=_bidi_control,
        needle=b"\xe2",
    ),
    TextRule(
        code="invalid-encoding",
        severity="warning",
        summary="not valid in its encoding",
        find=_invalid_encoding,
    ),
    TextRule(
        code="nul-character",
        severity="warning",
        summary="NUL after the first 8 KiB",
        find=_nul_character,
        needle=b"\0",
    ),
    TextRule(
        code="mixed-line-endings",
        severity="hint",
        summary="both LF and CRLF, once per file",
        find=_mixed_line_endings,
        needle=b"\r",
        is_style=True,
    ),
    TextRule(
        code="lone-carriage-return",
        severity="info",
        summary="CR without LF, once per file",
        find=_lone_carriage_return,
        needle=b"\r",
        is_style=True,
    ),
    _off_by_default("byte-order-mark", "hint", "a mark before UTF-8", _byte_order_mark),
    _off_by_default("huge-line", "hint", f"above {HUGE_LINE_BYTES_MIN} bytes", _huge_line),
    _off_by_default("missing-final-newline", "hint", "no newline at end of file", _missing_final_newline),
    _off_by_default("mixed-indentation", "hint", "spaces before tabs", _mixed_indentation),
    _off_by_default("shadowed-name", "hint", "JavaScript, TypeScript: hides another name", shadowed_names),
    _off_by_default("unused-import", "warning", "JavaScript, TypeScript: nothing uses it", unused_imports),
    _off_by_default("unused-variable", "warning", "JavaScript, TypeScript: nothing uses it", unused_variables),
    _off_by_default("shebang-not-executable", "info", "`#!/…` without the executable bit", _shebang_not_executable),
    _off_by_default("todo-comment", "hint", "TODO, FIXME, XXX, HACK in a comment", todo_finder(TodoPolicy())),
    _off_by_default("trailing-whitespace", "hint", "trailing whitespace", _trailing_whitespace),
    *SUPPRESSION_RULES,
)


RULES_BY_CODE: Mapping[str, TextRule] = {rule.code: rule for rule in TEXT_RULES}
