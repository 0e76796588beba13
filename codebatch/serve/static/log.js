// The log of an attempt: its end first, older output on demand.

import { appendOutput } from "./ansi.js";
import { button, element, span } from "./dom.js";
import { bytes } from "./text.js";

const PART = 262144;
const SHOWN_MAX = 8 * PART;
const FOLLOW_MS = 1000;
const LINE_MAX = 8192;

export class LogView {
	// `read({offset, limit})` returns a part of the log.
	constructor(read, isRunning, scroller) {
		Object.assign(this, { read, isRunning, scroller, decoder: new TextDecoder(), style: {} });
		this.output = element("pre", { class: "output", tabindex: "0", "aria-label": "Log" });
		this.note = span("quiet");
		this.older = button("Load older output", () => this.guarded(() => this.loadOlder()), { hidden: true });
		this.nodes = [this.older, this.output, this.note];
		this.guarded(() => this.open());
		this.timer = setInterval(() => this.follow(), FOLLOW_MS);
	}

	close() {
		clearInterval(this.timer);
	}

	async guarded(work) {
		if (this.isBusy) return;
		this.isBusy = true;
		try {
			await work();
			this.describe();
		} catch (error) {
			this.note.textContent = error.message;
		}
		this.isBusy = false;
	}

	async open() {
		const { data, ...part } = await this.read({ offset: -PART, limit: PART });
		Object.assign(this, part);
		this.output.replaceChildren();
		this.append(this.wholeLines(data));
		this.scroller.scrollTop = this.scroller.scrollHeight;
	}

	// Leave out an incomplete first line, unless it is very long.
	wholeLines(data) {
		const skipped = this.start ? data.subarray(0, LINE_MAX).indexOf(10) + 1 : 0;
		this.start += skipped;
		return data.subarray(skipped);
	}

	append(data) {
		appendOutput(this.output, this.decoder.decode(data, { stream: true }), this.style);
	}

	// Read new output, and once more after the end of the attempt.
	follow() {
		const isRunning = this.isRunning();
		if (isRunning || this.wasRunning) this.guarded(async () => {
			this.wasRunning = isRunning;
			if (!this.log) return this.open();
			const { data, end, log } = await this.read({ offset: this.end, limit: PART });
			if (log !== this.log) return this.open();
			const { scroller } = this;
			const isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40;
			if (end > this.end) this.append(data);
			this.end = end;
			if (isAtEnd) scroller.scrollTop = scroller.scrollHeight;
			if (this.end - this.start > SHOWN_MAX) await this.open();
		});
	}

	async loadOlder() {
		const { scroller, start } = this;
		const offset = Math.max(0, start - PART);
		const { data } = await this.read({ offset, limit: start - offset });
		this.start = offset;
		const older = document.createDocumentFragment();
		appendOutput(older, new TextDecoder().decode(this.wholeLines(data)));
		const height = scroller.scrollHeight;
		this.output.prepend(older);
		scroller.scrollTop += scroller.scrollHeight - height;
	}

	describe() {
		const { start, end } = this;
		this.older.hidden = start === 0;
		this.note.textContent = (start ? `the last ${bytes(end - start)} of ` : "") + bytes(end) + (this.isRunning() ? "; new output follows" : "");
	}
}
