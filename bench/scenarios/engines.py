"""A cold run on an engine, against the same run by workers of this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from bench.measuring import alternate
from bench.rows import Row, Target, pair_row
from bench.setting import Setting, without

_SLOTS = 2
_LIMITS: tuple[tuple[Literal["wall", "cpu"], float], ...] = (("cpu", 1.3), ("wall", 1.35))


def engines(setting: Setting) -> Iterator[Row]:
    """Run each corpus with two workers, and on the engine `local:2`."""
    for corpus in setting.corpora:
        store = setting.scratch / "store"
        words = ("run", corpus.root, "--store", store, "--quiet")
        try:
            workers = setting.codebatch("workers", *words, "-j", str(_SLOTS), prepare=without(store))
            engine = setting.codebatch("engine", *words, "--on", f"local:{_SLOTS}", prepare=without(store))
            by_workers, by_engine = alternate([workers, engine], setting.runs)
        finally:
            without(store)()
        for by, limit in _LIMITS:
            yield pair_row(
                "engines", f"cold run on local:{_SLOTS}", corpus.name, ours=("engine", by_engine),
                theirs=(f"-j {_SLOTS}", by_workers), by=by, target=Target(limit=limit, source="SPEC"),
            )  # fmt: skip
