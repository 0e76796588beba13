"""codebatch: parallel analysis of large codebases, with cached results.

`run` analyses a directory. `open` opens a store and gives access to its batches: their records by type, and answers to
questions (codebatch/application/opened.py describes the guarantees).

Invalid input and failures raise CodebatchError. Other errors of the operating system raise OSError, for example if the
current directory was deleted or a path is too long.

This package contains all public names. Each name is imported on first use. `codebatch.work` runs task lists.
`codebatch_workers.api` is the API for custom tasks.
"""

from __future__ import annotations

import importlib

# As typing has it, which takes as long as all that is imported before Ctrl-C is heard by us (__main__.py).
TYPE_CHECKING = False

if TYPE_CHECKING:
    from codebatch.application.asking import Answer
    from codebatch.application.batches import BatchStatus, ListedBatch, TaskStatus
    from codebatch.application.checking import CheckResult, check
    from codebatch.application.comparing import Comparison
    from codebatch.application.copies import DuplicateBlock, DuplicateBlocks, DuplicateLocation
    from codebatch.application.definitions import Caller
    from codebatch.application.execution import Listener
    from codebatch.application.hotspots import Hotspot, Hotspots
    from codebatch.application.impact import Impact
    from codebatch.application.import_file import import_findings
    from codebatch.application.importing import ImportResult, InvalidImport
    from codebatch.application.nouns import Records
    from codebatch.application.opened import Store, open
    from codebatch.application.opened_batch import Batch
    from codebatch.application.overview import Overview
    from codebatch.application.questions import FileContent, FileRecords
    from codebatch.application.ran import RunResult
    from codebatch.application.running import run
    from codebatch.compare.differences import Change
    from codebatch.errors import (
        AmbiguousId,
        BatchBlocked,
        BatchCancelled,
        BatchIncomplete,
        BatchRemoved,
        BatchRunning,
        CodebatchError,
        CorruptFile,
        EnvironmentBroken,
        InternalError,
        InvalidConfiguration,
        InvalidId,
        InvalidInput,
        InvalidQuery,
        InvalidWork,
        NoBatch,
        NothingLeft,
        NothingToDo,
        NotInStore,
        ObjectMissing,
        SnapshotUnstable,
        SourceUnreadable,
        Stopped,
        StoreCorrupt,
        StoreError,
        StoreInUse,
        StoreNotFound,
        StoreUntrusted,
        StoreUnwritable,
        ToolMismatch,
        UnknownId,
        UnreadablePath,
        UnsafeStoreLocation,
        UnsupportedEntry,
        UnsupportedFileSystem,
        WrongBatchKind,
    )
    from codebatch.exchange.export import Export
    from codebatch.exchange.making import make_export
    from codebatch.model.record import Ast, Diagnostic, Duplicate, Edge, Failure, File, Fingerprints, Metric, Symbol
    from codebatch.query.completeness import Completeness
    from codebatch.query.dependencies import Cycle, Dependent, Import
    from codebatch.query.shaping import Groups
    from codebatch.query.summary import Summary
    from codebatch.report.making import make_report
    from codebatch.store.batches import BatchDir
    from codebatch.store.store import StoreDir

__version__ = "2.0.0"

__all__ = [
    "AmbiguousId",
    "Answer",
    "Ast",
    "Batch",
    "BatchBlocked",
    "BatchCancelled",
    "BatchDir",
    "BatchIncomplete",
    "BatchRemoved",
    "BatchRunning",
    "BatchStatus",
    "Caller",
    "Change",
    "CheckResult",
    "CodebatchError",
    "Comparison",
    "Completeness",
    "CorruptFile",
    "Cycle",
    "Dependent",
    "Diagnostic",
    "Duplicate",
    "DuplicateBlock",
    "DuplicateBlocks",
    "DuplicateLocation",
    "Edge",
    "EnvironmentBroken",
    "Export",
    "Failure",
    "File",
    "FileContent",
    "FileRecords",
    "Fingerprints",
    "Groups",
    "Hotspot",
    "Hotspots",
    "Impact",
    "Import",
    "ImportResult",
    "InternalError",
    "InvalidConfiguration",
    "InvalidId",
    "InvalidImport",
    "InvalidInput",
    "InvalidQuery",
    "InvalidWork",
    "ListedBatch",
    "Listener",
    "Metric",
    "NoBatch",
    "NotInStore",
    "NothingLeft",
    "NothingToDo",
    "ObjectMissing",
    "Overview",
    "Records",
    "RunResult",
    "SnapshotUnstable",
    "SourceUnreadable",
    "Stopped",
    "Store",
    "StoreCorrupt",
    "StoreDir",
    "StoreError",
    "StoreInUse",
    "StoreNotFound",
    "StoreUntrusted",
    "StoreUnwritable",
    "Summary",
    "Symbol",
    "TaskStatus",
    "ToolMismatch",
    "UnknownId",
    "UnreadablePath",
    "UnsafeStoreLocation",
    "UnsupportedEntry",
    "UnsupportedFileSystem",
    "WrongBatchKind",
    "__version__",
    "check",
    "import_findings",
    "make_export",
    "make_report",
    "open",
    "run",
]

_NAMES = {
    "application.asking": "Answer",
    "application.batches": "BatchStatus ListedBatch TaskStatus",
    "application.checking": "CheckResult check",
    "application.comparing": "Comparison",
    "application.copies": "DuplicateBlock DuplicateLocation DuplicateBlocks",
    "application.definitions": "Caller",
    "application.execution": "Listener",
    "application.hotspots": "Hotspot Hotspots",
    "application.impact": "Impact",
    "application.import_file": "import_findings",
    "application.importing": "ImportResult InvalidImport",
    "application.nouns": "Records",
    "application.opened": "Store open",
    "application.opened_batch": "Batch",
    "application.overview": "Overview",
    "application.questions": "FileContent FileRecords",
    "application.ran": "RunResult",
    "application.running": "run",
    "compare.differences": "Change",
    "errors": (
        "AmbiguousId BatchBlocked BatchCancelled BatchRunning BatchIncomplete CodebatchError BatchRemoved "
        "CorruptFile EnvironmentBroken InternalError InvalidConfiguration InvalidId InvalidInput InvalidQuery "
        "InvalidWork NoBatch NotInStore NothingLeft NothingToDo ObjectMissing SnapshotUnstable "
        "SourceUnreadable Stopped StoreCorrupt StoreError StoreUntrusted StoreInUse StoreNotFound StoreUnwritable "
        "UnsupportedEntry ToolMismatch UnsupportedFileSystem UnknownId UnreadablePath UnsafeStoreLocation "
        "WrongBatchKind"
    ),
    "exchange.export": "Export",
    "exchange.making": "make_export",
    "model.record": "Ast Diagnostic Duplicate Edge Failure File Fingerprints Metric Symbol",
    "query.completeness": "Completeness",
    "query.dependencies": "Cycle Dependent Import",
    "query.shaping": "Groups",
    "query.summary": "Summary",
    "report.making": "make_report",
    "store.batches": "BatchDir",
    "store.store": "StoreDir",
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
