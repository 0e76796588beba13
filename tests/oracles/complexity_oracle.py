"""McCabe's complexity of functions compared with radon and lizard.

Each tool has its own rules. A query over the tree (RADON, LIZARD) finds what only the tool or only codebatch counts.
Codebatch's number is adjusted by these matches before the comparison.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

import lizard
import tree_sitter
from radon.visitors import ComplexityVisitor

from codebatch_workers.symbols import complexity
from codebatch_workers.symbols.outline import scope_definitions
from codebatch_workers.syntax.language.languages import load_language
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare

# A query of what only the tool counts (`more`), what only codebatch counts (`less`), and what the tool does not read
# (`skip`).
RADON = """
(for_statement alternative: (_)) @more
(while_statement alternative: (_)) @more
(try_statement (else_clause)) @more
((case_clause (case_pattern) @pattern) @less (#eq? @pattern "_"))
(assert_statement) @skip
"""
_PREPROCESSOR = """[(preproc_if) (preproc_ifdef "#ifdef") (preproc_elif)] @more"""
LIZARD: Mapping[str, str] = {
    "c": _PREPROCESSOR,
    "cpp": _PREPROCESSOR,
    "go": "",
    "java": "",
    "rust": """
        (match_block . (match_arm) @less)
        (loop_expression) @less
        [(where_clause) (for_lifetimes) (let_declaration alternative: (_)) (match_pattern condition: (_))] @more
        [(higher_ranked_trait_bound) (abstract_type "for")] @more
        ((closure_parameters) @more (#eq? @more "||"))
        (macro_invocation (token_tree) @tokens)
    """,
}
# Tokens that lizard counts anywhere, for example in the arguments of a macro.
_TOKENS = re.compile(rb"\b(?:if|for|while)\b|&&|\|\||\?")
_STRING = re.compile(rb'"(?:\\.|[^"\\])*"', re.DOTALL)
# Languages in which the tool treats closures as separate functions.
_CLOSURES_APART = frozenset({"go"})


def in_terms_of(query: str, file: SourceFile) -> list[tuple[int, int]]:
    """Return the start of each function, and its complexity by the rules of the tool."""
    captures = dict(file.captures)
    if file.language in _CLOSURES_APART:
        captures["function"] = captures.get("function", []) + captures.pop("block", [])
    _, functions = complexity.function_metrics(captures, file.utf8, file.language)
    if query:
        captures = dict(file.query(tree_sitter.Query(load_language(file.language), query)))
        for node in captures.get("tokens", ()):
            inner = innermost(functions, node.start_byte)
            if inner is not None:
                text = _STRING.sub(b"", file.utf8[node.start_byte : node.end_byte])
                inner.complexity += len(_TOKENS.findall(text))
        for node in captures.get("skip", ()):
            inner = innermost(functions, node.start_byte)
            if inner is not None:
                inner.complexity -= _decisions_in(node, file)
        for name, sign in (("more", 1), ("less", -1)):
            for node in captures.get(name, ()):
                inner = innermost(functions, node.start_byte)
                if inner is not None:
                    inner.complexity += sign
    return [(function.start, function.complexity) for function in functions]


def _by_line(query: str, file: SourceFile) -> dict[int, int]:
    """Return the complexity of functions by the lines of their names."""
    names = scope_definitions(file)
    return {file.line(names.function_name_offset(start)): value for start, value in reversed(in_terms_of(query, file))}


def _decisions_in(outer: tree_sitter.Node, file: SourceFile) -> int:
    nodes = [node for name in ("branch", "decision", "logical") for node in file.captures.get(name, ())]
    return sum(outer.start_byte <= node.start_byte < outer.end_byte for node in nodes)


def innermost(functions: list[complexity.FunctionMetrics], offset: int) -> complexity.FunctionMetrics | None:
    """Return the innermost function that contains a place."""
    starts = [function.start for function in functions]
    for index in range(bisect_right(starts, offset) - 1, -1, -1):
        if functions[index].end > offset:
            return functions[index]
    return None


def agree_with_radon(files: Iterable[SourceFile]) -> Agreement:
    """Compare Python functions that both sides have at the same line."""
    return _compare(
        (file, _by_line(RADON, file), dict(_radon_complexity(file.text))) for file, _ in _parse_files(files)
    )


def agree_with_lizard(files: Iterable[SourceFile]) -> Agreement:
    """Compare functions in any language of LIZARD that both sides have at the same line."""
    return _compare((file, _by_line(LIZARD[file.language], file), dict(_lizard_complexity(file))) for file in files)


def _compare(files: Iterable[tuple[SourceFile, dict[int, int], dict[int, int]]]) -> Agreement:
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    with_errors: set[tuple[str, int]] = set()
    for file, actual, expected in files:
        path = file.path.decode()
        names = scope_definitions(file)
        for node in file.captures.get("function", ()):
            if node.has_error:
                with_errors.add((path, file.line(names.function_name_offset(node.start_byte))))
        for line in actual.keys() & expected.keys():
            actual_facts.append(("complexity", path, line, actual[line]))
            expected_facts.append(("complexity", path, line, expected[line]))
    return compare(
        actual_facts,
        expected_facts,
        lambda _, fact: "sees through macros that hide the syntax" if fact[1:3] in with_errors else None,
    )


def _lizard_complexity(file: SourceFile) -> Iterator[tuple[int, int]]:
    # lizard counts a preprocessor conditional with all its arms. If arms cut through code, codebatch counts one of
    # them.
    text = file.parsed_text.decode() if file.syntax.has_macros else file.text
    for function in reversed(lizard.analyze_file.analyze_source_code(file.path.decode(), text).function_list):
        yield function.start_line, function.cyclomatic_complexity


def _radon_complexity(text: str) -> Iterator[tuple[int, int]]:
    visitor = ComplexityVisitor.from_code(text, no_assert=True)
    functions = [*visitor.functions, *(method for class_ in visitor.classes for method in class_.methods)]
    while functions:
        function = functions.pop()
        yield function.lineno, function.complexity
        functions.extend(function.closures)


def _parse_files(files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, ast.Module]]:
    for file in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield file, ast.parse(file.text)
        except (SyntaxError, ValueError):
            continue
