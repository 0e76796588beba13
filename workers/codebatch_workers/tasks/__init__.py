"""The built-in file tasks, as declared to plans. Nothing heavy is imported: the coordinator never loads a parser."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.task import Json, TaskDeclaration
from codebatch_workers.tasks.contexts import language_context, packages_context

_GRAMMARS = (
    "tree-sitter",
    "tree-sitter-bash",
    "tree-sitter-c",
    "tree-sitter-cpp",
    "tree-sitter-go",
    "tree-sitter-java",
    "tree-sitter-javascript",
    "tree-sitter-json",
    "tree-sitter-python",
    "tree-sitter-rust",
    "tree-sitter-typescript",
)

PARSE = TaskDeclaration(
    name="parse",
    version="1",
    summary="what each file is, and its syntax errors",
    implementation="codebatch_workers.tasks.parse:create",
    records=("file", "diagnostic"),
    tools=_GRAMMARS,
    contexts={"language": language_context},
)

ANALYZE = TaskDeclaration(
    name="analyze",
    version="1",
    summary="metrics of each file: size, lines, functions, complexity",
    implementation="codebatch_workers.tasks.analyze:create",
    records=("metric",),
    needs=("parse",),
    tools=_GRAMMARS,
    contexts={"language": language_context},
)

SYMBOLS = TaskDeclaration(
    name="symbols",
    version="1",
    summary="what each file defines, imports, inherits and calls",
    implementation="codebatch_workers.tasks.symbols:create",
    records=("symbol", "edge"),
    needs=("parse",),
    tools=_GRAMMARS,
    contexts={"language": language_context},
)


def _check_lint_config(config: Mapping[str, Json]) -> None:
    from codebatch_workers.tasks.lint import check_config

    check_config(config)


# `off` names rules that are not run, `on` those that are off by default and wanted (text_rules.py); ruff's codes may
# stand in `off` too. A code that no rule has is refused.
LINT = TaskDeclaration(
    name="lint",
    version="1",
    summary="language-neutral rules, and ruff for Python",
    check_config=_check_lint_config,
    implementation="codebatch_workers.tasks.lint:create",
    records=("diagnostic",),
    needs=("parse",),
    tools=("ruff", *_GRAMMARS),
    config={"off": [], "on": []},
    contexts={"language": language_context, "packages": packages_context},
)

__all__ = ["ANALYZE", "LINT", "PARSE", "SYMBOLS"]
