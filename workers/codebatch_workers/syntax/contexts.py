"""Contexts of a file: values computed from the snapshot that the results of tasks may depend on (SPEC.md "Context")."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.model.entry import Entry
from codebatch.model.nearest_directories import parent_directory
from codebatch.model.task import SnapshotView

_C_SOURCE_ENDINGS = (b".c",)
_CPP_SOURCE_ENDINGS = (b".cc", b".cpp", b".cxx", b".c++", b".C", b".hpp", b".hh", b".hxx")
_HEADER_ENDINGS = (b".h", b".H")


def language_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Return a function that computes the `language` context of a file: `c` or `cpp` for a `.h` file, otherwise empty.

    From the file's directory upward, the first directory with C or C++ sources decides. The more frequent language
    wins, and C wins a tie. If a directory directly contains sources, only these count. Otherwise, the sources below it
    count: for `include/a.h`, those in `src/`. Without any sources, the context is empty.
    """
    own_balances: dict[bytes, int] = {}
    for entry in view.entries:
        path = entry.path
        if path.endswith(_C_SOURCE_ENDINGS):
            own_balances[parent_directory(path)] = own_balances.get(parent_directory(path), 0) - 1
        elif path.endswith(_CPP_SOURCE_ENDINGS):
            own_balances[parent_directory(path)] = own_balances.get(parent_directory(path), 0) + 1
    balances_below: dict[bytes, int] = {}
    for directory, balance in own_balances.items():
        while directory:
            directory = parent_directory(directory)
            balances_below[directory] = balances_below.get(directory, 0) + balance
    decided: dict[bytes, bytes] = {b"": _majority_language(own_balances.get(b"", balances_below.get(b"")))}

    def decide(directory: bytes) -> bytes:
        undecided = []
        while directory not in decided:
            undecided.append(directory)
            balance = own_balances.get(directory, balances_below.get(directory))
            if balance is not None:
                decided[directory] = _majority_language(balance)
            else:
                directory = parent_directory(directory)
        for lower in undecided:
            decided[lower] = decided[directory]
        return decided[directory]

    def context(entry: Entry) -> bytes:
        path = entry.path
        return decide(parent_directory(path)) if path.endswith(_HEADER_ENDINGS) and entry.kind == "file" else b""

    return context


def _majority_language(balance: int | None) -> bytes:
    """Return the more frequent language. `balance` is the number of C++ sources minus the number of C sources.

    If `balance` is None, there are no sources, and the result is empty.
    """
    if balance is None:
        return b""
    return b"cpp" if balance > 0 else b"c"


def packages_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Return a function that computes the `packages` context of a file: the Python packages that contain the file.

    These are the directories with an `__init__.py` at or above the file's directory. They are NUL-separated, outermost
    first, each with a `/` at its end. ruff treats these directories as packages, and some of its rules need the package
    of a module. All files have this context, because shebangs and `.gitattributes` can make any file Python.
    """
    packages = {
        parent_directory(entry.path) for entry in view.entries if entry.kind == "file" and _is_package_file(entry.path)
    }
    known: dict[bytes, bytes] = {}

    def enclosing_packages(directory: bytes) -> bytes:
        packages_above = known.get(directory)
        if packages_above is None:
            parts = directory.split(b"/") if directory else []
            prefixes = [b"", *(b"/".join(parts[:count]) for count in range(1, len(parts) + 1))]
            packages_above = b"\0".join(prefix + b"/" for prefix in prefixes if prefix in packages)
            known[directory] = packages_above
        return packages_above

    def context(entry: Entry) -> bytes:
        return enclosing_packages(parent_directory(entry.path)) if entry.kind == "file" else b""

    return context


def _is_package_file(path: bytes) -> bool:
    return path == b"__init__.py" or path.endswith(b"/__init__.py")


def package_directories(context: bytes) -> list[bytes]:
    """Return the directories in a value of the `packages` context. The root directory is the empty string."""
    return [part[:-1] for part in context.split(b"\0")] if context else []
