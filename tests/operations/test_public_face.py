"""Tests of the public names of `codebatch` and of the modules that custom tasks import."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import codebatch
import codebatch.work
import codebatch_workers.api
from codebatch.errors import CodebatchError
from codebatch.model.record import RECORD_KINDS, RECORD_TYPES

ROOT = Path(__file__).parent.parent.parent

FACES = pytest.mark.parametrize("face", [codebatch, codebatch.work], ids=lambda face: face.__name__)


@FACES
def test_every_public_name_imports_and_has_a_docstring(face: ModuleType) -> None:
    assert face.__all__ == sorted(face.__all__)
    assert dir(face) == face.__all__
    docstrings = {name: getattr(face, name).__doc__ or "" for name in face.__all__ if name != "__version__"}
    # A dataclass without a docstring gets its signature as docstring.
    undocumented = [name for name, text in docstrings.items() if not text or text.startswith(f"{name}(")]
    assert undocumented == []


@FACES
def test_type_checker_sees_the_same_names_as_runtime(face: ModuleType) -> None:
    tree = ast.parse(Path(inspect.getfile(face)).read_text(encoding="utf-8"))
    checked, _ = [node for node in tree.body if isinstance(node, ast.If)]
    checked_names = {
        (statement.module, name.name)
        for statement in checked.body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
    runtime_names = {
        (f"codebatch.{module}", name) for module, names in face._EXPORTED_NAMES.items() for name in names.split()
    }
    assert checked_names == runtime_names
    assert {name for _, name in runtime_names} == set(face.__all__) - {"__version__"}


def test_every_error_and_every_record_type_is_public() -> None:
    kinds: list[type[CodebatchError]] = [CodebatchError]
    for error_type in kinds:
        kinds += error_type.__subclasses__()
    assert {error_type.__name__ for error_type in kinds if error_type.__module__ == "codebatch.errors"} <= set(
        codebatch.__all__
    )
    records = {error_type.__name__ for error_type in RECORD_TYPES}
    assert len(records) == len(RECORD_KINDS)
    assert records <= set(codebatch.__all__)
    returned = records - {"Failure", "Omission"}  # Tasks in Python raise failures. Only programs write other output.
    assert returned <= set(codebatch_workers.api.__all__), "a record type is not in the interface of tasks"


def test_importing_codebatch_imports_nothing_else() -> None:
    code = "import sys, codebatch; print(sorted(name for name in sys.modules if name.startswith('codebatch')))"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed == "['codebatch']\n"


def test_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = codebatch.nonsense  # type: ignore[attr-defined]


@pytest.mark.slow
def test_run_outside_the_main_thread_ignores_children_of_others(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    code = """
import subprocess, sys, threading, codebatch
class Starter(codebatch.Listener):
    def update(self, progress):
        begun.set()
        started.wait()
def work():
    ran.append(codebatch.run(".", pipeline="parse", jobs=1, listener=Starter()))
ran, begun, started = [], threading.Event(), threading.Event()
thread = threading.Thread(target=work)
thread.start()
begun.wait()
with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
    started.set()
    thread.join()
    print(ran[0].is_complete, other.poll())
"""
    printed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert printed.stdout == "True None\n"
