"""Work for schedulers without a plan: shards of given sizes, and project tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codebatch.model.shard import ProjectWork, Shard, ShardId, Work


def work_of(sizes: Mapping[ShardId, int], project: Iterable[str] = ()) -> list[Work]:
    """Return shards with these ids and sizes, followed by the work of project tasks."""
    shards: list[Work] = []
    start = 0
    for id_, size in sizes.items():
        shards.append(Shard(id=id_, start=start, end=start + size, bytes=size))
        start += size
    return [*shards, *map(ProjectWork, project)]
