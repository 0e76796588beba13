"""Each self-test passes on an undamaged store, and fails if a fault is planted that it must detect."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codebatch.errors import InvalidInput, StoreNotFound, StoreUnwritable
from codebatch.index.build import build_generation
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import Listener
from codebatch.selftests.catalogue import (
    BUNDLE_NAMES,
    FAILURES_SHOWN_MAX,
    SELFTEST_GATES,
    find_gate,
    run_bundle,
    run_gate,
)
from codebatch.selftests.checks import CHECKS
from tests.selftests.faults import FAULTS, flip, plant_name, plant_open_batch
from tests.selftests.stored import Stored
from tests.support.command_line import write


def test_all_self_tests_pass_on_an_intact_store(pristine: Stored) -> None:
    bundle = run_bundle("all", pristine.subject(), is_stopping=False)
    assert [(result.gate_id, result.reason) for result in bundle.results if not result.passed] == []
    assert (bundle.passed, bundle.total, bundle.failed_count) == (True, len(SELFTEST_GATES), 0)
    looked = {result.gate_id: result.details for result in bundle.results}
    assert looked["store-schema"] == {"batches": 1, "result files": 7, "snapshots": 1, "stores": 1}
    assert looked["plan-covered"] == {"files": 4, "results": 22}
    assert looked["outputs-match"]["shard files"] == 7


@pytest.mark.parametrize(("name", "plant"), FAULTS)
def test_planted_fault_fails_its_self_test(stored: Stored, name: str, plant: Callable[[Stored], str]) -> None:
    message = plant(stored)
    subject = stored.subject()
    subject.check_reference()
    result = run_gate(find_gate(name), subject)
    assert (result.outcome, result.passed) == ("failed", False)
    assert any(message in f"{failure.message} {failure.location}" for failure in result.failures), result.failures


def test_nondeterministic_result_fails_resume_equals(stored: Stored) -> None:
    mood = Path((stored.root / "tree" / "tools" / "own.py").read_text().split("'")[1])
    try:
        mood.write_text("quite another")
        result = stored.gate("resume-equals")
        mood.write_text("bad")
        failed = stored.gate("resume-equals")
    finally:
        mood.write_text("fine")
    assert [failure.message for failure in failed.failures] == ["1 result could not be produced again"]
    assert [failure.message[:30] for failure in result.failures] == ["moody gives a different result"]
    assert result.failures[0].expected != result.failures[0].actual


def test_program_that_cannot_be_loaded_fails_api_complete(pristine: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "codebatch.cli.run.status", None)
    (failure,) = pristine.gate("api-complete").failures
    assert failure.message.startswith("a command cannot be loaded: ")


def test_invalid_pipeline_of_the_configuration_fails_api_complete(stored: Stored) -> None:
    (stored.root / "tree" / "codebatch.toml").write_text("[pipelines.ci]\ntasks = ['lnt']\n")
    (failure,) = stored.gate("api-complete").failures
    assert failure.message.endswith("codebatch.toml:1: pipeline 'ci': unknown task 'lnt'")


def test_self_test_that_writes_is_skipped_in_a_read_only_store(
    pristine: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreUnwritable("read-only", hint="free some")

    monkeypatch.setattr("codebatch.selftests.checks.verify_batch", refuse)
    result = pristine.gate("resume-equals")
    assert (result.outcome, result.reason) == ("skipped", "read-only; free some")


def test_bundle_with_only_skipped_self_tests_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "tree" / "codebatch.toml", "jobs = 0\n")
    subject = Stored(tmp_path).subject()
    subject.place = StoreLocator()
    bundle = run_bundle("all", subject, is_stopping=False)
    assert (bundle.skipped_count, bundle.passed) == (bundle.total, False)


def test_missing_subjects_are_skipped_and_a_missing_store_is_an_error(tmp_path: Path) -> None:
    empty = Stored(tmp_path)
    with pytest.raises(StoreNotFound):
        empty.subject().check_reference()
    StoreLocator(empty.store).open_or_create_store()
    subject = empty.subject()
    subject.check_reference()
    results = {result.gate_id: result for result in run_bundle("all", subject, is_stopping=False).results}
    passed = {gate_id for gate_id, result in results.items() if result.passed}
    assert passed == {"store-schema", "no-foreign-files", "api-complete"}
    assert "no analysis of project" in results["plan-covered"].reason
    with pytest.raises(InvalidInput):
        empty.subject("batch-20200101").check_reference()


def test_unreadable_batch_is_noted_once_and_fails(stored: Stored) -> None:
    flip(stored.one("batches/*/batch.json"))
    notes: list[str] = []

    class Notes(Listener):
        def note(self, text: str) -> None:
            notes.append(text)

    subject = stored.subject()
    subject.listener = Notes()
    subject.check_reference()
    results = {result.gate_id: result for result in run_bundle("all", subject, is_stopping=False).results}
    assert len(notes) == 1
    failed = {gate_id for gate_id, result in results.items() if result.outcome == "failed"}
    of_batch = {gate.gate_id for gate in SELFTEST_GATES if gate.needs == "batch"}
    assert failed == {"store-schema", *of_batch}
    assert results["plan-covered"].context.batch_id is None


def test_index_build_that_writes_elsewhere_fails_its_self_test(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    def untidy(*arguments: Any, **named: Any) -> object:
        (stored.store / "pins" / "latest").touch()
        return build_generation(*arguments, **named)

    monkeypatch.setattr("codebatch.selftests.checks.build_generation", untidy)
    result = stored.gate("index-writes-only-indexes")
    assert [failure.location for failure in result.failures] == ["pins", "pins/latest"]


def test_index_self_tests_are_skipped_without_index_or_write_lock(stored: Stored) -> None:
    shutil.rmtree(stored.store / "indexes")
    for name in ("index-equals-scan", "index-rebuilt"):
        result = stored.gate(name)
        assert (result.outcome, "codebatch index build --batch" in result.reason) == ("skipped", True)
    (stored.store / "indexes").mkdir()
    with StoreLocator(stored.store).open().writing():
        assert "another process is writing" in stored.gate("A4").reason
    assert stored.gate("A4").passed
    assert stored.gate("A1").passed


def test_self_tests_of_outputs_are_skipped_in_an_open_batch(stored: Stored) -> None:
    plant_open_batch(stored)
    for name in ("outputs-match", "resume-equals", "index-writes-only-indexes"):
        result = stored.gate(name)
        assert (result.outcome, result.passed) == ("skipped", False)
        assert "codebatch resume --batch" in result.reason


def test_stopping_bundle_ends_at_the_first_failure(stored: Stored) -> None:
    plant_name(stored)
    bundle = run_bundle("release", stored.subject(), is_stopping=True)
    assert [result.gate_id for result in bundle.results] == ["store-schema", "no-foreign-files"]
    assert (bundle.passed, bundle.total, bundle.failed_count) == (False, 2, 1)


def test_failures_beyond_the_limit_are_counted_but_not_listed(stored: Stored) -> None:
    for number in range(FAILURES_SHOWN_MAX + 5):
        write(stored.store / f"stray{number}", "")
    result = stored.gate("P2-G6")
    assert (result.failures_count, len(result.failures)) == (FAILURES_SHOWN_MAX + 5, FAILURES_SHOWN_MAX)


def test_every_file_of_the_store_layout_passes_no_foreign_files(stored: Stored) -> None:
    holder, digest = "0" * 32, "0" * 64
    batch = stored.one("batches/*").relative_to(stored.store)
    for name in (
        "untrusted.json",
        ".store.json.made.tmp",
        f"objects/{digest}.bad",
        f"objects/{holder}.part",
        "snapshots/.made.tmp/anything",
        "cache/stat-0123456789abcdef.stamp",
        "cache/stat.stamp",
        "cache/objects-collected",
        f"indexes/terms/{digest}",
        f"indexes/terms/.{digest}.made.tmp",
        "indexes/.made.tmp/anything",
        f"indexes/{batch.name}/12/index.json",
        f"indexes/{batch.name}/12/base-000000.lmdb.zst",
        f"indexes/{batch.name}/12/overlay-000000.lmdb.zst",
        "locks/untrusted",
        "pins/snap-0123456789abcdef",
        f"pins/{batch.name}",
        f"pins/{batch.name}@before",
        f"{batch}/settled.json",
        f"{batch}/holders/{holder}.cell",
        f"{batch}/holders/.{holder}.tmp",
        f"{batch}/leases/0123abcd.12.3",
        f"{batch}/results/{digest}.shard",
        f"{batch}/outcomes/project-duplicates.0.duplicates.r2",
        f"{batch}/outputs/{digest}/own-task/000012-project-own-task.jsonl.zst",
        f"{batch}/scratch/{holder}/any/thing",
    ):
        write(stored.store / name, "")
    assert stored.gate("no-foreign-files").failures == ()
    foreign = (
        f"{batch}/scratch/thing",
        f"{batch}/outcomes/0123abcd.0.parse.r0",
        f"{batch}/outcomes/0123abcd.{chr(0x661)}.parse.r1",  # A digit to Python, but not in ASCII.
        f"{batch}/outputs/{digest[1:]}/x",
        "indexes/terms/thing",
        f"indexes/{batch.name}/0/index.json",
        f"indexes/{batch.name}/12/index",
    )
    for name in foreign:
        write(stored.store / name, "")
    assert len(stored.gate("no-foreign-files").failures) == len(foreign)


def test_every_name_and_alias_resolves_to_one_self_test() -> None:
    names = [name for gate in SELFTEST_GATES for name in (gate.gate_id, *gate.aliases)]
    assert len(names) == len(set(names))
    assert not {*names} & {*BUNDLE_NAMES}
    assert {find_gate(name).gate_id for name in names} == {gate.gate_id for gate in SELFTEST_GATES}
    assert [gate.gate_id for gate in SELFTEST_GATES] == list(CHECKS)
    with pytest.raises(InvalidInput, match="no such self-test"):
        find_gate("P9-G9")
