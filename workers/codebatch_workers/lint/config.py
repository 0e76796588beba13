"""Validation of `[tasks.lint]`.

Importing this module loads no parser and no rules. They are loaded only if a configuration mentions rules.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from codebatch.model.gitignore import find_mistake
from codebatch_workers.lint.settings import LintSettings, QueryRule, RuleSettings

_RUFF_CODE = re.compile(r"[A-Z]+[0-9]*\*?\Z")
RULE_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")


class LintConfig(LintSettings, frozen=True, kw_only=True):
    """The settings in `[tasks.lint]`, with checked rule codes, rules and patterns."""

    def __post_init__(self) -> None:
        if self.paths:
            self._check_patterns()
        codes = set(self._codes_in_settings())
        if codes or self.rules:
            self._check_rules()
            if self.ruff.config == "project":
                # A project's configuration of ruff can enable any rule, so codes that look like those of ruff are not
                # checked.
                codes = {code for code in codes if not _RUFF_CODE.match(code)}
            _check_codes(codes, self.rules)

    def _codes_in_settings(self) -> Iterator[str]:
        all_settings: tuple[RuleSettings, ...] = (self, *self.paths)
        for settings in all_settings:
            yield from (*settings.off, *settings.on, *settings.severity)

    def _check_patterns(self) -> None:
        for settings in self.paths:
            if (mistake := find_mistake(settings.match)) is not None:
                message = f"pattern {mistake.pattern!r} in `match` can match no path: {mistake.reason}"
                raise ValueError(f"{message}; {mistake.hint}")

    def _check_rules(self) -> None:
        from codebatch_workers.lint.query_rules import compile_rule

        known = set(known_codes())
        for rule in self.rules:
            if not RULE_ID.match(rule.id):
                raise ValueError(f"the rule ID {rule.id!r} must be lower-case letters and digits joined by `-`")
            if rule.id in known:
                raise ValueError(f"duplicate rule {rule.id!r}")
            known.add(rule.id)
            compile_rule(rule)


def known_codes() -> Iterable[str]:
    """Return the codes of all built-in rules."""
    from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
    from codebatch_workers.lint.text_rules import RULES_BY_CODE

    return [*RULES_BY_CODE, *SEVERITY_BY_CODE]


def _check_codes(codes: Iterable[str], rules: Iterable[QueryRule]) -> None:
    known = [*known_codes(), *(rule.id for rule in rules)]
    for code in sorted(codes):
        if code not in known and not (code.endswith("*") and any(other.startswith(code[:-1]) for other in known)):
            similar = difflib.get_close_matches(code, known, n=1)
            raise ValueError(f"unknown rule {code!r}" + (f"; did you mean {similar[0]!r}?" if similar else ""))
