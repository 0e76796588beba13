"""Rules about unused and shadowed names, based on syntax/bindings.py.

The following names count as used, because code outside the file may use them:

- names that begin with `_`
- top-level names in JavaScript that is not a module, because the page that loads the file can use them
- `React` in a file with JSX elements
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.lint.rule import RuleMatch
from codebatch_workers.syntax.bindings import BoundName, FileBindings, NameScope, find_used_bindings
from codebatch_workers.syntax.source import SourceFile

_MODULE_SYNTAX = re.compile(
    rb"(?:^|[;}])\s*(?:import|export)\b|\b(?:require\s*\(|module\.exports\b|exports\.)", re.MULTILINE
)
# The text between a variable and the name of the function that it is set to: ` = ` in `var f = function f`.
_INITIALIZER_START = re.compile(rb"\s*=[^;{}]*\Z")
_VARIABLE_KINDS = frozenset({"variable", "var", "function"})


def unused_imports(file: SourceFile) -> Iterator[RuleMatch]:
    """Yield imported names that nothing uses."""
    for definition in _iter_unused(file):
        if definition.kind == "import":
            yield definition.start, definition.end, f"`{_name_text(definition)}` is imported but never used"


def unused_variables(file: SourceFile) -> Iterator[RuleMatch]:
    """Yield variables, functions, classes and types that nothing uses."""
    for definition in _iter_unused(file):
        if definition.kind in _VARIABLE_KINDS:
            yield definition.start, definition.end, f"`{_name_text(definition)}` is never used"


def shadowed_names(file: SourceFile) -> Iterator[RuleMatch]:
    """Yield names that hide a name of an enclosing scope. The hidden name is defined before, or it is a function."""
    resolved = find_used_bindings(file)
    for scope, definition in _sorted_definitions(resolved):
        if definition.kind == "type_parameter" or scope.is_type:
            continue
        other_definitions = [
            other for other in scope.names[definition.name] if other.kind == "own" and other is not definition
        ]
        for hidden in other_definitions or scope.find_outside(definition.name):
            if definition.kind == "own" and _INITIALIZER_START.match(file.utf8, hidden.end, definition.start):
                continue
            if hidden.kind == "function" or hidden.start < definition.start:
                line = file.line(hidden.start)
                yield definition.start, definition.end, f"`{_name_text(definition)}` shadows the one at line {line}"
                break


def _iter_unused(file: SourceFile) -> Iterator[BoundName]:
    resolved = find_used_bindings(file)
    if resolved is None or file.path.endswith((b".d.ts", b".d.mts", b".d.cts")) or b"eval(" in file.utf8:
        return
    is_module = bool(_MODULE_SYNTAX.search(file.utf8))
    has_elements = bool(file.captures.get("element"))
    for scope, definition in _sorted_definitions(resolved):
        if definition.is_used or definition.name.startswith(b"_"):
            continue
        if scope.parent is None and not is_module:
            continue
        if not (has_elements and definition.name == b"React"):
            yield definition


def _sorted_definitions(resolved: FileBindings | None) -> list[tuple[NameScope, BoundName]]:
    definitions = [] if resolved is None else list(resolved.iter_definitions())
    definitions.sort(key=lambda pair: pair[1].start)
    return definitions


def _name_text(definition: BoundName) -> str:
    return definition.name.decode("utf-8", "replace")
