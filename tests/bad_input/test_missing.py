"""Missing directories: copies by git, zip and object stores omit empty ones, and users delete others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, copy_project, make_many, make_project, set_apart, wait_until

SMALL_SHARDS = "[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n"
EMPTY_AT_FIRST = ("holders", "journal", "leases", "results", "outcomes", "outputs", "scratch")


def find_batch(codebatch: CommandLine) -> Path:
    (batch,) = codebatch.directory.glob(".codebatch/batches/batch-*")
    return batch


def unfinish(batch: Path) -> None:
    """Leave a batch as a killed coordinator does: without merged outputs, and with an open task."""
    shutil.rmtree(batch / "outputs")
    (batch / "outputs").mkdir()
    for register in (*batch.glob("outcomes/*.lint.r1"), *batch.glob("outcomes/project-*")):
        register.unlink()


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project with a store, and the digest of its results. Each test uses a copy."""
    root = tmp_path_factory.mktemp("ran")
    make_project(root / "project")
    return root, str(CommandLine(root)("run", "project", "--json").json["result_digest"])


def _copied_command_line(root: Path) -> CommandLine:
    """Return the command line for a copied store.

    The environment names the store, because it is not trusted otherwise.
    """
    return CommandLine(root, {"CODEBATCH_STORE": str(root / ".codebatch")})


@pytest.fixture
def unfinished(finished_run: tuple[Path, str], tmp_path: Path) -> CommandLine:
    copy_project(finished_run[0], tmp_path)
    codebatch = _copied_command_line(tmp_path)
    unfinish(find_batch(codebatch))
    return codebatch


@pytest.mark.parametrize("missing", [*((name,) for name in EMPTY_AT_FIRST if name != "results"), EMPTY_AT_FIRST])
def test_unfinished_batch_continues_without_empty_directories(
    unfinished: CommandLine, finished_run: tuple[Path, str], missing: tuple[str, ...]
) -> None:
    for name in missing:
        shutil.rmtree(find_batch(unfinished) / name)
    unfinished("status")
    ended = unfinished("run", "--batch", "latest", "--json").json
    assert (ended["status"], ended["result_digest"]) == ("COMPLETED", finished_run[1])


def test_batch_with_missing_results_is_reported_and_can_be_rerun(
    unfinished: CommandLine, finished_run: tuple[Path, str]
) -> None:
    shutil.rmtree(find_batch(unfinished) / "results")
    error = unfinished("run", "project", "--json", status=4).error
    assert (error["code"], "--again" in error["hint"]) == ("store_corrupt", True)
    assert unfinished("run", "project", "--again", "--json").json["result_digest"] == finished_run[1]


def test_new_batch_copied_without_empty_directories_runs(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    codebatch("snapshot", "project")
    codebatch("batch", "init")
    for path in sorted(codebatch.directory.glob(".codebatch/**/"), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
    assert codebatch("run", "--batch", "latest", "--json").json["status"] == "COMPLETED"


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("holders", "outcomes") else pytest.param(name, marks=pytest.mark.slow)
        for name in EMPTY_AT_FIRST
    ],
)
def test_directory_removed_during_a_run_is_recreated_or_reported(
    codebatch: CommandLine, digest_of_many: str, name: str
) -> None:
    make_many(codebatch.directory / "many", 40)
    set_apart(codebatch, "many")
    (codebatch.directory / "codebatch.toml").write_text(SMALL_SHARDS, encoding="utf-8")
    process = codebatch.start("run", "many", "-j", "2", "--json")
    wait_until(
        lambda: (
            len([*codebatch.directory.glob(".codebatch/batches/batch-*/outcomes/*.r1")]) > 3
            or process.poll() is not None
        ),
        "some outcomes are published",
    )
    shutil.rmtree(find_batch(codebatch) / name, ignore_errors=True)
    stdout, stderr = process.communicate()
    is_lossy = name in ("results", "outcomes")
    assert process.returncode in ((0, 4) if is_lossy else (0,)), stderr
    assert b"store_corrupt" in stderr if process.returncode else digest_of_many.encode() in stdout
    arguments = ("run", "many", "--json", *(["--again"] if name == "results" else []))
    assert codebatch(*arguments).json["result_digest"] == digest_of_many


def test_unreadable_input_is_no_failure_of_a_project_task(
    unfinished: CommandLine, finished_run: tuple[Path, str]
) -> None:
    batch = find_batch(unfinished)
    segment = max(batch.glob("results/*.seg"), key=lambda path: path.stat().st_size)
    sound = segment.read_bytes()
    statuses = set()
    for place in range(8, len(sound), len(sound) // 3):
        segment.write_bytes(sound[:place] + bytes([sound[place] ^ 0x55]) + sound[place + 1 :])
        copy_project(unfinished.directory, unfinished.directory / "copy")
        copied = _copied_command_line(unfinished.directory / "copy")
        ended = copied.ends("run", "--batch", "latest", "--json")
        assert ended.status in (0, 4)
        assert finished_run[1].encode() in ended.stdout or ended.status == 4
        statuses.add(ended.status)
        shutil.rmtree(copied.directory)
    assert 4 in statuses
