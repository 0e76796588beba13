"""Measure a lease and a durable commit of four tasks on a disk: `python -m bench.probes.durable DIRECTORY COUNT`.

Print microseconds as JSON. To learn how many fsyncs a commit makes, run this under strace with two counts.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from bench.probes.engine import TASKS
from codebatch.model.outcome import TaskOutcome
from codebatch.model.shard import ShardId
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store import layout
from codebatch.store.batches.holders import HolderFile, HolderRegistration, new_holder_id
from codebatch.store.results.outcomes import OutcomeCommitter, encode_outcome
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host

# About as many lines as a task emits for 64 files of ordinary code.
_ITEMS = [b'{"kind":"metric","path":"a/path/like/others.py","metric":"bytes","value":4711}\n' * 8] * 64


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that the probe prints."""

    lease_us: float
    encode_us: float
    commit_us: float


def measure(root: Path, count: int) -> Figures:
    """Lease, encode and commit `count` units in a new directory with the layout of a batch."""
    files = RealFiles()
    for name in (layout.HOLDERS, layout.LEASES, layout.RESULTS, layout.OUTCOMES):
        files.make_directory(root / name)
    about = HolderFile(holder=new_holder_id(), role="worker", pid=os.getpid(), host=this_host(), since_ns=wall_ns())
    holder = HolderRegistration(files, root, about)
    committer = OutcomeCommitter(files, root, holder.id)
    frame_writer = FrameWriter()
    spent = [0.0, 0.0, 0.0]
    for index in range(count):
        shard = ShardId(f"{index:08x}")
        times = [time.perf_counter()]
        leased = holder.try_lease(shard, 0, 1)
        times.append(time.perf_counter())
        encoded = [
            encode_outcome(
                TaskOutcome(shard=shard, task=task, start=0, end=len(_ITEMS), type="result"), _ITEMS, frame_writer
            )
            for task in TASKS
        ]
        times.append(time.perf_counter())
        commit = committer.commit_outcomes(encoded, epoch=1, round_=1)
        times.append(time.perf_counter())
        assert leased
        assert len(commit.outcomes) == len(TASKS)
        spent = [total + after - before for total, before, after in zip(spent, times, times[1:], strict=False)]
    committer.close()
    holder.close()
    lease, encode, commit_us = (total / count * 1e6 for total in spent)
    return Figures(lease_us=lease, encode_us=encode, commit_us=commit_us)


if __name__ == "__main__":
    print(msgspec.json.encode(measure(Path(sys.argv[1]), int(sys.argv[2]))).decode())
