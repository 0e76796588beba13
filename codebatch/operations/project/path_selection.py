"""Explanation of why a path of the present source tree is included or excluded."""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.operations.project.projects import find_project
from codebatch.operations.project.stores import StoreLocator
from codebatch.snapshotting.path_explanation import PathExplanation, explain_path
from codebatch.snapshotting.selection import SourceRules


def explain_path_selection(path: Path, rules: SourceRules, place: StoreLocator) -> PathExplanation:
    """Return whether the source tree includes a path, and the rule that decides this.

    Raises InvalidInput if the path is neither in the current directory nor in the project.
    """
    return explain_path([_tree_with(path, place.directory)], path, rules, store_root=place.store_root())


def _tree_with(path: Path, current: Path) -> Path:
    """Return the directory `current` if it contains the path, otherwise the root of its project.

    Raises InvalidInput if neither contains the path.
    """
    parent, name = os.path.split(os.path.abspath(path))
    for target in (Path(parent, name), Path(os.path.realpath(parent), name)):
        for root in (current, Path(os.fsdecode(find_project(current).root))):
            if target.is_relative_to(root):
                return root
    displayed_path = display_path(os.fsencode(path))
    if not os.path.lexists(path):
        raise InvalidInput(f"{displayed_path} does not exist")
    raise InvalidInput(
        f"{displayed_path} is outside the analysed project", hint="run the command in or above the analysed directory"
    )
