"""Small projects in which the use of a name is marked, and the definitions to which it must be resolved.

The marked use is the name between `«` and `»`. The marks are removed before the project is analysed.
"""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.analysis.uses import NameUse
from tests.support.memory_project import MemoryProject


def resolve_marked(files: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the certainty of the marked use, and its definitions as `path:line qualified`."""
    (path, text) = next((path, text) for path, text in files.items() if "«" in text)
    before, _, rest = text.partition("«")
    name, _, after = rest.partition("»")
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    project = MemoryProject({**files, path: before + name + after})
    use: NameUse = next(use for use in project.uses(path, name) if (use.line, use.column) == (line, column))
    places = [f"{found.path}:{found.line} {found.qualified}" for found in use.resolved.definitions]
    return use.resolved.certainty, places
