"""Print the CPU seconds of COUNT runs of `sh -c true` alone: `python -m bench.probes.bare_commands COUNT`."""

from __future__ import annotations

import os
import resource
import sys

if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "true"], os.environ), 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)
