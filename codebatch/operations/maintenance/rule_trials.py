"""Trials of the user's rules (`rules test`). Rules run on files and on their own examples, with a time limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.task import JsonValue
from codebatch.plugins.worker_services import language_services
from codebatch.query.fields import JsonRecord
from codebatch.system.processes.forks import ForkFailure, map_forked


def test_rules(
    settings: Mapping[str, JsonValue], files: Sequence[tuple[bytes, bytes]], *, seconds: float
) -> dict[str, list[JsonRecord]]:
    """Return the findings of rules in files, and the results of the rules' examples.

    `files` are pairs of path and content. A rule that takes longer than `seconds` for a file or example is reported in
    `failures`.
    """
    trials = language_services().rule_trials(settings, files)
    with map_forked(trials.run, range(len(trials)), 1, list[JsonRecord], seconds=seconds) as answers:
        return trials.answer([answer.reason if isinstance(answer, ForkFailure) else answer for answer in answers])
