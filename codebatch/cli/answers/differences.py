"""Differences of findings between two batches, as JSON and as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from codebatch.cli.output.records import record_line, record_location, record_text
from codebatch.compare.differences import Change, ComparedRecord
from codebatch.compare.states import ChangeState
from codebatch.model.record import BaseRecord, Diagnostic, Metric
from codebatch.operations.comparison.comparison import Comparison
from codebatch.query.fields import JsonRecord, record_path

STATES_SHOWN: tuple[ChangeState, ...] = (
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
"""States whose changes are listed, in display order."""
STATES_COUNTED: tuple[ChangeState, ...] = ("moved", "unchanged", "suppressed", "not_comparable")
"""States whose changes are only counted, not listed."""

_REASON_TEXTS = {
    "not_checked": "not checked in the other batch",
    "configuration": "in the other batch the rule is off, or the tool has another version or configuration",
    "suppressed": "suppressed by a comment in the other batch",
    "unknown": "the other batch may have it without reporting it",
}


class ChangedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that both batches have, in the older and in the newer batch.

    `by` describes how a finding in one batch was matched with a finding in the other batch. It is null for other
    records.
    """

    state: ChangeState
    old: JsonRecord
    new: JsonRecord
    by: str | None


class DifferenceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of changes. `states` has the number of changes in each state. The other members are the totals that
    CodeBatch 1 printed.
    """

    added_count: int
    removed_count: int
    changed_count: int
    total_changes: int
    states: dict[ChangeState, int]


class ComparedBatches(msgspec.Struct, frozen=True, kw_only=True):
    """The base of answers of comparisons: the two compared batches. A snapshot may take the place of a batch.

    `complete` and `percent` describe the less complete batch. `project` and `stale` belong to the newer batch.
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
    - `unchanged`: empty unless this state was requested.
    """

    added: tuple[JsonRecord, ...]
    removed: tuple[JsonRecord, ...]
    changed: tuple[ChangedRecord, ...]
    moved: tuple[ChangedRecord, ...]
    suppressed: tuple[JsonRecord, ...]
    not_comparable: tuple[JsonRecord, ...]
    unchanged: tuple[JsonRecord, ...]
    summary: DifferenceSummary


class RegressionsAnswer(ComparedBatches, frozen=True, kw_only=True):
    """The answer of `codebatch regressions`: records in the states `new`, `severity_raised` and `worsened`.

    Rows are records of the newer batch. `old` is the record of the older batch, if it exists.
    """

    regressions: tuple[JsonRecord, ...]
    count: int
    states: dict[ChangeState, int]


class ImprovementsAnswer(ComparedBatches, frozen=True, kw_only=True):
    """The answer of `codebatch improvements`: records in the states `fixed`, `severity_lowered` and `improved`.

    Rows are records of the older batch. `new` is the record of the newer batch, if it exists.
    """

    improvements: tuple[JsonRecord, ...]
    count: int
    states: dict[ChangeState, int]


def state_text(state: ChangeState) -> str:
    """Return a state as words: `severity_raised` becomes `severity raised`."""
    return state.replace("_", " ")


def change_row(change: Change, *, is_old: bool = False) -> JsonRecord:
    """Return a change as one record: the newer record or, if `is_old` is set, the older record.

    If the change has only one record, this record is returned. The member `old` or `new` is added, with the record of
    the other batch if there is one.
    """
    first, second, name = (change.old, change.new, "new") if is_old else (change.new, change.old, "old")
    if first is None:
        first, second = second, None
    assert first is not None, "it is in one of the two"
    row: JsonRecord = {**_json_record(first), "state": change.state}
    if second is not None:
        row[name] = _json_record(second)
    if change.reason is not None:
        row["reason"] = change.reason
    return row


def changed_record(change: Change) -> ChangedRecord:
    """Return a change of a record that both batches have, with both records."""
    assert change.old is not None
    assert change.new is not None
    return ChangedRecord(state=change.state, old=_json_record(change.old), new=_json_record(change.new), by=change.by)


def change_lines(
    changes: Sequence[Change], states: Iterable[ChangeState], totals: Mapping[ChangeState, int], *, with_pass: bool
) -> Iterator[str]:
    """Yield the lines of changes, grouped by state. `totals` has the number of changes in each state.

    With `with_pass`, each line names the pass of matching (by line, text, message, …) that matched the records.
    """
    for state in states:
        changes_in_state = [change for change in changes if change.state == state]
        if changes_in_state:
            yield f"{state_text(state)}, {totals[state]:,}"
        for change in changes_in_state:
            yield f"  {change_line(change)}" + (f" [matched by {change.by}]" if with_pass and change.by else "")


def change_line(change: Change) -> str:
    """Return a change as one line in the format of editors. The former value or the reason is in brackets."""
    return record_line(_json_record(change.record)) + _change_remark(change)


def change_text(change: Change) -> str:
    """Return the line of a change without its location."""
    return record_text(_json_record(change.record)) + _change_remark(change)


def _change_remark(change: Change) -> str:
    remark = _old_value(change.old, change.new) if change.old is not None and change.new is not None else ""
    remark = remark or _REASON_TEXTS.get(change.reason or "", "")
    return f" ({remark})" if remark else ""


def counts_line(comparison: Comparison, states: Iterable[ChangeState]) -> str:
    """Return the number of changes in each state as text.

    The text includes the reasons why findings are not comparable.
    """
    counts = comparison.counts
    parts = [f"{counts[state]:,} {state_text(state)}" for state in states if counts[state]]
    not_comparable = comparison.differences({"not_comparable"}) if counts["not_comparable"] else ()
    reasons = Counter(change.reason for change in not_comparable)
    why = "; ".join(
        f"{_REASON_TEXTS.get(str(reason), reason)} ({number:,})" for reason, number in reasons.most_common()
    )
    return ", ".join(parts or ["nothing found in either batch"]) + (f": {why}" if why else "")


def _old_value(old: ComparedRecord, new: ComparedRecord) -> str:
    """Return a text about the first difference between two records: severity, message, value or location.

    If the file is the same, its path is not repeated.
    """
    if isinstance(old, Diagnostic) and isinstance(new, Diagnostic):
        if old.severity != new.severity:
            return f"was {old.severity}"
        if old.message != new.message:
            return f"was: {old.message}"
    rows = _json_record(old), _json_record(new)
    places, texts = tuple(map(record_location, rows)), tuple(map(record_text, rows))
    text = "" if texts[0] == texts[1] else str(old.value) if isinstance(old, Metric) else texts[0]
    if old.path_bytes != new.path_bytes:
        return f"was {text} in {places[0]}" if text else f"was {places[0]}"
    place = places[0].removeprefix(record_path(rows[0])).removeprefix(":")
    return f"was {text}" if text else f"was line {place}" if places[0] != places[1] else ""


def _json_record(record: BaseRecord) -> JsonRecord:
    return msgspec.convert(msgspec.to_builtins(record), JsonRecord)
