"""JavaScript and TypeScript as the TypeScript compiler sees them (tsc.js)."""

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
    """Our symbols against the compiler's declarations."""
    sources = list(files)
    answers = _ask(root, sources)
    ours: list[Fact] = []
    theirs: list[Fact] = []
    for file in sources:
        path = file.path.decode()
        answer = answers[path]
        if answer["errors"]:
            continue
        ours.extend((s.symbol_type, path, s.line, s.qualified) for s in file_outline(file).symbols)
        theirs.extend((kind, path, line, name) for kind, line, name in answer["definitions"])
    return compare(ours, theirs)


def errors_of_files(root: Path, paths: Iterable[str]) -> set[str]:
    """Which of the paths below a directory the compiler's parser refuses."""
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
