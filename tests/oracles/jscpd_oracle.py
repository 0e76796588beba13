"""Duplicated lines compared with jscpd: by tokens, without comments and white space (mode weak)."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from codebatch.model.digest import Digest
from codebatch.model.record import Duplicate
from codebatch_workers.duplicates.code_lines import code_lines
from codebatch_workers.duplicates.fingerprints import LINES_MIN, make_fingerprints
from codebatch_workers.duplicates.repeats import REPEATED_BYTES_MIN
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.duplicates import FingerprintedFile, find_duplicates
from tests.oracles.agreement import Agreement, Fact, compare
from tests.support import corpora

_FORMATS = "python,javascript,typescript,c,c-header"
_OPTIONS = ["--mode", "weak", "--min-tokens", "50", "--max-lines", "1000000", "--max-size", "100mb", "--absolute"]
Clone = tuple[str, int, int]


def agree(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Compare the code lines that occur elsewhere too.

    If the two differ, all windows of ten lines are looked up. Lines that codebatch then misses are in blocks below
    BYTES_MIN. The clones of jscpd are larger, because they continue inside further lines.

    Clones are reduced to codebatch's terms: whole code lines, at least ten of them, with the minimal size of a block. A
    clone begins and ends inside lines, so its first and last lines are left out.
    """
    sources = list(files)
    fingerprints_of_files = [make_fingerprints(file) for file in sources]
    known = [
        FingerprintedFile(
            item=item,
            path=file.path,
            object=Digest(hashlib.sha256(file.content).hexdigest()),
            fingerprints=fingerprints,
        )
        for item, (file, fingerprints) in enumerate(zip(sources, fingerprints_of_files, strict=True))
        if fingerprints is not None
    ]
    code = {file.path.decode(): code_lines(sources[file.item].utf8, file.fingerprints.comments) for file in known}
    actual_lines = {
        (sources[item].path.decode(), number)
        for item, records in find_duplicates(known, lambda item: sources[item].utf8)
        for record in records
        if isinstance(record, Duplicate)
        for number in code[sources[item].path.decode()][1]
        if record.line <= number < record.end_line
    }
    expected_lines = {
        (path, number)
        for path, start, end in _clones(root)
        if path in code
        for number in _whole_code_lines(*code[path], start, end)
    }
    repeated = _repeated_lines(code)

    def explain(side: str, fact: Fact) -> str | None:
        if side == "missing":
            return None if fact[1:] in repeated else "finds tokens that are not on equal lines"
        return "misses ten equal lines" if fact[1:] in repeated else None

    return compare((("line", *line) for line in actual_lines), (("line", *line) for line in expected_lines), explain)


def _repeated_lines(code: Mapping[str, tuple[list[bytes], list[int]]]) -> set[tuple[str, int]]:
    """Return the lines in windows of ten code lines that occur twice, by comparing all windows of all files."""
    windows: defaultdict[tuple[bytes, ...], list[tuple[str, int]]] = defaultdict(list)
    for path, (lines, _) in code.items():
        for start in range(len(lines) - LINES_MIN + 1):
            windows[tuple(lines[start : start + LINES_MIN])].append((path, start))
    return {
        (path, number)
        for places in windows.values()
        if len(places) > 1
        for path, start in places
        for number in code[path][1][start : start + LINES_MIN]
    }


def _whole_code_lines(lines: Sequence[bytes], numbers: Sequence[int], start: int, end: int) -> list[int]:
    """Return the code lines that are completely between two lines, or none if they are too few or too short."""
    within = [(line, number) for line, number in zip(lines, numbers, strict=True) if start < number < end]
    is_block = len(within) >= LINES_MIN and sum(len(line) for line, _ in within) >= REPEATED_BYTES_MIN
    return [number for _, number in within] if is_block else []


def _clones(root: Path) -> Iterator[Clone]:
    installed = corpora.npm_installed("jscpd-4.0.5-installed", "jscpd@4.0.5")
    script = installed / "node_modules" / "jscpd" / "bin" / "jscpd"
    with TemporaryDirectory() as report:
        options = [*_OPTIONS, "--min-lines", str(LINES_MIN), "--format", _FORMATS, "--reporters", "json"]
        command = ["node", str(script), *options, "--silent", "--output", report, str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        answer = json.loads(Path(report, "jscpd-report.json").read_bytes())
    for clone in answer["duplicates"]:
        for side in (clone["firstFile"], clone["secondFile"]):
            yield Path(side["name"]).relative_to(root).as_posix(), side["start"], side["end"]
