"""What is known of a rule besides what it does: an example, its tool's page, what was judged of its findings.

Of ruff's rules all of it is asked of the ruff that is used, when somebody asks.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from importlib.resources import files

import msgspec
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.model.text.quantities import count_of

_PAGES = "https://docs.astral.sh/ruff/rules"
_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_SENTENCE_END = re.compile(r"\.(?=\s|\Z)")
_CHECKS = re.compile(r"\AChecks? for ")
_JUDGED = "judged.json"


class ExplainedRule(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a rule: its `name`, what it finds, an example, and its tool's own words and page."""

    name: str = ""
    summary: str = ""
    example: str = ""
    explanation: str = ""
    url: str = ""


class _RuffRule(msgspec.Struct, frozen=True):
    """A rule as `ruff rule` tells it. One that only a preview has may be without a code."""

    name: str
    code: str | None = None
    explanation: str | None = None


_decode_all = msgspec.json.Decoder(list[_RuffRule]).decode
_decode_judged = msgspec.json.Decoder(dict[str, dict[str, int]]).decode


def summaries_of_ruff() -> dict[str, str]:
    """What each rule of this ruff finds, by code."""
    told = _decode_all(_ask("--all"))
    return {rule.code: _summary(_sections(rule.explanation or "")) for rule in told if rule.code}


def explain_ruff(code: str) -> ExplainedRule:
    """A rule of ruff."""
    rule = msgspec.json.decode(_ask(code), type=_RuffRule)
    explanation = rule.explanation or ""
    sections = _sections(explanation)
    return ExplainedRule(
        name=rule.name,
        summary=_summary(sections),
        example=sections.get("Example", sections.get("Examples", "")),
        explanation=explanation,
        url=f"{_PAGES}/{rule.name}/",
    )


def judged_of(code: str) -> Mapping[str, int]:
    """How many findings of a rule were judged to be what; empty where none were."""
    return _decode_judged(files("codebatch_workers.lint").joinpath(_JUDGED).read_bytes()).get(code, {})


def why_so_grave(judged: Mapping[str, int], *, is_configured: bool) -> str:
    """Why a rule has its severity."""
    if is_configured:
        return "severity set in your configuration"
    if not judged:
        return "chosen by the kind of problem; no finding of this rule has been reviewed yet"
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(judged.items(), key=lambda pair: -pair[1]))
    return f"review of {count_of(sum(judged.values()), 'finding')} in open-source projects: {told}"


def _ask(what: str) -> bytes:
    return subprocess.run(
        [find_ruff_bin(), "rule", what, "--output-format", "json"],
        env={"LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    ).stdout


def _sections(explanation: str) -> Mapping[str, str]:
    """The sections of an explanation by their titles."""
    _, *parts = _SECTION.split(explanation)
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _summary(sections: Mapping[str, str]) -> str:
    """The first sentence of what a rule does."""
    text = " ".join(sections.get("What it does", "").split("\n\n")[0].split())
    text = _CHECKS.sub("", text)
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text
