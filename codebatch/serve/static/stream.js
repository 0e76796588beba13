// The timeline, with a lane for each worker, or for each slot of a task list.

import { find, setText } from "./dom.js";
import { STATES, clock, duration, visible } from "./text.js";

const WINDOW_MS = 600000;
const AHEAD_MS_MIN = 30000;
const LANES_MAX = 48;
const AXIS = 18;
const STEPS_MS = [5e3, 15e3, 3e4, 6e4, 12e4, 3e5, 9e5, 18e5, 36e5, 72e5, 216e5, 864e5, 6048e5];
const STATE_COLORS = { DONE: "done", RUNNING: "accent", FAILED: "error", BLOCKED: "warning", CANCELLED: "muted" };

export class Stream {
	bars = [];
	colors = {};
	frozenAt = 0;

	constructor(open) {
		const canvas = find("stream");
		Object.assign(this, { open, canvas, draw: canvas.getContext("2d") });
		canvas.addEventListener("mousemove", ({ offsetX: x, offsetY: y }) => this.choose(this.bars.find((bar) => x >= bar.x - 1 && x <= bar.x + bar.width + 1 && y >= bar.y && y <= bar.y + bar.height)?.span));
		canvas.addEventListener("click", () => this.toggleFrozen());
		canvas.addEventListener("keydown", (event) => this.press(event));
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.colors = {}; });
		new ResizeObserver(() => this.render(this.state)).observe(canvas);
	}

	toggleFrozen() {
		this.frozenAt = this.frozenAt ? 0 : Date.now();
		this.render(this.state);
	}

	press(event) {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (event.key === " ") this.toggleFrozen();
		else if (event.key === "Enter" && this.chosen) this.open(this.chosen.task);
		else if (step) this.choose((this.bars[this.bars.findIndex(({ span }) => span === this.chosen) + step] ?? this.bars.at(-1))?.span);
		else return;
		event.preventDefault();
	}

	choose(span) {
		if (span === this.chosen) return;
		this.chosen = span;
		this.render(this.state);
	}

	render(state) {
		const width = this.canvas.clientWidth;
		if (!state || !width) return;
		if (this.state !== state) Object.assign(this, { state, frozenAt: 0, chosen: undefined });
		this.critical = new Set(state.criticalPath);
		const now = this.frozenAt || (state.isRunning ? Date.now() : state.spans.last || Date.now());
		const { spans, lanes, from } = layout(state, now);
		const ends = state.isRunning && state.ends?.map((at) => Math.max(at, now));
		const to = Math.max(now + (now - from) / 50, ends ? Math.min(ends[2], now + Math.max(AHEAD_MS_MIN, (now - from) / 3)) : 0);
		const laneHeight = lanes.size <= 8 ? 20 : lanes.size <= 20 ? 14 : 9;
		const left = state.isWork ? 0 : Math.min(90, width / 6);
		const height = AXIS + Math.max(1, lanes.size) * laneHeight + 6;
		this.resize(width, height);
		const place = (at) => left + ((at - from) / (to - from)) * (width - left);
		this.drawAxis(place, from, to, width, height);
		if (ends) this.drawEnds(ends, place, width, height);
		this.bars = spans.map((span) => this.drawSpan(span, AXIS + (lanes.get(span.lane) + 1) * laneHeight - 1, laneHeight - 2, place, now));
		if (left) for (const [name, lane] of lanes) this.fill("muted", visible(name, 12), 6, AXIS + (lane + 0.5) * laneHeight, left - 10);
		this.fill("ink", null, place(now), 0, 1, height);
		this.describe();
	}

	// If the text is null, fill a rectangle.
	fill(color, text, ...place) {
		this.draw.fillStyle = this.colors[color] ??= getComputedStyle(this.canvas).getPropertyValue(`--${color}`);
		if (text === null) this.draw.fillRect(...place);
		else this.draw.fillText(text, ...place);
	}

	resize(width, height) {
		const { canvas, draw } = this;
		const [columns, lines] = [width, height].map((size) => Math.round(size * devicePixelRatio));
		if (canvas.width !== columns || canvas.height !== lines) {
			canvas.style.height = `${height}px`;
			Object.assign(canvas, { width: columns, height: lines });
		}
		draw.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
		draw.clearRect(0, 0, width, height);
		Object.assign(draw, { font: "11px sans-serif", textBaseline: "middle" });
	}

	drawAxis(place, from, to, width, height) {
		const step = STEPS_MS.find((each) => ((to - from) / each) * 80 < width) ?? to;
		for (let at = Math.ceil(from / step) * step; at < to; at += step) {
			this.fill("line", null, place(at), AXIS - 4, 1, height);
			if (place(at) + 52 < width) this.fill("muted", clock(at, step < 60000 ? "medium" : "short").split(" ").pop(), place(at) + 4, 9);
		}
	}

	// The range of estimated ends, with a line at the median.
	drawEnds(ends, place, width, height) {
		const [low, middle, high] = ends.map((at) => Math.min(place(at), width));
		this.draw.globalAlpha = 0.14;
		this.fill("accent", null, low, 0, high - low, height);
		this.draw.globalAlpha = 1;
		for (let y = 0; y < height; y += 6) this.fill("accent", null, middle, y, 1, 3);
		const text = `ends ${clock(ends[0], "short")}–${clock(ends[2], "short")} →`;
		if (middle === width) this.fill("accent", text, width - this.draw.measureText(text).width - 6, height - 10);
	}

	drawSpan(span, bottom, heightMax, place, now) {
		const { draw, state } = this;
		const x = place(span.from);
		const width = Math.max(1, place(Math.min(span.to ?? now, now)) - x - 0.5);
		// Colour alone is not enough: attempts without success are lower, with a glyph.
		const isLow = !["DONE", "RUNNING"].includes(span.state);
		const height = heightMax * (isLow ? 0.7 : 1);
		const y = bottom - height;
		this.fill(state.isWork ? STATE_COLORS[span.state] : `l${state.rows.findIndex(({ id }) => id === span.task) % 6}`, null, x, y, width, height);
		if (this.critical.has(span.task)) this.fill("ink", null, x, bottom - 2, width, 3);
		if (span === this.chosen) this.fill("ink", null, x, y - 2, width, 2);
		if (heightMax >= 12 && width > (isLow ? 14 : 40)) {
			draw.save();
			draw.beginPath();
			draw.rect(x, y, width - 3, height);
			draw.clip();
			this.fill("page", visible((isLow ? `${STATES[span.state][0]} ` : "") + (state.isWork ? span.task : span.label.split("/").pop()), 60), Math.max(x, 0) + 4, y + height / 2 + 0.5);
			draw.restore();
		}
		return { span, x, y, width, height };
	}

	describe() {
		const { chosen: span, frozenAt, state } = this;
		const legend = state.isWork ? `Attempts by slot${state.criticalPath.length ? "; the critical path is underlined" : ""}.` : "Files by worker, sampled once a second.";
		const text = span ? [visible(span.task), visible(span.label), STATES[span.state][1], clock(span.from), duration(((span.to ?? Date.now()) - span.from) / 1000)].join(" · ") : `${legend} ${frozenAt ? "Frozen. Click to continue." : "Click to freeze."}`;
		setText(find("span"), text);
	}
}

// A task list that is not running is shown as a whole.
function layout(state, now) {
	// The end of an attempt may not have been read yet.
	const all = [...state.spans.all.values()].filter(({ to, task }) => to !== null || !state.isWork || state.task(task).state !== "DONE").sort((a, b) => a.from - b.from);
	const first = all[0]?.from ?? now - 1000;
	const from = state.isWork && !state.isRunning ? first : Math.max(now - WINDOW_MS, Math.min(first, now - AHEAD_MS_MIN));
	const ends = [];
	// Each attempt gets the lowest free slot.
	for (const span of state.isWork ? all : []) {
		const free = ends.findIndex((end) => end <= span.from);
		span.lane = free < 0 ? ends.length : free;
		ends[span.lane] = span.to ?? Infinity;
	}
	const spans = all.filter((span) => (span.to ?? now) >= from && span.from <= now);
	const names = [...new Set(spans.map(({ lane }) => lane))].sort((a, b) => (a > b ? 1 : -1)).slice(0, LANES_MAX);
	const lanes = new Map(names.map((name, index) => [name, index]));
	return { spans: spans.filter(({ lane }) => lanes.has(lane)), lanes, from };
}
