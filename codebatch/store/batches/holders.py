"""Holders: processes that may hold leases. A holder is alive as long as its flock is held (SPEC.md "Leases").

The file is locked before it is linked into view, so no one ever sees an unlocked file of a live process. The kernel
gives the lock up when the process dies, however it dies: no clock, no pid that another process could get. That needs
none of the file's bytes, so where they are damaged the lock alone decides, and a lease, which is a name of the same
file, leads to its holder by the inode. Only a holder on another host is then taken for dead: work may be done twice.
"""

from __future__ import annotations

import errno
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from codebatch.errors import StoreUnwritable, UnsupportedEntry
from codebatch.model.documents import Document, DocumentError, InstantNs, decode_document, encode_document
from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir
from codebatch.store.documents import read_document_bytes
from codebatch.system.files.files import Files, Lock
from codebatch.system.host import Host, is_here, this_host

HOLDER_FORMAT = 1
ATTEMPTS_MAX = 100

NOBODY = HolderId("0" * 32)


class HolderFile(Document, frozen=True, kw_only=True):
    """The document holders/<uuid>: a process that works on a batch. For a worker, `parent` is its coordinator."""

    format: int = HOLDER_FORMAT
    holder: HolderId
    role: Literal["coordinator", "worker"]
    pid: int
    host: Host
    since_ns: InstantNs
    parent: HolderId | None = None


def decode_holder(data: bytes) -> HolderFile:
    """Read a holder's file, or a lease, which is a link to one. Raises DocumentError."""
    return decode_document(data, HolderFile, HOLDER_FORMAT)


def _unreadable(holder: HolderId) -> HolderFile:
    """What is known of a holder whose file cannot be read. That it is of this host makes its lock decide."""
    return HolderFile(holder=holder, role="worker", pid=0, host=this_host(), since_ns=0)


def new_holder_id() -> HolderId:
    """A fresh id."""
    return HolderId(uuid.uuid4().hex)


class Holder:
    """This process as a holder in one batch, until `close` or death."""

    def __init__(self, files: Files, batch_root: Path, about: HolderFile, *, is_durable: bool = False) -> None:
        """`is_durable`: on return of whatever takes a lease it is on disk, and so is who took it."""
        self._files = files
        self._is_durable = is_durable
        self._root = batch_root
        self.about = about
        self._path = batch_root / layout.HOLDERS / about.holder
        self._leases = batch_root / layout.LEASES
        self._lease_source = self._path
        self._lock = self._appear()

    @property
    def id(self) -> HolderId:
        """The ID of the holder."""
        return self.about.holder

    def _appear(self) -> Lock:
        """Lock our file and link it into view.

        Between our writing it and our locking it a sweeper may take it for a dead process's. Then either the sweeper
        has the lock, or the file has no name any more: in both cases we write another.
        """
        hidden = self._path.with_name(f".{self.id}.tmp")
        for _ in range(ATTEMPTS_MAX):
            try:
                self._write(hidden)
                lock = self._files.try_lock(hidden, create=False)
            except FileNotFoundError:
                continue
            if lock is None:
                continue
            is_ours = False
            try:
                is_ours = self._files.create_exclusive(hidden, self._path)
            except FileNotFoundError:
                continue
            finally:
                if not is_ours:
                    lock.release()
            if not is_ours:
                break
            self._files.remove(hidden)
            return lock
        raise StoreUnwritable(f"cannot register this process with batch {self._root.name}: {self._path} already exists")

    def try_lease(self, shard: ShardId, start: int, epoch: int, *, may_be_forgotten: bool = False) -> bool:
        """Take a lease; False where another process took that epoch before. Those of analyses only save double work.

        A lease is a further name of the holder's file, so that its inode tells the holder. A file system bounds the
        names of one file (ext4: 65,000): then a copy takes over as the source of links, as where the file was deleted.
        One that `may_be_forgotten` when the machine dies is not waited for, be this holder durable.
        """
        name = layout.lease_name(shard, start, epoch)
        return self._name(name) if may_be_forgotten else self._link(name)

    def try_lead(self, epoch: int) -> bool:
        """Take the lease of a work batch as a whole; False where another process took that epoch before."""
        return self._link(layout.coordinator_lease_name(epoch))

    def sync(self) -> None:
        """On return every lease that was taken is on disk."""
        self._files.sync_directory(self._leases)

    def _link(self, name: str) -> bool:
        is_ours = self._name(name)
        if is_ours and self._is_durable:
            self.sync()
        return is_ours

    def _name(self, name: str) -> bool:
        path = f"{self._leases}/{name}"
        try:
            return self._files.create_exclusive(self._lease_source, path)
        except OSError as error:
            if error.errno not in (errno.EMLINK, errno.ENOENT):
                raise
        self._lease_source = self._path.with_name(f".{self.id}.{uuid.uuid4().hex}.tmp")
        self._write(self._lease_source)
        return self._files.create_exclusive(self._lease_source, path)

    def _write(self, path: Path) -> None:
        (self._files.write_atomic if self._is_durable else self._files.write_volatile)(
            path, encode_document(self.about)
        )

    def close(self) -> None:
        """Give up every lease. The file stays: it says who held what."""
        self._lock.release()


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The highest lease of a unit."""

    shard: ShardId
    start: int
    epoch: int
    holder: HolderFile
    is_live: bool


class LeaseReader:
    """Reads who holds what in a batch."""

    def __init__(self, files: Files, batch_root: Path, *, take_over: bool = False) -> None:
        """`take_over`: leases of other hosts count as those of the dead."""
        self._files = files
        self._root = batch_root
        self._holders = f"{batch_root}/{layout.HOLDERS}"
        self._take_over = take_over
        self._by_inode: dict[int, HolderFile] = {}

    def holders(self) -> list[tuple[HolderFile, bool]]:
        """Every holder there ever was, and whether it is alive."""
        found: list[tuple[HolderFile, bool]] = []
        directory = self._root / layout.HOLDERS
        with self._files.keeping_open(directory):
            for name, inode in self._files.listing(directory).items():
                if layout.HOLDER_PATTERN.match(name):
                    holder = self._read(f"{self._holders}/{name}")
                    if holder is None or holder.holder != name:
                        holder = _unreadable(HolderId(name))
                    self._by_inode[inode] = holder
                    found.append((holder, self.is_live(holder)))
        return found

    def listed(self) -> dict[str, int]:
        """What lies in `leases/` now, as `Files.listing` tells it."""
        return self._files.listing(self._root / layout.LEASES)

    def leases(self, listed: Mapping[str, int] | None = None) -> dict[tuple[ShardId, int], Lease]:
        """The highest lease of every unit that was ever leased, be it of what was `listed`."""
        highest: dict[tuple[ShardId, int], tuple[int, int, str]] = {}
        for name, inode in (self.listed() if listed is None else listed).items():
            parsed = layout.parse_lease(name)
            if parsed is None:
                continue
            shard, start, epoch = parsed
            if (known := highest.get((shard, start))) is None or epoch > known[0]:
                highest[shard, start] = (epoch, inode, name)
        live: dict[HolderId, bool] = {}
        leases: dict[tuple[ShardId, int], Lease] = {}
        for (shard, start), (epoch, inode, name) in highest.items():
            holder = self._holder(inode, name)
            if holder.holder not in live:
                live[holder.holder] = self.is_live(holder) and (is_here(holder.host) or not self._take_over)
            leases[shard, start] = Lease(
                shard=shard, start=start, epoch=epoch, holder=holder, is_live=live[holder.holder]
            )
        return leases

    def leader(self, listed: Mapping[str, int] | None = None) -> tuple[int, HolderFile | None]:
        """The highest epoch of the lease of a work batch as a whole, and its holder where that lives; 0 without one.

        Of what was `listed`, where that is given.
        """
        highest = (0, 0, "")
        for name, inode in (self.listed() if listed is None else listed).items():
            epoch = layout.parse_coordinator_lease(name)
            if epoch is not None:
                highest = max(highest, (epoch, inode, name))
        epoch, inode, name = highest
        if not epoch:
            return 0, None
        holder = self._holder(inode, name)
        is_live = self.is_live(holder) and (is_here(holder.host) or not self._take_over)
        return epoch, holder if is_live else None

    def is_live(self, holder: HolderFile) -> bool:
        """Whether a holder may still be at work. One on another host counts as alive: its flock cannot be seen here."""
        if is_here(holder.host):
            try:
                return self._files.is_locked(f"{self._holders}/{holder.holder}")
            except UnsupportedEntry:  # No process of ours holds the lock of what it did not make.
                return False
        return holder.host.name != this_host().name

    def _holder(self, inode: int, lease: str) -> HolderFile:
        """Whose lease it is. One that tells neither by its bytes nor by its inode is of nobody who lives."""
        if inode not in self._by_inode:
            found = self._read(self._root / layout.LEASES / lease)
            if found is None:
                self.holders()
            self._by_inode.setdefault(inode, found or _unreadable(NOBODY))
        return self._by_inode[inode]

    def _read(self, path: Path | str) -> HolderFile | None:
        try:
            found = decode_holder(read_document_bytes(self._files, path))
        except (FileNotFoundError, DocumentError, UnsupportedEntry):
            return None
        return found if layout.HOLDER_PATTERN.match(found.holder) else None


def is_held(batch: BatchDir) -> bool:
    """Whether some process may be at work on a batch."""
    return any(is_live for _, is_live in LeaseReader(batch.files, batch.root).holders())
