"""The contents of a report: the JSON data of its page. Paths are in their displayed form.

Everything is bounded (limits.py); totals include what is omitted.
"""

from __future__ import annotations

import msgspec


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of a batch.

    `code` is the number of code lines of the project's own code, in `code_files` files; `duplicated` is the number of
    these lines that also occur elsewhere. `findings` are counted by severity. `languages` maps each language to its
    code lines, most first. `left_out` maps each class of other files to the numbers of files and lines, which no other
    total includes.
    """

    files: int
    code_files: int
    code: int
    functions: int
    cognitive: int
    duplicated: int
    partly_parsed: int
    failures: int
    findings: dict[str, int]
    languages: dict[str, int]
    left_out: dict[str, tuple[int, int]]


class ReportTree(msgspec.Struct, frozen=True, kw_only=True):
    """The tree of the code, in columns.

    - A row is a directory (`files` is 0), a file (1) or several files of one directory (their number).
    - The first row is the root. Every other row follows its parent, whose index is in `parents`.
    - The numbers of directories are 0. The page computes them as sums of the rows below.
    - `hardest` is the largest cognitive complexity of a function.
    - `changes` are the commits of the last year that changed a file, or None without a history.
    - `categories` are 0 for production code, 1 for tests, 2 for vendored and generated code.
    - `partial` is 1 if a file may have more dependents, because others can use it without an import.
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

    `category` is the category of its file, as in ReportTree. `dependents_partial`: other files may use its file without
    an import.
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


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file, starting at `line`. Long lines are cut. If a file is binary or missing, there are no lines."""

    path: str
    line: int
    text: list[str]


class CopiedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A duplicate block with the source of two locations. `others` are path and line of further locations."""

    lines: int
    copies: int
    shown: list[Excerpt]
    others: list[tuple[str, int]]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The imports between directories, in an order in which an importer precedes what it imports.

    Each of `cells` is the row of the importer, the row of the imported directory, and the number of imports. `cycles`
    has for each directory the number of its cycle, or 0. `inside` are the numbers of imports within each directory.
    """

    directories: list[str]
    files: list[int]
    inside: list[int]
    cycles: list[int]
    cells: list[tuple[int, int, int]]


class FileCycle(msgspec.Struct, frozen=True, kw_only=True):
    """An import cycle: its number of files, and its shortest path. Only the first steps of a long path are included."""

    files: int
    shortest: list[str]


class ReportRule(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of one rule, with an example.

    `apart` of the findings are in non-production files. `width` is the number of marked characters in the line of the
    example.
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
    example: Excerpt


class ChangedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that is `severity_raised`, `new`, `fixed` or `severity_lowered`, with its latest location."""

    state: str
    severity: str
    code: str
    message: str
    path: str
    line: int


class ChangedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose cognitive complexity has changed. For a new function, `before` is 0."""

    name: str
    path: str
    line: int
    before: int
    after: int


class ChangesSince(msgspec.Struct, frozen=True, kw_only=True):
    """Changes since an older batch, which was made at `made_at`.

    `states` counts the findings in each state; `findings` are the first ones. `functions` are the functions whose
    complexity changed, the largest change first; `functions_count` is their total. Hints are not included.
    """

    batch_id: str
    made_at: str
    states: dict[str, int]
    findings: list[ChangedFinding]
    findings_count: int
    functions: list[ChangedFunction]
    functions_count: int


class ReportTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of what the page shows only in part or omits.

    Omitted are copies that occur only in tests, functions in tests and in vendored or generated code, and hints.
    """

    functions: int
    functions_left_out: int
    copies: int
    copies_left_out: int
    cycles: int
    rules: int
    hints: int


class ReportContents(msgspec.Struct, frozen=True, kw_only=True):
    """All contents of a report.

    `made_at` is the time when the batch was made. `incomplete` describes missing results, or is empty. `changes_told`
    describes missing or incomplete change frequencies, or is empty. `asked` are the kinds of records that the tasks of
    the batch emit; nothing is known about other kinds. `since` is set if an older batch was given.
    """

    title: str
    batch_id: str
    snapshot_id: str
    made_at: str
    pipeline: str
    paths: list[str]
    incomplete: str
    changes_told: str
    asked: list[str]
    numbers: Numbers
    tree: ReportTree
    functions: list[HardFunction]
    copies: list[CopiedBlock]
    matrix: Matrix | None
    cycles: list[FileCycle]
    rules: list[ReportRule]
    since: ChangesSince | None
    in_all: ReportTotals
