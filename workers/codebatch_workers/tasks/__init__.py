"""Declarations of the built-in tasks, which plans contain.

This module imports no parser, so the coordinator can load it.
"""

from __future__ import annotations

from codebatch.model.analysis.imports import IMPORT_TASK, ImportConfig, refuse_task_configuration
from codebatch.model.task import TaskDeclaration
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.python.ruff_files import pinned_elsewhere, ruff_contexts
from codebatch_workers.syntax.contexts import language_context, packages_context
from codebatch_workers.syntax.language.attributes import attributes_context
from codebatch_workers.syntax.language.languages import EXTRA_GRAMMAR_TOOLS, GRAMMAR_TOOLS
from codebatch_workers.syntax.python_versions import PYTHON_CONTEXT, python_context
from codebatch_workers.tasks.parse_config import ParseConfig
from codebatch_workers.tasks.rewrite_config import RewriteConfig

# Packages outside codebatch_workers on which the tasks depend.
_TASK_SOURCES = ("codebatch.errors", "codebatch.installation", "codebatch.model")

PARSE = TaskDeclaration(
    name="parse",
    version="1",
    summary="language and class of each file, and syntax errors",
    implementation="codebatch_workers.tasks.parse:create",
    sources=_TASK_SOURCES,
    records=("file", "diagnostic", "ast"),
    config=ParseConfig,
    tools=("ruff", *GRAMMAR_TOOLS),
    optional_tools=EXTRA_GRAMMAR_TOOLS,
    contexts={"attributes": attributes_context, "language": language_context, "packages": packages_context},
)

ANALYZE = TaskDeclaration(
    name="analyze",
    version="1",
    summary="metrics of each file: size, lines, functions, complexity",
    implementation="codebatch_workers.tasks.analyze:create",
    sources=_TASK_SOURCES,
    records=("metric", "fingerprints"),
    needs=("parse",),
    tools=GRAMMAR_TOOLS,
    optional_tools=EXTRA_GRAMMAR_TOOLS,
    contexts={"attributes": attributes_context, "language": language_context},
)

SYMBOLS = TaskDeclaration(
    name="symbols",
    version="1",
    summary="definitions, imports, inheritance and calls of each file",
    implementation="codebatch_workers.tasks.symbols:create",
    sources=_TASK_SOURCES,
    records=("symbol", "edge", "names"),
    needs=("parse",),
    tools=GRAMMAR_TOOLS,
    optional_tools=EXTRA_GRAMMAR_TOOLS,
    contexts={"attributes": attributes_context, "language": language_context},
)


LINT = TaskDeclaration(
    name="lint",
    version="1",
    summary="language-neutral rules, custom rules, and ruff for Python",
    implementation="codebatch_workers.tasks.lint:create",
    sources=_TASK_SOURCES,
    records=("diagnostic",),
    needs=("parse",),
    tools=("ruff", *GRAMMAR_TOOLS),
    optional_tools=EXTRA_GRAMMAR_TOOLS,
    config=LintConfig,
    prepare=pinned_elsewhere,
    contexts={"attributes": attributes_context, "language": language_context, "packages": packages_context},
    configured_contexts=ruff_contexts,
)

DEPENDENCIES = TaskDeclaration(
    name="dependencies",
    version="1",
    summary="files that each import resolves to, and import cycles",
    implementation="codebatch_workers.tasks.dependencies:create",
    sources=_TASK_SOURCES,
    records=("edge", "metric"),
    scope="project",
    needs=("parse", "symbols"),
)

DUPLICATES = TaskDeclaration(
    name="duplicates",
    version="1",
    summary="blocks of code that occur in several places",
    implementation="codebatch_workers.tasks.duplicates:create",
    sources=_TASK_SOURCES,
    records=("metric", "duplicate"),
    scope="project",
    needs=("analyze",),
)

IMPORT = TaskDeclaration(
    name=IMPORT_TASK,
    version="1",
    summary="findings imported from the report of another tool",
    implementation="codebatch_workers.tasks.imported:create",
    sources=(*_TASK_SOURCES, "codebatch.interchange"),
    records=("diagnostic",),
    scope="project",
    config=ImportConfig,
    prepare=refuse_task_configuration,
    tools=GRAMMAR_TOOLS,
    optional_tools=EXTRA_GRAMMAR_TOOLS,
    contexts={"attributes": attributes_context, "language": language_context},
)

REWRITES = TaskDeclaration(
    name="rewrites",
    version="1",
    summary="changes of code that matches patterns",
    implementation="codebatch_workers.tasks.rewrites:create",
    sources=_TASK_SOURCES,
    records=("change", "diagnostic"),
    needs=("parse",),
    config=RewriteConfig,
    tools=PARSE.tools,
    optional_tools=EXTRA_GRAMMAR_TOOLS,
    contexts={**PARSE.contexts, PYTHON_CONTEXT: python_context},
)
"""The declaration of all tasks that consist of rewrites. Each has its own name."""

__all__ = ["ANALYZE", "DEPENDENCIES", "DUPLICATES", "IMPORT", "LINT", "PARSE", "REWRITES", "SYMBOLS"]
