"""Starting own rules and tasks: writing an example that works, in the project where the user stands."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec

from codebatch.application.configuration import load_configuration
from codebatch.application.configuration_file import ConfigurationFile
from codebatch.coordinator.planning import check_overrides
from codebatch.errors import InvalidInput
from codebatch.model.task import Json
from codebatch.system.plugins import load_question

FILES_LOOKED_AT_MAX = 20_000
"""Files by whose names it is told which language is the most frequent."""


class NewRule(msgspec.Struct, frozen=True, kw_only=True):
    """An own rule that was written, and the text of it, at the end of a file."""

    id: str
    language: str
    file: str
    text: str


def new_rule(start: Path, rule_id: str, language: str | None) -> NewRule:
    """Write an example of an own rule, by default for the language of which most files are below `start`.

    Raises InvalidInput, InvalidConfiguration or OSError; then nothing is written.
    """
    configuration = load_configuration(start)
    settings = configuration.settings.tasks.get("lint", {})
    check_overrides(configuration.catalogue, {"lint": settings})
    chosen = language or most_frequent_language(start)
    rule = cast("dict[str, Json]", load_question("example_rule")(settings, rule_id, chosen))
    file = ConfigurationFile(configuration, start)
    words = ("tasks", "lint", "rules")
    comment = (
        "In a pattern $X is any one node, $$$ any number of them; `bad` and `good` are tried by: codebatch rules test"
    )
    text = file.table(words, rule, is_array=True, comment=comment)

    def change(document: dict[str, Any]) -> None:
        lint = document.setdefault("tasks", {}).setdefault("lint", {})
        lint["rules"] = [*lint.get("rules", []), rule]

    file.append(text, change)
    return NewRule(id=rule_id, language=str(rule["language"]), file=str(file.path), text=text)


def most_frequent_language(start: Path) -> str:
    """The language of which most files below a directory are, by their names. Raises InvalidInput where none is."""
    languages = cast("Iterator[str]", load_question("languages_of_paths")(islice(_names(start), FILES_LOOKED_AT_MAX)))
    found = Counter(languages)
    if not found:
        raise InvalidInput(f"no file below {start} is of a language that has rules", hint="name one with -l LANGUAGE")
    return min(found, key=lambda language: (-found[language], language))


def _names(start: Path) -> Iterator[bytes]:
    for directory, below, names in os.walk(os.fsencode(start)):
        below[:] = sorted(each for each in below if not each.startswith(b".") and each != b"node_modules")
        yield from (os.path.join(directory, name) for name in sorted(names))
