"""The process that executes a capsule: `python -m codebatch.engines.capsule_process`. Only `run_part` starts it.

It reads the capsule on standard input and writes the answer to standard output. The capsule becomes a batch in a
temporary store in the current directory, and is executed as any other batch.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from codebatch.coordinator.analysis.execution import execute
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.coordinator.engines.capsules import codebatch_version, python_version
from codebatch.coordinator.processes.limits import ResourceLimits, default_memory_bytes, number_call_seconds
from codebatch.errors import CodebatchError, InvalidConfiguration, TaskProcessFailed, ToolMismatch
from codebatch.model.capsule import (
    CAPSULE_FORMAT,
    REFUSAL_CHARACTERS_MAX,
    AnswerHeader,
    CapsuleHeader,
    CapsuleObject,
    Refusal,
)
from codebatch.model.command_table import CommandTaskLocation, TaskLocation
from codebatch.model.entry import encode_entry, snapshot_id
from codebatch.model.part import ExternalOutcome
from codebatch.model.plan import Plan, plan_digest
from codebatch.model.shard import ShardRule
from codebatch.model.task import CustomTaskLocation
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.isolated_tasks import isolated_catalogue
from codebatch.protocol.launch import WorkerSettings
from codebatch.store.batches.batch_directory import BatchDir, create_batch
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.capsules import answer_format, capsule_format
from codebatch.store.objects.frames import decompress_one
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.objects.referenced_objects import may_name_objects
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.plain_outcomes import UnmergedOutcomes
from codebatch.store.snapshots.index_frames import make_snapshot_index
from codebatch.store.snapshots.snapshots import SnapshotSource, publish_snapshot
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from codebatch.system.processes.processes import die_with_parent

OVERDUE_STATUS = 75


def main(arguments: list[str]) -> int:
    """Execute the capsule on standard input, and write the answer to standard output. Return the exit status."""
    die_with_parent(int(arguments[0]))
    started = time.monotonic()
    # The programs of tasks must not write to the answer.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        header, objects = capsule_format.decode(sys.stdin.buffer.read())
        _limit_time(header.seconds_max)
        refusal: Refusal | None = None
        outcomes: Iterable[ExternalOutcome] = ()
        try:
            _check_versions(header)
            outcomes = list(_execute(header, objects, Path.cwd()))
        except CodebatchError as error:
            if not _is_refusal(error):
                sys.stderr.write(f"{error.message}\n")
                return error.exit_status
            # The hints of other versions name the store of this process.
            hint = None if isinstance(error, ToolMismatch) else error.hint
            refusal = Refusal(
                code=ToolMismatch.code,
                message=error.message[:REFUSAL_CHARACTERS_MAX],
                hint=None if hint is None else hint[:REFUSAL_CHARACTERS_MAX],
            )
        answer = AnswerHeader(
            plan_digest=header.plan_digest,
            shards=tuple(shard.id for shard in header.shards),
            host=socket.gethostname()[:256],
            codebatch=codebatch_version(),
            python=python_version(),
            seconds=round(time.monotonic() - started, 3),
            cpu_seconds=round(_cpu_seconds(), 3),
            refusal=refusal,
        )
        answer_format.write(output.write, answer, outcomes)
    return 0


def _is_refusal(error: CodebatchError) -> bool:
    """Return whether an error means that this machine can execute no part. Otherwise, another try may succeed."""
    # The coordinator has imported the tasks. So if the process of an import dies here, the cause may be the memory.
    return isinstance(error, ToolMismatch | InvalidConfiguration) and not isinstance(error, TaskProcessFailed)


def _limit_time(seconds: float) -> None:
    """End this process after a time, whatever it is doing. Its workers end with it."""

    def end() -> NoReturn:
        sys.stderr.write(f"the part did not end within {seconds:,.0f} s\n")
        sys.stderr.flush()
        os._exit(OVERDUE_STATUS)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _cpu_seconds() -> float:
    uses = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def _check_versions(header: CapsuleHeader) -> None:
    """Raise ToolMismatch if this process has another version of the program or of Python than the coordinator."""
    if header.format != CAPSULE_FORMAT:
        raise ToolMismatch(f"the capsule has format {header.format}, but this version reads format {CAPSULE_FORMAT}")
    for name, there, here in (
        ("codebatch", header.codebatch, codebatch_version()),
        ("Python", header.python, python_version()),
    ):
        if there != here:
            raise ToolMismatch(f"{name} {there} made the batch, but {name} {here} is installed")


def _execute(header: CapsuleHeader, objects: Iterable[CapsuleObject], directory: Path) -> Iterator[ExternalOutcome]:
    """Execute the tasks of a capsule, and yield their outcomes. Raises CodebatchError."""
    store, _ = create_store(RealFiles(), directory / "store")
    _store_objects(store, objects)
    catalogue = _make_catalogue(header, directory)
    with store.writing() as lock:
        batch = _create_batch(store, header)
        plan = batch.plan()
        catalogue.look_up_commands(plan.task_names)
        workers = WorkerSettings(
            store=str(store.root),
            batch=batch.id,
            coordinator=new_holder_id(),
            store_lock=lock.descriptor,
            own_tasks=catalogue.locations,
            hash_seed=header.hash_seed,
        )
        limits = header.limits
        execute(
            store,
            batch,
            workers,
            catalogue=catalogue,
            jobs=header.jobs,
            limits=ResourceLimits(
                file_seconds=limits.file_seconds,
                project_seconds=limits.file_seconds,
                memory_bytes=limits.memory_bytes or default_memory_bytes(header.jobs),
                call_seconds=number_call_seconds(plan.task_names, limits.call_seconds),
            ),
            scope=RunScope(),
            watcher=None,
            reuses=False,
        )
    outcomes = OutcomeRegisters(batch.files, batch.root)
    source = UnmergedOutcomes(outcomes, load_ledger(plan, outcomes))
    for shard in plan.shards:
        for task in plan.task_names:
            for external in source.iter_outcomes(shard, task):
                if may_name_objects(external.outcome.counts):
                    raise ToolMismatch(
                        f"the task {task} proposed changes of files, and these objects are not sent back",
                        hint="run without --on",
                    )
                yield external


def _store_objects(store: StoreDir, objects: Iterable[CapsuleObject]) -> None:
    with PackWriter(store.objects()) as writer:
        for each in objects:
            if writer.add(decompress_one(each.frame, each.size)) != each.digest:
                raise ValueError(f"the object {each.digest} of the capsule is damaged")


def _create_batch(store: StoreDir, header: CapsuleHeader) -> BatchDir:
    index = make_snapshot_index(map(encode_entry, header.items))
    source = SnapshotSource(base="", roots=(), listing="")
    publish_snapshot(store.files, store.root, index, source=source, created_at="")
    plan = Plan(
        digest=plan_digest(index.digest, header.tasks),
        snapshot_id=snapshot_id(index.digest),
        snapshot_digest=index.digest,
        pipeline=header.pipeline,
        tasks=header.tasks,
        shard_rule=ShardRule(),
        shards=header.shards,
        contexts=header.contexts,
    )
    return create_batch(store, plan, sources=(), at_ns=wall_ns())


def _make_catalogue(header: CapsuleHeader, directory: Path) -> TaskCatalogue:
    """Write the files of custom tasks, and return the catalogue with all tasks of the capsule."""
    locations: dict[str, TaskLocation] = {}
    for name, location in header.locations.items():
        home = directory / "tasks" / name
        home.mkdir(parents=True)
        if isinstance(location, CommandTaskLocation):
            locations[name] = replace(location, project=str(home))
        else:
            locations[name] = _write_custom_task(header, name, location, home)
    return isolated_catalogue(locations, file_seconds=header.limits.file_seconds)


def _write_custom_task(
    header: CapsuleHeader, name: str, location: CustomTaskLocation, home: Path
) -> CustomTaskLocation:
    paths: dict[str, str] = {}
    for number, file in enumerate(file for file in header.files if file.task == name):
        path = home / f"{number}.py"
        path.write_bytes(file.content)
        paths[file.name] = str(path)
    own = paths.pop("")
    return replace(location, python=f"{own}{location.python}", files=paths, project=str(home))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
