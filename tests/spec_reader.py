"""A reader of finished and unfinished batches, written from SPEC.md alone. It imports no module of codebatch.

Docstrings name the section of SPEC.md that a function implements.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

Json = Any
SHARD = r"(?:[0-9a-f]{8,64}|project-[a-z][a-z0-9_-]{0,63})"
REGISTER = re.compile(rf"({SHARD})\.(\d{{1,9}})\.([a-z][a-z0-9_-]{{0,63}})\.r([1-9]\d{{0,8}})\Z")
LEASE = re.compile(rf"({SHARD})\.(\d{{1,9}})\.(\d{{1,9}})\Z")
ROW = struct.Struct("<I32s")
CELL = struct.Struct("<QQQIIIBB")


class Unsound(ValueError):
    """Bytes violate the specification."""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def document(data: bytes, format_: int) -> Json:
    """Decode a document. SPEC.md "Documents"."""
    body = data[:-80]
    if data[-80:] != b',"checksum":"%s"}\n' % sha256(body).encode():
        raise Unsound("a document without its checksum")
    result = json.loads(data)
    if result["format"] != format_:
        raise Unsound("a document of another format")
    return result


def unzstd(data: bytes) -> bytes:
    """Decompress frames. SPEC.md "Frames"."""
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read()


def read_object(store: Path, digest: str) -> bytes:
    """Return the content of an object. SPEC.md "Packs"."""
    for path in (store / "objects").glob("*.idx"):
        index = path.read_bytes()
        magic, count, size = struct.unpack_from("<8sQQ", index)
        if magic != b"cbidx\0\0\1" or index[-32:] != hashlib.sha256(index[:-32]).digest():
            raise Unsound("a pack index")
        keys = [index[24 + 32 * row : 56 + 32 * row] for row in range(count)]
        if bytes.fromhex(digest) in keys:
            row = keys.index(bytes.fromhex(digest))
            offset, length, bytes_ = (
                struct.unpack_from("<Q", index, 24 + 32 * count + 8 * (column * count + row))[0] for column in range(3)
            )
            pack = path.with_suffix(".pack").read_bytes()
            content = unzstd(pack[offset : offset + length])
            if len(pack) != size or len(content) != bytes_ or sha256(content) != digest or sha256(pack) != path.stem:
                raise Unsound("an object")
            return content
    raise Unsound("no such object")


def records_of_rows(rows: bytes, records: bytes) -> list[bytes]:
    """Split records into those of each item. SPEC.md "Item tables"."""
    result, start = [], 0
    for length, digest in ROW.iter_unpack(rows):
        result.append(records[start : start + length])
        if hashlib.sha256(result[-1]).digest() != digest:
            raise Unsound("a row that does not fit")
        start += length
    if start != len(records):
        raise Unsound("records without a row")
    return result


def rows_of_trailer(data: bytes, digest: str) -> bytes:
    """Return the item table of a shard file. SPEC.md "Shard files"."""
    length, end = struct.unpack("<I8s", data[-12:])
    frames, payload = data[:-length], data[8 - length : -44]
    items, count = struct.unpack_from("<II", payload)
    if (
        struct.unpack_from("<II", data, len(frames)) != (0x184D2A50, length - 8)
        or end != b"cbshard\1"
        or not digest == sha256(payload) == data[-44:-12].hex()
        or struct.unpack("<I", payload[-4:]) != (zlib.crc32(frames),)
        or len(payload) != 12 + 36 * items + 8 * count
    ):
        raise Unsound("a trailer")
    return payload[8 : 8 + 36 * items]


def batch_ids(store: Path) -> list[str]:
    """Return the ids of all batches of a store, in order. SPEC.md "Ids"."""
    return sorted(path.name for path in (store / "batches").glob("batch-*") if (path / "batch.json").exists())


class Batch:
    """A batch that may still be running. SPEC.md "Reading a running batch"."""

    def __init__(self, store: Path, batch_id: str) -> None:
        self.root = store / "batches" / batch_id
        self.about = document((self.root / "batch.json").read_bytes(), 1)
        self.plan = document((self.root / "plan.json").read_bytes(), 1)
        snapshot = store / "snapshots" / self.plan["snapshot_id"]
        self.snapshot = document((snapshot / "snapshot.json").read_bytes(), 1)
        data = (snapshot / "files.index.jsonl.zst").read_bytes()
        index = unzstd(data)
        if not sha256(index) == self.snapshot["digest"] == self.plan["snapshot_digest"]:
            raise Unsound("a snapshot of another digest")
        frames = self.snapshot["frames"]
        ends = list(itertools.accumulate(frame["length"] for frame in frames))
        contents = [unzstd(data[end - frame["length"] : end]) for end, frame in zip(ends, frames, strict=True)]
        if list(map(sha256, contents)) != [frame["digest"] for frame in frames] or b"".join(contents) != index:
            raise Unsound("a snapshot of other frames")
        self.entries = [json.loads(line) for line in index.splitlines()]
        paths = [b64decode(path) for path in self.plan["paths"]]
        self.items = [
            entry
            for entry in self.entries
            if entry["kind"] == "file" and (not paths or any(_is_below(_path(entry), path) for path in paths))
        ]
        self.tasks = {task["name"]: task for task in self.plan["tasks"]}
        self.sizes = {shard["id"]: shard["end"] - shard["start"] for shard in self.plan["shards"]}
        self.links = self._scan()

    def _scan(self) -> dict[tuple[str, str], dict[int, tuple[int, Json]]]:
        """Return the effective outcome at each start and its round, by shard and task. SPEC.md "Outcomes"."""
        links: dict[tuple[str, str], dict[int, tuple[int, Json]]] = {}
        for name in os.listdir(self.root / "outcomes"):
            if match := REGISTER.match(name):
                shard, start, task, round_ = match[1], int(match[2]), match[3], int(match[4])
                try:
                    commit = document((self.root / "outcomes" / name).read_bytes(), 1)
                    if commit["round"] != round_ or not all(map(self._is_possible, commit["outcomes"])):
                        continue
                except ValueError:
                    continue
                known = links.setdefault((shard, task), {})
                for outcome in commit["outcomes"]:
                    if (outcome["shard"], outcome["start"], outcome["task"]) == (shard, start, task) and known.get(
                        start, (0,)
                    )[0] < round_:
                        known[start] = (round_, outcome | {"segment": commit["segment"]})
        return links

    def _is_possible(self, outcome: Json) -> bool:
        is_project = self.tasks.get(outcome["task"], {}).get("scope") == "project"
        items = (
            1
            if outcome["shard"] == f"project-{outcome['task']}" and is_project
            else 0
            if is_project
            else self.sizes.get(outcome["shard"], 0)
        )
        parts = [(part["shard"], part["end"]) for part in outcome.get("parts", [])]
        return (
            outcome["task"] in self.tasks
            and 0 <= outcome["start"] < outcome["end"] <= items
            and (outcome["type"] != "failed" or outcome["end"] == outcome["start"] + 1)
            and parts in ([], list(self.sizes.items()))
        )

    def chain(self, shard: str, task: str) -> Iterator[Json]:
        """Yield the outcomes of a chain. SPEC.md "Chains"."""
        links, at = self.links.get((shard, task), {}), 0
        while later := [start for start in links if start >= at]:
            outcome = links[min(later)][1]
            yield outcome
            at = outcome["end"]

    def records(self, outcome: Json) -> list[bytes]:
        """Return the records of each item of an outcome. SPEC.md "Outcomes", "Project tasks"."""
        if outcome["shard"].startswith("project-") and outcome["type"] == "result":
            parts = [part | {"segment": outcome["segment"]} for part in outcome.get("parts", [])]
            rows = b"".join(self._bytes(part)[1] for part in parts)
            if sha256(rows) != outcome["digest"]:
                raise Unsound("parts of another digest")
            return [records for part in parts for records in self.records(part | {"shard": part["shard"]})]
        frames, rows = self._bytes(outcome)
        if sha256(rows) != outcome["digest"]:
            raise Unsound("rows of another digest")
        if outcome.get("crc", 0) not in (0, zlib.crc32(frames)):
            raise Unsound("frames of another crc32")
        result = unzstd(frames)
        if len(result) != outcome.get("bytes", 0):
            raise Unsound("frames of another size")
        return records_of_rows(rows, result)

    def _bytes(self, outcome: Json) -> tuple[bytes, bytes]:
        if file := outcome.get("file"):
            data = (self.root / "results" / f"{file}.shard").read_bytes()
            return data[: outcome.get("length", 0)], rows_of_trailer(data, file)
        length, rows = outcome.get("length", 0), ROW.size * (outcome["end"] - outcome["start"])
        with open(self.root / "results" / f"{outcome['segment']}.seg", "rb") as segment:
            segment.seek(outcome.get("offset", 0))
            data = segment.read(length + rows)
        if len(data) != length + rows:
            raise Unsound("a segment that is cut")
        return data[:length], data[length:]

    def inputs(self, task: str) -> str:
        """Return the digest of the inputs of a project task. SPEC.md "Project tasks"."""
        needs = [name for name in self.tasks if name in self.tasks[task]["needs"]]
        pairs = [(shard, need) for shard in self.sizes for need in needs if self.tasks[need]["scope"] == "file"]
        pairs += [(f"project-{need}", need) for need in needs if self.tasks[need]["scope"] == "project"]
        lines = (
            f"{shard}.{outcome['start']}.{need} {outcome['digest']}\n"
            for shard, need in pairs
            for outcome in self.chain(shard, need)
        )
        return sha256("".join(lines).encode())

    def tally(self) -> dict[str, tuple[int, int, int]]:
        """Return the numbers of done, failed and open items of each task. SPEC.md "Batch states", "Project tasks"."""
        tally: dict[str, tuple[int, int, int]] = {}
        settled: set[str] = set()
        for name, task in self.tasks.items():
            is_project = task["scope"] == "project"
            shards = [f"project-{name}"] if is_project else list(self.sizes)
            chains = [outcome for shard in shards for outcome in self.chain(shard, name)]
            planned = 1 if is_project else sum(self.sizes.values())
            is_ready = settled.issuperset(task["needs"])
            if is_project and is_ready and chains and chains[0].get("inputs", "") != self.inputs(name):
                chains = []
            done = sum(outcome["end"] - outcome["start"] for outcome in chains if outcome["type"] == "result")
            failed = sum(outcome["type"] == "failed" for outcome in chains)
            tally[name] = (done, failed, planned - done - failed)
            if done + failed == planned and is_ready:
                settled.add(name)
        return tally

    def holders(self) -> dict[str, bool]:
        """Return every holder of this machine, and whether it is alive. SPEC.md "Leases"."""
        return {
            path.name: _is_locked(path)
            for path in (self.root / "holders").iterdir()
            if re.fullmatch(r"[0-9a-f]{32}", path.name)
        }

    def leases(self) -> dict[tuple[str, int], str]:
        """Return the last holder of each unit, by shard and start."""
        by_inode = {path.stat().st_ino: path.name for path in (self.root / "holders").iterdir()}
        highest: dict[tuple[str, int], tuple[int, str]] = {}
        for path in (self.root / "leases").iterdir():
            if match := LEASE.match(path.name):
                unit, epoch = (match[1], int(match[2])), int(match[3])
                highest[unit] = max(highest.get(unit, (0, "")), (epoch, by_inode[path.stat().st_ino]))
        return {unit: holder for unit, (_, holder) in highest.items()}

    def step(self, holder: str) -> tuple[int, ...]:
        """Return the values of a holder's progress cell. SPEC.md "Progress cell"."""
        return CELL.unpack_from((self.root / "holders" / f"{holder}.cell").read_bytes())

    def outputs(self) -> Json | None:
        """Return the current manifest, or None. SPEC.md "Outputs"."""
        directories = [path for path in (self.root / "outputs").iterdir() if re.fullmatch(r"[0-9a-f]{64}", path.name)]
        manifests = [document((path / "manifest.json").read_bytes(), 1) for path in directories]
        return max(manifests, key=lambda manifest: manifest["generation"], default=None)

    def merged(self, manifest: Json, task: Json) -> list[bytes]:
        """Return the records of each item of the plan, from the shard files of a task."""
        directory = self.root / "outputs" / manifest["result_digest"] / task["task"]
        rows, result = b"", []
        for place, shard in enumerate(task["shards"]):
            data = (directory / f"{place:06d}-{shard['shard']}.jsonl.zst").read_bytes()
            shard_rows = rows_of_trailer(data, shard["digest"])
            rows += shard_rows
            result += records_of_rows(shard_rows, unzstd(data))
        if sha256(rows) != task["digest"]:
            raise Unsound("tables of another digest")
        return result


def _path(entry: Json) -> bytes:
    return entry["path"].encode() if "path" in entry else b64decode(entry["path_b64"])


def _is_below(path: bytes, top: bytes) -> bool:
    return path == top or path.startswith(top + b"/")


def _is_locked(path: Path) -> bool:
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
