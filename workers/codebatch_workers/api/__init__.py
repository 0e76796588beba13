"""The API for custom tasks: the interfaces of tasks, their input, and the values that they return.

from codebatch_workers.api import Diagnostic, SourceFile, diagnostic
"""

from codebatch.model.record import (
    Ast,
    Diagnostic,
    Duplicate,
    Edge,
    File,
    FileChange,
    Fingerprints,
    Metric,
    Names,
    Record,
    Symbol,
)
from codebatch.model.task import TaskDeclaration
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import BatchedFileTask, FileTask, ProjectTask, TaskEnvironment
from codebatch_workers.syntax.edited_files import EditedFile
from codebatch_workers.syntax.findings import diagnostic
from codebatch_workers.syntax.source import SourceFile

__all__ = [
    "Ast",
    "BatchedFileTask",
    "Diagnostic",
    "Duplicate",
    "Edge",
    "EditedFile",
    "File",
    "FileChange",
    "FileTask",
    "Fingerprints",
    "Metric",
    "Names",
    "Project",
    "ProjectTask",
    "Record",
    "SourceFile",
    "Symbol",
    "TaskDeclaration",
    "TaskEnvironment",
    "diagnostic",
]
