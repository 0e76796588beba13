// When tasks ran: attempts of a task list, or sampled items of an analysis.

import { eventKind } from "./text.js";

const SPANS_MAX = 30000;
const SAMPLES_MAX = 400;
const ENDS = { COMPLETED: "DONE", FAILED: "FAILED", RETRYING: "FAILED", BLOCKED: "BLOCKED", CANCELLED: "CANCELLED", INTERRUPTED: "CANCELLED", STOPPED: "CANCELLED" };

export class Spans {
	all = new Map();
	seconds = new Map();

	// Events can come twice, and in any order.
	apply({ task, title: label, round, since, seconds, ...event }) {
		const kind = eventKind(event);
		const at = Date.parse(event.at);
		if (task === undefined) {
			if (kind === "DRAINED" || seconds !== undefined) for (const span of this.all.values()) if (span.to === null) this.end(span, at, "CANCELLED");
			return;
		}
		const key = `${task}\n${round}`;
		const span = this.all.get(key);
		if (kind === "STARTED" || kind === "ADOPTED") {
			const from = since ? Date.parse(since) : at;
			if (span) span.from = Math.min(span.from, from);
			else this.add(key, { task, label, from, to: null, state: "RUNNING" });
		} else if (ENDS[kind] && !event.is_live && (span ? span.to === null : seconds)) {
			this.end(span ?? this.add(key, { task, label, from: at - 1000 * seconds }), at, ENDS[kind], "");
		}
	}

	add(key, span) {
		this.all.set(key, span);
		if (this.all.size > SPANS_MAX) this.all.delete(this.all.keys().next().value);
		return span;
	}

	end(span, to, state, group) {
		Object.assign(span, { to, state });
		if (state !== "DONE") return;
		const seconds = this.seconds.get(group) ?? [];
		this.seconds.set(group, [...seconds.slice(-SAMPLES_MAX), (to - span.from) / 1000]);
	}

	// An analysis does not report when items start and end.
	sample(running, now) {
		const current = new Set();
		for (const { worker, task, path, began } of running) {
			const key = `${worker}\n${task}\n${path}`;
			current.add(key);
			if (!this.all.has(key)) this.add(key, { lane: worker, task, label: path ?? task, from: began, to: null, state: "RUNNING" });
		}
		for (const [key, span] of this.all) if (span.to === null && !current.has(key)) this.end(span, now, "DONE", span.task);
	}

	// The median of recent durations, or null if there are fewer than five.
	median(group) {
		const seconds = this.seconds.get("") ?? this.seconds.get(group) ?? [];
		return seconds.length < 5 ? null : [...seconds].sort((a, b) => a - b)[seconds.length >> 1];
	}

	get last() {
		return [...this.all.values()].reduce((last, { from, to }) => Math.max(last, to ?? from), 0);
	}
}
