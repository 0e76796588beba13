"""The languages whose files no linter checked: a check without findings means little there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from codebatch.compare.rules import LINT_TASK
from codebatch.model.analysis.language_groups import DATA_LANGUAGES, with_variants
from codebatch.model.command_table import CommandTable
from codebatch.model.gitignore import parse_arguments
from codebatch.model.record import NON_PRODUCTION_CLASSES
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.sources.parsed_files import ParsedFile
from codebatch.query.sources.records import BatchRecords

_PARSED = ("ok", "errors")
_LANGUAGES_OF_LINT_TASK = ("python",)


def count_unlinted_files(records: BatchRecords, catalogue: TaskCatalogue) -> dict[str, int]:
    """Return the number of parsed production files of each language without a linter, most files first.

    A custom task or an import may have checked any language, so the result is empty if the batch has one. `catalogue`
    has the tables of the tasks that call a program. Raises StoreCorrupt.
    """
    others = [name for name in records.task_names if name not in BUILT_IN_TASKS]
    if any(name not in catalogue.commands and name not in catalogue.rewrites for name in others):
        return {}
    files = [
        file
        for file in records.files
        if file.parse in _PARSED and file.class_ not in NON_PRODUCTION_CLASSES and file.lang not in DATA_LANGUAGES
    ]
    linted = set(_LANGUAGES_OF_LINT_TASK if LINT_TASK in records.task_names else ())
    for name in others:
        if name in catalogue.commands:
            linted |= _selected_languages(catalogue.commands[name].table, files)
    return dict(Counter(file.lang for file in files if file.lang not in linted).most_common())


def _selected_languages(table: CommandTable, files: Sequence[ParsedFile]) -> set[str]:
    """Return the languages of the files that the settings `match` of a task select.

    If `match` names a language that no file has, it may be another spelling, so all languages are returned.
    """
    patterns, languages = parse_arguments(table.path_patterns, "match"), with_variants(table.languages)
    known = {file.lang for file in files}
    if not table.match or not known.issuperset(table.languages):
        return known
    selected = ((file.lang, patterns.selects(file.path_bytes)) for file in files)
    return {
        language for language, is_selected in selected if is_selected or (is_selected is None and language in languages)
    }
