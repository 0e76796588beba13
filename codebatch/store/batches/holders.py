"""Holders: processes that may own leases. A holder is alive while its flock is held (SPEC.md "Leases").

A holder locks its file before it links the file into `holders/`. So no process ever sees an unlocked file of a live
holder. When the process dies, for whatever reason, the kernel releases the lock. This needs no clock and is not
affected by reused pids.

A lease is a hard link to the holder file, so its inode identifies the holder even if the bytes are damaged. The lock,
not the bytes, then decides whether a holder is alive. Exception: a lock on another host is not visible. So if a holder
file is damaged that was written on another host, its holder counts as dead, and its work may be done twice.
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
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.documents import read_document_bytes
from codebatch.system.files.files import FileLock, StoreFiles
from codebatch.system.host import HostBoot, is_this_machine, this_host

HOLDER_FORMAT = 1
REGISTRATION_ATTEMPTS_MAX = 100

UNKNOWN_HOLDER = HolderId("0" * 32)
"""The ID that replaces the ID of an unknown lease owner. A holder with this ID is never alive."""


class HolderFile(Document, frozen=True, kw_only=True):
    """The document holders/<uuid>: a process that works on a batch. For a worker, `parent` is its coordinator."""

    format: int = HOLDER_FORMAT
    holder: HolderId
    role: Literal["coordinator", "worker"]
    pid: int
    host: HostBoot
    since_ns: InstantNs
    parent: HolderId | None = None


def decode_holder(data: bytes) -> HolderFile:
    """Decode a holder file, or a lease, which is a link to one. Raises DocumentError."""
    return decode_document(data, HolderFile, HOLDER_FORMAT)


def _unreadable_holder(holder: HolderId) -> HolderFile:
    """Return a replacement for a holder file that cannot be read.

    The replacement has the host of this process. So `LeaseReader.is_live` tests the lock of the file.
    """
    return HolderFile(holder=holder, role="worker", pid=0, host=this_host(), since_ns=0)


def new_holder_id() -> HolderId:
    """Return a new random ID."""
    return HolderId(uuid.uuid4().hex)


class HolderRegistration:
    """The registration of this process as a holder in one batch, valid until `close` or until the process dies."""

    def __init__(self, files: StoreFiles, batch_root: Path, about: HolderFile, *, is_durable: bool = False) -> None:
        """Register this process.

        If `is_durable` is set, the holder file and each lease are synced to disk before the lease is returned.
        """
        self._files = files
        self._is_durable = is_durable
        self._root = batch_root
        self.about = about
        self._path = batch_root / layout.HOLDERS / about.holder
        self._leases = batch_root / layout.LEASES
        self._lease_source = self._path
        self._lock = self._register_holder()

    @property
    def id(self) -> HolderId:
        """The ID of the holder."""
        return self.about.holder

    def _register_holder(self) -> FileLock:
        """Lock the holder file, link it into `holders/`, and return the lock.

        Until this process has locked the file, a sweeper may take the file for an orphan. Then the sweeper holds the
        lock, or has removed the file. In both cases, try again with a new file.
        """
        hidden = self._path.with_name(f".{self.id}.tmp")
        for _ in range(REGISTRATION_ATTEMPTS_MAX):
            try:
                self._write_holder_file(hidden)
                lock = self._files.try_lock(hidden, create=False)
            except FileNotFoundError:
                continue
            if lock is None:
                continue
            is_created = False
            try:
                is_created = self._files.create_exclusive(hidden, self._path)
            except FileNotFoundError:
                continue
            finally:
                if not is_created:
                    lock.release()
            if not is_created:
                break
            self._files.remove(hidden)
            return lock
        raise StoreUnwritable(f"cannot register this process with batch {self._root.name}: {self._path} already exists")

    def try_lease(self, shard: ShardId, start: int, epoch: int, *, may_be_forgotten: bool = False) -> bool:
        """Take the lease of a unit for an epoch. Return False if another process has taken this epoch.

        In analyses, leases only avoid duplicate work. A lease is a hard link to the holder file, so its inode
        identifies the holder. File systems limit the number of links to a file (ext4: 65,000). If this limit is
        reached, or the holder file was deleted, write a copy of the holder file, and link further leases to the copy.

        If `may_be_forgotten` is set, the lease is not synced and may be missing after a power loss, even if this holder
        is durable.
        """
        name = layout.lease_name(shard, start, epoch)
        return self._try_link(name) if may_be_forgotten else self._try_acquire(name)

    def try_lease_batch(self, epoch: int) -> bool:
        """Take the coordinator lease of a work batch, which covers the whole batch, for an epoch.

        Return False if another process has taken this epoch.
        """
        return self._try_acquire(layout.coordinator_lease_name(epoch))

    def sync_leases(self) -> None:
        """Sync the directory of leases. On return every lease that was taken is on disk."""
        self._files.sync_directory(self._leases)

    def _try_acquire(self, name: str) -> bool:
        is_created = self._try_link(name)
        if is_created and self._is_durable:
            self.sync_leases()
        return is_created

    def _try_link(self, name: str) -> bool:
        path = f"{self._leases}/{name}"
        try:
            return self._files.create_exclusive(self._lease_source, path)
        except OSError as error:
            if error.errno not in (errno.EMLINK, errno.ENOENT):
                raise
        self._lease_source = self._path.with_name(f".{self.id}.{uuid.uuid4().hex}.tmp")
        self._write_holder_file(self._lease_source)
        return self._files.create_exclusive(self._lease_source, path)

    def _write_holder_file(self, path: Path) -> None:
        (self._files.write_atomic if self._is_durable else self._files.write_volatile)(
            path, encode_document(self.about)
        )

    def close(self) -> None:
        """Release every lease by releasing the lock.

        The holder file stays, so that readers can identify the owners of old leases.
        """
        self._lock.release()


class UnitLease(msgspec.Struct, frozen=True, kw_only=True):
    """The lease of a unit with the highest epoch. A lower epoch belongs to an earlier owner."""

    shard: ShardId
    start: int
    epoch: int
    holder: HolderFile
    is_live: bool


class LeaseReader:
    """A reader of the holders and leases of a batch."""

    def __init__(self, files: StoreFiles, batch_root: Path, *, take_over: bool = False) -> None:
        """Open the reader. If `take_over` is set, leases of holders on other hosts count as expired."""
        self._files = files
        self._root = batch_root
        self._holders = f"{batch_root}/{layout.HOLDERS}"
        self._take_over = take_over
        self._by_inode: dict[int, HolderFile] = {}

    def read_holders(self) -> list[tuple[HolderFile, bool]]:
        """Return every holder that was ever registered, and whether it is alive."""
        holders: list[tuple[HolderFile, bool]] = []
        directory = self._root / layout.HOLDERS
        with self._files.keeping_open(directory):
            for name, inode in self._files.listing(directory).items():
                if layout.HOLDER_PATTERN.match(name):
                    holder = self._read_holder_file(f"{self._holders}/{name}")
                    if holder is None or holder.holder != name:
                        holder = _unreadable_holder(HolderId(name))
                    self._by_inode[inode] = holder
                    holders.append((holder, self.is_live(holder)))
        return holders

    def lease_names(self) -> dict[str, int]:
        """List `leases/` now. Return each name with its inode."""
        return self._files.listing(self._root / layout.LEASES)

    def read_leases(self, listed: Mapping[str, int] | None = None) -> dict[tuple[ShardId, int], UnitLease]:
        """Return the lease with the highest epoch of every unit, by shard and first item of the unit.

        The names of the leases are taken from `listed` (name to inode), or from a new listing.
        """
        highest: dict[tuple[ShardId, int], tuple[int, int, str]] = {}
        for name, inode in (self.lease_names() if listed is None else listed).items():
            parsed = layout.parse_lease_name(name)
            if parsed is None:
                continue
            shard, start, epoch = parsed
            if (known := highest.get((shard, start))) is None or epoch > known[0]:
                highest[shard, start] = (epoch, inode, name)
        live: dict[HolderId, bool] = {}
        leases: dict[tuple[ShardId, int], UnitLease] = {}
        for (shard, start), (epoch, inode, name) in highest.items():
            holder = self._lease_owner(inode, name)
            if holder.holder not in live:
                live[holder.holder] = self.is_live(holder) and (is_this_machine(holder.host) or not self._take_over)
            leases[shard, start] = UnitLease(
                shard=shard, start=start, epoch=epoch, holder=holder, is_live=live[holder.holder]
            )
        return leases

    def read_leader(self, listed: Mapping[str, int] | None = None) -> tuple[int, HolderFile | None]:
        """Return the highest epoch of the coordinator lease of a work batch.

        Also return the lease's holder if it is alive, otherwise None.

        The epoch is 0 if the batch has no coordinator lease. Names are taken from `listed` (name to inode), or from a
        new listing.
        """
        highest = (0, 0, "")
        for name, inode in (self.lease_names() if listed is None else listed).items():
            epoch = layout.parse_coordinator_lease_name(name)
            if epoch is not None:
                highest = max(highest, (epoch, inode, name))
        epoch, inode, name = highest
        if not epoch:
            return 0, None
        holder = self._lease_owner(inode, name)
        is_live = self.is_live(holder) and (is_this_machine(holder.host) or not self._take_over)
        return epoch, holder if is_live else None

    def is_live(self, holder: HolderFile) -> bool:
        """Return whether a holder may still be alive.

        A holder on another host counts as alive, because its flock is not visible on this one.
        """
        if is_this_machine(holder.host):
            try:
                return self._files.is_locked(f"{self._holders}/{holder.holder}")
            except UnsupportedEntry:  # A file of another type was not created by codebatch, so no holder locks it.
                return False
        return holder.host.name != this_host().name

    def _lease_owner(self, inode: int, lease: str) -> HolderFile:
        """Return the owner of a lease. The lease's bytes identify the owner or, if they are damaged, the lease's inode.

        If neither identifies an owner, return a replacement that is never alive.
        """
        if inode not in self._by_inode:
            holder = self._read_holder_file(self._root / layout.LEASES / lease)
            if holder is None:
                self.read_holders()
            self._by_inode.setdefault(inode, holder or _unreadable_holder(UNKNOWN_HOLDER))
        return self._by_inode[inode]

    def _read_holder_file(self, path: Path | str) -> HolderFile | None:
        try:
            holder = decode_holder(read_document_bytes(self._files, path))
        except (FileNotFoundError, DocumentError, UnsupportedEntry):
            return None
        return holder if layout.HOLDER_PATTERN.match(holder.holder) else None


def has_live_holder(batch: BatchDir) -> bool:
    """Return whether any holder of a batch may be alive."""
    return any(is_live for _, is_live in LeaseReader(batch.files, batch.root).read_holders())
