"""lint: language-neutral rules for every text file, custom rules, and ruff for Python.

The configuration and the path determine which rules apply to a file (lint/config.py). The severities also depend on the
class of the file (lint/severities.py). Binary and huge files are skipped. This task applies the suppression comments of
ruff (`# noqa`) and of other Python linters. The comments of codebatch are applied to the findings of all tasks
(suppression.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from codebatch.model.gitignore import parse_arguments
from codebatch.model.record import Diagnostic, FileClass, Record, Severity
from codebatch_workers.api.protocols import FileFailure, TaskEnvironment
from codebatch_workers.lint.bounds import CODES_ONCE_PER_NAME, FINDINGS_PER_FILE_MAX
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.path_settings import is_rule_on, matches_patterns, rule_severity
from codebatch_workers.lint.python.ruff import SYNTAX_ERROR_CODE, RuffRunner, is_for_ruff, shared_ruff
from codebatch_workers.lint.python.ruff_project import ProjectRuffRunner, project_severity
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.lint.rule import TextRule
from codebatch_workers.lint.settings import LintSettings, RuleSettings
from codebatch_workers.lint.severities import is_downgraded_to_hint, severity_in
from codebatch_workers.lint.text_rules import RULES_BY_CODE, TEXT_RULES, todo_finder
from codebatch_workers.syntax.findings import diagnostic
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import matches_any_pattern

_UNDEFINED_NAME_CODE = "F821"
_UNDEFINED_NAMES_MAX = 5
NOT_WRITTEN_BY_HAND = frozenset({"generated", "minified", "vendored"})


def create(environment: TaskEnvironment[LintConfig]) -> LintTask:
    """Return the task."""
    config = environment.config
    if config.ruff.config == "project":
        ruff = ProjectRuffRunner(environment.scratch, environment.try_memory())
        return LintTask(config, ruff, is_project=True)
    return LintTask(config, shared_ruff(environment))


def non_ruff_rules(config: LintSettings) -> list[TextRule]:
    """Return all rules other than ruff's, including rules that are off."""
    todo = todo_finder(config.todo)
    builtin_rules = [replace(rule, find=todo) if rule.code == "todo-comment" else rule for rule in TEXT_RULES]
    if not config.rules:
        return builtin_rules
    from codebatch_workers.lint.query_rules import compile_rule  # Imported late: few configurations have rules.

    return [*builtin_rules, *map(compile_rule, config.rules)]


class _RuleProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The rules and severities that apply to all files with the same class and the same settings."""

    file_class: FileClass
    rules: tuple[TextRule, ...]
    lasting_rules: tuple[TextRule, ...]
    ruff: Mapping[str, Severity]
    settings: tuple[RuleSettings, ...]


class LintTask:
    """The task: `diagnostic` records.

    Findings of language-neutral and custom rules come first, then findings of ruff. Each of the two groups is by
    position.
    """

    def __init__(self, config: LintConfig, ruff: RuffRunner, *, is_project: bool = False) -> None:
        self._config = config
        self._is_project = is_project
        self._rules = non_ruff_rules(config)
        self._path_patterns = [(parse_arguments(settings.match, "match"), settings) for settings in config.paths]
        self._profiles: dict[tuple[FileClass, tuple[int, ...]], _RuleProfile] = {}
        self._ruff = ruff
        if not is_project:
            ruff.select_rules(_codes_in_use(config))

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return the findings in a file, except for those of ruff, by position."""
        file_class = file.file_class
        if file_class in ("binary", "huge", "empty"):
            return []
        profile = self._cached_profile(file)
        findings: list[Diagnostic] = []
        for rule in profile.lasting_rules if file_class in NOT_WRITTEN_BY_HAND else profile.rules:
            findings.extend(apply_rule(rule, file))
        findings.sort(key=lambda record: (record.line, record.column, record.code))
        return list(findings)

    def complete(
        self, files: Sequence[SourceFile], records: Sequence[list[Record]]
    ) -> list[list[Record] | FileFailure]:
        """Return the records of each file, with the findings of ruff appended for Python files."""
        final = [list(finding) for finding in records]
        failures: dict[int, FileFailure] = {}
        python = [index for index, file in enumerate(files) if is_for_ruff(file)]
        answers = self._ruff.check([files[index] for index in python])
        for index, answer in zip(python, answers, strict=True):
            if self._ruff.is_uncheckable(files[index]):
                failures[index] = FileFailure(
                    "ruff crashes on this file, probably because its code is nested too deeply"
                )
            if not answer:
                continue
            if not self._is_project and any(finding.code == SYNTAX_ERROR_CODE for finding in answer):
                # Ruff could not parse the text. Its other findings are only consequences of the syntax error, so they
                # are dropped.
                continue
            selected = list(self._select_findings(answer, files[index]))
            final[index].extend(selected if self._is_project else _exclude_fragments(selected))
        return [failures.get(index, found) for index, found in enumerate(final)]

    def _select_findings(self, answer: Sequence[Diagnostic], file: SourceFile) -> Iterator[Diagnostic]:
        """Yield each finding of ruff whose rule is on for the file, with the severity that applies there."""
        profile = self._cached_profile(file)
        counts_by_code: Counter[str] = Counter()
        names: set[tuple[str, str]] = set()
        for finding in answer:
            severity = (
                self._project_severity(finding.code, profile) if self._is_project else profile.ruff.get(finding.code)
            )
            if severity is None or counts_by_code[finding.code] == FINDINGS_PER_FILE_MAX:
                continue
            if not self._is_project and self._is_excluded(file, finding, names):
                continue
            if not self._is_project and is_downgraded_to_hint(file, finding):
                severity = rule_severity(finding.code, profile.settings, "hint")
            counts_by_code[finding.code] += 1
            yield finding if finding.severity == severity else msgspec.structs.replace(finding, severity=severity)

    @staticmethod
    def _is_excluded(file: SourceFile, finding: Diagnostic, names: set[tuple[str, str]]) -> bool:
        """Return whether a finding is probably false, or repeats an earlier finding.

        `names` contains the (code, message) pairs that were reported so far. This adds the pair of the finding.
        """
        from codebatch_workers.lint.python.false_positives import (
            is_doubtful_finding,
        )  # Imported late: only Python needs it.

        if is_doubtful_finding(file, finding):
            return True
        if finding.code in CODES_ONCE_PER_NAME:
            if (finding.code, finding.message) in names:
                return True
            names.add((finding.code, finding.message))
        return False

    def _project_severity(self, code: str, profile: _RuleProfile) -> Severity | None:
        """Return the severity of a rule of ruff if ruff uses the project's configuration.

        Return None if the rule is off. The rule is off if lint's settings turn it off, or if `parse` reports its
        findings.
        """
        if code == SYNTAX_ERROR_CODE or not is_rule_on(code, profile.settings, default=True):
            return None
        default = severity_in(profile.file_class, code, project_severity(code))
        return rule_severity(code, profile.settings, default)

    def _cached_profile(self, file: SourceFile) -> _RuleProfile:
        """Return the rules and severities for a file. The result is cached, because most files have the same one."""
        indexes: tuple[int, ...] = ()
        if self._path_patterns:
            indexes = tuple(
                index
                for index, (patterns, _) in enumerate(self._path_patterns)
                if matches_patterns(patterns, file.path)
            )
        key = file.file_class, indexes
        profile = self._profiles.get(key)
        if profile is None:
            settings: tuple[RuleSettings, ...] = (self._config, *(self._path_patterns[index][1] for index in indexes))
            rules = tuple(self._text_rules(settings, file.file_class))
            profile = self._profiles[key] = _RuleProfile(
                file_class=file.file_class,
                rules=rules,
                lasting_rules=tuple(rule for rule in rules if not rule.is_style),
                ruff=self._ruff_severities(settings, file.file_class),
                settings=settings,
            )
        return profile

    def _text_rules(self, settings: Sequence[RuleSettings], file_class: FileClass) -> Iterator[TextRule]:
        for rule in self._rules:
            if is_rule_on(rule.code, settings, default=rule.is_on):
                # The class of a file does not change the severity of a custom rule, because a user has chosen this
                # severity.
                is_builtin = rule.code in RULES_BY_CODE
                default = severity_in(file_class, rule.code, rule.severity) if is_builtin else rule.severity
                yield replace(rule, severity=rule_severity(rule.code, settings, default))

    def _ruff_severities(self, settings: Sequence[RuleSettings], file_class: FileClass) -> Mapping[str, Severity]:
        return {
            code: rule_severity(code, settings, severity_in(file_class, code, severity))
            for code, severity in SEVERITY_BY_CODE.items()
            if is_rule_on(code, settings, default=True)
        }


def _exclude_fragments(findings: list[Diagnostic]) -> list[Diagnostic]:
    """If there are more than _UNDEFINED_NAMES_MAX findings about undefined names, keep only the first of these.

    Such a file is usually a fragment of another one, or an example without its beginning.
    """
    undefined = [finding for finding in findings if finding.code == _UNDEFINED_NAME_CODE]
    if len(undefined) <= _UNDEFINED_NAMES_MAX:
        return findings
    return [finding for finding in findings if finding.code != _UNDEFINED_NAME_CODE or finding is undefined[0]]


def _codes_in_use(config: LintConfig) -> list[str]:
    """Return the codes of ruff's rules that are on for at least some paths."""
    on_for_paths = [code for settings in config.paths for code in settings.on]
    return [
        code
        for code in SEVERITY_BY_CODE
        if not matches_any_pattern(code, config.off) or matches_any_pattern(code, on_for_paths)
    ]


def apply_rule(rule: TextRule, file: SourceFile) -> list[Diagnostic]:
    """Return the findings of one rule in a file, at most FINDINGS_MAX."""
    if rule.needle not in file.utf8:
        return []
    return [
        diagnostic(file, start, end, severity=rule.severity, code=rule.code, message=message)
        for start, end, message in islice(rule.find(file), FINDINGS_PER_FILE_MAX)
    ]
