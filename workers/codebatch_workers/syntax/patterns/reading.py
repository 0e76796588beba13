"""Patterns: code with metavariables, converted to a tree that matching.py compares with the trees of files.

`$X` matches one node. If its name is repeated, the texts must be equal. `$_` and other names that begin with `_` are
not bound. `$$$` and `$$$ARGS` match any number of nodes. Names consist of capitals, digits and `_`.

The language's grammar parses a pattern. Before that, a placeholder replaces each metavariable: code that is valid in
its place (`stand_ins` in language_patterns.py). If a pattern is not a valid file, it is parsed with code around it
(`contexts`). The result must be one node without errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tree_sitter import Node

from codebatch_workers.syntax.comments import comment_spans
from codebatch_workers.syntax.language.languages import load_parser
from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns

PATTERN_BYTES_MAX = 10_000
METAVARIABLES_MAX = 50
PATTERN_DEPTH_MAX = 100
PARSE_ATTEMPTS_MAX = 300
"""The maximum number of combinations of placeholders that are tried with the same code around the pattern."""
METAVARIABLE = re.compile(r"(?<![\w$])(\$\$\$(?:[A-Z_][A-Z0-9_]*)?|\$[A-Z_][A-Z0-9_]*)(?![\w$])")
_MANY_MARK = "$$$"
_NO_FAULTS = (0, 0, 0)
_INVALID_METAVARIABLE = re.compile(r"\$\$[A-Z_]|\$[a-z]|\$\{")
_SEPARATORS = frozenset({",", ";", "\n"})
_LITERAL = re.compile(r"(?<!concatenated_)string|heredoc|str_text|attribute_value|^literal$")
"""The types of nodes of literals in which white space counts."""


class PatternError(ValueError):
    """An invalid pattern or query.

    `hint` describes what to do. `place` is the row and column of the error, both from 0, or None if unknown.
    """

    def __init__(self, message: str, *, hint: str, place: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.place = place


class PatternNode(NamedTuple):
    """A node of a pattern: its type, its children, and its text if it has no children.

    If `hole` is true, the node is a metavariable. Then `name` is its name, or empty if the metavariable is not bound.
    `is_many` means that it matches any number of nodes.
    """

    kind: str = ""
    is_named: bool = True
    text: bytes = b""
    children: tuple[PatternNode, ...] = ()
    hole: bool = False
    name: str = ""
    is_many: bool = False

    def iter_nodes(self) -> Iterator[PatternNode]:
        """Yield this node and its descendants, parents first."""
        yield self
        for child in self.children:
            yield from child.iter_nodes()


def read_pattern(pattern: str, language: str) -> PatternNode:
    """Return the root node of a pattern. The language's grammar must be installed. Raises PatternError."""
    text = pattern.strip()
    _check_pattern(text, language)
    if LanguageSyntax.of(language).has_macros and text.endswith("};"):
        # In C, the semicolon after `struct S {}` is not part of the node. Other declarations do not need a semicolon,
        # either.
        text = text[:-1]
    best = _parse_pattern(text, language)
    if best.node is None:
        raise _pattern_error(best, text, language)
    if best.node.hole:
        raise PatternError(
            f"`{text}` alone would match every node", hint="add code around the metavariable, or use --query"
        )
    return best.node


class CodeShape(NamedTuple):
    """The shape of code by itself.

    - `node_type`: the type of its only node, or empty. `is_list`: whether the node begins with another, not a token.
    - `has_errors`: whether it has syntax errors.
    """

    node_type: str
    is_list: bool
    has_errors: bool


def read_shape(code: str, language: str) -> CodeShape:
    """Return the shape of code that may have metavariables, also in strings. Comments before and after it are ignored.

    Raises PatternError if there are too many metavariables.
    """
    text = code.encode()
    for start, end in reversed(comment_spans(text, language)):
        if not text[:start].strip() or not text[end:].strip():
            text = text[:start] + text[end:]
    best = _parse_pattern(text.decode().strip(), language)
    if not any(best.faults[:2]):
        return CodeShape(best.kind, best.is_list, has_errors=False)
    # Other placeholders may make one node of several, but with errors.
    reader, contexts = _pattern_reader(text.decode().strip(), language)
    return CodeShape("", False, all(reader.read_first(context).faults[1] for context in contexts))


def literal_lines(code: str, language: str) -> frozenset[int]:
    """Return the numbers, from 1, of the lines of new code that begin in a literal, such as a string or a heredoc."""
    # A placeholder as long as the metavariable keeps all positions.
    text = METAVARIABLE.sub(lambda match: "z" * len(match[0]), code).encode()
    parser = load_parser(language)
    contexts = [
        (len(prefix), parser.parse(prefix.encode() + text + suffix.encode() + b"\n").root_node)
        for prefix, suffix in LanguagePatterns.of(language).contexts
    ]
    start, root = min(contexts, key=lambda context: _count_errors(context[1]))
    breaks = [offset for offset, character in enumerate(text) if character == ord("\n")]
    nodes = (root.descendant_for_byte_range(start + offset, start + offset + 1) for offset in breaks)
    return frozenset(number for number, node in enumerate(nodes, 1) if node is not None and _LITERAL.search(node.type))


def _parse_pattern(text: str, language: str) -> _ParsedPattern:
    """Parse a pattern with each piece of code that its language has in `contexts`.

    Return the result with the fewest faults.
    """
    reader, contexts = _pattern_reader(text, language)
    return min(map(reader.read, contexts), key=lambda result: result.faults)


def _pattern_reader(text: str, language: str) -> tuple[_PatternReader, Sequence[tuple[str, str]]]:
    """Return a reader of a pattern, and the pieces of code around it to try. Raises PatternError."""
    holes = [(match[1], match.start(), match.end()) for match in METAVARIABLE.finditer(text)]
    if len(holes) > METAVARIABLES_MAX:
        raise PatternError(f"the pattern has more than {METAVARIABLES_MAX} metavariables", hint="use --query")
    return _PatternReader(text, holes, language), LanguagePatterns.of(language).contexts


class _ParsedPattern(NamedTuple):
    """The result of parsing a pattern: a node, or faults.

    The faults are, in order of weight: the pattern is not one node (0 or 1), the size of its errors, and the number of
    metavariables that are not nodes. `unread` is one of these metavariables. `is_deep` is true if the pattern is nested
    too deeply. `kind` is the type of the node. `is_list` is true if its first child is a named node.
    """

    faults: tuple[int, int, int]
    node: PatternNode | None = None
    unread: str = ""
    is_deep: bool = False
    kind: str = ""
    is_list: bool = False


class _PatternReader:
    """A parser for one pattern. It tries code around the pattern, and placeholders for the metavariables."""

    def __init__(self, text: str, holes: Sequence[tuple[str, int, int]], language: str) -> None:
        self._text = text
        self._holes = holes
        self._parser = load_parser(language)
        patterns = LanguagePatterns.of(language)
        self._stand_ins = patterns.stand_ins
        self._first_stand_in_for_many = patterns.stand_in_for_many or self._stand_ins[0]
        names = list(dict.fromkeys(written for written, _, _ in holes))
        mark = next(mark for count in range(len(text) + 2) if (mark := "z" + "q" * count) not in text.lower())
        # Equal metavariables become equal words, because the opening and closing tag of an HTML element must be equal.
        self._words = [f"{mark}{names.index(written)}z" for written, _, _ in holes]

    def read(self, context: tuple[str, str]) -> _ParsedPattern:
        """Return the best result of parsing the pattern with the code in `context` before and after it.

        While there are faults, change the placeholder of one metavariable: the change that removes the most faults.
        """
        chosen = self._first_stand_ins()
        best = self._parse_once(context, chosen)
        tries, is_better = 1, True
        while is_better and any(best.faults):
            is_better, before = False, chosen
            for index, stand_in in product(range(len(before)), self._stand_ins):
                if tries == PARSE_ATTEMPTS_MAX or best.faults == _NO_FAULTS:
                    return best
                other = [*before[:index], stand_in, *before[index + 1 :]]
                read, tries = self._parse_once(context, other), tries + 1
                if read.faults < best.faults:
                    best, chosen, is_better = read, other, True
        return best

    def read_first(self, context: tuple[str, str]) -> _ParsedPattern:
        """Return the result of parsing the pattern with the first placeholders."""
        return self._parse_once(context, self._first_stand_ins())

    def _first_stand_ins(self) -> list[str]:
        first, first_for_many = self._stand_ins[0], self._first_stand_in_for_many
        return [first_for_many if written.startswith(_MANY_MARK) else first for written, _, _ in self._holes]

    def _parse_once(self, context: tuple[str, str], chosen: Sequence[str]) -> _ParsedPattern:
        prefix, suffix = context
        source = prefix.encode()
        start, end = len(source), 0
        holes: dict[tuple[int, int], str] = {}
        for (written, first, last), word, stand_in in zip(self._holes, self._words, chosen, strict=True):
            source += self._text[end:first].encode()
            name, _, closing = stand_in.replace("{n}", word).replace("{N}", word.capitalize()).partition("|")
            holes[len(source), len(source) + len(name)] = written
            source += (name + closing).encode()
            end = last
        source += self._text[end:].encode()
        root = self._parser.parse(source + suffix.encode()).root_node
        errors = _count_errors(root) if root.has_error else 0
        node = _node_at(root, start, len(source), is_closed=suffix.startswith(";"))
        if node is None or errors:
            return _ParsedPattern(faults=(node is None, errors, 0))
        read = _ParsedPattern(
            faults=_NO_FAULTS, kind=node.type, is_list=bool(node.children) and node.children[0].is_named
        )
        unread = dict(holes)
        try:
            converted = _convert_node(node, source, holes, unread, depth=0)
        except RecursionError:
            return read._replace(faults=(0, 0, 1), is_deep=True)
        if unread:
            return read._replace(faults=(0, 0, len(unread)), unread=next(iter(unread.values())))
        return read._replace(node=converted)


def _node_at(root: Node, start: int, end: int, *, is_closed: bool) -> Node | None:
    """Return the smallest node whose range is exactly [start, end), or None.

    If `is_closed` is set, the range may also include the semicolon after `end`.
    """
    for last in (end, end + 1) if is_closed else (end,):
        node = root.named_descendant_for_byte_range(start, last)
        if node is not None and node != root and (node.start_byte, node.end_byte) == (start, last):
            return node
    return None


def _convert_node(
    node: Node, source: bytes, holes: Mapping[tuple[int, int], str], unread: dict[tuple[int, int], str], *, depth: int
) -> PatternNode:
    """Convert a node and its descendants. A node that consists of a placeholder becomes the metavariable."""
    if depth > PATTERN_DEPTH_MAX:
        raise RecursionError
    span = (node.start_byte, node.end_byte)
    if node.is_named and span in holes:
        unread.pop(span, None)
        written = holes[span]
        name = written.lstrip("$")
        return PatternNode(hole=True, name="" if name.startswith("_") else name, is_many=written.startswith(_MANY_MARK))
    # Nodes that begin after the pattern belong to the added code, which closes the statement.
    own_children = [child for child in node.children if not child.is_extra and child.start_byte < max(len(source), 1)]
    children = [_convert_node(child, source, holes, unread, depth=depth + 1) for child in own_children]
    if span[1] > len(source) and len(children) == 1 and children[0].hole:
        return children[0]
    text = b"" if children else source[node.start_byte : node.end_byte]
    return PatternNode(kind=node.type, is_named=node.is_named, text=text, children=tuple(_drop_separators(children)))


def _drop_separators(children: Sequence[PatternNode]) -> Iterator[PatternNode]:
    """Yield the children of a node, without separators next to a metavariable that can match no node."""
    for index, child in enumerate(children):
        neighbors = children[max(index - 1, 0) : index + 2]
        if not (child.kind in _SEPARATORS and not child.is_named and any(neighbor.is_many for neighbor in neighbors)):
            yield child


def _count_errors(root: Node) -> int:
    """Return the size of all errors: the number of bytes in error nodes, plus the number of error and missing nodes."""
    size, pending = 0, [root]
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            size += 1 + node.end_byte - node.start_byte
        else:
            pending += [child for child in node.children if child.has_error or child.is_error or child.is_missing]
    return size


def _check_pattern(text: str, language: str) -> None:
    if not text:
        raise PatternError("the pattern is empty", hint="write code in which $X matches any node, such as 'print($X)'")
    if len(text.encode("utf-8", "surrogatepass")) > PATTERN_BYTES_MAX:
        raise PatternError(
            f"the pattern is longer than {PATTERN_BYTES_MAX:,} bytes", hint="search for a part of the pattern"
        )
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise PatternError("the pattern is not valid UTF-8", hint="write the pattern in UTF-8")
    if LanguageSyntax.of(language).is_prose:
        raise PatternError(f"patterns are not supported for {language}, in which any text is valid", hint="use --query")


def _pattern_error(read: _ParsedPattern, text: str, language: str) -> PatternError:
    if read.is_deep:
        return PatternError(
            f"the pattern is nested more than {PATTERN_DEPTH_MAX} levels deep", hint="search for a part of the pattern"
        )
    if read.unread:
        message = f"`{read.unread}` is inside a string, a comment or a longer word"
        return PatternError(
            f"{message}, but a metavariable must be a whole node", hint="use --query with the predicate `#match?`"
        )
    hint = "write a whole expression, statement or definition, or use --query"
    if _INVALID_METAVARIABLE.search(text):
        hint = "metavariables are upper-case: $X is one node, $$$ARGS any number of nodes; otherwise use --query"
    if read.faults[1]:
        return PatternError(f"the pattern is not valid {language} by itself", hint=hint)
    return PatternError(
        f"the pattern must be exactly one syntax node of {language}, not several nodes or a part of a node",
        hint=hint,
    )
