"""Settings of the whole suite: marks of slow tests, the number of processes, and the place of temporary files.

The fast loop, `-m "not slow"`, omits all tests of folders whose tests start processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from codebatch.operations.history.ci_services import CI_SERVICES
from codebatch.system.host import usable_cores
from codebatch.system.processes.memory import available_memory
from tests.support.resources import left_open, open_descriptors

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Otherwise each process that a test starts would compile all modules of codebatch again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A CI service that runs the tests would otherwise choose bases, and keep fewer batches.
for _service in CI_SERVICES:
    for _name in (*_service.markers, *_service.target_branch, *_service.target_commit, *_service.base, "CI"):
        os.environ.pop(_name, None)

_PROCESS_FOLDERS = frozenset({"bad_input", "cli", "commands", "execution", "faults", "oracles", "proof"})
_MEMORY_FILES = "/dev/shm"
_MEMORY_BYTES_MIN = 8 << 30
"""Free memory that temporary files in memory require. The whole suite uses about half of it."""
_REMOVE_AT_END_OF_INPUT = 'cat && rm -rf "$1" || { sleep 1; rm -rf "$1"; }'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of whole folders as slow."""
    for item in items:
        if item.path.parent.name in _PROCESS_FOLDERS:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _no_descriptor_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves file descriptors open. Those of fixtures with a wider scope are opened before it.

    Folders whose tests start processes are excepted: some run workers in this process, and workers close their files
    only when they end. Executors of other projects close their sockets late, too.
    """
    before = open_descriptors()
    yield
    folders = Path(os.path.relpath(request.path, Path(__file__).parent)).parts
    assert not {*_PROCESS_FOLDERS, "engines"}.isdisjoint(folders) or left_open(before) == []


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return the number of processes for `-n auto`: half as many more than cores, because tests often wait."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else usable_cores() * 3 // 2


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put the temporary files of a run with several processes into memory: they are many, and often synced.

    Not if TMPDIR or `--basetemp` names a place, or memory is short. The files are removed when pytest ends, however it
    ends: the shell that removes them waits for the end of its input.
    """
    is_named = "TMPDIR" in os.environ or config.option.basetemp is not None
    if is_named or not getattr(config.option, "numprocesses", None) or not _has_room(_MEMORY_FILES):
        return
    directory = tempfile.mkdtemp(prefix="tests-", dir=_MEMORY_FILES)
    os.chmod(directory, 0o755)  # Some tests use processes of another user.
    os.environ["TMPDIR"] = tempfile.tempdir = directory
    config.option.basetemp = Path(directory, "pytest")
    command = ["sh", "-c", _REMOVE_AT_END_OF_INPUT, "sh", directory]
    remover = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    config.add_cleanup(lambda: remover.communicate() and None)


def _has_room(directory: str) -> bool:
    """Return whether temporary files may be in a directory of a file system in memory, programs included."""
    try:
        is_executable = not os.statvfs(directory).f_flag & os.ST_NOEXEC
        return is_executable and min(shutil.disk_usage(directory).free, available_memory()) > _MEMORY_BYTES_MIN
    except OSError:
        return False
