"""Functions in the workers' code that queries call in their own process.

Queries need parsers and lint rules, which only the workers' code has. This package must not import that code. So the
module of each function is imported by name, and the type of the function is declared here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, cast

from codebatch.model.analysis.language_facts import LanguageFacts
from codebatch.model.analysis.search_result import FileSearchResult
from codebatch.model.analysis.uses import NameUse, SourceReader
from codebatch.model.change import ChangeRefusal
from codebatch.model.record import Edge
from codebatch.model.task import JsonValue, SnapshotView
from codebatch.protocol.launch import (
    ABSENCE_SERVICES_MODULE,
    FACT_SERVICES_MODULE,
    LANGUAGE_SERVICES_MODULE,
    NAME_SERVICES_MODULE,
    SOURCE_SERVICES_MODULE,
    USE_SERVICES_MODULE,
)

RuleSwitch = Callable[[bytes, str, str], bool | None]
"""A function (path, tool, rule ID) that returns whether a rule is switched off for a path.

It returns None for a rule that the settings do not know.
"""
UnreportedReason = Literal["suppressed", "unknown", ""]
"""The reason why lint has a finding and does not report it. Empty if it has no such finding.

- `suppressed`: a comment suppresses the finding.
- `unknown`: a limit was reached, or it is uncertain whether there is a finding.
"""
FileFindings = tuple[bytes, bytes, Mapping[str, bytes], Sequence[tuple[int, str, str, str]], bool]
"""The findings of one file: path, content, contexts, findings, and whether the file may have suppressions.

A finding is (line, tool, rule ID, message).
"""


class RuleTrialRunner(Protocol):
    """A runner of trials of the user's rules. Each trial is one rule on one file or example."""

    def __len__(self) -> int: ...
    def run(self, index: int) -> list[dict[str, JsonValue]]: ...
    def answer(self, results: Sequence[list[dict[str, JsonValue]] | str]) -> dict[str, list[dict[str, JsonValue]]]: ...


class CodeFinder(Protocol):
    """A compiled query or pattern with which code is searched. Every file with a match contains its `identifiers`."""

    @property
    def identifiers(self) -> tuple[str, ...]: ...


class ProjectUses(Protocol):
    """Resolves the uses of names in the files of one snapshot (`codebatch_workers.uses`)."""

    def uses_in(self, path: str, name: str) -> list[NameUse]:
        """Return the occurrences of a name in a file, in text order, each resolved to definitions."""

    def language_of(self, path: str) -> str:
        """Return the language of a file, or an empty text if its content is missing."""

    def marks_at(self, path: str, line: int, column: int) -> list[str]:
        """Return the decorators, annotations and attributes with which other code can call a definition.

        ANONYMOUS_MARK with a base, MODULE_MARK, and `base_mark` with a base are marks of methods.
        """

    def select_callable(
        self, path: str, place: tuple[int, int], definitions: Sequence[tuple[str, int, int]]
    ) -> list[tuple[str, int, int]]:
        """Return the definitions that a call can mean by its arguments. A place is a line and a column.

        A definition is excluded if compilers check the number of arguments, or if another one fits.
        """

    def can_override(self, method: tuple[str, int, int], base: tuple[str, int, int]) -> bool:
        """Return whether a method can override another one, by their modifiers and parameters.

        A method is given by its path, line and column.
        """

    def aliases_in(self, path: str, name: str, line: int) -> list[str]:
        """Return the other local names that an import at a line gives to a name."""

    def exported_names(self, path: str, name: str) -> list[str]:
        """Return the other names by which a file exports one of its names, or a name of another module.

        The name is empty if importing files choose it: the default export, or the value of the module.
        """

    def can_define(self, path: str, name: str) -> bool:
        """Return whether a file binds a name at its outermost level or exports it, or whether this is unknown."""

    def imported_names(self, path: str, symbols: Collection[tuple[str, str]]) -> list[str]:
        """Return the names by which a file imports or exports one of some symbols of other files.

        A symbol is given by its path and qualified name. An exported name is empty as in `exported_names`.
        """


class TreeGateRunner(Protocol):
    """The gates of changes in trees (`codebatch_workers.runtime.changes.tree_gates.TreeGates`)."""

    def find_refusals(self, versions: Sequence[tuple[bytes, bytes, bytes]]) -> list[ChangeRefusal | None]:
        """Return the refusal of each change, given as path, old and new content. An absent file has no content."""


class LanguageServices(Protocol):
    """Parsers, lint rules and code search (`codebatch_workers.runtime.introspection`)."""

    def tree_gates(self, view: SnapshotView, scratch: Path) -> TreeGateRunner: ...
    def syntax_tree(self, path: bytes, content: bytes, contexts: Mapping[str, bytes]) -> bytes: ...
    def list_rules(self, settings: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]: ...
    def rule_summaries(self) -> dict[str, str]: ...
    def explain_rule(self, settings: Mapping[str, JsonValue], code: str) -> dict[str, JsonValue]: ...
    def example_rule(self, settings: Mapping[str, JsonValue], rule_id: str, language: str) -> dict[str, JsonValue]: ...
    def path_languages(self, paths: Iterable[bytes]) -> Iterator[str]: ...
    def rule_trials(
        self, settings: Mapping[str, JsonValue], files: Sequence[tuple[bytes, bytes]]
    ) -> RuleTrialRunner: ...
    def unreported_reasons(
        self, settings: Mapping[str, JsonValue], queries: Sequence[FileFindings]
    ) -> Sequence[Sequence[UnreportedReason]] | None: ...
    def resolve_language(self, name: str) -> str: ...
    def make_finder(self, kind: str, text: str, language: str) -> CodeFinder: ...
    def find_in(
        self, search: CodeFinder, path: bytes, content: bytes, contexts: Mapping[str, bytes], is_counted: bool
    ) -> FileSearchResult: ...


class NameServices(Protocol):
    """The search for a name, with parsers (`codebatch_workers.runtime.name_search`)."""

    def references_in(
        self,
        name: str,
        path: bytes,
        content: bytes,
        contexts: Mapping[str, bytes],
        calls: Sequence[tuple[int, str, str]] | None = None,
    ) -> list[dict[str, JsonValue]]: ...


class UseServices(Protocol):
    """The resolution of uses of names, with parsers (`codebatch_workers.languages.project_uses`)."""

    def project_uses(
        self,
        read: SourceReader,
        links_of: Callable[[str], Sequence[Edge]],
        files_with_name: Callable[[str], Collection[str]],
    ) -> ProjectUses: ...
    def defined_names(self, path: bytes, content: bytes, contexts: Mapping[str, bytes]) -> frozenset[str]: ...


class SourceServices(Protocol):
    """Lines of files, without a parser (`codebatch_workers.runtime.source_lines`)."""

    def source_lines(
        self, path: bytes, content: bytes, contexts: Mapping[str, bytes], first: int, last: int
    ) -> dict[str, JsonValue]: ...
    def file_code_lines(
        self, path: bytes, content: bytes, contexts: Mapping[str, bytes], comments: bytes
    ) -> tuple[list[bytes], list[int]]: ...
    def decode_text(self, content: bytes) -> bytes: ...


class AbsenceServices(Protocol):
    """Functions that find out why lint reports no finding (`codebatch_workers.runtime.absence_reasons`)."""

    def rule_switch(self, settings: Mapping[str, JsonValue]) -> RuleSwitch | None: ...
    def per_file_limits(self) -> tuple[frozenset[str], frozenset[str], int]: ...
    def are_suppressed(
        self, path: bytes, content: bytes, contexts: Mapping[str, bytes], findings: Sequence[tuple[int, str]]
    ) -> list[bool]: ...


class FactServices(Protocol):
    """Facts about languages, without a parser (`codebatch_workers.languages.facts`)."""

    def language_facts(self, language: str) -> LanguageFacts: ...
    def path_facts(self, path: bytes) -> LanguageFacts: ...
    def language_family(self, language: str) -> str: ...
    def call_each_other(self, language: str, other: str) -> bool: ...
    def code_endings(self) -> frozenset[bytes]: ...


def fact_services() -> FactServices:
    """Import and return the facts about languages. They need no parser."""
    return cast("FactServices", importlib.import_module(FACT_SERVICES_MODULE))


def language_services() -> LanguageServices:
    """Import and return the services that need parsers. The first call takes a few hundred milliseconds."""
    return cast("LanguageServices", importlib.import_module(LANGUAGE_SERVICES_MODULE))


def name_services() -> NameServices:
    """Import and return the search for a name. It needs parsers, but no lint rules."""
    return cast("NameServices", importlib.import_module(NAME_SERVICES_MODULE))


def use_services() -> UseServices:
    """Import and return the resolution of uses. It needs parsers and the rules of each language, but no lint rules."""
    return cast("UseServices", importlib.import_module(USE_SERVICES_MODULE))


def source_services() -> SourceServices:
    """Import and return the services that need no parser."""
    return cast("SourceServices", importlib.import_module(SOURCE_SERVICES_MODULE))


def absence_services() -> AbsenceServices:
    """Import and return the services that explain missing findings."""
    return cast("AbsenceServices", importlib.import_module(ABSENCE_SERVICES_MODULE))
