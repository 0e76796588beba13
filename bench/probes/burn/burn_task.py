"""The work `burn` as a custom task of codebatch."""

from __future__ import annotations

import importlib

from codebatch.model.record import Metric, Record
from codebatch.model.task import NoConfig, TaskDeclaration
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.syntax.source import SourceFile

burn = importlib.import_module("burn").burn

BURN = TaskDeclaration(
    name="burn", version="1", summary="hashes so many blocks", implementation="burn_task:create", records=("metric",)
)


class Burn:
    """The task `burn`."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return one metric for the file."""
        path, path_b64 = file.path_fields
        return [Metric(path=path, path_b64=path_b64, metric="bytes", value=burn(file.content))]


def create(_environment: TaskEnvironment[NoConfig]) -> Burn:
    """Create the task."""
    return Burn()
