"""Names of all files in a store (SPEC.md "Store layout"): functions that build each name, and parsers of names.

If a name does not match its pattern, a parser returns None.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from codebatch.model.digest import Digest
from codebatch.model.outcome import OutcomeRegister
from codebatch.model.shard import SHARD_ID_PATTERN, ShardId

STORE_DIRECTORY = ".codebatch"
"""The default name of a store. It is searched for from the current directory upwards."""
BARE_STORE_DIRECTORY = "codebatch"
"""The name of a store in the git directory that linked work trees share, if the repository has no main work tree."""
REPORT_FILE = "codebatch-report.html"
"""The default output file of `report`. Snapshots exclude it, because it would make each batch stale."""
PART_FILE_SUFFIX = ".cbpart"
"""The end of the name of a part file. Snapshots exclude part files, because parts must have equal snapshots."""

STORE_FILE = "store.json"
UNTRUSTED_FILE = "untrusted.json"
CREATED_HERE_FILE = "made-here"
OBJECTS = "objects"
SNAPSHOTS = "snapshots"
BATCHES = "batches"
INDEXES = "indexes"
CACHE = "cache"
LOCKS = "locks"
PINS = "pins"

STORE_LOCK = "store"
BATCHES_LOCK = "batches"
UNTRUSTED_LOCK = "untrusted"

PACK_SUFFIX = ".pack"
INDEX_SUFFIX = ".idx"
DAMAGED_SUFFIX = ".bad"
PART_SUFFIX = ".part"

SNAPSHOT_FILE = "snapshot.json"
SNAPSHOT_INDEX = "files.index.jsonl.zst"

OBJECTS_COLLECTED = "objects-collected"
"""A file in `cache/`. Its modification time is the time of the last garbage collection of packs."""

SNAPSHOT_ID_PATTERN = re.compile(r"snap-[0-9a-f]{16}\Z")
STAT_CACHE_PATTERN = re.compile(r"stat-[0-9a-f]{16}\.bin\Z")
RESULT_CACHE_PATTERN = re.compile(r"(?:churn|durations|headline)-[0-9a-f]{16}\.bin\Z|stat-[0-9a-f]{16}\.stamp\Z")
"""Files in `cache/` with results that are expensive to compute, and files of earlier versions."""
STAT_STAMP = "stat.stamp"
"""A file in `cache/`, from whose time the time of a stat cache is read."""

TERMS = "terms"
"""The directory in `indexes/` with the terms of shard files.

The other directories in `indexes/` each belong to an indexed batch.
"""

INDEX_FILE = "index.json"
INDEX_BASE = "base"
INDEX_OVERLAY = "overlay"
INDEX_CONTENTS = "contents.zst"
INDEX_PART_PATTERN = re.compile(
    rf"({INDEX_BASE}|{INDEX_OVERLAY})-\d{{6,}}\.lmdb\.zst|words-\d{{6,}}\.bin|{re.escape(INDEX_CONTENTS)}", re.ASCII
)
"""The name of a part of an index: part of a layer, a word segment, or the contents of the items."""

BATCH_FILE = "batch.json"
PLAN_FILE = "plan.json"
WORK_FILE = "work.json"
SETTLED_FILE = "settled.json"
HOLDERS = "holders"
JOURNAL = "journal"
LEASES = "leases"
RESULTS = "results"
OUTCOMES = "outcomes"
OUTPUTS = "outputs"
SCRATCH = "scratch"
REQUESTS = "requests"
APPLIED = "applied"
LOGS = "logs"
EVENTS = "events"
QUESTIONS = "questions"

MANIFEST_FILE = "manifest.json"

_SHARD_PATTERN = f"({SHARD_ID_PATTERN})"
_LEASE_NAME = re.compile(_SHARD_PATTERN + r"\.(\d{1,9})\.(\d{1,9})\Z", re.ASCII)
_COORDINATOR_LEASE_NAME = re.compile(r"coordinator\.([1-9]\d{0,8})\Z", re.ASCII)
_LOG_NAME = re.compile(_SHARD_PATTERN + r"\.(\d{1,9})\.r([1-9]\d{0,8})\.([1-9]\d{0,8})\.log\Z", re.ASCII)
_APPLICATION_NAME = re.compile(r"([0-9]{6,9})\.json\Z", re.ASCII)
_EVENTS_NAME = re.compile(r"([1-9]\d{0,8})\.jsonl\Z", re.ASCII)
_QUESTION_NAME = re.compile(
    _SHARD_PATTERN + r"\.(\d{1,9})\.r([1-9]\d{0,8})\.([1-9]\d{0,8})\.([1-9]\d{0,8})\.json\Z", re.ASCII
)
_REGISTER_NAME = re.compile(
    _SHARD_PATTERN + r"\.(0|[1-9]\d{0,8})\.([a-z][a-z0-9_-]{0,63})\.r([1-9]\d{0,8})\Z", re.ASCII
)
_WHOLE_SHARD_ID = re.compile(_SHARD_PATTERN + r"\Z")
_GENERATION_NAME = re.compile(r"[1-9]\d{0,8}\Z", re.ASCII)
HOLDER_PATTERN = re.compile(r"[0-9a-f]{32}\Z")


def stat_cache_name(source: Digest) -> str:
    """Return the name of the stat cache of a source. `source` is a digest of the source's path."""
    return f"stat-{source[:16]}.bin"


def churn_cache_name(directory: Digest) -> str:
    """Return the name of the cached git history of a work tree. `directory` is the digest of its path."""
    return f"churn-{directory[:16]}.bin"


def durations_cache_name(directory: Digest) -> str:
    """Return the name of the cached durations of a directory's commands. `directory` is the digest of its path."""
    return f"durations-{directory[:16]}.bin"


def headline_cache_name(batch: Digest) -> str:
    """Return the name of the cached headline of a batch. `batch` is the digest of its ID."""
    return f"headline-{batch[:16]}.bin"


def lease_name(shard: ShardId, start: int, epoch: int) -> str:
    """Return the name in `leases/` of the lease of a unit. `start` is the first item of the unit in its shard."""
    return f"{shard}.{start}.{epoch}"


def parse_lease_name(name: str) -> tuple[ShardId, int, int] | None:
    """Parse the name of a lease into (shard, start, epoch). Return None for any other name."""
    match = _LEASE_NAME.match(name)
    return (ShardId(match[1]), int(match[2]), int(match[3])) if match else None


def coordinator_lease_name(epoch: int) -> str:
    """Return the name in `leases/` of the coordinator lease, which covers a whole work batch."""
    return f"coordinator.{epoch}"


def parse_coordinator_lease_name(name: str) -> int | None:
    """Return the epoch in the name of a coordinator lease, or None for any other name."""
    match = _COORDINATOR_LEASE_NAME.match(name)
    return int(match[1]) if match else None


def request_name(n: int) -> str:
    """Return the name in `requests/` of the `n`th request."""
    return f"{n:06d}.json"


def application_name(n: int) -> str:
    """Return the name in `applied/` of the `n`th application of change sets."""
    return f"{n:06d}.json"


def parse_application_name(name: str) -> int | None:
    """Return the number in the name of an application of change sets, or None for any other name."""
    match = _APPLICATION_NAME.match(name)
    return int(match[1]) if match and application_name(int(match[1])) == name else None


def events_name(epoch: int) -> str:
    """Return the name in `events/` of the event file that the coordinator with the lease epoch `epoch` writes."""
    return f"{epoch}.jsonl"


def parse_events_name(name: str) -> int | None:
    """Return the epoch in the name of an event file, or None for any other name."""
    match = _EVENTS_NAME.match(name)
    return int(match[1]) if match else None


def log_name(shard: ShardId, item: int, round_: int, epoch: int) -> str:
    """Return the name in `logs/` of the log of an attempt."""
    return f"{shard}.{item}.r{round_}.{epoch}.log"


def parse_log_name(name: str) -> tuple[ShardId, int, int, int] | None:
    """Parse the name of a log into (shard, item, round, epoch). Return None for any other name."""
    match = _LOG_NAME.match(name)
    return (ShardId(match[1]), int(match[2]), int(match[3]), int(match[4])) if match else None


class QuestionNameParts(NamedTuple):
    """The parts of the name of a question's file.

    They are the attempt that asked, and the number of the question in this attempt, from 1.
    """

    shard: ShardId
    item: int
    round: int
    epoch: int
    number: int


def question_name(place: QuestionNameParts) -> str:
    """Return the name in `questions/` of a question."""
    return f"{place.shard}.{place.item}.r{place.round}.{place.epoch}.{place.number}.json"


def parse_question_name(name: str) -> QuestionNameParts | None:
    """Parse the name of a question. Return None for any other name."""
    match = _QUESTION_NAME.match(name)
    return QuestionNameParts(ShardId(match[1]), *map(int, match.groups()[1:])) if match else None


def register_name(shard: ShardId, start: int, task: str, round_: int) -> str:
    """Return the name in `outcomes/` of the register for the outcome of a task.

    `start` is the first item in the shard.
    """
    return f"{shard}.{start}.{task}.r{round_}"


def is_register_name(name: str) -> bool:
    """Return whether `name` is the name of a register, in exactly the form that `register_name` returns."""
    return _REGISTER_NAME.match(name) is not None


def parse_register_name(name: str) -> OutcomeRegister | None:
    """Parse the name of a register. Return None for any other name."""
    match = _REGISTER_NAME.match(name)
    if match is None:
        return None

    return OutcomeRegister(ShardId(match[1]), int(match[2]), match[3], int(match[4]))


def segment_name(holder: str) -> str:
    """Return the name in `results/` of the segment to which a holder appends its results."""
    return f"{holder}.seg"


def adopted_name(digest: Digest) -> str:
    """Return the name in `results/` of a shard file reused from a base, from the digest of its trailer."""
    return f"{digest}.shard"


def journal_name(holder: str) -> str:
    """Return the name of a holder's journal."""
    return f"{holder}.jsonl"


def cell_name(holder: str) -> str:
    """Return the name in `holders/` of a holder's progress cell, a file with the work that the holder is doing."""
    return f"{holder}.cell"


def is_shard_id(text: str) -> bool:
    """Return whether a text is a shard ID."""
    return _WHOLE_SHARD_ID.match(text) is not None


def shard_file_name(place: int, shard: ShardId) -> str:
    """Return the name of a shard's file in the outputs of a task.

    `place` is the shard's number in the plan, so names sort in plan order.
    """
    return f"{place:06d}-{shard}.jsonl.zst"


def index_part_name(layer: str, number: int) -> str:
    """Return the name of part `number` of a layer of an index. Names sort in numeric order."""
    return f"{layer}-{number:06d}.lmdb.zst"


def index_words_name(number: int) -> str:
    """Return the name of word segment `number` of an index."""
    return f"words-{number:06d}.bin"


def parse_generation_name(name: str) -> int | None:
    """Return the number in the directory name of an index of a batch, or None for any other name."""
    return int(name) if _GENERATION_NAME.match(name) else None
