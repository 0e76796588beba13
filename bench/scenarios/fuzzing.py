"""Fuzzing of every grammar for a minute: no input may crash a worker, hang it, or raise an exception."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measuring import environment
from bench.rows import Row, Target, figure_row
from bench.setting import Setting
from codebatch_workers.syntax.language.languages import every_language, has_grammar

SECONDS = 60
_NONE = Target(limit=0, source="issue 4")


def fuzz(setting: Setting) -> Iterator[Row]:
    """Run one process for each language. If it fails, keep its input in the system's temporary directory."""
    for language in filter(has_grammar, every_language()):
        scratch = setting.scratch / f"fuzz-{language}"
        scratch.mkdir()
        directory = [corpus.root for corpus in setting.corpora[:1]]
        side = setting.probe("fuzz", "fuzz", language, str(SECONDS), scratch, *directory)
        done = subprocess.run(
            list(side.command), cwd=side.cwd, env=environment(), capture_output=True, text=True, check=False
        )
        ended = "" if done.returncode == 0 else f"ended with {done.returncode}, input in {_kept(scratch)}"
        yield figure_row(
            "fuzz",
            "crashes, hangs and exceptions",
            f"{language}, {done.stdout.strip() or '?'} inputs in {SECONDS} s",
            [float(done.returncode != 0)],
            "",
            target=_NONE,
            note=ended,
        )


def _kept(scratch: Path) -> Path:
    """Copy the current input to a place that outlives the scratch directory."""
    return Path(shutil.copy(scratch / "at-hand", Path(tempfile.gettempdir()) / f"codebatch-{scratch.name}"))
