"""The directories from which Python processes of codebatch import modules.

Code of an analysed tree must not run. But Python searches the current directory (`python -m`), the entries of
PYTHONPATH and those of `.pth` files, and these may be in the tree. So `python -m codebatch` and the console script
remove such entries before they import other packages, and pass the rest to all processes that they start
(python_start.py).

Only modules that are loaded in any case are imported here, because this module runs before the path is safe.
"""

import os
import sys

_OWN_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_PROJECT_MARKS = (".git", ".codebatch")


def safe_entries(entries: list[str], trees: list[str], installed: list[str], directory: str) -> list[str]:
    """Return the entries of a module search path that are not part of a source tree.

    - `trees`: the roots of trees, absolute. An entry in a tree is unsafe. So is an entry above a tree: the tree itself
      could be a package.
    - `installed`: directories of the interpreter and of codebatch, which are safe in any case. In a project with a
      virtual environment, they are in the tree.
    - `directory`: the current directory. It is unsafe, as is every relative entry.
    """
    resolved_trees = [os.path.realpath(tree) for tree in trees]
    always_safe = {os.path.realpath(entry) for entry in installed}
    current = os.path.realpath(directory)

    def is_safe(entry: str) -> bool:
        resolved = os.path.realpath(entry)
        return os.path.isabs(entry) and (
            resolved in always_safe
            or (resolved != current and not any(_is_related(resolved, tree) for tree in resolved_trees))
        )

    return [entry for entry in entries if is_safe(entry)]


def _is_related(path: str, tree: str) -> bool:
    """Return whether one of two directories contains the other."""
    return os.path.commonpath([path, tree]) in (path, tree)


def keep_tree_off_path(arguments: list[str]) -> None:
    """Remove the entries of `sys.path` that are unsafe for a command line.

    The trees are the project of the current directory, and all directories that the arguments name, with their
    projects.
    """
    words = [*arguments, os.environ.get("CODEBATCH_STORE", "")]
    named = [part for word in words for part in (word, word.partition("=")[2]) if part and os.path.isdir(part)]
    directory = current_directory()
    trees = [root for tree in (directory, *map(os.path.abspath, named)) for root in project_roots(tree)]
    sys.path[:] = safe_entries(sys.path, [*trees, *map(os.path.abspath, named)], installed_directories(), directory)


def current_directory() -> str:
    """Return the current directory, or a path without files if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return os.devnull


def project_roots(directory: str) -> list[str]:
    """Return the root of the project around a directory, or nothing if there is none."""
    while True:
        if any(os.path.lexists(os.path.join(directory, mark)) for mark in _PROJECT_MARKS):
            return [directory]
        above = os.path.dirname(directory)
        if above == directory:
            return []
        directory = above


def installed_directories() -> list[str]:
    """Return the directories of the interpreter, of installed packages, and of the packages of codebatch."""
    import site  # The interpreter has loaded this module, unless it runs with `-S`.

    library = os.path.dirname(os.path.abspath(os.__file__))
    archive = "python{}{}.zip".format(*sys.version_info)
    return [
        library,
        os.path.join(library, "lib-dynload"),
        os.path.join(os.path.dirname(library), archive),
        *site.getsitepackages(),
        site.getusersitepackages(),
        _OWN_ROOT,
        os.path.join(_OWN_ROOT, "workers"),
    ]
