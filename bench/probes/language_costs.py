"""Measure the CPU time of the file tasks by path ending: `python -m bench.probes.language_costs TREE…`.

For each ending, a sample of the files of the trees is copied to a tree of its own and analysed by one worker. Each line
of the output has the ending, the number of files, their bytes, and the bytes per CPU second. From these numbers, the
weights in codebatch/coordinator/analysis/costs.py were chosen.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

SAMPLE_BYTES = 1_500_000
SAMPLE_FILES = 300
FILES_MIN = 20


class _FinishedLine(msgspec.Struct):
    """The members of a journal line that the probe reads."""

    event: str
    shard: str = ""
    cpu_seconds: float = 0.0


def find_samples(trees: list[Path]) -> Iterator[tuple[str, list[Path]]]:
    """Yield each frequent path ending with a random sample of its files. The same trees give the same samples."""
    by_ending: dict[str, list[Path]] = {}
    for tree in trees:
        for path in sorted(tree.rglob("*")):
            if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
                by_ending.setdefault(path.suffix.lower() or "none", []).append(path)
    for ending, paths in sorted(by_ending.items()):
        random.Random(0).shuffle(paths)
        sample: list[Path] = []
        size = 0
        for path in paths[:SAMPLE_FILES]:
            sample.append(path)
            size += path.stat().st_size
            if size >= SAMPLE_BYTES:
                break
        if len(paths) >= FILES_MIN:
            yield ending, sample


def measure(sample: list[Path]) -> float:
    """Return the CPU seconds of the file tasks for a sample."""
    with tempfile.TemporaryDirectory() as directory:
        tree, store = Path(directory) / "tree", Path(directory) / "store"
        tree.mkdir()
        for number, path in enumerate(sample):
            (tree / str(number)).mkdir()
            shutil.copyfile(path, tree / str(number) / path.name)
        command = [sys.executable, "-m", "codebatch", "run", str(tree), "--store", str(store), "-q", "-j", "1"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=tree)
        lines = (
            msgspec.json.decode(line, type=_FinishedLine)
            for path in store.glob("batches/*/journal/*")
            for line in path.read_bytes().splitlines()
        )
        return sum(
            line.cpu_seconds for line in lines if line.event == "finished" and not line.shard.startswith("project-")
        )


if __name__ == "__main__":
    for ending, sample in find_samples([Path(name) for name in sys.argv[1:]]):
        size, seconds = sum(path.stat().st_size for path in sample), measure(sample)
        print(ending, len(sample), size, round(seconds, 2), round(size / max(seconds, 0.01)), sep="\t", flush=True)
