"""Where a name stands in a file: every identifier of that name, and as what. Strings and comments are no names.

Names within other tokens (inner_names.py) and in bodies of macros are told, too.

Looked up when asked: as records, all identifiers of a tree would be several times its other records together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from codebatch.model.task import Json
from codebatch_workers.symbols.calls import Reference, called_alone
from codebatch_workers.symbols.inner_names import is_inner_name
from codebatch_workers.symbols.macros import macros
from codebatch_workers.symbols.outline import definitions, outline
from codebatch_workers.syntax.language.languages import LANGUAGES_WITH_MACROS
from codebatch_workers.syntax.names import NAMES
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

_NAME = re.compile(r"identifier|name|constant|variable")
_WORD_PARENTS = frozenset({"command_name", "function_definition"})
# A lifetime or label of Rust, `'name`, is none of the things that are called `name`.
_LIFETIMES = frozenset({"label", "lifetime"})
_NO_CODE = frozenset({"comment", "string_content", "string_literal", "preproc_arg", "system_lib_string"})
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")
# No grammar ends a name between two of these, and most files that hold one as a part of others need not be parsed.
_NOT_BEHIND_WORD, _NOT_BEFORE_WORD = rb"(?<![A-Za-z0-9_])", rb"(?![A-Za-z0-9_])"
_CALLEES = ("call", "tail", "macro", "element", "decorator")


def references(
    file: SourceFile, name: str, calls: Sequence[tuple[int, str, str]] | None = None
) -> Iterator[dict[str, Json]]:
    """Each place of a name in a file, in the order of the source: its range, its role, and the scope around it.

    `role` is `definition`, `import`, `call` or `reference`. None where the file has no tree. `calls` are as in
    `called_alone` (calls.py), with which most files of a name that is called need no tree.
    """
    word = re.compile(_NOT_BEHIND_WORD + re.escape(name.encode("utf-8")) + _NOT_BEFORE_WORD)
    spans = [match.span() for match in word.finditer(file.utf8)] if file.language in NAMES else []
    if not spans or not file.is_parsed:
        return
    known = None if calls is None else called_alone(file, spans, calls)
    for start, end, role, scope in known or _looked_up(file, name, spans):
        line, column = file.position(start)
        end_line, end_column = file.position(end)
        yield {
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "role": role,
            "scope": scope,
        }


def _looked_up(file: SourceFile, name: str, spans: Sequence[tuple[int, int]]) -> Iterator[Reference]:
    """Those of some places in the tree of a file that are the name."""
    assert file.tree is not None, "who asks knows that it is parsed"
    root = file.tree.root_node
    in_macros = _words_in_macros(file)
    places = ((span, root.descendant_for_byte_range(*span)) for span in spans)
    found = [
        (start, end, node)
        for (start, end), node in places
        if node is not None and ((start, end) in in_macros or _is_place(file, node, start, end))
    ]
    if not found:
        return
    roles = {
        (symbol.line, symbol.column): "import" if symbol.symbol_type == "import" else "definition"
        for symbol in outline(file).symbols
        if symbol.name == name
    }
    callees = {node.end_byte for capture in _CALLEES for node in file.captures.get(capture, ())}
    imports = [(node.start_byte, node.end_byte) for node in file.captures.get("import", ())]
    around = definitions(file)
    for start, end, node in found:
        role = roles.get(file.position(start))
        if role is None and any(first <= start and end <= last for first, last in imports):
            role = "import"
        if role is None:
            is_called = end in callees or _is_command(node) or in_macros.get((start, end), False)
            role = "call" if is_called else "reference"
        yield Reference(start, end, role, around.scope_of(start))


def _words_in_macros(file: SourceFile) -> Mapping[tuple[int, int], bool]:
    """The names in bodies of macros, and whether each is called there."""
    if file.language not in LANGUAGES_WITH_MACROS:
        return {}
    found = macros(file.utf8, file.captures.get("comment", ()))
    return {(word.start, word.end): word.is_called for macro in found for word in macro.words(file.utf8)}


def _is_place(file: SourceFile, node: Node, start: int, end: int) -> bool:
    return (
        _is_whole_name(node, start, end)
        or is_inner_name(file.language, node, file.utf8, start, end)
        or _is_stood_for(file, node, start, end)
    )


def _is_whole_name(node: Node, start: int, end: int) -> bool:
    return (node.start_byte, node.end_byte) == (start, end) and _is_name(node)


def _is_stood_for(file: SourceFile, node: Node, start: int, end: int) -> bool:
    """Whether a name has a stand-in for the grammar (unexpanded.py, grammar_gaps.py), and stands in code."""
    if node.type in _NO_CODE or "comment" in node.type or "string" in node.type or b"\n" in file.utf8[start:end]:
        return False
    is_word = not _WORD_BYTE.match(file.utf8, max(start - 1, 0), start) and not _WORD_BYTE.match(file.utf8, end)
    return is_word and file.tree_text[start:end] != file.utf8[start:end]


def _is_name(node: Node) -> bool:
    """Whether a node is an identifier; the shell's words are where they name a command or a function."""
    if node.type == "word":
        return node.parent is not None and node.parent.type in _WORD_PARENTS
    if node.parent is not None and node.parent.type in _LIFETIMES and (node.parent.text or b"").startswith(b"'"):
        return False
    return node.is_named and node.child_count == 0 and _NAME.search(node.type) is not None


def _is_command(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "command_name"
