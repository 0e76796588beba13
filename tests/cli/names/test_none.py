"""`none` is printed only if no file can contain a result. Otherwise the answer is `none, but`, with status 3."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

import pytest

import codebatch as api
from codebatch.operations import ignore_note
from codebatch.snapshotting import left_out
from tests.cli.names.hidden_uses import HIDING_PLACES, write_hidden_uses
from tests.support.command_line import CommandLine, write

REASONS = {
    "ignored": "ignored", "generated": "ignored", "excluded": "ignored", "huge": "huge", "minified": "minified",
    "broken": "errors", "partial": "partial", "binary": "binary", "utf16": "unsupported", "wide": "binary",
    "unsupported": "unsupported", "unknown": "unsupported", "template": "unsupported", "html": "markup",
}  # fmt: skip


class HiddenUses(NamedTuple):
    """A tree with hidden uses, its batch, and the place of each name."""

    codebatch: CommandLine
    batch_id: str
    places: dict[str, str]


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> HiddenUses:
    """Hidden uses that tests only read."""
    codebatch = CommandLine(tmp_path_factory.mktemp("hidden"))
    places = write_hidden_uses(codebatch.directory / "tree", 2)
    batch_id = codebatch("run", "tree", "--store", "store", "-q", "--json").json["batch_id"]
    return HiddenUses(codebatch, batch_id, places)


def test_every_hidden_use_is_reported_with_its_file_and_reason(hidden: HiddenUses) -> None:
    codebatch, batch_id, places = hidden
    with api.open(codebatch.directory / "store", note=ignore_note) as store:
        batch = store.batch(batch_id, partial=True)
        for name, place in places.items():
            answer = batch.references(name)
            if answer.result:  # The parser found the use in spite of errors.
                assert place in ("broken", "partial"), name
                continue
            assert answer.coverage is not None
            path = HIDING_PLACES[place][0].format(f"file{name[-1]}")
            assert [(file.path, file.reason) for file in answer.coverage.doubtful] == [(path, REASONS[place])], name
            assert "1 file that was not analysed completely contains" in answer.completeness.doubt, name
        for question in (batch.definitions, batch.callers):
            for name in places:
                found = question(name)
                assert found.result or not found.is_complete, name
        with pytest.raises(api.BatchIncomplete, match="none, but 1 file that was not analysed completely contains"):
            store.batch(batch_id).references("use_binary_0")


def test_doubt_is_printed_even_if_quiet_and_sets_the_exit_status(hidden: HiddenUses) -> None:
    codebatch = hidden.codebatch
    for command in ("references", "callers", "def"):
        ended = codebatch(command, "use_ignored_0", "--store", "store", "-q", status=3)
        assert re.fullmatch(
            r"none, but 1 file that was not analysed completely contains use_ignored_0 \(.*, 6 ignored\):\n"
            r"  build/file0\.py: ignored \(\.gitignore:1:build/\)\n",
            ended.notes,
        )
        assert ended.text == ""
        answer = codebatch(command, "use_excluded_1", "--store", "store", "--json", status=3).json
        assert (answer["complete"], answer["records"]) == (False, [])
        assert answer["coverage"]["doubtful"] == answer["not_searched"]
        (file,) = answer["not_searched"]
        assert file.pop("detail") == ".codebatchignore:1:private/"
        assert file == {"path": "private/file1.rb", "reason": "ignored", "occurrences": 0}
    narrowed = codebatch("references", "use_ignored_0", "src", "--store", "store").notes
    assert narrowed.startswith("none: no references to use_ignored_0 in src in ")


def test_names_of_no_file_are_unknown(hidden: HiddenUses) -> None:
    """An independent search decides for random names whether a file contains their bytes."""
    codebatch, batch_id, places = hidden
    root = codebatch.directory / "tree"
    contents = [path.read_bytes() for path in root.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
    generator = random.Random(1)
    with api.open(codebatch.directory / "store", note=ignore_note) as store:
        batch = store.batch(batch_id, partial=True)
        for _ in range(30):
            base = generator.choice([*places, "used", "script", "return", "filler"])
            name = generator.choice([base, base[: generator.randrange(2, len(base))], base + "x", base[1:]])
            if "filler" in base or "huge" in base:
                continue
            is_there = any(_contains(content, name) for content in contents)
            if is_there:
                assert batch.references(name).result or batch.references(name).coverage, name
                continue
            for question in (batch.references, batch.callers, batch.definitions, batch.symbol_impact):
                with pytest.raises(api.InvalidInput, match=r"the batch has no .*name"):
                    question(name)


def _contains(content: bytes, name: str) -> bool:
    bounded = re.compile(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])")
    return any(bounded.search(content.decode(encoding, "ignore")) for encoding in ("latin-1", "utf-16", "utf-16-le"))


def test_comments_longer_strings_and_prose_are_no_doubt(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "# quiet\nx = 'a quiet place'\n")
    write(codebatch.directory / "b.yaml", "quiet: 1\n")
    write(codebatch.directory / "c.py", "loud = 1\n")
    write(codebatch.directory / "d.rst", "quiet\n")
    write(codebatch.directory / "CHANGES", "quiet\n")
    codebatch("run", ".", "-q")
    ended = codebatch("references", "quiet")
    none, only_text, prose = ended.notes.splitlines()
    assert none == "none: no references to quiet in 5 files (3 parsed, 2 of prose)"
    assert only_text == "2 parsed files contain quiet only in comments, strings or data"
    assert prose == "2 files of prose contain quiet"
    coverage = codebatch("references", "quiet", "--json").json["coverage"]
    assert (coverage["text_only"], coverage["documents"]) == (2, 2)
    assert codebatch("references", "loud", "--json").json["coverage"]["text_only"] == 0
    # A file with results in other roles is not counted.
    assert codebatch("references", "loud", "--role", "call", "--json").json["coverage"]["text_only"] == 0
    # The parser may have read such a name as several tokens.
    write(codebatch.directory / "a.py", "def loud(): return 1\nloud()-1\n")
    codebatch("run", ".", "-q")
    notes = codebatch("references", "()-1", status=3).notes
    assert notes.endswith("  a.py: parsed, but the name is not a plain identifier\n")
    assert "'a.loud' is not a single identifier" in codebatch("references", "a.loud", status=2).notes


def test_older_batches_do_not_search_ignored_files(codebatch: CommandLine) -> None:
    write(codebatch.directory / ".gitignore", "out\n")
    write(codebatch.directory / "out" / "a.py", "lost()\n")
    write(codebatch.directory / "b.py", "x = 1  # lost\n")
    old = codebatch("run", ".", "-q", "--json").json["batch_id"]
    codebatch("references", "lost", "--batch", old, status=3)
    write(codebatch.directory / "b.py", "x = 2\n")
    codebatch("run", ".", "-q")
    notes = codebatch("references", "lost", "--batch", old).notes
    assert notes.startswith("none: no references to lost in 2 files (all parsed; ignored files were not searched)\n")


def test_impact_without_dependents_searches_for_the_name_of_the_file(codebatch: CommandLine) -> None:
    write(codebatch.directory / "shop" / "prices.py", "x = 1\n")
    write(codebatch.directory / "shop" / "page.vue", "<script>import './prices'</script>\n")
    write(codebatch.directory / "box" / "__init__.py", "y = 1\n")
    codebatch("run", ".", "-q")
    notes = codebatch("impact", "shop/prices.py", status=3).notes
    assert "contains prices (3 files: 2 parsed, 1 without a grammar):\n  shop/page.vue: no grammar for vue\n" in notes
    codebatch("impact", "shop/prices.py", "--tests", status=3)
    assert codebatch("impact", "box/__init__.py").notes.startswith(
        "none: no dependents of box/__init__.py in 3 files ("
    )
    assert codebatch("impact", "box/__init__.py", "--json").json["coverage"]["words"] == ["box"]


def test_files_beyond_the_limits_are_counted(codebatch: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    write(codebatch.directory / "tree" / ".gitignore", "out\n")
    write(codebatch.directory / "tree" / "b.py", "x = 1\n")
    for number in range(5):
        write(codebatch.directory / "tree" / "out" / f"{number}.txt", "other\n" * 10)
    batch_id = codebatch("run", "tree", "--store", "store", "-q", "--json").json["batch_id"]
    write(codebatch.directory / "tree" / "out" / "deep" / "5.txt", "other\n")
    with api.open(codebatch.directory / "store", note=ignore_note) as store:
        batch = store.batch(batch_id, partial=True)
        with pytest.raises(api.InvalidInput, match="no name 'absent'"):
            batch.references("absent")
        with monkeypatch.context() as changed:
            changed.setattr(left_out, "SEARCHED_FILES_MAX", 0)
            changed.setattr(left_out, "COUNTED_FILES_MAX", 3)
            doubt = batch.references("absent").completeness.doubt
            assert doubt == "none, but at least 5 ignored files were not searched"
        for limit, value, doubt in (
            ("SEARCHED_FILES_MAX", 2, "none, but 4 ignored files were not searched"),
            ("SEARCHED_BYTES_MAX", 130, "none, but 3 ignored files were not searched"),
        ):
            with monkeypatch.context() as changed:
                changed.setattr(left_out, limit, value)
                assert batch.references("absent").completeness.doubt == doubt, limit
