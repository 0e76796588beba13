"""Uses with another spelling, in languages that compare names without case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codebatch.errors import InvalidInput
from tests.uses.small_batches import batch_of

_PHP = "<?php\nfunction getThing() {}\nclass Shop { function open() {} static function make() {} }\n"
SHAPES: list[tuple[str, Mapping[str, str], str, list[str], list[str]]] = [
    ("function", {"a.php": _PHP + "GETthing(); getThing();"}, "getThing",
     ["GETthing", "getThing"], ["GETthing", "getThing"]),
    ("function of another file", {"a.php": _PHP, "b.php": "<?php\ngetthing();"}, "getThing",
     ["getthing"], ["getthing"]),
    ("class", {"a.php": _PHP + "new shop();"}, "Shop", ["shop"], ["shop"]),
    ("method", {"a.php": _PHP + "function f(Shop $s) { $s->OPEN(); }"}, "open", ["$s->OPEN"], ["OPEN"]),
    ("static method", {"a.php": _PHP + "SHOP::Make();"}, "make", ["SHOP::Make"], ["Make"]),
    ("other languages compare with case", {"a.py": "def get(): ...\nGet()\n", "b.php": "<?php\nGET();\n"}, "get",
     [], []),
    ("SQL", {"a.sql": "CREATE FUNCTION area(x INT) RETURNS INT AS $$ SELECT 1 $$ LANGUAGE sql;\nSELECT AREA(1);\n"},
     "area", [], ["AREA"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "name", "targets", "written"), [shape[1:] for shape in SHAPES], ids=[s[0] for s in SHAPES]
)
def test_calls_in_any_spelling_are_found(
    tmp_path: Path, files: Mapping[str, str], name: str, targets: list[str], written: list[str]
) -> None:
    with batch_of(tmp_path, files) as batch:
        assert [use.use.target for use in batch.uses(name, role="call").result.uses] == targets
        assert bool(batch.callers(name).result) == bool(targets)
        found = [row["name"] for row in batch.references(name, role=("call", "reference")).result]
        assert found == written


def test_definitions_are_found_by_any_spelling(tmp_path: Path) -> None:
    files = {"a.php": _PHP + "const LIMIT = 1;\nfunction f(Shop $s) { getThing(); $s->open(); new Shop(); }\n"}
    with batch_of(tmp_path, files) as batch:
        for name in ("GETTHING", "shop.OPEN", "SHOP"):
            assert len(batch.definitions(name).result) == 1
            assert len(batch.callers(name).result) == 1
        roles = [row["role"] for row in batch.references("shop").result]
        assert roles == ["definition", "reference", "call"]
        with pytest.raises(InvalidInput, match="'limit'"):
            batch.definitions("limit")


def test_another_spelling_in_a_broken_file_is_a_doubt(tmp_path: Path) -> None:
    files = {"a.php": _PHP, "b.php": "<?php\nfunction f( { getthing( ]; } } )\n"}
    with batch_of(tmp_path, files) as batch:
        answer = batch.callers("getThing")
        assert answer.result or (answer.coverage is not None and answer.coverage.doubt)
