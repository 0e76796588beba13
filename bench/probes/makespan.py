"""Print one simulated run of the scheduler as JSON: `python -m bench.probes.makespan SKEW ITEMS JOBS exact|wrong`."""

from __future__ import annotations

import json
import sys
import time

from tests.scheduling.work.makespan import SKEWS, Crew, Simulation, wrong

if __name__ == "__main__":
    skew, items, jobs, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    costs = SKEWS[skew](items, 1)
    simulation = Simulation(costs, costs if kind == "exact" else wrong(costs, 2), Crew(jobs=jobs))
    began = time.process_time()
    makespan = simulation.run()
    share, largest = sum(costs) / jobs, max(costs)
    answer = {
        "makespan": makespan,
        "bound": max(largest, share) if kind == "exact" else share + largest,
        "units": simulation.units,
        "steals": simulation.steals,
        "twice": max(0.0, simulation.busy / sum(costs) - 1),
        "cpu_s": time.process_time() - began,
    }
    print(json.dumps(answer))
