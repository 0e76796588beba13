"""Entry point of `codebatch` and `python -m codebatch`: code that runs before slow imports.

First it removes the current directory and other source trees from the module search path (import_path.py). Only then
it imports modules that Python has not loaded itself.

If the locale is not UTF-8, it starts Python again in UTF-8 mode, so that paths are read alike in every locale.

It resets inherited state: SIGCHLD, because the exit status of children is lost if it is ignored, and blocked signals.
An ignored SIGINT stays ignored (nohup). A closed standard input is replaced by an empty one, so that no other file gets
its descriptor.
"""

import io
import os
import sys

from codebatch.system.processes.import_path import keep_tree_off_path

_INTERRUPTED_MESSAGE = b"error: interrupted\n"
_INTERRUPTED_JSON_MESSAGE = (
    b'{"error": {"code": "interrupted", "message": "interrupted", "hint": null, "exit": 130},'
    b' "schema": "codebatch.error/1"}\n'
)


def main() -> None:
    """Run the console script. Ends the process."""
    keep_tree_off_path(sys.argv[1:])
    if sys.getfilesystemencoding() != "utf-8":
        from codebatch.system.processes.python_start import restart_in_utf8_mode

        restart_in_utf8_mode()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(encoding := sys._xoptions.get("output-encoding"), str) and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding)

    import gc
    import signal

    gc.set_threshold(50_000, 20, 50)  # Imports create many objects but no garbage.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _exit_interrupted)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (as long as the process)

    from codebatch.cli import run_command_line

    run_command_line(sys.argv[1:])


def _exit_interrupted(*_: object) -> None:
    """Exit after Ctrl-C during imports, when nothing has begun."""
    try:
        os.write(2, _INTERRUPTED_JSON_MESSAGE if _requests_json(sys.argv) else _INTERRUPTED_MESSAGE)
    finally:
        os._exit(130)


def _requests_json(arguments: list[str]) -> bool:
    """Return whether the arguments request JSON, like `wants_json` of the command line, which is not imported yet.

    Short options in one word are not recognized.
    """
    pairs = zip(arguments, arguments[1:])  # noqa: B905, RUF007 - of unequal length; itertools is not imported yet
    return not {"--json", "-ojson", "--output=json"}.isdisjoint(arguments) or any(
        pair in (("-o", "json"), ("--output", "json")) for pair in pairs
    )


if __name__ == "__main__":
    main()
