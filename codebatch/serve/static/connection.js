// The connection for one batch: load it, follow its events, reconnect.

import { ApiError } from "./api.js";
import { BatchState, isAfter } from "./state.js";

const TASKS_PAGE = 500;
const HISTORY_EVENTS_MAX = 60000;
const [RETRY_MS, RETRY_MS_MAX] = [500, 10000];
const STATUS_MS = 5000;
// A frozen runner sends no news.
const QUIET_MS = 30000;

export class Connection {
	delay = RETRY_MS;
	newsAt = 0;
	statusTimer = setInterval(() => this.refresh(), STATUS_MS);

	constructor(api, id, page) {
		Object.assign(this, { api, id, page });
		this.open();
	}

	close() {
		this.isClosed = true;
		clearInterval(this.statusTimer);
		clearTimeout(this.retryTimer);
		this.drop();
	}

	drop() {
		if (!this.socket) return;
		this.socket.onclose = this.socket.onmessage = null;
		this.socket.close();
	}

	async guarded(work) {
		try {
			await work();
		} catch (error) {
			if (this.isClosed) return;
			if (!(error instanceof ApiError)) throw error;
			if (error.status === 410) this.reset();
			else if (error.status >= 400 && error.status < 500) this.page.failed(error);
			else this.lost(error.message);
		}
	}

	open() {
		clearTimeout(this.retryTimer);
		return this.guarded(async () => {
			if (this.state) this.state.setStatus(await this.api.batch(this.id));
			else await this.load();
			this.connect();
		});
	}

	// The first tasks. Others and older events follow.
	async load() {
		const state = new BatchState(await this.api.batch(this.id));
		this.id = state.id;
		if (state.isWork) await this.loadTasks(state, 0);
		if (this.isClosed) return;
		this.state = state;
		this.page.loaded(state);
		this.guarded(() => this.loadRest(state));
	}

	async loadTasks(state, offset) {
		const { tasks, total } = await this.api.batch(this.id, "/tasks", { offset, limit: TASKS_PAGE });
		state.setRows(tasks, offset, total);
		this.page.changed();
	}

	async loadFailures(state) {
		if (!state.isWork && state.counts.FAILED) state.failureGroups = (await this.api.batch(this.id, "/failures")).groups;
		this.page.changed();
	}

	async loadRest(state) {
		await this.loadFailures(state);
		const isCurrent = () => !this.isClosed && this.state === state;
		for (let offset = TASKS_PAGE; state.isWork && offset < state.total && isCurrent(); offset += TASKS_PAGE) await this.loadTasks(state, offset);
		const [batch, epoch, seq] = state.historyEnd.split(/[:.]/);
		const start = seq - HISTORY_EVENTS_MAX;
		let since = `${batch}:${start > 0 ? epoch : Math.max(0, epoch - 1)}.${Math.max(0, start)}`;
		for (let read = 0; read < 2 * HISTORY_EVENTS_MAX && isAfter(state.historyEnd, since) && isCurrent();) {
			const { events, cursor } = await this.api.batch(this.id, "/events", { since });
			if (!events.length) break;
			state.applyHistory(events);
			since = cursor;
			read += events.length;
			this.page.changed();
		}
	}

	connect() {
		if (this.isClosed) return;
		this.drop();
		this.socket = this.api.socket(this.id, this.state.cursor);
		this.socket.onopen = () => {
			this.delay = RETRY_MS;
			this.page.connected();
		};
		this.socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
		this.socket.onclose = () => this.lost("The server is gone");
	}

	receive({ events, progress, behind, reset }) {
		this.hasNews ||= Boolean(events?.length || progress);
		this.newsAt = Date.now();
		if (events) this.state.apply(events);
		if (progress) this.state.applyProgress(progress);
		if (behind) this.guarded(() => this.catchUp());
		if (reset) this.reset();
		this.page.changed();
	}

	reset() {
		this.drop();
		this.state = null;
		this.open();
	}

	async catchUp() {
		this.drop();
		let events;
		do {
			({ events } = await this.api.batch(this.id, "/events", { since: this.state.cursor }));
			this.state.apply(events);
			this.page.changed();
		} while (events.length && !this.isClosed);
		this.connect();
	}

	lost(reason) {
		this.drop();
		clearTimeout(this.retryTimer);
		this.retryTimer = setTimeout(() => this.open(), this.delay);
		this.page.lost(Date.now() + this.delay, reason);
		this.delay = Math.min(2 * this.delay, RETRY_MS_MAX);
	}

	// Correct what events lack, such as explanations.
	async refresh(hasNews = this.hasNews || (this.state?.isRunning && Date.now() - this.newsAt > QUIET_MS)) {
		const { state } = this;
		const tasks = this.page.tasks.visibleTasks();
		if (!state || !(hasNews || tasks[0]?.isStale) || this.socket.readyState !== WebSocket.OPEN) return;
		this.hasNews = false;
		await this.guarded(async () => {
			state.setStatus(await this.api.batch(this.id));
			this.hasNews ||= isAfter(state.cursor, state.statusCursor);
			await this.loadFailures(state);
			const pages = new Set(tasks.map((task) => Math.trunc(state.rows.indexOf(task) / TASKS_PAGE)));
			for (const page of state.isWork ? [...pages].slice(0, 2) : []) await this.loadTasks(state, page * TASKS_PAGE);
		});
	}
}
