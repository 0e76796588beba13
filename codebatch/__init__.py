"""codebatch: parallel analysis of large codebases, with cached results.

`run` analyses a directory. `open` opens a store and gives access to its batches: their records by type, and answers to
questions (codebatch/operations/api/store.py describes the guarantees).

Invalid input and failures raise CodebatchError. Other errors of the operating system raise OSError, for example if the
current directory was deleted or a path is too long.

This package contains all public names. Each name is imported on first use. `codebatch.work` runs task lists.
`codebatch_workers.api` is the API for custom tasks.
"""

from __future__ import annotations

import importlib

# Defined here because importing typing would double the time before the handler of Ctrl-C is set (__main__.py).
TYPE_CHECKING = False

if TYPE_CHECKING:
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
        Forbidden,
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
        TaskNotRun,
        TaskProcessFailed,
        ToolMismatch,
        UnknownCursor,
        UnknownId,
        UnreadablePath,
        UnsafeStoreLocation,
        UnsupportedEntry,
        UnsupportedFileSystem,
        WrongBatchKind,
    )
    from codebatch.interchange.findings import Export
    from codebatch.model.record import (
        Ast,
        Diagnostic,
        Duplicate,
        Edge,
        Failure,
        File,
        FileChange,
        Fingerprints,
        Metric,
        Names,
        Omission,
        Symbol,
    )
    from codebatch.operations.api.batch import Batch
    from codebatch.operations.api.record_queries import Records
    from codebatch.operations.api.store import Store, open
    from codebatch.operations.changes.changed_files import ChangedFile
    from codebatch.operations.comparison.comparison import Comparison
    from codebatch.operations.export.export import make_export
    from codebatch.operations.gate.quality_gate import CheckResult, check
    from codebatch.operations.hotspots.hotspots import Hotspot, Hotspots
    from codebatch.operations.names.callers import Caller
    from codebatch.operations.names.impact import Impact
    from codebatch.operations.names.implementations import Implementation
    from codebatch.operations.names.symbol_impact import SymbolDependent, SymbolImpact
    from codebatch.operations.names.symbol_overview import SymbolOverview
    from codebatch.operations.names.symbol_use import SymbolUse
    from codebatch.operations.names.symbol_uses import SymbolUses
    from codebatch.operations.queries.batch_query import Answer
    from codebatch.operations.queries.batches import BatchStatus, ListedBatch, TaskStatus
    from codebatch.operations.queries.duplicate_blocks import DuplicateBlock, DuplicateLocation
    from codebatch.operations.queries.duplicates import DuplicateBlocks
    from codebatch.operations.queries.file_overview import Overview
    from codebatch.operations.queries.records import FileContent, FileRecords
    from codebatch.operations.runs.execution import Listener
    from codebatch.operations.runs.import_file import import_findings
    from codebatch.operations.runs.imports import ImportResult, InvalidImport
    from codebatch.operations.runs.run import run
    from codebatch.operations.runs.run_result import RunResult
    from codebatch.query.answers.dependencies import Cycle, Dependent, FileImport
    from codebatch.query.answers.search_coverage import SearchCoverage
    from codebatch.query.answers.summary import Summary
    from codebatch.query.completeness import Completeness
    from codebatch.query.filters.shaping import Groups
    from codebatch.report.report import make_report
    from codebatch.store.batches.batch_directory import BatchDir
    from codebatch.store.batches.store_directory import StoreDir

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
    "ChangedFile",
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
    "FileChange",
    "FileContent",
    "FileImport",
    "FileRecords",
    "Fingerprints",
    "Forbidden",
    "Groups",
    "Hotspot",
    "Hotspots",
    "Impact",
    "Implementation",
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
    "Names",
    "NoBatch",
    "NotInStore",
    "NothingLeft",
    "NothingToDo",
    "ObjectMissing",
    "Omission",
    "Overview",
    "Records",
    "RunResult",
    "SearchCoverage",
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
    "SymbolDependent",
    "SymbolImpact",
    "SymbolOverview",
    "SymbolUse",
    "SymbolUses",
    "TaskNotRun",
    "TaskProcessFailed",
    "TaskStatus",
    "ToolMismatch",
    "UnknownCursor",
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

_EXPORTED_NAMES = {
    "compare.differences": "Change",
    "errors": (
        "AmbiguousId BatchBlocked BatchCancelled BatchIncomplete BatchRemoved BatchRunning "
        "CodebatchError CorruptFile EnvironmentBroken Forbidden InternalError InvalidConfiguration InvalidId "
        "InvalidInput InvalidQuery InvalidWork NoBatch NothingLeft NothingToDo NotInStore ObjectMissing "
        "SnapshotUnstable SourceUnreadable Stopped StoreCorrupt StoreError StoreInUse StoreNotFound "
        "StoreUntrusted StoreUnwritable TaskNotRun TaskProcessFailed ToolMismatch UnknownCursor UnknownId "
        "UnreadablePath UnsafeStoreLocation UnsupportedEntry UnsupportedFileSystem WrongBatchKind"
    ),
    "interchange.findings": "Export",
    "model.record": "Ast Diagnostic Duplicate Edge Failure File FileChange Fingerprints Metric Names Omission Symbol",
    "operations.api.batch": "Batch",
    "operations.api.record_queries": "Records",
    "operations.api.store": "open Store",
    "operations.changes.changed_files": "ChangedFile",
    "operations.comparison.comparison": "Comparison",
    "operations.export.export": "make_export",
    "operations.gate.quality_gate": "check CheckResult",
    "operations.hotspots.hotspots": "Hotspot Hotspots",
    "operations.names.callers": "Caller",
    "operations.names.implementations": "Implementation",
    "operations.names.symbol_impact": "SymbolDependent SymbolImpact",
    "operations.names.symbol_overview": "SymbolOverview",
    "operations.names.symbol_use": "SymbolUse",
    "operations.names.symbol_uses": "SymbolUses",
    "operations.queries.batch_query": "Answer",
    "operations.queries.batches": "BatchStatus ListedBatch TaskStatus",
    "operations.queries.duplicate_blocks": "DuplicateBlock DuplicateLocation",
    "operations.queries.duplicates": "DuplicateBlocks",
    "operations.queries.file_overview": "Overview",
    "operations.names.impact": "Impact",
    "operations.queries.records": "FileContent FileRecords",
    "operations.runs.execution": "Listener",
    "operations.runs.import_file": "import_findings",
    "operations.runs.imports": "ImportResult InvalidImport",
    "operations.runs.run": "run",
    "operations.runs.run_result": "RunResult",
    "query.answers.dependencies": "Cycle Dependent FileImport",
    "query.answers.search_coverage": "SearchCoverage",
    "query.answers.summary": "Summary",
    "query.completeness": "Completeness",
    "query.filters.shaping": "Groups",
    "report.report": "make_report",
    "store.batches.batch_directory": "BatchDir",
    "store.batches.store_directory": "StoreDir",
}
"""Public names by module."""

if not TYPE_CHECKING:  # Type checkers must report unknown names, so they must not see `__getattr__`.

    def __getattr__(name: str) -> object:
        for module, names in _EXPORTED_NAMES.items():
            if name in names.split():
                value = globals()[name] = getattr(importlib.import_module(f"codebatch.{module}"), name)
                return value
        raise AttributeError(f"module 'codebatch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
