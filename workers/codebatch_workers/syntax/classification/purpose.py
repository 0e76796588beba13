"""The purpose of a file by its path: test, test data, example or documentation.

The directories are those of test runners and packagers, and those that linguist lists for examples and documentation
(its documentation.yml).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Purpose = Literal["fixture", "test", "example", "template"]

_FIXTURES = re.compile(
    rb"(?:^|/)(?:fixtures?|__fixtures__|__snapshots__|testdata|testsuite|"
    rb"test[-_ ]?(?:data|files|cases|fixtures|resources|examples|inputs?|outputs?))/",
    re.IGNORECASE,
)
# These directories contain data if they are below tests.
_ABOVE_DATA = re.compile(rb"(?:^|/)(?:tests?|specs?)(?=/)|\At(?=/)", re.IGNORECASE)
_DATA = re.compile(rb"/(?:data|cases|baselines|resources|assets|inputs?|expected|golden|snapshots?)/", re.IGNORECASE)
_TESTS = re.compile(
    rb"(?:^|/)(?:tests|specs?|__tests__|__mocks__|unittests?|e2e|cypress|selftests?|(?:unit|integration|functional)[-_]?tests?|testdir|regress|benchmarks?|bench|benches|microbenchmarks?)/|"
    rb"(?:^|/)(?:[^/]+[-_.]tests?|tests[-_][^/]+|(?-i:tests[A-Z]\w*)|test[-_]?(?:env|helpers?|lib|scripts|servers?|support|utils?))/",
    re.IGNORECASE,
)
# The directory `t` is where prove(1) finds tests of Perl; other projects follow this convention. `testing` has test
# runners. Deeper directories with these names can be libraries for test authors.
_TESTS_AT_TOP = re.compile(rb"\At(?:esting)?/")
_TEST = re.compile(rb"(?:^|/)test/", re.IGNORECASE)
# Test helper packages of Go, such as `httptest`, with their keys.
_OF_GO = re.compile(rb"(?:^|/)(?!latest/)[a-z0-9]+test/")
_EXAMPLES = re.compile(rb"(?:^|/)examples?/|^(?:demos?|samples?)/", re.IGNORECASE)
_DOCUMENTATION = re.compile(rb"\A(?:[Dd]ocs?|[Mm]an)/|(?:^|/)(?:[Dd]ocumentation|[Gg]roovydoc|[Jj]avadoc|inst/doc)/")
_TEMPLATED = re.compile(rb"\{\{|\{%")

# Names that test runners collect by default: pytest, unittest, go test, RSpec, minitest, jest, vitest, mocha, JUnit and
# similar, PHPUnit, googletest, Bats, prove. Tests of a Rust module in their own file are included.
_TEST_NAMES = re.compile(
    rb"test_[^/]*\.(?:pyi?|rb|c|cc|cpp|cxx|lua|sh|php)|"
    rb"[^/]+_(?:test|unittest)\.(?:py|go|rs|c|cc|cpp|cxx|exs|rb|php|dart|lua)|"
    rb"conftest\.py|tests\.py|[^/]+(?:Test|Tests|TestCase)\.py|tests?\.rs|[^/]+[.-](?:test|spec|tests|specs|cy|e2e)(?:-d)?\.(?:[cm]?[jt]sx?|vue)|"
    rb"[^/]+_spec\.(?:rb|lua|js|ts)|[^/]+(?:Test|Tests|TestCase|IT|Spec)\.(?:java|kt|kts|scala|groovy|cs|php|swift|mm?)|"
    rb"[^/]+\.(?:t|bats)"
)


def purpose_of(path: bytes) -> Purpose | None:
    """Return the purpose of a file, or None for production code."""
    directory, _, name = path.rpartition(b"/")
    purpose, in_test = _classify_directory(directory)
    if purpose == "fixture":
        return purpose
    if purpose == "test" or _TEST_NAMES.fullmatch(name) is not None:
        return "test"
    # In Python only a top-level directory `test` counts, because packages have modules with this name.
    if in_test == 0 or (in_test is not None and not name.endswith(b".py")):
        return "test"
    if name.endswith((b".go", b".key", b".pem")) and _OF_GO.search(directory + b"/"):
        return "test"
    return purpose


def is_documentation(path: bytes) -> bool:
    """Return whether a file is in a documentation directory."""
    return _DOCUMENTATION.search(path) is not None


# Files are visited in path order, so a small cache suffices.
@lru_cache(maxsize=16)
def _classify_directory(directory: bytes) -> tuple[Purpose | None, int | None]:
    """Return the purpose by directory, and the offset of the first directory `test`, or None."""
    # The patterns match single directory names or combinations of them. If no name matches alone, no combination does.
    if not any(map(_is_relevant_name, directory.split(b"/"))):
        return None, None
    directory += b"/"
    in_test = _TEST.search(directory)
    return _purpose_of_directory(directory), None if in_test is None else in_test.start()


def _purpose_of_directory(directory: bytes) -> Purpose | None:
    tests = _ABOVE_DATA.search(directory)
    if _FIXTURES.search(directory) or (tests is not None and _DATA.search(directory, tests.end())):
        return "fixture"
    if _TESTS.search(directory) or _TESTS_AT_TOP.match(directory):
        return "test"
    if _EXAMPLES.search(directory):
        return "example"
    return "template" if _TEMPLATED.search(directory) else None


@lru_cache(maxsize=4096)
def _is_relevant_name(name: bytes) -> bool:
    directory = name + b"/"
    return any(
        pattern.search(directory)
        for pattern in (_FIXTURES, _ABOVE_DATA, _TESTS, _TESTS_AT_TOP, _TEST, _EXAMPLES, _TEMPLATED)
    )
