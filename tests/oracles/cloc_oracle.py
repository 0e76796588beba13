"""Lines that hold code, and lines that hold none, as cloc counts them.

Blank lines within comments are comments to scc, whose rules are ours, and blank to cloc.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.analyze import file_metrics
from tests.oracles.agreement import Agreement, Fact, compare
from tests.support import corpora


def agree(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """The lines of each file by kind. A line in dispute counts on both sides, under the kind that each gives it."""
    said = {file.path.decode(): file_metrics(file) for file in files if not file.has_syntax_error}
    ours: list[Fact] = []
    theirs: list[Fact] = []
    for path, counted in _of_cloc(root, said).items():
        for kind, names in (("code", ("code",)), ("none", ("comment", "blank"))):
            ours.extend([(kind, path)] * sum(said[path][name] for name in names))
            theirs.extend([(kind, path)] * sum(counted[name] for name in names))
    return compare(ours, theirs)


def _of_cloc(root: Path, paths: Iterable[str]) -> dict[str, dict[str, int]]:
    script = corpora.npm("cloc", "2.11.0") / "lib" / "cloc"
    options = ["--by-file", "--json", "--quiet", "--skip-uniqueness", "--timeout", "0"]
    done = subprocess.run(
        ["perl", script, *options, "--list-file", "-"],
        cwd=root,
        input="\n".join(paths),
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    answer = json.loads(done.stdout)
    return {
        path.removeprefix("./"): {"code": each["code"], "comment": each["comment"], "blank": each["blank"]}
        for path, each in answer.items()
        if path not in ("header", "SUM")
    }
