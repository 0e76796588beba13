"""Command line of the benchmarks.

`python -m bench` measures scenarios. `python -m bench profile DIR` profiles a worker.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.catalogue import SCENARIOS
from bench.histories import History
from bench.machine import this_machine
from bench.markdown import markdown
from bench.measuring import BrokenSideError, harness_peak_bytes
from bench.rows import Report, Row
from bench.setting import REPOSITORY, Setting
from bench.trees import corpora

RUNS_MIN = 3


def main(arguments: Sequence[str]) -> int:
    """Run the requested scenarios. Print the table to standard output and progress to standard error."""
    if arguments[:1] == ["profile"]:
        command = [sys.executable, "-m", "bench.probes.profile", *arguments[1:]]
        return subprocess.run(command, cwd=REPOSITORY, check=False).returncode
    options = _parser().parse_args(arguments)
    if options.list:
        for name, scenario in SCENARIOS.items():
            print(f"{name:15} {(scenario.__doc__ or '').strip().splitlines()[0]}")
        return 0
    unknown = sorted(set(options.scenarios) - SCENARIOS.keys())
    if unknown:
        print(f"error: no scenario {', '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    report = _measure(options)
    print(markdown(report))
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    return 0


def _measure(options: argparse.Namespace) -> Report:
    machine = this_machine()
    chosen = corpora(options.corpus, [_sdist(text) for text in options.sdist])
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="codebatch-bench-", dir=options.scratch) as scratch:
        setting = Setting(
            scratch=Path(scratch).resolve(),
            runs=max(options.runs, RUNS_MIN),
            corpora=chosen,
            old_codebatch=options.old_codebatch,
            histories=[_history(text) for text in options.history],
            jobs=options.jobs,
        )
        for name in options.scenarios or SCENARIOS:
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                rows.extend(SCENARIOS[name](setting))
            except subprocess.CalledProcessError as error:
                raise SystemExit(f"{name}: {error}\n{(error.stderr or b'').decode(errors='replace')}") from error
            except BrokenSideError as error:
                raise SystemExit(f"{name}: {error}") from error
    print(f"peaks below {harness_peak_bytes() / 1e6:.0f} MB are the harness's own", file=sys.stderr)
    return Report(machine=machine, runs=setting.runs, rows=rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="all where none is named")
    parser.add_argument("--list", action="store_true", help="say which scenarios there are")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help=f"measured turns, at least {RUNS_MIN}")
    parser.add_argument(
        "--corpus", "--tree", type=Path, action="append", default=[], metavar="DIR", help="a tree to measure on"
    )
    parser.add_argument(
        "--jobs", type=_jobs, default=(1, 2, 4, 8, 16), metavar="N,N,…", help="numbers of workers of many-cores"
    )
    parser.add_argument("--sdist", action="append", default=[], metavar="NAME==VERSION", help="a tree from PyPI")
    parser.add_argument(
        "--scratch", type=Path, metavar="DIR", help="where to work; its file system is what is measured"
    )
    parser.add_argument("--old-codebatch", type=Path, metavar="VENV", help="where CodeBatch 1.0.2 is installed")
    parser.add_argument(
        "--history", action="append", default=[], metavar="GIT_DIR:OLD..NEW", help="two commits whose findings to match"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    return parser


def _sdist(text: str) -> tuple[str, str]:
    name, separator, version = text.partition("==")
    if not separator:
        raise SystemExit(f"error: --sdist wants NAME==VERSION, not {text}")
    return name, version


def _jobs(text: str) -> tuple[int, ...]:
    counts = sorted({int(word) for word in text.split(",")})
    if counts[0] < 1:
        raise ValueError(text)
    return tuple(counts)


def _history(text: str) -> History:
    path, _, commits = text.rpartition(":")
    old, separator, new = commits.partition("..")
    if not (path and separator):
        raise SystemExit(f"error: --history wants GIT_DIR:OLD..NEW, not {text}")
    return History(repository=Path(path).resolve(), old=old, new=new)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
