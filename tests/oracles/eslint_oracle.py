"""JavaScript and TypeScript as eslint sees them: complexity, names that are unused or shadow others (eslint.mjs)."""

from __future__ import annotations

import functools
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import tree_sitter

from codebatch_workers.lint.bindings import find_bindings
from codebatch_workers.lint.unused import shadowed_names, unused_imports, unused_variables
from codebatch_workers.symbols.complexity import function_metrics
from codebatch_workers.syntax.language.languages import load_grammar
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare
from tests.oracles.complexity_oracle import in_terms_of, innermost
from tests.support import corpora

# Default values and optional chains are branches to eslint.
_RULES = {
    "javascript": "[(assignment_pattern) (object_assignment_pattern) (optional_chain)] @more",
    "typescript": """
        [(assignment_pattern) (object_assignment_pattern) (optional_chain) (required_parameter value: (_))] @more
        (call_expression "?." @more)
    """,
}
_DEFAULTS = """
(variable_declarator value: (binary_expression left: [
    (identifier) (member_expression) (call_expression) (subscript_expression) (await_expression)
  ] operator: ["||" "??"] right: [(string) (number) (array) (object) (true) (false) (null) (regex)]) @default)
((assignment_expression left: (_) @left right: (binary_expression
  left: (_) @right operator: ["||" "??"] right: [(string) (number) (array) (object) (true) (false) (null) (regex)])
  @default) (#eq? @left @right))
"""
_NO_FUNCTIONS = ("Class field initializer", "Class static block")

Message = tuple[str, int, int, str]


def agree_on_complexity(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """McCabe's complexity, function by function in their order."""
    ours: list[Fact] = []
    theirs: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        rules = _RULES["javascript" if file.language == "javascript" else "typescript"]
        said = [value for _, value in sorted(in_terms_of(rules, file))]
        expected = [
            int(message.partition(" of ")[2].partition(".")[0])
            for rule, _, _, message in sorted(messages, key=lambda message: message[1:3])
            if rule == "complexity" and not message.startswith(_NO_FUNCTIONS)
        ]
        ours.extend(("complexity", path, index, value) for index, value in enumerate(said))
        theirs.extend(("complexity", path, index, value) for index, value in enumerate(expected))
    return compare(ours, theirs)


def agree_on_cognitive_complexity(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Cognitive complexity, where it is above 0, by the line where the function's name or its arrow stands."""
    ours: list[Fact] = []
    theirs: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        lines = _lines_of_heads(file)
        _, functions = function_metrics(file.captures, file.utf8, file.language)
        free = _defaults(file)
        for function in functions:
            cognitive = function.cognitive - free[function.start]
            if cognitive:
                ours.append(("cognitive", path, lines[function.start], cognitive))
        for rule, line, _, message in messages:
            if rule == "sonarjs/cognitive-complexity":
                theirs.append(("cognitive", path, line, int(message.partition(" from ")[2].partition(" ")[0])))
    return compare(ours, theirs)


def agree_on_unused(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Names that are imported or bound and never used: file and name."""
    kinds: dict[Fact, str] = {}
    ours: list[Fact] = []
    theirs: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        for start, end, _ in (*unused_imports(file), *unused_variables(file)):
            ours.append(("unused", path, file.utf8[start:end].decode()))
        resolved = find_bindings(file)
        for _, definition in resolved.iter_definitions() if resolved is not None else ():
            kinds[path, definition.name.decode()] = definition.kind
        for rule, _, _, message in messages:
            if rule == "typescript/no-unused-vars":
                theirs.append(("unused", path, message.split("'")[1]))

    def explain(side: str, fact: Fact) -> str | None:
        if side == "missing" and kinds.get(fact[1:]) == "type_parameter":
            return "tells of type parameters"
        return "knows no name that is meant to be unused" if str(fact[2]).startswith("_") else None

    return compare(ours, theirs, explain)


def agree_on_shadowing(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Names that hide others: file, line and name."""
    ours: list[Fact] = []
    theirs: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        for start, end, _ in shadowed_names(file):
            ours.append(("shadowing", path, file.line(start), file.utf8[start:end].decode()))
        for rule, line, _, message in messages:
            if rule == "typescript/no-shadow":
                theirs.append(("shadowing", path, line, message.split("'")[1]))
    return compare(ours, theirs)


def _lines_of_heads(file: SourceFile) -> dict[int, int]:

    found = {}
    for node in file.captures.get("function", ()):
        arrow = next((child for child in node.children if child.type == "=>"), None)
        named = node.child_by_field_name("name") or node
        if node.parent is not None and node.parent.type in ("pair", "variable_declarator", "assignment_expression"):
            named = node
        found[node.start_byte] = file.line((arrow or named).start_byte)
    return found


def _defaults(file: SourceFile) -> Counter[int]:
    """By function, the operators of `x = a || {}`, which are free to sonarjs."""
    query = tree_sitter.Query(load_grammar(file.language).language, _DEFAULTS)
    _, functions = function_metrics(file.captures, file.utf8, file.language)
    found: Counter[int] = Counter()
    for node in file.query(query).get("default", ()):
        inner = innermost(functions, node.start_byte)
        if inner is not None:
            found[inner.start] += 1
    return found


def ask(root: Path, files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, list[Message]]]:
    """The files that eslint can parse, with what it says."""
    sources = {file.path.decode(): file for file in files}
    for path, messages in _answers(root, tuple(sources)):
        if not any(rule == "fatal" for rule, *_ in messages):
            yield sources[path], messages


@functools.lru_cache(maxsize=1)
def _answers(root: Path, paths: tuple[str, ...]) -> list[tuple[str, list[Message]]]:
    """All that eslint says of files: two comparisons of a tree that follow each other share it."""
    modules = corpora.npm_installed(
        "eslint-9.14.0-and-plugins",
        "eslint@9.14.0",
        "@typescript-eslint/parser@8.13.0",
        "@typescript-eslint/eslint-plugin@8.13.0",
        "eslint-plugin-sonarjs@0.25.1",
        "typescript@5.6.3",
    )
    script = Path(__file__).with_name("eslint.mjs")
    command: list[str | Path] = ["node", script, modules, root]
    done = subprocess.run(command, input="\n".join(paths), check=True, capture_output=True, encoding="utf-8")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        (
            answer["path"],
            [(str(rule), int(line), int(column), str(text)) for rule, line, column, text in answer["messages"]],
        )
        for answer in answers
    ]
