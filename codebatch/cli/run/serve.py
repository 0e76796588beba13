"""The command `serve`: a web page on this machine that shows batches while they run."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path

import click
import msgspec

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.errors import InvalidInput, Stopped
from codebatch.installation import extra_command

_OPENED_FILE_SECONDS = 60.0
_MODULES = ("starlette", "uvicorn", "websockets")


class ServeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch serve`: the address to open, which has the token of this server."""

    url: str
    port: int
    pid: int


@command()
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    default_text="a free port",
    help="Port of the server on this host",
)
@option("--open", "opens", is_flag=True, help="Open the page in a browser")
@option("--allow-control", "allows_control", is_flag=True, help="Let the page cancel, pause, answer, retry and skip")
@with_common_options
def serve(context: CommandContext, port: int, opens: bool, allows_control: bool) -> int:
    """Show batches on a local web page while they run.

    Prints the address of the page. The page shows what runs, what failed and its log, open questions, and afterwards
    the report. Only this host can open the page. From another host, forward the port, with the same number on both
    sides:

    \b
    ssh -L PORT:127.0.0.1:PORT HOST

    The server only reads the store. It can be stopped and restarted at any time without an effect on a batch. It runs
    until Ctrl-C. It needs the extra `serve` of codebatch.
    """
    if missing := [name for name in _MODULES if find_spec(name) is None]:
        raise InvalidInput(
            f"`serve` needs packages that are not installed: {', '.join(missing)}",
            hint=f"install them with: {extra_command('serve')}",
        )
    # Imported here, because the packages are optional and take a quarter of a second.
    from codebatch.serve.app import LiveApp
    from codebatch.serve.server import open_sockets, serve_until_signal

    store = context.store_place.open()
    sockets = open_sockets(port)
    port = sockets[0].getsockname()[1]
    token = secrets.token_urlsafe(32)
    url = f"http://127.0.0.1:{port}/#token={token}"

    def announce() -> None:
        context.print(ServeAnswer(url=url, port=port, pid=os.getpid()), [url])

    opening: AbstractContextManager[Callable[[], None] | None] = _open_in_browser(url) if opens else nullcontext()
    with opening as remove_redirect:
        app = LiveApp(store, token=token, port=port, allows_control=allows_control, on_first_use=remove_redirect)
        number = serve_until_signal(app, sockets, announce)
    raise Stopped(f"stopped by {signal.Signals(number).name}", exit_status=128 + number)


@contextmanager
def _open_in_browser(url: str) -> Iterator[Callable[[], None]]:
    """Open an address in a browser. Yield a function that removes the file by which it is opened.

    Other users can see the arguments of a browser, but not the content of the file, which redirects to the address. The
    file is also removed after 60 seconds, and at the end.
    """
    descriptor, name = tempfile.mkstemp(prefix="codebatch-", suffix=".html")
    remove = partial(Path(name).unlink, missing_ok=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}"><title>codebatch</title>\n'
        )
    timer = threading.Timer(_OPENED_FILE_SECONDS, remove)
    timer.daemon = True
    timer.start()
    try:
        # A browser in the terminal runs until it is closed.
        threading.Thread(target=webbrowser.open, args=[Path(name).as_uri()], daemon=True).start()
        yield remove
    finally:
        timer.cancel()
        remove()
