"""The scenarios by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenarios import (
    answers,
    command_line,
    commands,
    cores,
    dispatch,
    execute,
    exports,
    following,
    fuzzing,
    indexes,
    interruptions,
    linters,
    lists,
    matching,
    schedules,
    serve,
    snapshots,
    waiting,
    whole_runs,
)
from bench.setting import Scenario

SCENARIOS: Mapping[str, Scenario] = {
    "snapshot-cold": snapshots.cold,
    "snapshot-again": snapshots.again,
    "full": execute.full,
    "again": whole_runs.again,
    "edited": whole_runs.edited,
    "ten-files": whole_runs.ten_files,
    "answers": answers.answers,
    "exports": exports.exports,
    "help": command_line.command_line,
    "index": indexes.index,
    "commands": commands.many,
    "commands-graphs": commands.graphs,
    "commands-skewed": commands.skewed,
    "commands-large": commands.large,
    "commands-worker": commands.worker,
    "commands-killed": interruptions.killed,
    "commands-cancelled": interruptions.cancelled,
    "linters": linters.linters,
    "lists": lists.lists,
    "commands-followed": following.followed,
    "commands-estimated": following.estimated,
    "live-latency": serve.latency,
    "live-clients": serve.many_clients,
    "dispatch": dispatch.dispatch,
    "fuzz": fuzzing.fuzz,
    "makespan": schedules.makespan,
    "many-cores": cores.many_cores,
    "many-workers": waiting.many_workers,
    "skews": schedules.skews,
    "matching": matching.matching,
    "peers": whole_runs.peers,
    "store-size": snapshots.store_size,
}
