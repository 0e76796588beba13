"""Changes of files that custom tasks propose (workers/TASKS.md "Custom tasks"). Files themselves are not changed."""

from __future__ import annotations

from typing import Protocol

import msgspec

from codebatch.model.digest import Digest, digest_bytes
from codebatch_workers.syntax.language.encodings import decode_content, encode_text
from codebatch_workers.syntax.language.notebooks import Notebook
from codebatch_workers.syntax.language_syntax import LanguageSyntax

COMPARED_LINES_MAX = 20_000
"""Maximum number of lines of a file whose old and new lines are compared."""


class EditableFile(Protocol):
    """The part of `SourceFile` that is needed to change a file."""

    path: bytes
    content: bytes
    executable: bool

    @property
    def syntax(self) -> LanguageSyntax: ...
    @property
    def is_binary(self) -> bool: ...
    @property
    def encoding(self) -> str: ...
    @property
    def notebook(self) -> Notebook | None: ...
    @property
    def text(self) -> str: ...


class EditedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed change of a file: a value that a task returns beside its records.

    - `before`: the digest of the file's content.
    - `content`: the new content, or None if the file is deleted.
    - `executable`: whether the file is executable after the change.
    - `added`, `removed`: the numbers of lines that the change adds and removes.
    - `is_change`: whether the new content or the executable bit differs. If not, nothing is recorded.
    """

    path: bytes
    before: Digest
    content: bytes | None
    executable: bool
    added: int
    removed: int
    is_change: bool


def edit_file(file: EditableFile, content: bytes | str | None, executable: bool | None = None) -> EditedFile:
    """Return the change of a file to a new content. See `SourceFile.change`."""
    if isinstance(content, str):
        content = _encode_like(file, content)
    elif not isinstance(content, bytes | None):
        raise TypeError(f"the new content must be bytes, str or None, not {type(content).__name__}")
    is_executable = content is not None and bool(file.executable if executable is None else executable)
    added, removed = (0, 0) if content == file.content else count_changed_lines(file.content, content or b"")
    return EditedFile(
        path=file.path,
        before=digest_bytes(file.content),
        content=content,
        executable=is_executable,
        added=added,
        removed=removed,
        is_change=content != file.content or is_executable != file.executable,
    )


def count_changed_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """Return the numbers of added and removed lines. They are as small as possible: a moved line is both.

    Only LF ends a line. If a content has more than COMPARED_LINES_MAX lines, all its lines count.
    """
    old_count, new_count = _count_lines(before), _count_lines(after)
    if max(old_count, new_count) > COMPARED_LINES_MAX:
        return new_count, old_count
    old, new = _split_lines(before), _split_lines(after)
    if len(old) == len(new):
        differences = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
        if {line for line, _ in differences}.isdisjoint(line for _, line in differences):
            return len(differences), len(differences)  # Lines were replaced in place, as by most renames.
    old_lines, new_lines = set(old), set(new)
    kept = _common_length([line for line in old if line in new_lines], [line for line in new if line in old_lines])
    return len(new) - kept, len(old) - kept


def _count_lines(content: bytes) -> int:
    return content.count(b"\n") + bool(content and not content.endswith(b"\n"))


def _split_lines(content: bytes) -> list[bytes]:
    """Return the lines without their LF. If the last line has none, it gets one, so that it differs from all others."""
    lines = content.split(b"\n")
    if lines[-1]:
        lines[-1] += b"\n"
    else:
        lines.pop()
    return lines


def _common_length(old: list[bytes], new: list[bytes]) -> int:
    """Return the length of the longest common subsequence.

    This is the bit-parallel algorithm of Hyyrö ("Bit-parallel LCS-length computation revisited", 2004). The cleared
    bits of `row` are the old lines at which the length grows. For 20,000 lines, it is 1,000 times as fast as difflib.
    """
    places: dict[bytes, int] = {}
    for place, line in enumerate(old):
        places[line] = places.get(line, 0) | 1 << place
    row = everywhere = (1 << len(old)) - 1
    for line in new:
        matched = row & places[line]
        row = ((row + matched) | (row - matched)) & everywhere
    return len(old) - row.bit_count()


def _encode_like(file: EditableFile, text: str) -> bytes:
    """Return a text in the encoding of a file, with its byte order mark. Raises ValueError unless this is exact."""
    if file.notebook is not None:
        raise ValueError("the text of a notebook is only the code of its cells: give the new content as bytes")
    if file.is_binary or encode_text(file.text, file.content, file.encoding) != file.content:
        raise ValueError("the text of the file is not its exact content: give the new content as bytes")
    content = encode_text(text, file.content, file.encoding)
    if decode_content(content, lambda: file.syntax.has_encoding_comments).utf8 != text.encode("utf-8"):
        raise ValueError("the new text declares another encoding than that of the file: give the new content as bytes")
    return content
