"""The changes of withheld_cases.py through two real batches, told as they are, and the other way round."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

import codebatch
from codebatch.application.comparing import Comparison, compare
from codebatch.model.record import Diagnostic
from tests.compare.withheld_cases import CASES, Row

Told = Mapping[str, list[Row]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Told, Told]]:
    """What became of the findings of each case, and of those of the other way round."""
    root = tmp_path_factory.mktemp("withheld")
    (root / ".git").mkdir()
    for side in (0, 1):
        shutil.rmtree(root / "cases", ignore_errors=True)
        for name, case in CASES.items():
            for path, text in (case.new if side else case.old).items():
                place = root / "cases" / name / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text.replace("@", name.replace("-", "_")))
        command = [sys.executable, "-m", "codebatch", "run", ".", "--jobs", "1", "--quiet"]
        ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 1), ended.stderr
    with codebatch.open(root / ".codebatch") as store:
        old, new = store.batch("latest~1"), store.batch("latest")
        yield _by_case(compare(old, new)), _by_case(compare(new, old))


def _by_case(comparison: Comparison) -> Told:
    found: dict[str, list[Row]] = defaultdict(list)
    for each in comparison.differences():
        record = each.new or each.old
        assert isinstance(record, Diagnostic)
        if (each.old is None or each.new is None) and record.code != "syntax-error":
            _, name, path = str(record.path).split("/", 2)
            found[name].append((each.state, each.reason or "", record.code, f"{path}:{record.line}"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_withheld_is_neither_new_nor_fixed(name: str, told: tuple[Told, Told]) -> None:
    case = CASES[name]
    there, back = told
    assert sorted(there.get(name, [])) == sorted(case.rows)
    assert sorted(back.get(name, [])) == sorted(case.back)
