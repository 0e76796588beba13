"""Resolution of references to batches.

A reference is an ID, a name or `latest`. The default is the latest batch of the current project.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Set
from os import fsdecode

from codebatch.errors import NoBatch, StoreError, UnknownId
from codebatch.model.digest import DIGEST_PATTERN
from codebatch.model.entry import display_path
from codebatch.model.project import ProjectRoot
from codebatch.store import layout
from codebatch.store.batches.batch_directory import (
    BatchDir,
    BatchId,
    BatchKind,
    batch_ids,
    check_kind,
    check_name,
    has_batch_kind,
    iter_batches,
    open_batch,
    read_batch_names,
)
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback, latest_offset, resolve_prefix

OTHER_PROJECTS_SHOWN_MAX = 5
"""Maximum number of other projects of the store that an error lists."""


def resolve_batch(
    store: StoreDir,
    reference: str | None,
    on_skipped: SkipCallback | None = None,
    *,
    is_unrestricted: bool = False,
    kind: BatchKind = "analysis",
    latest: BatchDir | None = None,
) -> BatchDir:
    """Return the batch that a reference names, or the latest one of the project that the store was opened for.

    A reference is an ID, a unique prefix of an ID, `@NAME`, `latest` or `latest~N`. `latest~N` is found among the
    batches that have the same source, paths and pipeline as the latest one: it is the Nth one before the latest.

    `is_unrestricted` has an effect only if `reference` is None and the latest batch is restricted to paths. Then return
    the latest batch that covers the whole source and has at least the tasks of the restricted batch. If there is no
    such batch, return the restricted one.

    `latest` is the latest batch if the caller has found it.

    Raises InvalidId, UnknownId or AmbiguousId; NoBatch if the project has no batch; WrongBatchKind if the named batch
    is of another kind; StoreCorrupt if the batch cannot be read, or if no batch can be read.
    """
    offset = 0 if reference is None else latest_offset(reference)
    if offset is None:
        assert reference is not None
        named = _resolve_name(store, reference) if reference.startswith("@") else None
        batch = open_batch(store, named or resolve_prefix(reference, batch_ids(store), noun="batch", prefix="batch-"))
        check_kind(batch, kind)
        return batch
    candidates = iter_project_batches(store, on_skipped, kind=kind)
    latest = next(candidates, None) if latest is None else latest
    if latest is None:
        raise _no_batch_error(store, kind)
    if offset == 0:
        is_restricted = is_unrestricted and reference is None and latest.about.paths
        return _prefer_unrestricted(candidates, latest, on_skipped) if is_restricted else latest
    alike = (
        batch for batch in iter_batches(store, kind=kind) if batch.id < latest.id and _has_same_scope(batch, latest)
    )
    earlier = next(itertools.islice(alike, offset - 1, None), None)
    if earlier is not None:
        return earlier
    raise UnknownId(
        f"no batch {reference}: too few earlier batches have the same project, paths and pipeline as the latest batch",
        hint="see: codebatch batch list",
    )


def iter_project_batches(
    store: StoreDir, on_skipped: SkipCallback | None = None, *, kind: BatchKind = "analysis"
) -> Iterator[BatchDir]:
    """Yield the project's batches of a kind, latest first. The project is the one that the store was opened for.

    Outside git, the current directory may have no batch while exactly one directory below it has one. Example:
    `codebatch run DIRECTORY` was started in the parent directory. Then yield the batches of the directory below.
    """
    root = None if store.project is None else _current_root(store, store.project, kind)
    for batch in iter_batches(store, on_skipped, kind=kind):
        if not batch.about.for_comparison and (root is None or _belongs_to(batch, root)):
            yield batch


def iter_source_batches(store: StoreDir, sources: tuple[bytes, ...]) -> Iterator[BatchDir]:
    """Yield the analyses with the sources `sources`, latest first, including analyses restricted to paths."""
    for batch in iter_batches(store):
        if batch.about.sources == sources and not batch.about.for_comparison:
            yield batch


def find_default_batch(store: StoreDir, sources: tuple[bytes, ...]) -> BatchDir | None:
    """Return the analysis with the sources `sources` that a query uses if its user names no batch.

    None if there is none.
    """
    candidates = iter_source_batches(store, sources)
    latest = next(candidates, None)
    return latest if latest is None or not latest.about.paths else _prefer_unrestricted(candidates, latest, None)


def belongs_to_other_project(store: StoreDir, batch: BatchDir) -> bool:
    """Return whether a batch belongs to a project other than the one that the store was opened for."""
    project = store.project
    if project is None or project.kind == "removed" or _belongs_to(batch, project.root):
        return False
    return not project.has_source(batch.about.project_root)


def _current_root(store: StoreDir, project: ProjectRoot, kind: BatchKind) -> bytes:
    """Return the root of the current project.

    Outside git, this is the nearest directory with a batch of the kind `kind`, from the start directory upwards. If
    there is none, and exactly one directory below has such a batch, return that directory.
    """
    if project.kind == "git":
        return project.root
    roots: set[bytes] = set()
    for batch in iter_batches(store, kind=kind):
        root = batch.about.project_root
        if root == project.start:
            return root
        roots.add(root)
    root = project.root_among(roots)
    below = [below_root for below_root in roots - {b""} if project.holds(below_root)]
    return below[0] if root not in roots and len(below) == 1 else root


def _belongs_to(batch: BatchDir, root: bytes) -> bool:
    """Return whether a batch belongs to the project at a root. True if the project of the batch is unknown.

    The directory of a task list may be below the root of its project.
    """
    return batch.about.project_root in (root, b"") or batch.about.sources == (root,)


def _no_batch_error(store: StoreDir, kind: BatchKind) -> UnknownId:
    """Return the error that the project has no batch of a kind. Raises StoreCorrupt if all batches are damaged."""
    other_batches: dict[bytes, BatchDir] = {}
    for batch in iter_batches(store, kind="any"):
        if has_batch_kind(batch, kind):
            other_batches.setdefault(batch.about.project_root, batch)
    for batch_id in reversed(batch_ids(store)) if not other_batches else ():
        open_batch(store, batch_id)
    noun = {"analysis": "analysis", "work": "batch of a task list", "any": "batch"}[kind]
    make = "codebatch work run" if kind == "work" else _run_command(store.project)
    is_removed = store.project is not None and store.project.kind == "removed"
    hint = "change to a directory that exists" if is_removed else f"create one with: {make}"
    if other_batches:
        batches_text = ", ".join(
            f"{batch.id} ({display_path(root)})"
            for root, batch in itertools.islice(other_batches.items(), OTHER_PROJECTS_SHOWN_MAX)
        )
        more = (
            f" and {len(other_batches) - OTHER_PROJECTS_SHOWN_MAX:,} more"
            if len(other_batches) > OTHER_PROJECTS_SHOWN_MAX
            else ""
        )
        hint += f"; the latest batches of other projects: {batches_text}{more}"
    if is_removed:
        return NoBatch("the current directory no longer exists", hint=hint)
    root = "" if store.project is None else display_path(store.project.root)
    where = f"of project {root} in the store {store.root}" if root else "in this store yet"
    return NoBatch(f"no {noun} {where}", hint=hint)


def _run_command(project: ProjectRoot | None) -> str:
    if project is None:
        return "codebatch run PATH"
    path = "." if project.start == project.root else fsdecode(project.root)
    return shlex.join(["codebatch", "run", path])


def _resolve_name(store: StoreDir, reference: str) -> BatchId:
    name = reference[1:]
    check_name(name)
    batch_id = read_batch_names(store).get(name)
    if batch_id is None:
        raise UnknownId(
            f"no batch is named {reference}", hint=f"give a batch this name with: codebatch run PATH --name {name}"
        )
    return batch_id


def _prefer_unrestricted(older: Iterator[BatchDir], latest: BatchDir, on_skipped: SkipCallback | None) -> BatchDir:
    """Return the first batch in `older` that covers the whole source of `latest`. If there is none, return `latest`.

    If another batch than `latest` is returned, `on_skipped` gets a message.
    """
    tasks = _task_names(latest)
    covering = next((batch for batch in older if _covers_batch(batch, latest, tasks)), None) if tasks else None
    if covering is not None and on_skipped is not None:
        paths = ", ".join(map(display_path, latest.about.paths))
        on_skipped(
            f"using batch {covering.id} (whole project); a newer batch {latest.id} covers only {paths}, "
            "query it with --batch"
        )
    return covering or latest


def _covers_batch(batch: BatchDir, other: BatchDir, tasks: Set[str]) -> bool:
    """Return whether a batch covers the whole source of `other`, has all of its tasks, and has merged outputs."""
    if batch.about.paths or batch.about.for_comparison or batch.about.sources != other.about.sources:
        return False
    has_outputs = any(DIGEST_PATTERN.match(name) for name in batch.files.listing(batch.root / layout.OUTPUTS))
    return has_outputs and tasks <= _task_names(batch)


def _task_names(batch: BatchDir) -> frozenset[str]:
    """Return the tasks of a batch. If its plan cannot be read, return an empty set."""
    try:
        return frozenset(batch.plan().task_names)
    except (StoreError, UnknownId):
        return frozenset()


def _has_same_scope(batch: BatchDir, other: BatchDir) -> bool:
    scope = (batch.about.sources_and_paths, batch.about.pipeline)
    return scope == (other.about.sources_and_paths, other.about.pipeline) and not batch.about.for_comparison
