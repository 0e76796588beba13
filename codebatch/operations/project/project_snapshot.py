"""Snapshots of a project, and the paths in the project to which a run is restricted."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from codebatch.errors import InvalidConfiguration, InvalidInput, NothingToDo
from codebatch.model.entry import display_path
from codebatch.model.plan import plan_items
from codebatch.model.project import ProjectRoot
from codebatch.operations import NoteCallback, PhaseCallback, ignore_phase
from codebatch.operations.project.configuration import Configuration
from codebatch.operations.project.projects import find_project
from codebatch.snapshotting.roots import ProjectSelection, select_project
from codebatch.snapshotting.selection import SourceRules, find_pattern_mistake
from codebatch.snapshotting.snapshot import SnapshotProgress, SnapshotResult, take_snapshot
from codebatch.snapshotting.staleness import find_stat_cache
from codebatch.store.batches.batch_directory import iter_batches
from codebatch.store.batches.snapshot_references import resolve_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.system.clock import wall_ns


class ProjectSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a project, and the paths in the project to which a run is restricted.

    Planning and execution share this object, so the entries of the snapshot are decoded only once.

    - `files`: the number of files to analyse.
    - `size_bytes`: the total size of these files.
    - `read_files`: the number of files that were read for the snapshot.
    - `stat_cache`: the name of the stat cache with the lstat results of the tree, or empty if unknown.
    """

    snapshot: Snapshot
    sources: tuple[bytes, ...]
    files: int
    size_bytes: int
    read_files: int = 0
    paths: tuple[bytes, ...] = ()
    stat_cache: str = ""


def rules_for(
    configuration: Configuration, include: tuple[str, ...], exclude: tuple[str, ...], *, rehash: bool = False
) -> SourceRules:
    """Return the rules for selecting files. `include` replaces the configured patterns, `exclude` is added to them.

    Raises InvalidInput or InvalidConfiguration for a pattern that can match no path.
    """
    settings = configuration.settings
    rules = SourceRules(include=include or settings.include, exclude=(*settings.exclude, *exclude), rehash=rehash)
    root = configuration.directory if configuration.file is None else configuration.file.parent
    for name, patterns, override in (("include", rules.include, include), ("exclude", rules.exclude, exclude)):
        if (mistake := find_pattern_mistake(patterns, root)) is not None:
            message = f"pattern {mistake.pattern!r} of {name} can match no path: {mistake.reason}"
            if mistake.pattern in override:
                raise InvalidInput(message, hint=mistake.hint)
            raise InvalidConfiguration(f"{configuration.file}: {message}", hint=mistake.hint)
    return rules


def take_snapshot_of_paths(
    store: StoreDir,
    paths: Sequence[Path],
    rules: SourceRules,
    phase: PhaseCallback = ignore_phase,
    *,
    is_temporary: bool = False,
) -> SnapshotResult:
    """Take a snapshot of exactly these paths. `is_temporary` is as in `take_snapshot`.

    Raises InvalidInput, SourceUnreadable, SnapshotUnstable or StoreError.
    """

    def report(progress: SnapshotProgress) -> None:
        phase("reading", progress.paths_done, progress.paths)

    phase("listing")
    return take_snapshot(
        store.files,
        store.root,
        paths,
        rules,
        now=lambda: wall_ns() / 1e9,
        report=report,
        is_temporary=is_temporary,
    )


def take_project_snapshot(
    store: StoreDir,
    paths: Sequence[Path],
    rules: SourceRules,
    note: NoteCallback,
    *,
    projects: Mapping[bytes, ProjectRoot] = MappingProxyType({}),
    allow_empty: bool,
    phase: PhaseCallback = ignore_phase,
) -> ProjectSnapshot:
    """Take a snapshot of the project that contains the paths.

    `projects` maps paths to their projects, if they are already known. The keys are absolute paths without symbolic
    links. Raises NothingToDo if the snapshot has no files, unless `allow_empty` is set, and the errors of
    `take_snapshot_of_paths`.
    """
    batches = iter_batches(store, kind="any")
    known = {batch.about.project_root for batch in batches if len(batch.about.sources) == 1}
    selection = select_project(
        paths, store.root, lambda path: _project_root(path, projects.get(path) or find_project(path), known)
    )
    result, snapshot, files, size = _take_selected_snapshot(store, selection, rules, phase)
    for text in result.notes:
        note(text)
    if selection.paths:
        project, parts = (", ".join(map(display_path, group)) for group in (selection.projects, selection.paths))
        note(f"analysing only a part of project {project}: {parts}")
    if files == 0 and not allow_empty:
        raise nothing_to_do_error(paths)
    return ProjectSnapshot(
        snapshot=snapshot,
        sources=selection.projects,
        files=files,
        size_bytes=size,
        read_files=result.read_files,
        paths=selection.paths,
        stat_cache=result.stat_cache,
    )


def _project_root(path: bytes, project: ProjectRoot, known: Collection[bytes]) -> bytes | None:
    """Return the root of the project whose snapshot includes a path. Return None if the path needs its own snapshot.

    A path needs its own snapshot in two cases:

    - git ignores the path.
    - No git work tree and no settings define the project, only a store, and the project has no batch.

    `known` are the roots of projects with batches.
    """
    root = project.root_among(known)
    if project.kind == "ignored" and root == project.root and os.path.isdir(path):
        return None
    return root if root in known or project.kind in ("git", "ignored", "settings") else None


def load_project_snapshot(store: StoreDir, reference: str, note: NoteCallback) -> ProjectSnapshot:
    """Return an older snapshot by its ID, without a restriction. Raises InvalidId, UnknownId or AmbiguousId."""
    snapshot = resolve_snapshot(store, reference, note)
    document = snapshot.document
    return ProjectSnapshot(
        snapshot=snapshot,
        sources=tuple(sorted(map(os.fsencode, document.source.roots))),
        files=document.files,
        size_bytes=document.bytes,
        stat_cache=find_stat_cache(store.files, store.root, snapshot.id, document.source.base),
    )


def nothing_to_do_error(paths: Sequence[Path]) -> NothingToDo:
    """Return the error for paths without any selected file."""
    return NothingToDo(
        f"no files to analyse in {', '.join(map(str, paths))}",
        hint="see why a path is excluded with: codebatch files --why PATH; to accept this, add --allow-empty",
    )


def _take_selected_snapshot(
    store: StoreDir, selection: ProjectSelection, rules: SourceRules, phase: PhaseCallback
) -> tuple[SnapshotResult, Snapshot, int, int]:
    """Take a snapshot. Return its result, the snapshot, and the number and total size in bytes of the files to analyse.

    Paths that the user named are included even if their project ignores them.
    """

    def take_roots(roots: Sequence[bytes]) -> tuple[SnapshotResult, Snapshot]:
        result = take_snapshot_of_paths(store, [Path(os.fsdecode(root)) for root in roots], rules, phase)
        return result, load_snapshot(store.files, store.root, result.snapshot_id)

    result, snapshot = take_roots(selection.sources.roots)
    if not selection.paths:
        return result, snapshot, result.files, result.bytes
    ignored = [path for path in selection.paths if not plan_items(snapshot.entries, [path])]
    if ignored:
        base = selection.sources.base
        result, snapshot = take_roots([base, *(os.path.join(base, path) for path in ignored)])
    items = plan_items(snapshot.entries, selection.paths)
    return result, snapshot, len(items), sum(item.size for item in items)
