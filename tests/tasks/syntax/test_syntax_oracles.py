"""Tests of parse against other parsers: real files, unchanged and with one token removed, doubled or replaced.

Both must agree whether a file is wrong, and on the line of its first error. A few cases differ for good reasons, stated
where they are allowed. More differences fail the test.
"""

from __future__ import annotations

import json
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codebatch.model.record import Diagnostic, File
from codebatch_workers.api.protocols import BatchedFileTask
from tests.support import corpora
from tests.support.source_files import complete, created, source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOKEN = re.compile(r"\w+|[^\w\s]")
MUTANTS = 3


def python_error(text: str) -> int | None:
    """Return the line of the compiler's error, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "x", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno or 0
    return None


def json_error(text: str) -> int | None:
    """Return the line of the error of Python's JSON parser, or None."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno
    return None


def toml_error(text: str) -> int | None:
    """Return the line of the error of Python's TOML parser, or None. A duplicate key is not a syntax error."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        return None if "verwrite" in str(error) or "twice" in str(error) else int(line[1]) if line else 0
    return None


def mutants(root: Path, suffix: str, count: int) -> Iterator[str]:
    """Yield files that people wrote, each unchanged and then with one token changed."""
    generator = random.Random(7)
    paths = [path for path in sorted(root.rglob(f"*{suffix}")) if 200 < path.stat().st_size < 20_000]
    for path in generator.sample(paths, min(count, len(paths))):
        text = path.read_bytes().decode("utf-8", "replace")
        if "\r" in text or "\f" in text or "\ufffd" in text:
            continue
        yield text
        tokens = [match.span() for match in TOKEN.finditer(text)]
        for _ in range(MUTANTS):
            (start, end), (other, other_end) = generator.choice(tokens), generator.choice(tokens)
            token = generator.choice(["", f"{text[start:end]} {text[start:end]}", text[other:other_end]])
            yield text[:start] + token + text[end:]


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "suffix", "oracle", "files", "differ_max"),
    [
        # Syntax that this interpreter does not know yet, such as nested quotes in f-strings before 3.12.
        (corpora.DJANGO, ".py", python_error, 300, 6),
        # Comments, which our JSON may contain.
        (corpora.DJANGO, ".json", json_error, 60, 1),
        # Files that are well-formed but invalid, such as a month 13.
        (("cryptography", "41.0.7"), ".toml", toml_error, 60, 1),
    ],
)
def test_syntax_errors_match_other_parsers(
    corpus: tuple[str, str],
    suffix: str,
    oracle: Callable[[str], int | None],
    files: int,
    differ_max: int,
    tmp_path: Path,
) -> None:
    texts = list(mutants(corpora.sdist(*corpus), suffix, files))
    task = created("parse", tmp_path)
    assert isinstance(task, BatchedFileTask)
    sources = [source(f"d{number}/a{suffix}", text) for number, text in enumerate(texts)]
    results = complete(task, sources, [task.run_file(file) for file in sources])
    differ, lines, counts = [], Counter[bool](), Counter[bool]()
    for text, (record, *diagnostics) in zip(texts, results, strict=True):
        assert isinstance(record, File)
        errors = [file for file in diagnostics if isinstance(file, Diagnostic) and file.code == "syntax-error"]
        line = oracle(text)
        if (line is None) == bool(errors):
            differ.append((line, errors[:1], text[:200]))
        elif errors and line is not None:
            # For a bracket that is never closed, others report where it opens, or the end of the file.
            lines[abs(errors[0].line - line) <= 1] += 1
            counts[len(errors) == 1] += 1
    assert len(differ) <= differ_max, differ
    assert lines.total() > len(texts) // 6
    assert lines[True] >= 0.85 * lines.total()
    assert counts[True] >= 0.85 * counts.total()
