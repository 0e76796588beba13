"""Commands that take long, run in child processes so that the server stays responsive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex

import msgspec

from codebatch.errors import BatchIncomplete
from codebatch.serve.bodies import LiveError
from codebatch.system.processes.python_start import python_start

COMMAND_SECONDS_MAX = 600.0


async def run_codebatch(*arguments: str) -> bytes:
    """Run a command of codebatch and return its standard output.

    Raises BatchIncomplete if it prints nothing, or takes more than COMMAND_SECONDS_MAX.
    """
    hint = f"see: codebatch {shlex.join(arguments)}"
    start = python_start("codebatch", *arguments, environment=os.environ)
    process = await asyncio.create_subprocess_exec(
        *start.arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=start.environment,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS_MAX)
    except (TimeoutError, asyncio.TimeoutError):
        raise BatchIncomplete(f"`{arguments[0]}` took more than {COMMAND_SECONDS_MAX:.0f} s", hint=hint) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not output:
        raise BatchIncomplete(f"`{arguments[0]}` failed: {_read_reason(errors)}", hint=hint)
    return output


def _read_reason(errors: bytes) -> str:
    """Return the message of an error from standard error, where notes come before it and its hint after it.

    With `--json`, the last line is a document that has both.
    """
    lines = errors.decode("utf-8", "replace").splitlines() or ["it ended without a message"]
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(lines[-1], type=LiveError).error.message
    messages = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return messages[-1] if messages else lines[-1]
