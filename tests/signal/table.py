"""The table: which findings were judged, how, and what follows for the severity of their rules (README.md)."""

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
    """A tree of the sample, and under what name its store lies among the stores.

    `turn`, from 1: it is asked only for rules of which those of the turns before do not have enough.
    """

    tree: str
    version: str
    source: str = msgspec.field(name="from")
    languages: str
    directory: str
    turn: int


class Judged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding, and what a reader of its source says of it."""

    tree: str
    version: str
    path: str
    line: int
    code: str
    verdict: Verdict
    why: str


class First(Judged, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the first ten findings of a tree that nothing was tuned on."""

    round: int


def trees() -> list[Tree]:
    """The trees that findings were drawn from."""
    return msgspec.json.decode((HERE / "trees.json").read_bytes(), type=list[Tree])


def judged() -> list[Judged]:
    """Every row of the table, in its order."""
    decoder = msgspec.json.Decoder(Judged)
    return [decoder.decode(line) for line in (HERE / "judged.jsonl").read_bytes().splitlines()]


def rounds() -> list[First]:
    """The first findings of the trees of the rounds, from the seventh on, as they were told."""
    decoder = msgspec.json.Decoder(First)
    return [decoder.decode(line) for line in (HERE / "rounds.jsonl").read_bytes().splitlines()]


def counted() -> Mapping[str, Counter[Verdict]]:
    """Of each rule how many findings have which verdict."""
    counts: dict[str, Counter[Verdict]] = defaultdict(Counter)
    for row in judged():
        counts[row.code][row.verdict] += 1
    return counts


def gravest(counts: Counter[Verdict]) -> Severity:
    """The gravest severity that a rule may have whose findings were judged so."""
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
    """What the package knows of the table: the counts, by rule."""
    counts = {code: {name: each[name] for name in get_args(Verdict) if each[name]} for code, each in counted().items()}
    return msgspec.json.format(msgspec.json.encode(counts, order="sorted"), indent=1) + b"\n"
