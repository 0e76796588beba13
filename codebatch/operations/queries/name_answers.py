"""The decision whether an answer about a name is complete: one for `def`, `callers`, `references`, `impact`, `inspect`.

A firm `none` needs all evidence. No tree shows another use of the name, no string literal consists of the name, and no
file that was not parsed completely contains the name. An answer with results is incomplete if such a file has
occurrences that no tree shows. A name that occurs nowhere is an error, because it is probably mistyped.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.entry import Entry
from codebatch.model.text.quantities import count_text
from codebatch.model.text.suggestions import closest_word
from codebatch.model.text.words import WordFinder
from codebatch.operations.queries.batch_query import Answer, BatchQuery, unknown_path_error
from codebatch.query.answers.search_coverage import Evidence
from codebatch.query.answers.unparsed_files import (
    WordMatches,
    find_unparsed_files,
    search_unparsed_files,
    unsearched_text,
)
from codebatch.query.completeness import Completeness
from codebatch.query.filters.filters import RecordFilter, last_name
from codebatch.query.sources.records import BatchRecords

T = TypeVar("T")

_SUGGESTED_FROM_MAX = 20_000
"""Maximum number of names among which a similar one is searched."""
_LENGTHS_DIFFER_MAX = 3


class NameSearch(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a search for a name beside the rows of an answer.

    - `name`: the requested name, which can be qualified. `word` is its last part, and `spellings` has other spellings
      of this part. `noun` names what it can be.
    - `is_known`: the batch has a definition or a use of the name.
    - `evidence`: uses that are not in the answer. They count if the answer is empty.
    - `covered`: the number of occurrences in a file that a tree shows, by path.
    - `is_wanted`: a predicate that restricts the files by path.
    - `matches`: the files in which the word occurs, if they are known.
    """

    name: str
    word: str
    is_known: bool
    spellings: tuple[str, ...] = ()
    noun: str = "name"
    evidence: tuple[Evidence, ...] = ()
    covered: Mapping[bytes, int] = {}
    is_wanted: Callable[[bytes], bool] = lambda _: True
    matches: WordMatches | None = None


def name_answer(
    question: BatchQuery,
    result: T,
    completeness: Completeness,
    search: NameSearch,
    *,
    is_empty: bool,
    notes: tuple[str, ...] | None = None,
) -> Answer[T]:
    """Return an answer about a name with all that speaks against its completeness.

    Raises InvalidInput if the name occurs nowhere, and StoreCorrupt.
    """
    if not is_empty:
        return _answer_with_results(question, result, completeness, search, notes)
    if completeness.done != completeness.planned:
        return Answer(question=question, result=result, completeness=completeness, notes=notes)
    coverage = question.read_coverage(
        (search.word, *search.spellings), is_wanted=search.is_wanted, covered=search.covered, matches=search.matches
    )
    coverage = msgspec.structs.replace(coverage, evidence=search.evidence)
    if not search.is_known and not coverage.doubt and _is_unknown(question, search):
        raise unknown_name_error(question, search)
    return Answer(question=question, result=result, completeness=completeness, notes=notes, coverage=coverage)


_UNRESOLVED_TEXTS = {
    "other_chains": ("use of {word} possibly refers to it", "uses of {word} possibly refer to it"),
    "unfitting": ("call of {word} has arguments that do not fit", "calls of {word} have arguments that do not fit"),
    "misplaced": (
        "use through a missing module may refer to it",
        "uses through a missing module may refer to it",
    ),
    "outer": (
        "call of a {word} from outside the project may call it",
        "calls of a {word} from outside the project may call it",
    ),
}


def use_evidence(name: str, others: Mapping[str, int], listed: str) -> Iterator[Evidence]:
    """Yield the evidence for uses of a name in other roles than an answer lists.

    `others` has their number by role, or by the reason why they are not listed.

    `listed` names the uses that the answer lists, for example "call".
    """
    word = str(last_name(name))
    for role, count in others.items():
        match role:
            case "string":
                text = count_text(count, "string names it", "strings name it")
                yield Evidence(kind="string", count=count, text=text, command=_references_command(word, role))
            case "uncertain":
                text = count_text(count, "use is not certain", "uses are not certain")
                yield Evidence(kind="uncertain", count=count, text=text, command=_references_command(word))
            case "other_chains" | "unfitting" | "misplaced" | "outer":
                text = count_text(count, *(text.format(word=word) for text in _UNRESOLVED_TEXTS[role]))
                yield Evidence(kind="unresolved", count=count, text=text, command=_references_command(word))
            case "short":
                text = count_text(count, f"use of the short name {word}", f"uses of the short name {word}")
                yield Evidence(kind="reference", count=count, text=text, command=_references_command(word))
            case "renamed":
                text = count_text(count, "use under another name", "uses under other names")
                command = shlex.join(["codebatch", "impact", name])
                yield Evidence(kind="reference", count=count, text=text, command=command)
            case "unbound":
                text = count_text(
                    count, "file imports its module without a name", "files import its module without a name"
                )
                yield Evidence(kind="import", count=count, text=text)
            case "unfollowed":
                text = count_text(count, "use by name was not followed", "uses by name were not followed")
                command = shlex.join(["codebatch", "impact", name])
                yield Evidence(kind="unfollowed", count=count, text=text, command=command)
            case "call" | "import" | "reference":
                suffix = f" that is not a {listed}" if role == "reference" and listed == "call" else ""
                suffixes = f" that are not {listed}s" if suffix else ""
                text = count_text(count, f"{role}{suffix}", f"{role}s{suffixes}")
                yield Evidence(kind=role, count=count, text=text, command=_references_command(word))
            case _:
                raise AssertionError(f"no evidence of the kind {role!r}")


def _references_command(word: str, role: str = "") -> str:
    return shlex.join(["codebatch", "references", word, *(("--role", role) if role else ())])


def _answer_with_results(
    question: BatchQuery, result: T, completeness: Completeness, search: NameSearch, notes: tuple[str, ...] | None
) -> Answer[T]:
    records = question.records
    words = (search.word, *search.spellings)
    found_items = dict(item for word in words for item in records.items_with_name(word))
    candidates = [item for item in sorted(found_items.items()) if search.is_wanted(item[1].path)]
    unparsed = find_unparsed_files(records, candidates)
    found = search_unparsed_files(records, WordFinder(words), unparsed, search.covered).doubtful
    if found:
        completeness = completeness.with_doubt(unsearched_text(search.word, found))
    return Answer(question=question, result=result, completeness=completeness, notes=notes, not_searched=tuple(found))


def _is_unknown(question: BatchQuery, search: NameSearch) -> bool:
    """Return whether a part of a name occurs nowhere, not even in a comment or outside of the requested paths."""
    records = question.records
    for part in {search.word, *re.findall(r"\w+", search.name)}:
        finder = WordFinder((part,))
        if not any(_is_in(records, finder, entry) for _, entry in records.items_with_name(part)):
            return not question.read_coverage((part,)).doubt
    return False


def _is_in(records: BatchRecords, finder: WordFinder, entry: Entry) -> bool:
    try:
        return finder.is_in(records.read_object(entry))
    except ObjectMissing:
        return True


def unknown_name_error(question: BatchQuery, search: NameSearch) -> InvalidInput:
    """Return the error for a name that occurs nowhere in the batch, with a similar name as a hint."""
    similar = similar_name(question.records, search.name)
    if similar:
        hint = f"did you mean {similar!r}?"
    elif question.is_stale:
        hint = "files have changed since the batch was made; update it with: codebatch run"
    elif "file" in search.noun:
        return unknown_path_error(question.records, search.name, f"no {search.noun}")
    else:
        hint = "only PHP and SQL ignore case; list definitions with: codebatch query symbols --name 'Prefix*'"
    return InvalidInput(f"the batch has no {search.noun} {search.name!r}", hint=hint)


def similar_name(records: BatchRecords, name: str) -> str:
    """Return the name of a definition that is most similar to a name, or an empty text. Raises StoreCorrupt."""
    if "symbols" not in records.task_names:
        return ""
    word = str(last_name(name))
    for length in (max(len(word) // 2, 2), 1):
        beginnings = (word[:length], word[:1].swapcase() + word[1:length])
        names = set[str]()
        known = RecordFilter(kinds=("symbol",), names=tuple(f"{beginning}*" for beginning in beginnings))
        for record in records.iter_records("symbols", known, is_auxiliary=True):
            if abs(len(str(record["name"])) - len(word)) <= _LENGTHS_DIFFER_MAX:
                names.add(str(record["name"]))
            if len(names) > _SUGGESTED_FROM_MAX:
                break
        folded = {found.casefold(): found for found in sorted(names)}
        similar = folded.get(word.casefold()) or closest_word(word, sorted(names - {word}))
        if similar:
            return similar
    return ""
