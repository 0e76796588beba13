"""Duplicated lines as jscpd finds them: by tokens, without comments and white space (mode weak)."""

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
    """The code lines that stand elsewhere too. Where the two differ, all ten lines of all files are looked up.
    What is missing then is of blocks below BYTES_MIN, which clones of theirs are not that go on in the midst of lines.

    Clones are held to our terms: whole code lines, at least ten of them, with as much in them as a block must have. A
    clone begins and ends in the midst of lines, which say then, on their own side, less than the whole line.
    """
    sources = list(files)
    said = [make_fingerprints(file) for file in sources]
    known = [
        FingerprintedFile(
            item=item, path=file.path, object=Digest(hashlib.sha256(file.content).hexdigest()), fingerprints=each
        )
        for item, (file, each) in enumerate(zip(sources, said, strict=True))
        if each is not None
    ]
    code = {file.path.decode(): code_lines(sources[file.item].utf8, file.fingerprints.comments) for file in known}
    ours = {
        (sources[item].path.decode(), number)
        for item, records in find_duplicates(known, lambda item: sources[item].utf8)
        for record in records
        if isinstance(record, Duplicate)
        for number in code[sources[item].path.decode()][1]
        if record.line <= number < record.end_line
    }
    theirs = {
        (path, number)
        for path, start, end in _clones(root)
        if path in code
        for number in _on_our_terms(*code[path], start, end)
    }
    repeated = _repeated(code)

    def explain(side: str, fact: Fact) -> str | None:
        if side == "missing":
            return None if fact[1:] in repeated else "finds tokens that are not on equal lines"
        return "misses ten equal lines" if fact[1:] in repeated else None

    return compare((("line", *line) for line in ours), (("line", *line) for line in theirs), explain)


def _repeated(code: Mapping[str, tuple[list[bytes], list[int]]]) -> set[tuple[str, int]]:
    """The lines that lie in ten code lines that are found twice, by looking up every ten of all files."""
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


def _on_our_terms(lines: Sequence[bytes], numbers: Sequence[int], start: int, end: int) -> list[int]:
    """The code lines that lie as a whole between two lines; none where they are too few, or too little."""
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
