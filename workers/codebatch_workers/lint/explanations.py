"""Explanations of rules: an example, the documentation page of the rule, and reviews of its findings.

Explanations of ruff's rules are read from the installed ruff when they are needed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from importlib.resources import files

import msgspec
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.model.text.quantities import count_text

_RUFF_RULES_URL = "https://docs.astral.sh/ruff/rules"
_SECTION_HEADING = re.compile(r"^## (.+)\n", re.MULTILINE)
_SENTENCE_END = re.compile(r"\.(?=\s|\Z)")
_CHECKS_FOR = re.compile(r"\AChecks? for ")
_VERDICTS_FILE = "judged.json"


class ExplainedRule(msgspec.Struct, frozen=True, kw_only=True):
    """An explanation of a rule: its name, a summary, an example, and the explanation and web page that its tool has."""

    name: str = ""
    summary: str = ""
    example: str = ""
    explanation: str = ""
    url: str = ""


class _RuffRule(msgspec.Struct, frozen=True):
    """A rule in the output of `ruff rule`. Rules that exist only in preview may have no code."""

    name: str
    code: str | None = None
    explanation: str | None = None


_decode_rules = msgspec.json.Decoder(list[_RuffRule]).decode
_decode_verdicts = msgspec.json.Decoder(dict[str, dict[str, int]]).decode


def ruff_summaries() -> dict[str, str]:
    """Return a summary of each rule of the installed ruff, by code."""
    rules = _decode_rules(_run_ruff_rule("--all"))
    return {rule.code: _summary_sentence(_explanation_sections(rule.explanation or "")) for rule in rules if rule.code}


def explain_ruff(code: str) -> ExplainedRule:
    """Return the explanation of a rule of ruff."""
    rule = msgspec.json.decode(_run_ruff_rule(code), type=_RuffRule)
    explanation = rule.explanation or ""
    sections = _explanation_sections(explanation)
    return ExplainedRule(
        name=rule.name,
        summary=_summary_sentence(sections),
        example=sections.get("Example", sections.get("Examples", "")),
        explanation=explanation,
        url=f"{_RUFF_RULES_URL}/{rule.name}/",
    )


def review_verdicts(code: str) -> Mapping[str, int]:
    """Return the number of reviewed findings of a rule by verdict. If none was reviewed, the mapping is empty."""
    return _decode_verdicts(files("codebatch_workers.lint").joinpath(_VERDICTS_FILE).read_bytes()).get(code, {})


def explain_severity(judged: Mapping[str, int], *, is_configured: bool) -> str:
    """Return the reason for the severity of a rule, as text for users. `judged` has the result of `review_verdicts`."""
    if is_configured:
        return "severity set in your configuration"
    if not judged:
        return "chosen by the kind of problem; no finding of this rule has been reviewed yet"
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(judged.items(), key=lambda pair: -pair[1]))
    return f"review of {count_text(sum(judged.values()), 'finding')} in open-source projects: {verdicts}"


def _run_ruff_rule(rule: str) -> bytes:
    return subprocess.run(
        [find_ruff_bin(), "rule", rule, "--output-format", "json"],
        env={"LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    ).stdout


def _explanation_sections(explanation: str) -> Mapping[str, str]:
    """Return the text of each section of an explanation, by title."""
    _, *parts = _SECTION_HEADING.split(explanation)
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _summary_sentence(sections: Mapping[str, str]) -> str:
    """Return the first sentence of the section "What it does"."""
    text = " ".join(sections.get("What it does", "").split("\n\n")[0].split())
    text = _CHECKS_FOR.sub("", text)
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text
