"""Run a tree once and report the time of each phase: `python -m bench.probes.phases TREE STORE JOBS STARTED OUT`.

The probe calls `run_paths`, as the command line does, and receives the phases as a listener. STARTED is the time of
CLOCK_MONOTONIC in nanoseconds when the caller started this process, so that the first phase includes the start of
Python and imports. The phases follow each other without gaps. Execution is divided by the journal of the run.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from codebatch.coordinator.analysis.progress_counter import RunPhase
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import ExecutionSettings, Listener, RunAction
from codebatch.operations.runs.run import run_paths
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import BatchDir

_STARTING, _UNITS, _PROJECT_TASKS, _ENDING = "starting workers", "file units", "project tasks", "ending workers"


class PhaseCost(msgspec.Struct, frozen=True, kw_only=True):
    """A phase: its wall-clock seconds, and the CPU seconds of the coordinator process in it, without its children.

    CPU is None where only the journal divides phases.
    """

    name: str
    wall_s: float
    cpu_s: float | None = None


class PhasedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a tree.

    - `busy_share`: the part of the time of all workers, during the phase of file units, in which they executed units.
    - `unit_cpu_s`, `project_cpu_s`: CPU seconds inside of units of file tasks and of project tasks.
    - `project_wall_s`: wall-clock seconds of each project task. Project tasks may overlap with each other.
    - `longest_unit_s`: wall-clock seconds of the longest unit of file tasks.
    """

    jobs: int
    result_digest: str
    files: int
    records: int
    failures: int
    coordinator_cpu_s: float
    phases: tuple[PhaseCost, ...]
    execution: tuple[PhaseCost, ...]
    workers: int
    units: int
    busy_share: float
    unit_cpu_s: float
    project_cpu_s: float
    project_wall_s: Mapping[str, float]
    longest_unit_s: float


class _PhaseRecorder(Listener):
    """A listener that records when each phase begins, and the CPU time used until then."""

    def __init__(self, started_ns: int) -> None:
        self.begins: list[tuple[str, int, float]] = [("start of Python", started_ns, 0.0)]

    def phase(self, phase: RunPhase, done: int = 0, planned: int = 0, unit: str = "files") -> None:
        self.begin(phase)

    def chosen(self, batch: BatchDir, action: RunAction) -> None:
        self.begin("execution")

    def begin(self, name: str) -> None:
        """Begin a phase, unless it is the current phase."""
        if self.begins[-1][0] != name:
            self.begins.append((name, time.monotonic_ns(), _own_cpu_s()))

    def costs(self) -> tuple[PhaseCost, ...]:
        """Return the cost of each phase. The last phase that began is the end, and has no cost."""
        return tuple(
            PhaseCost(name=name, wall_s=(end_ns - start_ns) / 1e9, cpu_s=end_cpu - start_cpu)
            for (name, start_ns, start_cpu), (_, end_ns, end_cpu) in zip(self.begins, self.begins[1:], strict=False)
        )


def measure(tree: Path, store: Path, jobs: int, started_ns: int) -> PhasedRun:
    """Run a tree into a store that does not exist. Raises CodebatchError."""
    recorder = _PhaseRecorder(started_ns)
    settings = ExecutionSettings(configuration=load_configuration(tree), jobs=jobs)
    recorder.begin("preparing")
    result = run_paths((tree,), StoreLocator(store), settings, listener=recorder)
    recorder.begin("end")
    execution_ns = next(at_ns for name, at_ns, _ in recorder.begins if name == "execution")
    wall_offset_ns = time.time_ns() - time.monotonic_ns()
    lines = journal.read_journal(result.batch.files, result.batch.root)
    units = _Units(lines, frozenset(result.batch.plan().project_tasks))
    return PhasedRun(
        jobs=jobs,
        result_digest=result.result_digest or "",
        files=result.summary.files,
        records=result.summary.records,
        failures=result.summary.failures,
        coordinator_cpu_s=_own_cpu_s(),
        phases=recorder.costs(),
        execution=units.phases(execution_ns + wall_offset_ns),
        workers=sum(isinstance(line.event, journal.Spawned) for line in lines),
        units=len(units.of_files),
        busy_share=units.busy_share(jobs),
        unit_cpu_s=sum(cpu for _, _, cpu in units.of_files),
        project_cpu_s=units.project_cpu_s,
        project_wall_s=units.project_wall_s,
        longest_unit_s=max((end - start) / 1e9 for start, end, _ in units.of_files),
    )


class _Units:
    """The units of a run: start and end in nanoseconds, and CPU seconds."""

    def __init__(self, lines: Iterable[journal.JournalLine], project_tasks: frozenset[str]) -> None:
        self.of_files: list[tuple[int, int, float]] = []
        self.project_wall_s: dict[str, float] = defaultdict(float)
        self.project_cpu_s = 0.0
        self._ends_ns: list[int] = []
        self._ended_ns = 0
        begun: dict[tuple[str, str, int, int], tuple[int, journal.Began]] = {}
        for line in lines:
            match line.event:
                case journal.Began() as began:
                    begun[line.holder, began.shard, began.start, began.epoch] = line.at_ns, began
                case journal.Finished() as finished:
                    at_ns, began = begun.pop((line.holder, finished.shard, finished.start, finished.epoch))
                    self._ends_ns.append(line.at_ns)
                    if project_tasks.issuperset(began.tasks):
                        self.project_wall_s[", ".join(began.tasks)] += (line.at_ns - at_ns) / 1e9
                        self.project_cpu_s += finished.cpu_seconds
                    else:
                        self.of_files.append((at_ns, line.at_ns, finished.cpu_seconds))
                case journal.Ended():
                    self._ended_ns = line.at_ns
                case _:
                    pass

    def phases(self, began_ns: int) -> tuple[PhaseCost, ...]:
        """Return the phases of execution. `project tasks` is only the time after the last unit of file tasks."""
        first_ns = min(start for start, _, _ in self.of_files)
        last_ns = max(end for _, end, _ in self.of_files)
        steps = ((_STARTING, first_ns), (_UNITS, last_ns), (_PROJECT_TASKS, max(self._ends_ns)))
        phases = []
        for name, end_ns in (*steps, (_ENDING, self._ended_ns)):
            phases.append(PhaseCost(name=name, wall_s=(end_ns - began_ns) / 1e9))
            began_ns = end_ns
        return tuple(phases)

    def busy_share(self, jobs: int) -> float:
        """Return the part of the time of all workers in which they executed units of file tasks."""
        first_ns = min(start for start, _, _ in self.of_files)
        last_ns = max(end for _, end, _ in self.of_files)
        return sum(end - start for start, end, _ in self.of_files) / (jobs * (last_ns - first_ns))


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    _tree, _store, _jobs, _started, _out = sys.argv[1:]
    Path(_out).write_bytes(msgspec.json.encode(measure(Path(_tree), Path(_store), int(_jobs), int(_started))))
