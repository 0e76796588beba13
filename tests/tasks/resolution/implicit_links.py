"""The implicit imports of small projects, as text."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.memory_project import MemoryProject


def implicit_links(files: Mapping[str, str]) -> list[str]:
    """Return each implicit import of a project as `user -> file resolution name`."""
    return [
        f"{edge.path} -> {edge.target} {edge.resolution} {edge.imported}"
        for edge in MemoryProject(files).links()
        if edge.implicit
    ]
