"""A check of the earlier trees that assignments name, against the outcomes and answers on disk."""

from __future__ import annotations

from codebatch.model.work.request import Answer
from codebatch.protocol.messages import Assign
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.work.attempts import read_attempt
from codebatch.store.work.requests import RequestStore


def check_tree_input(assigned: Assign, batch: BatchDir) -> None:
    """Check that an attempt continues the tree of a question with an answer, or has that of a failure beside its own.

    An outcome that cannot be read any more is not checked.
    """
    tree = assigned.brief.tree
    assert tree is not None
    unit = assigned.unit
    assert not (tree.continued_round and tree.previous_round)
    round_ = tree.continued_round or tree.previous_round
    assert round_ < unit.round
    outcome = read_attempt(batch.files, batch.root, unit.shard, unit.start, round_) if round_ else None
    if outcome is None:
        return
    bodies = [request.body for request in RequestStore(batch.files, batch.root).read()]
    has_answer = any(
        isinstance(body, Answer) and (body.question, body.round) == (outcome.question, round_) for body in bodies
    )
    if tree.continued_round:
        assert outcome.type == "blocked"
        assert has_answer
    else:
        assert outcome.type in ("failed", "blocked")
