"""The purpose of a file, according to its path: test, test data, example, template or documentation.

Tests are recognized by the directory names that test runners and packagers use. For examples and documentation, the
names are those in linguist's documentation.yml.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

FilePurpose = Literal["fixture", "test", "example", "template"]

_FIXTURE_DIRECTORY = re.compile(
    rb"(?:^|/)(?:fixtures?|__fixtures__|__snapshots__|testdata|testsuite|"
    rb"test[-_ ]?(?:data|files|cases|fixtures|resources|examples|inputs?|outputs?))/",
    re.IGNORECASE,
)
# Below these directories, directories that match _DATA contain test data.
_TEST_ANCESTOR = re.compile(rb"(?:^|/)(?:tests?|specs?)(?=/)|\At(?=/)", re.IGNORECASE)
_DATA_DIRECTORY = re.compile(
    rb"/(?:data|cases|baselines|resources|assets|inputs?|expected|golden|snapshots?)/", re.IGNORECASE
)
_TEST_DIRECTORIES = re.compile(
    rb"(?:^|/)(?:tests|specs?|__tests__|__mocks__|unittests?|e2e|cypress|selftests?|(?:unit|integration|functional)[-_]?tests?|testdir|regress|benchmarks?|bench|benches|microbenchmarks?)/|"
    rb"(?:^|/)(?:[^/]+[-_.]tests?|tests[-_][^/]+|(?-i:tests[A-Z]\w*)|test[-_]?(?:env|helpers?|lib|scripts|servers?|support|utils?))/",
    re.IGNORECASE,
)
# At the top of a tree, the directory `t` contains Perl tests for prove(1) and similar programs, and `testing` contains
# test runners. Deeper in a tree, a directory with such a name can be a library for test authors.
_TOP_TEST_DIRECTORY = re.compile(rb"\At(?:esting)?/")
_TEST_DIRECTORY = re.compile(rb"(?:^|/)test/", re.IGNORECASE)
# Go packages with helpers for tests, such as `httptest`. Keys in them are test data.
_GO_TEST_DIRECTORY = re.compile(rb"(?:^|/)(?!latest/)[a-z0-9]+test/")
_EXAMPLE_DIRECTORY = re.compile(rb"(?:^|/)examples?/|^(?:demos?|samples?)/", re.IGNORECASE)
_DOCUMENTATION_PATH = re.compile(
    rb"\A(?:[Dd]ocs?|[Mm]an)/|(?:^|/)(?:[Dd]ocumentation|[Gg]roovydoc|[Jj]avadoc|inst/doc)/"
)
_TEMPLATED_PATH = re.compile(rb"\{\{|\{%")

# File names that test runners collect by default: pytest, unittest, go test, RSpec, minitest, jest, vitest, mocha,
# JUnit and similar, PHPUnit, googletest, Bats, prove. Files with the tests of a Rust module are included.
_TEST_FILE_NAME = re.compile(
    rb"test_[^/]*\.(?:pyi?|rb|c|cc|cpp|cxx|lua|sh|php)|"
    rb"[^/]+_(?:test|unittest)\.(?:py|go|rs|c|cc|cpp|cxx|exs|rb|php|dart|lua)|"
    rb"conftest\.py|tests\.py|[^/]+(?:Test|Tests|TestCase)\.py|tests?\.rs|[^/]+[.-](?:test|spec|tests|specs|cy|e2e)(?:-d)?\.(?:[cm]?[jt]sx?|vue)|"
    rb"[^/]+_spec\.(?:rb|lua|js|ts)|[^/]+(?:Test|Tests|TestCase|IT|Spec)\.(?:java|kt|kts|scala|groovy|cs|php|swift|mm?)|"
    rb"[^/]+\.(?:t|bats)"
)


def file_purpose(path: bytes) -> FilePurpose | None:
    """Return the purpose of a file. For production code, return None."""
    directory, _, name = path.rpartition(b"/")
    purpose, in_test = _classify_directory(directory)
    if purpose == "fixture":
        return purpose
    if purpose == "test" or _TEST_FILE_NAME.fullmatch(name) is not None:
        return "test"
    # In Python, packages contain modules named `test`. So for Python files, a directory `test` counts only at the top.
    if in_test == 0 or (in_test is not None and not name.endswith(b".py")):
        return "test"
    if name.endswith((b".go", b".key", b".pem")) and _GO_TEST_DIRECTORY.search(directory + b"/"):
        return "test"
    return purpose


def is_documentation(path: bytes) -> bool:
    """Return whether a file is in a documentation directory."""
    return _DOCUMENTATION_PATH.search(path) is not None


# Files are classified in path order, so a small cache suffices.
@lru_cache(maxsize=16)
def _classify_directory(directory: bytes) -> tuple[FilePurpose | None, int | None]:
    """Return the purpose of a directory or None, and the offset of the first directory `test` in its path or None."""
    # Each pattern needs at least one directory name that matches the pattern alone. If there is none, no pattern
    # matches.
    if not any(map(_is_relevant_name, directory.split(b"/"))):
        return None, None
    directory += b"/"
    in_test = _TEST_DIRECTORY.search(directory)
    return _directory_purpose(directory), None if in_test is None else in_test.start()


def _directory_purpose(directory: bytes) -> FilePurpose | None:
    tests = _TEST_ANCESTOR.search(directory)
    if _FIXTURE_DIRECTORY.search(directory) or (tests is not None and _DATA_DIRECTORY.search(directory, tests.end())):
        return "fixture"
    if _TEST_DIRECTORIES.search(directory) or _TOP_TEST_DIRECTORY.match(directory):
        return "test"
    if _EXAMPLE_DIRECTORY.search(directory):
        return "example"
    return "template" if _TEMPLATED_PATH.search(directory) else None


@lru_cache(maxsize=4096)
def _is_relevant_name(name: bytes) -> bool:
    directory = name + b"/"
    return any(
        pattern.search(directory)
        for pattern in (
            _FIXTURE_DIRECTORY,
            _TEST_ANCESTOR,
            _TEST_DIRECTORIES,
            _TOP_TEST_DIRECTORY,
            _TEST_DIRECTORY,
            _EXAMPLE_DIRECTORY,
            _TEMPLATED_PATH,
        )
    )
