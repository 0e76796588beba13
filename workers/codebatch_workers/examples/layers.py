"""An example of a custom task of project scope: lower layers must not import upper layers.

Copy it to `tools/layers.py` of your project, and add the directories of the layers to its `codebatch.toml`, the upper
layers first:

    [tasks.layers]
    python = "tools/layers.py:task"
    layers = ["app/views", "app/models", "app/core"]
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from codebatch_workers.api import Diagnostic, Edge, Project


class Layers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of this task."""

    layers: tuple[str, ...] = ()


def task(project: Project, config: Layers) -> Iterator[Diagnostic]:
    """imports from a lower layer to an upper one"""

    def layer_of(path: str) -> int | None:
        return next((n for n, layer in enumerate(config.layers) if path.startswith(f"{layer}/")), None)

    for file, records in project.records("dependencies", "edge"):
        lower = layer_of(file.text)
        for edge in records:
            if isinstance(edge, Edge) and edge.resolution in ("exact", "file") and lower is not None:
                upper = layer_of(edge.target)
                if upper is not None and upper < lower:
                    yield Diagnostic(
                        path=file.text,
                        line=edge.line,
                        column=1,
                        end_line=edge.line,
                        end_column=1,
                        severity="error",
                        code="layers",
                        message=f"{config.layers[lower]} imports {edge.target} of {config.layers[upper]}",
                        tool="layers",
                    )
