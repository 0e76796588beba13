"""Pickles of other processes: their code never runs, and plain values and exceptions are read."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.coordinator.engines.foreign_objects import (
    ForeignObject,
    RemoteError,
    describe_error,
    describe_object,
    read_foreign,
)
from codebatch.coordinator.engines.part_results import _is_codebatch_missing
from tests.engines.calls import MALICIOUS, Malicious

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
GUARDED = """
import io, pickle, sys
from codebatch.coordinator.engines.foreign_objects import ForeignObjectRefused, refuse_foreign_objects
refuse_foreign_objects()
refuse_foreign_objects()
lines = sys.stdin.read().split()
for load in (pickle.loads, pickle._loads, lambda data: pickle.Unpickler(io.BytesIO(data)).load()):
    for line in lines:
        try:
            print(repr(load(bytes.fromhex(line))))
        except ForeignObjectRefused as error:
            print("refused", error)
"""


def pickled(value: object, protocol: int | None = None) -> bytes:
    """Return the pickle of a value. Libraries of engines change how exceptions are pickled, except in this function."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol)
    pickler.dispatch_table = {}
    pickler.dump(value)
    return file.getvalue()


@pytest.mark.parametrize("make", MALICIOUS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_code_of_an_object_runs(make: Callable[[bytes], object], protocol: int, tmp_path: Path) -> None:
    try:
        value = make(str(tmp_path).encode())
    except Exception as error:
        value = error
    read = read_foreign(pickled(value, protocol))
    assert "exec" in describe_object(read)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"answer", "b'answer'"),
        ([1, 2.0, "x", None, True, {1: (2,)}, {3}, frozenset({4}), bytearray(b"5"), 6j], "[1, 2.0, 'x', None, True"),
        (ValueError("no"), "ValueError: no"),
        (KeyError(), "KeyError"),
        (ImportError("no module"), "ImportError: no module"),
        (RemoteError("text of  two\nlines"), "RemoteError: text of two lines"),
        (SystemExit(3), "builtins.SystemExit(3)"),
        (KeyboardInterrupt(), "builtins.KeyboardInterrupt()"),
        (Path("/x"), "pathlib.PosixPath('/', 'x')"),
        (len, "<class"),
        (eval, "<class"),
    ],
)
def test_plain_values_and_exceptions_are_read(value: object, text: str) -> None:
    assert describe_object(read_foreign(pickled(value))).startswith(text)


def test_exceptions_keep_their_class_only_if_it_is_plain() -> None:
    assert type(read_foreign(pickled(ModuleNotFoundError("x")))) is ModuleNotFoundError
    assert isinstance(read_foreign(pickled(SystemExit(0))), ForeignObject)
    assert isinstance(read_foreign(pickled(pickle.PicklingError("x"))), ForeignObject)


@pytest.mark.parametrize("data", [b"", b"junk", pickled([1])[:-1], b"cos\nsystem\nq\x00R.", b"\x80\x04\x97."])
def test_damaged_pickles_are_errors(data: bytes) -> None:
    with pytest.raises(RemoteError):
        read_foreign(data)


def test_objects_that_cannot_be_described_have_a_short_text() -> None:
    value: object = "x"
    for _ in range(100_000):
        value = ForeignObject(value)
    assert describe_object(value) == "an object that cannot be read"
    assert describe_error(ValueError(value)) == "ValueError"
    assert len(describe_object(["x" * 1000])) == 200


def test_all_readers_of_a_guarded_process_refuse_foreign_objects(tmp_path: Path) -> None:
    """Plain values and exceptions are still read: libraries of engines need them."""
    values = [
        [b"x", {"a": ValueError("v")}],
        Malicious(str(tmp_path)),
        {"x": [(Malicious(str(tmp_path)),)]},
        SystemExit(0),
    ]
    process = subprocess.run(
        [sys.executable, "-c", GUARDED],
        input=" ".join(pickled(value).hex() for value in values),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    refused = "refused an object of another process was not read: builtins."
    assert process.stdout.splitlines() == 3 * [
        "[b'x', {'a': ValueError('v')}]", f"{refused}exec", f"{refused}exec", f"{refused}SystemExit"
    ]  # fmt: skip
    assert [*tmp_path.iterdir()] == []


def test_an_exception_that_is_its_own_cause_is_not_followed_forever() -> None:
    """The pickle sets the attribute `__cause__`."""
    cycle = b"\x80\x04cbuiltins\nValueError\n)R\x94}\x8c\x09__cause__h\x00sb."
    error = read_foreign(cycle)
    assert isinstance(error, ValueError)
    assert error.__cause__ is error
    assert not _is_codebatch_missing(error)
