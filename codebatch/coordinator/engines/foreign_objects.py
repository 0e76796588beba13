"""Objects that processes of an engine send. They may be malicious, so none of their code runs here.

The libraries of engines transfer results and exceptions as pickles. A pickle calls any function that it names. But
results are bytes, and exceptions are only described to the user. So pickles may name nothing but the classes of plain
values and of Python's own exceptions.

- `refuse_foreign_objects` makes this process reject all other pickles, in whatever library they are read.
- `read_foreign` reads a pickle nevertheless. Objects of other classes become a ForeignObject, which only has a text.
"""

from __future__ import annotations

import builtins
import functools
import io
import pickle
import sys
from collections.abc import Callable

_VALUE_CLASSES = (bytes, bytearray, bool, int, float, complex, str, list, tuple, dict, set, frozenset, type(None))
_EXCEPTION_MAKERS = ("unpickle_exception", "unpickle_exception_with_attrs")
_TEXT_CHARACTERS_MAX = 200


class ForeignObjectRefused(pickle.UnpicklingError, TypeError):
    """The error that a pickle names something else than a plain value. Dask ignores a TypeError in tracebacks."""


class RemoteError(Exception):
    """An exception of another process, as text."""


class ForeignObject:
    """An object of a class that was not imported. `name` is the name of the class."""

    name = ""

    arguments: tuple[object, ...]
    state: object

    def __new__(cls, *arguments: object, **_: object) -> ForeignObject:
        """Keep the arguments. Pickles also make objects without a call of `__init__`."""
        made = super().__new__(cls)
        made.arguments, made.state = arguments, None
        return made

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *arguments: object) -> ForeignObject:
        """Return another object that was not imported."""
        return make_foreign_class(self.name)(*arguments)

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"[:_TEXT_CHARACTERS_MAX]

    def append(self, _item: object) -> None:
        """Ignore an item. Pickles of lists, sets and mappings contain their items."""

    extend = add = append

    def __setitem__(self, _key: object, _value: object) -> None:
        """Ignore an item."""


@functools.cache
def refuse_foreign_objects() -> None:
    """Reject foreign objects in all pickles that this process reads from now on, in any thread."""
    sys.addaudithook(_check_event)


def _check_event(event: str, arguments: tuple[object, ...]) -> None:
    if event == "pickle.find_class" and _plain_class(*arguments) is None:
        raise ForeignObjectRefused(f"an object of another process was not read: {arguments[0]}.{arguments[1]}")


def _plain_class(module: object, name: object) -> type | None:
    """Return the class that a pickle may name, or None."""
    found = vars(builtins).get(name) if module == "builtins" and isinstance(name, str) else None
    is_plain = found in _VALUE_CLASSES or (isinstance(found, type) and issubclass(found, Exception))
    return found if isinstance(found, type) and is_plain else None


class _Reader(pickle.Unpickler):
    """A reader of pickles that imports nothing."""

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        """Return a class of plain values, or a class of foreign objects."""
        if module == "tblib.pickling_support" and name in _EXCEPTION_MAKERS:
            return _make_exception
        if (module, name) == ("dill._dill", "_load_type"):
            return lambda type_name: _plain_class("builtins", type_name) or make_foreign_class(str(type_name))
        return _plain_class(module, name) or make_foreign_class(f"{module}.{name}")


def make_foreign_class(name: str) -> type[ForeignObject]:
    """Return a class for the objects of a class that is not imported."""
    return type("ForeignObject", (ForeignObject,), {"name": name})


def _make_exception(kind: type, content: object, *_: object) -> Exception:
    """Return the exception that tblib, a library of Dask and Parsl, has pickled. Its causes are dropped."""
    arguments = content["args"] if isinstance(content, dict) else content
    assert isinstance(arguments, tuple)
    made = kind(*arguments)
    return made if isinstance(made, Exception) else RemoteError(describe_object(made))


def read_foreign(data: bytes) -> object:
    """Return the value of a pickle, without running code that it names. Raises RemoteError if it is not valid."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception as error:
        raise RemoteError(f"an object of another process cannot be read: {error}") from None


def describe_error(error: BaseException) -> str:
    """Return an exception in one line. It may come from another process, so it may have any content."""
    try:
        text, name = str(error), type(error).__name__
        if isinstance(error, RemoteError | ForeignObjectRefused):
            return _in_one_line(text)
        return _in_one_line(f"{name}: {text}" if text else name)
    except Exception:
        return type(error).__name__


def describe_object(value: object) -> str:
    """Return an object from another process in one line."""
    if isinstance(value, BaseException):
        return describe_error(value)
    if isinstance(value, ForeignObject) and len(value.arguments) == 1 and isinstance(value.arguments[0], str):
        return _in_one_line(f"{value.name.rpartition('.')[2]}: {value.arguments[0]}")
    try:
        return _in_one_line(repr(value))
    except RecursionError:
        return "an object that cannot be read"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())[:_TEXT_CHARACTERS_MAX]
