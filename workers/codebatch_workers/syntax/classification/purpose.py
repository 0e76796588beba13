"""Whether a file is for tests, their data, to show how something is used, or to be read, as its path tells.

Directories are those that the test runners and the packagers of the languages look for, and those that GitHub's
linguist has for examples and documentation (its documentation.yml).
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
# Below tests these hold their data.
_ABOVE_DATA = re.compile(rb"(?:^|/)(?:tests?|specs?)(?=/)|\At(?=/)", re.IGNORECASE)
_DATA = re.compile(rb"/(?:data|cases|baselines|resources|assets|inputs?|expected|golden|snapshots?)/", re.IGNORECASE)
_TESTS = re.compile(
    rb"(?:^|/)(?:tests|specs?|__tests__|__mocks__|unittests?|e2e|cypress|selftests?|(?:unit|integration|functional)[-_]?tests?|testdir|regress|benchmarks?|bench|benches|microbenchmarks?)/|"
    rb"(?:^|/)(?:[^/]+[-_.]tests?|tests[-_][^/]+|(?-i:tests[A-Z]\w*)|test[-_]?(?:env|helpers?|lib|scripts|servers?|support|utils?))/",
    re.IGNORECASE,
)
# Where prove(1) looks for the tests of Perl, which other projects follow; and what runs tests. Below, it may be a part
# of a package for those who write tests.
_TESTS_AT_TOP = re.compile(rb"\At(?:esting)?/")
_TEST = re.compile(rb"(?:^|/)test/", re.IGNORECASE)
# What Go calls packages that help tests, as `httptest`, where the keys lie, too.
_OF_GO = re.compile(rb"(?:^|/)(?!latest/)[a-z0-9]+test/")
_EXAMPLES = re.compile(rb"(?:^|/)examples?/|^(?:demos?|samples?)/", re.IGNORECASE)
_DOCUMENTATION = re.compile(rb"\A(?:[Dd]ocs?|[Mm]an)/|(?:^|/)(?:[Dd]ocumentation|[Gg]roovydoc|[Jj]avadoc|inst/doc)/")
_TEMPLATED = re.compile(rb"\{\{|\{%")

# What runners of tests look for by default: pytest and unittest, go test, RSpec and minitest, jest, vitest and mocha,
# JUnit and its like, PHPUnit, googletest, Bats, prove; and the tests of a Rust module in a file of their own.
_TEST_NAMES = re.compile(
    rb"test_[^/]*\.(?:pyi?|rb|c|cc|cpp|cxx|lua|sh|php)|"
    rb"[^/]+_(?:test|unittest)\.(?:py|go|rs|c|cc|cpp|cxx|exs|rb|php|dart|lua)|"
    rb"conftest\.py|tests\.py|[^/]+(?:Test|Tests|TestCase)\.py|tests?\.rs|[^/]+[.-](?:test|spec|tests|specs|cy|e2e)(?:-d)?\.(?:[cm]?[jt]sx?|vue)|"
    rb"[^/]+_spec\.(?:rb|lua|js|ts)|[^/]+(?:Test|Tests|TestCase|IT|Spec)\.(?:java|kt|kts|scala|groovy|cs|php|swift|mm?)|"
    rb"[^/]+\.(?:t|bats)"
)


def purpose_of(path: bytes) -> Purpose | None:
    """What a file is for, where that is not what the project is for."""
    directory, _, name = path.rpartition(b"/")
    found, in_test = _of_directory(directory)
    if found == "fixture":
        return found
    if found == "test" or _TEST_NAMES.fullmatch(name) is not None:
        return "test"
    # Of Python the first directory alone, for packages have modules of that name.
    if in_test == 0 or (in_test is not None and not name.endswith(b".py")):
        return "test"
    if name.endswith((b".go", b".key", b".pem")) and _OF_GO.search(directory + b"/"):
        return "test"
    return found


def is_documentation(path: bytes) -> bool:
    """Return whether a file lies where projects keep their documentation."""
    return _DOCUMENTATION.search(path) is not None


# Files come in path order, so that a directory is rarely looked at twice.
@lru_cache(maxsize=16)
def _of_directory(directory: bytes) -> tuple[Purpose | None, int | None]:
    """What a directory tells, and where in it the first one begins that is called `test`."""
    # What is looked for stands between two slashes: names that tell nothing alone, nearly all, tell nothing together.
    if not any(map(_may_tell, directory.split(b"/"))):
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
def _may_tell(name: bytes) -> bool:
    alone = name + b"/"
    return any(
        each.search(alone) for each in (_FIXTURES, _ABOVE_DATA, _TESTS, _TESTS_AT_TOP, _TEST, _EXAMPLES, _TEMPLATED)
    )
