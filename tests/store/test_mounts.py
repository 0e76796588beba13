"""Tests of the file system type of a store, as the kernel reports it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codebatch.system.files.mounts import file_system_kind_at, remote_file_system_kind

MOUNTS = b"""\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /home rw shared:7 - nfs4 server:/home rw,vers=4.2
31 30 0:26 / /home/me/disk rw - btrfs /dev/sdb rw
32 22 0:27 / /with\\040space rw - fuse.sshfs me@server:/ rw
33 22 0:28 / /over rw - tmpfs tmpfs rw
34 22 0:29 / /over rw - 9p host rw
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"/", "ext4"),
        (b"/homestead", "ext4"),
        (b"/home/me", "nfs4"),
        (b"/home", "nfs4"),
        (b"/home/me/disk/.codebatch", "btrfs"),
        (b"/with space/a", "fuse.sshfs"),
        (b"/over/a", "9p"),
    ],
)
def test_innermost_and_last_mount_determines_the_kind(path: bytes, kind: str) -> None:
    assert file_system_kind_at(MOUNTS, path) == kind


def test_mount_kind_is_none_without_mount_information() -> None:
    assert file_system_kind_at(b"", b"/home") is None


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_mount_kind_of_a_local_directory_is_known(tmp_path: Path) -> None:
    assert file_system_kind_at(Path("/proc/self/mountinfo").read_bytes(), bytes(tmp_path.resolve())) is not None
    assert remote_file_system_kind(Path("/proc")) is None
