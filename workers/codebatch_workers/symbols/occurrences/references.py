"""Occurrences of a name in a file: every identifier with this name, and its role.

Comments and longer strings do not count. Names within longer tokens and in macro bodies do count.
Occurrences are computed on demand, because stored records of all identifiers would be several times larger than all
other records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from codebatch.model.task import JsonValue
from codebatch.model.text.words import searched_word
from codebatch_workers.symbols.callees import called_name_ends, unmarked_calls
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.symbols.occurrences.calls import NameReference, call_references
from codebatch_workers.symbols.occurrences.named_strings import is_key, is_named_by_string
from codebatch_workers.symbols.outline import file_outline, scope_definitions
from codebatch_workers.syntax.language.encodings import WIDE_MARKS
from codebatch_workers.syntax.names import NAME_NODE_TYPE
from codebatch_workers.syntax.source import NOTEBOOK_ENDING, SourceFile

_NODE_WITHOUT_CODE = re.compile("comment|string|preproc_arg")
# The text after the name of a setter: `=` in its definition, or an assignment. In the symbol `:name=`, it follows too.
_SETTING = re.compile(rb"\s*(?:[-+*/%&|^<>]{1,2})?=(?![=~>])")
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")
_WORD_CHARACTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_CALLEE_CAPTURES = ("call", "command", "tail", "macro", "element", "decorator")


def may_contain_name(name: str, path: bytes, content: bytes) -> bool:
    """Return whether a name can occur in a content. If not, the content need not be decoded and parsed."""
    is_escaped = content.startswith(WIDE_MARKS) or path.endswith(NOTEBOOK_ENDING)
    return is_escaped or not name.isascii() or searched_word(name).encode() in content


def find_references(
    file: SourceFile, name: str, calls: Sequence[tuple[int, str, str]] | None = None
) -> Iterator[dict[str, JsonValue]]:
    """Yield each occurrence of a name in text order, with its range, role and scope.

    `role` is `definition`, `import`, `call`, `reference`, or `string` for a literal that names it
    (named_strings.py). A file without a tree has no occurrences. `calls` are the
    recorded calls of the name, as in `call_references` (calls.py). If `calls` are given, most files need not be parsed.
    """
    spans = _name_spans(file, name)
    if not spans:
        return
    from_records = None if calls is None else call_references(file, spans, calls)
    for start, end, role, scope in from_records or _find_in_tree(file, name, spans):
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


def find_occurrences(file: SourceFile, name: str) -> Iterator[NameReference]:
    """Yield each occurrence of a name in text order, as `find_references` does, by its offsets in the UTF-8 text."""
    spans = _name_spans(file, name)
    if spans:
        yield from _find_in_tree(file, name, spans)


def _name_spans(file: SourceFile, name: str) -> list[tuple[int, int]]:
    """Return all places of a name in the text of a file. Without a tree, a file has none.

    In all grammars, adjacent word characters belong to one name. Often, a name occurs in a file only within longer
    words. Such a file need not be parsed.
    """
    if file.syntax.declared_names is None and not LanguageSymbols.of(file.language).has_only_strings:
        return []
    utf8, word = file.utf8, searched_word(name).encode("utf-8")
    is_setter = searched_word(name) != name
    spans: list[tuple[int, int]] = []
    start = utf8.find(word)
    while start >= 0:
        end = start + len(word)
        is_after_word = start > 0 and utf8[start - 1] in _WORD_CHARACTERS
        is_before_word = end < len(utf8) and utf8[end] in _WORD_CHARACTERS
        if not is_after_word and not is_before_word and (not is_setter or _SETTING.match(utf8, end)):
            spans.append((start, end))
        start = utf8.find(word, start + 1)
    return spans if spans and file.is_parsed else []


def _find_in_tree(file: SourceFile, name: str, spans: Sequence[tuple[int, int]]) -> Iterator[NameReference]:
    """Yield the occurrences among `spans`, which are all places of the name in the text.

    At the other places, the tree has a longer string, a comment or a longer token.
    """
    assert file.tree is not None, "who asks knows that it is parsed"
    root = file.tree.root_node
    places = [(span, node) for span in spans if (node := root.descendant_for_byte_range(*span)) is not None]
    rules = LanguageSymbols.of(file.language)
    if rules.has_only_strings:
        for (start, end), node in places:
            if is_named_by_string(node, file.utf8, start, end) and not is_key(node):
                yield NameReference(start, end, "string", "")
        return
    in_macros = _words_in_macros(file)
    occurrences: list[tuple[int, int, Node | None]] = []
    for (start, end), node in places:
        if (start, end) in in_macros or _is_occurrence(file, node, start, end, rules):
            occurrences.append((start, end, node))
        elif is_named_by_string(node, file.utf8, start, end):
            occurrences.append((start, end, None))
    if not occurrences:
        return
    roles = {
        (symbol.line, symbol.column): "import" if symbol.symbol_type == "import" else "definition"
        for symbol in file_outline(file).symbols
        if symbol.name == name
    }
    callees = _called_name_ends(file)
    imports = [
        (node.start_byte, node.end_byte)
        for node in file.captures.get("import", ())
        if node.type not in rules.import_calls
    ]
    scopes = scope_definitions(file)
    for start, end, node in occurrences:
        if node is None:
            yield NameReference(start, end, "string", scopes.qualified_scope(start))
            continue
        role = roles.get(file.position(start))
        if role is None and (end in callees or in_macros.get((start, end), False)):
            role = "call"
        if role is None:
            is_imported = any(first <= start and end <= last for first, last in imports)
            role = "import" if is_imported else "reference"
        yield NameReference(start, end, role, scopes.qualified_scope(start))


def _called_name_ends(file: SourceFile) -> set[int]:
    """Return the end offset of each name that is called."""
    captures = (file.captures.get(capture, ()) for capture in _CALLEE_CAPTURES)
    ends = {end for nodes in captures for node in nodes for end in called_name_ends(node)}
    return ends | {end for _, end in unmarked_calls(file)}


def _words_in_macros(file: SourceFile) -> Mapping[tuple[int, int], bool]:
    """Map the range of each name in a macro body to whether the body calls this name."""
    rules = LanguageSymbols.of(file.language).macros
    if rules is None:
        return {}
    return {
        (word.start, word.end): word.is_called
        for macro in rules.find_macros(file.utf8, file.captures.get("comment", ()))
        for word in rules.iter_words(macro, file.utf8)
    }


def _is_occurrence(file: SourceFile, node: Node, start: int, end: int, rules: LanguageSymbols) -> bool:
    if node.parent is not None and node.parent.type in rules.nameless_nodes:
        return False
    is_inner_name = rules.inner_names.get(node.type)
    return (
        ((node.start_byte, node.end_byte) == (start, end) and _is_name_node(node))
        or (is_inner_name is not None and is_inner_name(node, file.utf8, start, end))
        or _is_in_replacement(file, node, start, end)
    )


def _is_in_replacement(file: SourceFile, node: Node, start: int, end: int) -> bool:
    """Return whether the node is not a name, only because the parser got other text than the file has at this place.

    The parser gets replacement text for code that the grammar does not support (grammar_gaps). Such code can be a name.
    """
    if _NODE_WITHOUT_CODE.search(node.type) or b"\n" in file.utf8[start:end]:
        return False
    is_word = not _WORD_BYTE.match(file.utf8, max(start - 1, 0), start) and not _WORD_BYTE.match(file.utf8, end)
    return is_word and file.tree_text[start:end] != file.utf8[start:end]


def _is_name_node(node: Node) -> bool:
    return node.is_named and node.child_count == 0 and NAME_NODE_TYPE.search(node.type) is not None
