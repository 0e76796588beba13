"""Tests of findings by rule through the Python API, and of the headline of a batch."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.record import File, FileClass, Record
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import Store
from codebatch.operations.queries.findings import FINDINGS_PER_FILE_FEW, group_by_rule
from codebatch.operations.runs.headline import make_headline
from codebatch.query.secondary_files import SecondaryFiles
from tests.index.batches import Said, diagnostic, make_saying, make_store

CLASSES: tuple[FileClass, ...] = ("text", "test", "text", "vendored", "text", "text")


def at_item(item: int, record: Record) -> Record:
    return msgspec.structs.replace(record, path=f"{item:03d}")


RECORDS: Said = {
    "parse": [
        [
            File(
                path=f"{item:03d}", lang="python", encoding="utf-8", lines=1, class_=CLASSES[item],
                parse="partial" if item == 4 else "ok",
            )
        ]
        for item in range(len(CLASSES))
    ],
    "lint": [
        [at_item(0, diagnostic("OFTEN", "warning")), at_item(0, diagnostic("HINT", "hint"))],
        [at_item(1, diagnostic("IN_TEST", "error")), at_item(1, diagnostic("OFTEN", "warning"))],
        [at_item(2, diagnostic("OFTEN", "warning")), at_item(2, diagnostic("ONCE", "warning"))],
        [at_item(3, diagnostic("ONCE", "info"))],
        [at_item(4, diagnostic("GRAVE", "error")), at_item(4, diagnostic("GRAVE", "error"))],
        [],
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    store = make_store(tmp_path_factory.mktemp("said"))
    make_saying(store, len(CLASSES), RECORDS)
    return Store(store, pytest.fail).batch()


def rule_summaries(batch: Batch, **filters: object) -> list[tuple[str, str, int, int]]:
    rules = batch.findings(**filters).result.rules  # type: ignore[arg-type]
    return [(rule.severity, rule.code, rule.count, rule.non_production) for rule in rules]


def test_files_with_few_findings_of_a_rule_come_first() -> None:
    """Many findings in one file probably have one cause. Findings in non-production files come last in any case."""
    places = [
        ("a", FINDINGS_PER_FILE_FEW + 1),
        ("b", FINDINGS_PER_FILE_FEW),
        ("c", 1),
        ("d", FINDINGS_PER_FILE_FEW + 1),
        ("e", 1),
    ]
    records = [
        msgspec.to_builtins(msgspec.structs.replace(diagnostic("ONE", "warning"), path=path))
        for path, count in places
        for _ in range(count)
    ]
    (rule,) = group_by_rule(records, SecondaryFiles({b"c": "test"}))
    assert list(dict.fromkeys(finding["path"] for finding in rule.findings)) == ["b", "e", "a", "d", "c"]


def test_rules_are_ordered_by_severity_then_non_test_then_rarity(batch: Batch) -> None:
    assert rule_summaries(batch) == [
        ("error", "GRAVE", 2, 0),
        ("error", "IN_TEST", 1, 1),
        ("warning", "ONCE", 1, 0),
        ("warning", "OFTEN", 3, 1),
        ("info", "ONCE", 1, 1),
    ]
    often = batch.findings(code="OFTEN").result.rules[0]
    assert [record["path"] for record in often.findings] == ["000", "002", "001"]
    assert (often.files, batch.findings().result.count, batch.findings().result.hints_hidden) == (3, 8, 1)


def test_findings_use_filters_of_diagnostics_and_named_severity_hides_none(batch: Batch) -> None:
    assert rule_summaries(batch, severity="hint") == [("hint", "HINT", 1, 0)]
    assert batch.findings(severity=("hint", "info")).result.hints_hidden == 0
    assert rule_summaries(batch, path="001") == [("error", "IN_TEST", 1, 1), ("warning", "OFTEN", 1, 1)]
    assert batch.findings(path="001").result.hints_hidden == 0
    with pytest.raises(InvalidInput):
        batch.findings(severity="bad")  # type: ignore[arg-type]


def test_headline_has_the_first_rules_of_each_severity_with_counts(batch: Batch) -> None:
    headline = make_headline(batch.question)
    assert [rule.code for rule in headline.findings] == ["GRAVE", "IN_TEST", "ONCE", "OFTEN"]
    assert (headline.findings_count, headline.minor_findings, headline.partially_parsed) == (
        7,
        {"info": 1, "hint": 1},
        1,
    )
    assert (headline.hotspots, headline.duplicates, headline.cycles) == ((), (), ())


def test_files_are_filtered_by_parse_state_and_file_class(batch: Batch) -> None:
    assert [entry.path for entry, _ in batch.entries(parse="partial").result] == [b"004"]
    assert [entry.path for entry, _ in batch.entries(file_class=("test", "vendored")).result] == [b"001", b"003"]
    assert [entry.path for entry, _ in batch.entries(1, file_class="text", parse="ok").result] == [b"000"]
    for wrong in ({"parse": "bad"}, {"file_class": "bad"}):
        with pytest.raises(InvalidInput):
            batch.entries(**wrong)  # type: ignore[arg-type]


def test_invalid_diagnostic_record_is_damage(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    bad = msgspec.structs.replace(diagnostic("E"), line="x")
    make_saying(store, 1, {"lint": [[at_item(0, bad)]]})
    with pytest.raises(StoreCorrupt, match="not a valid diagnostic"):
        Store(store, pytest.fail).batch().findings()
