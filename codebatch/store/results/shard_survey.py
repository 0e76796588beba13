"""Which shard files there must be, and which of them are not what they must.

Batches share shard files by hard links: damage to one inode is damage to all that have a name of it, and counts once.
What must be behind a name the digest of its trailer says: in the manifest, or in a commit file where it was taken over
and is not merged, or may be merged again.
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
from codebatch.store.batches.batches import BatchDir
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.shard_files import read_trailer, split_shard_file
from codebatch.system.files.file_reader import FileReader


class ShardName(msgspec.Struct, frozen=True):
    """A name under which a batch has what a task says of a shard: a file of this digest in a directory.

    `length` is that of its frames, and `size` how long it is; None where that is taken over, of which no manifest says.
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
        """Where it lies. Made of few of the names there are, for it takes longer than all else that is asked of one."""
        return self.directory / self.file


class Fault(msgspec.Struct, frozen=True):
    """A file that is not what it must be, with all its names; or names of one digest that are missing."""

    digest: Digest
    problem: str
    names: tuple[ShardName, ...]


class ShardFileSurvey(msgspec.Struct, frozen=True):
    """What was found behind some names: how many names, how many files, of how many every byte was read, and those that
    are damaged.

    `sound` has the sound files of each digest by their inodes, with all names of each.
    """

    names: int
    files: int
    read: int
    faults: list[Fault]
    sound: dict[Digest, dict[int, list[ShardName]]]


def shard_names(batch: BatchDir) -> Iterator[ShardName]:
    """The names of all shard files on which a batch rests, each once. Raises StoreCorrupt."""
    outputs = current_outputs(batch)
    if outputs is not None:
        for task in outputs.manifest.tasks:
            directory = outputs.root / task.task
            for index, shard in enumerate(task.shards):
                file, size = layout.shard_file_name(index, shard.shard), shard.length + shard.trailer
                yield ShardName(directory, file, shard.digest, shard.length, size, batch, task.task, shard.shard)
        if outputs.is_settled:
            return
    outcomes = Outcomes(batch.files, batch.root)
    met: set[Digest] = set()
    for commit in outcomes.scan().commits:
        for outcome in commit.outcomes:
            for one in outcome.parts or (outcome,):
                if one.file and one.file not in met:
                    met.add(one.file)
                    path = outcomes.adopted_path(one.file)
                    names = (path.parent, path.name)
                    yield ShardName(*names, one.file, one.length, None, batch, outcome.task, one.shard)


def shard_names_of(batches: Iterable[BatchDir]) -> Iterator[ShardName]:
    """The names of the shard files of batches, but for those batches that cannot be read."""
    for batch in batches:
        with contextlib.suppress(StoreCorrupt, UnknownId):
            yield from shard_names(batch)


Choose = Callable[[Sequence[Digest]], Container[Digest]]
"""Which of some digests are in a sample."""


def survey(
    files: FileReader, names: Iterable[ShardName], *, is_full: bool, choose: Choose = lambda _: ()
) -> ShardFileSurvey:
    """Look behind names: every inode once, all its bytes where it `is_full` or its digest is chosen, else its length.

    Where no name says how long it is, that is its trailer, which must be there and begin where its frames end.
    What went meanwhile with its batch, or as that was settled, is no fault.
    """
    inodes: dict[Path, dict[str, int]] = {}
    behind: dict[tuple[Digest, int | None], list[ShardName]] = {}
    count = 0
    for name in names:
        count += 1
        there = inodes.get(name.directory)
        if there is None:
            there = inodes[name.directory] = _inodes(files, name.directory)
        behind.setdefault((name.digest, there.get(name.file)), []).append(name)
    read = set(behind) if is_full else _chosen(behind, choose)
    met, looked = ({inode for _, inode in some if inode is not None} for some in (behind, read))
    found = ShardFileSurvey(count, len(met), len(looked), [], {})
    for (digest, inode), same in behind.items():
        problem = _problem(files, same, is_full=(digest, inode) in read)
        if problem is not None:
            if left := tuple(name for name in same if not _is_gone(files, name)):
                found.faults.append(Fault(digest, problem, left))
        elif inode is not None:
            found.sound.setdefault(digest, {})[inode] = same
    return found


def _chosen(behind: Iterable[tuple[Digest, int | None]], choose: Choose) -> set[tuple[Digest, int | None]]:
    chosen = choose(sorted({digest for digest, _ in behind}))
    return {each for each in behind if each[0] in chosen}


def _inodes(files: FileReader, directory: Path) -> dict[str, int]:
    """The inodes behind the names in a directory; none where something else is in its place."""
    try:
        return files.listing(directory)
    except StoreError:
        return {}


def _problem(files: FileReader, same: list[ShardName], *, is_full: bool) -> str | None:
    """What is wrong with a file of some names; None where nothing is."""
    name, sizes = same[0], {name.size for name in same if name.size is not None}
    try:
        there = files.stat(name.path)
        if there is None:
            return "it is missing"
        if not stat.S_ISREG(there.st_mode):
            return "it is not a file"
        if others := sizes - {there.st_size}:
            return f"it has {there.st_size:,} bytes instead of {min(others):,}"
        if is_full:
            split_shard_file(files.read(name.path), name.digest)
        elif not sizes:
            read_trailer(files.read_range(name.path, name.length, there.st_size - name.length), name.digest)
    except FileNotFoundError:
        return "it is missing"
    except StoreError as error:
        return error.message
    except ValueError as error:
        return str(error)
    return None


def _is_gone(files: FileReader, name: ShardName) -> bool:
    """Whether a batch has given a name up: readers hold no lock."""
    root = name.batch.root
    if files.stat(root) is None:
        return True
    return name.directory == root / layout.RESULTS and files.stat(root / layout.SETTLED_FILE) is not None
