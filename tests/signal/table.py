"""The table of judged findings with their verdicts, and the severities that follow for their rules (README.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from codebatch.model.record import Severity
from tests.signal.sampling import JUDGED_MIN

HERE = Path(__file__).parent
SHIPPED = HERE.parent.parent / "workers" / "codebatch_workers" / "lint" / "judged.json"
Verdict = Literal["fix", "style", "deliberate", "test-data", "own-limit", "wrong"]


class Tree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tree of the sample. Its store is in `directory`.

    `turn` is the step in which the tree was chosen, from 1. A tree is used only for rules that have too few findings in
    earlier turns.
    """

    tree: str
    version: str
    source: str = msgspec.field(name="from")
    languages: str
    directory: str
    turn: int


class JudgedFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding with the verdict of a reader of its source."""

    tree: str
    version: str
    path: str
    line: int
    code: str
    verdict: Verdict
    why: str


class RoundFinding(JudgedFinding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding among the first ten of a tree that nothing was tuned on."""

    round: int


def trees() -> list[Tree]:
    """Return the trees that findings were drawn from."""
    return msgspec.json.decode((HERE / "trees.json").read_bytes(), type=list[Tree])


def judged() -> list[JudgedFinding]:
    """Return every row of the table in order."""
    decoder = msgspec.json.Decoder(JudgedFinding)
    return [decoder.decode(line) for line in (HERE / "judged.jsonl").read_bytes().splitlines()]


def rounds() -> list[RoundFinding]:
    """Return the first findings of the trees of rounds 7 and later, in the order of the reports."""
    decoder = msgspec.json.Decoder(RoundFinding)
    return [decoder.decode(line) for line in (HERE / "rounds.jsonl").read_bytes().splitlines()]


def counted() -> Mapping[str, Counter[Verdict]]:
    """Return by rule the number of findings with each verdict."""
    counts: dict[str, Counter[Verdict]] = defaultdict(Counter)
    for row in judged():
        counts[row.code][row.verdict] += 1
    return counts


def gravest(counts: Counter[Verdict]) -> Severity:
    """Return the highest severity that a rule with these verdicts may have."""
    total = counts.total()
    if total < JUDGED_MIN:
        return "error"
    if 2 * (counts["wrong"] + counts["deliberate"] + counts["own-limit"]) > total:
        return "hint"
    of_code = total - counts["test-data"]
    if not of_code:
        return "warning"
    if 2 * counts["fix"] >= of_code:
        return "error"
    return "info" if 4 * counts["fix"] >= of_code else "hint"


def shipped() -> bytes:
    """Return the part of the table that the package contains: the counts by rule."""
    counts = {code: {name: each[name] for name in get_args(Verdict) if each[name]} for code, each in counted().items()}
    return msgspec.json.format(msgspec.json.encode(counts, order="sorted"), indent=1) + b"\n"
