"""Verification of shard files: which files must exist, and which are damaged or missing.

Batches share shard files by hard links. If a file is damaged, all its links are affected, but it counts as one damaged
file. The trailer of a shard file has a digest of the frames and the item table. For each name, the expected trailer
digest is recorded elsewhere. The manifest records it for a file in the outputs, a commit file for a reused file in
`results/`.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import StoreCorrupt, StoreError, UnknownId
from codebatch.model.digest import Digest
from codebatch.model.shard import ShardId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.shard_files import read_trailer, split_shard_file
from codebatch.system.files.file_reader import FileReader


class ShardName(msgspec.Struct, frozen=True):
    """A name of a shard file in a directory of a batch. `digest` is the expected digest of its trailer.

    `length` is the expected length of the frames. `size` is the expected length of the file, or None for a reused file,
    because no manifest describes that file.
    """

    directory: Path
    file: str
    digest: Digest
    length: int
    size: int | None
    batch: BatchDir
    task: str
    shard: ShardId

    @property
    def path(self) -> Path:
        """The path of the file. Computed on demand, because for most names it is never needed."""
        return self.directory / self.file


class ShardFault(msgspec.Struct, frozen=True):
    """A damaged file with all its names, or names of missing files that have the same expected digest."""

    digest: Digest
    problem: str
    names: tuple[ShardName, ...]


class ShardFileSurvey(msgspec.Struct, frozen=True):
    """The result of a survey of shard files.

    It has the number of names, of files, and of files that were read in full, and the damaged files. `sound` has the
    undamaged files. `sound` maps each digest to the files with this digest, and each file, by its inode, to all its
    names.
    """

    names: int
    files: int
    read: int
    faults: list[ShardFault]
    sound: dict[Digest, dict[int, list[ShardName]]]


def shard_names(batch: BatchDir) -> Iterator[ShardName]:
    """Yield the names of all shard files that a batch needs, each once. Raises StoreCorrupt."""
    outputs = current_outputs(batch)
    if outputs is not None:
        for task in outputs.manifest.tasks:
            directory = outputs.root / task.task
            for index, shard in enumerate(task.shards):
                file, size = layout.shard_file_name(index, shard.shard), shard.length + shard.trailer
                yield ShardName(directory, file, shard.digest, shard.length, size, batch, task.task, shard.shard)
        if outputs.is_settled:
            return
    outcomes = OutcomeRegisters(batch.files, batch.root)
    seen_digests: set[Digest] = set()
    for commit in outcomes.scan_new().commits:
        for outcome in commit.outcomes:
            for part in outcome.parts or (outcome,):
                if part.file and part.file not in seen_digests:
                    seen_digests.add(part.file)
                    path = outcomes.adopted_path(part.file)
                    names = (path.parent, path.name)
                    yield ShardName(*names, part.file, part.length, None, batch, outcome.task, part.shard)


def iter_shard_names(batches: Iterable[BatchDir]) -> Iterator[ShardName]:
    """Yield the names of the shard files of several batches. Batches that cannot be read are skipped."""
    for batch in batches:
        with contextlib.suppress(StoreCorrupt, UnknownId):
            yield from shard_names(batch)


SampleChooser = Callable[[Sequence[Digest]], Container[Digest]]
"""A function that gets the digests of all files. It returns the digests of those files that are to be read in full."""


def survey_shard_files(
    files: FileReader, names: Iterable[ShardName], *, is_full: bool, choose: SampleChooser = lambda _: ()
) -> ShardFileSurvey:
    """Verify the shard files with the names `names`. A file with several names is verified once.

    The length of each file is compared with the expected length. If a file's expected length is unknown, its trailer is
    read, and must begin at the end of the frames. If `is_full` is set, or `choose` returns a file's digest, all bytes
    of the file are verified too. A missing name is not a fault if its batch was removed or settled.
    """
    inodes: dict[Path, dict[str, int]] = {}
    names_by_file: dict[tuple[Digest, int | None], list[ShardName]] = {}
    count = 0
    for name in names:
        count += 1
        directory_inodes = inodes.get(name.directory)
        if directory_inodes is None:
            directory_inodes = inodes[name.directory] = _inode_by_name(files, name.directory)
        names_by_file.setdefault((name.digest, directory_inodes.get(name.file)), []).append(name)
    read = set(names_by_file) if is_full else _select_files(names_by_file, choose)
    inodes_found, inodes_read = ({inode for _, inode in keys if inode is not None} for keys in (names_by_file, read))
    result = ShardFileSurvey(count, len(inodes_found), len(inodes_read), [], {})
    for (digest, inode), group in names_by_file.items():
        problem = _file_problem(files, group, is_full=(digest, inode) in read)
        if problem is not None:
            if remaining_names := tuple(name for name in group if not _was_removed(files, name)):
                result.faults.append(ShardFault(digest, problem, remaining_names))
        elif inode is not None:
            result.sound.setdefault(digest, {})[inode] = group
    return result


def _select_files(files: Iterable[tuple[Digest, int | None]], choose: SampleChooser) -> set[tuple[Digest, int | None]]:
    chosen = choose(sorted({digest for digest, _ in files}))
    return {file for file in files if file[0] in chosen}


def _inode_by_name(files: FileReader, directory: Path) -> dict[str, int]:
    """Map the names in a directory to their inodes. Return an empty map if the path is not a directory."""
    try:
        return files.listing(directory)
    except StoreError:
        return {}


def _file_problem(files: FileReader, names: list[ShardName], *, is_full: bool) -> str | None:
    """Return a description of the damage of a file, or None if it is undamaged. All `names` are names of this file."""
    name, sizes = names[0], {name.size for name in names if name.size is not None}
    try:
        status = files.stat(name.path)
        if status is None:
            return "it is missing"
        if not stat.S_ISREG(status.st_mode):
            return "it is not a file"
        if other_sizes := sizes - {status.st_size}:
            return f"it has {status.st_size:,} bytes instead of {min(other_sizes):,}"
        if is_full:
            split_shard_file(files.read(name.path), name.digest)
        elif not sizes:
            read_trailer(files.read_range(name.path, name.length, status.st_size - name.length), name.digest)
    except FileNotFoundError:
        return "it is missing"
    except StoreError as error:
        return error.message
    except ValueError as error:
        return str(error)
    return None


def _was_removed(files: FileReader, name: ShardName) -> bool:
    """Return whether a name is missing because its batch was removed or settled.

    Both may happen while this process reads, because readers hold no lock.
    """
    root = name.batch.root
    if files.stat(root) is None:
        return True
    return name.directory == root / layout.RESULTS and files.stat(root / layout.SETTLED_FILE) is not None
