// The state of one batch. Events change it.

import { Spans } from "./spans.js";
import { eventKind, failureReason, number, visible } from "./text.js";

// The task of a worker between two tasks.
const IDLE = "-";
const ENDS = ["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"];
const AFTER_INTERRUPTION = { restart: "READY", fail: "FAILED", ask: "BLOCKED", none: "CANCELLED" };

const failure = (event, state, suffix = "") => ({
	state, explanation: failureReason(event.reason, event.exit_status) + suffix, tail: event.log_tail, failedAt: event.at, seconds: event.seconds,
});

const TASK_CHANGES = {
	QUEUED: () => ({ state: "READY" }),
	STARTED: ({ at }) => ({ state: "RUNNING", began: Date.parse(at), output: 0 }),
	ADOPTED: ({ since }) => ({ state: "RUNNING", began: Date.parse(since) }),
	COMPLETED: ({ seconds, reason, exit_status: status }) => ({ state: "DONE", seconds, explanation: failureReason(reason, status) }),
	RETRYING: (event) => failure(event, "WAITING", "; will be retried"),
	FAILED: (event) => failure(event, "FAILED"),
	BLOCKED: ({ question }) => ({ state: "BLOCKED", explanation: question.text.split("\n", 1)[0], question }),
	ANSWERED: () => ({ state: "READY" }),
	SKIPPED: ({ reason }) => ({ state: "SKIPPED", explanation: reason }),
	CANCELLED: ({ seconds }) => ({ state: "CANCELLED", seconds }),
	INTERRUPTED: (event) => ({ state: AFTER_INTERRUPTION[event.next_action], explanation: "interrupted" }),
	STOPPED: ({ cause }) => ({ state: cause === "cancel" ? "CANCELLED" : "PENDING", explanation: "stopped" }),
};

// A cursor is BATCH:EPOCH.SEQ.
export function isAfter(cursor, other) {
	const [, epoch, seq, , otherEpoch, otherSeq] = `${cursor}.${other}`.split(/[:.]/).map(Number);
	return epoch > otherEpoch || (epoch === otherEpoch && seq > otherSeq);
}

export class BatchState {
	constructor(answer) {
		Object.assign(this, { id: answer.status.batch_id, isWork: answer.kind === "work", rows: [], tasks: new Map(), spans: new Spans(), workers: new Map(), running: [], failureGroups: [], total: 0, lastEventAt: "", criticalPath: [] });
		this.cursor = this.historyEnd = answer.cursor;
		this.setStatus(answer);
	}

	get isOver() {
		return !["PENDING", "RUNNING"].includes(this.status.status);
	}

	get isRunning() {
		return !this.isOver && !this.status.stalled;
	}

	setStatus({ status, resume, cursor }) {
		Object.assign(this, { status, resume, statusCursor: cursor, cached: status.cached ?? this.cached, startedAt: status.started_at ?? this.startedAt, endedAt: status.ended_at ?? this.endedAt });
		// A newer event has newer counts.
		if (!isAfter(this.cursor, cursor)) this.counts = status.counts ?? { DONE: status.results, FAILED: status.failed };
		if (this.isWork) this.setEta(status.eta_seconds, this.withoutEstimate);
		else this.setAnalysisTasks(status.tasks);
	}

	setEta(eta, withoutEstimate = 0) {
		// The estimated ends.
		this.ends = eta?.map((seconds) => Date.now() + 1000 * seconds);
		this.withoutEstimate = withoutEstimate;
	}

	get numbers() {
		const { DONE: done = 0, FAILED: failed = 0, SKIPPED = 0, CANCELLED = 0, BLOCKED: blocked = 0 } = this.counts;
		return { planned: this.isWork ? this.total : this.status.planned, done, cached: this.cached ?? 0, failed, dropped: SKIPPED + CANCELLED, blocked };
	}

	costText(cost) {
		return (cost ?? "") === "" ? "" : visible(`${number(cost)} ${this.status.cost_unit}`).trim();
	}

	task(id) {
		if (!this.tasks.has(id)) this.tasks.set(id, { id, title: "", text: "", state: "PENDING", explanation: "", needs: [], after: [], round: 0, tryNumber: 0, triesMax: 1, isStale: false, cursor: ":0.0", question: null });
		return this.tasks.get(id);
	}

	setRows(rows, offset, total) {
		this.total = total;
		rows.forEach(({ id, title, needs, after, state, explanation, round, question, ...row }, index) => {
			const task = (this.rows[offset + index] = this.task(id));
			Object.assign(task, { title, needs, after, triesMax: row.tries_max, text: `${id} ${title}`.toLowerCase() });
			// A row can be older than an event.
			if (isAfter(task.cursor, this.statusCursor)) return;
			Object.assign(task, { state, explanation, round, tryNumber: row.try_number, result: row.result_text, cost: row.cost, isStale: false });
			if (task.question?.digest !== question) task.question = question && { digest: question, text: row.question_text };
		});
	}

	setAnalysisTasks(rows) {
		this.total = rows.length;
		this.rows = rows.map(({ task_id: id, files_done: done, files_failed: failed, files_total: total, ...row }) => Object.assign(this.task(id), {
			needs: row.depends_on, state: row.status.toUpperCase(), text: id.toLowerCase(), done, failed, total,
			explanation: row.type === "project" ? "once per project" : `${number(done)} of ${number(total)} files${failed ? `, ${number(failed)} failed` : ""}`,
		}));
	}

	// An event that was applied before is ignored.
	apply(events) {
		for (const event of events) {
			if (!isAfter(event.cursor, this.cursor)) continue;
			Object.assign(this, { cursor: event.cursor, counts: event.counts });
			this.record(event);
			if (event.task === undefined) this.applyToBatch(event);
			else Object.assign(this.task(event.task), { cursor: event.cursor, round: event.round, tryNumber: event.try, explanation: "", question: null, isStale: true }, TASK_CHANGES[eventKind(event)]?.(event));
		}
	}

	// Keep what the status lacks.
	record(event) {
		this.spans.apply(event);
		if (event.at > this.lastEventAt) this.lastEventAt = event.at;
		if (event.at < (this.startedAt ?? "~")) this.startedAt = event.at;
		if (ENDS.includes(eventKind(event)) && !event.task) Object.assign(this, { criticalPath: event.critical_path, endedAt: event.at });
	}

	applyToBatch(event) {
		const { status } = this;
		const kind = eventKind(event);
		if (kind === "PROGRESS") {
			this.setEta(event.eta_seconds, event.without_estimate);
			if (this.isWork) this.setRunning(event.running, Date.parse(event.at));
		} else if (kind === "STARTED" || kind === "RESUMED") Object.assign(status, { status: "RUNNING", stalled: false, paused: false });
		else if (kind === "PAUSED" || kind === "UNPAUSED") status.paused = kind === "PAUSED";
		else if (kind === "DRAINED") status.stalled = true;
		else if (ENDS.includes(kind)) {
			Object.assign(status, { status: kind, stalled: false });
			this.running = [];
		}
	}

	applyProgress({ counts, cached, eta_seconds: eta, running, tasks }) {
		this.counts = counts;
		this.cached = cached;
		this.setEta(eta);
		this.setAnalysisTasks(tasks);
		this.setRunning(running, Date.now());
		this.spans.sample(this.running, Date.now());
	}

	setRunning(running, now) {
		this.running = running.filter(({ task }) => task !== IDLE).map(({ worker, seconds, ...run }) => {
			if (!this.workers.has(worker)) this.workers.set(worker, `worker ${this.workers.size + 1}`);
			return { ...run, worker: this.isWork ? "" : this.workers.get(worker), began: now - seconds * 1000 };
		});
		if (this.isWork) for (const { task, began, output_bytes: output } of this.running) Object.assign(this.task(task), { began, output });
	}

	applyHistory(events) {
		for (const event of events) {
			if (isAfter(event.cursor, this.historyEnd)) return;
			this.record(event);
			const task = this.tasks.get(event.task);
			const { state, explanation, ...changes } = TASK_CHANGES[eventKind(event)]?.(event) ?? {};
			if (task && task.state === state && !isAfter(task.cursor, this.historyEnd) && changes.question?.digest === task.question?.digest) Object.assign(task, changes);
		}
	}

	runningTasks() {
		if (!this.isWork) return this.running;
		const running = this.rows.filter((task) => task?.state === "RUNNING");
		return running.map((task) => ({ ...task, task: task.id, path: task.title, output_bytes: task.output })).sort((a, b) => a.began - b.began);
	}

	// Groups of equal failures, the newest first.
	failures() {
		if (!this.isWork) return this.failureGroups;
		const groups = new Map();
		const failed = this.rows.filter((row) => row?.state === "FAILED").sort((a, b) => ((a.failedAt ?? "") < (b.failedAt ?? "") ? 1 : -1));
		for (const { id, explanation: reason, tail, failedAt } of failed) {
			const [task] = id.split("/", 1);
			// Figures after the reason can differ.
			const [cause] = reason.split("; ");
			const key = `${cause}\n${task}`;
			const group = groups.get(key) ?? { task, path: id, evidence: tail?.join("\n"), ids: [], at: failedAt };
			groups.set(key, Object.assign(group, { reason: group.count ? cause : reason, count: group.ids.push(id) }));
		}
		return [...groups.values()];
	}
}
