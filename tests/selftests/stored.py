"""A store with one batch for self-tests."""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.cli.reference.selftest import load_commands
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.selftests.catalogue import GateResult, find_gate, run_gate
from codebatch.selftests.subject import SelftestSubject
from codebatch.store.batches.batch_directory import iter_batches
from codebatch.store.batches.store_directory import open_store
from codebatch.system.files.files import RealFiles

MOODY = """
from pathlib import Path
from codebatch.model.record import Metric
def task(file):
    mood = Path({mood!r}).read_text()
    if mood == "bad":
        raise ValueError(mood)
    yield Metric(path=file.path.decode(), metric="mood", value=len(mood))
"""


class Stored:
    """A store with one batch, and the directory of its project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "store"
        # The project is the root of the batch, even if the store is a copy.
        batches = iter_batches(open_store(RealFiles(), self.store)) if self.store.exists() else ()
        roots = [Path(os.fsdecode(batch.about.project_root)) for batch in batches]
        self.place = StoreLocator(self.store, start=roots[0] if roots else root)

    def one(self, pattern: str) -> Path:
        """Return the first file of the store that matches a pattern."""
        return min(self.store.glob(pattern))

    def subject(self, reference: str | None = None) -> SelftestSubject:
        """Return the subject that self-tests check."""
        return SelftestSubject(
            place=self.place,
            reference=reference,
            execution=lambda: ExecutionSettings(configuration=load_configuration(self.root / "tree"), jobs=1),
            load_commands=load_commands,
            listener=Listener(),
        )

    def gate(self, name: str) -> GateResult:
        """Run a self-test and return its result."""
        return run_gate(find_gate(name), self.subject())
