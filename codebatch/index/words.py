"""The words of file contents, and the words by which a name is looked up (SPEC.md "Words"). No I/O.

A word is a maximal run of ASCII letters, digits and `_` that does not begin with a digit. Every other byte separates
words. So a name that occurs in a text, not directly next to such a character, has only words that the text has too.
This holds for every encoding in which ASCII characters are single bytes. Other encodings, and the escapes of JSON in
notebooks, are decoded, and the words of the decoded text are added. In files of languages that compare names without
case, each word is also added in lower case.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from codebatch.model.entry import Entry

WORDS_VERSION = 2
"""The version of the words and of their encoding. Word segments of other versions are not used."""

INDEXED_BYTES_MAX = 16 << 20
"""Maximum size of a content whose words are indexed. Larger contents are read by every search for a name."""

CONTENT_KEY_BYTES = 16

NON_ASCII_WORD = b"\x80"
"""The word of every text that is not ASCII. Names that are not ASCII are looked up by it too."""

BINARY_WORD = b"\x81"
"""The word of every binary content. Of the other words of such a content, only the long ones are indexed."""

_BINARY_WORD_BYTES_MIN = 4
_BINARY_TEST_BYTES = 8192
_PIECE_BYTES = 1 << 20
_COOKIE_BYTES_MAX = 1024
_NOTEBOOK_ENDING = b".ipynb"
_ENDINGS_WITHOUT_CASE = (b".php", b".phtml", b".sql")
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_SEPARATOR = b" "
_WORD_CHARACTERS = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_WORDS_ONLY = bytes(byte if byte in _WORD_CHARACTERS else _SEPARATOR[0] for byte in range(256))
_LAST_DIGIT = ord("9")  # All other bytes of words are greater.
# Few bytes of a binary content belong to long words, so this pattern is faster than splitting.
_BINARY_WORDS = re.compile(rb"[A-Z_a-z][0-9A-Z_a-z]{%d,}" % (_BINARY_WORD_BYTES_MIN - 1))
_COOKIE = re.compile(rb"coding[:=]")
_JSON_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)


def content_key(entry: Entry) -> bytes:
    """Return the key of the content of a file: the first half of its digest.

    Some files have more words than an equal content of another file. The key is the second half in a notebook, and the
    middle in a file with words in lower case.
    """
    digest = bytes.fromhex(entry.object)
    start = CONTENT_KEY_BYTES // 2 if has_lower_words(entry.path) else 0
    start = CONTENT_KEY_BYTES if entry.path.endswith(_NOTEBOOK_ENDING) else start
    return digest[start : start + CONTENT_KEY_BYTES]


def has_lower_words(path: bytes) -> bool:
    """Return whether the words of the file at a path are also added in lower case."""
    return path.endswith(_ENDINGS_WITHOUT_CASE)


def add_content_words(words: set[bytes], content: bytes, path: bytes) -> None:
    """Add the words of the content of a file to `words`: of its bytes, and of each text that the bytes may stand for.

    Numbers are added too. `without_numbers` removes them.
    """
    if has_lower_words(path):
        own: set[bytes] = set()
        _add_words(own, content, in_notebook=False)
        words |= own
        words.update(word.lower() for word in own)
    else:
        _add_words(words, content, in_notebook=path.endswith(_NOTEBOOK_ENDING))


def _add_words(words: set[bytes], content: bytes, *, in_notebook: bool) -> None:
    if content.find(b"\0", 0, _BINARY_TEST_BYTES) >= 0 and not content.startswith(_WIDE_MARKS):
        words.update(_BINARY_WORDS.findall(content))
        words |= {BINARY_WORD, NON_ASCII_WORD}
        return
    _add_text_words(words, content)
    for text in _decoded_texts(content, in_notebook=in_notebook):
        _add_text_words(words, text)


def name_words(name: str) -> tuple[bytes, ...]:
    """Return words that every indexed text has in which a name occurs. It is empty if any text may have the name."""
    encoded = name.encode("utf-8", "surrogatepass")
    words = dict.fromkeys(without_numbers(encoded.translate(_WORDS_ONLY).split()))
    return (*words, *(() if encoded.isascii() else (NON_ASCII_WORD,)))


def word_alternatives(word: bytes) -> tuple[bytes, ...]:
    """Return the words under which the contents with a word are indexed. Each of these contents has one of them."""
    return (word, BINARY_WORD) if len(word) < _BINARY_WORD_BYTES_MIN else (word,)


def without_numbers(words: Iterable[bytes]) -> list[bytes]:
    """Return the words that do not begin with a digit."""
    return [word for word in words if word[0] > _LAST_DIGIT]


def _add_text_words(words: set[bytes], text: bytes) -> None:
    separated = text.translate(_WORDS_ONLY)
    start = 0
    while start < len(text):  # A list of all words of a large text would need too much memory.
        end = separated.find(_SEPARATOR, start + _PIECE_BYTES)
        end = len(text) if end < 0 else end
        words.update(separated[start:end].split())
        start = end
    if not text.isascii():
        words.add(NON_ASCII_WORD)


def _decoded_texts(content: bytes, *, in_notebook: bool) -> Iterator[bytes]:
    """Yield the texts that the bytes may stand for, if their words may differ from those of the bytes."""
    text = content
    if content.startswith(_WIDE_MARKS) or _COOKIE.search(content, 0, _COOKIE_BYTES_MAX):
        # Imported late: hardly any file needs it.
        from codebatch.plugins.worker_services import source_services

        text = source_services().decode_text(content)
        if text is not content:
            yield text
    if in_notebook:
        yield _JSON_ESCAPE.sub(_unescape, text)


def _unescape(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return _SEPARATOR if code is None else chr(int(code, 16)).encode("utf-8", "surrogatepass")
