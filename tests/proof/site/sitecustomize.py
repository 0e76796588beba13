"""Replacement of the system calls of a test's processes, which have this directory in PYTHONPATH.

If the file `trace` exists beside this module, calls are recorded there. Otherwise the file `refuse` has the errno and
the number of the write to refuse. These are files, because workers get only a few environment variables.
"""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.system.files import files
from codebatch.system.files.system_calls import RealCalls, SystemCalls
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.trace import TracedCalls

HERE = Path(__file__).parent


def _make_calls() -> SystemCalls:
    if (HERE / "trace").exists():
        return TracedCalls(RealCalls(), HERE / "trace")
    number, refused_at = map(int, (HERE / "refuse").read_text(encoding="ascii").split())
    counter = os.open(HERE / "writes", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def refuse(operation: Operation) -> Fate | None:
        if not operation.is_write:
            return None
        os.write(counter, b"!")  # Appended in one step, so that the n-th write of all processes finds n bytes.
        if os.lseek(counter, 0, os.SEEK_CUR) != refused_at:
            return None
        return Fate(
            OSError(number, os.strerror(number), str(operation.path)), share=0.5 if operation.call == "write" else 0
        )

    return WatchedCalls(RealCalls(), refuse)


vars(files)["RealCalls"] = _make_calls  # The name that RealFiles looks up.
