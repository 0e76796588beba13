"""Relations of a file: imports, bases, calls. outline.py documents the captures and rules."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec
from tree_sitter import Node

from codebatch.model.record import ANONYMOUS, Edge, EdgeType
from codebatch_workers.symbols.callees import called_values, last_name, unmarked_calls
from codebatch_workers.symbols.imported_names import ImportedName, literal_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.symbols.load_time import is_deferred_import, is_type_only_import
from codebatch_workers.symbols.macros import MacroBodies, MacroDefinition
from codebatch_workers.syntax.names import NAME_BYTES_MAX, strip_generics
from codebatch_workers.syntax.source import SourceFile

_SIMPLE_CALLEE = re.compile(rb"[\w.$\x80-\xff]+\Z")
_UP_TO_LAST_CHAIN = re.compile(rb".*[^\w.$:#>\x80-\xff-]", re.DOTALL)
_LINE_CONTINUATION = re.compile(rb"\\(?:\r\n?|\n)")
_BETWEEN_WORDS = re.compile(rb"(?<=[\w$\x80-\xff])\s+(?=[\w$\x80-\xff])")
_MARKS = re.compile(rb"@[\w.]+(?:\([^)]*\))?\s+")
_BASE_NAME = re.compile(rb"[\w.$:\\\x80-\xff]+\Z")


class EnclosingScope(msgspec.Struct, frozen=True, gc=False):
    """The scope at an offset. `start` is the offset of its name, or -1 if the source contains no name for it."""

    qualified: str
    symbol_type: str
    start: int = -1


class FileRelations:
    """The edges of a file: imports, bases and calls. `bound` has each name that an import binds, with its scope."""

    def __init__(self, file: SourceFile, starts: Sequence[int], scopes: Sequence[EnclosingScope]) -> None:
        """Compute the edges. `scopes[i]` applies from the offset `starts[i]` to the next offset in `starts`."""
        self.file = file
        self.utf8 = file.utf8
        self.language = file.language
        self._rules = LanguageSymbols.of(file.language)
        self.captures = file.captures
        self._starts = starts
        self._scopes = scopes
        self._comments = self.captures.get("comment", ())
        self._comment_starts = [node.start_byte for node in self._comments]
        self.bound: list[tuple[Node, EnclosingScope]] = []
        self._edges: list[tuple[int, EdgeType, str, str]] = []
        self._edges_of_macros: list[tuple[int, EdgeType, str, str]] = []
        self._modules: dict[int, str] = {}
        self._type_only: set[int] = set()
        self._deferred: set[int] = set()
        self._erasable: set[int] = set()
        self._add_imports()
        self._add_bases()
        self._add_calls()
        self._add_stated_imports()
        self._add_special_calls()

    def _scope_at(self, offset: int) -> EnclosingScope:
        return self._scopes[bisect_right(self._starts, offset) - 1]

    def _add_imports(self) -> None:
        imports_of = self._rules.imports
        if imports_of is None:
            return
        for statement in self.captures.get("import", ()):
            scope = self._scope_at(statement.start_byte)
            names = imports_of(statement, self.utf8)
            for imported in names:
                self._add_import(imported, scope)
            self._add_load_time(statement, [imported.node.start_byte for imported in names])
        for node in self.captures.get("bound", ()):
            self.bound.append((node, self._scope_at(node.start_byte)))

    def _add_import(self, imported: ImportedName, scope: EnclosingScope) -> None:
        if imported.target:
            start = imported.node.start_byte
            self._edges.append((start, "imports", scope.qualified, imported.target[:NAME_BYTES_MAX]))
            if imported.is_module:
                self._modules[start] = imported.module_file
        bound = imported.bound
        if bound is not None:
            self.bound.append((bound, scope))

    def _add_load_time(self, node: Node, offsets: Sequence[int]) -> None:
        """Record whether loading the file executes the imports at `offsets`. All belong to one statement or call."""
        rules = self._rules.load_time
        if is_type_only_import(node, rules, self.file.path, self.utf8):
            self._type_only.update(offsets)
        elif rules.is_erasable is not None and rules.is_erasable(self.file, node):
            self._erasable.update(offsets)
        if is_deferred_import(node, rules, self.utf8):
            self._deferred.update(offsets)

    def _add_bases(self) -> None:
        named = {node.start_byte for node in self.captures.get("base", ())}
        for capture, suffix in (("base", ""), ("base.anonymous", ANONYMOUS)):
            for node in self.captures.get(capture, ()):
                start = node.start_byte
                if suffix and start in named:
                    continue
                text = strip_generics(self.utf8[start : node.end_byte][:NAME_BYTES_MAX])
                text = _MARKS.sub(b"", text).split(b"[")[0].split(b"(")[0].strip().lstrip(b"*&")
                source = ".".join(filter(None, (self._scope_at(start).qualified, suffix)))
                if source and _BASE_NAME.match(text):
                    self._edges.append((start, "inherits", source, text.decode("utf-8", "replace")))

    def _add_calls(self) -> None:
        utf8, append = self.utf8, self._edges.append
        # Two results are cached. Most callees occur several times in a file, and most calls are in the same scope as
        # the call before.
        simple: dict[bytes, str] = {}
        source, scope_end = "", 0
        has_marks = b"`" in self.file.syntax.name_marks
        for node in self.captures.get("call", ()):
            start, end = node.start_byte, node.end_byte
            if start >= scope_end:
                following = bisect_right(self._starts, start)
                source = self._scopes[following - 1].qualified
                scope_end = self._starts[following] if following < len(self._starts) else len(utf8)
            text = utf8[start if end - start <= NAME_BYTES_MAX else end - NAME_BYTES_MAX : end]
            target = simple.get(text)
            if target is None:
                # Only the text after the last parenthesis counts. If it contains a comment, it is not a plain name.
                last = text[text.rfind(b")") + 1 :]
                if has_marks and last.endswith(b"`"):
                    chain, _, name = last[:-1].rpartition(b"`")
                    target = simple[text] = (b"." * chain.endswith(b".") + name).decode("utf-8", "replace")
                elif _SIMPLE_CALLEE.match(last) and b"<" not in text:
                    target = simple[text] = last.decode("utf-8", "replace")
                else:
                    self._add_calls_of(node, source)
                    continue
            if target and target != "import":
                # The offset of the last name is used, because a chain of calls can begin many lines above it.
                append((end - 1, "calls", source, target))

    def _add_calls_of(self, callee: Node, source: str) -> None:
        """Add an edge for each chain of names that a callee may call."""
        if callee.type in self._rules.outer_callees:
            return
        for value in called_values(callee):
            end = last_name(value).end_byte
            target = self._callee_between(value.start_byte, end)
            if target:
                self._edges.append((end - 1, "calls", source, target))

    def _callee_between(self, start: int, end: int) -> str:
        """Return the chain of names at the end of the text between two offsets."""
        return _callee_name(self._strip_comments(self.utf8[max(start, end - NAME_BYTES_MAX) : end], end))

    def _strip_comments(self, text: bytes, end: int) -> bytes:
        """Remove comments from `text`, which ends at the offset `end` of the file. Return the rest."""
        start = end - len(text)
        # The search includes the last comment before `start`, because this comment can extend into `text`.
        first = max(bisect_left(self._comment_starts, start) - 1, 0)
        for node in reversed(self._comments[first : bisect_left(self._comment_starts, end)]):
            text = text[: max(node.start_byte - start, 0)] + text[max(node.end_byte - start, 0) :]
        return text

    def _add_special_calls(self) -> None:
        """Add the edges for those captures that occur only in one or two languages."""
        for node in self.captures.get("tail", ()):
            call, end = node.parent or node, node.end_byte
            mark = self.utf8[end - 1 : end] if self.utf8[end - 1] in self._rules.name_ends else b""
            target = self._callee_between(call.start_byte, end - len(mark))
            self._add_edge(node.start_byte, "calls", target and target + mark.decode())
        for start, end in unmarked_calls(self.file):
            self._add_edge(end - 1, "calls", self.utf8[start:end].decode("utf-8", "replace").lstrip(":$"))
        for node in self.captures.get("macro", ()):
            self._add_edge(node.start_byte, "calls", self._callee_between(node.start_byte, node.end_byte) + "!")
        for node in self.captures.get("decorator", ()):
            if node.type != "call":
                self._add_calls_of(node, self._scope_at(node.start_byte).qualified)
        for node in self.captures.get("component", ()):
            self._add_edge(node.start_byte, "calls", self._callee_between(node.start_byte, node.end_byte))
        for node in self.captures.get("command", ()):
            self._add_edge(node.start_byte, "calls", self._text(node))

    def _add_stated_imports(self) -> None:
        """Add the edges for imports whose targets are captured."""
        for node in (*self.captures.get("source", ()), *self.captures.get("importer", ())):
            if not any("substitution" in child.type for child in node.named_children):
                self._add_stated_import(node, literal_text(node, self.utf8))
        for node in self.captures.get("source.file", ()):
            self._add_stated_import(node, f"./{literal_text(node, self.utf8)}")
        for node in self.captures.get("source.word", ()):
            self._add_stated_import(node, self._text(node).strip("\"'"))

    def _add_edge(self, offset: int, edge_type: EdgeType, target: str) -> None:
        if target:
            self._edges.append((offset, edge_type, self._scope_at(offset).qualified, target))

    def _add_stated_import(self, node: Node, target: str) -> None:
        self._add_edge(node.start_byte, "imports", target[:NAME_BYTES_MAX])
        self._add_load_time(node, [node.start_byte])

    def _text(self, node: Node) -> str:
        return self.utf8[node.start_byte : node.end_byte][:NAME_BYTES_MAX].decode("utf-8", "replace")

    def add_macro_calls(self, macros: Sequence[MacroDefinition], reserved: frozenset[bytes]) -> None:
        """Add an edge for each call in a macro body. The source of the edge is the macro.

        The grammar does not parse macro bodies, so the calls are found by their text.
        """
        rules = self._rules.macros
        if rules is None:
            return
        for macro in macros:
            name = self.utf8[macro.start : macro.name_end].decode("utf-8", "replace")
            for end, target in rules.iter_calls(macro, self.utf8, reserved):
                self._edges_of_macros.append((end - 1, "calls", name, target))

    def edge_records(self, ignored: MacroBodies) -> list[Edge]:
        """Return the edges by position. In the macro bodies `ignored`, only edges from `add_macro_calls` count."""
        path, path_b64 = self.file.path_fields
        lines = self.file.line_starts
        edges = self._edges if not ignored else [edge for edge in self._edges if edge[0] not in ignored]
        edges += self._edges_of_macros
        edges.sort()
        return [
            Edge(
                path=path,
                path_b64=path_b64,
                edge_type=edge_type,
                source=source,
                target=target,
                line=bisect_right(lines, offset),
                is_module=edge_type == "imports" and offset in self._modules,
                module_file=self._modules.get(offset, "") if edge_type == "imports" else "",
                type_only=edge_type == "imports" and offset in self._type_only,
                deferred=edge_type == "imports" and offset in self._deferred,
                erasable=edge_type == "imports" and offset in self._erasable,
            )
            for offset, edge_type, source, target in edges
        ]


def _callee_name(text: bytes) -> str:
    r"""Return the chain of names at the end of a callee.

    Examples: `.d` for `a.b(c)\n.d`, `std::move` for `std::move<T>`. `text` must not contain comments. Line ends and
    line continuations in it are ignored.
    """
    if b"<" not in text:
        # Only the text after the last parenthesis counts. In most long texts, it is a plain name.
        text = text[text.rfind(b")") + 1 :]
        if _SIMPLE_CALLEE.match(text):
            return text.decode("utf-8", "replace")
    text = strip_generics(_LINE_CONTINUATION.sub(b"", text))
    # Two words with only white space between them do not form one name. The first word belongs to another construct:
    # `template` in `x.template f`. So the white space is replaced by a bracket, which ends the chain of names.
    text = _BETWEEN_WORDS.sub(b"(", text)
    text = b"".join(text.split()).replace(b"?.", b".").replace(b"!.", b".").replace(b"?->", b"->")
    before = _UP_TO_LAST_CHAIN.match(text)
    if before is not None:
        text = text[before.end() :]
    return text.replace(b"::::", b"::").strip(b":->#").decode("utf-8", "replace")
