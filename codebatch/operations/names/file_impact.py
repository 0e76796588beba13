"""Query for the impact of a change of a file: the files that depend on it."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.names.file_evidence import FileEvidence
from codebatch.operations.names.impact import Impact
from codebatch.operations.names.in_source_tests import in_source_tests
from codebatch.operations.queries.batch_query import Answer, BatchQuery, find_item
from codebatch.plugins.worker_services import fact_services
from codebatch.query.answers.dependencies import BatchImports, Dependent, find_dependents, tasks_for_dependencies
from codebatch.query.answers.search_coverage import Evidence, unsearched_evidence
from codebatch.query.answers.test_names import is_test_file
from codebatch.query.completeness import Completeness, tasks_completeness
from codebatch.query.filters.arguments import refuse_numbers_below_one
from codebatch.query.filters.paths import PathFilter, PathPatterns

_SEARCHED_FOR_TESTS_MAX = 50
"""Maximum number of dependents whose names are searched in test files if no test file is a dependent."""


def find_impact(
    question: BatchQuery,
    path: str,
    depth: int | None = None,
    within: PathPatterns = "",
    *,
    is_exact: bool = False,
    for_tests: bool = False,
) -> Answer[Impact]:
    """Return the dependents of the file that `path` names.

    With `depth`, only dependents at most this number of import steps away are returned. With `within`, only matching
    files are returned. With `is_exact`, only imports with the resolution `exact` count. If other files may use the file
    without an import, the answer is incomplete. With `for_tests`, it is also incomplete if no test file is a dependent,
    but one may be. Raises InvalidInput or StoreCorrupt.
    """
    refuse_numbers_below_one(depth=depth)
    records = question.records
    name, _ = find_item(records, path, question.note)
    try:
        text = name.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{display_path(name)} is not valid UTF-8; imports that refer to such a path are not resolved"
        ) from error
    paths = PathFilter(within)
    is_wanted = paths.matches
    dependents = _dependents(question, text, depth, is_wanted, is_exact=is_exact)
    completeness = tasks_completeness(
        records, tasks_for_dependencies(records), lacks_files=bool(question.batch.about.paths)
    )
    language = next((file.lang for file in records.files if file.path_bytes == name), "")
    if title := fact_services().language_facts(language).unlinked_title:
        unfollowed = f"uses of {title} files are not resolved; see: codebatch references NAME"
        completeness = msgspec.structs.replace(completeness, unfollowed=unfollowed)
    result = Impact(path=name, dependents=dependents)
    evidence = FileEvidence(question, text, is_wanted)
    is_final = completeness.done == completeness.planned
    if for_tests and is_final and dependents and not result.tests:
        return _without_tests(question, result, completeness, paths)
    if dependents or not is_final:
        found = evidence.unparsed_mentions() if dependents else ()
        if found:
            completeness = completeness.with_doubt(evidence.unparsed_text(found))
        return Answer(question=question, result=result, completeness=completeness, not_searched=found)
    coverage = question.read_coverage(evidence.words, is_wanted=is_wanted)
    uncertain = len(_dependents(question, text, depth, is_wanted)) if is_exact else 0
    coverage = msgspec.structs.replace(coverage, evidence=(*_uncertain(uncertain, text), *evidence.find()))
    return Answer(question=question, result=result, completeness=completeness, coverage=coverage)


def _without_tests(
    question: BatchQuery, impact: Impact, completeness: Completeness, paths: PathFilter
) -> Answer[Impact]:
    """Return an answer without test files, with the evidence that a test file names one of the files."""

    def is_wanted(path: bytes) -> bool:
        return is_test_file(path) and paths.matches(path)

    files = [impact.path.decode(), *(dependent.path for dependent in impact.dependents)]
    evidence: list[Evidence] = [*in_source_tests(question, [path.encode() for path in files])]
    for path in files[:_SEARCHED_FOR_TESTS_MAX]:
        evidence += FileEvidence(question, path, is_wanted).find_mentions()
    words = FileEvidence(question, files[0], is_wanted).words
    coverage = question.read_coverage(words, is_wanted=is_wanted)
    more = len(files) - _SEARCHED_FOR_TESTS_MAX
    evidence += unsearched_evidence(max(more, 0), "more dependent", "more dependents")
    coverage = msgspec.structs.replace(coverage, evidence=tuple(evidence))
    return Answer(question=question, result=impact, completeness=completeness, coverage=coverage)


def _dependents(
    question: BatchQuery,
    path: str,
    depth: int | None,
    is_wanted: Callable[[bytes], bool],
    *,
    is_exact: bool = False,
) -> list[Dependent]:
    importers_of = BatchImports(question.records, is_exact=is_exact).importers_of
    found = find_dependents(importers_of, path, depth)
    return [dependent for dependent in found if is_wanted(os.fsencode(dependent.path))]


def _uncertain(count: int, path: str) -> tuple[Evidence, ...]:
    if not count:
        return ()
    text = count_text(count, "dependent is not certain", "dependents are not certain")
    return (Evidence(kind="uncertain", count=count, text=text, command=f"codebatch impact {path}"),)
