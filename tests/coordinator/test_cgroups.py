"""Limits of control groups of both versions, from fake files of /proc and of mounted hierarchies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from codebatch.system.cgroups import core_limit, memory_left
from tests.support.command_line import CommandLine, write

GIB = 1 << 30
V1_CPU = "cgroup rw,cpu,cpuacct"
V1_MEMORY = "cgroup rw,memory"
V2 = "cgroup2 rw"


def _process(directory: Path, memberships: list[str], mounts: list[tuple[str, str, str]]) -> Path:
    """Return a fake directory of a process. A mount is (root, directory below `directory`, type and options)."""
    lines = ["22 1 0:21 / /proc rw shared:5 - proc proc rw"]
    for root, place, kind in mounts:
        name, options = kind.split()
        shown = str(directory / place).replace(" ", r"\040")
        lines.append(f"31 22 0:28 {root} {shown} rw,relatime shared:9 - {name} {name} {options}")
    write(directory / "self" / "cgroup", "".join(f"{line}\n" for line in memberships))
    write(directory / "self" / "mountinfo", "\n".join(lines) + "\n")
    return directory / "self"


def _write_groups(directory: Path, groups: dict[str, str]) -> None:
    """Write files of groups: each name is a path, each value the content."""
    for path, content in groups.items():
        write(directory / path, f"{content}\n")


def _quotas(**thousands: int) -> dict[str, str]:
    """Return the files of groups of version 1 with a quota in thousandths of a period. `__` in a name is a slash."""
    return {
        f"{name.replace('__', '/')}/cpu.cfs_{kind}_us": str(value)
        for name, quota in thousands.items()
        for kind, value in (("quota", quota), ("period", 1000))
    }


DOCKER = [("/docker/1", "cpu", V1_CPU)]
WHOLE = [("/", "cpu", V1_CPU)]
UNIFIED = [("/", "v2", V2)]
CPU_CASES = {
    "no limit, version 1": (["4:cpu,cpuacct:/a"], WHOLE, _quotas(cpu__a=-1), None),
    "half a core, version 1": (["4:cpu,cpuacct:/a"], WHOLE, _quotas(cpu__a=500), 1),
    "a group above, version 1": (["4:cpu,cpuacct:/a/b/c"], WHOLE, _quotas(cpu__a__b__c=-1, cpu__a=2500), 3),
    "a group beside does not count": (["4:cpu,cpuacct:/a"], WHOLE, _quotas(cpu__b=1000), None),
    "the mount shows only the group": (["4:cpu,cpuacct:/docker/1"], DOCKER, _quotas(cpu=2000), 2),
    "a group below that of the mount": (["4:cpu,cpuacct:/docker/1/x"], DOCKER, _quotas(cpu__x=2000), 2),
    "a name that begins alike": (["4:cpu,cpuacct:/docker/12"], DOCKER, _quotas(cpu=2000, cpu__2=1000), 2),
    "a namespace": (["4:cpu,cpuacct:/"], DOCKER, _quotas(cpu=2000), 2),
    "outside the namespace": (["4:cpu,cpuacct:/../x"], WHOLE, _quotas(cpu=2000, x=1000), 2),
    "version 2": (["0::/a/b"], UNIFIED, {"v2/a/b/cpu.max": "max 100000", "v2/a/cpu.max": "150000 100000"}, 2),
    "no limit, version 2": (["0::/a/b"], UNIFIED, {"v2/a/b/cpu.max": "max 100000"}, None),
    "both, limit of version 1": (["4:cpu,cpuacct:/a", "0::/a"], WHOLE + UNIFIED, _quotas(cpu__a=1000), 1),
    "both, limit of version 2": (["4:cpu:/a", "0::/a"], WHOLE + UNIFIED, {"v2/a/cpu.max": "100000 100000"}, 1),
    "another line is the last": (["0::/", "1:cpu:/a", "2:name=systemd:/"], WHOLE, _quotas(cpu__a=1000), 1),
    "a colon and a space in names": (["0::/a:b/c d"], [("/", "v 2", V2)], {"v 2/a:b/c d/cpu.max": "100000 100000"}, 1),
    "unreadable numbers": (["0::/a"], UNIFIED, {"v2/a/cpu.max": "many", "v2/cpu.max": "100000 0"}, None),
    "not mounted": (["0::/a", "4:cpu:/a"], [], {}, None),
}


@pytest.mark.parametrize(("memberships", "mounts", "groups", "cores"), CPU_CASES.values(), ids=CPU_CASES)
def test_lowest_core_limit_of_the_group_and_those_above_counts(
    tmp_path: Path,
    memberships: list[str],
    mounts: list[tuple[str, str, str]],
    groups: dict[str, str],
    cores: int | None,
) -> None:
    _write_groups(tmp_path, groups)
    assert core_limit(_process(tmp_path, memberships, mounts)) == cores


def _memory(group: str, limit: int | str, used: int, dropped: int = 0) -> dict[str, str]:
    """Return the files of a group, of version 2 if its path begins with v2."""
    is_v2 = group.startswith("v2")
    names = ("memory.max", "memory.current") if is_v2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    statistics = f"anon 5\ninactive_file {dropped}" if is_v2 else f"inactive_file 7\ntotal_inactive_file {dropped}"
    files = {names[0]: str(limit), names[1]: str(used), "memory.stat": statistics}
    return {f"{group}/{name}": content for name, content in files.items()}


MEMORY = [("/", "m", V1_MEMORY)]
MEMORY_CASES = {
    "version 1": (["9:memory:/a"], MEMORY, _memory("m/a", 3 * GIB, GIB), 2 * GIB),
    "version 1, a group above": (
        ["9:memory:/a/b"],
        MEMORY,
        {**_memory("m/a/b", (1 << 63) - 4096, GIB), **_memory("m/a", 4 * GIB, 3 * GIB, 2 * GIB)},
        3 * GIB,
    ),
    "version 2, a group above": (
        ["0::/a/b"],
        UNIFIED,
        {**_memory("v2/a/b", "max", GIB), **_memory("v2/a", 2 * GIB, GIB, GIB // 2)},
        GIB + GIB // 2,
    ),
    "more is used than the limit": (["0::/a"], UNIFIED, _memory("v2/a", GIB, 2 * GIB), 0),
    "the top has no limit": (["0::/a"], UNIFIED, {**_memory("v2/a", 9, 2), "v2/memory.current": "1"}, 7),
    "no limit": (["0::/a"], UNIFIED, _memory("v2/a", "max", 5), None),
}


@pytest.mark.parametrize(("memberships", "mounts", "groups", "left"), MEMORY_CASES.values(), ids=MEMORY_CASES)
def test_lowest_memory_of_the_group_and_those_above_counts(
    tmp_path: Path, memberships: list[str], mounts: list[tuple[str, str, str]], groups: dict[str, str], left: int | None
) -> None:
    _write_groups(tmp_path, groups)
    assert memory_left(_process(tmp_path, memberships, mounts)) == left


def test_without_proc_there_is_no_limit(tmp_path: Path) -> None:
    assert (core_limit(tmp_path), memory_left(tmp_path)) == (None, None)


@pytest.fixture
def half_a_core() -> Iterator[Path]:
    """A group of the machine with half a core. Skipped if this process may not create one."""
    group = Path("/sys/fs/cgroup/cpu", f"codebatch-test-{os.getpid()}")
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("50000")
    except OSError:
        pytest.skip("control groups of version 1 are not mounted, or may not be created")
    yield group
    with suppress(OSError):
        group.rmdir()


@pytest.mark.slow
def test_limits_of_a_real_group_are_the_default_jobs(half_a_core: Path, tmp_path: Path) -> None:
    line = CommandLine(tmp_path, prefix=("sh", "-c", f'echo $$ > {half_a_core}/cgroup.procs && exec "$@"', "sh"))
    assert line("config", "show", "--json").json["jobs"] == {"value": 1, "origin": "usable cores"}
