"""`codebatch`, and `python -m codebatch`: the first lines of the process, before anything that takes time is imported.

What a parent process left us is put right here: a child's exit status must be ours to know (SIGCHLD ignored: it is
lost), and no signal may be blocked. One that is ignored stays ignored (nohup). A standard input that is closed has
nothing to read, and its descriptor is no other file's.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys

_INTERRUPTED = b"error: interrupted\n"
_INTERRUPTED_JSON = (
    b'{"error": {"code": "interrupted", "message": "interrupted", "hint": null, "exit": 130},'
    b' "schema": "codebatch.error/1"}\n'
)


def main() -> None:
    """The console script. Ends the process."""
    gc.set_threshold(50_000, 20, 50)  # While modules are made there is no garbage to collect.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (as long as the process)

    from codebatch.cli import run_command_line

    run_command_line(sys.argv[1:])


def _end(*_: object) -> None:
    """Ctrl-C while we import: nothing was begun."""
    with contextlib.suppress(OSError):
        os.write(2, _INTERRUPTED_JSON if _asks_for_json(sys.argv) else _INTERRUPTED)
    os._exit(130)


def _asks_for_json(arguments: list[str]) -> bool:
    """As `wants_json` of the command line says, which may not be imported now, but for short options in one word."""
    pairs = zip(arguments, arguments[1:])  # noqa: B905, RUF007 - of unequal length; itertools is not imported yet
    return not {"--json", "-ojson", "--output=json"}.isdisjoint(arguments) or any(
        pair in (("-o", "json"), ("--output", "json")) for pair in pairs
    )


if __name__ == "__main__":
    main()
