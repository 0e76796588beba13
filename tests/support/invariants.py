"""What must hold of a batch that ended, whatever was killed, lost or refused on the way: `check_batch`.

All proofs share it.

1. At most one outcome for each start, task and round; a later round only over what failed, was cancelled, is
   unreadable, or was made by a project task of other inputs. (A register's name is write-once; here its body is held
   against its name.)
2. The chain of every shard and task covers the plan's items, each once.
3. Merged bytes equal the serial run's: records, item tables, frames, digests.
4. Nothing committed runs again. Excepted: the tail that a late owner did before it heard of its thief, or that its
   thief did before it began; and what another coordinator committed after this one began, for it may not have heard of
   it: it was stopped, or is about to be refused.

That a run ends or says why, each proof sees for itself.
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
    """The merged outputs of a batch: their digest, and the bytes of every shard's file."""

    result_digest: str
    files: dict[str, bytes]


def merged(batch: BatchDir) -> Merged:
    """Read the current outputs, checking every item against its row and every frame by the way."""
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
    """All of it. `serial` is what one undisturbed worker makes of an equal plan."""
    plan = batch.plan()
    check_registers(batch, plan)
    check_chains(batch, plan)
    found = merged(batch)
    assert found.result_digest == serial.result_digest
    assert found.files == serial.files
    check_nothing_committed_ran_again(batch)


def check_served(store: StoreDir, batch: BatchDir) -> None:
    """What the one older batch has was taken over, each item of each task, wherever the first round held."""
    plan = batch.plan()
    (base,) = (open_base(store, batch_id) for batch_id in batch.about.bases)
    same = same_items(PlanItems(plan_items(load_batch_snapshot(store, batch).entries), plan.contexts), base.items(), ())
    ledger = load_ledger(plan, OutcomeRegisters(batch.files, batch.root))
    for task in (task.name for task in plan.tasks if task.scope == "file"):
        known = {item for held in base.task_results(task) for item in range(held.start, held.end)}
        for shard in plan.shards:
            for link in ledger.iter_links(shard.id, task):
                expected = sum(same[shard.start + item] in known for item in range(link.start, link.end))
                if link.round == 1:
                    assert link.outcome.reused == expected, f"{task} at {shard.id}.{link.start}"


def check_terms(store: StoreDir, batch: BatchDir) -> int:
    """What terms files there are of merged shards, whole ones, say what the records do; how many there are."""
    outputs = current_outputs(batch)
    assert outputs is not None, "the batch was never merged"
    found = 0
    for task in outputs.manifest.tasks:
        for index, shard in enumerate(task.shards):
            try:
                terms = decode_terms(store.files.read(terms_path(store.root, shard.digest)), shard.digest)
            except (FileNotFoundError, ValueError):
                continue
            found += 1
            anew = collect_terms(map(line_terms, outputs.iter_shard(task, index)))
            assert (terms.frames, terms.frames_by_key()) == (anew.frames, anew.frames_by_key())
    return found


def check_registers(batch: BatchDir, plan: Plan) -> None:
    """Every register holds the outcome that its name says, under a round that it may have."""
    outcomes = OutcomeRegisters(batch.files, batch.root)
    found = outcomes.scan_new()
    kinds: dict[tuple[str, int, str, int], str] = {}
    inputs: dict[tuple[str, int, str, int], Digest] = {}
    for register in found.unreadable:
        kinds[register] = "unreadable"
    for commit in found.commits:
        for outcome in commit.outcomes:
            name = (outcome.shard, outcome.start, outcome.task, commit.round)
            assert name not in kinds, f"two outcomes under {name}"
            kinds[name] = outcome.type
            inputs[name] = outcome.inputs
            for one in outcome.parts or (outcome,):
                lines = b"".join(outcomes.iter_items(commit.segment, one))
                assert count_lines(lines) == one.counts, f"what {name} counts is not what it says"
    for shard, start, task, round_ in kinds:
        before = (shard, start, task, round_ - 1)
        is_over_result = kinds.get(before) == "result" and inputs.get((shard, start, task, round_)) == inputs[before]
        # Where a register is torn, what it hid may come to light after its work was given out again.
        is_torn = any((other.shard, other.task) == (shard, task) for other in found.unreadable)
        assert not is_over_result or is_torn, f"round {round_} of {task} at {shard}.{start} is over a result"
        assert task in plan.task_names


def check_chains(batch: BatchDir, plan: Plan) -> None:
    """The chain of every shard and task covers it."""
    ledger = load_ledger(plan, OutcomeRegisters(batch.files, batch.root))
    work = plan.work_by_id()
    for shard, task in ledger.iter_chain_keys:
        links = list(ledger.iter_links(shard, task))
        assert [0, *(link.end for link in links)] == [*(link.start for link in links), work[shard].items]
    for task in plan.project_tasks:
        (link,) = ledger.iter_links(ProjectWork(task).id, task)
        assert link.outcome.inputs == ledger.inputs_digest(task), f"{task} speaks of what is no more"


def check_nothing_committed_ran_again(batch: BatchDir) -> None:
    """From the journals: no unit begins over items whose outcome of one of its tasks was committed before."""
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
            mine = parents.get(line.holder)
            if mine is None:
                continue  # Power loss took its holder file.
            for task in event.tasks:
                for earlier, result, unit_start in committed.get((event.shard, task), []):
                    is_of_other_inputs = isinstance(work[event.shard], ProjectWork) and result.round != event.round
                    is_other = parents.get(earlier.holder) != mine
                    is_unheard = is_other and earlier.at_ns > mine.since_ns
                    is_of_owner, is_of_thief = unit_start < event.start, unit_start > event.start and not is_other
                    if not (is_unheard or is_of_owner or is_of_thief or is_of_other_inputs):
                        assert not _overlap(event, result), f"{line} begins what {earlier} had committed"


def _overlap(one: Began, other: Committed) -> bool:
    return one.start < other.end and other.start < one.end
