"""Inference of the needs of tasks from their descriptions: `strategy = "auto"` (SPEC.md "Work files").

Pure functions turn descriptions into candidate edges. Each candidate has a reason and a confidence. Explicit needs take
precedence over candidates, and a candidate that would close a cycle is rejected.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from codebatch.model.work.pattern_overlap import FilePatterns
from codebatch.model.work.work_batch import CONFIDENCE_MIN
from codebatch.scheduling.inference.labels import LabelEntry, iter_label_entries
from codebatch.scheduling.inference.sentences import (
    DependencyText,
    MentionedFiles,
    is_enumerated,
    is_fully_read,
    is_region_end,
    iter_regions,
    iter_sentences,
    mentioned_files,
)

FILES_SURE, NAME_SURE, NUMBER_SURE, CREATED_SURE, CHANGED_SURE, PLACE_SURE = 1.0, 0.95, 0.85, 0.75, 0.6, 0.6
"""Confidence of each rule, between 0 and 1.

The rules, in this order: the `outputs` of a task match the `inputs` of another; the text names a task; the text has the
number in the ID of a task; a task creates a file that the text mentions; two tasks change the same file; the text has
the position of a task in the list. Only the last two depend on the order of the list.
"""

_QUOTED_CHARACTERS_MAX = 100
_TITLE_WORDS_MIN = 2
_CERTAIN_TITLE_WORDS = 3
_PREVIOUS_LISTED_ID = re.compile(
    r"(?:the |task |tasks )*([\w.-]+)(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*)\Z", re.IGNORECASE
)
_NEXT_LISTED_ID = re.compile(r"(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*)(?:the |task )?([\w.-]*\w)", re.IGNORECASE)
_NAME_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]|[A-Za-z0-9]")
_TASK_NUMBER = re.compile(
    r"(?P<kind>\b(?:tasks?|steps?)\s+(?:no\.?\s*|number\s+)?#?|(?<![\w#&/])#)(?P<number>\d{1,6})(?![\w.]*\w)",
    re.IGNORECASE,
)
_MORE_NUMBERS = re.compile(r"\s*(?:,\s*(?:and\s+)?|and\s+|&\s*)#?(?P<number>\d{1,6})(?![\w.]*\w)", re.IGNORECASE)
_FOREIGN_NUMBER = re.compile(
    r"\b(?:issues?|prs?|pull requests?|bugs?|tickets?|gh|mrs?|merge requests?|fix(?:es|ed)?|closes?)[\s:]*\Z",
    re.IGNORECASE,
)
_QUOTED_TEXT = re.compile(r"`([^`]+)`|\"([^\"]+)\"|\u201c([^\u201d]+)\u201d|'([^']+)'|\*\*([^*]+)\*\*|\[([^\]]+)\]")
_LISTED_BETWEEN = re.compile(r"\s*,\s*(?:and\s+|&\s*)?|\s+(?:and|&|as well as|plus)\s+", re.IGNORECASE)
_MARKUP = re.compile(r"[`\"\u201c\u201d'\[\]]|\*\*|(?<!\w)[*_]+|[*_]+(?!\w)")
_TASK_WITH_NAME = re.compile(r"(?:the\s+)?tasks?\s+([\w.-]+)\Z", re.IGNORECASE)
_WORDS_FOR_NO_TASK = {"", "-", "none", "no", "nothing", "n/a", "na", "tbd"}
"""Words that people write as a list entry if there is nothing to list."""
_NUMBER_IN_ID = re.compile(r"\D*?0*(\d{1,6})(?=[-_.]|\Z)")


class InferenceTask(NamedTuple):
    """The properties of a task that the rules of inference use."""

    id: str
    title: str = ""
    text: str = ""
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()


class CandidateEdge(NamedTuple):
    """A possible edge: `task` needs `on`. `why` is the reason, with a quotation from the text."""

    task: str
    on: str
    confidence: float
    why: str
    source: str = "inferred"


class EdgeSelection(NamedTuple):
    """Candidates that became edges, and rejected candidates with the reason of each."""

    edges: list[CandidateEdge]
    rejections: list[tuple[CandidateEdge, str]]


def infer_edges(tasks: Sequence[InferenceTask]) -> list[CandidateEdge]:
    """Return the candidate edges of tasks, the most confident first.

    For each pair of tasks, only the best candidate is returned.
    """
    best: dict[tuple[str, str], CandidateEdge] = {}
    for edge in (*_edges_by_files(tasks), *_edges_by_names(tasks), *_edges_by_paths(tasks)):
        known = best.get((edge.task, edge.on))
        if edge.task != edge.on and (known is None or known.confidence < edge.confidence):
            best[edge.task, edge.on] = edge
    return sorted(best.values(), key=lambda edge: (-edge.confidence, edge.task, edge.on))


def select_edges(
    candidates: Iterable[CandidateEdge],
    written: Mapping[str, Collection[str]],
    *,
    confidence_min: float = CONFIDENCE_MIN,
) -> EdgeSelection:
    """Select the candidates that become edges. Earlier candidates take precedence.

    `written` maps each task to its explicit needs. A candidate that repeats an explicit need is dropped. A candidate is
    rejected if its confidence is below `confidence_min`, or if it would close a cycle.
    """
    waits_for: dict[str, list[str]] = {task: list(on) for task, on in written.items()}
    selection = EdgeSelection([], [])
    for edge in candidates:
        if edge.on in written.get(edge.task, ()):
            continue
        if edge.confidence < confidence_min:
            selection.rejections.append((edge, f"its confidence is below {confidence_min:g}"))
        elif path := _shortest_path(waits_for, edge.on, edge.task):
            cycle = f"{' → '.join(path)} exists" if len(path) <= 6 else f"{path[0]} → … → {path[-1]} exists"
            selection.rejections.append((edge, f"it would create a cycle: {cycle}"))
        else:
            waits_for.setdefault(edge.task, []).append(edge.on)
            selection.edges.append(edge)
    return selection


def _shortest_path(waits_for: Mapping[str, Sequence[str]], start: str, end: str) -> list[str]:
    """Return a shortest path from `start` to `end`, in which each task needs the next.

    The list is empty if there is no path.
    """
    before: dict[str, str] = {}
    pending = deque([start])
    while pending:
        node = pending.popleft()
        if node == end:
            path = [node]
            while path[-1] != start:
                path.append(before[path[-1]])
            return path[::-1]
        for other in waits_for.get(node, ()):
            if other not in before and other != start:
                before[other] = node
                pending.append(other)
    return []


def _edges_by_files(tasks: Sequence[InferenceTask]) -> Iterator[CandidateEdge]:
    """Yield an edge from each task to each task whose `outputs` overlap the first task's `inputs`."""
    writers = [(task, FilePatterns(task.outputs)) for task in tasks if task.outputs]
    for task in tasks:
        reads = FilePatterns(task.inputs) if task.inputs and writers else None
        for writer, writes in writers if reads is not None else ():
            assert reads is not None
            shared = reads.shared_pattern(writes)
            if shared is not None and writer.id != task.id:
                yield CandidateEdge(task.id, writer.id, FILES_SURE, f"it reads {shared!r}, which {writer.id} writes")


class _TaskNames:
    """An index of the names of tasks: IDs, titles, and the numbers in IDs or in the list."""

    def __init__(self, tasks: Sequence[InferenceTask]) -> None:
        self._ids = {task.id.casefold(): task.id for task in tasks}
        titles: dict[str, list[str]] = {}
        for task in tasks:
            titles.setdefault(_normalise_words(task.title), []).append(task.id)
        self._titles = {title: ids[0] for title, ids in titles.items() if title and len(ids) == 1}
        self._long_titles: dict[str, list[str]] = {}
        for title in self._titles:
            if len(title.split()) >= _TITLE_WORDS_MIN:
                self._long_titles.setdefault(title.split()[0], []).append(title)
        numbers: dict[int, list[str]] = {}
        for task in tasks:
            if match := _NUMBER_IN_ID.match(task.id):
                numbers.setdefault(int(match[1]), []).append(task.id)
        self._are_numbered = bool(numbers)
        self._numbers = {number: ids[0] for number, ids in numbers.items() if len(ids) == 1}
        self._places = {place: task.id for place, task in enumerate(tasks, 1)}

    def iter_named(self, region: DependencyText) -> Iterator[tuple[str, float]]:
        """Yield the IDs of the tasks that `region` names, each with the confidence.

        `region` is the part of a sentence that names needs.
        """
        remaining_words = region.words
        last = 0
        for start, end, id_, confidence in sorted(self._iter_matches(region)):
            if is_region_end(remaining_words, start) and not (last and is_enumerated(remaining_words, last, start)):
                break
            if start >= last:
                yield id_, confidence
                last = end

    def iter_listed_tasks(self, listed: LabelEntry) -> Iterator[tuple[str, float]]:
        """Yield the tasks that a listed line names by ID, title or number, each with the confidence.

        Ignore other words.
        """
        for words in (listed.names, *_LISTED_BETWEEN.split(listed.names)):
            bare = _MARKUP.sub("", words).strip()
            if (
                id_ := self._match_listed_name(bare, is_hard=listed.is_ambiguous and bare == words.strip())
            ) is not None:
                yield id_, NAME_SURE
            elif (match := _TASK_NUMBER.match(bare)) is not None:
                numbers = list(self._iter_number_matches(bare, match))
                if numbers and max(end for _, end, _, _ in numbers) == len(bare):
                    yield from ((id_, confidence) for _, _, id_, confidence in numbers)

    def _match_listed_name(self, words: str, *, is_hard: bool) -> str | None:
        """Return the ID of the task that `words` name, or None.

        If `is_hard` is set, a common English word is not taken for an ID.
        """
        if words.casefold() in _WORDS_FOR_NO_TASK:
            return None
        plain = words.rpartition("/")[2].removesuffix(".md") if words.endswith(".md") else words
        labelled = _TASK_WITH_NAME.match(plain)
        id_ = self._ids.get(plain.casefold()) or (self._ids.get(labelled[1].casefold()) if labelled else None)
        if id_ is None:
            return self._titles.get(_normalise_words(words))
        return id_ if labelled or not is_hard or re.search(r"[\d_-]", id_) else None

    def _iter_matches(self, region: DependencyText) -> Iterator[tuple[int, int, str, float]]:
        remaining_words = region.words
        for match in _QUOTED_TEXT.finditer(remaining_words):
            words = next(group for group in match.groups() if group is not None)
            id_ = self._ids.get(words.casefold()) or self._titles.get(_normalise_words(words))
            if id_ is not None:
                yield match.start(), match.end(), id_, NAME_SURE
        for match in _TASK_NUMBER.finditer(remaining_words):
            yield from self._iter_number_matches(remaining_words, match)
        for match in _NAME_WORD.finditer(remaining_words):
            word = match[0].casefold().removesuffix(".md")
            id_ = self._ids.get(word)
            if id_ is not None and self._is_used_as_id(region, match, word):
                yield match.start(), match.end(), id_, NAME_SURE
            for title in self._long_titles.get(word, ()):
                end = match.start() + len(title)
                is_all = len(title.split()) >= _CERTAIN_TITLE_WORDS or self._lists_only_ids(region, match.start(), end)
                if (
                    remaining_words[match.start() : end].casefold() == title
                    and not remaining_words[end : end + 1].isalnum()
                    and is_all
                ):
                    yield match.start(), end, self._titles[title], NAME_SURE

    def _is_used_as_id(self, region: DependencyText, match: re.Match[str], word: str) -> bool:
        """Return whether a word in a sentence, which is equal to the ID of a task, is meant as this ID.

        A common word is meant as an ID only after `task` or `step`, or if the sentence names nothing else to wait for.
        """
        if re.search(r"[\d_-]", word) and not word.isdigit() and re.search(r"[a-z]", word):
            return True
        if word.isdigit() or len(word) < 2:
            return False
        before = region.words[: match.start()].strip().casefold()
        return before in ("task", "the task", "step") or self._lists_only_ids(region, match.start(), match.end())

    def _lists_only_ids(self, region: DependencyText, start: int, end: int) -> bool:
        """Return whether the sentence names only IDs to wait for, after a keyword that has no other use."""
        before, behind = region.words[:start], region.words[end:]
        while (match := _PREVIOUS_LISTED_ID.search(before)) and match[1].casefold() in self._ids:
            before = before[: match.start()]
        while (match := _NEXT_LISTED_ID.match(behind)) and match[1].casefold() in self._ids:
            behind = behind[match.end() :]
        return not region.is_hard and before.strip("`'\"* ").casefold() in ("", "the") and is_fully_read(behind)

    def _iter_number_matches(self, following_text: str, first: re.Match[str]) -> Iterator[tuple[int, int, str, float]]:
        is_bare = first["kind"].strip() == "#"
        if is_bare and (not self._are_numbered or _FOREIGN_NUMBER.search(following_text[: first.start()])):
            return
        match: re.Match[str] | None = first
        while match is not None:
            number = int(match["number"])
            id_ = self._numbers.get(number) if self._are_numbered else self._places.get(number)
            if id_ is not None:
                yield match.start(), match.end(), id_, NUMBER_SURE if self._are_numbered else PLACE_SURE
            match = _MORE_NUMBERS.match(following_text, match.end())


def _edges_by_names(tasks: Sequence[InferenceTask]) -> Iterator[CandidateEdge]:
    """Yield an edge from each task to each task for which the first task's text explicitly waits."""
    names = _TaskNames(tasks)
    for task in tasks:
        for sentence in (*iter_sentences(task.title), *iter_sentences(task.text)):
            for region in iter_regions(sentence):
                for on, confidence in names.iter_named(region):
                    yield CandidateEdge(task.id, on, confidence, f"its text: {_quote_excerpt(sentence)}")
        for listed in iter_label_entries(task.text):
            for on, confidence in names.iter_listed_tasks(listed):
                yield CandidateEdge(task.id, on, confidence, f"its text: {_quote_excerpt(listed.text)}")


def _edges_by_paths(tasks: Sequence[InferenceTask]) -> Iterator[CandidateEdge]:
    """Yield edges between tasks that mention the same file.

    A task needs the tasks that create a file which it mentions. If two tasks change the same file, the later task in
    the list needs the earlier one.
    """
    mentions = {task.id: mentioned_files(f"{task.title}\n\n{task.text}") for task in tasks}
    creators = _tasks_by_path({id_: files.created for id_, files in mentions.items()})
    changers = _tasks_by_path({id_: files.changed for id_, files in mentions.items()})
    for task in tasks:
        yield from _edges_by_created_files(task.id, mentions, creators)
    for path, ids in changers.items():
        for earlier, later in pairwise(ids):
            why = f"both change {path}: {_quote_excerpt(mentions[later].changed[path])}"
            yield CandidateEdge(later, earlier, CHANGED_SURE, why)


def _edges_by_created_files(
    task: str, mentions: Mapping[str, MentionedFiles], creators: Mapping[str, Sequence[str]]
) -> Iterator[CandidateEdge]:
    for path, sentence in mentions[task].named.items():
        if path not in mentions[task].created:
            for creator in creators.get(path, ()):
                reason = f"{creator} creates this file: {_quote_excerpt(mentions[creator].created[path])}"
                yield CandidateEdge(
                    task, creator, CREATED_SURE, f"its text mentions {path}: {_quote_excerpt(sentence)}; {reason}"
                )


def _tasks_by_path(paths_by_task: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for id_, paths in paths_by_task.items():
        for path in paths:
            ids.setdefault(path, []).append(id_)
    return ids


def _normalise_words(words: str) -> str:
    return " ".join(words.casefold().strip(" .:!").split())


def _quote_excerpt(sentence: str) -> str:
    excerpt = sentence if len(sentence) <= _QUOTED_CHARACTERS_MAX else f"{sentence[:_QUOTED_CHARACTERS_MAX].rstrip()}…"
    return f"\u201c{excerpt}\u201d"
