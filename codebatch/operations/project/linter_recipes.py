"""Recipes: tables `[tasks.NAME]` for linters, which `codebatch task new NAME --command TOOL` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.task import JsonValue
from codebatch.model.text.suggestions import closest_word

_NODE_LOCKS = ("package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock")
_PYTHON_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt")
_GO_LOCKS = ("go.sum", "go.mod")


class LinterRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a linter.

    - `table`: the settings for every project.
    - `programs`: paths in the project at which the program can be installed. They have precedence over PATH.
    - `link`, `lock`: directories and files of the project that are part of the table if they exist.
    - `reason`: the reason for the scope, as a comment of the table.
    - `advice`: a change of the table that some projects need, as a comment, or an empty text.
    - `is_tried`: whether the findings were compared with those of the program on a real source tree.
    """

    table: Mapping[str, JsonValue]
    reason: str
    programs: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    advice: str = ""
    is_tried: bool = True

    @property
    def comments(self) -> list[str]:
        """The comments of the table."""
        untried = "" if self.is_tried else "The findings of this recipe were not compared with those of the linter."
        return [*filter(None, (self.reason, self.advice, untried))]

    def table_in(self, project: Path) -> dict[str, JsonValue]:
        """Return the table for a project."""
        table = dict(self.table)
        installed = next((path for path in self.programs if (project / path).is_file()), None)
        command = table["command"]
        if installed is not None and isinstance(command, list):
            table["command"] = [installed, *command[1:]]
        link = [path for path in self.link if (project / path).is_dir()]
        if link:
            table["link"] = link
        if (lock := [path for path in self.lock if (project / path).is_file()]) and (link or not self.link):
            table["lock"] = lock
        return table


def find_recipe(tool: str) -> LinterRecipe:
    """Return the recipe of a linter. Raises InvalidInput if there is none."""
    recipe = LINTER_RECIPES.get(tool)
    if tool == "ruff":
        raise InvalidInput(
            "there is no recipe for 'ruff', because the task `lint` runs it by default",
            hint='to use the configuration of your project, set `ruff.config = "project"` in [tasks.lint]',
        )
    if recipe is None:
        suggestion = closest_word(tool, LINTER_RECIPES)
        names = ", ".join(LINTER_RECIPES)
        raise InvalidInput(
            f"there is no recipe for {tool!r}, only for {names}",
            hint="to write the table of another program: codebatch help linters"
            if suggestion is None
            else f"did you mean {suggestion!r}?",
        )
    return recipe


_SHELLCHECK = LinterRecipe(
    table={
        "command": ["shellcheck", "-f", "gcc", "{file}"],
        "match": ["lang:bash"],
        "records": "gcc",
        "exit_ok": [0, 1],
        "config_files": [".shellcheckrc", "shellcheckrc"],
    },
    reason="Each call has one file, because ShellCheck follows `source FILE` if FILE is part of the call.",
    advice='To follow it always, add "-x" to `command`, and the sourced files to `config_files`.',
)

_MYPY = LinterRecipe(
    table={
        "command": ["mypy", "--show-column-numbers", "--no-error-summary", "--no-pretty", "--no-incremental", "."],
        "scope": "project",
        "match": ["*.py", "*.pyi"],
        "records": "gcc",
        "exit_ok": [0, 1],
    },
    reason="Types depend on other files, so mypy checks the whole project.",
    advice='Remove "." from `command` if the configuration of mypy has `files`.',
    programs=(".venv/bin/mypy", "venv/bin/mypy"),
    link=(".venv", "venv"),
    lock=_PYTHON_LOCKS,
)

_PYRIGHT = LinterRecipe(
    table={
        "command": ["pyright", "--outputjson"],
        "scope": "project",
        "match": ["*.py", "*.pyi"],
        "records": {
            "format": "json",
            "items": "/generalDiagnostics",
            "path": "/file",
            "line": "/range/start/line",
            "column": "/range/start/character",
            "end_line": "/range/end/line",
            "end_column": "/range/end/character",
            "severity": "/severity",
            "code": "/rule",
            "message": "/message",
            "first_line": 0,
            "first_column": 0,
            "column_unit": "utf-16",
        },
        "exit_ok": [0, 1],
    },
    reason="Types depend on other files, so pyright checks the whole project.",
    advice='The package of PyPI downloads pyright below HOME: set home = "user" for it.',
    programs=("node_modules/.bin/pyright",),
    link=(".venv", "venv", "node_modules"),
    lock=(*_PYTHON_LOCKS, *_NODE_LOCKS),
)

_ESLINT = LinterRecipe(
    table={
        "command": ["eslint", "-f", "json", "."],
        "scope": "project",
        "records": {
            "format": "json",
            "items": "/*/messages",
            "path": "/*/filePath",
            "line": "/line",
            "column": "/column",
            "end_line": "/endLine",
            "end_column": "/endColumn",
            "severity": "/severity",
            "code": "/ruleId",
            "message": "/message",
            "severities": {"1": "warning", "2": "error"},
            "column_unit": "utf-16",
        },
        "exit_ok": [0, 1],
    },
    reason="Rules of plugins can look at other files: types, missing imports.",
    advice='Without such rules, set scope = "file", match = ["*.js", "*.ts"] and config_files = ["eslint.config.*", '
    '"package.json"],\nand replace "." by "--no-warn-ignored", "{files}". Then files are checked in parallel, and '
    "results are cached for each file.",
    programs=("node_modules/.bin/eslint",),
    link=("node_modules",),
    lock=_NODE_LOCKS,
)

_BIOME = LinterRecipe(
    table={
        "command": [
            "biome",
            "lint",
            "--reporter=sarif",
            "--max-diagnostics=none",
            "--files-ignore-unknown=true",
            "--no-errors-on-unmatched",
            "{files}",
        ],
        "match": [
            *("*.js", "*.mjs", "*.cjs", "*.jsx", "*.ts", "*.mts", "*.cts", "*.tsx", "*.json", "*.jsonc", "*.css"),
            *("*.graphql", "*.html", "*.vue", "*.svelte", "*.astro"),
        ],
        "records": "sarif",
        "exit_ok": [0, 1],
        "config_files": ["biome.json*", ".biome.json*", "package.json", ".gitignore", ".ignore"],
    },
    reason="Biome's recommended rules look at one file at a time.",
    advice='With rules that need other files (the domain `project`), set scope = "project".',
    programs=("node_modules/.bin/biome",),
    link=("node_modules",),
    lock=_NODE_LOCKS,
)

_YAMLLINT = LinterRecipe(
    table={
        "command": ["yamllint", "-f", "parsable", "{files}"],
        "match": ["*.yaml", "*.yml", ".yamllint"],
        "records": {
            "format": "pattern",
            "pattern": r"^(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): \[(?P<severity>\w+)\] (?P<message>.*?)"
            r"(?: \((?P<code>[\w-]+)\))?$",
        },
        "exit_ok": [0, 1],
        "config_files": ["/.yamllint", "/.yamllint.yaml", "/.yamllint.yml"],
    },
    reason="Rules of yamllint look at one file at a time.",
    programs=(".venv/bin/yamllint", "venv/bin/yamllint"),
)

_HADOLINT = LinterRecipe(
    table={
        "command": ["hadolint", "-f", "json", "{files}"],
        "match": [
            *("Dockerfile", "Dockerfile.*", "*.Dockerfile", "*.dockerfile", "Containerfile", "Containerfile.*"),
            "!*.dockerignore",
        ],
        "records": {
            "format": "json",
            "path": "/file",
            "line": "/line",
            "column": "/column",
            "severity": "/level",
            "code": "/code",
            "message": "/message",
        },
        "exit_ok": [0, 1],
        "config_files": ["/.hadolint.yaml", "/.hadolint.yml"],
    },
    reason="Rules of hadolint look at one file at a time.",
)

_GOLANGCI_LINT = LinterRecipe(
    table={
        "command": ["golangci-lint", "run", "--output.checkstyle.path", "{report}", "./..."],
        "scope": "project",
        "match": ["*.go"],
        "records": "checkstyle",
        "exit_ok": [0, 1],
        "home": "user",
    },
    reason="Packages are checked as a whole. HOME is that of the user, because Go keeps its modules there.",
    advice="Version 2 of golangci-lint. The project must have its go.mod in its top directory.",
    lock=_GO_LOCKS,
    is_tried=False,
)

_CLIPPY = LinterRecipe(
    table={
        "command": ["cargo", "clippy", "--message-format=json"],
        "scope": "project",
        "match": ["*.rs"],
        "records": {
            "format": "json-lines",
            "items": "/message",
            "path": "/spans/0/file_name",
            "line": "/spans/0/line_start",
            "column": "/spans/0/column_start",
            "end_line": "/spans/0/line_end",
            "end_column": "/spans/0/column_end",
            "severity": "/level",
            "code": "/code/code",
            "message": "/message",
        },
        "version": ["cargo", "clippy", "--version"],
        "home": "user",
        "env": {"CARGO_INCREMENTAL": "0"},
        "ignore": ["* warning emitted", "* warnings emitted", "aborting due to *"],
    },
    reason="Crates are checked as a whole. HOME is that of the user, because Cargo keeps its packages there.",
    advice="Every call compiles all dependencies, in a directory of its own.",
    lock=("Cargo.lock",),
)

_ACTIONLINT = LinterRecipe(
    table={
        "command": ["sh", "-c", "mkdir -p .git && exec actionlint -format '{{json .}}' \"$@\"", "sh", "{files}"],
        "match": ["/.github/workflows/*.yml", "/.github/workflows/*.yaml"],
        "records": {
            "format": "json",
            "path": "/filepath",
            "line": "/line",
            "column": "/column",
            "code": "/kind",
            "message": "/message",
        },
        "exit_ok": [0, 1],
        "config_files": ["/.github/**", "action.yml", "action.yaml"],
        "version": ["sh", "-c", "actionlint -version && { shellcheck --version; pyflakes --version; :; } 2>&1"],
        "severity": "error",
    },
    reason="actionlint reads its configuration and other workflows only in a directory that has a `.git`.",
)

LINTER_RECIPES: Mapping[str, LinterRecipe] = {
    "shellcheck": _SHELLCHECK,
    "mypy": _MYPY,
    "pyright": _PYRIGHT,
    "eslint": _ESLINT,
    "biome": _BIOME,
    "yamllint": _YAMLLINT,
    "hadolint": _HADOLINT,
    "golangci-lint": _GOLANGCI_LINT,
    "clippy": _CLIPPY,
    "actionlint": _ACTIONLINT,
}
"""The recipes by the name of the linter."""
