"""Tests of the decision table for existing batches of a plan."""

from __future__ import annotations

from itertools import product

from codebatch.operations.runs.planning import MatchDecision, PlanMatch, decide_match

_TABLE: list[tuple[str, MatchDecision]] = [
    # The facts are answers, has_commit, is_settled, is_adoptable. `?` matches both values.
    ("n??n", "ignore"),
    ("yy??", "use"),
    ("yn?n", "use"),
    ("ynny", "use"),
    ("ynyy", "adopt"),
    ("n?ny", "use"),
    ("n?yy", "adopt"),
]


def test_each_combination_of_facts_has_one_row_and_its_decision() -> None:
    for facts in product("yn", repeat=4):
        rows = [row for row in _TABLE if all(cell in ("?", fact) for cell, fact in zip(row[0], facts, strict=True))]
        assert len(rows) == 1, facts
        answers, has_commit, is_settled, is_adoptable = (fact == "y" for fact in facts)
        match = PlanMatch(
            has_same_plan=answers, has_commit=has_commit, is_settled=is_settled, is_adoptable=is_adoptable
        )
        assert decide_match(match) == rows[0][1], facts
