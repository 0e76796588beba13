"""What is in a report: what its page is given as JSON, and shows. Paths are as people are shown them.

Everything is bounded (limits.py), and says how much of it there is besides.
"""

from __future__ import annotations

import msgspec


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """What there is in all.

    `code` are lines, of code of the project's own, in `code_files`; `duplicated` are those of them that stand elsewhere
    too. `findings` go by severity, `languages` by lines of code, most first. Of `left_out`, by class, no number is told
    but these: files and lines.
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
    """The tree of the code, in columns: a row is a directory (`files` 0), a file (1) or what stands for several files
    of one directory (their number). The first is the root; every other follows its `parents`. Numbers of directories
    are 0: they are the sums of what is below. `hardest` is the greatest cognitive complexity of a function, `changes`
    the commits of the last year that changed a file, None without a history. `categories` are 0 for production code, 1
    for tests, 2 for vendored and generated code. `partial` is 1 if a file may have more dependents,
    because others can use it without an import.
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
    """A function that is hard to change (operations/hotspots/hotspots.py). Numbers that are not known are None.

    `category` is that of its file, as in Tree. `dependents_partial`: others may use its file without an import.
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
    """Lines of a file from `line` on, each cut where it is long. None of a file that is binary, or gone."""

    path: str
    line: int
    text: list[str]


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """Equal code at several places, of which two are shown; of the `others` path and line."""

    lines: int
    copies: int
    shown: list[Excerpt]
    others: list[tuple[str, int]]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """Which directory imports which, in an order in which what imports stands before what it imports.

    Of `cells` each is the row of the importer, that of the imported, and the number of imports. `cycles` has for each
    directory the number of the cycle that it is in, 0 where it is in none. `inside` are the imports within each.
    """

    directories: list[str]
    files: list[int]
    inside: list[int]
    cycles: list[int]
    cells: list[tuple[int, int, int]]


class FileCycle(msgspec.Struct, frozen=True, kw_only=True):
    """Files that import one another: how many, and the shortest way from the first back to it, of a long one the first
    steps."""

    files: int
    shortest: list[str]


class ReportRule(msgspec.Struct, frozen=True, kw_only=True):
    """What was found by one rule, `apart` of it in tests and the like, and an example; `width` is how many characters
    of its line it marks.
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


class Became(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that is `severity_raised`, `new`, `fixed` or `severity_lowered`, at its latest place."""

    state: str
    severity: str
    code: str
    message: str
    path: str
    line: int


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """A function of which the cognitive complexity is another than it was; 0 before is a function that is new."""

    name: str
    path: str
    line: int
    before: int
    after: int


class Since(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an older batch, made at `made_at`: of findings how many are in each state, and the first of them.

    `functions` are those that became harder or easier, the greatest step first, of `functions_count` in all; without
    hints, as everywhere.
    """

    batch_id: str
    made_at: str
    states: dict[str, int]
    findings: list[Became]
    findings_count: int
    functions: list[Grown]
    functions_count: int


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are in all of what the page may show in part, and how many of what it leaves out: copies in tests
    alone, functions of tests and of what others wrote, hints.
    """

    functions: int
    functions_left_out: int
    copies: int
    copies_left_out: int
    cycles: int
    rules: int
    hints: int


class ReportContents(msgspec.Struct, frozen=True, kw_only=True):
    """All of a report. `made_at` is when its batch was made; `incomplete` says what lacks of the whole, if anything.

    `changes_told` is why it is not known how often files were changed, or what of that lacks.
    `asked` are the kinds of records that the tasks of the batch give: nothing is known of others. `since` is there
    where an older batch was named.
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
    copies: list[Copied]
    matrix: Matrix | None
    cycles: list[FileCycle]
    rules: list[ReportRule]
    since: Since | None
    in_all: Cut
