// One row for each worker, or for each running task of a task list.

import { button, find, setText, span } from "./dom.js";
import { bytes, duration, plural, visible } from "./text.js";

const ROWS_MAX = 64;

export class Workers {
	constructor(open) {
		Object.assign(this, { open, rows: [] });
	}

	render(state) {
		const running = state.runningTasks();
		const shown = running.slice(0, ROWS_MAX);
		while (this.rows.length > shown.length) this.rows.pop().node.remove();
		while (this.rows.length < shown.length) this.rows.push(this.makeRow());
		shown.forEach((run, index) => renderRow(this.rows[index], run, state));
		setText(find("now-title"), running.length ? `Now: ${plural(running.length, state.isWork ? "task" : "worker")} running` : "Timeline");
	}

	makeRow() {
		const parts = ["quiet", "id", "what", "quiet what", "number quiet what", "number seconds"].map((kind) => span(kind));
		const row = { parts, node: button(parts, () => this.open(row.task), { class: "worker" }) };
		find("workers").append(row.node);
		return row;
	}
}

function renderRow(row, run, state) {
	const seconds = run.began ? Math.max(0, (Date.now() - run.began) / 1000) : null;
	const median = state.spans.median(run.task);
	const isSlow = median !== null && seconds > Math.max(1, 2 * median);
	const { tryNumber, triesMax } = state.task(run.task);
	row.task = run.task;
	row.node.classList.toggle("slow", isSlow);
	const notes = [isSlow && `> 2 × median ${duration(median)}`, tryNumber > 1 && `attempt ${tryNumber} of ${triesMax}`, run.worker].filter(Boolean);
	const texts = [isSlow ? "!" : "▶", run.task, run.path, notes.join(" · "), run.output_bytes ? bytes(run.output_bytes) : "", duration(seconds > 10 ? Math.floor(seconds) : seconds)];
	texts.forEach((text, index) => setText(row.parts[index], visible(text)));
}
