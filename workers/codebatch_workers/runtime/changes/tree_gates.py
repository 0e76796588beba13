"""The gates of changes that commands made in their trees: `parse` and `findings`.

Nothing can be applied to the new content again, so the gate `repeat` does not apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codebatch.errors import EnvironmentBroken
from codebatch.model.change import ChangeRefusal
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.task import SnapshotView
from codebatch_workers.lint.python.ruff import RuffError, RuffRunner
from codebatch_workers.runtime.changes.gates import judge_contents
from codebatch_workers.syntax.contexts import language_context
from codebatch_workers.syntax.language.attributes import attributes_context
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.syntax_errors import SyntaxErrors

_KNOWN_MAX = 1024


class TreeGates:
    """The gates of changes in trees that begin with the same files."""

    def __init__(self, view: SnapshotView, scratch: Path) -> None:
        """`view` has the files with which the trees begin. `scratch` is a directory for the parser of Python."""
        self._contexts = {"attributes": attributes_context(view), "language": language_context(view)}
        self._errors = SyntaxErrors(RuffRunner((), scratch), _KNOWN_MAX)

    def find_refusals(self, versions: Sequence[tuple[bytes, bytes, bytes]]) -> list[ChangeRefusal | None]:
        """Return the refusal of each change, given as path, old and new content. An absent file has no content.

        Raises EnvironmentBroken if the parser of Python cannot run.
        """
        pairs = [(self._source(path, before), self._source(path, after)) for path, before, after in versions]
        try:
            errors = self._errors.find_all([changed for _, changed in pairs])
            self._errors.find_all([file for (file, _), found in zip(pairs, errors, strict=True) if found])
            return [judge_contents(file, changed, lambda _: (), self._errors.find) for file, changed in pairs]
        except RuffError as error:
            raise EnvironmentBroken(f"changes cannot be checked: {error}", hint="apply them with --refused") from error

    def _source(self, path: bytes, content: bytes) -> SourceFile:
        entry = Entry(path, "file", executable=False, size=len(content), object=Digest(""))
        contexts = {name: context(entry) for name, context in self._contexts.items()}
        return SourceFile(path, content, executable=False, contexts=contexts)
