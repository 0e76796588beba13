"""Which rule a SARIF result is of (3.52.3 of the standard), how that was set (3.27.10), and what it says (3.11.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from codebatch_workers.exchange.reported import MESSAGE_CHARACTERS_MAX
from codebatch_workers.exchange.sarif_log import (
    Component,
    ComponentReference,
    Provenance,
    ReadInvocation,
    ReadMessage,
    ReadResult,
    ReadRule,
    ReadRun,
    ReadTool,
    RuleReference,
)

_BRACES = re.compile(r"\{\{|\}\}|\{(\d{1,3})\}")

T = TypeVar("T")


class Named(NamedTuple):
    """The rule that a reference names and the component that has it; what is not there is empty."""

    rule: ReadRule
    component: Component


class SarifRules:
    """The rules of a run."""

    def __init__(self, run: ReadRun) -> None:
        tool = run.tool or ReadTool()
        self.driver = tool.driver or Component()
        self._extensions = tool.extensions or []
        every = [each or Component() for each in (self.driver, *self._extensions)]
        self._by_guid = {part.guid: part for part in reversed(every) if part.guid}
        self._by_id = {
            rule.id: Named(rule, part) for part in reversed(every) for rule in reversed(part.rules or ()) if rule
        }
        self._levels = [dict(self._iter_levels(each or ReadInvocation())) for each in run.invocations or ()]

    def of(self, result: ReadResult) -> Named:
        """The rule of a result, by its place, or else by its name."""
        reference = result.rule or RuleReference()
        index = reference.index if result.rule_index is None or result.rule_index < 0 else result.rule_index
        return self._named(reference, index, result.rule_id or reference.id or "")

    def level(self, result: ReadResult, named: Named) -> str | None:
        """The level of what does not say its own: as the rule was set for the run that found it, or by itself."""
        invocation = (result.provenance or Provenance()).invocation_index
        if invocation is None and len(self._levels) == 1:
            invocation = 0
        levels = at(self._levels, invocation) or {}
        rule = named.rule
        code = result.rule_id or (result.rule and result.rule.id)
        default = rule.default_configuration.level if rule.default_configuration is not None else None
        return levels.get(id(rule)) or levels.get(code or "") or default

    def _iter_levels(self, invocation: ReadInvocation) -> Iterator[tuple[int | str, str]]:
        """The levels that were set, by the identity of a rule that is told of, else by its name; the first last."""
        for each in reversed(invocation.rule_configuration_overrides or ()):
            if each is not None and each.configuration is not None and each.configuration.level is not None:
                reference = each.descriptor or RuleReference()
                rule = self._named(reference, reference.index, reference.id or "").rule
                yield id(rule) if rule is not _NO_RULE else reference.id or "", each.configuration.level

    def _named(self, reference: RuleReference, index: float | None, code: str) -> Named:
        component = self._component(reference.tool_component or ComponentReference())
        found = at(component.rules, index)
        if found is None and reference.guid:
            found = next((each for each in component.rules or () if each and each.guid == reference.guid), None)
        if found is not None and (not code or not found.id or f"{code}/".startswith(f"{found.id}/")):
            return Named(found, component)
        # No rule has the place, or one of another name: it is of a component that is not said.
        while code and code not in self._by_id:  # `CA1000/1` is of the rule `CA1000`.
            code = code.rpartition("/")[0]
        return self._by_id.get(code) or Named(_NO_RULE, component)

    def _component(self, reference: ComponentReference) -> Component:
        if reference.index is not None and reference.index >= 0:
            return at(self._extensions, reference.index) or Component()
        return self._by_guid.get(reference.guid, Component()) if reference.guid else self.driver


_NO_RULE = ReadRule()


def at(values: Sequence[T | None] | None, index: float | None) -> T | None:
    """The value of a place, None where there is none."""
    return values[int(index)] if values and index is not None and 0 <= index < len(values) else None


def message_of(message: ReadMessage, named: Named) -> str:
    """What a result says, with its arguments."""
    text = message.text
    if text is None and message.id is not None:
        places = (named.rule.message_strings, named.component.global_message_strings)
        texts = (strings[message.id] for strings in places if strings and message.id in strings)
        text = next((each.text for each in texts if each is not None and each.text is not None), None)
    if text is None:
        return message.markdown or (named.rule.short_description and named.rule.short_description.text) or ""
    return _filled(text, message.arguments) if message.arguments else text


def _filled(text: str, arguments: Sequence[str | None]) -> str:
    """A text with its arguments, as far as a message goes: a short one may name a long argument a million times."""
    parts: list[str] = []
    size = end = 0
    for match in _BRACES.finditer(text):
        found = match[0][0] if match[1] is None else at(arguments, int(match[1]))
        parts += [text[end : match.start()], match[0] if found is None else found[:MESSAGE_CHARACTERS_MAX]]
        size, end = size + len(parts[-2]) + len(parts[-1]), match.end()
        if size > MESSAGE_CHARACTERS_MAX:
            return "".join(parts)
    return "".join([*parts, text[end:]])
