"""Severities match the verdicts of a reader: the table is counted again, and each rule is checked against it."""

from __future__ import annotations

from collections import Counter

import pytest

from codebatch.model.record import SEVERITIES as FROM_GRAVEST
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.lint.text_rules import TEXT_RULES
from tests.signal.sampling import FINDINGS_OF_A_RULE_MAX, FREQUENT, JUDGED_MIN, NO_RULES, Finding, sample
from tests.signal.table import HERE, SHIPPED, Verdict, counted, gravest, judged, rounds, shipped, trees

SEVERITY_OF = {**SEVERITY_BY_CODE, **{rule.code: rule.severity for rule in TEXT_RULES if rule.is_on}}
# Rules that are not part of lint: a syntax error is real or not, and if it was not, the parser was fixed (README.md).
OF_THE_PARSER = {"syntax-error"}


def test_rule_severity_does_not_exceed_its_verdicts() -> None:
    limits = {code: gravest(counts) for code, counts in counted().items() if code not in OF_THE_PARSER}
    assert not {
        code for code, limit in limits.items() if FROM_GRAVEST.index(SEVERITY_OF[code]) < FROM_GRAVEST.index(limit)
    }


def test_unjudged_rules_of_rarely_fixed_families_are_hints() -> None:
    for family in ("ASYNC", "S", "YTT"):
        codes = [code for code in SEVERITY_BY_CODE if code.rstrip("0123456789") == family]
        of_family = sum((counted().get(code, Counter()) for code in codes), Counter[Verdict]())
        assert 10 * of_family["fix"] < of_family.total()
        guessed = [code for code in codes if counted().get(code, Counter()).total() < JUDGED_MIN]
        assert {SEVERITY_BY_CODE[code] for code in guessed} == {"hint"}


def test_readme_matches_the_judged_rounds() -> None:
    readme = (HERE / "README.md").read_text()
    verdicts_by_tree: dict[tuple[int, str, str], Counter[Verdict]] = {}
    for row in rounds():
        verdicts_by_tree.setdefault((row.round, row.tree, row.version.partition("-")[0]), Counter())[row.verdict] += 1
    for (number, tree, version), verdicts in verdicts_by_tree.items():
        assert f"| {number} | {tree} {version} | {verdicts['fix']} of {verdicts.total()} |" in readme


def test_half_of_the_errors_and_warnings_would_be_fixed() -> None:
    totals: Counter[Verdict] = Counter()
    for code, counts in counted().items():
        if SEVERITY_OF.get(code) in ("error", "warning"):
            totals += counts
    assert 2 * totals["fix"] >= totals.total() - totals["test-data"]


def test_shipped_counts_match_the_table() -> None:
    """If this fails, run `python -m tests.signal --write`."""
    assert SHIPPED.read_bytes() == shipped()


def test_every_judged_row_has_a_tree_and_a_reason() -> None:
    versions = {tree.tree: tree.version for tree in trees()}
    rows = judged()
    assert {row.tree for row in rows} <= versions.keys()
    for row in rows:
        assert row.version == versions[row.tree]
        assert row.why
        assert row.line >= 1
    assert max(Counter(row.code for row in rows).values()) == FINDINGS_OF_A_RULE_MAX


def make_finding(code: str, tree: str, path: str, line: int) -> Finding:
    return Finding(tree=tree, version="1", path=path, line=line, code=code, severity="error", message="")


def test_sample_is_independent_of_order_and_alternates_trees() -> None:
    findings = [make_finding("A", "much", f"{path}.py", line) for path in range(8) for line in range(1, 11)]
    findings += [make_finding("A", "little", "a.py", line) for line in range(1, 5)]
    findings += [make_finding(next(iter(NO_RULES)), "much", "a.py", 1)]
    drawn = sample(findings)
    assert drawn == sample(reversed(findings))
    assert drawn.keys() == {"A"}
    assert len(drawn["A"]) == FINDINGS_OF_A_RULE_MAX
    assert Counter(each.tree for each in drawn["A"]) == {"little": 4, "much": FINDINGS_OF_A_RULE_MAX - 4}
    # A second finding of a file is drawn after every other file has had its first.
    assert len({each.path for each in drawn["A"] if each.tree == "much"}) == 8
    # Later trees are used for rules with too few findings.
    more = [
        make_finding("A", "other", "a.py", 1),
        make_finding("B", "other", "a.py", 1),
        make_finding("B", "other", "a.py", 2),
    ]
    assert {
        code: len(each) for code, each in sample([*findings, make_finding("B", "much", "a.py", 3)], more).items()
    } == {
        "A": FINDINGS_OF_A_RULE_MAX,
        "B": 3,
    }


def test_frequent_rules_are_sampled_fully_from_the_fourth_turn() -> None:
    few = [make_finding(f"F{number:02}", "first", "a.py", line) for number in range(FREQUENT) for line in range(1, 4)]
    rare = [make_finding("R", "first", "a.py", 1)]
    more = [make_finding(code, "other", "a.py", line) for code in ("F00", "R") for line in range(1, 41)]
    assert Counter(code for code, each in sample([*few, *rare], [], [], more).items() for _ in each) == {
        **{f"F{number:02}": 3 for number in range(1, FREQUENT)},
        "F00": FINDINGS_OF_A_RULE_MAX,
        "R": FINDINGS_OF_A_RULE_MAX,
    }
    # All turns together decide which rules are frequent, and so does the first turn alone.
    assert len(sample([*few, *rare], [], [], more[:41])["R"]) == 2


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"wrong": 1}, "error"),
        ({"wrong": 1, "deliberate": 1, "fix": 1}, "hint"),
        ({"wrong": 1, "fix": 1}, "error"),
        ({"style": 3, "fix": 1}, "info"),
        ({"style": 4, "fix": 1}, "hint"),
        ({"test-data": 3}, "warning"),
        ({"test-data": 3, "fix": 1, "style": 1}, "error"),
    ],
)
def test_severity_follows_from_verdicts(counts: dict[Verdict, int], expected: str) -> None:
    assert gravest(Counter(counts)) == expected
