"""An installed package with tasks that need no built-in task.

`spelling` and `sizes` need no task, `errata` needs `spelling`, and `hen` and `egg` need each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.model.record import Diagnostic, Metric, Record
from codebatch.model.task import NoConfig, TaskDeclaration
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.syntax.source import SourceFile

SPELLING = TaskDeclaration(
    name="spelling",
    version="1",
    summary="misspelled words",
    implementation="spelling:create",
    records=("diagnostic",),
    tools=("spelling",),
)
ERRATA = TaskDeclaration(
    name="errata",
    version="1",
    summary="needs spelling",
    implementation="spelling:create",
    records=("diagnostic",),
    needs=("spelling",),
)
SIZES = TaskDeclaration(
    name="sizes", version="1", summary="sizes of files", implementation="spelling:create_sizes", records=("metric",)
)
HEN = TaskDeclaration(
    name="hen", version="1", summary="needs egg", implementation="spelling:create", records=(), needs=("egg",)
)
EGG = TaskDeclaration(
    name="egg", version="1", summary="needs hen", implementation="spelling:create", records=(), needs=("hen",)
)


class Spelling:
    """A task that reports each line with the word `teh`."""

    def run_file(self, file: SourceFile) -> Iterator[Record]:
        """Yield a warning for each misspelled line."""
        path, path_b64 = file.path_fields
        for number, line in enumerate(file.content.split(b"\n"), 1):
            if b"teh" in line.split():
                yield Diagnostic(
                    path=path,
                    path_b64=path_b64,
                    tool="spelling",
                    code="misspelled",
                    severity="warning",
                    message="`teh` is misspelled",
                    line=number,
                    column=1,
                    end_line=number,
                    end_column=1,
                )


def create(environment: TaskEnvironment[NoConfig]) -> Spelling:
    """Create the task."""
    return Spelling()


class Sizes:
    """A task that measures the size of each file in bytes."""

    def run_file(self, file: SourceFile) -> Iterator[Record]:
        """Yield the size of the file."""
        path, path_b64 = file.path_fields
        yield Metric(path=path, path_b64=path_b64, metric="bytes", value=len(file.content))


def create_sizes(environment: TaskEnvironment[NoConfig]) -> Sizes:
    """Create the task `sizes`."""
    return Sizes()
