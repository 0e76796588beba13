"""What a file's result depends on beside its bytes: functions of the snapshot's path list (SPEC.md "Context")."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.model.entry import Entry
from codebatch.model.task import SnapshotView

_C_SOURCES = (b".c",)
_CPP_SOURCES = (b".cc", b".cpp", b".cxx", b".c++", b".C", b".hpp", b".hh", b".hxx")
_HEADERS = (b".h", b".H")


def _parent(path: bytes) -> bytes:
    """The directory of a path, empty at the root."""
    return path.rpartition(b"/")[0]


def language_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Of a `.h`: `c` or `cpp`, as the nearest sources are; of other files, and where there are none, nothing.

    Going up from the file's directory, the first that has C or C++ sources decides by majority, C if they are equal: of
    its own files where it has such files, else of all that is below it (`include/` beside `src/`).
    """
    own: dict[bytes, int] = {}
    for entry in view.entries:
        path = entry.path
        if path.endswith(_C_SOURCES):
            own[_parent(path)] = own.get(_parent(path), 0) - 1
        elif path.endswith(_CPP_SOURCES):
            own[_parent(path)] = own.get(_parent(path), 0) + 1
    below: dict[bytes, int] = {}
    for directory, balance in own.items():
        while directory:
            directory = _parent(directory)
            below[directory] = below.get(directory, 0) + balance
    decided: dict[bytes, bytes] = {b"": _winner(own.get(b"", below.get(b"")))}

    def decide(directory: bytes) -> bytes:
        undecided = []
        while directory not in decided:
            undecided.append(directory)
            balance = own.get(directory, below.get(directory))
            if balance is not None:
                decided[directory] = _winner(balance)
            else:
                directory = _parent(directory)
        for lower in undecided:
            decided[lower] = decided[directory]
        return decided[directory]

    def context(entry: Entry) -> bytes:
        path = entry.path
        return decide(_parent(path)) if path.endswith(_HEADERS) and entry.kind == "file" else b""

    return context


def _winner(balance: int | None) -> bytes:
    """Of C sources counted down and C++ sources counted up."""
    if balance is None:
        return b""
    return b"cpp" if balance > 0 else b"c"


def packages_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Of a file: the directories above it with an `__init__.py`, NUL-separated, outermost first.

    ruff takes them for packages, and some of its rules ask in which package a module is. Whatever its path says, a file
    may be Python by its shebang or by `.gitattributes`.
    """
    packages = {_parent(entry.path) for entry in view.entries if entry.kind == "file" and _is_init(entry.path)}
    known: dict[bytes, bytes] = {}

    def above(directory: bytes) -> bytes:
        held = known.get(directory)
        if held is None:
            parts = directory.split(b"/") if directory else []
            prefixes = [b"", *(b"/".join(parts[:count]) for count in range(1, len(parts) + 1))]
            held = b"\0".join(prefix + b"/" for prefix in prefixes if prefix in packages)
            known[directory] = held
        return held

    def context(entry: Entry) -> bytes:
        return above(_parent(entry.path)) if entry.kind == "file" else b""

    return context


def _is_init(path: bytes) -> bool:
    return path == b"__init__.py" or path.endswith(b"/__init__.py")


def directories_of_packages(context: bytes) -> list[bytes]:
    """What `packages_context` said, as directories; the root is empty."""
    return [part[:-1] for part in context.split(b"\0")] if context else []
