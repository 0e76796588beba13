"""The self-tests of results: `plan-covered`, `task-order`, `outputs-match` and `resume-equals`."""

from __future__ import annotations

from codebatch.errors import Stopped, StoreCorrupt
from codebatch.model.analysis.item_table import result_digest, task_digest
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.plan import Plan
from codebatch.model.record_counts import add_counts
from codebatch.model.shard import ProjectWork
from codebatch.model.text.quantities import count_text
from codebatch.operations.maintenance.verification import verify
from codebatch.query.sources.records import BatchRecords
from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import Subject
from codebatch.store.results.outputs import Outputs, TaskOutput, current_outputs

SAMPLE_SHARE = 0.05
"""Share of the files of a batch that `resume-equals` executes again."""


def check_covered(subject: Subject, findings: SelftestFindings) -> None:
    """Check that the plan covers every file of its snapshot, and that every task has a result for every file."""
    batch = subject.batch
    plan, records = batch.plan(), BatchRecords(subject.store, batch)
    files = len(records.items)
    findings.count("files", files)
    if not plan.items == batch.about.items == files:
        findings.fail("the plan does not cover the files of the snapshot", expected=files, actual=plan.items)
    if records.task_names != plan.task_names:
        expected, actual = (", ".join(names) for names in (plan.task_names, records.task_names))
        findings.fail("the tasks that have results are not the tasks of the plan", expected=expected, actual=actual)
        return
    for task in plan.task_names:
        tally = records.source.tally((task,))
        findings.count("results", tally.results)
        missing_counts = {"open": tally.open, "failed": tally.failed, "cancelled": tally.cancelled}
        if tally.results != tally.planned:
            missing = ", ".join(f"{count:,} {word}" for word, count in missing_counts.items() if count)
            hint = f"resume with: codebatch resume --batch {batch.id}"
            findings.fail(
                f"{task} lacks results: {missing}",
                location=task,
                expected=tally.planned,
                actual=tally.results,
                suggestion=hint,
            )
    outputs = current_outputs(batch)
    if outputs is not None:
        _check_rows(plan, outputs, findings)


def _check_rows(plan: Plan, outputs: Outputs, findings: SelftestFindings) -> None:
    """Check that the shard files of each file task have one row for each item that the plan assigns to the shard."""
    for task in outputs.manifest.tasks:
        if task.scope != "file":
            continue
        # If a batch has no files, each task has one empty shard file (`Ledger.pieces`).
        planned = [(shard.id, shard.items) for shard in plan.shards] or [(ProjectWork(task.task).id, 0)]
        if len(task.shards) != len(planned):
            findings.fail(
                "expected one file per shard",
                location=task.task,
                expected=len(planned),
                actual=len(task.shards),
            )
            continue
        for index, (name, items) in enumerate(planned):
            location = str(outputs.shard_path(task, index))
            with findings.recording_damage(location):
                rows = outputs.trailer(task, index).items
                if (name, items) != (task.shards[index].shard, rows):
                    findings.fail(
                        "it does not match the files of its shard", location=location, expected=items, actual=rows
                    )


def check_order(subject: Subject, findings: SelftestFindings) -> None:
    """Check that each task of the plan occurs once, and after all tasks that it needs.

    Check also that the outputs have the same tasks in the same order.
    """
    batch = subject.batch
    plan = batch.plan()
    before: set[str] = set()
    for task in plan.tasks:
        findings.count("tasks")
        if task.name in before:
            findings.fail("a task is planned twice", location=task.name)
        late = sorted(set(task.needs) - before)
        if late:
            findings.fail("a task comes before a task that it needs", location=task.name, expected=", ".join(late))
        before.add(task.name)
    outputs = current_outputs(batch)
    if outputs is not None:
        merged = tuple(task.task for task in outputs.manifest.tasks)
        if merged != plan.task_names:
            expected, actual = (", ".join(names) for names in (plan.task_names, merged))
            findings.fail("the order of the outputs differs from the plan", expected=expected, actual=actual)


def check_outputs(subject: Subject, findings: SelftestFindings) -> None:
    """Verify every byte of the outputs.

    Frames are compared with the rows of the item table, counts with records, and files with their digests.
    """
    batch = subject.batch
    outputs = current_outputs(batch)
    if outputs is None:
        findings.skipped = (
            f"batch {batch.id} has no merged results yet; resume it with: codebatch run --batch {batch.id}"
        )
        return
    for task in outputs.manifest.tasks:
        _check_task(outputs, task, findings)
    expected = outputs.manifest.result_digest
    actual = result_digest((task.task, task.digest) for task in outputs.manifest.tasks)
    if actual != expected:
        findings.fail(
            "the digest of the results does not match the digests of the tasks", expected=expected, actual=actual
        )


def _check_task(outputs: Outputs, task: TaskOutput, findings: SelftestFindings) -> None:
    tables: list[bytes] = []
    for index, shard in enumerate(task.shards):
        location = str(outputs.shard_path(task, index))
        with findings.recording_damage(location):
            tables.append(outputs.trailer(task, index).table)
            lines = b"".join(outputs.iter_items(task, index))
            try:
                counts = count_lines(lines)
            except ValueError as error:
                raise StoreCorrupt(f"{location} contains invalid records: {error}") from error
            findings.count("shard files")
            findings.count("records", counts.records)
            if counts != shard.counts or len(lines) != shard.bytes:
                findings.fail(
                    "its records do not match its counts", location=location, expected=shard.counts, actual=counts
                )
    if len(tables) < len(task.shards):
        return  # The missing shards are already reported.
    if task_digest(b"".join(tables)) != task.digest:
        findings.fail("the digest of a task does not match its results", location=task.task, expected=task.digest)
    if add_counts(shard.counts for shard in task.shards) != task.counts:
        findings.fail("the counts of a task do not match its shards", location=task.task)


def check_reproducible(subject: Subject, findings: SelftestFindings) -> None:
    """Execute a sample of the files again without reuse, and check that the results have the same bytes."""
    batch = subject.batch
    verified = verify(subject.execution, subject.store, batch, SAMPLE_SHARE, subject.listener)
    if verified.signal_status:
        raise Stopped("stopped while running a sample of the batch again", exit_status=verified.signal_status)
    findings.count("files", verified.files)
    findings.count("results", verified.results)
    for task, difference in verified.differences:
        findings.fail(
            f"{task} gives a different result for a file when executed again",
            location=difference.path,
            expected=difference.first,
            actual=difference.second,
            suggestion=f"see: codebatch verify {batch.id}",
        )
    if verified.failed:
        findings.fail(f"{count_text(verified.failed, 'result')} could not be produced again")
