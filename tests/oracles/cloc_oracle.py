"""Lines with and without code, compared with cloc.

Blank lines within comments are comments to codebatch, which follows the rules of scc, and blank to cloc.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare
from tests.support import corpora
from tests.support.source_files import file_metrics


def agree(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Compare the number of lines of each file by kind.

    A disputed line counts on both sides, under the kind of each side.
    """
    metrics_by_path = {file.path.decode(): file_metrics(file) for file in files if not file.has_syntax_error}
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    for path, counted in _cloc_counts(root, metrics_by_path).items():
        for kind, names in (("code", ("code",)), ("none", ("comment", "blank"))):
            actual_facts.extend([(kind, path)] * sum(metrics_by_path[path][name] for name in names))
            expected_facts.extend([(kind, path)] * sum(counted[name] for name in names))
    return compare(actual_facts, expected_facts)


def _cloc_counts(root: Path, paths: Iterable[str]) -> dict[str, dict[str, int]]:
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
