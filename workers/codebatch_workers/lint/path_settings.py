"""Lint settings at a path: which apply, and what they set for a rule. This module imports no parser and no rules."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.model.gitignore import PatternList, parse_arguments
from codebatch.model.record import Severity
from codebatch_workers.lint.settings import LintSettings, RuleSettings
from codebatch_workers.syntax.suppression import matches_any_pattern


def settings_at_path(config: LintSettings, path: bytes) -> tuple[RuleSettings, ...]:
    """Return all settings that apply to a path, in order. Later settings override earlier ones."""
    at_path = (
        settings for settings in config.paths if matches_patterns(parse_arguments(settings.match, "match"), path)
    )
    return (config, *at_path)


def matches_patterns(patterns: PatternList, path: bytes) -> bool:
    """Return whether a path matches patterns (gitignore syntax).

    The path itself is tried first, then each directory above it, nearest first. The last pattern that matches decides.
    If this pattern is negated, the result is false.
    """
    parts = path.split(b"/")
    for count in range(len(parts), 0, -1):
        pattern = patterns.deciding_pattern(b"/".join(parts[:count]), is_directory=count < len(parts))
        if pattern is not None:
            return not pattern.negated
    return False


def is_rule_on(code: str, settings: Sequence[RuleSettings], *, default: bool) -> bool:
    """Return whether a rule is on. The last settings with the rule in `on` or `off` decide.

    If these settings have the rule in both, it is off. If no settings have it, `default` is returned.
    """
    for level in reversed(settings):
        if matches_any_pattern(code, level.off):
            return False
        if matches_any_pattern(code, level.on):
            return True
    return default


def rule_severity(code: str, settings: Sequence[RuleSettings], default: Severity) -> Severity:
    """Return the severity of a rule.

    The last settings that contain the rule decide. If several patterns in these settings match the rule, the longest
    pattern wins. If no settings contain the rule, `default` is returned.
    """
    for level in reversed(settings):
        fitting = [pattern for pattern in level.severity if matches_any_pattern(code, (pattern,))]
        if fitting:
            return level.severity[max(fitting, key=len)]
    return default
