"""The contents of a report: the JSON data of its page. Paths are in display form.

The number of entries is limited (limits.py). Totals include omitted entries.
"""

from __future__ import annotations

import msgspec


class ReportNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of a batch.

    - `code`, `code_files`: the number of code lines of the project's own code, and of files that contain them. Data
      formats and prose are not code.
    - `production`, `production_duplicated`: the number of these lines in production code, and the number of those that
      also occur elsewhere.
    - `findings`: the number of findings of each severity.
    - `languages`: the code lines of each language, the most frequent language first.
    - `left_out`: for each class of other files, the numbers of files and lines. No other total includes them.
    """

    files: int
    code_files: int
    code: int
    functions: int
    cognitive: int
    production: int
    production_duplicated: int
    partly_parsed: int
    failures: int
    findings: dict[str, int]
    languages: dict[str, int]
    left_out: dict[str, tuple[int, int]]


class ReportTree(msgspec.Struct, frozen=True, kw_only=True):
    """The tree of the code. Each member is a column, and each index is a row.

    - A row is a directory (`files` is 0), a file (1), or several files of one directory (their number).
    - The first row is the root. Every other row comes after its parent, whose index is in `parents`.
    - Directories have 0 in all columns of numbers. The page computes their sums from the rows below.
    - `hardest` is the largest cognitive complexity of a function.
    - `changes` are the numbers of commits that changed a file in the last year, or None without a history.
    - `categories` are 0 for production code, 1 for tests, and 2 for vendored and generated code.
    - `partial` is 1 if a file may have more dependents than are known, because others can use it without an import.
    """

    names: list[str]
    parents: list[int]
    files: list[int]
    languages: list[str]
    code: list[int]
    cognitive: list[int]
    hardest: list[int]
    duplicated: list[int]
    dependents: list[int]
    partial: list[int]
    findings: list[int]
    categories: list[int]
    changes: list[int] | None


class HardFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that is hard to change (operations/hotspots/hotspots.py). Unknown numbers are None.

    `category` is that of its file, as in ReportTree. `dependents_partial` is set if other files may use its file
    without an import.
    """

    name: str
    path: str
    line: int
    score: float
    cognitive: int
    changes: int | None
    dependents: int | None
    category: int
    dependents_partial: bool


class SourceExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive lines of a file from `line` on. Long lines are cut.

    If the file is binary or missing, there are no lines.
    """

    path: str
    line: int
    text: list[str]


class CopiedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A duplicate block with the source of two locations. `others` has path and line of the other locations."""

    lines: int
    copies: int
    shown: list[SourceExcerpt]
    others: list[tuple[str, int]]


class ImportMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """The imports between directories, as rows of a matrix.

    The rows are sorted: apart from cycles, a directory comes before the directories that it imports.

    - `cells`: triples of the importer's row, the row of the imported directory, and the number of imports.
    - `cycles`: for each directory the number of its cycle, or 0.
    - `inside`: for each directory the number of imports within it.
    """

    directories: list[str]
    files: list[int]
    inside: list[int]
    cycles: list[int]
    cells: list[tuple[int, int, int]]


class FileCycle(msgspec.Struct, frozen=True, kw_only=True):
    """An import cycle: its number of files, and a shortest path through it.

    Of a long path, only the first steps are included.
    """

    files: int
    shortest: list[str]


class ReportRule(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of one rule, with an example.

    `apart` is the number of findings in non-production files. `width` is the number of characters to mark in the line
    of the example.
    """

    code: str
    tool: str
    severity: str
    count: int
    files: int
    apart: int
    message: str
    column: int
    width: int
    example: SourceExcerpt


class ChangedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding in the state `severity_raised`, `new`, `fixed` or `severity_lowered`.

    Its location is the latest known.
    """

    state: str
    severity: str
    code: str
    message: str
    path: str
    line: int


class ChangedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose cognitive complexity changed from `before` to `after`. For a new function, `before` is 0."""

    name: str
    path: str
    line: int
    before: int
    after: int


class ChangesSince(msgspec.Struct, frozen=True, kw_only=True):
    """The changes since an older batch that was made at `made_at`. Hints are not included.

    `states` is the number of findings in each state, and `findings` are the first of them. `functions` are the
    functions whose complexity changed, the greatest increase first. `functions_count` is the number of all of them.
    """

    batch_id: str
    made_at: str
    states: dict[str, int]
    findings: list[ChangedFinding]
    findings_count: int
    functions: list[ChangedFunction]
    functions_count: int


class ReportTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of entries that the page shows only in part, or omits.

    It omits duplicate blocks that occur only in tests, functions in tests and in vendored or generated code, and hints.
    A `bound` is `at most ` if the number is an upper bound, otherwise empty.
    """

    functions: int
    functions_left_out: int
    copies: int
    copies_bound: str = ""
    copies_left_out: int
    copies_left_out_bound: str = ""
    cycles: int
    rules: int
    hints: int


class ReportContents(msgspec.Struct, frozen=True, kw_only=True):
    """All contents of a report.

    - `made_at`: the time when the batch was made.
    - `incomplete`: describes missing results, or is empty.
    - `history_note`: describes missing or incomplete change frequencies, or is empty.
    - `asked`: the kinds of records that the tasks of the batch emit. Nothing is known about other kinds.
    - `since`: set if an older batch was given.
    """

    title: str
    batch_id: str
    snapshot_id: str
    made_at: str
    pipeline: str
    paths: list[str]
    incomplete: str
    history_note: str
    asked: list[str]
    numbers: ReportNumbers
    tree: ReportTree
    functions: list[HardFunction]
    copies: list[CopiedBlock]
    matrix: ImportMatrix | None
    cycles: list[FileCycle]
    rules: list[ReportRule]
    since: ChangesSince | None
    in_all: ReportTotals
