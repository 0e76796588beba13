"""How a command ends: every error becomes `error:` and `hint:` on standard error, or JSON, and an exit status."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from codebatch.cli.terminal import printable
from codebatch.errors import CodebatchError, InternalError, StoreUnwritable
from codebatch.system.files import is_refusal

EXIT_BROKEN_PIPE = 0


def run_to_exit_status(command: click.Command, arguments: Sequence[str]) -> int:
    """Run a command line to its end. Whatever happens becomes a message and a status."""
    as_json = "--json" in arguments
    try:
        result = command.main(args=list(arguments), prog_name="codebatch", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help(), err=True)
        return 2
    except click.ClickException as error:
        hint = f"see: {error.ctx.command_path} --help" if isinstance(error, click.UsageError) and error.ctx else None
        return _report("usage", _plain(error.format_message()), hint, error.exit_code, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return _report("interrupted", "interrupted", None, 130, as_json=as_json)
    except (BrokenPipeError, SystemExit):  # click answers EPIPE with sys.exit.
        return _drop_stdout()
    except CodebatchError as error:
        return _report(error.code, error.message, error.hint, error.exit_status, as_json=as_json)
    except OSError as error:
        if is_refusal(error):
            refusal = StoreUnwritable(f"{error.filename or 'the disk'}: {error.strerror}")
            return _report(refusal.code, refusal.message, refusal.hint, refusal.exit_status, as_json=as_json)
        return _report_bug(error, as_json=as_json)
    except Exception as error:
        return _report_bug(error, as_json=as_json)


def fail(error: CodebatchError) -> NoReturn:
    """Raise an error from an expression."""
    raise error


def _plain(message: str) -> str:
    """click's sentence in our manner, on one line: `error: no such option …`."""
    message = re.sub(r"\s*\n\s*", " ", message)
    lowered = message[:1].lower() + message[1:] if message[1:2].islower() else message
    return lowered.removesuffix(".")


def _report(code: str, message: str, hint: str | None, status: int, *, as_json: bool) -> int:
    if as_json:
        import json  # costs each command that ends well a millisecond

        body = {"code": code, "message": message, "hint": hint, "exit": status}
        print(json.dumps({"error": body}, ensure_ascii=False), file=sys.stderr)
    else:
        print(printable(f"error: {message}"), file=sys.stderr)
        if hint:
            print(printable(f"hint: {hint}"), file=sys.stderr)
    return status


def _report_bug(error: BaseException, *, as_json: bool) -> int:
    """A bug of ours: the traceback goes to a file that the message names."""
    import tempfile  # 5 ms of every command that has no bug, with what they import
    import traceback

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="codebatch-bug-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            traceback.print_exception(error, file=file)
            hint = f"please report it; the traceback is in {file.name}"
    except OSError:
        hint = "please report it"
    return _report(
        InternalError.code, f"internal error: {type(error).__name__}: {error}", hint, InternalError.exit_status,
        as_json=as_json,
    )  # fmt: skip


def _drop_stdout() -> int:
    """The reader of our output has left (`| head`): what it wanted it has."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    return EXIT_BROKEN_PIPE
