"""The answer of `explain_command`: the files that a command reads.

This module does not import the code that reads them.
"""

from __future__ import annotations

import msgspec

from codebatch.cli.framework.groups import answer_schema_name
from codebatch.errors import InvalidInput
from codebatch.model.text.suggestions import did_you_mean_text


class AnswerSource(msgspec.Struct, frozen=True, kw_only=True):
    """Files that a command reads, and the purpose.

    `paths` are patterns of paths in the store. It is empty if the files are outside the store.
    """

    paths: tuple[str, ...]
    description: str


class ExplainedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch explain COMMAND`. `answer` is the name of the schema that the answer of COMMAND has with
    `--json`.
    """

    command: str
    answer: str
    reads: tuple[AnswerSource, ...]


_SOURCES = {
    "store": AnswerSource(
        paths=("store.json", "made-here"), description="format of the store, and whether it was created here"
    ),
    "batch": AnswerSource(paths=("batches/*/batch.json",), description="which batch is used, and what it covers"),
    "names": AnswerSource(paths=("pins/*",), description="names of batches, and pins (only the file names are read)"),
    "plan": AnswerSource(paths=("batches/*/plan.json",), description="tasks and shards"),
    "counts": AnswerSource(
        paths=("batches/*/outputs/*/manifest.json",), description="counts by task and shard, for a merged batch"
    ),
    "records": AnswerSource(paths=("batches/*/outputs/*/*/*.jsonl.zst",), description="records, for a merged batch"),
    "running": AnswerSource(
        paths=(
            "batches/*/outcomes/*",
            "batches/*/leases/*",
            "batches/*/holders/*",
            "batches/*/results/*",
            "batches/*/settled.json",
        ),
        description="counts and records of a batch that is not merged, and its running processes",
    ),
    "work": AnswerSource(
        paths=("batches/*/work.json", "batches/*/requests/*", "batches/*/questions/*"),
        description="dependencies, questions and requests of a task list",
    ),
    "events": AnswerSource(paths=("batches/*/events/*",), description="events of a task list"),
    "logs": AnswerSource(paths=("batches/*/logs/*",), description="output of tasks"),
    "evidence": AnswerSource(paths=("batches/*/journal/*",), description="why something failed"),
    "index": AnswerSource(paths=("indexes/*/*/*",), description="which files may have matches, if there is an index"),
    "snapshot": AnswerSource(paths=("snapshots/*/snapshot.json",), description="source of the snapshot"),
    "entries": AnswerSource(paths=("snapshots/*/files.index.jsonl.zst",), description="files of the snapshot"),
    "contents": AnswerSource(paths=("objects/*.pack", "objects/*.idx"), description="content of the files"),
    "change": AnswerSource(
        paths=("cache/stat-*.bin",),
        description="whether files have changed; also calls lstat(2) on each file and reads ignore files. "
        "If a name is not found, also reads the ignored files of the source",
    ),
    "history": AnswerSource(
        paths=("cache/churn-*.bin",),
        description="how often files change; also runs git if the source is a work tree",
    ),
    "file": AnswerSource(paths=(), description="without --batch, the file on disk; the store is not read"),
    "sizes": AnswerSource(paths=(), description="sizes of all files in the store; few of them are opened"),
}

_STATUS_SOURCES = ("store", "batch", "plan", "counts", "running")
_BATCH_SOURCES = (*_STATUS_SOURCES, "snapshot", "entries")
_QUERY_SOURCES = (*_BATCH_SOURCES, "records", "change")
_SEARCH_SOURCES = (*_QUERY_SOURCES, "index")

_WORK_SOURCES = (*_BATCH_SOURCES, "work", "evidence")

_COMPARISON_SOURCES = (*_QUERY_SOURCES, "contents", "names")

_SOURCES_BY_COMMAND: dict[str, tuple[str, ...]] = {
    "ast": (*_BATCH_SOURCES, "contents", "file"),
    "batch-list": (*_BATCH_SOURCES, "names", "work"),
    "batch-show": (*_BATCH_SOURCES, "names", "change", "work"),
    "changes": (*_SEARCH_SOURCES, "contents"),
    "callers": (*_SEARCH_SOURCES, "contents"),
    "cat-object": ("store", "contents"),
    "def": (*_SEARCH_SOURCES, "contents"),
    "diff": _COMPARISON_SOURCES,
    "duplicates": (*_QUERY_SOURCES, "contents"),
    "errors": (*_QUERY_SOURCES, "evidence"),
    "events": (*_STATUS_SOURCES, "snapshot", "entries", "work", "events", "evidence"),
    "explain-miss": (*_BATCH_SOURCES, "evidence"),
    "export": (*_SEARCH_SOURCES, "contents"),
    "files": _QUERY_SOURCES,
    "find": (*_SEARCH_SOURCES, "contents"),
    "findings": (*_SEARCH_SOURCES, "contents"),
    "follow": (*_STATUS_SOURCES, "snapshot", "entries", "work", "events", "evidence"),
    "graph": _QUERY_SOURCES,
    "hotspots": (*_SEARCH_SOURCES, "history"),
    "impact": (*_SEARCH_SOURCES, "contents"),
    "implementations": (*_SEARCH_SOURCES, "contents"),
    "improvements": _COMPARISON_SOURCES,
    "inspect": (*_SEARCH_SOURCES, "contents"),
    "outline": _QUERY_SOURCES,
    "query-diagnostics": _SEARCH_SOURCES,
    "query-duplicates": _SEARCH_SOURCES,
    "query-edges": _SEARCH_SOURCES,
    "query-failures": _SEARCH_SOURCES,
    "query-files": _SEARCH_SOURCES,
    "query-metrics": _SEARCH_SOURCES,
    "query-outputs": _SEARCH_SOURCES,
    "query-stats": _SEARCH_SOURCES,
    "query-symbols": _SEARCH_SOURCES,
    "references": (*_SEARCH_SOURCES, "contents"),
    "regressions": _COMPARISON_SOURCES,
    "report": (*_SEARCH_SOURCES, "contents", "history"),
    "rules-show": _QUERY_SOURCES,
    "shards": _BATCH_SOURCES,
    "snapshot-list": ("store", "snapshot"),
    "snapshot-show": ("store", "batch", "snapshot", "entries"),
    "sql": _QUERY_SOURCES,
    "status": (*_BATCH_SOURCES, "work"),
    "store-stats": ("store", "names", "sizes"),
    "summary": _QUERY_SOURCES,
    "tasks": _BATCH_SOURCES,
    "top": _QUERY_SOURCES,
    "trace": ("store", "batch", "plan", "snapshot", "entries", "work", "events", "evidence"),
    "work-attempts": _WORK_SOURCES,
    "work-log": (*_WORK_SOURCES, "logs"),
    "work-questions": _WORK_SOURCES,
}

EXPLAINED_COMMANDS = frozenset(_SOURCES_BY_COMMAND)
"""The names of the commands that `explain_command` supports. The words of a name are joined by `-`."""


def explain_command(command: str) -> ExplainedCommand:
    """Return which files a command reads. Raises InvalidInput unless it is a command that only reads the store."""
    name = command.replace(" ", "-")
    if name not in _SOURCES_BY_COMMAND:
        raise InvalidInput(
            f"{command!r} is not a command that only reads the store",
            hint=did_you_mean_text(name, sorted(_SOURCES_BY_COMMAND)),
        )
    return ExplainedCommand(
        command=name,
        answer=answer_schema_name(name),
        reads=tuple(_SOURCES[source] for source in _SOURCES if source in _SOURCES_BY_COMMAND[name]),
    )
