"""lint: language-neutral rules over every text file, the user's own rules, ruff over Python.

Which rules look at a file, and how bad what they find is, follows from the configuration and the file's path
(lint/config.py), and from its class (lint/severities.py). Binary and huge files are not looked at. Of notes in the
source only ruff's own (`# noqa`) are heeded here; ours are heeded of whatever any task says (suppression.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from codebatch.model.gitignore import parse_arguments
from codebatch.model.record import Diagnostic, FileClass, Record, Severity
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.lint.bounds import FINDINGS_MAX, ONCE_A_NAME
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.path_settings import is_below, is_on, severity_of
from codebatch_workers.lint.python.ruff import SYNTAX_ERROR, Ruff, is_for_ruff, shared_ruff
from codebatch_workers.lint.python.ruff_project import ProjectRuff, project_severity
from codebatch_workers.lint.ruff_rules import SEVERITIES
from codebatch_workers.lint.rule import TextRule
from codebatch_workers.lint.settings import AllSettings, RuleSettings
from codebatch_workers.lint.severities import is_hint_here, severity_in
from codebatch_workers.lint.text_rules import RULES_BY_CODE, TEXT_RULES, todo_finder
from codebatch_workers.syntax.findings import diagnostic
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import matches

_UNDEFINED = "F821"
_UNDEFINED_NAMES_MAX = 5
NOT_WRITTEN_BY_HAND = frozenset({"generated", "minified", "vendored"})


def create(environment: TaskEnvironment[LintConfig]) -> Lint:
    """The task."""
    config = environment.config
    if config.ruff.config == "project":
        ruff = ProjectRuff(environment.scratch, environment.try_memory())
        return Lint(config, ruff, is_project=True)
    return Lint(config, shared_ruff(environment))


def rules_of(config: AllSettings) -> list[TextRule]:
    """Every rule that is not ruff's, whether it is on or not."""
    todo = todo_finder(config.todo)
    own = [replace(rule, find=todo) if rule.code == "todo-comment" else rule for rule in TEXT_RULES]
    if not config.rules:
        return own
    from codebatch_workers.lint.query_rules import compile_rule  # 3 ms

    return [*own, *map(compile_rule, config.rules)]


class _Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with files for which the same settings hold."""

    file_class: FileClass
    rules: tuple[TextRule, ...]
    lasting_rules: tuple[TextRule, ...]
    ruff: Mapping[str, Severity]
    settings: tuple[RuleSettings, ...]


class Lint:
    """`diagnostic` records by position: those of the language-neutral and the user's rules, then ruff's."""

    def __init__(self, config: LintConfig, ruff: Ruff, *, is_project: bool = False) -> None:
        self._config = config
        self._is_project = is_project
        self._rules = rules_of(config)
        self._patterns = [(parse_arguments(settings.match, "match"), settings) for settings in config.paths]
        self._profiles: dict[tuple[FileClass, tuple[int, ...]], _Profile] = {}
        self._ruff = ruff
        if not is_project:
            ruff.want(_wanted_somewhere(config))

    def run_file(self, file: SourceFile) -> list[Record]:
        """What our rules find in one file, by position."""
        file_class = file.file_class
        if file_class in ("binary", "huge", "empty"):
            return []
        profile = self._profile(file)
        found: list[Diagnostic] = []
        for rule in profile.lasting_rules if file_class in NOT_WRITTEN_BY_HAND else profile.rules:
            found.extend(apply_rule(rule, file))
        found.sort(key=lambda record: (record.line, record.column, record.code))
        return list(found)

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        """`records`, with ruff's for the Python files."""
        final = [list(each) for each in records]
        python = [index for index, file in enumerate(files) if is_for_ruff(file)]
        answers = self._ruff.check([files[index] for index in python])
        for index, answer in zip(python, answers, strict=True):
            if not answer:
                continue
            if not self._is_project and any(each.code == SYNTAX_ERROR for each in answer):
                # What follows from a text that cannot be read is no news.
                continue
            chosen = list(self._chosen(answer, files[index]))
            final[index].extend(chosen if self._is_project else _without_fragments(chosen))
        return final

    def _chosen(self, answer: Sequence[Diagnostic], file: SourceFile) -> Iterator[Diagnostic]:
        """Of what ruff says, what is wanted here, as bad as it is here."""
        profile = self._profile(file)
        seen: Counter[str] = Counter()
        names: set[tuple[str, str]] = set()
        for found in answer:
            severity = self._project_severity(found.code, profile) if self._is_project else profile.ruff.get(found.code)
            if severity is None or seen[found.code] == FINDINGS_MAX:
                continue
            if not self._is_project and self._is_left_out(file, found, names):
                continue
            if not self._is_project and is_hint_here(file, found):
                severity = severity_of(found.code, profile.settings, "hint")
            seen[found.code] += 1
            yield found if found.severity == severity else msgspec.structs.replace(found, severity=severity)

    @staticmethod
    def _is_left_out(file: SourceFile, found: Diagnostic, names: set[tuple[str, str]]) -> bool:
        """Whether a finding is most likely none, or one of a name that was told already; `names` are those."""
        from codebatch_workers.lint.python.false_positives import is_doubtful  # 2 ms that only Python needs

        if is_doubtful(file, found):
            return True
        if found.code in ONCE_A_NAME:
            if (found.code, found.message) in names:
                return True
            names.add((found.code, found.message))
        return False

    def _project_severity(self, code: str, profile: _Profile) -> Severity | None:
        """Of a rule that the project turned on: None where our settings turn it off, or `parse` tells it."""
        if code == SYNTAX_ERROR or not is_on(code, profile.settings, default=True):
            return None
        default = severity_in(profile.file_class, code, project_severity(code))
        return severity_of(code, profile.settings, default)

    def _profile(self, file: SourceFile) -> _Profile:
        """What holds for a file; few different ones for many files."""
        places: tuple[int, ...] = ()
        if self._patterns:
            places = tuple(index for index, (patterns, _) in enumerate(self._patterns) if is_below(patterns, file.path))
        key = file.file_class, places
        profile = self._profiles.get(key)
        if profile is None:
            settings: tuple[RuleSettings, ...] = (self._config, *(self._patterns[index][1] for index in places))
            rules = tuple(self._text_rules(settings, file.file_class))
            profile = self._profiles[key] = _Profile(
                file_class=file.file_class,
                rules=rules,
                lasting_rules=tuple(rule for rule in rules if not rule.is_style),
                ruff=self._ruff_severities(settings, file.file_class),
                settings=settings,
            )
        return profile

    def _text_rules(self, settings: Sequence[RuleSettings], file_class: FileClass) -> Iterator[TextRule]:
        for rule in self._rules:
            if is_on(rule.code, settings, default=rule.is_on):
                # How bad what a rule of the user's finds is, the user has said.
                is_ours = rule.code in RULES_BY_CODE
                default = severity_in(file_class, rule.code, rule.severity) if is_ours else rule.severity
                yield replace(rule, severity=severity_of(rule.code, settings, default))

    def _ruff_severities(self, settings: Sequence[RuleSettings], file_class: FileClass) -> Mapping[str, Severity]:
        return {
            code: severity_of(code, settings, severity_in(file_class, code, severity))
            for code, severity in SEVERITIES.items()
            if is_on(code, settings, default=True)
        }


def _without_fragments(found: list[Diagnostic]) -> list[Diagnostic]:
    """Where many names are undefined the first alone: the file is a part of another, or an example that begins late."""
    undefined = [each for each in found if each.code == _UNDEFINED]
    if len(undefined) <= _UNDEFINED_NAMES_MAX:
        return found
    return [each for each in found if each.code != _UNDEFINED or each is undefined[0]]


def _wanted_somewhere(config: LintConfig) -> list[str]:
    """ruff's codes that are not off, or on again for some paths."""
    on_again = [code for settings in config.paths for code in settings.on]
    return [code for code in SEVERITIES if not matches(code, config.off) or matches(code, on_again)]


def apply_rule(rule: TextRule, file: SourceFile) -> list[Diagnostic]:
    """What one rule finds in a file."""
    if rule.needle not in file.utf8:
        return []
    return [
        diagnostic(file, start, end, severity=rule.severity, code=rule.code, message=message)
        for start, end, message in islice(rule.find(file), FINDINGS_MAX)
    ]
