"""The checks of the self-tests. Each yields the violations that it finds, and counts the items that it has checked.

A check raises an error if something that it needs does not exist or cannot be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from codebatch.errors import InvalidInput, Stopped, StoreError
from codebatch.index.build import build_generation
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.record_counts import add_counts
from codebatch.model.text.quantities import count_text
from codebatch.operations.maintenance.diagnosis import diagnose_store
from codebatch.operations.maintenance.verification import verify_batch
from codebatch.operations.project.pipelines import complete_tasks, find_pipeline, pipeline_names
from codebatch.operations.runs.indexing import require_outputs, verify_index
from codebatch.query.sources.records import BatchRecords
from codebatch.selftests.names import check_file_names
from codebatch.selftests.subject import GateFailure, SelftestSubject
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir

SAMPLED_FILES_SHARE = 0.05
"""Share of the files of a batch that `resume-equals` executes again."""


def check_store(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Read every byte of the store."""
    diagnosis = diagnose_store(subject.store, is_full=True)
    checked["stores"] = 1
    checked["batches"], checked["snapshots"] = diagnosis.batches, diagnosis.snapshots
    checked["result files"] = diagnosis.files
    for damage in diagnosis.damaged:
        yield GateFailure(message=damage.problem, location=", ".join(damage.names), suggestion=damage.hint or None)


def check_plan(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Check that the plan covers the files of its snapshot in a valid order, and that all its results exist."""
    batch = subject.batch
    plan, records = batch.plan(), BatchRecords(subject.store, batch)
    files = checked["files"] = len(records.items)
    if not plan.item_count == batch.about.items == files:
        message = "the plan does not cover the files of the snapshot"
        yield GateFailure(message=message, expected=str(files), actual=str(plan.item_count))
    before: set[str] = set()
    for task in plan.tasks:
        if task.name in before:
            yield GateFailure(message="a task is planned twice", location=task.name)
        if late := sorted(set(task.needs) - before):
            message = "a task comes before a task that it needs"
            yield GateFailure(message=message, location=task.name, expected=", ".join(late))
        before.add(task.name)
    if records.task_names != plan.task_names:
        expected, actual = (", ".join(names) for names in (plan.task_names, records.task_names))
        message = "the tasks that have results are not the tasks of the plan"
        yield GateFailure(message=message, expected=expected, actual=actual)
        return
    for name in plan.task_names:
        tally = records.source.count_outcomes((name,))
        checked["results"] += tally.results
        missing_counts = {"open": tally.open_count, "failed": tally.failed, "cancelled": tally.cancelled}
        if tally.results != tally.planned:
            missing = ", ".join(f"{count:,} {word}" for word, count in missing_counts.items() if count)
            yield GateFailure(
                message=f"{name} lacks results: {missing}",
                location=name,
                expected=str(tally.planned),
                actual=str(tally.results),
                suggestion=f"resume with: codebatch resume --batch {batch.id}",
            )


def check_outputs(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Read every record of the outputs without an index, and compare the records with their counts."""
    outputs = require_outputs(subject.batch)
    for task in outputs.manifest.tasks:
        for index, shard in enumerate(task.shards):
            location = str(outputs.shard_path(task, index))
            try:
                counts = count_lines(b"".join(outputs.iter_items(task, index)))
            except StoreError as error:
                yield GateFailure(message=error.message, location=location, suggestion=error.hint)
                continue
            checked["shard files"] += 1
            checked["records"] += counts.records
            if counts != shard.counts:
                message = "its records do not match its counts"
                yield GateFailure(message=message, location=location, expected=str(shard.counts), actual=str(counts))
        if add_counts(shard.counts for shard in task.shards) != task.counts:
            yield GateFailure(message="the counts of a task do not match its shards", location=task.task)


def check_reproducible_results(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Execute a sample of the files again without reuse, and check that the results have the same bytes."""
    batch = subject.batch
    verified, signal_status = verify_batch(
        subject.execution(), subject.store, batch, SAMPLED_FILES_SHARE, subject.listener
    )
    if signal_status:
        raise Stopped("stopped while running a sample of the batch again", exit_status=signal_status)
    checked["files"], checked["results"] = verified.files, verified.results
    for difference in verified.differences:
        yield GateFailure(
            message=f"{difference.task} gives a different result for a file when executed again",
            location=difference.path,
            expected=difference.first,
            actual=difference.second,
            suggestion=f"see: codebatch verify {batch.id}",
        )
    if verified.failed:
        yield GateFailure(message=f"{count_text(verified.failed, 'result')} could not be produced again")


def check_index(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Compare the index with the records, and with the words of the files."""
    verified = verify_index(subject.store, subject.batch, subject.listener.note)
    checked["shard files"], checked["terms"] = verified.shard_files, verified.terms
    return iter(())


def check_index_writes(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Check that building an index changes nothing in the store outside of indexes/.

    Other processes cannot write to the store during the check.
    """
    store, outputs = subject.store, require_outputs(subject.batch)
    with store.exclusive_lock():
        before = _file_states(store)
        build_generation(store, subject.batch, outputs, subject.listener.note, rebuilds=True)
        after = _file_states(store)
    checked["names"] = len(before)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield GateFailure(message="it was added, removed or changed while an index was built", location=name)


def _file_states(store: StoreDir) -> dict[str, tuple[int, ...]]:
    """Return the mode, inode, length and time of change of each path of the store outside of indexes/."""
    states: dict[str, tuple[int, ...]] = {}
    for path in store.root.rglob("*"):
        name = path.relative_to(store.root)
        if name.parts[0] != layout.INDEXES:
            status = path.lstat()
            states[str(name)] = (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns)
    return states


def check_program(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Load every command, and every task of each pipeline, those of the configuration too."""
    try:
        checked["commands"] = subject.load_commands()
    except (ImportError, AttributeError) as error:
        yield GateFailure(message=f"a command cannot be loaded: {error}", suggestion="reinstall codebatch")
    configuration = subject.execution().configuration
    for name in pipeline_names(configuration):
        checked["pipelines"] += 1
        try:
            complete_tasks(configuration.catalogue, find_pipeline(configuration, name).tasks)
        except InvalidInput as error:
            yield GateFailure(message=error.message, location=name, suggestion=error.hint)


CHECKS: dict[str, Callable[[SelftestSubject, Counter[str]], Iterator[GateFailure]]] = {
    "store-schema": check_store,
    "no-foreign-files": check_file_names,
    "plan-covered": check_plan,
    "outputs-match": check_outputs,
    "resume-equals": check_reproducible_results,
    "index-rebuilt": check_index,
    "index-writes-only-indexes": check_index_writes,
    "api-complete": check_program,
}
"""The check of each self-test."""
