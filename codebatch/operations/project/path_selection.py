"""Why a path of the tree here is taken or left out."""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.operations.project.projects import find_project
from codebatch.operations.project.stores import StorePlace
from codebatch.snapshotting.path_explanation import Why, why
from codebatch.snapshotting.selection import SourceRules


def explain(path: Path, rules: SourceRules, place: StorePlace) -> Why:
    """Whether a path of the tree here is taken, and by which rule. Raises InvalidInput where it is in no tree here."""
    return why([_tree_with(path)], path, rules, store_root=place.root())


def _tree_with(path: Path) -> Path:
    """The current directory, or the work tree around it, whichever has the path in it. Raises InvalidInput."""
    here = Path.cwd()
    parent, name = os.path.split(os.path.abspath(path))
    for target in (Path(parent, name), Path(os.path.realpath(parent), name)):
        for root in (here, Path(os.fsdecode(find_project(here).root))):
            if target.is_relative_to(root):
                return root
    shown = display_path(os.fsencode(path))
    if not os.path.lexists(path):
        raise InvalidInput(f"{shown} does not exist")
    raise InvalidInput(
        f"{shown} is outside the analysed project", hint="run the command in or above the analysed directory"
    )
