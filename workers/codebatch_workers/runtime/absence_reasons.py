"""Functions that explain why a batch lacks a finding: its rule is off, a limit was reached, or a comment suppresses it.

Comparisons of batches call these functions. `codebatch.plugins.worker_services.load_question` loads them by name. Only
`are_suppressed` reads and parses a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import msgspec

from codebatch.model.task import JsonValue
from codebatch_workers.lint.bounds import CODES_ONCE_PER_FILE, CODES_ONCE_PER_NAME, FINDINGS_PER_FILE_MAX
from codebatch_workers.lint.path_settings import is_rule_on, settings_at_path
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.lint.settings import LintSettings


def rule_switch(settings: Mapping[str, JsonValue]) -> Callable[[bytes, str, str], bool | None] | None:
    """Return a function that returns whether a rule is off for a file. Its arguments are path, tool and code.

    For an unknown rule, this function returns None. If the settings are invalid for this version, return None instead
    of a function.
    """
    try:
        config = msgspec.convert(dict(settings), LintSettings)
    except msgspec.ValidationError:
        return None
    is_project = config.ruff.config == "project"
    enabled_by_default = dict.fromkeys((rule.id for rule in config.rules), True)
    if not is_project:
        enabled_by_default.update(dict.fromkeys(SEVERITY_BY_CODE, True))
    cached_settings = lru_cache(partial(settings_at_path, config))  # Cached because a file usually has many findings.

    @lru_cache
    def is_on_by_default(code: str) -> bool | None:
        return enabled_by_default[code] if code in enabled_by_default else _is_built_in_rule_on(code)

    @lru_cache  # Cached because a rule usually has many findings in a file.
    def is_rule_off(path: bytes, tool: str, code: str) -> bool | None:
        default = is_on_by_default(code)
        if default is None:
            if not (is_project and tool == "ruff"):
                return None
            default = True
        return not is_rule_on(code, cached_settings(path), default=default)

    return is_rule_off


def per_file_limits() -> tuple[frozenset[str], frozenset[str], int]:
    """Return two sets of rules, and FINDINGS_MAX.

    The rules in the first set report each name at most once per file. The rules in the second set report at most one
    finding per file.
    """
    return CODES_ONCE_PER_NAME, CODES_ONCE_PER_FILE, FINDINGS_PER_FILE_MAX


def _is_built_in_rule_on(code: str) -> bool | None:
    """Return whether a built-in rule is on by default, or None for any other rule."""
    from codebatch_workers.lint.text_rules import RULES_BY_CODE  # Imported late: only text rules need it.

    rule = RULES_BY_CODE.get(code)
    return None if rule is None else rule.is_on


def are_suppressed(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], findings: Sequence[tuple[int, str]]
) -> list[bool]:
    """Return whether a suppression comment of codebatch applies to each finding. A finding is given as (line, code)."""
    # The parser is imported only if a file has a suppression comment.
    from codebatch_workers.syntax.source import SourceFile
    from codebatch_workers.syntax.suppression import file_suppressions

    found_suppressions = file_suppressions(SourceFile(path, content, executable=False, contexts=contexts))
    return [found_suppressions.suppresses(line, code) for line, code in findings]
