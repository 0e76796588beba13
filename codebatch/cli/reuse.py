"""`explain-miss`: results that were not taken over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from codebatch.application.configuration import load_configuration
from codebatch.application.misses import MissesAnswer, Reason, explain_misses
from codebatch.cli.options import Answering, answering
from codebatch.model.digest import DIGEST_PATTERN
from codebatch.model.entry import display_path, path_from_fields
from codebatch.model.misses import Difference

_DIGEST_SHOWN = 12
_BATCH = re.compile(r"latest(~.*)?\Z|batch-")
_TOLD = {
    "object": "content",
    "executable": "executable bit",
    "config": "configuration",
    "tree": "the tree",
    "paths": "the paths",
    "shards": "other shards",
    "path": "new file",
    "task": "no such task there",
    "needs": "the key of",
    "result": "no result there",
    "base": "that batch is",
    "bases": "no older batch was asked",
    "own_task": "results of own tasks are not taken over",
    "round": "done again after it had failed",
    "not_taken": "the same, but it was not taken: it was not asked, or has it only since",
    "unknown": "what was taken over has changed since, which files they are is not known",
}


@click.command("explain-miss")
@click.argument("words", metavar="[BATCH] [FILE]", nargs=-1)
@click.option("--task", "task", metavar="NAME", help="Only this task. Default: all.")
@answering
def explain_miss(answering: Answering, words: tuple[str, ...], task: str | None) -> None:
    """Why results of a batch (default: latest) were executed, and not taken over from older ones.

    Of every task or of one, for all files in sum or for one: what differs from the nearest of the batches that were
    asked. One word alone is a FILE unless it begins with `batch-` or is `latest` or `latest~N`.
    """
    if len(words) > 2:
        raise click.UsageError("name a batch and a file at most")
    is_batch = len(words) == 2 or (words and _BATCH.match(words[0]))
    reference, path = (*words, None)[:2] if is_batch else (None, *words, None)[:2]
    store, batch = answering.batch(reference)
    catalogue = load_configuration(Path.cwd()).catalogue
    answer = explain_misses(store, batch, catalogue, path=path, task=task, note=answering.note)
    answering.print(answer, _lines(answer))


def _lines(answer: MissesAnswer) -> Iterator[str]:
    for task in answer.tasks:
        yield f"{task.task}: {task.executed:,} executed, {task.served:,} taken over"
        for reason in task.reasons:
            told = "; ".join(map(_told, reason.differences))
            against = f" ({reason.base})" if reason.base else ""
            yield f"  {reason.count:,}: {told}{against}{_first_paths(reason)}"


def _told(difference: Difference) -> str:
    words = [_TOLD.get(difference.field, difference.field), *([difference.name] if difference.name else [])]
    if difference.new is not None:
        words.append(f"{_short(difference.old)} -> {_short(difference.new)}")
    elif difference.old is not None:
        words.append(f"{_short(difference.old)} -> -" if difference.name else difference.old)
    return " ".join(words)


def _short(value: str | None) -> str:
    return "-" if value is None else value[:_DIGEST_SHOWN] if DIGEST_PATTERN.match(value) else value


def _first_paths(reason: Reason) -> str:
    shown = [display_path(path_from_fields(row.get("path"), row.get("path_b64"))) for row in reason.paths]
    more = reason.count - len(shown)
    return f": {', '.join(shown)}{f' and {more:,} more' if more else ''}" if shown else ""
