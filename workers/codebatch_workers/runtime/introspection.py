"""Functions that commands such as `find` and `rules` call in their own process, without a batch.

`codebatch.plugins.worker_services.load_question` loads these functions by name on first use. So commands that do not
use them import no parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.task import JsonValue, SnapshotView
from codebatch_workers.lint.config import RULE_ID, LintConfig
from codebatch_workers.lint.examples import EXAMPLE_BY_CODE
from codebatch_workers.lint.explanations import (
    ExplainedRule,
    explain_ruff,
    explain_severity,
    review_verdicts,
    ruff_summaries,
)
from codebatch_workers.lint.path_settings import is_rule_on, rule_severity
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.lint.settings import LintSettings
from codebatch_workers.lint.unreported import UnreportedCause, UnreportedFinding, UnreportedQuery, unreported_reason
from codebatch_workers.runtime.changes.tree_gates import TreeGates
from codebatch_workers.runtime.code_search import find_in, make_finder
from codebatch_workers.runtime.rule_trials import RuleTrials
from codebatch_workers.syntax.language.languages import (
    EXTRA_GRAMMAR_TOOLS,
    has_grammar,
    path_language,
)
from codebatch_workers.syntax.language.user_languages import resolve_language
from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.patterns.finders import PatternError, check_language
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.syntax_tree import encode_tree
from codebatch_workers.tasks.lint import non_ruff_rules

__all__ = [
    "example_rule",
    "explain_rule",
    "find_in",
    "list_rules",
    "make_finder",
    "path_languages",
    "resolve_language",
    "rule_trials",
    "syntax_tree",
    "tree_gates",
    "unreported_reasons",
]


def syntax_tree(path: bytes, content: bytes, contexts: Mapping[str, bytes]) -> bytes:
    """Return the encoded syntax tree of a file (syntax_tree.py). Raises InvalidInput if the file has no tree."""
    file = SourceFile(path, content, executable=False, contexts=contexts)
    displayed = display_path(path)
    if file.is_binary:
        raise InvalidInput(f"{displayed} is a binary file")
    if not file.has_grammar:
        tool = {language: tool for tool, language in EXTRA_GRAMMAR_TOOLS.items()}.get(file.language)
        from codebatch.installation import packages_command  # Rarely needed.

        hint = f"install it with: {packages_command([tool])}" if tool else "choose a language with --language"
        raise InvalidInput(f"no grammar for {file.language} ({displayed})", hint=hint)
    if file.overruns_its_grammar:
        raise InvalidInput(f"{displayed} is nested too deeply or too long for the grammar of {file.language}")
    return encode_tree(file)


def tree_gates(view: SnapshotView, scratch: Path) -> TreeGates:
    """Return the gates of changes in trees. See TreeGates."""
    return TreeGates(view, scratch)


def list_rules(settings: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """Return the code, severity, tool and summary of every rule of lint, and whether the rule is on.

    Settings for paths are ignored.
    """
    config = msgspec.convert(dict(settings), LintConfig)
    custom_rule_ids = {rule.id for rule in config.rules}
    rows = [
        (r.code, r.severity, r.is_on, "own" if r.code in custom_rule_ids else "codebatch", r.summary)
        for r in non_ruff_rules(config)
    ]
    rows += [(code, severity, True, "ruff", "") for code, severity in SEVERITY_BY_CODE.items()]
    return [
        {
            "code": code,
            "severity": rule_severity(code, (config,), severity),
            "enabled": is_rule_on(code, (config,), default=default),
            "tool": tool,
            "summary": summary,
        }
        for code, severity, default, tool, summary in rows
    ]


def unreported_reasons(
    settings: Mapping[str, JsonValue],
    queries: Sequence[tuple[bytes, bytes, Mapping[str, bytes], Sequence[tuple[int, str, str, str]], bool]],
) -> list[list[UnreportedCause]] | None:
    """Return the reason why lint does not report each finding (unreported.py), or None if the settings are invalid.

    Each query has the path, content, contexts and findings of a file. A finding is (line, tool, code, message). The
    last member of a query is whether the file may have suppression comments or syntax errors.
    """
    codes = {code for *_, wanted, _ in queries for _, _, code, _ in wanted}
    try:
        config = msgspec.convert(dict(settings), LintSettings)
        # Only the needed rules are compiled, because compilation is slow.
        wanted_rules = tuple(rule for rule in config.rules if rule.id in codes)
        rules = {rule.code: rule for rule in non_ruff_rules(msgspec.structs.replace(config, rules=wanted_rules))}
    except (msgspec.ValidationError, ValueError):
        return None
    files = [
        UnreportedQuery(
            SourceFile(path, content, executable=False, contexts=contexts),
            [UnreportedFinding(*finding) for finding in wanted],
            is_marked,
        )
        for path, content, contexts, wanted, is_marked in queries
    ]
    return list(unreported_reason(config, rules, files))


def rule_summaries() -> dict[str, str]:
    """Return the summary of each ruff rule, by code, from the installed ruff."""
    return ruff_summaries()


def explain_rule(settings: Mapping[str, JsonValue], code: str) -> dict[str, JsonValue]:
    """Return the explanation of a rule: an example, the reason for its severity, and texts of its tool.

    `code` is the code of a rule in `list_rules`.
    """
    config = msgspec.convert(dict(settings), LintConfig)
    default = {**SEVERITY_BY_CODE, **{rule.code: rule.severity for rule in non_ruff_rules(config)}}[code]
    judged = review_verdicts(code)
    explained = (
        explain_ruff(code) if code in SEVERITY_BY_CODE else ExplainedRule(example=_example_of_rule(config, code))
    )
    why = explain_severity(judged, is_configured=rule_severity(code, (config,), default) != default)
    known_fields = {
        name: value for name, value in msgspec.structs.asdict(explained).items() if name != "summary" or value
    }
    return {**known_fields, "judgements": dict(judged), "severity_reason": why}


def _example_of_rule(config: LintConfig, code: str) -> str:
    """Return the example of a built-in rule or of a custom rule."""
    user_rule = next((rule for rule in config.rules if rule.id == code), None)
    if user_rule is None:
        return EXAMPLE_BY_CODE.get(code, "")
    return user_rule.bad[0].rstrip("\n") if user_rule.bad else ""


def example_rule(settings: Mapping[str, JsonValue], rule_id: str, language: str) -> dict[str, JsonValue]:
    """Return a template for a custom rule. Its ID is `rule_id`.

    Raises InvalidInput if the ID is invalid or already used, or if the language is invalid.
    """
    if not RULE_ID.match(rule_id):
        hint = "use lower-case letters and digits joined by `-`, for example no-print"
        raise InvalidInput(f"{rule_id!r} is not a valid rule ID", hint=hint)
    if any(rule["code"] == rule_id for rule in list_rules(settings)):
        raise InvalidInput(f"a rule {rule_id!r} already exists", hint=f"see: codebatch rules show {rule_id}")
    name = resolve_language(language)
    try:
        check_language(name)
    except PatternError as error:
        raise InvalidInput(str(error), hint=error.hint) from error
    example = LanguagePatterns.of(name).example
    assert example is not None
    search = {"pattern": example.pattern} if example.pattern else {"query": example.query}
    texts = {"message": example.message, "severity": "warning"}
    return {"id": rule_id, "language": name, **search, **texts, "bad": [example.bad], "good": [example.good]}


def path_languages(paths: Iterable[bytes]) -> Iterator[str]:
    """Yield the language of each path, if its extension or name is that of a programming language with a grammar."""
    for path in paths:
        language = path_language(path)
        if language is not None and not LanguageSyntax.of(language).is_declarative and has_grammar(language):
            yield language


def rule_trials(settings: Mapping[str, JsonValue], files: Sequence[tuple[bytes, bytes]]) -> RuleTrials:
    """Return the trials of custom rules on files, given as (path, content), and on the examples of the rules."""
    return RuleTrials(settings, files)
