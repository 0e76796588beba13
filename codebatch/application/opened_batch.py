"""A batch that was opened: what can be asked of it (opened.py says what holds of the answers)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from codebatch.application.asking import Answer, Question
from codebatch.application.nouns import AnyAnswer, Nouns
from codebatch.errors import BatchIncomplete

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from codebatch.application.batches import BatchStatus
    from codebatch.application.comparing import Comparison
    from codebatch.application.copies import CopiedBlock, CopiedPlace, Copies
    from codebatch.application.definitions import Caller
    from codebatch.application.findings import Findings
    from codebatch.application.hotspots import HotspotBy, Hotspots
    from codebatch.application.impact import Impact
    from codebatch.application.inspecting import InspectedLine, SourceLine
    from codebatch.application.looked_at import LookedAt
    from codebatch.application.overview import Overview
    from codebatch.application.questions import Content, Inspected
    from codebatch.application.references import Progress
    from codebatch.application.sql import Rows
    from codebatch.model.entry import Entry
    from codebatch.model.record import Severity
    from codebatch.query.completeness import Completeness
    from codebatch.query.dependencies import Cycle, Import
    from codebatch.query.fields import JsonRecord
    from codebatch.query.paths import Paths
    from codebatch.query.summary import Summary
    from codebatch.query.wanted import Filters, OutputFilters, Several


class OpenedBatch(Nouns):
    """A batch that was opened: its records by noun, and what can be said of a name, a file, the whole.

    Every method raises InvalidInput for what cannot be asked, StoreCorrupt for what is damaged, and BatchIncomplete for
    what is not the whole answer, unless it was opened with `partial`.
    Methods are many, for so are questions.
    """

    def __init__(self, question: Question, check_open: Callable[[], None], *, partial: bool) -> None:
        """`check_open` raises InvalidInput where its store was closed."""
        self._question = question
        self._check_open = check_open
        self._is_partial = partial

    @property
    def question(self) -> Question:
        self._check_open()
        return self._question

    def check(self, answer: AnyAnswer) -> AnyAnswer:
        shortfall = None if self._is_partial else answer.shortfall
        if shortfall is not None:
            told = f"{shortfall.message}; to accept incomplete answers, open the batch with partial=True"
            raise BatchIncomplete(told, hint=shortfall.hint)
        return answer

    @property
    def id(self) -> str:
        """Its id."""
        return self._question.batch.id

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of its tasks, in their order."""
        return self.question.records.task_names

    @property
    def whole(self) -> Completeness:
        """How much of all that is planned it can say."""
        from codebatch.query.completeness import completeness

        return completeness(self.question.records, self.question.records.task_names)

    @property
    def is_stale(self) -> bool | None:
        """Whether the tree has changed since; None where that is not known, or it is knowingly an old batch."""
        return self.question.is_stale

    def status(self) -> BatchStatus:
        """Where it stands now, task by task."""
        from codebatch.application.batches import status

        return status(self.question.store, self.question.batch)

    def summary(self, task: str | None = None) -> Answer[Summary]:
        """Counts of what it found, of one task where one is named."""
        from codebatch.application import questions

        return self.check(questions.summarise(self.question, task))

    def worst(self, limit: int) -> Answer[list[JsonRecord]]:
        """The first diagnostics of the gravest severities, as JSON has them."""
        from codebatch.application import questions

        return self.check(questions.find_worst(self.question, limit))

    def errors(self, task: str | None = None) -> Answer[list[JsonRecord]]:
        """Failures with their evidence, then diagnostics that are errors with their `task_id`, as JSON has them."""
        from codebatch.application import questions

        return self.check(questions.find_errors(self.question, task))

    def findings(
        self,
        *,
        severity: Severity | Sequence[Severity] | None = None,
        code: Several = None,
        tool: Several = None,
        **filters: Unpack[Filters],
    ) -> Answer[Findings]:
        """What was found wrong, by rule, the most certain first; without hints, unless `severity` names them.

        The filters are those of `diagnostics`.
        """
        from codebatch.application.findings import find
        from codebatch.query.wanted import Filters, filter_of

        asked = filter_of(filters, Filters, {"kind": "diagnostic", "severity": severity, "code": code, "tool": tool})
        return self.check(find(self.question, asked, filters.get("task")))

    def top(
        self, by: str = "kind", *, limit: int | None = None, task: str | None = None
    ) -> Answer[list[tuple[str, int]]]:
        """How often each kind, code, severity or language is there, or diagnostics by path or directory; most first.

        By `metric:NAME` where that is greatest; by any other field of records how many have which value. At most
        `limit`, all where none is given.
        """
        from codebatch.application import questions

        return self.check(questions.rank(self.question, by, limit=limit, task=task))

    def looked_at(self, kinds: Collection[str], task: str | None = None) -> LookedAt:
        """Of how much a question for some kinds is asked."""
        from codebatch.application.looked_at import looked_at

        return looked_at(self.question, kinds, task)

    def describe_codes(self, codes: Collection[str], task: str | None = None) -> Answer[dict[str, tuple[str, str]]]:
        """Of some codes with what severities they stand here, the gravest first, and the first message of each."""
        from codebatch.application import questions

        return self.check(questions.describe_codes(self.question, codes, task))

    def entries(
        self, limit: int | None = None, *, parse: Several = None, file_class: Several = None
    ) -> Answer[list[tuple[Entry, JsonRecord | None]]]:
        """Its files, in path order, each with its `file` record as JSON has it, None where there is none yet.

        Of some states of `parse`, or some classes, where these are named.
        """
        from codebatch.application import questions
        from codebatch.query.wanted import several

        states = () if parse is None else several("parse", parse)
        classes = () if file_class is None else several("file_class", file_class)
        return self.check(questions.list_files(self.question, limit, parse=states, classes=classes))

    def find_paths(self, given: Sequence[str]) -> tuple[str, ...]:
        """Return texts that ask for files, directories or what patterns match: values for `path` of other questions.

        A file or directory is seen from the current directory, or as the project has it.
        """
        from codebatch.application.asked_paths import find_paths

        return find_paths(self.question.records, given, self.question.note)

    def inspect(self, path: str, *, kind: Several = None, for_machines: bool = True) -> Answer[Inspected]:
        """What is said of one file: of some kinds, all where none is named, but for those that are `for_machines`."""
        from codebatch.application import questions
        from codebatch.query.filters import RecordFilter
        from codebatch.query.wanted import KINDS_FOR_PEOPLE, several

        named = () if kind is None else several("kind", kind)
        shown = () if for_machines else KINDS_FOR_PEOPLE
        return self.check(questions.inspect(self.question, path, RecordFilter(kinds=named or shown), kinds=named))

    def overview(self, path: str) -> Answer[Overview]:
        """What is worth knowing of one file: how it stands among others, what is hardest in it, what was found."""
        from codebatch.application.overview import overview

        return self.check(overview(self.question, path))

    def split_place(self, given: str) -> tuple[str, int | None]:
        """A file and a line, of `FILE:LINE`, or `FILE:LINE:COLUMN` as findings have it; of what is a file, no line."""
        from codebatch.application.inspecting import split_place

        return split_place(self.question, given)

    def inspect_line(self, path: str, line: int, *, kind: Several = None) -> Answer[InspectedLine]:
        """What stands at a line, what encloses it, and what is told of it: of some kinds, all where none is named."""
        from codebatch.application.inspecting import inspect_line
        from codebatch.query.wanted import several

        kinds = () if kind is None else several("kind", kind)
        return self.check(inspect_line(self.question, path, line, kinds=kinds))

    def content(self, path: str) -> Content:
        """What is in a file, as it was frozen."""
        from codebatch.application import questions

        return questions.read_content(self.question, path)

    def outline(self, path: str) -> Answer[Inspected]:
        """What a file defines, in its order; imports are no definitions."""
        from codebatch.application.definitions import outline

        return self.check(outline(self.question, path))

    def definitions(self, name: str) -> Answer[list[JsonRecord]]:
        """Where a name is defined, be it qualified in part or whole, by path and place; imports are no definitions."""
        from codebatch.application.definitions import definitions

        return self.check(definitions(self.question, name))

    def callers(self, name: str) -> Answer[list[Caller]]:
        """The scopes that call what is written so, be it qualified in part or whole; by path and first call."""
        from codebatch.application.definitions import callers

        return self.check(callers(self.question, name))

    def references(
        self, name: str, *, role: Several = None, path: Paths = "", progress: Progress | None = None
    ) -> Answer[list[JsonRecord]]:
        """Every place where a name stands, in some roles (definition, import, call, reference), and paths as filters
        have them; each with `path` or `path_b64`, `name`, `line`, `column`, `role` and `scope`. `progress` is told how
        many files are done, of how many.
        """
        from codebatch.application.references import ignore_progress, references
        from codebatch.query.wanted import several

        roles = () if role is None else several("role", role)
        told = progress or ignore_progress
        return self.check(references(self.question, name, roles=roles, path=path, progress=told))

    def find(
        self,
        *,
        language: str,
        query: str | None = None,
        pattern: str | None = None,
        path: Paths = "",
        limit: int | None = None,
        by_file: bool = False,
        jobs: int = 1,
        file_seconds: float = 30.0,
        progress: Progress | None = None,
    ) -> Answer[list[JsonRecord]]:
        """Each place that a tree-sitter query or a pattern (TASKS.md "Patterns") says, in files of a language, in paths
        as filters have them; each with `path` or `path_b64`, `line`, `column`, `end_line`, `end_column`, the line of
        `source` and the texts of its `captures`; `by_file` each file with its number of `places`. At most `limit`, or a
        million: no file behind is read. `jobs` processes look, which are forks of this one. A file that takes longer
        than `file_seconds` is passed over, and the answer is not complete. `progress` is as of `references`.
        """
        from codebatch.application.finding import Wanted, find
        from codebatch.application.references import ignore_progress

        wanted = Wanted(
            language=language,
            query=query,
            pattern=pattern,
            path=path,
            limit=limit,
            by_file=by_file,
            jobs=jobs,
            file_seconds=file_seconds,
        )
        return self.check(find(self.question, wanted, progress or ignore_progress))

    @contextlib.contextmanager
    def sql(self, statement: str) -> Iterator[Answer[Rows]]:
        """What one SELECT answers over its records (SPEC.md "SQL"), until the `with` ends. It needs DuckDB."""
        from codebatch.application.sql import ask_sql

        with ask_sql(self.question, statement) as answer:
            yield self.check(answer)

    def hotspots(
        self,
        by: HotspotBy = "hotspot",
        *,
        files: bool = False,
        least: int | None = None,
        limit: int = 10,
        path: Paths = "",
        lang: Several = None,
        everything: bool = False,
    ) -> Answer[Hotspots]:
        """The functions that are hardest to change, or the files, the hottest first (application/hotspots.py).

        At most `limit`, which have `least` or more, by default 10 of functions. Without `everything` tests, what
        others or machines wrote, and what may be misread are left out, and counted.
        """
        from codebatch.application.hotspots import hotspots
        from codebatch.query.wanted import several

        languages = () if lang is None else several("lang", lang)
        return self.check(
            hotspots(
                self.question,
                by,
                files=files,
                least=least,
                limit=limit,
                path=path,
                languages=languages,
                everything=everything,
            )
        )

    def copies(
        self, *, least: int = 1, first: int = 1, limit: int | None = None, path: Paths = "", everything: bool = False
    ) -> Answer[Copies]:
        """The copied blocks of `least` code lines or more, the largest first, from the `first` on, at most `limit`.

        Without `everything` those are left out, and counted, that stand in tests and foreign code alone.
        """
        from codebatch.application.copies import find_copies

        return self.check(
            find_copies(self.question, least=least, first=first, limit=limit, path=path, everything=everything)
        )

    def source_of_copies(self, block: CopiedBlock) -> list[tuple[CopiedPlace, tuple[SourceLine, ...]]]:
        """The first places of a copied block, each with its source as it was frozen, or the beginning of it."""
        from codebatch.application.copies import read_copies

        return read_copies(self.question, block)

    def older(self, named: OpenedBatch | str, *, of_files: bool = False) -> OpenedBatch:
        """The batch that this one is compared with: one that was opened, or as `OpenedStore.side` has it."""
        if isinstance(named, OpenedBatch):
            return named
        from codebatch.application.opened import OpenedStore

        store = OpenedStore(self.question.store, self.question.note)
        return store.side(named, partial=self._is_partial, of_files=of_files)

    def compare(self, old: OpenedBatch | str, **filters: Unpack[OutputFilters]) -> Comparison:
        """What became of what another batch says; diagnostics, where no kind is named.

        It may be of another store, or is named as `OpenedStore.side` has it. The filters are those of `outputs`: of
        what is told either record passes.
        """
        from msgspec import structs

        from codebatch.application.comparing import compare, kinds_of, of_files_alone
        from codebatch.query.wanted import filter_of

        asked = filter_of(filters)
        kinds = kinds_of(asked)
        old = self.older(old, of_files=of_files_alone(kinds))
        asked = structs.replace(asked, kinds=())
        return compare(old, self, kinds, asked=asked, task=filters.get("task"))

    def impact(self, path: str, depth: int | None = None) -> Answer[Impact]:
        """What depends on a file, in at most so many steps, in any number where none is given."""
        from codebatch.application.dependencies import impact

        return self.check(impact(self.question, path, depth))

    def imports(self, path: Paths = "") -> Answer[list[Import]]:
        """Return which file imports which, by path. `path`: only imports by or of a file that it asks for."""
        from codebatch.application.dependencies import imports

        return self.check(imports(self.question, path))

    def import_cycles(self, path: Paths = "", *, everything: bool = False) -> Answer[list[Cycle]]:
        """Return files that import one another, fewest files first. `path`: only with a file that it asks for.

        With `everything` also cycles of tests, vendored and generated files alone, and those that only imports close
        which no loading of a file executes.
        """
        from codebatch.application.dependencies import import_cycles

        return self.check(import_cycles(self.question, path, everything=everything))
