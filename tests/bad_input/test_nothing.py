"""Trees without files or with only empty files, results without records, and a task that fails without files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.system.files.files import RealFiles
from tests.support.command_line import CommandLine, write, write_own_task
from tests.support.worker_processes import finished, open_latest

READING = {
    "status": 0, "summary": 0, "errors": 0, "top": 0, "graph": 0, "graph --cycles": 0, "references x": 2,
    "query outputs": 0, "query diagnostics": 0, "files": 0, "tasks": 0, "shards --task parse": 0, "batch list": 0,
    "snapshot list": 0, "run-shard --task parse --shard 0": 5, "resume": 0, "run --allow-empty": 0,
    "run --batch latest": 0,
    "inspect no.py": 2, "impact no.py": 2, "findings": 0, "findings --all": 0, "hotspots": 0, "hotspots --files": 0,
    "duplicates": 0, "def x": 2, "callers x": 2, "implementations x": 2, "outline no.py": 2,
    "find -l python --pattern f($X)": 0,
    "query symbols": 0, "query edges": 0, "query metrics": 0, "query stats": 0, "query failures": 0,
    "diff latest latest": 0, "regressions latest latest": 0, "check": 3, "check --allow-no-base": 0, "check latest": 3,
    "baseline create known": 0, "baseline update known": 0, "baseline show known": 0, "report -o page.html": 0,
    "export ctags -o tags": 0, "files --snapshot latest": 0,
    "snapshot show --files": 0, "index-build": 0, "index-build --verify": 0, "explain-miss": 0,
    "diagnose --full": 0, "store-stats": 0, "gc --dry-run": 0, "events": 0, "follow": 0,
}  # fmt: skip


GATES = (
    "check --baseline known", "regressions latest latest --exit-code", "export sarif -o a.sarif",
    "export gitlab -o a.json", "verify",
)  # fmt: skip
"""Commands that succeed only if the batch has files."""


def _nothing(tree: Path) -> None:
    tree.mkdir()


def _only_empty(tree: Path) -> None:
    write(tree / "__init__.py", "")
    write(tree / "a" / "empty", "")


def _only_symlinks(tree: Path) -> None:
    tree.mkdir()
    (tree / "link").symlink_to("nowhere")


@pytest.mark.parametrize("contents", [[b""], [b"", b""], [b"", b"x"]])
def test_empty_objects_are_stored(tmp_path: Path, contents: list[bytes]) -> None:
    objects = ObjectStore(RealFiles(), tmp_path / "objects")
    with PackWriter(objects) as writer:
        digests = [writer.add(content) for content in contents]
    again = ObjectStore(RealFiles(), tmp_path / "objects")
    assert [again.read(digest, len(content)) for digest, content in zip(digests, contents, strict=True)] == contents


def test_empty_file_may_be_the_only_change(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    codebatch("run", "tree")
    write(codebatch.directory / "tree" / "__init__.py", "")
    answer = codebatch("run", "tree", "--json").json
    assert (answer["status"], answer["files"]) == ("COMPLETED", 2)


@pytest.mark.parametrize(
    "make",
    [_nothing, pytest.param(_only_empty, marks=pytest.mark.slow), pytest.param(_only_symlinks, marks=pytest.mark.slow)],
)
def test_every_command_answers_for_an_empty_tree(codebatch: CommandLine, make: Callable[[Path], None]) -> None:
    make(codebatch.directory / "tree")
    answer = codebatch("run", "tree", "--allow-empty", "--json").json
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)
    for command, status in READING.items():
        codebatch(*command.split(), "--json", status=status)
        if not status and command != "baseline create known":
            ended = codebatch(*command.split())
            assert ended.text.strip() or ended.notes.strip(), f"{command} prints nothing"
    for command in GATES:
        codebatch(*command.split(), status=3 if make in (_nothing, _only_symlinks) else 0)
    again = codebatch("run", "tree", "--allow-empty", "--json").json
    assert (again["action"], again["result_digest"]) == ("up to date", answer["result_digest"])


def test_output_without_records_is_readable_by_tools(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.bin", bytes(range(256)))
    codebatch("run", "tree")
    one = finished(open_latest(codebatch.directory / ".codebatch"))
    outputs = sorted((one.batch.root / "outputs" / one.result_digest).glob("*/*.zst"))
    empty = [path for path in outputs if not zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())]
    assert empty, "every task has records"
    assert all(path.stat().st_size for path in outputs)
    if zstdcat := shutil.which("zstdcat"):
        subprocess.run([zstdcat, *empty], check=True, capture_output=True)


def test_failed_project_task_without_files_is_reported(codebatch: CommandLine) -> None:
    code = "import os\ndef task(project):\n    if os.path.exists({!r}): raise ValueError('no')\n    return []\n"
    trouble = write(codebatch.directory / "trouble", "")
    write_own_task(codebatch.directory, "layers", code.format(str(trouble)))
    (codebatch.directory / "tree").mkdir()
    failed = codebatch("run", "tree", "--allow-empty", "--json", status=3).json
    assert (failed["status"], failed["failures"]) == ("PARTIAL", 1)
    assert codebatch("status", "--json").json["status"] == "PARTIAL"
    (row,) = codebatch("errors", "--json").records
    assert (row["path"], row["task"], row["reason"]) == (".", "layers", "exception")
    assert "ValueError: no" in row["evidence"]
    again = codebatch("run", "tree", "--allow-empty", "--json", status=3).json
    assert again["action"] == "already ended"
    trouble.unlink()
    mended = codebatch("resume", "--json").json
    assert (mended["status"], mended["failures"]) == ("COMPLETED", 0)
    assert mended["result_digest"] != failed["result_digest"]
    assert codebatch("errors", "--json").records == []
