"""The constants that a Ruby file uses, each with the classes and modules around it.

Ruby looks a constant up in the enclosing classes and modules, as written. So `module A; class B` differs from
`class A::B`, from whose body the constants of `A` are not visible.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from tree_sitter import Node

from codebatch.model.record import Names
from codebatch_workers.languages.ruby.nesting import INHERITS_MARK
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.used_names import NAMES_MAX
from codebatch_workers.syntax.names import NAME_BYTES_MAX
from codebatch_workers.syntax.source import SourceFile

_INCLUSION = re.compile(rb"[ \t]*(?:include|prepend)\b")


def used_constants(file: SourceFile) -> dict[tuple[str, str], int]:
    """Return the offset of the first use of each constant. The keys are the constant as written, and its nesting.

    A nesting is the names of the classes and modules around the use, as written and separated by blanks, outermost
    first. INHERITS_MARK follows it if the innermost one has a superclass or includes a module.
    """
    utf8, captures = file.utf8, file.captures
    # `A::B` contains the node `A` at the same offset. The longest node at an offset comes last.
    ends = {node.start_byte: node.end_byte for node in captures.get("use", ())}
    definitions = _definitions(file)
    defined = {name.start_byte for node in definitions if (name := node.child_by_field_name("name")) is not None}
    starts, nestings = _nestings(definitions, utf8)
    offsets: dict[tuple[bytes, int], int] = {}
    for start, end in ends.items():
        key = (utf8[start:end], bisect_right(starts, start) - 1)
        if key not in offsets and start not in defined and not utf8.startswith(b"::", start - 2):
            offsets[key] = start
    constants: dict[tuple[str, str], int] = {}
    for (text, index), start in offsets.items():
        constants.setdefault((b"".join(text.split()).decode("utf-8", "replace"), nestings[index]), start)
    return constants


def nesting_at(file: SourceFile, offset: int) -> str:
    """Return the nesting at an offset, as in the keys of `used_constants`."""
    starts, nestings = _nestings(_definitions(file), file.utf8)
    return nestings[bisect_right(starts, offset) - 1]


def _definitions(file: SourceFile) -> list[Node]:
    """Return the nodes of the classes and modules of a file, outer before inner."""
    return sorted(
        (node for capture in ("def.class", "def.module") for node in file.captures.get(capture, ())),
        key=lambda node: (node.start_byte, -node.end_byte),
    )


def _nestings(definitions: list[Node], utf8: bytes) -> tuple[list[int], list[str]]:
    """Return offsets, and the nesting that applies from each of them to the next."""
    inclusions = sorted(_inclusions(utf8))
    spans = list(_spans(definitions, utf8, inclusions))
    starts, nestings = [-1], [""]
    stack: list[tuple[int, str, str]] = []
    for start, end, name, mark in spans:
        while stack and stack[-1][0] <= start:
            starts.append(stack.pop()[0])
            nestings.append(stack[-1][1] + stack[-1][2] if stack else "")
        outer = stack[-1][1] if stack else ""
        nesting = f"{outer} {name}" if outer else name
        stack.append((end, nesting, mark))
        starts.append(start)
        nestings.append(nesting + mark)
    while stack:
        starts.append(stack.pop()[0])
        nestings.append(stack[-1][1] + stack[-1][2] if stack else "")
    return starts, nestings


def _inclusions(utf8: bytes) -> Iterator[int]:
    """Yield the offsets of lines that begin with `include` or `prepend`."""
    for word in (b"include", b"prepend"):
        start = utf8.find(word)
        while start >= 0:
            line_start = utf8.rfind(b"\n", 0, start) + 1
            if _INCLUSION.match(utf8, line_start):
                yield line_start
            start = utf8.find(word, start + 1)


def _spans(definitions: list[Node], utf8: bytes, inclusions: list[int]) -> Iterator[tuple[int, int, str, str]]:
    """Yield the start and end of the body of each class and module, its name as written, and its mark."""
    for node in definitions:
        name, superclass = node.child_by_field_name("name"), node.child_by_field_name("superclass")
        if name is None:
            continue
        start, end = (superclass or name).end_byte, node.end_byte
        is_including = bisect_right(inclusions, end) > bisect_right(inclusions, start)
        mark = INHERITS_MARK if superclass is not None or is_including else ""
        written = b"".join(utf8[name.start_byte : name.end_byte].split())
        yield start, end, written.decode("utf-8", "replace"), mark


def read_names(file: SourceFile, _outline: FileOutline) -> Names | None:
    """Return the constants that a file uses."""
    offsets = used_constants(file)
    keys = sorted(key for key in offsets if len(key[0]) <= NAME_BYTES_MAX)
    if not keys or len(offsets) > NAMES_MAX:
        return None
    path, path_b64 = file.path_fields
    return Names(
        path=path,
        path_b64=path_b64,
        names=tuple(name for name, _ in keys),
        lines=tuple(bisect_right(file.line_starts, offsets[key]) for key in keys),
        scopes=tuple(scope for _, scope in keys),
    )
