"""A file as tasks get it: its properties, text and syntax tree. Each is computed on first use and cached.

Lines and columns count from 1. Columns are code points and do not include a byte order mark. Only LF ends a line: the
CR of CRLF is the last character of its line, and a lone CR is an ordinary character. Offsets are positions in `utf8`,
the content in UTF-8 without its byte order mark. The module is as long as it is because all values are derived from
other values of the same file and cached with them.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from io import BytesIO
from itertools import accumulate
from operator import attrgetter
from typing import Any, Generic, TypeVar

from msgspec import UnsetType
from tree_sitter import Node, Query, QueryCursor, Tree

from codebatch.model.entry import is_lfs_pointer, path_fields
from codebatch.model.record import Diagnostic, FileClass, Severity
from codebatch_workers.syntax.broken_trees import QUERY_DEPTH_MAX, is_hopeless_tree, iter_broken_nodes
from codebatch_workers.syntax.classification.migrations import is_migration
from codebatch_workers.syntax.classification.provenance import MINIFIED_ENDINGS, is_generated, is_vendored
from codebatch_workers.syntax.classification.purpose import file_purpose, is_documentation
from codebatch_workers.syntax.edited_files import EditedFile, edit_file
from codebatch_workers.syntax.findings import diagnostic_at
from codebatch_workers.syntax.grammar_gaps.extended_captures import extended_captures
from codebatch_workers.syntax.grammar_gaps.gaps import tree_without_gaps
from codebatch_workers.syntax.grammar_gaps.reparsing import reparse
from codebatch_workers.syntax.language.attributes import file_attributes
from codebatch_workers.syntax.language.encodings import DecodedText, decode_content, is_binary
from codebatch_workers.syntax.language.languages import UNKNOWN_LANGUAGE, detect_language, has_grammar, load_parser
from codebatch_workers.syntax.language.linguist_names import language_named
from codebatch_workers.syntax.language.notebooks import NOTEBOOK_LANGUAGE, Notebook, read_notebook
from codebatch_workers.syntax.language_gaps import LanguageGaps
from codebatch_workers.syntax.language_queries import captures_query
from codebatch_workers.syntax.language_syntax import LanguageSyntax

HUGE_BYTES_MIN = 8 * 1024 * 1024  # Larger files are neither parsed nor linted.
# Larger notebooks are not read. The limit is higher than for other files, because notebooks contain images.
NOTEBOOK_BYTES_MAX = 64 * 1024 * 1024
NOTEBOOK_ENDING = b".ipynb"
_COLUMN_BLOCK_BYTES = 1024
_MINIFIED_LINE_BYTES_MIN = 500
_MINIFIED_BYTES_MIN = 2048
_DENSE_LINE_BYTES_MIN = 110
_DENSE_BLANKS_SHARE_MAX = 0.04

_LONE_CR = re.compile(rb"\r(?!\n)")
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
# The contexts that can change the language. The language can change any cached value.
_LANGUAGE_FOLLOWS_FROM = frozenset({"attributes", "language"})

T = TypeVar("T")


class _cached_attribute(Generic[T]):  # noqa: N801  # used as a decorator
    """A cached property without the lock that `functools.cached_property` takes before Python 3.12."""

    def __init__(self, make: Callable[[SourceFile], T]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, file: SourceFile, _owner: type[SourceFile]) -> T:
        value = file.__dict__[self._name] = self._make(file)
        return value


class SourceFile:
    """A file of a snapshot. `contexts` are the values of its contexts in the plan (SPEC.md "Context").

    It has many methods: most of them return a cached value that is derived from the content.
    """

    # Views with fewer contexts share the cached values in `__dict__`, but not `_views` and `contexts`.
    __slots__ = ("__dict__", "_views", "contexts")

    def __init__(self, path: bytes, content: bytes, executable: bool, contexts: Mapping[str, bytes]) -> None:
        self.path = path
        self.content = content
        self.executable = executable
        self.contexts = contexts
        self._views: dict[frozenset[str], SourceFile] = {}
        self.path_fields: tuple[str | UnsetType, str | UnsetType] = path_fields(path)

    # -- Properties ----------------------------------------------------------------------------------------------------

    @_cached_attribute
    def language(self) -> str:
        """The language, by `.gitattributes` or detection. `text` if it is unknown, or the file is a Git LFS pointer."""
        if self.notebook is not None or is_lfs_pointer(self.content):
            return UNKNOWN_LANGUAGE if self.notebook is None else NOTEBOOK_LANGUAGE
        named = self._attributes.get("language")
        if named and not self.path.endswith(NOTEBOOK_ENDING):
            return language_named(named)
        content = self.content
        start = len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0
        return detect_language(self.path, content[start : start + 256], self.contexts.get("language", b""), content)

    @_cached_attribute
    def syntax(self) -> LanguageSyntax:
        """The syntax of the language."""
        return LanguageSyntax.of(self.language)

    @_cached_attribute
    def notebook(self) -> Notebook | None:
        """The Python notebook in the file, or None. If there is one, `utf8` is the code of its cells."""
        if not self.path.endswith(NOTEBOOK_ENDING) or is_binary(self.content):
            return None
        if len(self.content) > NOTEBOOK_BYTES_MAX:
            return None
        return read_notebook(decode_content(self.content, lambda: False).utf8)

    @_cached_attribute
    def _attributes(self) -> Mapping[str, str]:
        return file_attributes(self.contexts.get("attributes", b""))

    @_cached_attribute
    def is_binary(self) -> bool:
        """Whether the file is binary."""
        return is_binary(self.content)

    @_cached_attribute
    def file_class(self) -> FileClass:
        """The class of the file: the first of these that applies.

        binary, empty, huge, minified, generated, vendored, fixture, test, example, template, migration, documentation,
        text

        If `.gitattributes` marks a test as documentation, the file is test data, a fixture. If `.gitattributes` sets or
        unsets `linguist-generated`, `linguist-vendored` or `linguist-documentation`, this value determines whether the
        class applies.
        """
        if self.is_binary:
            return "binary"
        if not self.utf8:
            return "empty"
        if len(self.content if self.notebook is None else self.utf8) > HUGE_BYTES_MIN:
            return "huge"
        linguist = self._attributes
        if "generated" not in linguist and self._is_minified():
            return "minified"
        if linguist.get("generated") or ("generated" not in linguist and is_generated(self.path, self.utf8)):
            return "generated"
        if linguist.get("vendored") or (
            "vendored" not in linguist and is_vendored(self.path, self.utf8, self.language)
        ):
            return "vendored"
        purpose = file_purpose(self.path)
        if purpose is not None:
            return "fixture" if purpose == "test" and linguist.get("documentation") else purpose
        if is_migration(self.path, self.utf8, self.language):
            return "migration"
        is_for_readers = linguist.get("documentation") or (
            "documentation" not in linguist and is_documentation(self.path)
        )
        return "documentation" if is_for_readers else "text"

    def _is_minified(self) -> bool:
        if self.path.endswith(MINIFIED_ENDINGS):
            return True
        if not self.syntax.is_for_browsers or len(self.utf8) < _MINIFIED_BYTES_MIN:
            return False
        size, lines = len(self.utf8), self.line_count
        if size > _MINIFIED_LINE_BYTES_MIN * lines:
            return True
        if not self.syntax.has_dense_lines or size <= _DENSE_LINE_BYTES_MIN * lines:
            return False
        return sum(map(self.utf8.count, (b" ", b"\t", b"\n"))) < _DENSE_BLANKS_SHARE_MAX * size

    @_cached_attribute
    def is_parsed(self) -> bool:
        """Whether the file can be parsed, and its grammar detects syntax errors. Grammars of prose do not."""
        return not self.syntax.is_prose and self.can_be_parsed

    @property
    def can_be_parsed(self) -> bool:
        """Whether an installed grammar can parse the file, and its size and class permit it."""
        if not self.has_grammar or self.file_class in ("binary", "empty", "huge", "minified"):
            return False
        return not self.overruns_its_grammar

    @_cached_attribute
    def overruns_its_grammar(self) -> bool:
        """Whether the file exceeds limits of its grammar's scanner, so that parsing would crash or fail."""
        overruns = self.syntax.overruns_scanner
        return overruns is not None and overruns(self.utf8)

    @property
    def has_grammar(self) -> bool:
        """Whether this installation can parse files of this language."""
        return has_grammar(self.language)

    # -- Text ----------------------------------------------------------------------------------------------------------

    @_cached_attribute
    def _decoded_text(self) -> DecodedText:
        if self.notebook is not None:
            return DecodedText(self.notebook.module_source, "utf-8", "")
        return decode_content(self.content, lambda: self.syntax.has_encoding_comments)

    @property
    def encoding(self) -> str:
        """The IANA name of the encoding: `unknown-8bit` if undeclared and not UTF-8, empty for binary files."""
        return "" if self.is_binary else self._decoded_text.encoding

    @property
    def encoding_problem(self) -> str:
        """The first problem in decoding the file, or an empty text."""
        return "" if self.is_binary else self._decoded_text.problem

    @_cached_attribute
    def utf8(self) -> bytes:
        """The content in UTF-8 without byte order mark. Invalid bytes become U+FFFD. For binary files, it is empty."""
        return b"" if self.is_binary else self._decoded_text.utf8

    @_cached_attribute
    def text(self) -> str:
        """`utf8` as `str`."""
        return self.utf8.decode("utf-8")

    @_cached_attribute
    def line_starts(self) -> list[int]:
        """The offset of the start of each line, and the offset after the last LF."""
        # BytesIO splits lines only at LF, and is faster than a search for each LF.
        starts = list(accumulate(map(len, BytesIO(self.utf8)), initial=0))
        if not self.utf8.endswith(b"\n") and self.utf8:
            starts.pop()
        return starts

    @_cached_attribute
    def line_count(self) -> int:
        """The number of lines. Text after the last LF is a line too."""
        return self.utf8.count(b"\n") + (not self.utf8.endswith(b"\n") and bool(self.utf8))

    # -- Positions -----------------------------------------------------------------------------------------------------

    @_cached_attribute
    def is_ascii(self) -> bool:
        """Whether `utf8` is ASCII."""
        return self.utf8.isascii()

    def line(self, offset: int) -> int:
        """Return the line, from 1, that contains an offset."""
        return bisect_right(self.line_starts, offset)

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both counted from 1. Columns are counted in code points."""
        line = bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        if self.is_ascii:
            return line, offset - start + 1
        blocks = (offset - start) // _COLUMN_BLOCK_BYTES
        before = self._columns_before(line)[blocks] if blocks else 0
        return line, before + _count_code_points(self.utf8[start + blocks * _COLUMN_BLOCK_BYTES : offset]) + 1

    @_cached_attribute
    def _column_tables(self) -> dict[int, list[int]]:
        return {}

    def _columns_before(self, line: int) -> list[int]:
        """Return the number of code points before each block of a long line. They make `position` fast."""
        table = self._column_tables.get(line)
        if table is None:
            start = self.line_starts[line - 1]
            end = self.line_starts[line] if line < len(self.line_starts) else len(self.utf8)
            table = [0]
            for block in range(start, end, _COLUMN_BLOCK_BYTES):
                table.append(table[-1] + _count_code_points(self.utf8[block : block + _COLUMN_BLOCK_BYTES]))
            self._column_tables[line] = table
        return table

    def report(
        self, line: int, message: str, *, column: int = 1, code: str = "", severity: Severity = "warning"
    ) -> Diagnostic:
        """Return a finding at a line and column (in code points). By default, `code` is the name of the task.

        Raises ValueError if the file does not have this line or column.
        """
        return diagnostic_at(self, line, message, column=column, code=code, severity=severity)

    def change(self, content: bytes | str | None, *, executable: bool | None = None) -> EditedFile:
        """Return a proposed change of this file, for a custom task to yield. The file itself is not changed.

        `content` is the new content. None deletes the file. A `str` is written in the encoding of the file, with its
        byte order mark; newlines are not converted. By default, the executable bit stays.

        Raises ValueError if `content` is a `str` and the encoding cannot represent it, or if `text` is not the exact
        content of the file, as in notebooks and files with invalid bytes.
        """
        return edit_file(self, content, executable)

    # -- Syntax tree ---------------------------------------------------------------------------------------------------

    @_cached_attribute
    def tree(self) -> Tree | None:
        """The syntax tree of `utf8`, or None unless `is_parsed`."""
        return self.parse() if self.is_parsed else None

    def parse(self) -> Tree:
        """Return a new syntax tree. The language must have a grammar. It may be a language of prose such as Markdown.

        Code that the grammar does not support is replaced by other code if this reduces the number of syntax errors
        (grammar_gaps).
        """
        utf8 = self.parsed_text
        parser = load_parser(self.language)
        tree = parser.parse(utf8)
        repair = self.syntax.repair_parsed
        if repair is not None:
            replaced = repair(utf8, tree)
            return tree if replaced == utf8 else reparse(parser, tree, utf8, replaced)
        # The gaps are loaded only here, because most trees have no error.
        if tree.root_node.has_error and LanguageGaps.of(self.language).finders:
            tree, utf8 = tree_without_gaps(utf8, self.language, tree, parser)
        self.__dict__["_tree_text"] = utf8
        return tree

    @property
    def tree_text(self) -> bytes:
        """The parsed text: `utf8`, with other text of equal length for code that the grammar does not support."""
        text: bytes = self.__dict__.get("_tree_text", self.utf8) if self.tree is not None else self.utf8
        return text

    @_cached_attribute
    def parsed_text(self) -> bytes:
        """The text that the grammar parses. It has the length of `utf8`, but other text for code that would be misread.

        LF replaces each lone CR, because some grammars end lines at CR and others do not.
        """
        utf8 = _LONE_CR.sub(b"\n", self.utf8) if b"\r" in self.utf8 else self.utf8
        repair = self.syntax.repair
        return utf8 if repair is None else repair(utf8)

    @_cached_attribute
    def has_syntax_error(self) -> bool:
        """Whether the tree has a syntax error. `release` keeps the value."""
        root = self.tree.root_node if self.tree is not None else None
        return root is not None and root.has_error and any(True for _ in iter_broken_nodes(root, self.language))

    @_cached_attribute
    def is_hopeless(self) -> bool:
        """Whether one syntax error covers so much that the tree is useless. `release` keeps the value."""
        return self.has_syntax_error and self.tree is not None and is_hopeless_tree(self.tree)

    @_cached_attribute
    def captures(self) -> Mapping[str, list[Node]]:
        """The captures of the language's own query, by name. All tasks share the result of this one query.

        A hopeless file has no captures. Nodes deeper than QUERY_DEPTH_MAX are not captured.
        """
        captures = {} if self.tree is None else self.query(captures_query(self.language))
        return extended_captures(captures, self.utf8, self.syntax)

    def matches(self, query: Query) -> Iterator[Mapping[str, list[Node]]]:
        """Yield the captures of each match of a query, in undefined order. Prose such as Markdown is parsed, too."""
        if self.is_hopeless:
            return
        root = (self.tree or self.parse()).root_node
        for _, captures in _query_cursor(query).matches(root):
            yield captures

    def query(self, query: Query) -> dict[str, list[Node]]:
        """Run a tree-sitter query over the tree. Return the captures by name, each sorted by position."""
        if self.tree is None or self.is_hopeless:
            return {}
        # The binding collects nodes in a set, ordered by memory addresses. So their order differs between runs.
        captures: dict[str, list[Node]] = _query_cursor(query).captures(self.tree.root_node)
        for nodes in captures.values():
            if len(nodes) > 1:
                # Two sorts by one number each are faster than one sort by a tuple.
                nodes.sort(key=_end_byte)
                nodes.sort(key=_start_byte)
        return captures

    @_cached_attribute
    def _derived_values(self) -> dict[object, Any]:
        return {}

    def derived(self, make: Callable[[SourceFile], T]) -> T:
        """Return `make(self)`. The result is computed once, cached, and shared by all tasks.

        `make` may use only contexts that can change the language.
        """
        return self._get_or_make(self._derived_values, make)

    @_cached_attribute
    def _cached_results(self) -> dict[object, Any]:
        return {}

    def derived_persistently(self, make: Callable[[SourceFile], T]) -> T:
        """Like `derived`, but `release` keeps the result. The result must not contain nodes of the tree."""
        return self._get_or_make(self._cached_results, make)

    def _get_or_make(self, results: dict[object, Any], make: Callable[[SourceFile], T]) -> T:
        if make not in results:
            results[make] = make(self)
        result: T = results[make]
        return result

    @_cached_attribute
    def _restricted_files(self) -> dict[frozenset[str], SourceFile]:
        return {}

    def restricted_to_contexts(self, contexts: frozenset[str]) -> SourceFile:
        """Return a view of this file with only the given contexts.

        If this file has no other contexts, return the file itself. If a hidden context can change the language, the
        view computes its own tree and other values. Otherwise, the view and this file share all cached values.
        """
        if not self.contexts or self.contexts.keys() <= contexts:
            return self
        view = self._views.get(contexts) or self._restricted_files.get(contexts)
        if view is None:
            visible = {name: value for name, value in self.contexts.items() if name in contexts}
            if self.contexts.keys() & _LANGUAGE_FOLLOWS_FROM <= contexts:
                view = self._views[contexts] = SourceFile.__new__(SourceFile)
                view.__dict__, view._views, view.contexts = self.__dict__, {}, visible
            else:
                view = self._restricted_files[contexts] = SourceFile(self.path, self.content, self.executable, visible)
        return view

    def release(self) -> None:
        """Discard the tree, the text, and values derived from them. If they are used again, they are computed again."""
        for narrower in self._restricted_files.values():
            narrower.release()
        for name in (
            "_derived_values",
            "captures",
            "tree",
            "_tree_text",
            "parsed_text",
            "text",
            "line_starts",
            "_column_tables",
        ):
            self.__dict__.pop(name, None)


_start_byte = attrgetter("start_byte")
_end_byte = attrgetter("end_byte")


@cache
def _query_cursor(query: Query) -> QueryCursor:
    cursor = QueryCursor(query)
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)
    return cursor


def _count_code_points(utf8: bytes) -> int:
    return len(utf8) if utf8.isascii() else len(utf8.translate(None, _CONTINUATION_BYTES))
