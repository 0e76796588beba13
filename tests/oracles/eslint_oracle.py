"""JavaScript and TypeScript compared with eslint: complexity, unused names and shadowing names (eslint.mjs)."""

from __future__ import annotations

import functools
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import tree_sitter

from codebatch_workers.lint.unused import shadowed_names, unused_imports, unused_variables
from codebatch_workers.symbols.complexity import function_metrics
from codebatch_workers.syntax.bindings import find_used_bindings
from codebatch_workers.syntax.language.languages import load_language
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare
from tests.oracles.complexity_oracle import in_terms_of, innermost
from tests.support import corpora

# eslint counts default values and optional chains as branches.
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
    """Compare McCabe's complexity of functions in their order."""
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        rules = _RULES["javascript" if file.language == "javascript" else "typescript"]
        actual = [value for _, value in sorted(in_terms_of(rules, file))]
        expected = [
            int(message.partition(" of ")[2].partition(".")[0])
            for rule, _, _, message in sorted(messages, key=lambda message: message[1:3])
            if rule == "complexity" and not message.startswith(_NO_FUNCTIONS)
        ]
        actual_facts.extend(("complexity", path, index, value) for index, value in enumerate(actual))
        expected_facts.extend(("complexity", path, index, value) for index, value in enumerate(expected))
    return compare(actual_facts, expected_facts)


def agree_on_cognitive_complexity(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Compare cognitive complexity above 0, by the line of the function's name or arrow."""
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        lines = _lines_of_heads(file)
        _, functions = function_metrics(file.captures, file.utf8, file.language)
        free = _defaults(file)
        for function in functions:
            cognitive = function.cognitive - free[function.start]
            if cognitive:
                actual_facts.append(("cognitive", path, lines[function.start], cognitive))
        for rule, line, _, message in messages:
            if rule == "sonarjs/cognitive-complexity":
                expected_facts.append(("cognitive", path, line, int(message.partition(" from ")[2].partition(" ")[0])))
    return compare(actual_facts, expected_facts)


def agree_on_unused(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Compare names that are imported or bound and never used, by file and name."""
    kinds: dict[Fact, str] = {}
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        for start, end, _ in (*unused_imports(file), *unused_variables(file)):
            actual_facts.append(("unused", path, file.utf8[start:end].decode()))
        resolved = find_used_bindings(file)
        for _, definition in resolved.iter_definitions() if resolved is not None else ():
            kinds[path, definition.name.decode()] = definition.kind
        for rule, _, _, message in messages:
            if rule == "typescript/no-unused-vars":
                expected_facts.append(("unused", path, message.split("'")[1]))

    def explain(side: str, fact: Fact) -> str | None:
        if side == "missing" and kinds.get(fact[1:]) == "type_parameter":
            return "tells of type parameters"
        return "knows no name that is meant to be unused" if str(fact[2]).startswith("_") else None

    return compare(actual_facts, expected_facts, explain)


def agree_on_shadowing(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Compare names that shadow others, by file, line and name."""
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    for file, messages in ask(root, files):
        path = file.path.decode()
        for start, end, _ in shadowed_names(file):
            actual_facts.append(("shadowing", path, file.line(start), file.utf8[start:end].decode()))
        for rule, line, _, message in messages:
            if rule == "typescript/no-shadow":
                expected_facts.append(("shadowing", path, line, message.split("'")[1]))
    return compare(actual_facts, expected_facts)


def _lines_of_heads(file: SourceFile) -> dict[int, int]:

    lines = {}
    for node in file.captures.get("function", ()):
        arrow = next((child for child in node.children if child.type == "=>"), None)
        named = node.child_by_field_name("name") or node
        if node.parent is not None and node.parent.type in ("pair", "variable_declarator", "assignment_expression"):
            named = node
        lines[node.start_byte] = file.line((arrow or named).start_byte)
    return lines


def _defaults(file: SourceFile) -> Counter[int]:
    """Return by function the number of operators as in `x = a

    {}`, which sonarjs does not count.
    """
    query = tree_sitter.Query(load_language(file.language), _DEFAULTS)
    _, functions = function_metrics(file.captures, file.utf8, file.language)
    counts: Counter[int] = Counter()
    for node in file.query(query).get("default", ()):
        inner = innermost(functions, node.start_byte)
        if inner is not None:
            counts[inner.start] += 1
    return counts


def ask(root: Path, files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, list[Message]]]:
    """Yield the files that eslint can parse, with its messages."""
    sources = {file.path.decode(): file for file in files}
    for path, messages in _answers(root, tuple(sources)):
        if not any(rule == "fatal" for rule, *_ in messages):
            yield sources[path], messages


@functools.lru_cache(maxsize=1)
def _answers(root: Path, paths: tuple[str, ...]) -> list[tuple[str, list[Message]]]:
    """Return all messages of eslint about files.

    Successive comparisons of the same tree share them.
    """
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
