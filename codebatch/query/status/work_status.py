"""The state of a work batch, derived from its files (SPEC.md "Work batches").

The files are replayed through the scheduler that also runs the batch. So both always agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
from msgspec import UNSET

from codebatch.model.digest import Digest
from codebatch.model.outcome import CommandReport, HolderId
from codebatch.model.record import CommandReason
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import Question
from codebatch.model.work.work_batch import Work
from codebatch.query.status.rerun_needs import RerunNeeds
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.scheduling.work.caps import MetCap, attempts_cost
from codebatch.scheduling.work.clock_limits import ClockWatch
from codebatch.scheduling.work.command_plan import SLOTS_POOL, make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import QuestionAsked
from codebatch.scheduling.work.request_log import AttemptStop
from codebatch.scheduling.work.tree_inputs import last_success
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, LeaseReader
from codebatch.store.batches.progress_cells import silent_since_ns
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.attempts import AttemptReader, read_leases, unreadable_last
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import read_command_ids, read_work
from codebatch.system.clock import wall_ns
from codebatch.system.processes.garbage_collector import collector_paused


class CommandStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a task in a task list.

    - `round`: the number of the latest round of attempts, or 0 if the task never started. Each retry begins a new
      round. An interrupted attempt is repeated in the same round.
    - `ended`: the number of the latest round that has an outcome.
    - `epoch`: identifies the latest attempt. Each attempt of a task has a higher epoch than the attempts before.
    - `failed_tries`: the number of failures. If a request or an answer retries the task, counting starts again.
    - `retries`, `priority`: the settings that apply to the next outcome and the next start, with the changes of users.
    - `is_decided`: whether an answer determined the outcome of the task.
    - `is_interrupted`: whether the latest attempt was interrupted, and the policy allows no other start.
    - `reason`, `exit_status`: the reason and the exit status of the latest outcome.
    - `cost`: the sum of the costs that its attempts reported, or None if none reported a cost.
    - `cap`: the cap that keeps a pending task from starting, or None.
    - `report`: values that the key `result` of the task extracted from the output of the latest attempt with an
      outcome.
    - `stops`: for attempts that were ended early and have no outcome, maps the epoch of the attempt to the reason.
    - `until_ns`: if the task waits because of a rate limit, the time when the limit ends, in nanoseconds since 1970;
      otherwise 0.
    - `cause`: if the task is skipped, the task that caused this. If a user skipped the task, it is the task itself.
    - `question`: the digest of its open question, or empty. If `is_live` is set, the task keeps running while it waits.
    - `log`: the name of its latest log in the directory `logs/` of the batch, or empty if the task never started.
    - `holder`: the process that runs the task, or None.
    - `changes`: the digest of the change set of its last successful attempt if the task is done. Otherwise the digest
      of the change set of its latest attempt. Empty if there is none.
    - `unrecorded`: the number of paths with work that this change set does not record.
    - `outputs`, `inputs`: as in TaskOutcome, if the latest attempt succeeded.
    - `notes`: the limit that ended the latest attempt with an outcome, and what was ignored, cut or replaced.
    - `newer_need`: a needed task that changed files again after the latest attempt of this task, or None.
    """

    id: CommandId
    item: int
    state: CommandState
    round: int = 0
    ended: int = 0
    epoch: int = 0
    failed_tries: int = 0
    retries: int = 0
    priority: int = 0
    is_decided: bool = False
    is_interrupted: bool = False
    is_live: bool = False
    reason: CommandReason | None = None
    exit_status: int | None = None
    cost: float | None = None
    cap: MetCap | None = None
    report: CommandReport | None = None
    stops: Mapping[int, AttemptStop] = msgspec.field(default_factory=dict)
    until_ns: int = 0
    cause: CommandId | None = None
    question: str = ""
    log: str = ""
    holder: HolderId | None = None
    changes: Digest = Digest("")
    unrecorded: int = 0
    outputs: Digest = Digest("")
    inputs: Digest = Digest("")
    notes: tuple[str, ...] = ()
    newer_need: CommandId | None = None

    @property
    def last_stop(self) -> AttemptStop | None:
        """The reason why the latest attempt was ended early.

        None if the attempt was not ended early, has an outcome or is still running.
        """
        return self.stops.get(self.epoch) if self.round > self.ended and self.holder is None else None


class WorkBatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a batch of a task list. `commands` has the state of each task, in the order of the task list.

    - `coordinator`: the process that runs the batch, or None.
    - `silent_since_ns`: the time of the last report of a coordinator that is not responding, otherwise None.
    - `workers`: the processes that run tasks. They can outlive the coordinator.
    - `capacity`: the current size of each pool.
    - `questions`: all questions that tasks have asked, with the digest of a question as its key.
    - `cost`: the sum of the costs that attempts reported, or None if no attempt reported a cost.
    - `unreadable`: the tasks whose last outcome is damaged. These tasks count as interrupted.
    - `is_expired`: whether the batch reached its time limit. No task starts until the batch is resumed.
    - `closed`: maps closed pools to the time when they open, in nanoseconds since 1970. The hours of the list close the
      pool of slots, whose name is empty. `by_hours` are the pools that no rate limit closes.
    - `caps`: the caps that are met. `unknown_cost_count` is the number of attempts under a cap whose cost is unknown.
    """

    state: BatchState
    work: Work
    commands: tuple[CommandStatus, ...]
    coordinator: HolderFile | None
    workers: tuple[HolderFile, ...]
    silent_since_ns: int | None = None
    is_paused: bool = False
    capacity: dict[str, int] = msgspec.field(default_factory=dict)
    questions: dict[str, Question] = msgspec.field(default_factory=dict)
    cost: float | None = None
    unreadable: tuple[CommandId, ...] = ()
    is_expired: bool = False
    closed: Mapping[str, int] = msgspec.field(default_factory=dict)
    by_hours: frozenset[str] = frozenset()
    caps: tuple[MetCap, ...] = ()
    unknown_cost_count: int = 0

    @property
    def max_parallel(self) -> int:
        """The current maximum number of tasks that run at once."""
        return self.capacity.get(SLOTS_POOL, self.work.max_parallel)

    @property
    def counts(self) -> dict[str, int]:
        """The number of tasks in each state. States without tasks are left out."""
        counts = Counter(command.state for command in self.commands)
        return {state.value: count for state, count in counts.items()}

    @property
    def is_stalled(self) -> bool:
        """Whether tasks are left although no process runs the batch. `resume` continues such a batch."""
        return self.state is BatchState.RUNNING and self.coordinator is None and not self.workers


def read_work_status(
    store: StoreDir,
    batch: BatchDir,
    attempts: AttemptReader | None = None,
    wall_ns: Callable[[], int] = wall_ns,
) -> WorkBatchStatus:
    """Read the state of a work batch. Raises WrongBatchKind if the batch is an analysis, or StoreCorrupt.

    `attempts` are outcomes that the caller has read already; they are not read again.
    """
    with batch.files.keeping_open(batch.root / layout.OUTCOMES), collector_paused():
        known = attempts or AttemptReader(batch.plan(), OutcomeRegisters(batch.files, batch.root))
        return _read_status(store, batch, known, wall_ns)


def _read_status(
    store: StoreDir, batch: BatchDir, attempts: AttemptReader, wall_ns: Callable[[], int]
) -> WorkBatchStatus:
    reader = LeaseReader(batch.files, batch.root)
    listed = reader.lease_names()
    _, coordinator = reader.read_leader(listed)
    leased = read_leases(reader, attempts.places, listed)
    # Outcomes are read after leases. So if a holder is seen as dead, all outcomes that it published are read.
    concluded = attempts.read_all()
    question_entries = [
        (item, place, question)
        for place, question in QuestionStore(batch.files, batch.root).read()
        if (item := attempts.places.item_at_place(place.shard, place.item)) is not None
    ]
    # Requests are read after leases and outcomes. So the tasks of all leases are known, also those that were added.
    requests = RequestStore(batch.files, batch.root).read()
    work = read_work(batch, requests)
    commands = read_command_ids(store, batch, work)
    conductor = Conductor(
        make_command_plan(work, commands, batch.id),
        concluded=concluded,
        epochs=leased.epoch_by_item,
        foreign=leased.live_items,
        requests=requests,
        live_questions=[
            QuestionAsked(item, place.round, place.epoch, place.number, question.digest)
            for item, place, question in question_entries
            if question.is_live
        ],
    )
    ClockWatch(conductor, wall_ns)
    items = {id_: item for item, id_ in enumerate(commands)}
    states = conductor.states()
    state = conductor.batch_state(states)
    if state is BatchState.PARTIAL and coordinator is not None and CommandState.BLOCKED in states:
        state = BatchState.RUNNING  # Its coordinator waits for an answer, or still delivers notifications.
    reruns = None if work.trees is UNSET else RerunNeeds(store, batch, conductor, attempts.places)
    holders = {item: leased.leases[item].holder for item in conductor.running_items}
    return WorkBatchStatus(
        state=state,
        work=work,
        commands=tuple(
            _command_status(conductor, states[item], attempts, item, holders.get(item), reruns)
            for item in map(items.__getitem__, work.order)
        ),
        coordinator=coordinator,
        silent_since_ns=None if coordinator is None else silent_since_ns(batch, coordinator),
        workers=tuple({holder_file.holder: holder_file for holder_file in holders.values()}.values()),
        is_paused=conductor.is_paused,
        is_expired=conductor.is_expired,
        closed=conductor.closed_pools,
        by_hours=frozenset(conductor.closed_pools.keys() - conductor.rate_limited_pools),
        caps=tuple(conductor.met_caps()),
        unknown_cost_count=conductor.unknown_cost_count,
        capacity=dict(conductor.capacity),
        questions={question.digest: question for _, _, question in question_entries},
        cost=attempts_cost(concluded.conclusions),
        unreadable=tuple(commands[item] for item in unreadable_last(concluded)),
    )


def _command_status(
    conductor: Conductor,
    state: CommandState,
    attempts: AttemptReader,
    item: int,
    holder: HolderFile | None,
    reruns: RerunNeeds | None,
) -> CommandStatus:
    """Return the state of a command. `holder` is the process that runs the command, or None.

    `reruns` is None if the batch has no trees.
    """
    commands = conductor.agenda.ids
    round_, epoch = conductor.last_attempt(item)
    last = conductor.last_outcome(item)
    is_unbegun = last is not None and last.reason == "unbegun" and last.round == round_
    newer_need = None if reruns is None else reruns.newer_need(item)
    failed_tries, is_decided = conductor.state_rule.failure_count(item)
    changed = None if reruns is None else last_success(conductor, item) or conductor.last_begun_outcome(item)
    return CommandStatus(
        id=commands[item],
        item=item,
        state=state,
        round=round_,
        ended=last.round if last else 0,
        epoch=epoch,
        failed_tries=failed_tries,
        retries=conductor.retries(item, last.round + 1 if last else 1),
        priority=conductor.priority(item),
        is_decided=is_decided,
        is_interrupted=conductor.is_interrupted(item),
        is_live=holder is not None and state is CommandState.BLOCKED,
        reason=last.reason if last and not is_unbegun else None,
        exit_status=last.exit_status if last else None,
        cost=attempts_cost(conductor.outcomes_by_round(item).values()),
        cap=conductor.met_cap(item) if state is CommandState.PENDING else conductor.asked_cap(item),
        report=last.said if last else None,
        stops=conductor.stops_by_epoch(item),
        until_ns=conductor.until_ns(item) if state is CommandState.WAITING else 0,
        cause=commands[conductor.skip_cause(item)] if state is CommandState.SKIPPED else None,
        question=(conductor.question(item) or "") if state is CommandState.BLOCKED else "",
        log=layout.log_name(*attempts.places.place_of_item(item), round_, epoch) if round_ and not is_unbegun else "",
        holder=None if holder is None else holder.holder,
        changes=Digest("") if changed is None else changed.changes,
        unrecorded=0 if changed is None else changed.unrecorded,
        outputs=last.outputs if last and state is CommandState.DONE else Digest(""),
        inputs=last.inputs if last and state is CommandState.DONE else Digest(""),
        notes=conductor.state_rule.notes(last) if last else (),
        newer_need=None if newer_need is None else commands[newer_need],
    )
