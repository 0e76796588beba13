"""The rule of a SARIF result (3.52.3 of the standard), its configuration (3.27.10) and its message (3.11.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from codebatch.interchange.reports import MESSAGE_CHARACTERS_MAX
from codebatch.interchange.sarif_log import (
    ComponentReference,
    ResultProvenance,
    RuleReference,
    SarifMessage,
    SarifResult,
    SarifRule,
    SarifRun,
    SarifTool,
    ToolComponent,
    ToolInvocation,
)

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\d{1,3})\}")

T = TypeVar("T")


class ResolvedRule(NamedTuple):
    """The rule of a result, and the component that defines the rule. A missing one is an empty object."""

    rule: SarifRule
    component: ToolComponent


class RuleResolver:
    """The rules of a run, and their configurations in the run's invocations."""

    def __init__(self, run: SarifRun) -> None:
        tool = run.tool or SarifTool()
        self.driver = tool.driver or ToolComponent()
        self._extensions = tool.extensions or ()
        components = [component or ToolComponent() for component in (self.driver, *self._extensions)]
        self._by_guid = {part.guid: part for part in reversed(components) if part.guid}
        self._by_id = {
            rule.id: ResolvedRule(rule, part)
            for part in reversed(components)
            for rule in reversed(part.rules or ())
            if rule
        }
        self._levels = [dict(self._iter_levels(component or ToolInvocation())) for component in run.invocations or ()]

    def resolve(self, result: SarifResult) -> ResolvedRule:
        """Return the rule of a result. It is found by the index in the result, otherwise by the ID."""
        reference = result.rule or RuleReference()
        index = reference.index if result.rule_index is None or result.rule_index < 0 else result.rule_index
        return self._resolve_reference(reference, index, result.rule_id or reference.id or "")

    def configured_level(self, result: SarifResult, named: ResolvedRule) -> str | None:
        """Return the level of a result that has no level of its own.

        If the result's invocation configures a level for the rule, return this level, otherwise the default level of
        the rule. None if there is neither.
        """
        invocation = (result.provenance or ResultProvenance()).invocation_index
        if invocation is None and len(self._levels) == 1:
            invocation = 0
        levels = item_at(self._levels, invocation) or {}
        rule = named.rule
        code = result.rule_id or (result.rule and result.rule.id)
        default = rule.default_configuration.level if rule.default_configuration is not None else None
        return levels.get(id(rule)) or levels.get(code or "") or default

    def _iter_levels(self, invocation: ToolInvocation) -> Iterator[tuple[int | str, str]]:
        """Yield (rule, level) for each rule whose level an invocation configures.

        The rule is given by the identity of its object if it is known, otherwise by its ID. If the log has several
        levels for a rule, the first one is yielded last, so that it overrides the others.
        """
        for override in reversed(invocation.rule_configuration_overrides or ()):
            if override is not None and override.configuration is not None and override.configuration.level is not None:
                reference = override.descriptor or RuleReference()
                rule = self._resolve_reference(reference, reference.index, reference.id or "").rule
                yield id(rule) if rule is not _NO_RULE else reference.id or "", override.configuration.level

    def _resolve_reference(self, reference: RuleReference, index: float | None, code: str) -> ResolvedRule:
        component = self._referenced_component(reference.tool_component or ComponentReference())
        rule = item_at(component.rules, index)
        if rule is None and reference.guid:
            rule = next(
                (candidate for candidate in component.rules or () if candidate and candidate.guid == reference.guid),
                None,
            )
        if rule is not None and (not code or not rule.id or f"{code}/".startswith(f"{rule.id}/")):
            return ResolvedRule(rule, component)
        # No rule has this index, or the rule with this index has another ID. So the result's rule is defined by a
        # component that is not in the log.
        while code and code not in self._by_id:  # `CA1000/1` belongs to the rule `CA1000`.
            code = code.rpartition("/")[0]
        return self._by_id.get(code) or ResolvedRule(_NO_RULE, component)

    def _referenced_component(self, reference: ComponentReference) -> ToolComponent:
        if reference.index is not None and reference.index >= 0:
            return item_at(self._extensions, reference.index) or ToolComponent()
        return self._by_guid.get(reference.guid, ToolComponent()) if reference.guid else self.driver


_NO_RULE = SarifRule()


def item_at(values: Sequence[T | None] | None, index: float | None) -> T | None:
    """Return the value at an index. Return None if there is no list, no index, or no value at the index."""
    return values[int(index)] if values and index is not None and 0 <= index < len(values) else None


def message_text(message: SarifMessage, named: ResolvedRule) -> str:
    """Return the text of a message with its arguments inserted. The text may be defined by the rule."""
    text = message.text
    if text is None and message.id is not None:
        sources = (named.rule.message_strings, named.component.global_message_strings)
        texts = (strings[message.id] for strings in sources if strings and message.id in strings)
        text = next((each.text for each in texts if each is not None and each.text is not None), None)
    if text is None:
        return message.markdown or (named.rule.short_description and named.rule.short_description.text) or ""
    return _insert_arguments(text, message.arguments) if message.arguments else text


def _insert_arguments(text: str, arguments: Sequence[str | None]) -> str:
    """Insert arguments into the placeholders of a text. Stop at the size limit of messages.

    The limit is needed because a short text may refer to a long argument many times.
    """
    parts: list[str] = []
    size = end = 0
    for match in _PLACEHOLDER.finditer(text):
        argument = match[0][0] if match[1] is None else item_at(arguments, int(match[1]))
        parts += [text[end : match.start()], match[0] if argument is None else argument[:MESSAGE_CHARACTERS_MAX]]
        size, end = size + len(parts[-2]) + len(parts[-1]), match.end()
        if size > MESSAGE_CHARACTERS_MAX:
            return "".join(parts)
    return "".join([*parts, text[end:]])
