"""Trials of custom rules. A trial applies one rule to one source: a file, or an example in the rule's definition.

A regular expression in a query may run for a very long time. So each trial is a separate call, which the caller can
make in a process with a time limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from codebatch.model.task import JsonValue
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.query_rules import compile_rule
from codebatch_workers.lint.settings import QueryRule
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import exclude_suppressed
from codebatch_workers.tasks.lint import NOT_WRITTEN_BY_HAND, apply_rule

_compile_cached = cache(compile_rule)


class _RuleTrial(NamedTuple):
    """A rule, and the source to which it is applied.

    `example` is "bad" or "good" if the source is an example of the rule. Then `text` is the text of the example. For a
    file, both are empty.
    """

    rule: QueryRule
    source: SourceFile
    example: str = ""
    text: str = ""


class RuleTrials:
    """All trials of the rules of a configuration: on the given files, and on the examples of each rule."""

    def __init__(self, settings: Mapping[str, JsonValue], files: Sequence[tuple[bytes, bytes]]) -> None:
        self._rules = msgspec.convert(dict(settings), LintConfig).rules
        self._files: list[dict[str, JsonValue]] = []
        self._trials: list[_RuleTrial] = []
        for path, content in files:
            self._add_file(SourceFile(path, content, executable=False, contexts={}))
        for rule in self._rules:
            self._trials += _example_trials(rule)

    def __len__(self) -> int:
        """Return the number of trials."""
        return len(self._trials)

    def run(self, number: int) -> list[dict[str, JsonValue]]:
        """Run the trial with this number, from 0. Return its findings as JSON values."""
        trial = self._trials[number]
        findings = exclude_suppressed(trial.source, apply_rule(_compile_cached(trial.rule), trial.source))
        return [msgspec.to_builtins(finding) for finding in findings]

    def answer(self, results: Sequence[list[dict[str, JsonValue]] | str]) -> dict[str, JsonValue]:
        """Return the answer of `rules test`.

        `results` has one result per trial: its findings, or the reason why it did not finish.
        """
        trials_with_results = list(zip(self._trials, results, strict=True))
        failed_examples: dict[str, list[JsonValue]] = {rule.id: [] for rule in self._rules}
        failures: list[JsonValue] = []
        for trial, result in trials_with_results:
            example = {"example": trial.example, "text": trial.text}
            if isinstance(result, str):
                place = example if trial.example else _path_fields(trial.source)
                failures.append({"rule": trial.rule.id, **place, "reason": result})
            elif trial.example and bool(result) != (trial.example == "bad"):
                failed_examples[trial.rule.id].append({**example, "findings": len(result)})
        return {
            "rules": [
                {"id": rule.id, "examples": len(rule.bad) + len(rule.good), "failed_examples": failed_examples[rule.id]}
                for rule in self._rules
            ],
            "files": list(self._files),
            "findings": [
                finding
                for trial, result in trials_with_results
                if not trial.example and isinstance(result, list)
                for finding in result
            ],
            "failures": failures,
        }

    def _add_file(self, source: SourceFile) -> None:
        rules = [rule for rule in self._rules if rule.language == source.language]
        skip_reason = _skip_reason(source, bool(rules))
        trials_with_results = [] if skip_reason else rules
        self._trials += (_RuleTrial(rule, source) for rule in trials_with_results)
        facts = {"language": source.language, "rules": len(trials_with_results), "skip_reason": skip_reason}
        self._files.append({**_path_fields(source), **facts})


def _example_trials(rule: QueryRule) -> list[_RuleTrial]:
    # The name of a source usually determines its language, but an example has no file name. So an attribute sets the
    # language.
    contexts = {"attributes": b"language=" + rule.language.encode()}
    return [
        _RuleTrial(rule, SourceFile(rule.id.encode(), text.encode(), executable=False, contexts=contexts), kind, text)
        for kind, texts in (("bad", rule.bad), ("good", rule.good))
        for text in texts
    ]


def _path_fields(source: SourceFile) -> dict[str, JsonValue]:
    placed = zip(("path", "path_b64"), source.path_fields, strict=True)
    return {name: value for name, value in placed if isinstance(value, str)}


def _skip_reason(source: SourceFile, has_rules: bool) -> str:
    """Return why no custom rule is applied to a file. If at least one rule is applied, return an empty text."""
    if source.file_class in ("binary", "huge", "empty", *NOT_WRITTEN_BY_HAND):
        return f"it is {source.file_class}"
    if not has_rules:
        return f"no rule applies to {source.language}"
    if not source.can_be_parsed:
        return f"it cannot be parsed as {source.language}"
    return ""
