"""Callers of a definition that do not name it: the language, test runners, decorators, bases outside of the batch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from codebatch.model.analysis.uses import ANONYMOUS_MARK, MODULE_MARK
from codebatch.operations.names.class_hierarchy import ClassHierarchy
from codebatch.operations.names.symbol_use import definition_place, language_facts
from codebatch.plugins.worker_services import ProjectUses
from codebatch.query.answers.search_coverage import Evidence
from codebatch.query.answers.test_names import is_test_file
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import last_name, path_bytes

_FUNCTION_TYPES = frozenset({"constructor", "function", "macro", "method"})
_TEST_NAME = re.compile(r"(?:test|Test|Benchmark|Fuzz|Example|pytest_|setUp|tearDown|setup_|teardown_)\w*")
_CALLERS_SHOWN = 3
# Bases outside of a project that call no methods of their subclasses by other names than those of operators.
_PASSIVE_BASE = re.compile(
    r"ABC|Any|Flag|Generic|NamedTuple|Object|Protocol|TypedDict|bool|bytes|dict|float|frozenset|int|list|namedtuple"
    r"|object|set|str|tuple|(?:Mutable)?(?:Mapping|Sequence|Set)|Collection|Container|Hashable|Iterator|Reversible|Sized"
    r"|Async(?:Iterable|Iterator)|AutoCloseable|Cloneable|Closeable|Comparable|Iterable|Serializable"
    r"|I(?:Async)?(?:Comparable|Comparer|Disposable|Enumerable|Enumerator|Equatable)"
    r"|\w*(?:Enum|Error|Exception|Throwable|Warning)"
)


def implicit_callers(
    hierarchy: ClassHierarchy, uses: ProjectUses, definitions: Sequence[JsonRecord]
) -> tuple[Evidence, ...]:
    """Return the evidence that code uses one of some definitions without its name. Raises StoreCorrupt."""
    callers = [caller for definition in definitions for caller in _callers(hierarchy, uses, definition)]
    if not callers:
        return ()
    shown = list(dict.fromkeys(callers))[:_CALLERS_SHOWN]
    name = definitions[0]["name"]
    is_function = any(definition["symbol_type"] in _FUNCTION_TYPES for definition in definitions)
    text = f"{' or '.join(shown)} can {f'call {name} without its name' if is_function else f'use {name}'}"
    return (Evidence(kind="implicit", count=len(callers), text=text),)


def _callers(hierarchy: ClassHierarchy, uses: ProjectUses, definition: JsonRecord) -> Iterator[str]:
    path, name = path_bytes(definition), str(definition["name"])
    facts = language_facts(uses, os.fsdecode(path))
    if definition["symbol_type"] in _FUNCTION_TYPES:
        if re.fullmatch(facts.called_methods if definition.get("scope") else facts.called_functions, name):
            yield "code"
        elif definition["symbol_type"] == "constructor" and name == last_name(definition.get("scope", "")):
            yield "code"  # `new A()` is resolved to the class.
        if is_test_file(path) and _TEST_NAME.match(name):
            yield "a test runner"
    marks = uses.marks_at(*definition_place(definition))
    named = [mark for mark in marks if facts.base_mark and mark.startswith(facts.base_mark)]
    yield from (mark for mark in marks if mark not in (*named, MODULE_MARK) and not mark.startswith(ANONYMOUS_MARK))
    if definition.get("visibility") == "private" and not facts.base_mark:
        return
    # The default methods of the base call the others by their names.
    bases = {mark.removeprefix(facts.base_mark).partition("<")[0].rpartition("::")[2] for mark in named}
    for base in hierarchy.outer_bases(definition):
        if base in bases if facts.base_mark else not _PASSIVE_BASE.fullmatch(base):
            yield base
