"""`inspect NAME` shows the definitions, callers, calls and tests of a symbol."""

from __future__ import annotations

import pytest

import codebatch as api
from codebatch.operations import ignore_note
from tests.support.command_line import CommandLine, write


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A small project with tests. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("symbols"))
    write(
        codebatch.directory / "shop/prices.py",
        "class Price:\n    def price_of(self):\n        return rate(rate(1))\n\n\ndef rate(n):\n    return n\n",
    )
    write(
        codebatch.directory / "shop/cart.py",
        "from shop.prices import Price\n\n\ndef total():\n    return Price().price_of()\n",
    )
    write(
        codebatch.directory / "tests/test_prices.py",
        "from shop.prices import Price\n\n\ndef test_of():\n    Price().price_of()\n    Price().price_of()\n",
    )
    write(
        codebatch.directory / "tests/test_cart.py", "from shop.cart import total\n\n\ndef test_total():\n    total()\n"
    )
    for number in range(8):
        write(codebatch.directory / f"many/m{number}.py", "def run():\n    pass\n")
    codebatch("run", ".", "--store", "store", "-q")
    return codebatch


def test_overview_lists_definition_callers_calls_and_tests(analysed: CommandLine) -> None:
    assert analysed("inspect", "price_of", "--store", "store").lines == [
        "shop/prices.py:2:9: method Price.price_of",
        "  def price_of(self):",
        "callers: 2 functions in 2 files",
        "  shop/cart.py:5: total",
        "  tests/test_prices.py:5: test_of  2 times",
        "calls: 1 name",
        "  shop/prices.py:3: rate  2 times",
        "tests: 2 files",
        "  tests/test_prices.py: 2 calls",
        "  tests/test_cart.py: 2 import steps away",
    ]
    answer = analysed("inspect", "price_of", "--store", "store", "--json").json
    assert answer["schema"] == "codebatch.inspect-symbol/1"
    assert [row["qualified"] for row in answer["definitions"]] == ["Price.price_of"]
    assert answer["calls"] == [
        {"path": "shop/prices.py", "scope": "Price.price_of", "line": 3, "target": "rate", "calls": 2}
    ]
    assert answer["tests"] == [
        {"path": "tests/test_prices.py", "distance": 0, "calls": 2},
        {"path": "tests/test_cart.py", "distance": 2, "calls": 0},
    ]


def test_overview_of_a_class_has_the_calls_of_its_methods(analysed: CommandLine) -> None:
    lines = analysed("inspect", "Price", "--store", "store").lines
    assert "calls: 1 name" in lines
    assert "  shop/prices.py:3: rate  2 times" in lines


def test_qualified_names_find_the_calls_of_methods(analysed: CommandLine) -> None:
    assert analysed("callers", "Price.price_of", "--store", "store").lines == [
        "shop/cart.py:5: total calls .price_of (inferred)",
        "tests/test_prices.py:5: test_of calls .price_of, 2 times (inferred)",
    ]


def test_calls_of_other_definitions_are_no_calls_of_an_external_name(analysed: CommandLine) -> None:
    notes = analysed("callers", "cart.price_of", "--store", "store").notes
    assert notes == "none: no calls of cart.price_of in 12 files (all parsed)\n"
    notes = analysed("callers", "oos.price_of", "--store", "store", status=2).notes
    assert notes.startswith("error: the batch has no name 'oos.price_of'\n")


def test_long_lists_are_cut_and_counted(analysed: CommandLine) -> None:
    lines = analysed("inspect", "run", "--store", "store").lines
    assert lines[:2] == ["many/m0.py:1:5: function run", "many/m1.py:1:5: function run"]
    assert lines[6:] == [
        "… and 2 more; see: codebatch def run",
        "callers: none: no calls in 12 files (all parsed)",
        "calls: none",
        "tests: none found",
    ]


def test_files_are_preferred_and_unknown_names_are_errors(analysed: CommandLine) -> None:
    assert analysed("inspect", "shop/cart.py", "--store", "store").lines[0].startswith("shop/cart.py  python")
    notes = analysed("inspect", "nowhere", "--store", "store", status=2).notes
    assert notes.startswith("error: the batch has no file or name 'nowhere'\n")
    notes = analysed("inspect", "shop/nowhere", "--store", "store", status=2).notes
    assert notes.startswith("error: the batch has no file 'shop/nowhere'\n")


def test_python_gives_the_same_overview_and_refuses_doubt(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree/a.py", "def lost():\n    pass\n")
    write(codebatch.directory / "tree/b.vue", "<script>lost()</script>\n")
    batch_id = codebatch("run", "tree", "--store", "store", "-q", "--json").json["batch_id"]
    notes = codebatch("inspect", "lost", "--store", "store", status=3).notes
    assert notes.startswith("none, but 1 file that was not analysed completely contains lost (2 files: ")
    with api.open(codebatch.directory / "store", note=ignore_note) as store:
        overview = store.batch(batch_id, partial=True).symbol_overview("lost")
        assert (overview.result.callers, overview.is_complete) == ([], False)
        with pytest.raises(api.BatchIncomplete, match="none, but 1 file"):
            store.batch(batch_id).symbol_overview("lost")
