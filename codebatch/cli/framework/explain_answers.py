"""The answer of `explain`: the files that a command reads. This module does not import the code that reads them."""

from __future__ import annotations

import msgspec

from codebatch.cli.framework.groups import answer_schema_name
from codebatch.errors import InvalidInput
from codebatch.model.text.suggestions import did_you_mean


class Source(msgspec.Struct, frozen=True, kw_only=True):
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
    reads: tuple[Source, ...]


_SOURCES = {
    "store": Source(
        paths=("store.json", "made-here"), description="format of the store, and whether it was created here"
    ),
    "batch": Source(paths=("batches/*/batch.json",), description="which batch is used, and what it covers"),
    "names": Source(paths=("pins/*",), description="names of batches, and pins (only the file names are read)"),
    "plan": Source(paths=("batches/*/plan.json",), description="tasks and shards"),
    "counts": Source(
        paths=("batches/*/outputs/*/manifest.json",), description="counts by task and shard, for a merged batch"
    ),
    "records": Source(paths=("batches/*/outputs/*/*/*.jsonl.zst",), description="records, for a merged batch"),
    "running": Source(
        paths=(
            "batches/*/outcomes/*",
            "batches/*/leases/*",
            "batches/*/holders/*",
            "batches/*/results/*",
            "batches/*/settled.json",
        ),
        description="counts and records of a batch that is not merged, and its running processes",
    ),
    "work": Source(
        paths=("batches/*/work.json", "batches/*/requests/*", "batches/*/questions/*"),
        description="dependencies, questions and requests of a task list",
    ),
    "events": Source(paths=("batches/*/events/*",), description="events of a task list"),
    "logs": Source(paths=("batches/*/logs/*",), description="output of tasks"),
    "evidence": Source(paths=("batches/*/journal/*",), description="why something failed"),
    "index": Source(paths=("indexes/*/*/*",), description="which files may have matches, if there is an index"),
    "snapshot": Source(paths=("snapshots/*/snapshot.json",), description="source of the snapshot"),
    "entries": Source(paths=("snapshots/*/files.index.jsonl.zst",), description="files of the snapshot"),
    "contents": Source(paths=("objects/*.pack", "objects/*.idx"), description="content of the files"),
    "change": Source(
        paths=("cache/stat-*.bin",),
        description="whether files have changed; also calls lstat(2) on each file and reads ignore files",
    ),
    "history": Source(
        paths=("cache/churn-*.bin",),
        description="how often files change; also runs git if the source is a work tree",
    ),
    "file": Source(paths=(), description="without --batch, the file on disk; the store is not read"),
    "sizes": Source(paths=(), description="sizes of all files in the store; few of them are opened"),
}

_STANDING = ("store", "batch", "plan", "counts", "running")
_ABOUT = (*_STANDING, "snapshot", "entries")
_QUESTION = (*_ABOUT, "records", "change")
_SEARCH = (*_QUESTION, "index")

_OF_WORK = (*_ABOUT, "work", "evidence")

_COMPARED = (*_QUESTION, "contents", "names")

_READS: dict[str, tuple[str, ...]] = {
    "ast": (*_ABOUT, "contents", "file"),
    "batch-list": (*_ABOUT, "names", "work"),
    "batch-show": (*_ABOUT, "names", "change", "work"),
    "callers": (*_SEARCH, "contents"),
    "cat-object": ("store", "contents"),
    "def": (*_SEARCH, "contents"),
    "diff": _COMPARED,
    "duplicates": (*_QUESTION, "contents"),
    "errors": (*_QUESTION, "evidence"),
    "events": (*_STANDING, "snapshot", "entries", "work", "events", "evidence"),
    "explain-miss": (*_ABOUT, "evidence"),
    "export": (*_SEARCH, "contents"),
    "files": _QUESTION,
    "find": (*_QUESTION, "contents"),
    "findings": (*_SEARCH, "contents"),
    "follow": (*_STANDING, "snapshot", "entries", "work", "events", "evidence"),
    "graph": _QUESTION,
    "hotspots": (*_SEARCH, "history"),
    "impact": _SEARCH,
    "improvements": _COMPARED,
    "inspect": (*_QUESTION, "contents"),
    "outline": _QUESTION,
    "query-diagnostics": _SEARCH,
    "query-duplicates": _SEARCH,
    "query-edges": _SEARCH,
    "query-failures": _SEARCH,
    "query-files": _SEARCH,
    "query-metrics": _SEARCH,
    "query-outputs": _SEARCH,
    "query-stats": _SEARCH,
    "query-symbols": _SEARCH,
    "references": (*_SEARCH, "contents"),
    "regressions": _COMPARED,
    "report": (*_SEARCH, "contents", "history"),
    "rules-show": _QUESTION,
    "shards": _ABOUT,
    "snapshot-list": ("store", "snapshot"),
    "snapshot-show": ("store", "batch", "snapshot", "entries"),
    "sql": _QUESTION,
    "status": (*_ABOUT, "work"),
    "store-stats": ("store", "names", "sizes"),
    "summary": _QUESTION,
    "tasks": _ABOUT,
    "top": _QUESTION,
    "trace": ("store", "batch", "plan", "snapshot", "entries", "work", "events", "evidence"),
    "work-attempts": _OF_WORK,
    "work-log": (*_OF_WORK, "logs"),
    "work-questions": _OF_WORK,
}

EXPLAINED = frozenset(_READS)
"""The names of the commands that `explain` supports. The words of a name are joined by `-`."""


def explain(command: str) -> ExplainedCommand:
    """Return which files a command reads. Raises InvalidInput unless it is a command that only reads the store."""
    name = command.replace(" ", "-")
    if name not in _READS:
        raise InvalidInput(
            f"{command!r} is not a command that only reads the store", hint=did_you_mean(name, sorted(_READS))
        )
    return ExplainedCommand(
        command=name,
        answer=answer_schema_name(name),
        reads=tuple(_SOURCES[source] for source in _SOURCES if source in _READS[name]),
    )
