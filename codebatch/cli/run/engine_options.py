"""Options that choose an engine."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codebatch.cli.framework.commands import option
from codebatch.cli.framework.common_options import common_option
from codebatch.errors import InvalidInput
from codebatch.operations.runs.execution import OpenShardExecutor

if TYPE_CHECKING:
    from codebatch.operations.engines.engine_run import EngineRequest


class EngineArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The URL of an engine, or None, and the TLS files of the connection."""

    url: str | None
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None

    def request(self) -> EngineRequest:
        """Return the engine to use. Raises InvalidInput if no engine was given."""
        from codebatch.engines.opening import INSECURE_VARIABLE, EngineOptions  # Few runs need these imports.
        from codebatch.operations.engines.engine_run import EngineRequest

        if self.url is None:
            raise InvalidInput("the option --on is missing", hint="for example: --on dask:tls://host:8786")
        options = EngineOptions(
            tls_ca=_path(self.tls_ca),
            tls_cert=_path(self.tls_cert),
            tls_key=_path(self.tls_key),
            allows_insecure=os.environ.get(INSECURE_VARIABLE) == "1",
        )
        return EngineRequest(url=self.url, options=options)

    def executor(self) -> OpenShardExecutor | None:
        """Return the engine for a run, or None if no engine was given. Raises InvalidInput."""
        if self.url is not None:
            return self.request().opened_executor
        for name, value in (("--tls-ca", self.tls_ca), ("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key)):
            if value is not None:
                raise InvalidInput(f"{name} is used without --on", hint="for example: --on dask:tls://host:8786")
        return None

    def refuse(self, options: Mapping[str, object]) -> None:
        """Raise InvalidInput if an engine and an option were given that exclude each other.

        `options` maps the names of such options to their values.
        """
        for name, value in options.items():
            if self.url is not None and value is not None and value is not False:
                raise InvalidInput(f"{name} cannot be used with --on")


def with_engine_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that choose an engine. The command receives them as one argument, `engine`."""

    @option(
        "--on",
        "engine_url",
        metavar="URL",
        help="Run the tasks of files on an engine: dask:tls://HOST:PORT, dask:FILE.json, parsl:FILE.py or local:N",
        details="See `codebatch help engines`.",
    )
    @common_option("tls-ca")
    @common_option("tls-cert")
    @common_option("tls-key")
    @functools.wraps(function)
    def wrapped(
        engine_url: str | None, tls_ca: str | None, tls_cert: str | None, tls_key: str | None, **arguments: object
    ) -> int:
        engine = EngineArguments(url=engine_url, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key)
        return function(engine=engine, **arguments)

    return wrapped


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
