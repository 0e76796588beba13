"""Freezing: the snapshot of the project that paths are of, and the part of it that they name."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from codebatch.errors import InvalidConfiguration, InvalidInput, NothingToDo
from codebatch.model.entry import display_path
from codebatch.model.plan import items_of
from codebatch.model.project import ProjectRoot
from codebatch.operations import Note, TellPhase, ignore_phase
from codebatch.operations.project.configuration import Configuration
from codebatch.operations.project.projects import find_project
from codebatch.snapshotting.roots import Selection, select
from codebatch.snapshotting.selection import SourceRules, mistake_in
from codebatch.snapshotting.snapshot import SnapshotProgress, SnapshotResult, take_snapshot
from codebatch.snapshotting.staleness import stat_cache_of
from codebatch.store.batches.batches import iter_batches
from codebatch.store.batches.snapshot_references import resolve_snapshot
from codebatch.store.batches.store import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.system.clock import wall_ns


class ProjectSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot, of which project it is, and the paths below it that the work is restricted to.

    Who plans and who executes share the snapshot, so that its entries are decoded once. `files` are those to be worked
    on, of `size_bytes`; `read_files` those of the snapshot that were not known yet.
    `stat_cache` is the name of the one that knows what the tree looked like, empty where that is not known.
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
    """Return which files are taken: `include` replaces the configured patterns, `exclude` is added to them.

    Raises InvalidInput or InvalidConfiguration for a pattern that can match no path.
    """
    settings = configuration.settings
    rules = SourceRules(include=include or settings.include, exclude=(*settings.exclude, *exclude), rehash=rehash)
    root = Path.cwd() if configuration.file is None else configuration.file.parent
    for name, patterns, given in (("include", rules.include, include), ("exclude", rules.exclude, exclude)):
        if (mistake := mistake_in(patterns, root)) is not None:
            message = f"pattern {mistake.pattern!r} of {name} can match no path: {mistake.reason}"
            if mistake.pattern in given:
                raise InvalidInput(message, hint=mistake.hint)
            raise InvalidConfiguration(f"{configuration.file}: {message}", hint=mistake.hint)
    return rules


def take(store: StoreDir, paths: Sequence[Path], rules: SourceRules, phase: TellPhase = ignore_phase) -> SnapshotResult:
    """A snapshot of exactly these paths. Raises InvalidInput, SourceUnreadable, SnapshotUnstable or StoreError."""

    def report(progress: SnapshotProgress) -> None:
        phase("reading", progress.paths_done, progress.paths)

    phase("listing")
    return take_snapshot(store.files, store.root, paths, rules, now=lambda: wall_ns() / 1e9, report=report)


def take_project_snapshot(
    store: StoreDir,
    paths: Sequence[Path],
    rules: SourceRules,
    note: Note,
    *,
    projects: Mapping[bytes, ProjectRoot] = MappingProxyType({}),
    allow_empty: bool,
    phase: TellPhase = ignore_phase,
) -> ProjectSnapshot:
    """The snapshot of the project that paths are of. Raises NothingToDo where it is empty, and what `take` raises.

    `projects` are those of the paths, absolute and without links, if they were looked for before the store was made.
    """
    batches = iter_batches(store, kind="any")
    known = {batch.about.project_root for batch in batches if len(batch.about.sources) == 1}
    selection = select(
        paths, store.root, lambda path: _project_root(path, projects.get(path) or find_project(path), known)
    )
    taken, snapshot, files, size = _take_selected(store, selection, rules, phase)
    for text in taken.notes:
        note(text)
    if selection.paths:
        project, parts = (", ".join(map(display_path, each)) for each in (selection.projects, selection.paths))
        note(f"project {project}, restricted to: {parts}")
    if files == 0 and not allow_empty:
        raise nothing_to_do(paths)
    return ProjectSnapshot(
        snapshot=snapshot,
        sources=selection.projects,
        files=files,
        size_bytes=size,
        read_files=taken.read_files,
        paths=selection.paths,
        stat_cache=taken.stat_cache,
    )


def _project_root(path: bytes, project: ProjectRoot, known: Collection[bytes]) -> bytes | None:
    """Return the root of the project that a path is frozen with; None if it is frozen alone.

    It is if git ignores it, or if nothing but a store makes it a part of a project that has no batch of its own.
    `known` are the roots of projects that have.
    """
    root = project.root_among(known)
    if project.kind == "ignored" and root == project.root and os.path.isdir(path):
        return None
    return root if root in known or project.kind in ("git", "ignored", "settings") else None


def load_project_snapshot(store: StoreDir, reference: str, note: Note) -> ProjectSnapshot:
    """What was frozen before, whole, by the id of its snapshot. Raises InvalidId, UnknownId or AmbiguousId."""
    snapshot = resolve_snapshot(store, reference, note)
    about = snapshot.document
    return ProjectSnapshot(
        snapshot=snapshot,
        sources=tuple(sorted(map(os.fsencode, about.source.roots))),
        files=about.files,
        size_bytes=about.bytes,
        stat_cache=stat_cache_of(store.files, store.root, snapshot.id, about.source.base),
    )


def nothing_to_do(paths: Sequence[Path]) -> NothingToDo:
    """The error of who named paths of which no file is taken."""
    return NothingToDo(
        f"no files to analyse in {', '.join(map(str, paths))}",
        hint="see why a path is excluded with: codebatch files --why PATH; to accept this, add --allow-empty",
    )


def _take_selected(
    store: StoreDir, selection: Selection, rules: SourceRules, phase: TellPhase
) -> tuple[SnapshotResult, Snapshot, int, int]:
    """A snapshot as it was taken and as it is read, and how many files and bytes of it are to be worked on.

    What was named and is ignored in its project is taken all the same.
    """

    def take_roots(roots: Sequence[bytes]) -> tuple[SnapshotResult, Snapshot]:
        taken = take(store, [Path(os.fsdecode(root)) for root in roots], rules, phase)
        return taken, load_snapshot(store.files, store.root, taken.snapshot_id)

    taken, snapshot = take_roots(selection.sources.roots)
    if not selection.paths:
        return taken, snapshot, taken.files, taken.bytes
    ignored = [path for path in selection.paths if not items_of(snapshot.entries, [path])]
    if ignored:
        base = selection.sources.base
        taken, snapshot = take_roots([base, *(os.path.join(base, path) for path in ignored)])
    items = items_of(snapshot.entries, selection.paths)
    return taken, snapshot, len(items), sum(item.size for item in items)
