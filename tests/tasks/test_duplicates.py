"""Tests of the task duplicates: every repeated block of ten code lines is found, in less than quadratic time."""

from __future__ import annotations

import hashlib
import random
import re
import tracemalloc
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codebatch.model.digest import Digest
from codebatch.model.record import Duplicate, Fingerprints, Metric, Record
from codebatch_workers.duplicates import repeats
from codebatch_workers.duplicates.code_lines import code_lines
from codebatch_workers.duplicates.fingerprints import LINES_MIN, make_fingerprints
from codebatch_workers.duplicates.import_statements import import_spans
from codebatch_workers.duplicates.repeats import REPEATED_BYTES_MIN, CodeText, RepeatedLines, maximal_repeats
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.duplicates import FingerprintedFile, find_duplicates
from tests.support.resources import cpu_time_below
from tests.support.source_files import created, source

Place = tuple[int, int]
Span = tuple[int, int]


def duplicates(files: Mapping[str, str]) -> dict[str, list[Record]]:
    """Return the records of each file of a tree that has duplicate blocks."""
    sources = [source(path, content) for path, content in sorted(files.items())]
    records_by_item = find_duplicates(fingerprinted(sources), lambda item: sources[item].utf8)
    return {sources[item].path.decode(): records for item, records in records_by_item}


def fingerprinted(sources: Sequence[SourceFile]) -> Iterable[FingerprintedFile]:
    for item, file in enumerate(sources):
        fingerprints = make_fingerprints(file)
        if fingerprints is not None:
            digest = Digest(hashlib.sha256(file.content).hexdigest())
            yield FingerprintedFile(item=item, path=file.path, object=digest, fingerprints=fingerprints)


def blocks(records: Iterable[Record]) -> list[Duplicate]:
    return [record for record in records if isinstance(record, Duplicate)]


def python(lines: Iterable[int]) -> str:
    """Return a Python file with a statement of 40 bytes for each number."""
    return "".join(f"first_name_{line} = second_name_of_it({line:06})\n" for line in lines)


# -- The definition, executed literally --------------------------------------------------------------------------------


class Definition:
    """The definition in workers/TASKS.md "Duplicates", applied to some files by trying every pair of places."""

    def __init__(self, files: Sequence[Sequence[int]]) -> None:
        self.files = files
        by_window: defaultdict[tuple[int, ...], list[Place]] = defaultdict(list)
        for file, lines in enumerate(files):
            for start in range(len(lines) - LINES_MIN + 1):
                by_window[tuple(lines[start : start + LINES_MIN])].append((file, start))
        self._tables = {window for window, places in by_window.items() if any(map(_overlap, places, places[1:]))}
        classes = [places for window, places in by_window.items() if window not in self._tables]
        self.most_places = max(map(len, classes), default=0)
        self.has_rows = False
        self.spans: list[set[Span]] = [set() for _ in files]
        for places in classes:
            for one in places:
                for other in places:
                    if one != other:
                        self.spans[one[0]].update(self._repeated_spans(one, other))
        for file, lines in enumerate(files):
            if len(lines) >= LINES_MIN and sum(lines == whole for whole in files) > 1:
                self.spans[file] = {(0, len(lines))}

    def _repeated_spans(self, one: Place, other: Place) -> list[Span]:
        (file, start), (other_file, other_start) = one, other
        lines, other_lines = self.files[file], self.files[other_file]
        end, other_end = start, other_start
        while start and other_start and lines[start - 1] == other_lines[other_start - 1]:
            start, other_start = start - 1, other_start - 1
        while end < len(lines) and other_end < len(other_lines) and lines[end] == other_lines[other_end]:
            end, other_end = end + 1, other_end + 1
        size = end - start
        if file == other_file and size > abs(start - other_start):
            self.has_rows = True
            size = abs(start - other_start)
        return [(first, first + size) for first in range(start, end - size + 1)]

    def covered(self, file: int) -> set[int]:
        return {line for start, end in self.spans[file] for line in range(start, end)}

    def cover(self, file: int) -> list[Span]:
        chosen: list[Span] = []
        left = self.covered(file)
        while left:
            first = min(left)
            reaching = [span for span in self.spans[file] if span[0] <= first < span[1]]
            chosen.append(max(reaching, key=lambda span: (span[1], -span[0])))
            left -= set(range(*chosen[-1]))
        return chosen

    def places(self, lines: Sequence[int]) -> list[Place]:
        """Return the places of these lines. If they are a table up to its end, only equal files count."""
        windows = (tuple(lines[start : start + LINES_MIN]) for start in range(len(lines) - LINES_MIN + 1))
        is_table = all(window in self._tables for window in windows)
        return [
            (file, start)
            for file, whole in enumerate(self.files)
            for start in range(len(whole) - len(lines) + 1)
            if whole[start : start + len(lines)] == lines and not (is_table and whole != lines)
        ]


def _overlap(one: Place, other: Place) -> bool:
    return one[0] == other[0] and other[1] - one[1] < LINES_MIN


_CHUNK = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@st.composite
def _trees(draw: st.DrawFn) -> list[list[int]]:
    chunks = draw(st.lists(_CHUNK, min_size=1, max_size=4))
    picks = st.lists(st.sampled_from(chunks), min_size=1, max_size=8).map(lambda picked: list(chain(*picked)))
    return draw(st.lists(picks, min_size=1, max_size=5))


@given(_trees())
@example([[int(line) for line in "101010100010101010001010001010"]])
@example([[int(line) for line in "00101000101000101010100010101010"]])
@example([[*range(11)], [*range(10), 20], [21, *range(1, 11)]])
@settings(max_examples=300, deadline=None)
def test_duplicate_blocks_match_the_definition(files: list[list[int]]) -> None:
    expected = Definition(files)
    tree = {f"{number:02}.py": python(lines) for number, lines in enumerate(files)}
    records_by_file = {int(path[:2]): records for path, records in duplicates(tree).items()}
    for number, lines in enumerate(files):
        records = records_by_file.get(number, [])
        spans = [(block.line - 1, block.end_line - 1) for block in blocks(records)]
        covered = {line for span in spans for line in range(*span)}
        # If blocks contain rows, some may be missed: those that have no other copy once joined.
        assert covered == expected.covered(number) or (expected.has_rows and covered < expected.covered(number))
        assert [record.value for record in records[:2] if isinstance(record, Metric)] == (
            [len(covered), len(spans)] if spans else []
        )
        if not expected.has_rows and expected.most_places <= 9:
            assert spans == expected.cover(number)
        for block, (start, end) in zip(blocks(records), spans, strict=True):
            places = expected.places(lines[start:end])
            disjoint = [place for place in places if place[0] != number or abs(place[1] - start) >= end - start]
            if not disjoint and expected.has_rows:
                continue  # All copies overlap the block. The definition does not determine which one is reported.
            other = disjoint[0]
            assert (block.lines, block.copies) == (end - start, _count_disjoint(places, end - start))
            assert (block.other_path, block.other_line - 1) == (f"{other[0]:02}.py", other[1])


def _count_disjoint(places: Sequence[Place], lines: int) -> int:
    disjoint: list[Place] = []
    for place in places:
        if not disjoint or disjoint[-1][0] != place[0] or place[1] - disjoint[-1][1] >= lines:
            disjoint.append(place)
    return len(disjoint)


# -- Reported records, by hand -----------------------------------------------------------------------------------------


def test_block_states_its_location_and_the_first_copy() -> None:
    shared = python(range(12))
    first = "# a comment\nimport os\n\n" + shared
    second = "import sys\n" + shared.replace("\n", "  # said\n\n\t\n", 1).replace("_2 = ", "_2  =  ") + "end = 1\n"
    records = duplicates({"b.py": second, "a.py": first, "c.py": python(range(50, 80))})
    code = b"\n".join(code_lines(shared.encode(), b"")[0])
    group = hashlib.sha256(code).hexdigest()[:16]
    assert records == {
        "a.py": [
            Metric(path="a.py", metric="duplicated_lines", value=12),
            Metric(path="a.py", metric="duplicated_blocks", value=1),
            Duplicate(
                path="a.py", line=4, end_line=16, lines=12, copies=2, group=group, other_path="b.py", other_line=2
            ),
        ],
        "b.py": [
            Metric(path="b.py", metric="duplicated_lines", value=12),
            Metric(path="b.py", metric="duplicated_blocks", value=1),
            Duplicate(
                path="b.py", line=2, end_line=16, lines=12, copies=2, group=group, other_path="a.py", other_line=4
            ),
        ],
    }


def test_block_needs_ten_lines() -> None:
    def files_with_blocks(lines: int) -> set[str]:
        same = list(range(lines))
        return set(duplicates({"a.py": python([*same, 80]), "b.py": python([90, *same, 91])}))

    assert (files_with_blocks(9), files_with_blocks(10)) == (set(), {"a.py", "b.py"})


def test_block_needs_a_minimum_of_bytes() -> None:
    def file_count(bytes_: int) -> int:
        lines = [f"a{line}=".ljust(REPEATED_BYTES_MIN // 10, "1") for line in range(10)]
        lines[-1] = lines[-1][: len(lines[-1]) + bytes_ - REPEATED_BYTES_MIN]
        return len(duplicates({"a.py": "\n".join([*lines, "b"]), "b.py": "\n".join([*lines, "c"])}))

    assert (file_count(REPEATED_BYTES_MIN - 1), file_count(REPEATED_BYTES_MIN)) == (0, 2)


def test_table_of_similar_lines_is_no_copy_of_itself() -> None:
    assert duplicates({"a.py": python([7] * 300), "b.py": python([*range(20, 40), 7, 7])}) == {}


def test_a_block_three_times_in_a_row_is_three_copies() -> None:
    (records,) = duplicates({"a.py": python([*range(10), *range(10), *range(10), 99])}).values()
    assert [(block.line, block.end_line, block.copies, block.other_line) for block in blocks(records)] == [
        (1, 11, 3, 11),
        (11, 21, 3, 1),
        (21, 31, 3, 1),
    ]


def test_equal_files_are_whole_blocks_and_read_once() -> None:
    files = [source(f"{number:03}.py", python(range(40))) for number in range(100)]
    read_items: list[int] = []

    def read(item: int) -> bytes:
        read_items.append(item)
        return files[item].utf8

    results = list(find_duplicates(fingerprinted(files), read))
    assert [item for item, _ in results] == list(range(100))
    assert all([(block.lines, block.copies) for block in blocks(records)] == [(40, 100)] for _, records in results)
    assert [block.other_path for _, records in results for block in blocks(records)] == ["001.py", *["000.py"] * 99]
    assert read_items == [0]
    table = python([7] * 40)
    assert len(duplicates({"a.py": table, "b.py": table})) == 2


def test_non_utf8_paths_are_base64() -> None:
    files = [source(path, python(range(20))) for path in (b"a\xff.py", b"b.py")]
    records_by_item = dict(find_duplicates(fingerprinted(files), lambda item: files[item].utf8))
    assert [block.other_path_b64 for block in blocks(records_by_item[1])] == ["Yf8ucHk="]
    assert [record.path_b64 for record in records_by_item[0]] == ["Yf8ucHk="] * 3


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("nine.py", python(range(9))),
        ("table.json", "[\n" + "1,\n" * 30 + "1]\n"),
        ("text.txt", python(range(30))),
        ("node_modules/a.js", "f(1)\n" * 30),
        ("generated.py", "# Code generated by x. DO NOT EDIT.\n" + python(range(30))),
        ("binary.py", "\0" + python(range(30))),
        ("long.py", python(range(60_000))),
    ],
)
def test_non_production_files_have_no_fingerprints(path: str, content: str, tmp_path: Path) -> None:
    records = created("analyze", tmp_path).run_file(source(path, content))
    assert not any(isinstance(record, Fingerprints) for record in records)


# Imports in all forms, as templates of which each number makes others, and code that contains an import.
_IMPORTS = [
    ("a.py", "import a{0}\nfrom b{0} import (\n    c{0},\n    d as e{0},\n)\nfrom .f{0} import *\n", ""),
    ("a.js", "import a{0} from 'a{0}';\nimport {{\n  b{0},\n}} from './b{0}';\nimport './c{0}';\n", ""),
    ("a.js", "const a{0} = require('a{0}');\nvar {{\n  b{0},\n}} = require('b{0}'), c{0} = require('c{0}').d;\n", ""),
    ("a.js", "module.exports.a{0} = require('./a{0}');\nconst b{0} = __importStar(require('b{0}'));\n", ""),
    (
        "a.ts",
        "export * from './a{0}';\nexport {{\n  type B{0},\n}} from './b{0}';\nimport c{0} = require('c{0}');\n",
        "",
    ),
    ("a.c", '#include <a{0}.h>\n#ifdef B{0}\n#  include "b{0}.h" /* c */\n#else\n# include <d{0}.h>\n#endif\n', ""),
    ("a.go", 'import (\n\t"a{0}"\n\tb{0} "c/d{0}"\n)\n', "package a\n"),
    ("a.rs", "use a{0}::b;\npub use c{0}::{{\n    d,\n    e{0}::f,\n}};\nmod g{0};\nextern crate h{0};\n", ""),
    ("A.java", "import a{0}.b.C;\nimport static d{0}.E.*;\n", ""),
    ("a.cs", "using A{0}.B;\nglobal using static C{0};\nusing D{0} = E.F;\n", ""),
    ("a.kt", "import a{0}.b\nimport c{0}.d as e\n", ""),
    ("a.scala", "import a{0}.b\nimport c{0}.{{\n  d,\n  e => f\n}}\n", ""),
    ("a.swift", "import A{0}\n@testable import B{0}\n", ""),
    ("a.php", "use A{0}\\B;\nuse C\\{{\n  D{0},\n  E\n}};\nrequire_once __DIR__ . '/f{0}.php';\n", "<?php\n"),
    ("a.rb", "require 'a{0}'\nrequire_relative('b{0}') unless C\nautoload :D{0}, 'd{0}'\n", ""),
    ("a.lua", "local a{0} = require('a{0}')\nlocal b{0} = require 'b{0}'.c\nM.d{0} = require \"d{0}\"\n", ""),
    ("a.sh", "source ./a{0}\n. b{0}/c\n", ""),
]


@pytest.mark.parametrize(("path", "imports", "head"), _IMPORTS)
def test_imports_are_no_duplicates(path: str, imports: str, head: str) -> None:
    content = head + "".join(imports.format(number) for number in range(40))
    assert not list(fingerprinted([source(path, content)]))


def test_lines_between_imports_are_compared() -> None:
    block = python(range(11)).splitlines()
    first, second = (f"import x{name}\n".join(f"{line}\n" for line in block) for name in "ab")
    records = duplicates({"a.py": first, "b.py": second})
    assert [(block.line, block.end_line, block.lines) for block in blocks(records["a.py"])] == [(1, 22, 11)]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "def f{0}(): import a{0}\n"),
        ("a.js", "const a{0} = require('a{0}')(b);\n"),
        ("a.js", "const a{0} = () => require('a{0}');\n"),
        ("a.lua", "local a{0} = f(require('a{0}'))\n"),
        ("a.c", "#ifdef A{0}\n#include <a{0}.h>\nint a{0};\n#endif\n"),
        ("a.c", "#if A{0}\n#endif\n"),
        ("a.ts", "export {{ a{0} }};\n"),
    ],
)
def test_code_with_an_import_can_be_a_duplicate(path: str, line: str) -> None:
    assert list(fingerprinted([source(path, "".join(line.format(number) for number in range(40)))]))


@pytest.mark.parametrize(
    ("path", "content", "remaining"),
    [
        ("a.c", "#ifdef A\n#if B\n#include <b.h>\n#endif\n#endif\nint x;\n", ["int x;"]),
        ("a.c", "#ifdef A\n#include <a.h> /* b\n c */\n#elif B\n#endif\n", []),
        ("a.c", "#ifdef A\n#include <a.h>\nint a;\n#endif\n", ["#ifdef A", "int a;", "#endif"]),
        ("a.c", "#ifdef A\n#include <a.h>\n#define B\n#endif\n", ["#ifdef A", "#define B", "#endif"]),
        ("a.c", "#ifdef A\n#include <a.h>\n#ifdef B\n#endif\n#endif\n", ["#ifdef A", "#ifdef B", "#endif", "#endif"]),
        ("a.py", "import a; x = 1\n", ["x = 1"]),
        (
            "a.py",
            "class A:\n    import b\n    def f(self):\n        import c\n",
            ["class A:", "def f(self):", "import c"],
        ),
        ("a.rs", "fn f() {\n    use a::b;\n}\n", ["fn f() {", "use a::b;", "}"]),
        ("a.rb", "x = require('a').b(1)\n", ["x = require('a').b(1)"]),
    ],
)
def test_code_around_imports_remains(path: str, content: str, remaining: list[str]) -> None:
    text = content.encode()
    for start, end in reversed(import_spans(source(path, content))):
        text = text[:start] + text[end:]
    lines = [line.strip() for line in re.sub(rb"/\*[\s\S]*?\*/", b"", text).decode().split("\n")]
    assert [line for line in lines if line] == remaining


def test_tests_with_an_alternative_are_not_left_out() -> None:
    """Code between `#ifdef UNIT_TEST` and `#endif` is a test, unless there is an `#else`."""
    lines = "".join(f"int name_{number} = {number};\n" for number in range(12))
    assert not list(fingerprinted([source("a.c", f"#ifdef UNIT_TEST\n{lines}#endif\n")]))
    assert list(fingerprinted([source("a.c", f"#ifdef UNIT_TEST\n{lines}#else\nint x;\n#endif\n")]))


def test_fingerprints_are_the_last_record_and_shared_by_equal_lines(tmp_path: Path) -> None:
    run = created("analyze", tmp_path).run_file
    contents = [python([*range(start, start + 30), *range(10)]) for start in range(90, 400, 31)]
    last = [run(source("a.py", content))[-1] for content in contents]
    hashes = [set(array("I", record.hashes)) for record in last if isinstance(record, Fingerprints)]
    assert len(hashes) == len(last)
    assert set.intersection(*hashes)


_LINES = st.lists(st.integers(0, 30), max_size=15)


@given(_LINES, _LINES, _LINES, _LINES, st.lists(st.integers(0, 30), min_size=LINES_MIN, max_size=LINES_MIN))
def test_equal_lines_share_a_fingerprint_in_any_surroundings(
    before: list[int], after: list[int], other_before: list[int], other_after: list[int], same: list[int]
) -> None:
    def chosen(before: list[int], after: list[int]) -> set[tuple[int, int]]:
        (file,) = fingerprinted([source("a.py", python([*before, *same, *after]))])
        fingerprints = file.fingerprints
        places = (number - 1 - len(before) for number in accumulate(fingerprints.gaps))
        hashes = array("I", fingerprints.hashes)
        return {(place, hash_) for place, hash_ in zip(places, hashes, strict=True) if 0 <= place <= 3}

    assert chosen(before, after) & chosen(other_before, other_after)


def test_code_text_returns_its_lines_in_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_UNCOMPRESSED_BYTES_MAX", 60_000)
    stretches = [[b"%060d" % (owner * line) for line in range(500)] for owner in range(20)]
    tracemalloc.start()
    text = CodeText()
    for owner, lines in enumerate(stretches):
        text.add(owner, lines, range(1, 501), is_whole=False)
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used_bytes < 40 * len(text.numbers)
    for owner, start, end in ((0, 0, 500), (7, 0, 1), (7, 499, 500), (7, 20, 30), (19, 1, 499)):
        first = 1 + 501 * owner
        assert text.code_between(first + start, first + end) == b"\n".join(stretches[owner][start:end])


def test_compressed_stretches_return_their_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_UNCOMPRESSED_BYTES_MAX", 1)
    text = CodeText()
    for owner in range(3):
        text.add(owner, [b"line %d" % owner, b"x"], [1, 2], is_whole=False)
    assert [text.code_between(at, at + 2) for at in (1, 4, 7)] == [b"line %d\nx" % owner for owner in range(3)]


# -- Input that must not be slow ---------------------------------------------------------------------------------------


def _repeats(files: Iterable[Sequence[int]]) -> list[list[RepeatedLines]]:
    text = CodeText()
    for owner, lines in enumerate(files):
        text.add(owner, [b"%030d" % line for line in lines], range(1, len(lines) + 1), is_whole=False)
    return [repeats for _, repeats in maximal_repeats(text)]


def test_repeats_do_not_depend_on_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    files = list(_shuffled_blocks(20, 5))
    whole = _repeats(files)
    assert whole
    monkeypatch.setattr(repeats, "_VALUES_PER_PART", 3)
    assert _repeats(files) == whole


def test_many_window_classes_take_little_memory() -> None:
    """An object for each class would take 200 bytes, and the tree of Linux has 670,000 classes."""
    text = CodeText()
    for owner in range(2):
        for block in range(300):
            text.add(owner, [b"%020d" % (block * 20 + line) for line in range(20)], range(20), is_whole=False)
    classes = 300 * (20 - LINES_MIN + 1)
    hashes = text.take_hashes()
    tracemalloc.start()
    window_classes = repeats._WindowClasses(hashes)
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(list(window_classes.iter_unexamined_places())) == 2 * 300
    assert used_bytes < 50 * classes


def _almost_copies(copies: int, lines: int) -> Iterable[list[int]]:
    chance = random.Random(2)
    for copy in range(copies):
        whole = list(range(lines))
        whole[chance.randrange(lines)] = -copy - 1
        yield whole


def _shuffled_blocks(blocks: int, times: int) -> Iterable[list[int]]:
    chance = random.Random(3)
    for _ in range(times):
        order = list(range(blocks))
        chance.shuffle(order)
        yield [10 * block + line for block in order for line in range(10)]


HOSTILE: dict[str, Callable[[int], Iterable[Sequence[int]]]] = {
    "one line": lambda size: [[1] * size],
    "one line in every file": lambda size: [[1] * 100] * (size // 100),
    "rows of ten lines": lambda size: [list(range(10)) * (size // 10)],
    "two lines, at random": lambda size: [random.Random(1).choices((1, 2), k=size)],
    "copies with one line changed": lambda size: _almost_copies(size // 500, 500),
    "blocks in every order": lambda size: _shuffled_blocks(100, size // 1000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_large_hostile_input_is_processed_in_time(name: str) -> None:
    """The measured time is at most 2 s. Quadratic time in any of these would be ten minutes."""
    lines = 40_000
    files = list(HOSTILE[name](lines))
    with cpu_time_below(30):
        repeats = _repeats(files)
    assert sum(map(len, repeats)) <= lines
