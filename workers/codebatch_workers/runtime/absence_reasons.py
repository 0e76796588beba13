"""What a comparison asks of the code that workers run: whether a rule is off, silenced by a note, or told in part.

`codebatch.plugins.worker_services.load_question` loads these by name. A rule that is off is told of without any parser.
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
    """Whether a rule is off, asked with a path, its tool and its code; None of what is no rule of these settings.

    None at all where the settings are not ours.
    """
    try:
        config = msgspec.convert(dict(settings), AllSettings)
    except msgspec.ValidationError:
        return None
    is_project = config.ruff.config == "project"
    known = dict.fromkeys((rule.id for rule in config.rules), True)
    if not is_project:
        known.update(dict.fromkeys(SEVERITIES, True))
    settings_of = lru_cache(partial(settings_at, config))  # Of a file many findings are asked.

    @lru_cache
    def is_on_by_default(code: str) -> bool | None:
        return known[code] if code in known else _is_on_of_ours(code)

    @lru_cache  # and many of these by one rule
    def is_off(path: bytes, tool: str, code: str) -> bool | None:
        default = is_on_by_default(code)
        if default is None:
            if not (is_project and tool == "ruff"):
                return None
            default = True
        return not is_on(code, settings_of(path), default=default)

    return is_off


def told_of_a_file() -> tuple[frozenset[str], frozenset[str], int]:
    """The rules that tell a name of a file once, those that tell a file once, and how often any other one tells it."""
    return ONCE_A_NAME, ONCE_A_FILE, FINDINGS_MAX


def _is_on_of_ours(code: str) -> bool | None:
    """Whether a rule that comes with us is on where nothing is said of it; None where it is none."""
    from codebatch_workers.lint.text_rules import RULES_BY_CODE  # 4 ms that no other rule takes

    rule = RULES_BY_CODE.get(code)
    return None if rule is None else rule.is_on


def are_silenced(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], findings: Sequence[tuple[int, str]]
) -> list[bool]:
    """Which findings, each a line and a code, a note of ours in a file silences."""
    # What reads a file is loaded where there is one with a note.
    from codebatch_workers.syntax.source import SourceFile
    from codebatch_workers.syntax.suppression import suppressions

    ours = suppressions(SourceFile(path, content, executable=False, contexts=contexts))
    return [ours.has(line, code) for line, code in findings]
