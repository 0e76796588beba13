"""Test of every grammar with random input for half a second. `python -m bench fuzz` gives each a minute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codebatch_workers.syntax.language.languages import every_language

ROOT = Path(__file__).parent.parent.parent
SECONDS = 0.5


@pytest.mark.slow
@pytest.mark.parametrize("language", every_language())
def test_no_input_crashes_hangs_or_raises(language: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.probes.fuzz", language, str(SECONDS), tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    at_hand = (tmp_path / "at-hand").read_bytes()
    assert done.returncode == 0, f"exit status {done.returncode}, {done.stderr[-2000:]} on {at_hand[:300]!r}"
    assert int(done.stdout) >= 1
