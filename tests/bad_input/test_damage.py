"""A store whose bytes were cut, flipped or deleted: damage is reported, never returned, and no other data is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from codebatch.model.outcome import TaskOutcome, decode_commit, encode_commit
from tests.support.command_line import CommandLine, copy_project, make_project, write


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedProject:
    """A project and its store with one batch."""

    codebatch: CommandLine
    store: Path
    batch_id: str
    digest: str

    @property
    def batch(self) -> Path:
        return self.store / "batches" / self.batch_id

    def one(self, pattern: str) -> Path:
        """Return the first file of the store that matches a pattern."""
        return min(self.store.glob(pattern))

    @property
    def snapshot_id(self) -> str:
        return self.one("snapshots/snap-*").name

    @property
    def snapshot_of_batch(self) -> str:
        """The ID of the batch's snapshot, even if the store has other snapshots."""
        snapshot_id = json.loads((self.batch / "batch.json").read_bytes())["snapshot_id"]
        assert isinstance(snapshot_id, str)
        return snapshot_id

    def largest_segment(self) -> Path:
        """Return the segment of the worker with the most results."""
        return max(self.store.glob("batches/*/results/*.seg"), key=lambda path: path.stat().st_size)

    def unmerge(self) -> None:
        """Remove the merged outputs, as if the coordinator had died before it merged."""
        shutil.rmtree(self.batch / "outputs")
        (self.batch / "outputs").mkdir()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> DamagedProject:
    """The undamaged project. Each test that damages it uses a copy."""
    root = tmp_path_factory.mktemp("pristine")
    codebatch = CommandLine(root)
    make_project(root)
    answer = codebatch("run", ".", "--json").json
    assert answer["status"] == "COMPLETED"
    return DamagedProject(
        codebatch=codebatch,
        store=root / ".codebatch",
        batch_id=answer["batch_id"],
        digest=answer["result_digest"],
    )


@pytest.fixture
def stored(pristine: DamagedProject, tmp_path: Path) -> DamagedProject:
    """A copy to damage. The environment names its store, because a copied store is not trusted otherwise."""
    copy_project(pristine.codebatch.directory, tmp_path)
    return DamagedProject(
        codebatch=CommandLine(tmp_path, {"CODEBATCH_STORE": str(tmp_path / ".codebatch")}),
        store=tmp_path / ".codebatch",
        batch_id=pristine.batch_id,
        digest=pristine.digest,
    )


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(bytes(data))


def delete(path: Path) -> None:
    path.unlink()


def make_foreign(path: Path) -> None:
    """Write a byte that cannot begin a UTF-8 sequence."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] = 0xFF
    path.write_bytes(bytes(data))


every_damage = pytest.mark.parametrize(
    "damage", [cut, empty, flip, make_foreign, delete], ids=lambda damage: str(damage.__name__)
)


@every_damage
def test_damaged_pack_is_reported_and_repaired_by_the_next_run(
    stored: DamagedProject, damage: Callable[[Path], None]
) -> None:
    damage(stored.one("objects/*.pack"))
    codebatch = stored.codebatch
    ended = codebatch("run", "--batch", "latest", "--json")
    assert ended.json["result_digest"] == stored.digest, "damage must not affect merged outputs"
    new = codebatch("batch", "init", "--json").json["batch_id"]
    broken = codebatch("run", "--batch", new, "--no-cache", "--json", status=3)
    assert broken.json["status"] in ("PARTIAL", "FAILED")
    failures = codebatch("query", "outputs", "--kind", "failure", "--batch", new, "--json").records
    assert {record["reason"] for record in failures} <= {"object", "needs"}
    repaired = codebatch("run", ".", "--again", "--json").json
    assert (repaired["status"], repaired["result_digest"]) == ("COMPLETED", stored.digest)


def test_deleted_pack_index_is_rebuilt(stored: DamagedProject) -> None:
    stored.one("objects/*.idx").unlink()
    assert stored.codebatch("run", ".", "--again", "--json").json["result_digest"] == stored.digest


@every_damage
@pytest.mark.parametrize("name", ["snapshot.json", "files.index.jsonl.zst"])
def test_damaged_snapshot_is_reported_and_repaired_by_the_next_snapshot(
    stored: DamagedProject, damage: Callable[[Path], None], name: str
) -> None:
    damage(stored.one(f"snapshots/*/{name}"))
    for reference in (stored.snapshot_id, "latest"):
        ended = stored.codebatch("files", "--snapshot", reference, "--json", status=4)
        assert ended.error["code"] == "store_corrupt"
    stored.codebatch("snapshot", ".")
    assert len(stored.codebatch("files", "--snapshot", "latest", "--json").json) == 9
    assert stored.codebatch("run", ".", "--json").json["result_digest"] == stored.digest


@every_damage
def test_damaged_snapshot_document_affects_no_other_snapshot(
    stored: DamagedProject, damage: Callable[[Path], None]
) -> None:
    codebatch = stored.codebatch
    sound = codebatch("snapshot", "src", "--json").json["snapshot_id"]
    document = stored.store / "snapshots" / stored.snapshot_of_batch / "snapshot.json"
    damage(document)
    listed = codebatch("snapshot", "list", "--json")
    expected = {sound: "READY", stored.snapshot_of_batch: "DAMAGED"}
    assert {row["snapshot_id"]: row["status"] for row in listed.json} == expected
    assert stored.snapshot_of_batch in listed.notes
    for latest in (codebatch("files", "--snapshot", "latest"), codebatch("files", "--snapshot", sound)):
        assert latest.lines == ["broken.py", "main.py"]
    created = codebatch("batch", "init", "--json")
    assert created.json["snapshot_id"] == sound
    assert f"{stored.snapshot_of_batch} skipped" in created.notes
    ended = codebatch("files", "--snapshot", stored.snapshot_of_batch, "--json", status=4)
    assert ended.error["code"] == "store_corrupt"
    codebatch("query", "outputs", "--batch", stored.batch_id)  # Merged outputs do not depend on the snapshot.


@every_damage
def test_damaged_outcome_is_executed_again(stored: DamagedProject, damage: Callable[[Path], None]) -> None:
    stored.unmerge()
    damage(stored.one("batches/*/outcomes/*.parse.r1"))
    ended = stored.codebatch("run", ".", "--json").json
    assert (ended["status"], ended["result_digest"]) == ("COMPLETED", stored.digest)


@pytest.mark.parametrize("damage", [cut, empty, delete], ids=lambda damage: str(damage.__name__))
def test_damaged_segment_is_reported_and_a_new_batch_has_the_same_result(
    stored: DamagedProject, damage: Callable[[Path], None]
) -> None:
    stored.unmerge()
    damage(stored.largest_segment())
    error = stored.codebatch("run", ".", "--json", status=4).error
    assert error["code"] == "store_corrupt"
    assert "--again" in error["hint"]
    ended = stored.codebatch("run", ".", "--again", "--json").json
    assert ended["result_digest"] == stored.digest


def test_flipped_byte_in_a_segment_is_never_returned(stored: DamagedProject) -> None:
    """The merge checks item tables. Records are copied, and checked when they are read.

    Data that belongs to no file is not read for an answer. If it is damaged, the answer is unchanged.
    """
    right = stored.codebatch("query", "outputs", "--json").records
    segment = stored.largest_segment()
    sound = segment.read_bytes()
    trials = 0
    for place in range(8, len(sound), len(sound) // 6):
        stored.unmerge()
        segment.write_bytes(sound[:place] + bytes([sound[place] ^ 0x55]) + sound[place + 1 :])
        ended = stored.codebatch.ends("run", "--json", "-q")
        answer = stored.codebatch.ends("query", "outputs", "--json")
        assert 4 in (ended.status, answer.status), f"byte {place}: {ended.status}, {answer.status}"
        assert answer.status == 4 or answer.records == right
        trials += 1
    assert trials >= 6


@every_damage
def test_damaged_plan_affects_only_its_batch(stored: DamagedProject, damage: Callable[[Path], None]) -> None:
    stored.unmerge()
    damage(stored.batch / "plan.json")
    for command in ("status", "run --batch latest", "summary"):
        error = stored.codebatch(*command.split(), "--json", status=4).error
        assert error["code"] == "store_corrupt", command
        assert "plan.json" in error["message"]
    assert [row["status"] for row in stored.codebatch("batch", "list", "--json").json] == ["DAMAGED"]
    ended = stored.codebatch("run", ".", "--json")
    assert "skipped" in ended.notes
    assert ended.json["result_digest"] == stored.digest
    assert ended.json["batch_id"] != stored.batch_id
    assert stored.codebatch("status", "--json").json["status"] == "COMPLETED"


@every_damage
def test_a_damaged_batch_file_hides_no_other_batch(stored: DamagedProject, damage: Callable[[Path], None]) -> None:
    damage(stored.batch / "batch.json")
    ended = stored.codebatch("run", ".", "--json").json
    assert ended["result_digest"] == stored.digest
    listed = {row["batch_id"]: row["status"] for row in stored.codebatch("batch", "list", "--json").json}
    assert listed[ended["batch_id"]] == "COMPLETED"
    assert listed[stored.batch_id] == "DAMAGED"
    error = stored.codebatch("status", "--batch", stored.batch_id, "--json", status=4).error
    assert error["code"] == "store_corrupt"
    assert f"remove {stored.batch}" in error["hint"]


@every_damage
def test_latest_is_the_latest_readable_batch(stored: DamagedProject, damage: Callable[[Path], None]) -> None:
    codebatch = stored.codebatch
    latest = codebatch("run", ".", "--again", "--json").json["batch_id"]
    other = codebatch("run", ".", "--again", "--json").json["batch_id"]
    write(stored.store / "batches" / "batch-of-cookies" / "batch.json", "{}")
    assert codebatch("status", "--json").json["batch_id"] == other
    damage(stored.store / "batches" / other / "batch.json")
    ended = codebatch("status", "--json", "-q")
    assert ended.json["batch_id"] == latest
    assert f"{other} skipped" in ended.notes
    assert codebatch("run", ".", "--json").json["batch_id"] == latest
    statuses = {row["batch_id"]: row["status"] for row in codebatch("batch", "list", "--json").json}
    assert statuses == {stored.batch_id: "COMPLETED", latest: "COMPLETED", other: "DAMAGED"}
    codebatch("run", ".", "--again")
    assert codebatch("status", "--batch", "latest~1", "--json").json["batch_id"] == latest
    assert codebatch("status", "--batch", other, "--json", status=4).error["code"] == "store_corrupt"


def test_store_without_a_readable_batch_names_the_batch_to_remove(stored: DamagedProject) -> None:
    empty(stored.batch / "batch.json")
    error = stored.codebatch("status", "--json", status=4).error
    assert error["code"] == "store_corrupt"
    assert f"remove {stored.batch}" in error["hint"]
    shutil.rmtree(stored.batch)
    assert stored.codebatch("run", ".", "--json").json["result_digest"] == stored.digest


@every_damage
def test_damaged_journals_lose_only_evidence(stored: DamagedProject, damage: Callable[[Path], None]) -> None:
    for path in stored.batch.glob("journal/*"):
        damage(path)
    for command in ("status", "errors", "tasks", "summary"):
        stored.codebatch(*command.split(), "--json")
    stored.unmerge()
    assert stored.codebatch("run", ".", "--json").json["result_digest"] == stored.digest


@every_damage
def test_damaged_holders_and_leases_have_no_effect(stored: DamagedProject, damage: Callable[[Path], None]) -> None:
    for path in (*stored.batch.glob("holders/*"), *stored.batch.glob("leases/*")):
        damage(path)
    for path in stored.batch.glob("outcomes/*.lint.*"):
        path.unlink()
    stored.unmerge()
    stored.codebatch("status")
    assert stored.codebatch("run", ".", "--json").json["result_digest"] == stored.digest


@every_damage
def test_damaged_manifest_is_reported_and_can_be_merged_again(
    stored: DamagedProject, damage: Callable[[Path], None]
) -> None:
    """The procedure is that of the hint: remove the directory, then resume."""
    damage(stored.one("batches/*/outputs/*/manifest.json"))
    error = stored.codebatch("summary", "--json", status=4).error
    assert error["code"] == "store_corrupt"
    outputs = stored.one("batches/*/outputs/*")
    assert (
        error["hint"]
        == f"remove the directory {outputs}, then resume with: codebatch resume --batch {stored.batch.name}"
    )
    shutil.rmtree(outputs)
    assert stored.codebatch("resume", "--json").json["result_digest"] == stored.digest
    stored.codebatch("summary")


@every_damage
@pytest.mark.parametrize("task", ["lint", "symbols"])
def test_damaged_outputs_are_reported_and_repaired_as_the_hint_says(
    stored: DamagedProject, damage: Callable[[Path], None], task: str
) -> None:
    path = stored.one(f"batches/*/outputs/*/{task}/*.jsonl.zst")
    sound = path.read_bytes()
    damage(path)
    error = stored.codebatch("inspect", "native/main.c", "--json", status=4).error
    assert error["code"] == "store_corrupt"
    stored.codebatch(*error["hint"].partition(": codebatch ")[2].split())
    assert path.read_bytes() == sound
    stored.codebatch("inspect", "native/main.c")


def test_unknown_files_in_a_store_are_ignored(stored: DamagedProject) -> None:
    for directory in (stored.store, *(path for path in stored.store.rglob("*") if path.is_dir())):
        (directory / "README").write_text("left here by a person\n")
        (directory / ".DS_Store").write_bytes(b"\0")
        (directory / "folder").mkdir()
    assert stored.codebatch("run", ".", "--json").json["action"] == "up to date"
    for command in ("status", "batch list", "snapshot list", "errors", "query outputs", "files", "shards --task lint"):
        stored.codebatch(*command.split(), "--json")
    stored.unmerge()
    assert stored.codebatch("run", ".", "--json").json["result_digest"] == stored.digest
    assert stored.codebatch("run", ".", "--again", "--json").json["result_digest"] == stored.digest


def test_rebuildable_directories_may_be_deleted(stored: DamagedProject) -> None:
    for name in ("indexes", "cache", "locks"):
        shutil.rmtree(stored.store / name)
    for command in ("status", "errors", "query outputs", "files"):
        stored.codebatch(*command.split())
    assert stored.codebatch("run", ".", "--json").json["result_digest"] == stored.digest


def extend_outcome(outcome: TaskOutcome) -> TaskOutcome:
    """Return the same outcome, as if it covered one more item."""
    return msgspec.structs.replace(outcome, end=outcome.end + 1)


@pytest.mark.parametrize("task", ["parse", "dependencies"])
def test_inconsistent_outcome_is_executed_again(stored: DamagedProject, task: str) -> None:
    register = stored.one(f"batches/*/outcomes/*.{task}.r1")
    commit = decode_commit(register.read_bytes())
    outcomes = tuple(
        extend_outcome(one)
        if not one.parts
        else msgspec.structs.replace(one, parts=tuple(map(extend_outcome, one.parts)))
        for one in commit.outcomes
    )
    register.write_bytes(encode_commit(msgspec.structs.replace(commit, outcomes=outcomes)))
    stored.unmerge()
    assert stored.codebatch("status", "--json").json["status"] == "RUNNING"
    whole = stored.codebatch("run", ".", "--json").json
    assert (whole["status"], whole["result_digest"]) == ("COMPLETED", stored.digest)


@every_damage
def test_references_reports_files_that_it_could_not_search(
    stored: DamagedProject, damage: Callable[[Path], None]
) -> None:
    """Without an index, all files are searched."""
    whole = stored.codebatch("references", "main", "--json").records
    assert len(whole) == 1
    shutil.rmtree(stored.store / "indexes")
    damage(stored.one("objects/*.pack"))
    stored.one("objects/*.idx").unlink()
    ended = stored.codebatch("references", "main", "--json", status=3)
    assert "incomplete: " in ended.notes
    assert ended.json["complete"] is False
    assert [row for row in ended.json["records"] if row not in whole] == []
    stored.codebatch("run", ".")
    assert stored.codebatch("references", "main", "--json").records == whole


def test_shards_of_a_finished_batch_come_from_its_manifest(stored: DamagedProject) -> None:
    """The batch was made from the registers but does not depend on them."""
    for project in ("parse", "lint"):
        whole = stored.codebatch("shards", "--task", project, "--json").json
        assert {row["status"] for row in whole} == {"done"}
        for register in stored.batch.glob(f"outcomes/*.{project}.*"):
            register.unlink()
        assert stored.codebatch("shards", "--task", project, "--json").json == whole


def test_outputs_of_another_batch_are_rejected(stored: DamagedProject) -> None:
    other = stored.codebatch("run", "src", "--json").json
    other_outputs = stored.store / "batches" / other["batch_id"] / "outputs"
    stored.unmerge()
    (stored.batch / "settled.json").unlink()
    shutil.copytree(other_outputs, stored.batch / "outputs", dirs_exist_ok=True)
    error = stored.codebatch("summary", "--batch", stored.batch_id, "--json", status=4).error
    assert "belongs to another batch" in error["message"]


def test_batch_with_a_missing_snapshot_is_damaged(stored: DamagedProject) -> None:
    shutil.rmtree(stored.one("snapshots/snap-*"))
    for command in ("inspect native/main.c", "files"):
        error = stored.codebatch(*command.split(), "--json", status=4).error
        assert error["code"] == "store_corrupt"
    assert stored.codebatch("run", ".", "--json").json["result_digest"] == stored.digest
    stored.codebatch("files")
