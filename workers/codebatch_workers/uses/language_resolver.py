"""The interface through which a language takes part in the resolution of uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import Resolved
from codebatch_workers.uses.entities import Meaning
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_rules import LanguageRules


class UseContext(NamedTuple):
    """The snapshot in which uses are resolved.

    `facts_of` returns the facts of a file, or None. `files_with_name` returns the paths of all files that contain a
    name, and possibly of others.
    """

    facts_of: Callable[[str], SourceFacts | None]
    files_with_name: Callable[[str], Collection[str]]


class LanguageResolver:
    """The rules of one language. Each method here is the common rule, which suffices for languages such as Python."""

    def __init__(self, context: UseContext) -> None:
        self.facts_of, self.files_with_name = context

    def resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved | None:
        """Return the definitions to which a name refers. `scope` is its enclosing definition.

        Return None if the name is resolved by the common rules: local names, imports, and values of objects.
        """
        return None

    def find_global(self, name: str) -> Meaning | None:
        """Return what a name means that a file does not bind, or None."""
        return None

    def follow_import(self, facts: SourceFacts, name: str, line: int) -> Iterable[Meaning] | None:
        """Return what the imports at a line that bind a name refer to. Return None for the common rule."""
        return None

    def select_fitting(self, found: Meaning, name: Node) -> Meaning | None:
        """Return the part of a meaning that a name can have at its place, or None."""
        return found


class LanguageUses(msgspec.Struct, frozen=True):
    """The resolution of the uses of names in a language.

    These tables have node types that grammars share: `_MEMBER_NODES` and `_PLAIN_NODES` in `chains.py`, the constants
    in `arguments.py`, `_LABEL_OWNERS` and `_DECLARATORS` in `file_facts.py`, `_CONSTRUCTIONS` and `_DECLARATIONS` in
    `symbols/local_names.py`. With `has_bindings`, also those in `values.py`, `elements.py` and `declarations.py`.
    """

    rules: LanguageRules = LanguageRules()
    resolver: Callable[[UseContext], LanguageResolver] = LanguageResolver
