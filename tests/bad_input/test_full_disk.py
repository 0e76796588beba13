"""A disk that fills up at any write: the run exits with 4, and a later run completes the store."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, make_many

PAGE_BYTES = 4096
RUNS_MAX = 100


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A separate file system in memory with few pages. `resize` changes their number."""
    if shutil.which("mount") is None:
        pytest.skip("mount(8) is not installed")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={64 * PAGE_BYTES}", "codebatch-test", disk],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def resize(disk: Path, pages: int) -> None:
    """Change the size of a disk. If the disk uses more than this, it keeps its size."""
    subprocess.run(["mount", "-o", f"remount,size={pages * PAGE_BYTES}", disk], capture_output=True, check=True)


def used_pages(disk: Path) -> int:
    about = os.statvfs(disk)
    return (about.f_blocks - about.f_bfree) * about.f_frsize // PAGE_BYTES


def test_full_disk_ends_each_run_with_4_and_more_pages_make_progress(
    small_disk: Path, digest_of_many: str, tmp_path: Path
) -> None:
    """Each run may write one page more than the run before it. The last run completes what the others began."""
    codebatch = CommandLine(tmp_path)
    make_many(tmp_path / "many", 40)
    store = small_disk / "store"
    refusals: list[str] = []
    for pages in range(1, RUNS_MAX):
        resize(small_disk, used_pages(small_disk) + pages)
        ended = codebatch.ends("run", "many", "--store", store, "--json", "-q", "-j", "1")
        if ended.status == 0:
            assert ended.json["result_digest"] == digest_of_many
            break
        assert ended.status == 4, ended.notes
        assert ended.error["code"] == "store_unwritable", ended.notes
        assert "space" in ended.error["hint"]
        refusals.append(ended.error["message"])
    else:
        pytest.fail("never completed")
    assert len({message.rpartition("/")[0] for message in refusals}) > 1, "all writes were refused in the same place"
    assert codebatch("status", "--store", store, "--json").json["result_digest"] == digest_of_many


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 60, 3))
def test_full_disk_of_any_size_leaves_a_store_that_can_be_completed(
    small_disk: Path, digest_of_many: str, tmp_path: Path, start: int
) -> None:
    codebatch = CommandLine(tmp_path)
    make_many(tmp_path / "many", 40)
    resize(small_disk, used_pages(small_disk) + 1 + start)
    ended = codebatch.ends("run", "many", "--store", small_disk / "store", "--json", "-q")
    if ended.status != 0:
        assert ended.error["code"] == "store_unwritable", ended.notes
    resize(small_disk, 4096)
    again = codebatch("run", "many", "--store", small_disk / "store", "--json").json
    assert (again["status"], again["result_digest"]) == ("COMPLETED", digest_of_many)


def test_full_disk_behind_standard_output_is_reported(codebatch: CommandLine) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    ended = codebatch.shell("codebatch pipelines > /dev/full", status=4)
    assert ended.notes.startswith("error: ")


def test_work_run_reports_a_full_disk_and_continues_after_space_is_freed(small_disk: Path, tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path)
    fills = f"dd if=/dev/zero of={small_disk}/big bs=4096 2> /dev/null; true"
    (tmp_path / "work.toml").write_text(
        f'[tasks.fills]\nrun = "{fills}"\n[tasks.next]\nrun = "true"\nneeds = ["fills"]\n'
    )
    process = codebatch.start("work", "run", "-f", "work.toml", "--store", small_disk / "store")
    assert process.stderr is not None
    for line in process.stderr:
        if b"free some space" in line:
            break
    assert b"No space left on device: the outcome of a task cannot be written; free some space within 60 s" in line
    resize(small_disk, 256)
    assert "COMPLETED: 2 of 2" in codebatch.finish(process).text
