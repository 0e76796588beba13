"""The worked example of SPEC.md is made of real bytes: `python -m tests.test_spec_example` prints it."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import msgspec

from codebatch.model.counts import Counts
from codebatch.model.cutting import cut_shards
from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry, encode_entries, snapshot_id
from codebatch.model.outcome import Commit, HolderId, Outcome, encode_commit
from codebatch.model.record import File
from codebatch.model.shard import ShardRule
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store import layout
from codebatch.store.object_frames import Frame, compress
from codebatch.store.outcomes import encode_outcome
from codebatch.store.packs import build_index, encode_index
from tests import spec_reader

SPEC = Path(__file__).parent.parent / "SPEC.md"
CONTENT = b"x = 1\n"
HOLDER = HolderId("c0de" * 8)
LINE_BYTES = 32


def _record() -> bytes:
    return (
        msgspec.json.encode(File(path="a.py", lang="python", encoding="utf-8", lines=1, class_="text", parse="ok"))
        + b"\n"
    )


def _lines(data: bytes, *sizes: int) -> str:
    """Bytes in hex: pieces of these sizes, and what is left."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    pieces += [data[at : at + LINE_BYTES] for at in range(start, len(data), LINE_BYTES)]
    return "\n".join(f"    {piece.hex()}" for piece in pieces)


def example(pack: bytes, frames: bytes) -> str:
    """The example. What zstd makes is given: another version may compress otherwise."""
    entry = Entry(b"a.py", "file", False, len(CONTENT), digest_bytes(CONTENT))
    index = encode_entries([entry])
    (shard,) = cut_shards([entry], ShardRule())
    name = digest_bytes(pack)
    idx = encode_index(build_index(len(pack), [(bytes.fromhex(entry.object), Frame(0, len(pack), len(CONTENT)))]))
    outcome = Outcome(
        shard=shard.id,
        task="parse",
        start=0,
        end=1,
        type="result",
        counts=Counts(kinds={"file": 1}, languages={"python": 1}),
    )
    row = encode_outcome(outcome, [_record()], FrameWriter())
    done = msgspec.structs.replace(row.outcome, length=len(frames), crc=zlib.crc32(frames))
    commit = Commit(segment=HOLDER, epoch=1, round=1, outcomes=(done,))
    return "\n".join(
        [
            "```",
            f"{layout.OBJECTS}/{name}{layout.PACK_SUFFIX}",
            _lines(pack),
            f"{layout.OBJECTS}/{name}{layout.INDEX_SUFFIX}",
            _lines(idx, 8, 8, 8, 32, 8, 8, 8),
            f"{layout.SNAPSHOTS}/{snapshot_id(digest_bytes(index))}/{layout.SNAPSHOT_INDEX}, uncompressed",
            f"    {index.decode().strip()}",
            f"{layout.RESULTS}/{layout.segment_name(HOLDER)}: frames, then a row (length, sha256)",
            _lines(frames),
            _lines(row.table, 4),
            "the record in the frame",
            f"    {_record().decode().strip()}",
            f"{layout.OUTCOMES}/{shard.id}.0.parse.r1",
            f"    {encode_commit(commit).decode().strip()}",
            "```",
        ]
    )


def _block() -> str:
    text = SPEC.read_text(encoding="utf-8")
    section = text[text.index("## Worked example\n") :]
    match = re.search(r"```\n.*?\n```", section, re.DOTALL)
    assert match is not None
    return match[0]


def _hex(name: str) -> bytes:
    """The bytes below the first line that names a file."""
    match = re.search(rf"^\S+{re.escape(name)}.*\n((?:    [0-9a-f]+\n)+)", _block(), re.MULTILINE)
    assert match is not None
    return bytes.fromhex("".join(match[1].split()))


def test_the_worked_example_is_what_we_write() -> None:
    pack, segment = _hex(layout.PACK_SUFFIX), _hex(".seg")
    assert _block() == example(pack, segment[:-36])


def test_the_worked_example_is_read_by_its_text(tmp_path: Path) -> None:
    (tmp_path / layout.OBJECTS).mkdir()
    pack = _hex(layout.PACK_SUFFIX)
    for suffix in (layout.PACK_SUFFIX, layout.INDEX_SUFFIX):
        (tmp_path / layout.OBJECTS / f"{digest_bytes(pack)}{suffix}").write_bytes(_hex(suffix))
    assert spec_reader.read_object(tmp_path, digest_bytes(CONTENT)) == CONTENT
    commit = spec_reader.document(_block().splitlines()[-2].strip().encode() + b"\n", 1)
    (outcome,) = commit["outcomes"]
    segment = _hex(".seg")
    frames, rows = segment[: outcome["length"]], segment[outcome["length"] :]
    assert (spec_reader.sha256(rows), zlib.crc32(frames)) == (outcome["digest"], outcome["crc"])
    assert spec_reader.records_of_rows(rows, spec_reader.unzstd(frames)) == [_record()]


if __name__ == "__main__":
    print(example(compress(CONTENT), FrameWriter().encode(_record())))
