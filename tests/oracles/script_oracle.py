"""JavaScript and TypeScript compared with the TypeScript compiler (tsc.js)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare
from tests.support import corpora

LANGUAGES = ("javascript", "typescript", "tsx")


def agree(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Compare symbols with the compiler's declarations."""
    sources = list(files)
    answers = _ask(root, sources)
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    for file in sources:
        path = file.path.decode()
        answer = answers[path]
        if answer["errors"]:
            continue
        actual_facts.extend((s.symbol_type, path, s.line, s.qualified) for s in file_outline(file).symbols)
        expected_facts.extend((kind, path, line, name) for kind, line, name in answer["definitions"])
    return compare(actual_facts, expected_facts)


def errors_of_files(root: Path, paths: Iterable[str]) -> set[str]:
    """Return the paths below a directory that the compiler's parser rejects."""
    return {path for path, answer in _answers(root, paths).items() if answer["errors"]}


def _ask(root: Path, files: Iterable[SourceFile], *options: str) -> Mapping[str, dict[str, Any]]:
    return _answers(root, (file.path.decode() for file in files), *options)


def _answers(root: Path, paths: Iterable[str], *options: str) -> Mapping[str, dict[str, Any]]:
    library = corpora.npm("typescript", "5.6.3") / "lib" / "typescript.js"
    script = Path(__file__).with_name("tsc.js")
    names = "\n".join(str(root / path) for path in paths)
    done = subprocess.run(
        ["node", script, library, *options], input=names, check=True, capture_output=True, encoding="utf-8"
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(answer["path"]).relative_to(root).as_posix(): answer for answer in answers}
