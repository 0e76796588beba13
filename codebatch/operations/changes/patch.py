"""Unified diffs that `git apply` accepts (git-diff(1), "Generating patch text with -p").

Texts are compared line by line. Contents with a NUL byte near the start are binary, as for git, and are written as
"GIT binary patch": the whole new and the whole old content, compressed.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Sequence

from codebatch.compare.matching.lines import NO_LINE, SplitText, pair_lines
from codebatch.git.new_commits import blob_id

_CONTEXT_LINES = 3
_BINARY_PREFIX_BYTES = 8000
_NO_NEWLINE = b"\\ No newline at end of file\n"
_NULL_ID = b"0" * 40
_ENCODED_BYTES_MAX = 52
"""The number of compressed bytes in a line of a binary patch."""
_QUOTED_BYTE = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
_SHORT_ESCAPES = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


def file_patch(
    path: bytes,
    before: bytes | None,
    after: bytes | None,
    *,
    was_executable: bool,
    is_executable: bool,
    is_link: bool = False,
) -> bytes:
    """Return the patch of one file. `before` and `after` are its contents, or None if the file does not exist then.

    With `is_link`, it is a symbolic link, whose content is its target.
    """
    old_name, new_name = quoted_path(b"a/" + path), quoted_path(b"b/" + path)
    head = [b"diff --git %b %b\n" % (old_name, new_name)]
    old_mode, new_mode = (_file_mode(is_executable, is_link) for is_executable in (was_executable, is_executable))
    mode_of_both = b""
    if before is None:
        head.append(b"new file mode %b\n" % new_mode)
    elif after is None:
        head.append(b"deleted file mode %b\n" % old_mode)
    elif old_mode != new_mode:
        head.append(b"old mode %b\nnew mode %b\n" % (old_mode, new_mode))
    else:
        mode_of_both = b" " + old_mode
    if before == after:
        return b"".join(head)
    head.append(b"index %b..%b%b\n" % (_blob_id(before), _blob_id(after), mode_of_both))
    old, new = before or b"", after or b""
    if _is_binary(old) or _is_binary(new):
        return b"".join([*head, b"GIT binary patch\n", *_binary_hunk(new), *_binary_hunk(old)])
    hunks = b"".join(_iter_hunks(old, new))
    if hunks:
        head.append(b"--- %b\n" % (b"/dev/null" if before is None else _header_name(old_name)))
        head.append(b"+++ %b\n" % (b"/dev/null" if after is None else _header_name(new_name)))
    return b"".join(head) + hunks


def quoted_path(path: bytes) -> bytes:
    """Return a path as git writes it: in quotation marks with escapes if it has unusual bytes."""
    if not _QUOTED_BYTE.search(path):
        return path
    return b'"%b"' % _QUOTED_BYTE.sub(lambda match: _escaped_byte(match[0][0]), path)


def _escaped_byte(byte: int) -> bytes:
    return b"\\" + _SHORT_ESCAPES.get(byte, b"%03o" % byte)


def _header_name(name: bytes) -> bytes:
    """Return a name as it stands after `---` or `+++`: with a tab after it if it has a space."""
    return name + b"\t" if b" " in name else name


def _file_mode(is_executable: bool, is_link: bool) -> bytes:
    if is_link:
        return b"120000"
    return b"100755" if is_executable else b"100644"


def _blob_id(content: bytes | None) -> bytes:
    return _NULL_ID if content is None else blob_id(content).encode()


def _is_binary(content: bytes) -> bool:
    return b"\0" in content[:_BINARY_PREFIX_BYTES]


def _binary_hunk(content: bytes) -> Iterator[bytes]:
    yield b"literal %d\n" % len(content)
    compressed = zlib.compress(content)
    for start in range(0, len(compressed), _ENCODED_BYTES_MAX):
        part = compressed[start : start + _ENCODED_BYTES_MAX]
        length = bytes([len(part) + (64 if len(part) <= 26 else 70)])  # A to Z for 1 to 26, a to z for 27 to 52.
        yield length + base64.b85encode(part, pad=True) + b"\n"
    yield b"\n"


def iter_text_edits(old: bytes, new: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines of each edit that makes the new text from the old one: the removed and the added lines."""
    old_lines, new_lines = _split_lines(old), _split_lines(new)
    for old_start, old_end, new_start, new_end in _pair_edits(old_lines, new_lines):
        yield b"".join(old_lines[old_start:old_end]), b"".join(new_lines[new_start:new_end])


def _pair_edits(old_lines: list[bytes], new_lines: list[bytes]) -> Iterator[_Edit]:
    old_text = SplitText(old_lines, sum(map(len, old_lines)))
    new_text = SplitText(new_lines, sum(map(len, new_lines)))
    return _iter_edits(pair_lines(old_text, new_text), len(new_lines))


def _iter_hunks(old: bytes, new: bytes) -> Iterator[bytes]:
    old_lines, new_lines = _split_lines(old), _split_lines(new)
    edits = list(_pair_edits(old_lines, new_lines))
    start = 0
    while start < len(edits):
        end = start + 1
        while end < len(edits) and edits[end][0] - edits[end - 1][1] <= 2 * _CONTEXT_LINES:
            end += 1
        yield _hunk(old_lines, new_lines, edits[start:end])
        start = end


_Edit = tuple[int, int, int, int]
"""The lines [start, end) of the old text are replaced by the lines [other, other_end) of the new text."""


def _iter_edits(pairs: Sequence[int], new_count: int) -> Iterator[_Edit]:
    old_start = new_start = 0
    for old, new in enumerate([*pairs, new_count]):
        if new == NO_LINE:
            continue
        if old > old_start or new > new_start:
            yield old_start, old, new_start, new
        old_start, new_start = old + 1, new + 1


def _hunk(old_lines: Sequence[bytes], new_lines: Sequence[bytes], edits: Sequence[_Edit]) -> bytes:
    first, last = edits[0], edits[-1]
    lead = min(_CONTEXT_LINES, first[0])
    trail = min(_CONTEXT_LINES, len(old_lines) - last[1])
    old_range = _range_text(first[0] - lead, last[1] + trail)
    new_range = _range_text(first[2] - lead, last[3] + trail)
    lines = [b"@@ -%b +%b @@\n" % (old_range, new_range)]
    place = first[0] - lead
    for old_start, old_end, new_start, new_end in edits:
        lines += (_patch_line(b" ", line) for line in old_lines[place:old_start])
        lines += (_patch_line(b"-", line) for line in old_lines[old_start:old_end])
        lines += (_patch_line(b"+", line) for line in new_lines[new_start:new_end])
        place = old_end
    lines += (_patch_line(b" ", line) for line in old_lines[place : place + trail])
    return b"".join(lines)


def _range_text(start: int, end: int) -> bytes:
    count = end - start
    first = start + 1 if count else start
    return b"%d" % first if count == 1 else b"%d,%d" % (first, count)


def _patch_line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n" + _NO_NEWLINE


def _split_lines(text: bytes) -> list[bytes]:
    """Split a text after each LF. Each line keeps its LF, so a last line without it differs from one with it."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
