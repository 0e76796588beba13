"""Make files of a language and run every task on them: `python -m bench.probes.fuzz LANGUAGE SECONDS SCRATCH [DIR]`.

Inputs are random words, brackets, and real files below DIR with pieces removed, doubled and moved. Without DIR, one
line of the language replaces the real files. The current input is in SCRATCH/at-hand. An input that takes more than
HANG_SECONDS of CPU ends this process with SIGPROF, a crash with its own signal, and an exception with status 1. The
probe prints the number of inputs. Equal seeds make equal inputs.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from codebatch.model.record import Record
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.syntax.language.languages import detect_language
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.syntax_tree import encode_tree
from codebatch_workers.tasks import analyze, lint, parse, symbols
from codebatch_workers.tasks.parse_config import ParseConfig

HANG_SECONDS = 10
_SEED = 20_240_229
_REAL_FILES_MAX = 200
_REAL_BYTES_MAX = 20_000
_WORDS = """
def class function struct enum impl use import from export default const let var type interface package func fn if for
while end do then begin module namespace using object trait protocol extension match switch case select create table
resource self this => -> :: . , ; : ( ) [ ] { } < > " ' ` # // /* */ -- <!-- --> <? ?> @ $ \\ | & % ! = == é 𐐀 1 0x 1e
heredoc <<EOF EOF --- ... - * + ~ ^ \t \r \x0c \0
"""
_PIECES = [*(word.encode() for word in _WORDS.split(" ")), b"\n", b"\n\n", b"    ", b"\t", b"\xff", b"\xef\xbb\xbf"]
_SEEDS = [
    b"x = f(1)\n",
    b"def f(a):\n    return [a, {b: c}]\n",
    b"class A { int f(x) { if (x) { y; } } }\n",
    b"# a\n\n- b: c\n",
]


def inputs(language: str, directory: Path | None) -> Iterator[bytes]:
    """Yield inputs without end."""
    generator = random.Random(f"{_SEED}{language}")
    seeds = _seeds(language, directory, generator) or _SEEDS
    while True:
        if generator.random() < 0.3:
            yield b" ".join(generator.choice(_PIECES) for _ in range(generator.randint(1, 400)))
        else:
            yield _mutated(bytearray(generator.choice(seeds)), seeds, generator)


def _seeds(language: str, directory: Path | None, generator: random.Random) -> list[bytes]:
    paths = sorted(directory.rglob("*")) if directory else []
    ours = [path for path in paths if path.is_file() and detect_language(bytes(path), b"") == language]
    small = [path for path in ours if path.stat().st_size <= _REAL_BYTES_MAX]
    return [path.read_bytes() for path in generator.sample(small, min(len(small), _REAL_FILES_MAX))]


def _mutated(data: bytearray, seeds: list[bytes], generator: random.Random) -> bytes:
    for _ in range(generator.randint(1, 8)):
        start = generator.randint(0, len(data))
        end = min(len(data), start + generator.randint(0, 60))
        piece = bytes(data[start:end])
        match generator.randint(0, 5):
            case 0:
                del data[start:end]
            case 1:
                data[start:start] = piece * generator.choice((1, 2, 500))
            case 2:
                data[start:start] = generator.choice(_PIECES)
            case 3:
                data[start:end] = generator.choice(seeds)[:2000]
            case 4:
                data[start:start] = generator.choice((b"(", b"[", b"{", b"<", b"if ", b"- ", b"> ")) * generator.choice(
                    (3, 2000)
                )
            case _:
                del data[start:]
    return bytes(data)


def check(file: SourceFile, scratch: Path) -> None:
    """Run every task's part that works on one file, and check that every reported position is in the file."""
    ours = parse.create(TaskEnvironment(config=ParseConfig(), scratch=scratch))
    records: list[Record] = ours.run_file(file)
    for task in (analyze, symbols):
        records += task.create(TaskEnvironment(config=task.NoConfig(), scratch=scratch)).run_file(file)
    records += lint.create(TaskEnvironment(config=LintConfig(on=("*",)), scratch=scratch)).run_file(file)
    if file.can_be_parsed:
        encode_tree(file)
    for record in records:
        line = getattr(record, "line", 0)
        if line > file.line_count + 1:
            raise AssertionError(f"{record} is behind the last line")


def fuzz(language: str, seconds: float, scratch: Path, directory: Path | None) -> int:
    """Return the number of inputs checked until the time was up."""
    count = 0
    until = time.monotonic() + seconds
    for content in inputs(language, directory):
        (scratch / "at-hand").write_bytes(content)
        signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
        contexts = {"attributes": f"language={language}".encode()}
        check(SourceFile(b"fuzz", content, executable=False, contexts=contexts), scratch)
        count += 1
        if time.monotonic() > until:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return count


if __name__ == "__main__":
    print(fuzz(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]) if len(sys.argv) > 4 else None))
