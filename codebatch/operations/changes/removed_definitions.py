"""The gate `uses`: changes that remove a definition which other files use (SPEC.md "Changes").

Only a change of the line that defines a symbol can remove the symbol. So few changed files are parsed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.model.change import ChangeRefusal, ProposedChange
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path
from codebatch.model.text.words import WordFinder
from codebatch.operations.names.symbol_uses import UseSearch
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.definitions import last_name_component
from codebatch.plugins.worker_services import name_services, use_services
from codebatch.query.answers.dependencies import DEPENDENCIES_TASK
from codebatch.query.fields import JsonRecord

_SYMBOLS_TASK = "symbols"
_OTHER_SYMBOLS = ("import", "parameter")


def refuse_removed_definitions(question: BatchQuery, changes: Sequence[ProposedChange]) -> list[ProposedChange]:
    """Return changes, of which those are refused that remove a definition while another file uses it.

    Only changes of the same task are taken into account, and changes that are refused already are left out. If the
    batch lacks a task that is needed for this, no change is refused, and a note is printed, as for a change
    whose contents are missing. Raises StoreCorrupt.
    """
    checked = [change for change in changes if change.refusal is None]
    if checked and _SYMBOLS_TASK not in question.records.task_names:
        _note_missing_task(question, _SYMBOLS_TASK)
        return list(changes)
    refusals: dict[tuple[bytes, str], ChangeRefusal] = {}
    for task in sorted({change.task for change in checked}):
        search = _RemovedDefinitions(question, [change for change in checked if change.task == task])
        for path, evidence in search.iter_evidence():
            refusals[path, task] = ChangeRefusal(gate="uses", evidence=evidence)
    return [
        msgspec.structs.replace(change, refusal=change.refusal or refusals.get((change.change.path, change.task)))
        for change in changes
    ]


class _RemovedDefinitions:
    """A search for the uses of definitions that the changes of one task remove."""

    def __init__(self, question: BatchQuery, changes: Sequence[ProposedChange]) -> None:
        self._records = question.records
        self._question = question
        self._changes = changes
        self._search: UseSearch | None = None
        self._read = self._records.store.objects().read
        self._afters = {change.change.path: change.change.after for change in changes}

    def iter_evidence(self) -> Iterator[tuple[bytes, str]]:
        """Yield the path of each refused change, with the evidence."""
        items = self._records.find_items(change.change.path for change in self._changes)
        for change in (change.change for change in self._changes):
            item = items.get(change.path)
            if item is None or change.before is None or change.before == change.after:
                continue
            try:
                removed = self._removed_names(item, change.path, change.before)
            except ObjectMissing as error:
                self._question.note(f"the gate `uses` was left out for {display_path(change.path)}: {error.message}")
                continue
            if removed and DEPENDENCIES_TASK not in self._records.task_names:
                _note_missing_task(self._question, DEPENDENCIES_TASK)
                return
            for qualified in removed:
                use = self._remaining_use(change.path, qualified)
                if use:
                    yield change.path, f"`{qualified}` is removed, but {use} uses it"
                    break

    def _removed_names(self, item: int, path: bytes, before: Digest) -> list[str]:
        """Return the qualified names of the symbols that a change removes."""
        symbols = [
            record
            for record in self._records.item_records(_SYMBOLS_TASK, item) or ()
            if record["kind"] == "symbol" and record["symbol_type"] not in _OTHER_SYMBOLS
        ]
        after = self._new_content(path)
        if after is None or not symbols:
            return [str(symbol["qualified"]) for symbol in symbols]
        lines = self._read(before).split(b"\n")
        gone = Counter(lines) - Counter(after.split(b"\n"))
        touched = [str(symbol["qualified"]) for symbol in symbols if _is_touched(symbol, lines, gone)]
        if not touched:
            return []
        defined = use_services().defined_names(path, after, self._records.plan.item_contexts(item))
        return [qualified for qualified in dict.fromkeys(touched) if qualified not in defined]

    def _new_content(self, path: bytes) -> bytes | None:
        after = self._afters[path]
        return None if after is None else self._read(after)

    def _remaining_use(self, path: bytes, qualified: str) -> str:
        """Return the place of a use of a symbol in another file that still has its name, or an empty text."""
        name = last_name_component(qualified)
        if self._search is None:
            self._search = UseSearch(self._question)
        for item, entry in self._records.items_with_name(name):
            if entry.path == path or not self._keeps_name(item, entry.path, name):
                continue
            line = self._search.first_exact_use(entry.path, name, (os.fsdecode(path), qualified))
            if line is not None:
                return f"{display_path(entry.path)}:{line}"
        return ""

    def _keeps_name(self, item: int, path: bytes, name: str) -> bool:
        """Return whether a file still uses a name after the changes."""
        if path not in self._afters:
            return True
        after = self._new_content(path)
        if after is None or not WordFinder((name,)).is_in(after):
            return False
        places = name_services().references_in(name, path, after, self._records.plan.item_contexts(item))
        return any(place["role"] != "definition" for place in places)


def _note_missing_task(question: BatchQuery, task: str) -> None:
    question.note(f"the gate `uses` was left out: the batch has no task {task!r}")


def _is_touched(symbol: JsonRecord, lines: Sequence[bytes], gone: Mapping[bytes, int]) -> bool:
    """Return whether the new content may lack the line that defines a symbol. In a notebook, this is unknown."""
    line = symbol["line"]
    assert isinstance(line, int)
    return "cell" in symbol or line > len(lines) or lines[line - 1] in gone
