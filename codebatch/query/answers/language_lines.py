"""The numbers of code, comment and blank lines of each language of a batch."""

from __future__ import annotations

import msgspec

from codebatch.model.analysis.language_groups import DATA_LANGUAGES
from codebatch.query.answers.numbers import metric_task, read_file_metrics
from codebatch.query.sources.records import BatchRecords

_BINARY_LANGUAGE = "binary"
_LINE_METRICS = ("code", "comment", "blank")


class LanguageLines(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of text files and lines in a language. `is_data` is set for data formats and prose."""

    files: int
    code: int
    comment: int
    blank: int
    is_data: bool


def count_language_lines(records: BatchRecords) -> dict[str, LanguageLines] | None:
    """Count the lines of each language, by language name. Return None if the batch did not run a required task.

    Raises StoreCorrupt.
    """
    if not {"parse", *map(metric_task, _LINE_METRICS)}.issubset(records.task_names):
        return None
    numbers = read_file_metrics(records, _LINE_METRICS)
    sums_by_language: dict[str, list[int]] = {}
    for file in records.files:
        if file.lang != _BINARY_LANGUAGE:
            sums = sums_by_language.setdefault(file.lang, [0] * (1 + len(_LINE_METRICS)))
            sums[0] += 1
            for index, metric in enumerate(_LINE_METRICS, 1):
                sums[index] += numbers[metric].get(file.path_bytes, 0)
    return {
        language: LanguageLines(
            files=files, code=code, comment=comment, blank=blank, is_data=language in DATA_LANGUAGES
        )
        for language, (files, code, comment, blank) in sorted(sums_by_language.items())
    }
