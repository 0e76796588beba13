"""Export of a batch as a trace in Chrome's JSON format, for viewers such as Perfetto.

The trace is made from journals. If journals were deleted, their data is missing in the trace. For a work batch, each
track is a slot, in which one command runs at a time. For an analysis, each track is a worker.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from codebatch.model.shard import ShardId
from codebatch.model.text.quantities import count_text
from codebatch.model.work import event as events
from codebatch.model.work.command import CommandId
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.events import EventReader
from codebatch.store.work.work_batches import read_command_ids, read_work
from codebatch.system.clock import wall_ns

JsonObject = dict[str, object]


class TraceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A time span in a trace, in nanoseconds since 1970. `track` is the slot or the worker, or empty if unknown."""

    name: str
    start_ns: int
    end_ns: int
    track: str = ""
    arguments: Mapping[str, object] = msgspec.field(default_factory=dict)
    memory_bytes: int = 0


def make_trace(store: StoreDir, batch: BatchDir) -> bytes:
    """Return the trace of a batch as JSON. Raises StoreCorrupt."""
    trace_events = _command_events(store, batch) if is_work(batch) else _unit_events(batch)
    return msgspec.json.encode({"displayTimeUnit": "ms", "traceEvents": list(trace_events)})


def _command_events(store: StoreDir, batch: BatchDir) -> Iterator[JsonObject]:
    work = read_work(batch)
    commands = read_command_ids(store, batch, work)
    spans = assign_slots(_attempt_spans(batch, commands, work.titles))
    yield {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"{work.source} ({batch.id})"}}
    for track in sorted({span.track for span in spans}, key=int):
        yield _track_event(int(track), f"slot {track}")
    yield from (_complete_event(span, int(span.track)) for span in spans)
    last = {span.name: span for span in spans}
    first: dict[str, TraceSpan] = {}
    for span in spans:
        first.setdefault(span.name, span)
    for number, edge in enumerate(work.edges, 1):
        if edge.on in last and edge.task in first and last[edge.on].end_ns <= first[edge.task].start_ns:
            yield from _arrow_events(number, edge.kind, last[edge.on], first[edge.task])
    yield from _counter_events(spans)
    for event in EventReader(batch.files, batch.root).read():
        if isinstance(event, events.TaskBlocked | events.TaskAnswered):
            detail = event.question.text if isinstance(event, events.TaskBlocked) else event.text
            name = f"{event.task}: {detail}"
            yield {
                "ph": "i",
                "s": "p",
                "pid": 1,
                "tid": 0,
                "ts": _microseconds(events.instant_ns(event.at)),
                "name": name,
            }


def _attempt_spans(batch: BatchDir, commands: list[CommandId], titles: Mapping[CommandId, str]) -> Iterator[TraceSpan]:
    """Yield a span for each attempt that ended, and for each attempt that started without a recorded end."""
    places = CommandPlaces(batch.plan().shards)
    begun: dict[tuple[ShardId, int, int], int] = {}
    for line in journal.read_journal(batch.files, batch.root):
        match line.event:
            case journal.Began(shard=shard, start=start, epoch=epoch):
                begun[shard, start, epoch] = line.at_ns
            case journal.Ran() as ran:
                item = places.item_at_place(ran.shard, ran.start)
                start_ns = begun.pop((ran.shard, ran.start, ran.epoch), line.at_ns - round(ran.seconds * 1e9))
                if item is not None and item < len(commands):
                    id_ = commands[item]
                    yield TraceSpan(
                        name=id_,
                        start_ns=start_ns,
                        end_ns=max(start_ns, start_ns + round(ran.seconds * 1e9)),
                        arguments={
                            "title": titles.get(id_, ""),
                            "round": ran.round,
                            "type": ran.type,
                            "reason": ran.reason,
                            "exit_status": ran.exit_status,
                            "cpu_seconds": ran.cpu_seconds,
                            "memory_peak_bytes": ran.memory_peak_bytes,
                            "log": ran.log,
                        },
                        memory_bytes=ran.memory_peak_bytes,
                    )
            case _:
                pass
    for (shard, start, _), at_ns in begun.items():
        item = places.item_at_place(shard, start)
        if item is not None and item < len(commands):
            yield TraceSpan(
                name=commands[item], start_ns=at_ns, end_ns=max(at_ns, wall_ns()), arguments={"type": "not ended"}
            )


def assign_slots(spans: Iterable[TraceSpan]) -> list[TraceSpan]:
    """Sort spans by start, and put each span into the lowest free slot. Slots are counted from 1."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    placed: list[TraceSpan] = []
    for span in sorted(spans, key=lambda span: (span.start_ns, span.name)):
        while busy and busy[0][0] <= span.start_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        slot = heapq.heappop(free) if free else len(busy) + 1
        heapq.heappush(busy, (span.end_ns, slot))
        placed.append(msgspec.structs.replace(span, track=str(slot)))
    return placed


def _unit_events(batch: BatchDir) -> Iterator[JsonObject]:
    yield {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"{batch.about.pipeline} ({batch.id})"}}
    tracks: dict[str, int] = {}
    begun: dict[tuple[str, str, int, int], tuple[int, journal.Began]] = {}
    spans: list[TraceSpan] = []
    parts: dict[str, list[TraceSpan]] = {}
    for line in journal.read_journal(batch.files, batch.root):
        match line.event:
            case journal.Began() as event:
                begun[line.holder, event.shard, event.start, event.epoch] = line.at_ns, event
            case journal.Finished() as event:
                at_ns, unit = begun.pop((line.holder, event.shard, event.start, event.epoch), (0, None))
                if unit is None:
                    continue
                arguments = {"items": event.end - event.start, "round": unit.round, "cpu_seconds": event.cpu_seconds}
                spans.append(
                    TraceSpan(
                        name=f"{', '.join(unit.tasks)} {event.shard}[{event.start}:{event.end}]",
                        start_ns=at_ns,
                        end_ns=at_ns + round(event.seconds * 1e9),
                        track=f"worker {line.holder[:8]}",
                        arguments=arguments,
                    )
                )
            case journal.PartReceived() as event:
                parts.setdefault(event.host, []).append(_part_span(event, line.at_ns))
            case journal.Failed() as event:
                name = f"{event.task}: {event.path or event.shard} {event.reason or ''}".rstrip()
                yield {"ph": "i", "s": "p", "pid": 1, "tid": 0, "ts": _microseconds(line.at_ns), "name": name}
            case _:
                pass
    for host, spans_of_host in parts.items():
        placed = assign_slots(spans_of_host)
        spans += (msgspec.structs.replace(span, track=f"{host}, slot {span.track}") for span in placed)
    for span in sorted(spans, key=lambda span: span.start_ns):
        if span.track not in tracks:
            tracks[span.track] = len(tracks) + 1
            yield _track_event(tracks[span.track], span.track)
        yield _complete_event(span, tracks[span.track])
    yield from _counter_events(spans)


def _part_span(event: journal.PartReceived, at_ns: int) -> TraceSpan:
    """Return the span of a part on an engine. It ends when its results arrive."""
    return TraceSpan(
        name=f"part with {count_text(len(event.shards), 'shard')}",
        start_ns=at_ns - round(event.seconds * 1e9),
        end_ns=at_ns,
        track="",
        arguments={"results": event.results, "cpu_seconds": event.cpu_seconds},
    )


def _track_event(number: int, name: str) -> JsonObject:
    return {"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": name}}


def _complete_event(span: TraceSpan, track: int) -> JsonObject:
    return {
        "ph": "X",
        "pid": 1,
        "tid": track,
        "ts": _microseconds(span.start_ns),
        "dur": _microseconds(span.end_ns - span.start_ns),
        "name": span.name,
        "args": dict(span.arguments),
    }


def _arrow_events(number: int, kind: str, source: TraceSpan, target: TraceSpan) -> Iterator[JsonObject]:
    for phase, span, at_ns in (("s", source, source.end_ns), ("f", target, target.start_ns)):
        arrow: JsonObject = {
            "ph": phase,
            "pid": 1,
            "tid": int(span.track),
            "ts": _microseconds(at_ns),
            "id": number,
            "name": kind,
        }
        yield {**arrow, "cat": kind, **({"bp": "e"} if phase == "f" else {})}


def _counter_events(spans: Iterable[TraceSpan]) -> Iterator[JsonObject]:
    """Yield counters over time: the number of running commands, and the sum of their peak memory."""
    running = memory = 0
    changes = [(span.start_ns, 1, span.memory_bytes) for span in spans]
    changes += [(span.end_ns, -1, -span.memory_bytes) for span in spans]
    for at_ns, count, size in sorted(changes):
        running += count
        memory += size
        yield {"ph": "C", "pid": 1, "ts": _microseconds(at_ns), "name": "running", "args": {"running": running}}
        if size:
            yield {"ph": "C", "pid": 1, "ts": _microseconds(at_ns), "name": "memory", "args": {"bytes": memory}}


def _microseconds(ns: int) -> float:
    return ns / 1000
