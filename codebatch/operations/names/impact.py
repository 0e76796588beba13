"""The impact of a change of a file: its dependents, and the tests among them."""

from __future__ import annotations

import msgspec

from codebatch.query.answers.dependencies import Dependent
from codebatch.query.answers.test_names import is_test_file


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """A file and its dependents, the nearest first."""

    path: bytes
    dependents: list[Dependent]

    @property
    def tests(self) -> list[str]:
        """The paths of test files among the dependents. If the file itself is a test file, its path is included.

        Test files are recognised by their names, as test runners do.
        """
        paths = [
            *([self.path.decode()] if is_test_file(self.path) else []),
            *(dependent.path for dependent in self.dependents),
        ]
        return [path for path in paths if is_test_file(path.encode())]
