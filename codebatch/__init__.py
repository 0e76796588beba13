"""codebatch: a multiprocess parallel executor for work over large codebases.

Every public name stands here, and is imported when it is first asked for. `run` works on a tree. `open` gives what was
worked on before: a store, its batches, and of these the records, by noun, and all else that can be asked of them
(codebatch/application/opened.py says what holds). What is asked wrongly, or found wrong, is a CodebatchError; what else
the system refuses (a current directory that is gone, a path that is too long) is an OSError. What tasks are written
against is in `codebatch_workers.api`.
"""

from __future__ import annotations

import importlib

# As typing has it, which takes as long as all that is imported before Ctrl-C is heard by us (__main__.py).
TYPE_CHECKING = False

if TYPE_CHECKING:
    from codebatch.application.asking import Answer
    from codebatch.application.batches import BatchStatus, ListedBatch, TaskStatus
    from codebatch.application.checking import Checked, check
    from codebatch.application.comparing import Comparison
    from codebatch.application.copies import CopiedBlock, CopiedPlace, Copies
    from codebatch.application.definitions import Caller
    from codebatch.application.execution import Listener
    from codebatch.application.hotspots import Hotspot, Hotspots
    from codebatch.application.impact import Impact
    from codebatch.application.import_file import import_findings
    from codebatch.application.importing import Imported, Unimportable
    from codebatch.application.nouns import Records
    from codebatch.application.opened import OpenedStore, open
    from codebatch.application.opened_batch import OpenedBatch
    from codebatch.application.overview import Overview
    from codebatch.application.questions import Content, Inspected
    from codebatch.application.ran import Ran
    from codebatch.application.running import run
    from codebatch.compare.differences import Difference
    from codebatch.errors import (
        AmbiguousId,
        BatchBlocked,
        BatchCancelled,
        BatchConducted,
        BatchIncomplete,
        CodebatchError,
        CollectedMeanwhile,
        CorruptFile,
        EnvironmentBroken,
        InternalError,
        InvalidConfiguration,
        InvalidId,
        InvalidInput,
        InvalidQuery,
        InvalidWork,
        NoBatchOfProject,
        NothingLeft,
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
        StrangeEntry,
        ToolMismatch,
        UnfitFileSystem,
        UnknownId,
        UnreadablePath,
        UnsafeStorePlace,
        WrongKind,
    )
    from codebatch.exchange.export import Export
    from codebatch.exchange.making import make_export
    from codebatch.model.record import Ast, Diagnostic, Duplicate, Edge, Failure, File, Fingerprints, Metric, Symbol
    from codebatch.query.completeness import Completeness
    from codebatch.query.dependencies import Cycle, Dependent, Import
    from codebatch.query.shaping import Groups
    from codebatch.query.summary import Summary
    from codebatch.report.making import make_report
    from codebatch.store.batches import Batch
    from codebatch.store.store import Store

__version__ = "2.0.0"

__all__ = [
    "AmbiguousId",
    "Answer",
    "Ast",
    "Batch",
    "BatchBlocked",
    "BatchCancelled",
    "BatchConducted",
    "BatchIncomplete",
    "BatchStatus",
    "Caller",
    "Checked",
    "CodebatchError",
    "CollectedMeanwhile",
    "Comparison",
    "Completeness",
    "Content",
    "CopiedBlock",
    "CopiedPlace",
    "Copies",
    "CorruptFile",
    "Cycle",
    "Dependent",
    "Diagnostic",
    "Difference",
    "Duplicate",
    "Edge",
    "EnvironmentBroken",
    "Export",
    "Failure",
    "File",
    "Fingerprints",
    "Groups",
    "Hotspot",
    "Hotspots",
    "Impact",
    "Import",
    "Imported",
    "Inspected",
    "InternalError",
    "InvalidConfiguration",
    "InvalidId",
    "InvalidInput",
    "InvalidQuery",
    "InvalidWork",
    "ListedBatch",
    "Listener",
    "Metric",
    "NoBatchOfProject",
    "NotInStore",
    "NothingLeft",
    "NothingToDo",
    "ObjectMissing",
    "OpenedBatch",
    "OpenedStore",
    "Overview",
    "Ran",
    "Records",
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
    "StrangeEntry",
    "Summary",
    "Symbol",
    "TaskStatus",
    "ToolMismatch",
    "UnfitFileSystem",
    "Unimportable",
    "UnknownId",
    "UnreadablePath",
    "UnsafeStorePlace",
    "WrongKind",
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
    "application.checking": "Checked check",
    "application.comparing": "Comparison",
    "application.copies": "CopiedBlock CopiedPlace Copies",
    "application.definitions": "Caller",
    "application.execution": "Listener",
    "application.hotspots": "Hotspot Hotspots",
    "application.impact": "Impact",
    "application.import_file": "import_findings",
    "application.importing": "Imported Unimportable",
    "application.nouns": "Records",
    "application.opened": "OpenedStore open",
    "application.opened_batch": "OpenedBatch",
    "application.overview": "Overview",
    "application.questions": "Content Inspected",
    "application.ran": "Ran",
    "application.running": "run",
    "compare.differences": "Difference",
    "errors": (
        "AmbiguousId BatchBlocked BatchCancelled BatchConducted BatchIncomplete CodebatchError CollectedMeanwhile "
        "CorruptFile EnvironmentBroken InternalError InvalidConfiguration InvalidId InvalidInput InvalidQuery "
        "InvalidWork NoBatchOfProject NotInStore NothingLeft NothingToDo ObjectMissing SnapshotUnstable "
        "SourceUnreadable Stopped StoreCorrupt StoreError StoreForeign StoreInUse StoreNotFound StoreUnwritable "
        "StrangeEntry ToolMismatch UnfitFileSystem UnknownId UnreadablePath UnsafeStorePlace WrongKind"
    ),
    "exchange.export": "Export",
    "exchange.making": "make_export",
    "model.record": "Ast Diagnostic Duplicate Edge Failure File Fingerprints Metric Symbol",
    "query.completeness": "Completeness",
    "query.dependencies": "Cycle Dependent Import",
    "query.shaping": "Groups",
    "query.summary": "Summary",
    "report.making": "make_report",
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
