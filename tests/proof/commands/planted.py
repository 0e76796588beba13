"""Planted bugs: lines of the product that a test replaces while it runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest


def plant_bug(monkeypatch: pytest.MonkeyPatch, module: ModuleType, line: str, bug: str) -> None:
    """Replace a part of the code of a module, which occurs once. All functions of the module get the new code."""
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(line) == 1, f"the code has changed: {line}"
    mutant = ModuleType(module.__name__)
    exec(compile(source.replace(line, bug), module.__file__, "exec"), mutant.__dict__)
    functions, changed = dict(_iter_functions(module)), dict(_iter_functions(mutant))
    assert functions.keys() == changed.keys()
    for name, function in functions.items():
        if function.__code__ != changed[name].__code__:
            monkeypatch.setattr(function, "__code__", changed[name].__code__)


def _iter_functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions and methods that a module defines, with their qualified names."""
    for owner in (module, *(value for value in vars(module).values() if inspect.isclass(value))):
        if owner is not module and owner.__module__ != module.__name__:
            continue
        for value in vars(owner).values():
            member = value.fget if isinstance(value, property) else value
            if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                yield member.__qualname__, member
