"""Invariants of every batch that has ended, after any kills, losses or refused writes: `check_batch`.

All proofs share this check.

1. Each start, task and round has at most one outcome. A later round exists only if the earlier outcome failed, was
   cancelled, is unreadable, or was made by a project task from other inputs. (A register's name is written once; here
   its content is compared with its name.)
2. The chain of every shard and task covers each item of the plan once.
3. Merged bytes equal those of the serial run: records, item tables, frames, digests.
4. Committed work does not run again, with two exceptions. First, the tail of a unit that was stolen: its late owner
   may have committed it before the steal, or the thief may have committed it before the owner began. Second, work that
   another coordinator committed after this one began: this one may not have read it, because it was paused or is about
   to be refused.

Each proof checks for itself that a run ends or reports an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from codebatch.index.terms import collect_terms, decode_terms, line_terms, terms_path
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.analysis.result_key import PlanItems, same_items
from codebatch.model.digest import Digest
from codebatch.model.outcome import HolderId
from codebatch.model.plan import Plan, plan_items
from codebatch.model.shard import ProjectWork
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.journal import Began, Committed, JournalLine, read_journal
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.bases import open_base
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import current_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The merged outputs of a batch: their digest, and the bytes of each shard file."""

    result_digest: str
    files: dict[str, bytes]


def merged(batch: BatchDir) -> Merged:
    """Read the current outputs. The reader checks every frame, and every item against its row."""
    outputs = current_outputs(batch)
    assert outputs is not None, "the batch was never merged"
    files: dict[str, bytes] = {}
    for task in outputs.manifest.tasks:
        for index, shard in enumerate(batch.plan().shards):
            assert sum(1 for _ in outputs.iter_items(task, index)) == shard.items
            path = outputs.shard_path(task, index)
            files[f"{path.parent.name}/{path.name}"] = batch.files.read(path)
    return Merged(result_digest=outputs.manifest.result_digest, files=files)


def check_batch(batch: BatchDir, serial: Merged) -> None:
    """Check all invariants of a batch. `serial` is the output of one undisturbed worker for an equal plan."""
    plan = batch.plan()
    check_registers(batch, plan)
    check_chains(batch, plan)
    outputs = merged(batch)
    assert outputs.result_digest == serial.result_digest
    assert outputs.files == serial.files
    check_nothing_committed_ran_again(batch)


def check_served(store: StoreDir, batch: BatchDir) -> None:
    """Check that each first-round result that the only base has was reused, for each item of each task."""
    plan = batch.plan()
    (base,) = (open_base(store, batch_id) for batch_id in batch.about.bases)
    same = same_items(PlanItems(plan_items(load_batch_snapshot(store, batch).entries), plan.contexts), base.items(), ())
    ledger = load_ledger(plan, OutcomeRegisters(batch.files, batch.root))
    for task in (task.name for task in plan.tasks if task.scope == "file"):
        known = {item for results in base.task_results(task) for item in range(results.start, results.end)}
        for shard in plan.shards:
            for link in ledger.iter_links(shard.id, task):
                expected = sum(same[shard.start + item] in known for item in range(link.start, link.end))
                if link.round == 1:
                    assert link.outcome.reused == expected, f"{task} at {shard.id}.{link.start}"


def check_terms(store: StoreDir, batch: BatchDir) -> int:
    """Check each complete terms file of a merged shard against the records of the shard. Return how many exist."""
    outputs = current_outputs(batch)
    assert outputs is not None, "the batch was never merged"
    checked = 0
    for task in outputs.manifest.tasks:
        for index, shard in enumerate(task.shards):
            try:
                terms = decode_terms(store.files.read(terms_path(store.root, shard.digest)), shard.digest)
            except (FileNotFoundError, ValueError):
                continue
            checked += 1
            expected = collect_terms(map(line_terms, outputs.iter_shard(task, index)))
            assert (terms.frames, terms.frames_by_key()) == (expected.frames, expected.frames_by_key())
    return checked


def check_registers(batch: BatchDir, plan: Plan) -> None:
    """Check that every register has the outcome that its name states, and that its round is allowed."""
    outcomes = OutcomeRegisters(batch.files, batch.root)
    scan = outcomes.scan_new()
    kinds: dict[tuple[str, int, str, int], str] = {}
    inputs: dict[tuple[str, int, str, int], Digest] = {}
    for register in scan.unreadable:
        kinds[register] = "unreadable"
    for commit in scan.commits:
        for outcome in commit.outcomes:
            name = (outcome.shard, outcome.start, outcome.task, commit.round)
            assert name not in kinds, f"the register {name} has two outcomes"
            kinds[name] = outcome.type
            inputs[name] = outcome.inputs
            for part in outcome.parts or (outcome,):
                lines = b"".join(outcomes.iter_items(commit.segment, part))
                assert count_lines(lines) == part.counts, f"the counts of {name} differ from its records"
    for shard, start, task, round_ in kinds:
        before = (shard, start, task, round_ - 1)
        is_over_result = kinds.get(before) == "result" and inputs.get((shard, start, task, round_)) == inputs[before]
        # If a register is torn, a result behind it may become visible after its work was assigned again.
        is_torn = any((other.shard, other.task) == (shard, task) for other in scan.unreadable)
        assert not is_over_result or is_torn, f"round {round_} of {task} at {shard}.{start} repeats a result"
        assert task in plan.task_names


def check_chains(batch: BatchDir, plan: Plan) -> None:
    """Check that the chain of every shard and task covers the shard."""
    ledger = load_ledger(plan, OutcomeRegisters(batch.files, batch.root))
    work = plan.work_by_id()
    for shard, task in ledger.iter_chain_keys:
        links = list(ledger.iter_links(shard, task))
        assert [0, *(link.end for link in links)] == [*(link.start for link in links), work[shard].items]
    for task in plan.project_tasks:
        (link,) = ledger.iter_links(ProjectWork(task).id, task)
        assert link.outcome.inputs == ledger.inputs_digest(task), f"the result of {task} has outdated inputs"


def check_nothing_committed_ran_again(batch: BatchDir) -> None:
    """Check by the journals that no unit begins with items for which one of its tasks was already committed."""
    lines = read_journal(batch.files, batch.root)
    work = batch.plan().work_by_id()
    holders = {holder.holder: holder for holder, _ in LeaseReader(batch.files, batch.root).read_holders()}
    parents = {holder.holder: holders.get(holder.parent) for holder in holders.values() if holder.parent}
    begun: dict[HolderId, int] = {}
    committed: dict[tuple[str, str], list[tuple[JournalLine, Committed, int]]] = {}
    for line in lines:
        event = line.event
        if isinstance(event, Committed):
            committed.setdefault((event.shard, event.task), []).append((line, event, begun.get(line.holder, 0)))
        elif isinstance(event, Began):
            begun[line.holder] = event.start
            coordinator = parents.get(line.holder)
            if coordinator is None:
                continue  # Power loss removed the holder file of the worker.
            for task in event.tasks:
                for earlier, result, unit_start in committed.get((event.shard, task), []):
                    is_of_other_inputs = isinstance(work[event.shard], ProjectWork) and result.round != event.round
                    is_other = parents.get(earlier.holder) != coordinator
                    is_unread = is_other and earlier.at_ns > coordinator.since_ns
                    is_of_owner, is_of_thief = unit_start < event.start, unit_start > event.start and not is_other
                    if not (is_unread or is_of_owner or is_of_thief or is_of_other_inputs):
                        assert not _overlap(event, result), f"{line} begins work that {earlier} had committed"


def _overlap(begun: Began, committed: Committed) -> bool:
    return begun.start < committed.end and committed.start < begun.end
