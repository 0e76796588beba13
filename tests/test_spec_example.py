"""The worked example of SPEC.md, which has real bytes. `python -m tests.test_spec_example` writes it."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import msgspec

from codebatch.model.analysis.item_table import result_digest
from codebatch.model.analysis.shard_boundaries import cut_shards
from codebatch.model.digest import digest_bytes
from codebatch.model.documents import encode_document
from codebatch.model.entry import Entry, encode_entries, snapshot_id
from codebatch.model.outcome import COMMIT_FORMAT, Commit, HolderId, TaskOutcome, encode_commit
from codebatch.model.plan import ContextTable, Plan, PlannedTask, encode_plan, plan_digest, task_key
from codebatch.model.record import File
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId, ShardRule
from codebatch.model.work.command import Command, CommandId, encode_command
from codebatch.model.work.event import TaskCompleted
from codebatch.model.work.request import Open, Request, RequestHead, encode_request
from codebatch.model.work.work_batch import Work, encode_work
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchFile
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.ids import BatchId
from codebatch.store.objects.frames import PackFrame, compress_frame
from codebatch.store.objects.packs import build_index, encode_index
from codebatch.store.results.outcomes import encode_outcome
from codebatch.store.results.outputs import Manifest, OutputShard, TaskOutput
from codebatch.store.results.shard_files import make_trailer, read_trailer
from codebatch.store.snapshots.index_frames import IndexFrame, make_snapshot_index
from codebatch.store.snapshots.snapshots import SnapshotDocument, SnapshotSource
from codebatch.system.host import HostBoot
from tests import spec_reader
from tests.specification import SPEC, read_section

CONTENT = b"x = 1\n"
BATCH_ID = BatchId("batch-20260102-030405-000000-c0ffee")
INSTANT_NS = 1_767_323_045_000_000_000
HOLDER = HolderId("c0de" * 8)
LINE_BYTES = 32


def _record() -> bytes:
    return (
        msgspec.json.encode(File(path="a.py", lang="python", encoding="utf-8", lines=1, class_="text", parse="ok"))
        + b"\n"
    )


def _text(line: bytes) -> str:
    return f"    {line.decode().strip()}"


def _lines(data: bytes, *sizes: int) -> str:
    """Return bytes as lines of hex: first pieces of the given sizes, then the rest in lines of equal length."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    pieces += [data[at : at + LINE_BYTES] for at in range(start, len(data), LINE_BYTES)]
    return "\n".join(f"    {piece.hex()}" for piece in pieces)


def _entry() -> Entry:
    return Entry(b"a.py", "file", False, len(CONTENT), digest_bytes(CONTENT))


def _index() -> bytes:
    return encode_entries([_entry()])


def _snapshot_file(index_length: int) -> SnapshotDocument:
    index = _index()
    digest = digest_bytes(index)
    frame = IndexFrame(
        path=b"a.py",
        entries=1,
        files=1,
        size=len(CONTENT),
        length=index_length,
        content=len(index),
        digest=digest,
    )
    return SnapshotDocument(
        snapshot_id=snapshot_id(digest),
        digest=digest,
        files=1,
        bytes=len(CONTENT),
        entries=1,
        created_at="2026-01-02T03:04:05.000000Z",
        source=SnapshotSource(base="/home/ada/shop", roots=("/home/ada/shop",), listing="git"),
        frames=(frame,),
    )


def _plan() -> Plan:
    implementation = digest_bytes(b"the code of the task")
    key = task_key(name="parse", version="1", implementation_digest=implementation, config={}, tools={}, needs=())
    task = PlannedTask(
        name="parse",
        version="1",
        scope="file",
        needs=(),
        implementation_digest=implementation,
        config={},
        tools={},
        contexts=("packages",),
        key=key,
    )
    digest = digest_bytes(_index())
    return Plan(
        digest=plan_digest(digest, [task]),
        snapshot_id=snapshot_id(digest),
        snapshot_digest=digest,
        pipeline="full",
        tasks=(task,),
        shard_rule=ShardRule(),
        shards=tuple(cut_shards([_entry()], ShardRule())),
        contexts={"packages": ContextTable(values=(b"/",), items=(0,))},
    )


def _batch_file(plan: Plan) -> BatchFile:
    return BatchFile(
        batch_id=BATCH_ID,
        snapshot_id=plan.snapshot_id,
        pipeline=plan.pipeline,
        plan_digest=plan.digest,
        sources=(b"/home/ada/shop",),
        created_at_ns=INSTANT_NS,
        shards=1,
        items=1,
    )


def _outcome(shard: ShardId, frames: bytes) -> tuple[TaskOutcome, bytes]:
    """Return the outcome of the task and its rows. `frames` is given, because versions of zstd compress differently."""
    outcome = TaskOutcome(
        shard=shard,
        task="parse",
        start=0,
        end=1,
        type="result",
        counts=RecordCounts(kinds={"file": 1}, languages={"python": 1}),
    )
    row = encode_outcome(outcome, [_record()], FrameWriter())
    return msgspec.structs.replace(row.outcome, length=len(frames), crc=zlib.crc32(frames)), row.table


def _manifest(plan: Plan, outcome: TaskOutcome, trailer: bytes) -> Manifest:
    shard = OutputShard(
        shard=outcome.shard,
        length=outcome.length,
        trailer=len(trailer),
        digest=read_trailer(trailer).digest,
        bytes=outcome.bytes,
        counts=outcome.counts,
    )
    task = TaskOutput(
        task="parse",
        scope="file",
        digest=outcome.digest,
        length=outcome.length,
        bytes=outcome.bytes,
        failed=0,
        cancelled=0,
        counts=outcome.counts,
        shards=(shard,),
    )
    result = result_digest([("parse", outcome.digest)])
    return Manifest(plan_digest=plan.digest, result_digest=result, generation=0, items=1, tasks=(task,))


def _work_lines() -> list[tuple[str, bytes]]:
    """Return a command, work.json, a request and an event of a work batch, with their titles."""
    command = Command(id=CommandId("build"), run="make")
    work = Work(source="work.toml", root=b"/home/ada/shop", order=(command.id,))
    request = Request(RequestHead(n=1, at_ns=INSTANT_NS, by="ada"), Open(rounds={command.id: 1}))
    event = TaskCompleted(
        cursor=f"{BATCH_ID}:1.4",
        seq=4,
        at="2026-01-02T03:04:05.000Z",
        batch_id=BATCH_ID,
        counts={"DONE": 1},
        task="build",
        title="",
        round=1,
        try_=1,
        tries_max=1,
        seconds=2.5,
        exit_status=0,
    )
    return [
        ("the object of a command", encode_command(command)),
        ("work.json", encode_work(work)),
        ("requests/000001.json", encode_request(request)),
        ("a line of events/1.jsonl", encode_document(event)),
    ]


def example(pack: bytes, frames: bytes, index_length: int) -> str:
    """Return the text of the example. Compressed parts are given, because versions of zstd compress differently."""
    entry, plan = _entry(), _plan()
    name = digest_bytes(pack)
    idx = encode_index(build_index(len(pack), [(bytes.fromhex(entry.object), PackFrame(0, len(pack), len(CONTENT)))]))
    shard = plan.shards[0].id
    outcome, table = _outcome(shard, frames)
    commit = Commit(segment=HOLDER, epoch=1, round=1, outcomes=(outcome,))
    trailer = make_trailer(frames, table, outcome.bytes)
    manifest = _manifest(plan, outcome, trailer)
    holder = HolderFile(
        holder=HOLDER, role="worker", pid=4711, host=HostBoot(name="alpha", boot="b007"), since_ns=INSTANT_NS
    )
    snapshot = f"{layout.SNAPSHOTS}/{plan.snapshot_id}"
    output = f"{layout.OUTPUTS}/{manifest.result_digest}"
    rows = [
        (f"{layout.OBJECTS}/{name}{layout.PACK_SUFFIX}", _lines(pack)),
        (f"{layout.OBJECTS}/{name}{layout.INDEX_SUFFIX}", _lines(idx, 8, 8, 8, 32, 8, 8, 8)),
        (f"{snapshot}/{layout.SNAPSHOT_INDEX}, uncompressed", _text(_index())),
        (f"{snapshot}/{layout.SNAPSHOT_FILE}", _text(encode_document(_snapshot_file(index_length)))),
        (layout.BATCH_FILE, _text(encode_document(_batch_file(plan)))),
        (layout.PLAN_FILE, _text(encode_plan(plan))),
        (
            f"{layout.RESULTS}/{layout.segment_name(HOLDER)}: frames, then a row",
            f"{_lines(frames)}\n{_lines(table, 4)}",
        ),
        ("the record in the frame", _text(_record())),
        (f"{layout.OUTCOMES}/{shard}.0.parse.r1", _text(encode_commit(commit))),
        (f"{output}/parse/{layout.shard_file_name(0, shard)}: the trailer", _lines(trailer, 8, 8, 4, 32, 8, 4, 32, 4)),
        (f"{output}/{layout.MANIFEST_FILE}", _text(encode_document(manifest))),
        (f"{layout.HOLDERS}/{HOLDER}", _text(encode_document(holder))),
        *((name, _text(line)) for name, line in _work_lines()),
    ]
    return "\n".join(["```", *(f"{name}\n{text}" for name, text in rows), "```"])


def _block() -> str:
    match = re.search(r"```\n.*?\n```", read_section("Worked example"), re.DOTALL)
    assert match is not None
    return match[0]


def _hex(name: str) -> bytes:
    """Return the bytes below the first line that names a file."""
    match = re.search(rf"^\S+{re.escape(name)}.*\n((?:    [0-9a-f]+\n)+)", _block(), re.MULTILINE)
    assert match is not None
    return bytes.fromhex("".join(match[1].split()))


def _json(name: str) -> bytes:
    """Return the line below the first line that ends with a name."""
    match = re.search(rf"^\S*{re.escape(name)}\n    (.+\n)", _block(), re.MULTILINE)
    assert match is not None
    return match[1].encode()


def test_worked_example_matches_the_implementation() -> None:
    pack, segment = _hex(layout.PACK_SUFFIX), _hex(".seg")
    (frame,) = msgspec.json.decode(_json(layout.SNAPSHOT_FILE))["frames"]
    assert _block() == example(pack, segment[:-36], frame["length"])


def test_worked_example_is_readable_by_the_specification(tmp_path: Path) -> None:
    (tmp_path / layout.OBJECTS).mkdir()
    pack = _hex(layout.PACK_SUFFIX)
    for suffix in (layout.PACK_SUFFIX, layout.INDEX_SUFFIX):
        (tmp_path / layout.OBJECTS / f"{digest_bytes(pack)}{suffix}").write_bytes(_hex(suffix))
    assert spec_reader.read_object(tmp_path, digest_bytes(CONTENT)) == CONTENT
    commit = spec_reader.document(_json(".r1"), COMMIT_FORMAT)
    (outcome,) = commit["outcomes"]
    segment = _hex(".seg")
    frames, rows = segment[: outcome["length"]], segment[outcome["length"] :]
    assert (spec_reader.sha256(rows), zlib.crc32(frames)) == (outcome["digest"], outcome["crc"])
    assert spec_reader.records_of_rows(rows, spec_reader.unzstd(frames)) == [_record()]


if __name__ == "__main__":
    new_example = example(
        compress_frame(CONTENT), FrameWriter().encode(_record()), len(make_snapshot_index([_index()]).data)
    )
    SPEC.write_text(SPEC.read_text(encoding="utf-8").replace(_block(), new_example), encoding="utf-8")
