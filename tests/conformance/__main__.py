"""Write the section about the conformance table into `codebatch help languages`: `python -m tests.conformance`."""

from __future__ import annotations

from tests.conformance.page import PAGE, page_with_table

if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
