"""The self-tests of results: `plan-covered`, `task-order`, `outputs-match` and `resume-equals`."""

from __future__ import annotations

from codebatch.errors import Stopped, StoreCorrupt
from codebatch.model.analysis.item_table import result_digest, task_digest
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.plan import Plan
from codebatch.model.record_counts import add_counts
from codebatch.model.shard import ProjectWork
from codebatch.model.text.quantities import count_text
from codebatch.operations.maintenance.verification import verify_batch
from codebatch.query.sources.records import BatchRecords
from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import SelftestSubject
from codebatch.store.results.outputs import MergedOutputs, TaskOutput, current_outputs

SAMPLED_FILES_SHARE = 0.05
"""Share of the files of a batch that `resume-equals` executes again."""


def check_items_covered(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check that the plan covers every file of its snapshot, and that every task has a result for every file."""
    batch = subject.batch
    plan, records = batch.plan(), BatchRecords(subject.store, batch)
    files = len(records.items)
    findings.count_checked("files", files)
    if not plan.item_count == batch.about.items == files:
        findings.add_failure(
            "the plan does not cover the files of the snapshot", expected=files, actual=plan.item_count
        )
    if records.task_names != plan.task_names:
        expected, actual = (", ".join(names) for names in (plan.task_names, records.task_names))
        findings.add_failure(
            "the tasks that have results are not the tasks of the plan", expected=expected, actual=actual
        )
        return
    for task in plan.task_names:
        tally = records.source.count_outcomes((task,))
        findings.count_checked("results", tally.results)
        missing_counts = {"open": tally.open_count, "failed": tally.failed, "cancelled": tally.cancelled}
        if tally.results != tally.planned:
            missing = ", ".join(f"{count:,} {word}" for word, count in missing_counts.items() if count)
            hint = f"resume with: codebatch resume --batch {batch.id}"
            findings.add_failure(
                f"{task} lacks results: {missing}",
                location=task,
                expected=tally.planned,
                actual=tally.results,
                suggestion=hint,
            )
    outputs = current_outputs(batch)
    if outputs is not None:
        _check_item_rows(plan, outputs, findings)


def _check_item_rows(plan: Plan, outputs: MergedOutputs, findings: SelftestFindings) -> None:
    """Check that the shard files of each file task have one row for each item that the plan assigns to the shard."""
    for task in outputs.manifest.tasks:
        if task.scope != "file":
            continue
        # If a batch has no files, each task has one empty shard file (`Ledger.pieces`).
        planned = [(shard.id, shard.items) for shard in plan.shards] or [(ProjectWork(task.task).id, 0)]
        if len(task.shards) != len(planned):
            findings.add_failure(
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
                    findings.add_failure(
                        "it does not match the files of its shard", location=location, expected=items, actual=rows
                    )


def check_record_order(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check that each task of the plan occurs once, and after all tasks that it needs.

    Check also that the outputs have the same tasks in the same order.
    """
    batch = subject.batch
    plan = batch.plan()
    before: set[str] = set()
    for task in plan.tasks:
        findings.count_checked("tasks")
        if task.name in before:
            findings.add_failure("a task is planned twice", location=task.name)
        late = sorted(set(task.needs) - before)
        if late:
            findings.add_failure(
                "a task comes before a task that it needs", location=task.name, expected=", ".join(late)
            )
        before.add(task.name)
    outputs = current_outputs(batch)
    if outputs is not None:
        merged = tuple(task.task for task in outputs.manifest.tasks)
        if merged != plan.task_names:
            expected, actual = (", ".join(names) for names in (plan.task_names, merged))
            findings.add_failure("the order of the outputs differs from the plan", expected=expected, actual=actual)


def check_outputs(subject: SelftestSubject, findings: SelftestFindings) -> None:
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
        _check_task_output(outputs, task, findings)
    expected = outputs.manifest.result_digest
    actual = result_digest((task.task, task.digest) for task in outputs.manifest.tasks)
    if actual != expected:
        findings.add_failure(
            "the digest of the results does not match the digests of the tasks", expected=expected, actual=actual
        )


def _check_task_output(outputs: MergedOutputs, task: TaskOutput, findings: SelftestFindings) -> None:
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
            findings.count_checked("shard files")
            findings.count_checked("records", counts.records)
            if counts != shard.counts or len(lines) != shard.bytes:
                findings.add_failure(
                    "its records do not match its counts", location=location, expected=shard.counts, actual=counts
                )
    if len(tables) < len(task.shards):
        return  # The missing shards are already reported.
    if task_digest(b"".join(tables)) != task.digest:
        findings.add_failure(
            "the digest of a task does not match its results", location=task.task, expected=task.digest
        )
    if add_counts(shard.counts for shard in task.shards) != task.counts:
        findings.add_failure("the counts of a task do not match its shards", location=task.task)


def check_reproducible_results(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Execute a sample of the files again without reuse, and check that the results have the same bytes."""
    batch = subject.batch
    verified = verify_batch(subject.execution, subject.store, batch, SAMPLED_FILES_SHARE, subject.listener)
    if verified.signal_status:
        raise Stopped("stopped while running a sample of the batch again", exit_status=verified.signal_status)
    findings.count_checked("files", verified.files)
    findings.count_checked("results", verified.results)
    for task, difference in verified.differences:
        findings.add_failure(
            f"{task} gives a different result for a file when executed again",
            location=difference.path,
            expected=difference.first,
            actual=difference.second,
            suggestion=f"see: codebatch verify {batch.id}",
        )
    if verified.failed:
        findings.add_failure(f"{count_text(verified.failed, 'result')} could not be produced again")
