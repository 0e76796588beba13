"""Measure a lower bound for the cost of work like `full`: `python -m bench.probes.floor SELECTION DIR`.

One process parses each file with the same grammars and runs the tags query of the grammar's authors over it. Then ruff
checks the same Python files with the same rules, on one thread. No result is stored, joined or read.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import msgspec
import tree_sitter

from bench.probes.selection import Selection
from codebatch_workers.lint.python.ruff import common_arguments
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.syntax.language.languages import grammar_module, load_language
from codebatch_workers.syntax.language_queries import captures_query

# The wheel has only the tags that TypeScript adds to JavaScript. Its authors use both (tree-sitter.json of the
# grammar).
_TAGS_ADDED_TO = {"typescript": "javascript", "tsx": "javascript"}
# Queries for grammars whose wheel ships no tags query. They match more than usual tags queries.
_BASH_TAGS = "(function_definition name: (word) @name) @definition.function (command name: (_) @name) @reference.call"
_OWN_TAGS = {"bash": _BASH_TAGS, "zsh": _BASH_TAGS, "json": "(pair key: (_) @name)", "jsonc": "(pair key: (_) @name)"}
_NAMES_IN_ONE_CALL = 1000


def parse(root: Path, parsed: dict[str, list[str]]) -> int:
    """Parse and query every file. Return the number of matches."""
    matches = 0
    for language, paths in parsed.items():
        loaded = load_language(language)
        parser = tree_sitter.Parser(loaded)
        tags = _tags(language)
        query = tree_sitter.Query(loaded, tags) if tags else captures_query(language)
        for path in paths:
            tree = parser.parse((root / path).read_bytes())
            matches += len(tree_sitter.QueryCursor(query).matches(tree.root_node))
    return matches


def _tags(language: str) -> str:
    if language in _OWN_TAGS:
        return _OWN_TAGS[language]
    base = _tags(_TAGS_ADDED_TO[language]) if language in _TAGS_ADDED_TO else ""
    shipped: str | None = getattr(import_module(grammar_module(language)), "TAGS_QUERY", None)
    return (shipped or "") + base


def lint(root: Path, linted: Sequence[str]) -> None:
    """Check the Python files with ruff as the lint task would, in as few calls as possible."""
    for names in _chunks(linted):
        done = subprocess.run(
            [str(Path(sys.executable).with_name("ruff")), *common_arguments(SEVERITY_BY_CODE), "--", *names],
            cwd=root,
            env={"RAYON_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"ruff ended with {done.returncode}")


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _NAMES_IN_ONE_CALL):
        yield names[start : start + _NAMES_IN_ONE_CALL]


if __name__ == "__main__":
    selection = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Selection)
    parse(Path(sys.argv[2]), selection.parsed)
    lint(Path(sys.argv[2]), selection.linted)
