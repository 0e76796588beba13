"""What `[tasks.lint]` may say, and its refusal where it says what cannot be.

Importing this loads no parser and no rules: both are looked at when a configuration names some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codebatch_workers.lint.settings import AllSettings, QueryRule, RuleSettings

_RUFF_CODE = re.compile(r"[A-Z]+[0-9]*\*?\Z")
RULE_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")


class LintConfig(AllSettings, frozen=True, kw_only=True):
    """Everything that `[tasks.lint]` may say, of rules that there are."""

    def __post_init__(self) -> None:
        if self.paths:
            self._check_patterns()
        named = set(self._named())
        if named or self.rules:
            self._check_rules()
            if self.ruff.config == "project":
                # The project may have turned on any rule of ruff.
                named = {code for code in named if not _RUFF_CODE.match(code)}
            _check_codes(named, self.rules)

    def _named(self) -> Iterator[str]:
        every: tuple[RuleSettings, ...] = (self, *self.paths)
        for settings in every:
            yield from (*settings.off, *settings.on, *settings.severity)

    def _check_patterns(self) -> None:
        from codebatch.model.gitignore import find_mistake  # 4 ms, of configurations with paths alone

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
    """The codes of every rule that comes with lint."""
    from codebatch_workers.lint.ruff_rules import SEVERITIES
    from codebatch_workers.lint.text_rules import RULES_BY_CODE

    return [*RULES_BY_CODE, *SEVERITIES]


def _check_codes(named: Iterable[str], rules: Iterable[QueryRule]) -> None:
    known = [*known_codes(), *(rule.id for rule in rules)]
    for code in sorted(named):
        if code not in known and not (code.endswith("*") and any(each.startswith(code[:-1]) for each in known)):
            import difflib  # only those who mistype pay for it

            close = difflib.get_close_matches(code, known, n=1)
            raise ValueError(f"unknown rule {code!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
