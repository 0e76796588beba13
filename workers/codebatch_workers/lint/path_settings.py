"""Which settings hold at a path, and what they say of a rule. Importing this loads no parser and no rules."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.model.gitignore import PatternList, parse_arguments
from codebatch.model.record import Severity
from codebatch_workers.lint.settings import AllSettings, RuleSettings
from codebatch_workers.syntax.suppression import matches


def settings_at(config: AllSettings, path: bytes) -> tuple[RuleSettings, ...]:
    """The settings that hold at a path; later ones come on top of earlier ones."""
    at_path = (each for each in config.paths if is_below(parse_arguments(each.match, "match"), path))
    return (config, *at_path)


def is_below(patterns: PatternList, path: bytes) -> bool:
    """Whether the last pattern that matches a path, or a directory above it, does not negate."""
    parts = path.split(b"/")
    for count in range(len(parts), 0, -1):
        pattern = patterns.decide(b"/".join(parts[:count]), is_directory=count < len(parts))
        if pattern is not None:
            return not pattern.negated
    return False


def is_on(code: str, settings: Sequence[RuleSettings], *, default: bool) -> bool:
    """The last settings that speak of a code decide; in one that says both, `off` does."""
    for each in reversed(settings):
        if matches(code, each.off):
            return False
        if matches(code, each.on):
            return True
    return default


def severity_of(code: str, settings: Sequence[RuleSettings], default: Severity) -> Severity:
    """The last settings that speak of a code decide; in one of them the longest pattern."""
    for each in reversed(settings):
        fitting = [pattern for pattern in each.severity if matches(code, (pattern,))]
        if fitting:
            return each.severity[max(fitting, key=len)]
    return default
