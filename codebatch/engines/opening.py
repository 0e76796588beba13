"""Opening of an engine by its URL, `NAME:TARGET`. NAME is an entry point of the group `codebatch.engines`.

An entry point is a function `open_engine(target, options)` that returns an Engine. Its module may import the library
of its engine at the top: modules are loaded only when their engine is opened.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import msgspec

from codebatch.coordinator.engines.foreign_objects import refuse_foreign_objects
from codebatch.coordinator.engines.interface import Engine
from codebatch.errors import CodebatchError, InvalidInput
from codebatch.installation import extra_command
from codebatch.model.text.suggestions import did_you_mean_text

ENTRY_POINT_GROUP = "codebatch.engines"

INSECURE_VARIABLE = "CODEBATCH_ENGINE_INSECURE"
"""Environment variable that allows connections without TLS to other machines, if it is `1`."""

_URL_EXAMPLES = "dask:tls://HOST:8786, dask:FILE.json, parsl:FILE.py or local:2"


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the connection to an engine.

    - `tls_ca`, `tls_cert`, `tls_key`: PEM files: the certificate authority, the client certificate, and its key.
    - `allows_insecure`: whether connections without TLS may go to other machines.
    """

    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    allows_insecure: bool = False

    @property
    def has_tls_files(self) -> bool:
        """Whether any TLS file is given."""
        return any(path is not None for path in (self.tls_ca, self.tls_cert, self.tls_key))


def open_engine(url: str, options: EngineOptions) -> Engine:
    """Return the engine at a URL. The caller closes the engine. From now on, this process reads no foreign objects.

    Raises InvalidInput if the URL has no engine, if its library is not installed, or if it cannot be reached.
    """
    name, separator, target = url.partition(":")
    if not separator or not name:
        raise InvalidInput(f"{url!r} is not the URL of an engine", hint=f"give for example {_URL_EXAMPLES}")
    points = {point.name: point for point in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    point = points.get(name)
    if point is None:
        hint = did_you_mean_text(name, sorted(points)) if points else "install codebatch again: it has lost its engines"
        raise InvalidInput(f"unknown engine {name!r} in {url!r}", hint=hint)
    refuse_foreign_objects()
    try:
        engine: Engine = point.load()(target, options)
    except CodebatchError:
        raise
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"engine {name!r} needs the Python package {error.name!r}, which is not installed",
            hint=f"install it with: {extra_command(name, _distribution(point))}",
        ) from error
    except Exception as error:
        raise InvalidInput(
            f"engine {url!r} cannot be opened: {type(error).__name__}: {error}", hint=f"check {target!r}"
        ) from error
    return engine


def reject_tls_files(name: str, options: EngineOptions) -> None:
    """Refuse TLS files for an engine that does not use them. Raises InvalidInput."""
    if options.has_tls_files:
        raise InvalidInput(
            f"engine {name!r} does not use --tls-ca, --tls-cert and --tls-key", hint="omit these options"
        )


def _distribution(point: metadata.EntryPoint) -> str:
    return "codebatch" if point.dist is None else point.dist.name
