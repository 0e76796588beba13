"""The check of an engine: whether each of its processes can execute parts of the current project."""

from __future__ import annotations

import msgspec

from codebatch.coordinator.engines.capsules import choose_remote_tasks, make_capsule_header
from codebatch.coordinator.engines.interface import Engine, EngineReply
from codebatch.engines.part_run import run_part
from codebatch.model.digest import digest_bytes
from codebatch.model.plan import plan_digest
from codebatch.operations import NoteCallback
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.operations.runs.planning import choose_pipeline, plan_tasks
from codebatch.store.capsules import answer_format, capsule_format

CHECK_SECONDS_MAX = 60.0
"""Time limit for the replies of all processes."""


class EngineProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process of an engine, in the answer of `codebatch engine check`.

    - `process`: its name, for example its address.
    - `host`, `codebatch`, `python`: the machine and the versions. They are empty if the process did not answer.
    - `problem`: the reason why it cannot execute parts of this project, or an empty text.
    """

    process: str
    host: str = ""
    codebatch: str = ""
    python: str = ""
    problem: str = ""


class EngineCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch engine check`.

    `slots` is the number of parts that the engine runs at the same time. `tasks` run on the engine; `local_tasks` maps
    the other tasks of files to the reasons why they run on this machine.
    """

    engine: str
    slots: int
    cores_per_slot: int
    pipeline: str
    tasks: tuple[str, ...]
    local_tasks: dict[str, str]
    processes: tuple[EngineProcess, ...]


def check_engine(engine: Engine, execution: ExecutionSettings, pipeline: str | None, note: NoteCallback) -> EngineCheck:
    """Send an empty capsule to each process of an engine, and return the replies. Raises CodebatchError."""
    configuration = execution.configuration
    chosen = choose_pipeline(configuration, pipeline)
    planned = plan_tasks(configuration, chosen, note, is_project=True)
    remote = choose_remote_tasks(planned, configuration.catalogue)
    header = make_capsule_header(
        plan_digest(digest_bytes(b""), planned),
        chosen.name,
        remote.tasks,
        configuration.catalogue,
        limits=execution.part_limits([task.name for task in planned]),
        jobs=engine.cores_per_slot,
        hash_seed=execution.hash_seed,
    )
    replies = engine.call_everywhere(run_part, capsule_format.encode(header, ()), CHECK_SECONDS_MAX)
    return EngineCheck(
        engine=engine.name,
        slots=engine.slots(),
        cores_per_slot=engine.cores_per_slot,
        pipeline=chosen.name,
        tasks=tuple(task.name for task in remote.tasks),
        local_tasks=remote.reasons,
        processes=tuple(map(_describe_reply, replies)),
    )


def _describe_reply(reply: EngineReply) -> EngineProcess:
    if reply.answer is None:
        return EngineProcess(process=reply.process, problem=reply.error or "no answer")
    try:
        header, _ = answer_format.decode(reply.answer)
    except ValueError as error:
        return EngineProcess(process=reply.process, problem=f"its answer is damaged: {error}")
    return EngineProcess(
        process=reply.process,
        host=header.host,
        codebatch=header.codebatch,
        python=header.python,
        problem="" if header.refusal is None else header.refusal.message,
    )
