"""Creation of working examples of custom rules and tasks in the current project."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from codebatch.coordinator.analysis.planning import check_overrides
from codebatch.errors import InvalidInput
from codebatch.model.task import TASK_NAME_PATTERN
from codebatch.operations.project.configuration import Configuration, load_configuration
from codebatch.operations.project.configuration_file import ConfigurationFile
from codebatch.operations.project.linter_recipes import find_recipe
from codebatch.operations.project.task_example import REWRITE_EXAMPLE, TaskExample
from codebatch.plugins.worker_services import language_services

FILES_SAMPLED_MAX = 20_000
"""Maximum number of file names that are read to find the most frequent language."""


class RuleScaffold(msgspec.Struct, frozen=True, kw_only=True):
    """A custom rule that was added to the file `file`. `text` is the added text."""

    id: str
    language: str
    file: str
    text: str


class TaskScaffold(msgspec.Struct, frozen=True, kw_only=True):
    """A custom task that was created: its file, its test, and the text that was added to the configuration file.

    A task that calls a program, or consists of rewrites, has neither a file nor a test: `file` and `test` are empty.
    """

    name: str
    file: str
    test: str
    configuration: str
    text: str


def scaffold_rule(start: Path, rule_id: str, language: str | None) -> RuleScaffold:
    """Add an example of a custom rule to the configuration, by default for the most frequent language below `start`.

    Raises InvalidInput, InvalidConfiguration or OSError; then nothing is written.
    """
    configuration = load_configuration(start)
    settings = configuration.settings.tasks.get("lint", {})
    check_overrides(configuration.catalogue, {"lint": settings})
    chosen_language = language or most_frequent_language(start)
    rule = language_services().example_rule(settings, rule_id, chosen_language)
    file = ConfigurationFile(configuration, start)
    words = ("tasks", "lint", "rules")
    comment = (
        "In `pattern`, $X matches one syntax node, $$$ any number of nodes. "
        "Test `bad` and `good` with: codebatch rules test"
    )
    text = file.table_text(words, rule, is_array=True, comment=comment)

    def change(document: dict[str, Any]) -> None:
        lint = document.setdefault("tasks", {}).setdefault("lint", {})
        lint["rules"] = [*lint.get("rules", []), rule]

    file.append(text, change)
    return RuleScaffold(id=rule_id, language=str(rule["language"]), file=str(file.path), text=text)


def scaffold_task(start: Path, name: str, example: TaskExample) -> TaskScaffold:
    """Write an example of a custom task, its test, and the table that configures it.

    Raises InvalidInput, InvalidConfiguration or OSError; then created files are removed.
    """
    configuration = load_configuration(start)
    _check_new_name(name, configuration)
    file = ConfigurationFile(configuration, start)
    root = file.path.parent
    stem = name.replace("-", "_")
    tests = "tests" if (root / "tests").is_dir() else "tools"
    code, test = f"tools/{stem}.py", f"{tests}/test_{stem}.py"
    table = {"python": f"{code}:task"}
    comment = f"Try it on a file with: codebatch task try {name} FILE"
    text = file.table_text(("tasks", name), table, is_array=False, comment=comment)
    created: list[Path] = []
    is_first = not (root / "tools").exists()
    try:
        for path, content in ((code, example.task), (test, example.test)):
            text_of_file = content.replace("NAME", stem).replace("CODE", code).replace("TEST", test)
            created.append(_make_file(root, path, text_of_file))
        file.append(text, lambda document: document.setdefault("tasks", {}).update({name: table}))
    except BaseException:
        for created_path in created:
            created_path.unlink()
        if is_first:
            with contextlib.suppress(OSError):
                (root / "tools").rmdir()
        raise
    return TaskScaffold(
        name=name, file=str(root / code), test=str(root / test), configuration=str(file.path), text=text
    )


def scaffold_command_task(start: Path, name: str, tool: str) -> TaskScaffold:
    """Add the recipe of a linter to the configuration, as a task.

    Raises InvalidInput, InvalidConfiguration or OSError; then nothing is written.
    """
    configuration = load_configuration(start)
    recipe = find_recipe(tool)
    _check_new_name(name, configuration)
    file = ConfigurationFile(configuration, start)
    table = recipe.table_in(file.path.parent)
    comment = "\n".join([*recipe.comments, f"Try it on a file with: codebatch task try {name} FILE"])
    text = file.table_text(("tasks", name), table, is_array=False, comment=comment)
    file.append(text, lambda document: document.setdefault("tasks", {}).update({name: table}))
    return TaskScaffold(name=name, file="", test="", configuration=str(file.path), text=text)


def scaffold_rewrite_task(start: Path, name: str) -> TaskScaffold:
    """Add an example of a rewrite to the configuration, as a task.

    Raises InvalidInput, InvalidConfiguration or OSError; then nothing is written.
    """
    configuration = load_configuration(start)
    _check_new_name(name, configuration)
    file = ConfigurationFile(configuration, start)
    comment = (
        "$X is one syntax node, $$$ARGS any number of nodes. `bad` must become exactly `good`.\n"
        f"Try it on a file with: codebatch task try {name} FILE"
    )
    text = file.table_text(("tasks", name, "rewrites"), REWRITE_EXAMPLE, is_array=True, comment=comment)
    table = {"rewrites": [REWRITE_EXAMPLE]}
    file.append(text, lambda document: document.setdefault("tasks", {}).update({name: table}))
    return TaskScaffold(name=name, file="", test="", configuration=str(file.path), text=text)


def _check_new_name(name: str, configuration: Configuration) -> None:
    """Raise InvalidInput if a new task cannot have this name."""
    if not TASK_NAME_PATTERN.match(name):
        hint = "use lower-case letters, digits, - and _, starting with a letter"
        raise InvalidInput(f"{name!r} is not a valid task name", hint=hint)
    if name in configuration.catalogue.installed or name in configuration.settings.tasks:
        raise InvalidInput(f"a task {name!r} already exists", hint="choose another name; see: codebatch pipelines")


def _make_file(root: Path, path: str, content: str) -> Path:
    """Create a new file below the project root. Raises InvalidInput or OSError."""
    target = root / path
    if not target.parent.resolve().is_relative_to(root.resolve()):
        raise InvalidInput(f"{target.parent} is outside the project")
    target.parent.mkdir(exist_ok=True)
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError as error:
        raise InvalidInput(f"{target} already exists", hint="choose another name, or move the file") from error
    return target


def most_frequent_language(start: Path) -> str:
    """Return the most frequent language of files below a directory, by file names.

    Raises InvalidInput if there is none.
    """
    languages = language_services().path_languages(islice(_iter_file_names(start), FILES_SAMPLED_MAX))
    counts = Counter(languages)
    if not counts:
        raise InvalidInput(
            f"no file in {start} is in a language that custom rules support", hint="give a language with -l LANGUAGE"
        )
    return min(counts, key=lambda language: (-counts[language], language))


def _iter_file_names(start: Path) -> Iterator[bytes]:
    for directory, subdirectories, names in os.walk(os.fsencode(start)):
        subdirectories[:] = sorted(
            name for name in subdirectories if not name.startswith(b".") and name != b"node_modules"
        )
        yield from (os.path.join(directory, name) for name in sorted(names))
