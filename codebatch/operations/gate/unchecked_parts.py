"""The tasks that HEAD did not run, and the files that fewer rules check: a change can hide its findings there."""

from __future__ import annotations

import os

import msgspec

from codebatch.compare.matching.trees import TreeComparison
from codebatch.model.entry import display_path
from codebatch.operations.project.configuration import Configuration
from codebatch.operations.project.pipelines import project_code_tasks
from codebatch.query.filters.paths import PathFilter
from codebatch.query.sources.parsed_files import ParsedFile

_CLASSES = ("binary", "huge", "minified", "generated", "vendored")


class UncheckedParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of HEAD that were not checked, or less than in the base.

    - `tasks_not_run`: the tasks of HEAD's pipeline that HEAD did not run, such as because of `--no-commands`.
    - `less_checked_files`: the changed files that fewer rules check than in the base, as text.
    """

    tasks_not_run: tuple[str, ...] = ()
    less_checked_files: tuple[str, ...] = ()


def find_unchecked_parts(trees: TreeComparison, configuration: Configuration, path: str) -> UncheckedParts:
    """Return what HEAD did not check. Only files that the filter `path` selects count. Raises StoreCorrupt."""
    plan = trees.new.plan
    not_run = (task for task in project_code_tasks(configuration, plan.pipeline) if task not in plan.task_names)
    return UncheckedParts(tasks_not_run=tuple(not_run), less_checked_files=_less_checked_files(trees, path))


def _less_checked_files(trees: TreeComparison, path: str) -> tuple[str, ...]:
    """Return the changed files that fewer rules check than the matching files of the base, as text with their classes.

    An added file counts if it is not parsed, and the base parses files with its ending.
    """
    changed, selected = trees.differing_files[1], PathFilter(path)
    rarely = [file for file in trees.new.files if file.path_bytes in changed and _is_rarely_checked(file)]
    rarely = [file for file in rarely if selected.matches(file.path_bytes)]
    old_files = trees.old.files if rarely else ()
    checked = {file.path_bytes for file in old_files if file.parse != "unsupported" and not _is_rarely_checked(file)}
    endings = {os.path.splitext(name)[1] for name in checked} - {b""}
    found = list[str]()
    for file in rarely:
        before = trees.old_path(file.path_bytes)
        is_hidden = before is None and file.parse == "skipped" and os.path.splitext(file.path_bytes)[1] in endings
        if is_hidden or before in checked:
            reason = file.class_ if file.class_ in _CLASSES else "not parsed"
            found.append(f"{display_path(file.path_bytes)} ({reason})")
    return tuple(found)


def _is_rarely_checked(file: ParsedFile) -> bool:
    return file.parse == "skipped" or file.class_ in _CLASSES
