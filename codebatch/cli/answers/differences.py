"""What became of findings, as JSON and as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from codebatch.cli.output.records import record_line
from codebatch.compare.differences import Change, Thing
from codebatch.compare.states import State
from codebatch.model.record import Diagnostic, Located
from codebatch.operations.comparison.comparison import Comparison
from codebatch.query.fields import JsonRecord

SHOWN: tuple[State, ...] = (
    "new",
    "severity_raised",
    "worsened",
    "changed",
    "improved",
    "severity_lowered",
    "fixed",
    "added",
    "removed",
)
"""States whose rows people are shown, in that order."""
COUNTED: tuple[State, ...] = ("moved", "unchanged", "suppressed", "not_comparable")
"""States that are only counted."""

_REASONS = {
    "path": "outside the paths of the other batch",
    "excluded": "the file is excluded from the other batch",
    "lost": "the file may have moved: its content is missing",
    "task": "the other batch did not run this task",
    "failed": "in the other batch the task failed or has not reached this file",
    "rule_off": "the rule is off in the other batch",
    "suppressed": "suppressed by a comment in the other batch",
    "skipped": "in the other batch few rules check this kind of file",
    "partially_parsed": "in the other batch syntax errors keep most rules from checking the file",
    "withheld": "in the other batch, other code in the file keeps the rule from reporting it",
    "tool": "checked by another version of the tool",
    "configuration": "checked with another configuration; the line did not change",
}


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A record that both batches have, in the older and in the newer batch.

    `by` is the rule that matched a finding of both batches; it is null for other records.
    """

    state: State
    old: JsonRecord
    new: JsonRecord
    by: str | None


class DifferenceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of changes: the totals of CodeBatch 1, and `states` with the number for each state."""

    added_count: int
    removed_count: int
    changed_count: int
    total_changes: int
    states: dict[State, int]


class ComparedBatches(msgspec.Struct, frozen=True, kw_only=True):
    """Which batches were compared, or a snapshot in the place of one; of the less complete how much there is of what is
    compared. `project` is that of the newer, whose tree is `stale` if it has changed since.
    """

    old_batch_id: str
    new_batch_id: str
    project: str
    complete: bool
    percent: float
    stale: bool | None


class DiffAnswer(ComparedBatches, frozen=True, kw_only=True):
    """The answer of `codebatch diff`. Rows are records with their `state`.

    - `added`: records in the states `new` and `added`.
    - `removed`: records in the states `fixed` and `removed`.
    - `changed`, `moved`: records that both batches have.
    - `suppressed`, `not_comparable`: records with a `reason` for this state.
    """

    added: tuple[JsonRecord, ...]
    removed: tuple[JsonRecord, ...]
    changed: tuple[Changed, ...]
    moved: tuple[Changed, ...]
    suppressed: tuple[JsonRecord, ...]
    not_comparable: tuple[JsonRecord, ...]
    summary: DifferenceSummary


class RegressionsAnswer(ComparedBatches, frozen=True, kw_only=True):
    """The answer of `codebatch regressions`: records in the states `new`, `severity_raised` and `worsened`.

    Rows are records of the newer batch. `old` is the record of the older batch, if it exists.
    """

    regressions: tuple[JsonRecord, ...]
    count: int
    states: dict[State, int]


class ImprovementsAnswer(ComparedBatches, frozen=True, kw_only=True):
    """The answer of `codebatch improvements`: records in the states `fixed`, `severity_lowered` and `improved`.

    Rows are records of the older batch. `new` is the record of the newer batch, if it exists.
    """

    improvements: tuple[JsonRecord, ...]
    count: int
    states: dict[State, int]


def word_of(state: State) -> str:
    """Return a state as people read it."""
    return state.replace("_", " ")


def row_of(each: Change, *, is_old: bool = False) -> JsonRecord:
    """A difference as one record: as it is, or where it is gone, or `is_old`, as it was. The other one is in it."""
    first, second, name = (each.old, each.new, "new") if is_old else (each.new, each.old, "old")
    if first is None:
        first, second = second, None
    assert first is not None, "it is in one of the two"
    row: JsonRecord = {**_json(first), "state": each.state}
    if second is not None:
        row[name] = _json(second)
    if each.reason is not None:
        row["reason"] = each.reason
    return row


def pair_of(each: Change) -> Changed:
    """A difference of what is in both."""
    assert each.old is not None
    assert each.new is not None
    return Changed(state=each.state, old=_json(each.old), new=_json(each.new), by=each.by)


def difference_lines(found: Sequence[Change], states: Iterable[State], *, with_pass: bool) -> Iterator[str]:
    """Differences for people, state by state; `with_pass` each with what paired it."""
    for state in states:
        of_state = [each for each in found if each.state == state]
        if of_state:
            yield f"{word_of(state)}, {len(of_state):,}"
        for each in of_state:
            yield f"  {difference_line(each)}" + (f" [matched by {each.by}]" if with_pass and each.by else "")


def difference_line(each: Change) -> str:
    """A difference on one line, as editors take it: the record as it is, and in brackets what it was, or why."""
    record = each.new or each.old
    assert record is not None, "it is in one of the two"
    told = _was(each.old, each.new) if each.old is not None and each.new is not None else ""
    told = told or _REASONS.get(each.reason or "", "")
    return f"{record_line(_json(record))}{f' ({told})' if told else ''}"


def counts_line(comparison: Comparison, states: Iterable[State]) -> str:
    """How many there are of each state, and why some cannot be compared."""
    counts = comparison.counts
    told = [f"{counts[state]:,} {word_of(state)}" for state in states if counts[state]]
    apart = comparison.differences({"not_comparable"}) if counts["not_comparable"] else ()
    reasons = Counter(each.reason for each in apart)
    why = "; ".join(f"{_REASONS.get(str(reason), reason)} ({number:,})" for reason, number in reasons.most_common())
    return ", ".join(told or ["nothing found in either batch"]) + (f": {why}" if why else "")


def _was(old: Thing, new: Thing) -> str:
    """What is another thing than it was: the gravity, the message, the place."""
    if isinstance(old, Diagnostic) and isinstance(new, Diagnostic):
        if old.severity != new.severity:
            return f"was {old.severity}"
        if old.message != new.message:
            return f"was: {old.message}"
        if old.path_bytes != new.path_bytes or old.line != new.line:
            return f"was {record_line(_json(old)).partition(': ')[0]}"
        return ""
    return f"was {record_line(_json(old))}"


def _json(record: Located) -> JsonRecord:
    return msgspec.convert(msgspec.to_builtins(record), JsonRecord)
