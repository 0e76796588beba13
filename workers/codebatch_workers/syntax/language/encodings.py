"""Decoding of files to UTF-8. A byte order mark, or a declaration in a Python file, determines the encoding."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

_PIECE_BYTES_MAX = 1024 * 1024

# The name of the encoding if a file declares none and is not valid UTF-8 (RFC 1428). Such a file is read as UTF-8, and
# U+FFFD replaces invalid bytes.
UNKNOWN_ENCODING = "unknown-8bit"

# The longest marks are first, because the mark of UTF-32-LE begins with the mark of UTF-16-LE.
_BYTE_ORDER_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32le"),
    (codecs.BOM_UTF32_BE, "utf-32be"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)
_ALL_MARKS = tuple(mark for mark, _ in _BYTE_ORDER_MARKS)
WIDE_MARKS = _ALL_MARKS[1:]
_BINARY_TEST_BYTES = 8192
_COOKIE_BYTES_MAX = 1024
_ENCODING_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK_COOKIE_LINE = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?\Z")

# The IANA name of an encoding, by the name of its Python codec. PEP 263 cookies can declare these encodings. For other
# codecs, the codec's name is used.
_COOKIE_ENCODINGS: Mapping[str, str] = {
    "ascii": "utf-8",
    "utf-8": "utf-8",
    "iso8859-1": "iso-8859-1",
    **{f"iso8859-{part}": f"iso-8859-{part}" for part in (*range(2, 12), *range(13, 17))},
    **{f"cp{page}": f"windows-{page}" for page in range(1250, 1259)},
    **{f"cp{page}": f"ibm{page}" for page in (437, 850, 852, 855, 866)},
    "big5": "big5",
    "euc_jp": "euc-jp",
    "euc_kr": "euc-kr",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "iso2022_jp": "iso-2022-jp",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "mac-roman": "macintosh",
    "shift_jis": "shift_jis",
    "tis-620": "tis-620",
}

# Names that CPython's tokenizer accepts for UTF-8 and Latin-1. Emacs adds suffixes to the names.
_UTF8_COOKIE = re.compile(r"utf-8(?:-.*)?\Z")
_LATIN_1_COOKIE = re.compile(r"(?:latin-1|iso-8859-1|iso-latin-1)(?:-.*)?\Z")
_PDF_PREFIX = b"%PDF-"
# Codecs that cannot decode source code, or that take quadratic time.
_NON_SOURCE_ENCODINGS = frozenset({"idna", "punycode"})


class DecodedText(msgspec.Struct, frozen=True):
    """A text in UTF-8 without byte order mark, the IANA name of its original encoding, and a problem in decoding it.

    If there is no problem, `problem` is empty.
    """

    utf8: bytes
    encoding: str
    problem: str


def is_binary(content: bytes) -> bool:
    """Return whether a file is binary.

    It is binary if it is a PDF, or if its first bytes contain NUL and it has no byte order mark of UTF-16 or UTF-32.
    """
    if content.startswith(_PDF_PREFIX):
        return True
    return content.find(b"\0", 0, _BINARY_TEST_BYTES) >= 0 and not content.startswith(WIDE_MARKS)


def decode_content(content: bytes, may_declare: Callable[[], bool]) -> DecodedText:
    """Decode a file. A byte order mark or, in Python, a cookie (PEP 263) determines the encoding.

    Without either, the encoding is UTF-8. Bytes that cannot be decoded become U+FFFD. `may_declare` returns whether the
    language has cookies. It is called only if the file may have one.
    """
    if content.startswith(_ALL_MARKS):
        mark, encoding = next(candidate for candidate in _BYTE_ORDER_MARKS if content.startswith(candidate[0]))
        decoded = _transcode_content(content[len(mark) :], encoding, declared=True)
        declared = _find_cookie(content[len(mark) :], may_declare) if encoding == "utf-8" else None
        if declared is not None and _normalize_cookie(declared) != "utf-8":
            return _with_problem(decoded, f"`{declared}` is declared behind a mark of UTF-8")
        return decoded
    declared = _find_cookie(content, may_declare)
    if declared is None:
        return _transcode_content(content, "utf-8", declared=False)
    known = _cookie_encoding(declared)
    decoded = _transcode_content(content, known or "utf-8", declared=known not in (None, "utf-8"))
    if known is None:
        return _with_problem(decoded, f"unknown encoding `{declared}`, read as UTF-8")
    if codecs.lookup(_normalize_cookie(declared)).name == "ascii" and not decoded.utf8.isascii():
        return _with_problem(decoded, f"`{declared}` is declared, read as UTF-8")
    return decoded


def encode_text(text: str, content: bytes, encoding: str) -> bytes:
    """Return a text in the encoding of a file with `content`, after the byte order mark of the file if it has one.

    `encoding` is that of `DecodedText`. Raises ValueError if the encoding cannot represent the text.
    """
    mark = next((mark for mark in _ALL_MARKS if content.startswith(mark)), b"")
    codec = "utf-8" if encoding == UNKNOWN_ENCODING else encoding
    try:
        return mark + text.encode(codec)
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ValueError(f"the encoding of the file, {codec}, has no character {character!a}") from error


def _with_problem(decoded: DecodedText, problem: str) -> DecodedText:
    """Return a decoded text with `problem`, unless the text already has a problem."""
    return decoded if decoded.problem else replace(decoded, problem=problem)


def _transcode_content(content: bytes, encoding: str, *, declared: bool) -> DecodedText:
    offset = 0
    try:
        if encoding == "utf-8":
            if not content.isascii():
                for piece in _iter_utf8_pieces(content):
                    piece.decode("utf-8")
                    offset += len(piece)
            return DecodedText(content, encoding, "")
        return DecodedText(content.decode(encoding).encode("utf-8"), encoding, "")
    except UnicodeError as error:
        offset += error.start if isinstance(error, UnicodeDecodeError) else 0
        problem = f"not valid {encoding.upper()}: byte {offset} is 0x{content[offset]:02x}"
    # The mode `replace` also turns lone surrogates of UTF-16 and UTF-32 into U+FFFD when decoding. Only UTF-7 can leave
    # some, which the mode `replace` removes when encoding.
    pieces = _iter_utf8_pieces(content) if encoding == "utf-8" else [content]
    utf8 = b"".join(piece.decode(encoding, "replace").encode("utf-8", "replace") for piece in pieces)
    return DecodedText(utf8, encoding if declared else UNKNOWN_ENCODING, problem)


def _iter_utf8_pieces(content: bytes) -> Iterator[bytes]:
    """Yield pieces of a UTF-8 text, each of which can be decoded separately.

    Decoding a huge text at once would need four times the memory of its bytes.
    """
    start = 0
    while start < len(content):
        end = min(start + _PIECE_BYTES_MAX, len(content))
        if end < len(content):
            # A piece must not end within a code point. The code point at its end begins at most three bytes before.
            end = next((cut for cut in range(end, end - 4, -1) if content[cut] & 0xC0 != 0x80), end)
        yield content[start:end]
        start = end


def _find_cookie(content: bytes, may_declare: Callable[[], bool]) -> str | None:
    """Return the encoding that a Python file declares in one of its first two lines (PEP 263), or None."""
    if b"coding" not in content[:_COOKIE_BYTES_MAX] or not may_declare():
        return None
    for line in content[:_COOKIE_BYTES_MAX].splitlines()[:2]:
        match = _ENCODING_COOKIE.match(line)
        if match is not None:
            return match[1].decode("ascii", "replace")
        if not _BLANK_COOKIE_LINE.match(line):
            return None
    return None


def _normalize_cookie(cookie: str) -> str:
    """Return the name of a declared encoding, normalized as CPython does."""
    name = cookie.lower().replace("_", "-")
    if _UTF8_COOKIE.match(name):
        return "utf-8"
    return "iso-8859-1" if _LATIN_1_COOKIE.match(name) else cookie


def _cookie_encoding(cookie: str) -> str | None:
    """Return the IANA name of the encoding that a cookie declares. Return None if Python has no such text encoding."""
    try:
        name = codecs.lookup(_normalize_cookie(cookie)).name
        b"#".decode(name)
    except (LookupError, ValueError):
        return None
    return None if name in _NON_SOURCE_ENCODINGS else _COOKIE_ENCODINGS.get(name, name)
