"""Execution of the user's rules on files and on the examples of the rules (`rules test`), with a time limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.task import Json
from codebatch.plugins.worker_services import language_services
from codebatch.query.fields import JsonRecord
from codebatch.system.processes.forks import ForkFailure, map_forked


def test_rules(
    settings: Mapping[str, Json], files: Sequence[tuple[bytes, bytes]], *, seconds: float
) -> dict[str, list[JsonRecord]]:
    """Return the findings in files, given as path and content, and the results of the rules' examples.

    A rule that takes longer than `seconds` for a file or example is among the `failures`.
    """
    trials = language_services().rule_trials(settings, files)
    with map_forked(trials.run, range(len(trials)), 1, list[JsonRecord], seconds=seconds) as answers:
        return trials.answer([answer.reason if isinstance(answer, ForkFailure) else answer for answer in answers])
