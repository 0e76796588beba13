"""Planted bad rewrites are refused, each by its gate. Good ones pass."""

from __future__ import annotations

import pytest

from codebatch.model.digest import Digest
from codebatch.model.record import Diagnostic, FileChange
from codebatch_workers.runtime.record_validation import validate_records
from codebatch_workers.syntax.patterns.rewriting import compile_rewrite
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.rewrites import RewriteTask
from codebatch_workers.tasks.syntax_errors import SyntaxErrors
from tests.transformations.planted_rewrites import GOOD_REWRITES, PLANTED_REWRITES, PlantedRewrite


@pytest.mark.parametrize("planted", [*PLANTED_REWRITES, *GOOD_REWRITES])
def test_bad_rewrite_is_refused_and_good_one_passes(planted: PlantedRewrite, errors: SyntaxErrors) -> None:
    task = RewriteTask([compile_rewrite(planted.pattern, planted.rewrite, planted.language)], errors)
    contexts = {"attributes": b"language=" + planted.language.encode()}
    file = SourceFile(b"a", planted.content.encode(), executable=False, contexts=contexts)
    stored: list[bytes] = []

    def put_object(data: bytes) -> Digest:
        stored.append(data)
        return Digest("0" * 64)

    (record,) = validate_records(
        task.run_file(file), file, task.run_file, find_errors=errors.find, put_object=put_object
    )
    if planted.gate == "left out":
        assert isinstance(record, Diagnostic)
        assert record.code == "not-rewritten"
        return
    assert isinstance(record, FileChange)
    assert len(stored) == 1
    assert (record.refused_by or None) == planted.gate, record.evidence
    assert bool(record.evidence) == (planted.gate is not None)


def test_twenty_bad_rewrites_are_planted() -> None:
    assert len(PLANTED_REWRITES) == 20
    assert {planted.gate for planted in PLANTED_REWRITES} == {"left out", "repeat", "findings"}
