// The state line, and the bar of done, cached and failed work.

import { command, element, find, isShown, setText, span, stateChip } from "./dom.js";
import { clock, number, percentage, plural, remaining, stopwatch, visible } from "./text.js";

const part = {};

export function renderSummary(state) {
	const { numbers, status } = state;
	const parts = numberTexts(state, numbers);
	const name = visible(state.isWork ? status.source : `${status.pipeline} · ${status.project.split("/").pop()}`);
	if (!isShown(part, state.id, status.status, status.stalled, state.isRunning || state.lastEventAt, state.resume, parts)) {
		find("name").replaceChildren(name, span("id", state.id));
		find("state").replaceChildren(status.stalled ? stateChip("WAITING", "stalled") : stateChip(status.status));
		find("numbers").replaceChildren(...parts.flatMap(([kind, text], index) => [index ? " · " : "", span(kind, text)]));
		renderBar(numbers, parts.map(([, text]) => text).join(" · "));
		renderStopped(state);
		const attention = parts.filter(([kind]) => kind).map(([, text]) => text).join(", ");
		document.title = `${attention || percentage(numbers.done, numbers.planned)} · ${name}`;
	}
	renderClock(state, numbers);
}

function numberTexts(state, { planned, done, cached, failed, dropped, blocked }) {
	const { isWork, status } = state;
	const cost = state.costText(status.cost);
	return [
		["", `${number(done)} of ${plural(planned, isWork ? "task" : "result")}`], failed && ["is-failed", `${number(failed)} failed`], blocked && ["is-question", plural(blocked, "question")],
		dropped && ["", `${number(dropped)} skipped or cancelled`], cached && ["", `${percentage(cached, planned)} cached`], status.paused && ["is-question", "paused"],
		cost && ["", `cost ${cost}`], status.costs_unknown && ["is-question", `cost unknown for ${plural(status.costs_unknown, "attempt")}`],
		...[...(status.closed_pools ?? []), ...(status.caps ?? [])].map(({ text }) => ["is-question", text]),
		status.not_responding_since && ["is-failed", `not responding since ${clock(status.not_responding_since)}`],
		status.notifications?.failed_count && ["is-failed", `${plural(status.notifications.failed_count, "notification")} failed`],
	].filter(Boolean);
}

function renderBar({ planned, done, cached, failed, dropped }, label) {
	const bar = find("bar");
	const widths = { done: done - cached, cached, failed: failed + dropped };
	for (const segment of bar.children) segment.style.width = `${(100 * widths[segment.className]) / Math.max(1, planned)}%`;
	bar.setAttribute("aria-label", label);
}

function renderStopped(state) {
	const { status, stalled } = state.status;
	find("stopped").hidden = !stalled && (!state.isWork || !state.isOver || status === "COMPLETED");
	const since = state.lastEventAt ? ` since ${clock(state.lastEventAt, "short")}` : "";
	find("stopped").replaceChildren(element("strong", null, `Not running${since}`), "To continue:", command(state.resume));
}

function renderClock(state, { blocked }) {
	const { status, isRunning, isOver } = state;
	setText(find("remaining"), isRunning ? remaining(state.ends, blocked, state.withoutEstimate, status.paused) : "");
	const began = Date.parse(state.startedAt);
	const end = isOver ? Date.parse(state.endedAt) : Date.now();
	const times = [`started ${clock(began, "short")}`, isOver && `ended ${clock(end, "short")}`, !status.stalled && stopwatch((end - began) / 1000 || 0)];
	setText(find("clock"), isNaN(end - began) ? "" : times.filter(Boolean).join(" · "));
}
