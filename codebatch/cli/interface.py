"""What the command line is: its commands, and what each answers under `--json`. Imports every command."""

from __future__ import annotations

import msgspec

from codebatch.application.batches import ShardStatus, TaskStatus
from codebatch.application.diagnosis import Diagnosis
from codebatch.application.misses import MissesAnswer
from codebatch.cli import answers
from codebatch.cli.asking import PartAnswer
from codebatch.cli.batches import StatusAnswer
from codebatch.cli.collection import CollectedAnswer, StoreStatsAnswer
from codebatch.cli.groups import schema_of
from codebatch.cli.reuse import VerifyAnswer
from codebatch.cli.run import RunAnswer
from codebatch.cli.snapshots import SnapshotShown
from codebatch.cli.trying import TaskTested
from codebatch.model.record import Record
from codebatch.query.dependencies import Cycle, Dependent, Import
from codebatch.query.summary import SummaryAnswer
from codebatch.store.untrusted import UntrustedKey

ANSWERS: dict[str, object] = {
    "batch-init": answers.BatchMade,
    "batch-list": list[answers.BatchRow],
    "batch-outputs": answers.BatchOutputs,
    "batch-show": answers.BatchShown,
    "config-show": dict[str, answers.Setting],
    "diagnose": Diagnosis,
    "error": answers.ErrorAnswer,
    "errors": list[answers.ErrorFound | answers.FailureFound],
    "explain-miss": MissesAnswer,
    "files": list[answers.FileRow],
    "files-why": answers.WhyTaken,
    "gc": CollectedAnswer,
    "graph": list[Import],
    "graph-cycles": list[Cycle],
    "graph-dot": list[tuple[str, str]],
    "impact": list[Dependent],
    "init": answers.StoreMade,
    "inspect": answers.InspectAnswer,
    "part": PartAnswer,
    "pin": answers.Pinned,
    "pipeline": answers.PipelineShown,
    "pipelines": list[answers.PipelineRow],
    "query-diagnostics": list[Record],
    "query-outputs": list[Record],
    "references": list[answers.ReferenceRow],
    "resume": RunAnswer,
    "rules-list": list[answers.RuleRow],
    "rules-test": answers.RulesTested,
    "run": RunAnswer,
    "run-shard": answers.ShardsRan,
    "shards": list[ShardStatus],
    "snapshot-list": list[answers.ListedSnapshot],
    "snapshot-show": SnapshotShown,
    "snapshot-take": answers.SnapshotTaken,
    "status": StatusAnswer,
    "store-stats": StoreStatsAnswer,
    "summary": SummaryAnswer,
    "task-test": TaskTested,
    "tasks": list[TaskStatus],
    "top": dict[str, int],
    "unpin": answers.Unpinned,
    "verify": VerifyAnswer,
    "verify-trust": UntrustedKey,
}
"""The type of each answer, by name: the words of the command, or what else the member `schema` says."""


def answer_schema(name: str) -> dict[str, object]:
    """The JSON Schema of an answer, draft 2020-12."""
    type_ = ANSWERS[name]
    (body,), parts = msgspec.json.schema_components((type_,), schema_hook=lambda _: {"description": "any JSON value"})
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        described = parts[type_.__name__]
        described["properties"]["schema"] = {"const": schema_of(name)}
        described["required"].append("schema")
    return {**schema_head(f"{name}-answer"), **body, "$defs": parts}


def schema_head(name: str) -> dict[str, object]:
    """What every schema of ours begins with."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"codebatch {name}"}
