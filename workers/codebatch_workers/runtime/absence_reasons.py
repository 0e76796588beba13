"""Functions that explain why a batch lacks a finding: its rule is off, a limit was reached, or a comment suppresses it.

Comparisons of batches call these functions. `codebatch.plugins.worker_services.load_question` loads them by name. Only
`are_silenced` reads and parses a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import msgspec

from codebatch.model.task import Json
from codebatch_workers.lint.bounds import FINDINGS_MAX, ONCE_A_FILE, ONCE_A_NAME
from codebatch_workers.lint.path_settings import is_on, settings_at
from codebatch_workers.lint.ruff_rules import SEVERITIES
from codebatch_workers.lint.settings import AllSettings


def rule_switch(settings: Mapping[str, Json]) -> Callable[[bytes, str, str], bool | None] | None:
    """Return a function that returns whether a rule is off for a file. Its arguments are path, tool and code.

    For an unknown rule, this function returns None. If the settings are invalid for this version, return None instead
    of a function.
    """
    try:
        config = msgspec.convert(dict(settings), AllSettings)
    except msgspec.ValidationError:
        return None
    is_project = config.ruff.config == "project"
    enabled_by_default = dict.fromkeys((rule.id for rule in config.rules), True)
    if not is_project:
        enabled_by_default.update(dict.fromkeys(SEVERITIES, True))
    settings_at_path = lru_cache(partial(settings_at, config))  # Cached because a file usually has many findings.

    @lru_cache
    def is_on_by_default(code: str) -> bool | None:
        return enabled_by_default[code] if code in enabled_by_default else _is_builtin_rule_on(code)

    @lru_cache  # Cached because a rule usually has many findings in a file.
    def is_off(path: bytes, tool: str, code: str) -> bool | None:
        default = is_on_by_default(code)
        if default is None:
            if not (is_project and tool == "ruff"):
                return None
            default = True
        return not is_on(code, settings_at_path(path), default=default)

    return is_off


def per_file_limits() -> tuple[frozenset[str], frozenset[str], int]:
    """Return two sets of rules, and FINDINGS_MAX.

    The rules in the first set report each name at most once per file. The rules in the second set report at most one
    finding per file.
    """
    return ONCE_A_NAME, ONCE_A_FILE, FINDINGS_MAX


def _is_builtin_rule_on(code: str) -> bool | None:
    """Return whether a built-in rule is on by default, or None for any other rule."""
    from codebatch_workers.lint.text_rules import RULES_BY_CODE  # Imported late: only text rules need it.

    rule = RULES_BY_CODE.get(code)
    return None if rule is None else rule.is_on


def are_silenced(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], findings: Sequence[tuple[int, str]]
) -> list[bool]:
    """Return whether a suppression comment of codebatch applies to each finding. A finding is given as (line, code)."""
    # The parser is imported only if a file has a suppression comment.
    from codebatch_workers.syntax.source import SourceFile
    from codebatch_workers.syntax.suppression import suppressions

    found_suppressions = suppressions(SourceFile(path, content, executable=False, contexts=contexts))
    return [found_suppressions.has(line, code) for line, code in findings]
