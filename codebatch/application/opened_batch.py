"""A batch that was opened: what can be asked of it (opened.py says what holds of the answers)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from codebatch.application import questions
from codebatch.application.asking import Answer, Question
from codebatch.application.looked_at import LookedAt, looked_at
from codebatch.application.nouns import AnyAnswer, Nouns
from codebatch.application.questions import METRIC, Content, Inspected, Ranking
from codebatch.query.completeness import Completeness, completeness
from codebatch.query.fields import JsonRecord
from codebatch.query.filters import RecordFilter
from codebatch.query.summary import Summary
from codebatch.query.wanted import KINDS_FOR_PEOPLE, Several, several

if TYPE_CHECKING:
    from codebatch.application.batches import BatchStatus
    from codebatch.application.definitions import Caller
    from codebatch.application.dependencies import Impact
    from codebatch.application.inspecting import InspectedLine
    from codebatch.application.references import Progress
    from codebatch.application.sql import Rows
    from codebatch.model.entry import Entry
    from codebatch.query.dependencies import Cycle, Import

__all__ = ["METRIC", "Inspected", "OpenedBatch", "Ranking"]


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
        if not self._is_partial and answer.shortfall is not None:
            raise answer.shortfall
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
        return self.check(questions.summarise(self.question, task))

    def worst(self, limit: int) -> Answer[list[JsonRecord]]:
        """The first diagnostics of the gravest severities, as JSON has them."""
        return self.check(questions.find_worst(self.question, limit))

    def errors(self, task: str | None = None) -> Answer[list[JsonRecord]]:
        """Failures with their evidence, then diagnostics that are errors with their `task_id`, as JSON has them."""
        return self.check(questions.find_errors(self.question, task))

    def top(
        self, by: str = "kind", *, limit: int | None = None, task: str | None = None
    ) -> Answer[list[tuple[str, int]]]:
        """How often each kind, code, severity or language is there, or diagnostics by path or directory; most first.

        By `metric:NAME` where that is greatest. At most `limit`, all where none is given.
        """
        return self.check(questions.rank(self.question, by, limit=limit, task=task))

    def looked_at(self, kinds: Collection[str], task: str | None = None) -> LookedAt:
        """Of how much a question for some kinds is asked."""
        return looked_at(self.question, kinds, task)

    def describe_codes(self, codes: Collection[str], task: str | None = None) -> Answer[dict[str, tuple[str, str]]]:
        """Of some codes with what severities they stand here, the gravest first, and the first message of each."""
        return self.check(questions.describe_codes(self.question, codes, task))

    def entries(self, limit: int | None = None) -> Answer[list[tuple[Entry, JsonRecord | None]]]:
        """Its files, in path order, each with its `file` record as JSON has it, None where there is none yet."""
        return self.check(questions.list_files(self.question, limit))

    def inspect(self, path: str, *, kind: Several = None, for_machines: bool = True) -> Answer[Inspected]:
        """What is said of one file: of some kinds, all where none is named, but for those that are `for_machines`."""
        named = () if kind is None else several("kind", kind)
        shown = () if for_machines else KINDS_FOR_PEOPLE
        return self.check(questions.inspect(self.question, path, RecordFilter(kinds=named or shown), kinds=named))

    def split_place(self, given: str) -> tuple[str, int | None]:
        """A file and a line, of `FILE:LINE`, or `FILE:LINE:COLUMN` as findings have it; of what is a file, no line."""
        from codebatch.application.inspecting import split_place

        return split_place(self.question, given)

    def inspect_line(self, path: str, line: int, *, kind: Several = None) -> Answer[InspectedLine]:
        """What stands at a line, what encloses it, and what is told of it: of some kinds, all where none is named."""
        from codebatch.application.inspecting import inspect_line

        kinds = () if kind is None else several("kind", kind)
        return self.check(inspect_line(self.question, path, line, kinds=kinds))

    def content(self, path: str) -> Content:
        """What is in a file, as it was frozen."""
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
        self, name: str, *, role: Several = None, path: str = "", progress: Progress | None = None
    ) -> Answer[list[JsonRecord]]:
        """Every place where a name stands, in some roles (definition, import, call, reference), and paths as filters
        have them; each with `path` or `path_b64`, `name`, `line`, `column`, `role` and `scope`. `progress` is told how
        many files are done, of how many.
        """
        from codebatch.application.references import ignore_progress, references

        roles = () if role is None else several("role", role)
        told = progress or ignore_progress
        return self.check(references(self.question, name, roles=roles, path=path, progress=told))

    def find(
        self,
        *,
        language: str,
        query: str | None = None,
        pattern: str | None = None,
        path: str = "",
        limit: int | None = None,
        by_file: bool = False,
        jobs: int = 1,
        progress: Progress | None = None,
    ) -> Answer[list[JsonRecord]]:
        """Each place that a tree-sitter query or a pattern (TASKS.md "Patterns") says, in files of a language, in paths
        as filters have them; each with `path` or `path_b64`, `line`, `column`, `end_line`, `end_column`, the line of
        `source` and the texts of its `captures`; `by_file` each file with its number of `places`. At most `limit`, or a
        million: no file behind is read. `jobs` processes look, which are forks of this one. `progress` is as of
        `references`.
        """
        from codebatch.application.finding import Wanted, find
        from codebatch.application.references import ignore_progress

        wanted = Wanted(
            language=language, query=query, pattern=pattern, path=path, limit=limit, by_file=by_file, jobs=jobs
        )
        return self.check(find(self.question, wanted, progress or ignore_progress))

    @contextlib.contextmanager
    def sql(self, statement: str) -> Iterator[Answer[Rows]]:
        """What one SELECT answers over its records (SPEC.md "SQL"), until the `with` ends. It needs DuckDB."""
        from codebatch.application.sql import ask_sql

        with ask_sql(self.question, statement) as answer:
            yield self.check(answer)

    def impact(self, path: str, depth: int | None = None) -> Answer[Impact]:
        """What depends on a file, in at most so many steps, in any number where none is given."""
        from codebatch.application.dependencies import impact

        return self.check(impact(self.question, path, depth))

    def imports(self) -> Answer[list[Import]]:
        """Which file imports which, by path."""
        from codebatch.application.dependencies import imports

        return self.check(imports(self.question))

    def import_cycles(self) -> Answer[list[Cycle]]:
        """Files that import one another, most files first."""
        from codebatch.application.dependencies import import_cycles

        return self.check(import_cycles(self.question))
