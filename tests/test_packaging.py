"""The files of the wheel, and a check that the sdist builds the same wheel."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden" / "wheel-files.txt"


def _build(kind: str, source: Path, target: Path) -> Path:
    """Build with the declared backend, in a new process, because the backend depends on the current directory."""
    code = f"import hatchling.build as b; print(b.build_{kind}({str(target)!r}))"
    completed = subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True, text=True)
    return target / completed.stdout.split()[-1]


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(name for name in archive.namelist() if ".dist-info/" not in name)


def test_wheel_contains_exactly_the_pinned_files(tmp_path: Path) -> None:
    """After a deliberate change, run: python tests/test_packaging.py > tests/golden/wheel-files.txt"""
    assert _names(_build("wheel", ROOT, tmp_path)) == GOLDEN.read_text(encoding="utf-8").splitlines()


def test_wheel_built_from_the_sdist_is_identical(tmp_path: Path) -> None:
    sdist = _build("sdist", ROOT, tmp_path)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert {"SPEC.md", "README.md", "LICENSE", "tests", "bench", "schemas"} <= {path.name for path in source.iterdir()}
    assert _names(_build("wheel", source, tmp_path)) == GOLDEN.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        print("\n".join(_names(_build("wheel", ROOT, Path(directory)))))
