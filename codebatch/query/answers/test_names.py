"""Recognition of test files by the name patterns of test runners."""

from __future__ import annotations

import re

# The default name patterns of test runners: pytest and unittest, jest, vitest and mocha, go test, RSpec and minitest,
# JUnit and similar, PHPUnit, googletest, Bats, prove.
_TEST_FILE = re.compile(
    rb"(?:test_.*\.(?:py|rb|c|cc|cpp|cxx|lua|sh|php)|tests?\.(?:py|rs)|"
    rb".*(?:_(?:test|spec|unittest)\.[a-z]{1,4}|[.-](?:test|test-d|spec|e2e)\.[cm]?[jt]sx?|"
    rb"(?:Test|Tests|TestCase|IT|Spec)\.(?:java|kt|kts|cs|php|scala|groovy|swift)|\.bats|\.t))\Z",
    re.DOTALL,
)
_IN_TESTS = re.compile(rb"(?:\A|/)(?:tests/[^/]+\.rs|__tests__/[^/]+\.[cm]?[jt]sx?)\Z")


def is_test_file(path: bytes) -> bool:
    """Return whether a test runner would look for tests in a file with this path."""
    directory, _, name = path.rpartition(b"/")
    if _TEST_FILE.match(name):
        return True
    return directory.endswith((b"tests", b"__tests__")) and _IN_TESTS.search(path) is not None
