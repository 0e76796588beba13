"""codebatch: a multiprocess parallel executor for work over large codebases.

Every public name stands here, and is imported when it is first asked for. `run` works on a tree, `open_store` finds
what was worked on before, `ask` gives a question, which the functions that answer take first. What is asked wrongly, or
found wrong, is a CodebatchError; what else the system refuses (a current directory that is gone, a path that is too
long) is an OSError. What tasks are written against is in `codebatch_workers.api`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codebatch.application.asking import Answer, Question, ask
    from codebatch.application.batches import BatchStatus, ListedBatch, TaskStatus, list_batches, status
    from codebatch.application.dependencies import Impact, impact, import_cycles, imports
    from codebatch.application.execution import Listener
    from codebatch.application.questions import (
        Inspected,
        find_errors,
        inspect,
        list_files,
        rank,
        search,
        summarise,
    )
    from codebatch.application.ran import Ran
    from codebatch.application.references import references
    from codebatch.application.running import run
    from codebatch.application.stores import open_store
    from codebatch.errors import (
        AmbiguousId,
        BatchIncomplete,
        CodebatchError,
        CollectedMeanwhile,
        CorruptFile,
        EnvironmentBroken,
        InternalError,
        InvalidConfiguration,
        InvalidId,
        InvalidInput,
        NothingToDo,
        NotInStore,
        ObjectMissing,
        SnapshotUnstable,
        SourceUnreadable,
        Stopped,
        StoreCorrupt,
        StoreError,
        StoreForeign,
        StoreInUse,
        StoreNotFound,
        StoreUnwritable,
        ToolMismatch,
        UnfitFileSystem,
        UnknownId,
        UnreadablePath,
    )
    from codebatch.model.record import Ast, Diagnostic, Duplicate, Edge, Failure, File, Fingerprints, Metric, Symbol
    from codebatch.query.completeness import Completeness
    from codebatch.query.dependencies import Cycle, Dependent, Import
    from codebatch.query.filters import RecordFilter
    from codebatch.query.summary import Summary
    from codebatch.store.batches import Batch
    from codebatch.store.store import Store

__version__ = "2.0.0"

__all__ = [
    "AmbiguousId",
    "Answer",
    "Ast",
    "Batch",
    "BatchIncomplete",
    "BatchStatus",
    "CodebatchError",
    "CollectedMeanwhile",
    "Completeness",
    "CorruptFile",
    "Cycle",
    "Dependent",
    "Diagnostic",
    "Duplicate",
    "Edge",
    "EnvironmentBroken",
    "Failure",
    "File",
    "Fingerprints",
    "Impact",
    "Import",
    "Inspected",
    "InternalError",
    "InvalidConfiguration",
    "InvalidId",
    "InvalidInput",
    "ListedBatch",
    "Listener",
    "Metric",
    "NotInStore",
    "NothingToDo",
    "ObjectMissing",
    "Question",
    "Ran",
    "RecordFilter",
    "SnapshotUnstable",
    "SourceUnreadable",
    "Stopped",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreForeign",
    "StoreInUse",
    "StoreNotFound",
    "StoreUnwritable",
    "Summary",
    "Symbol",
    "TaskStatus",
    "ToolMismatch",
    "UnfitFileSystem",
    "UnknownId",
    "UnreadablePath",
    "__version__",
    "ask",
    "find_errors",
    "impact",
    "import_cycles",
    "imports",
    "inspect",
    "list_batches",
    "list_files",
    "open_store",
    "rank",
    "references",
    "run",
    "search",
    "status",
    "summarise",
]

_NAMES = {
    "application.asking": "Answer Question ask",
    "application.batches": "BatchStatus ListedBatch TaskStatus list_batches status",
    "application.dependencies": "Impact impact import_cycles imports",
    "application.questions": "Inspected find_errors inspect list_files rank search summarise",
    "application.references": "references",
    "application.execution": "Listener",
    "application.ran": "Ran",
    "application.running": "run",
    "application.stores": "open_store",
    "errors": (
        "AmbiguousId BatchIncomplete CodebatchError CollectedMeanwhile CorruptFile EnvironmentBroken "
        "InternalError InvalidConfiguration InvalidId InvalidInput NotInStore NothingToDo ObjectMissing "
        "SnapshotUnstable SourceUnreadable Stopped StoreCorrupt StoreError StoreForeign StoreInUse StoreNotFound "
        "StoreUnwritable ToolMismatch UnfitFileSystem UnknownId UnreadablePath"
    ),
    "model.record": "Ast Diagnostic Duplicate Edge Failure File Fingerprints Metric Symbol",
    "query.completeness": "Completeness",
    "query.dependencies": "Cycle Dependent Import",
    "query.filters": "RecordFilter",
    "query.summary": "Summary",
    "store.batches": "Batch",
    "store.store": "Store",
}
"""By module."""

if not TYPE_CHECKING:  # Who checks types is to see a name that there is not.

    def __getattr__(name: str) -> object:
        for module, names in _NAMES.items():
            if name in names.split():
                value = globals()[name] = getattr(importlib.import_module(f"codebatch.{module}"), name)
                return value
        raise AttributeError(f"module 'codebatch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
