"""Facts about the code of a language that is not searched for duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from tree_sitter import Node

from codebatch_workers.syntax.language.parts import LanguagePart
from codebatch_workers.syntax.source import SourceFile

Span = tuple[int, int]


class LanguageDuplicates(LanguagePart, frozen=True, kw_only=True):
    """The code of a language that is not searched for duplicates.

    - `import_spans`: a function that returns the locations of imports, given the text. By default, they are the
      statements with captured imports.
    - `inline_tests`: a function that returns the nodes with code that is compiled only for tests. The file has a tree.
    """

    MODULE: ClassVar[str] = "duplicates"

    import_spans: Callable[[bytes], Iterable[Span]] | None = None
    inline_tests: Callable[[SourceFile], Iterable[Node]] | None = None
