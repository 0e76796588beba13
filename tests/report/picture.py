"""Create the screenshot of a report for the README.

`python -m tests.report.picture DIRECTORY` writes .github/report.png. DIRECTORY is the project to analyse. The
screenshot shows a real report in a real browser and is 1,280 pixels wide.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.browser import browse

PICTURE = Path(__file__).parents[2] / ".github" / "report.png"
BYTES_MAX = 200_000


def main(directory: str) -> None:
    """Analyse a directory in a separate store and write the screenshot. Raises SystemExit if the file is too large."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        store, page_path = f"{scratch}/store", Path(scratch) / "report.html"
        codebatch = [sys.executable, "-m", "codebatch", "--store", store, "-q"]
        subprocess.run([*codebatch, "run", directory], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*codebatch, "report", "-o", str(page_path)], check=True, cwd=directory)
        with browse(Path(scratch)) as page:
            page.open(page_path, width=1280, height=860)
            picture = page.picture({"x": 0, "y": 0, "width": 1280, "height": 860})
    if len(picture) > BYTES_MAX:
        raise SystemExit(f"the picture has {len(picture):,} bytes, more than {BYTES_MAX:,}")
    PICTURE.write_bytes(picture)


if __name__ == "__main__":
    main(sys.argv[1])
