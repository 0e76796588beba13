"""URLs and options of engines that are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

from codebatch.coordinator.engines.interface import Engine
from codebatch.engines import opening
from codebatch.engines.opening import EngineOptions, open_engine
from codebatch.errors import InvalidInput
from codebatch.installation import extra_command

NO_OPTIONS = EngineOptions()


@pytest.mark.parametrize(
    ("url", "message", "hint"),
    [
        ("", "'' is not the URL of an engine", "dask:tls://HOST:8786"),
        ("local", "'local' is not the URL of an engine", "local:2"),
        (":2", "':2' is not the URL of an engine", "local:2"),
        ("locl:2", "unknown engine 'locl'", "did you mean 'local'?"),
        ("slurm:2", "unknown engine 'slurm'", "one of: dask, local, parsl"),
        ("local:0", "'0' is not a number from 1 to 1,000", "local:2"),
        ("local:1001", "'1001' is not a number", "local:2"),
        ("local:-1", "'-1' is not a number", "local:2"),
        ("local:²", "'²' is not a number", "local:2"),
        ("local:" + "9" * 5000, "is not a number", "local:2"),
    ],
)
def test_wrong_urls_are_refused(url: str, message: str, hint: str) -> None:
    _assert_refused(url, NO_OPTIONS, message, hint)


@pytest.mark.parametrize(
    "options",
    [
        EngineOptions(tls_ca=Path("file.pem")),
        EngineOptions(tls_cert=Path("file.pem")),
        EngineOptions(tls_key=Path("file.pem")),
    ],
)
def test_engines_without_tls_refuse_tls_files(options: EngineOptions) -> None:
    for url in ("local:1", "parsl:missing.py"):
        if url.startswith("parsl"):
            pytest.importorskip("parsl", reason="Parsl is not installed: pip install 'codebatch[parsl]'")
        _assert_refused(url, options, "does not use --tls-ca", "omit")


def test_a_missing_library_and_a_failing_engine_are_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine of another package may raise anything."""
    points = [
        metadata.EntryPoint(name, f"tests.engines.test_opening:{function}", opening.ENTRY_POINT_GROUP)
        for name, function in (("absent", "raise_module_missing"), ("bad", "raise_error"), ("refusing", "refuse"))
    ]
    points.append(metadata.EntryPoint("uninstalled", "tests.engines.no_such_module:open_engine", "codebatch.engines"))
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    _assert_refused("absent:x", NO_OPTIONS, "'the_library', which is not installed", extra_command("absent"))
    _assert_refused("uninstalled:x", NO_OPTIONS, "no_such_module", extra_command("uninstalled"))
    _assert_refused("bad:x", NO_OPTIONS, "'bad:x' cannot be opened: RuntimeError: broken", "check 'x'")
    _assert_refused("refusing:x", NO_OPTIONS, "x is refused", "try y")


def raise_module_missing(target: str, options: EngineOptions) -> Engine:
    """Import a library that does not exist."""
    raise ModuleNotFoundError("No module named 'the_library'", name="the_library")


def raise_error(target: str, options: EngineOptions) -> Engine:
    """Fail with an exception that is not of codebatch."""
    raise RuntimeError("broken")


def refuse(target: str, options: EngineOptions) -> Engine:
    """Refuse the target."""
    raise InvalidInput(f"{target} is refused", hint="try y")


def test_no_library_is_loaded_before_an_engine_is_opened() -> None:
    code = (
        "import sys, codebatch, codebatch.__main__, codebatch.engines.opening\n"
        "print(sorted({'dask', 'distributed', 'parsl', 'tornado', 'concurrent.futures.process'} & {*sys.modules}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "[]\n"


@contextmanager
def refused(message: str, hint: str) -> Iterator[None]:
    """Require that InvalidInput is raised with parts of a message and of a hint."""
    with pytest.raises(InvalidInput) as caught:
        yield
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def _assert_refused(url: str, options: EngineOptions, message: str, hint: str) -> None:
    with refused(message, hint):
        open_engine(url, options)
