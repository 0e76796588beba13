"""What a change of a file may break: the files that depend on it, and the tests among them."""

from __future__ import annotations

import msgspec

from codebatch.application.mentions import Mentions
from codebatch.query.dependencies import Dependent
from codebatch.query.tests_by_name import is_test_file


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """A file and its dependents, nearest first.

    `mentions` counts other files that may use it without an import, if its language allows that.
    """

    path: bytes
    dependents: list[Dependent]
    mentions: Mentions | None = None

    @property
    def tests(self) -> list[str]:
        """The dependents, and the file itself, that a test runner would collect by name."""
        paths = [*([self.path.decode()] if is_test_file(self.path) else []), *(each.path for each in self.dependents)]
        return [path for path in paths if is_test_file(path.encode())]
