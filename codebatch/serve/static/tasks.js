// The table of tasks. Rows exist only while they are visible.

import { button, element, find, isShown, setText, stateChip } from "./dom.js";
import { STATES, duration, number, percentage, visible } from "./text.js";

const ROWS_MAX = 120;
const ROW_HEIGHT = 28;
const COLUMNS = { State: "", Task: "id", Title: "rare", Tries: "rare number", Time: "number", Details: "why", Cost: "number cost" };

export class Tasks {
	pool = [];
	head = Object.entries(COLUMNS).map(([name, kind]) => element("span", { role: "columnheader", class: kind }, name));

	constructor(open) {
		Object.assign(this, { open, node: find("table"), filter: find("filter"), states: find("states"), space: element("div") });
		this.node.append(element("div", { class: "row head", role: "row" }, this.head), this.space);
		this.node.addEventListener("scroll", () => requestAnimationFrame(() => this.renderRows()), { passive: true });
		this.node.addEventListener("keydown", (event) => this.press(event));
		this.filter.addEventListener("input", () => this.show(this.wanted));
	}

	render(state) {
		if (this.state !== state) {
			Object.assign(this, { state, wanted: "", chosen: -1 });
			this.filter.value = "";
			this.head[4].textContent = state.isWork ? "Time" : "Done";
		}
		this.node.classList.toggle("has-cost", state.costText(state.status.cost) !== "");
		const words = this.filter.value.trim().toLowerCase();
		this.rows = state.rows.filter((task) => task && (!this.wanted || task.state === this.wanted) && task.text.includes(words));
		this.renderStates();
		this.space.style.height = `${this.rows.length * ROW_HEIGHT}px`;
		this.node.style.height = `${(this.rows.length + 1) * ROW_HEIGHT + 2}px`;
		this.node.setAttribute("aria-rowcount", this.rows.length + 1);
		this.renderRows();
	}

	show(wanted) {
		Object.assign(this, { wanted, chosen: -1 });
		this.node.scrollTop = 0;
		this.render(this.state);
	}

	renderStates() {
		const { rows } = this.state;
		const counts = countStates(rows);
		if (isShown(this, counts, this.wanted)) return;
		const hasFocus = this.states.contains(document.activeElement);
		const filter = (state, ...label) => button(label, () => this.show(this.wanted === state ? "" : state), { "aria-pressed": `${this.wanted === state}` });
		this.states.replaceChildren(filter("", `all ${number(rows.length)}`), ...counts.filter(([state, count]) => count || state === this.wanted).map(([state, count]) => filter(state, stateChip(state), ` ${number(count)}`)));
		if (hasFocus) this.states.querySelector("[aria-pressed=true]").focus();
	}

	// The visible tasks, those that an event changed first.
	visibleTasks() {
		return this.pool.filter(({ node }) => !node.hidden).map(({ task }) => task).sort((a, b) => b.isStale - a.isStale);
	}

	renderRows() {
		const first = Math.max(0, Math.floor(this.node.scrollTop / ROW_HEIGHT) - 5);
		const count = Math.min(ROWS_MAX, this.rows.length - first, Math.ceil(this.node.clientHeight / ROW_HEIGHT) + 10);
		while (this.pool.length < count) this.pool.push(this.makeRow());
		this.pool.forEach((row, index) => {
			row.node.hidden = index >= count;
			if (index < count) this.fill(row, this.rows[first + index], first + index);
		});
	}

	makeRow() {
		const row = { cells: Object.values(COLUMNS).map((kind) => element("span", { role: "cell", class: kind })) };
		row.node = element("div", { class: "row", role: "row", click: () => {
			this.chosen = row.index;
			this.open(row.task.id);
		} }, row.cells);
		this.node.append(row.node);
		return row;
	}

	fill(row, task, index) {
		const { cells, node } = row;
		node.style.top = `${(index + 1) * ROW_HEIGHT}px`;
		node.classList.toggle("chosen", index === this.chosen);
		node.id = `row-${index}`;
		node.setAttribute("aria-rowindex", index + 2);
		if (row.state !== task.state) cells[0].replaceChildren(stateChip(task.state));
		Object.assign(row, { task, index, state: task.state });
		const seconds = task.state === "RUNNING" && task.began ? Math.floor((Date.now() - task.began) / 1000) : task.seconds;
		const texts = [task.id, task.title, task.tryNumber > 1 ? `${task.tryNumber} of ${task.triesMax}` : "", task.total ? percentage(task.done, task.total) : duration(seconds), task.explanation, this.state.costText(task.cost)];
		texts.forEach((text, column) => setText(cells[column + 1], visible(text)));
	}

	press(event) {
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (event.key === "Enter" && this.rows[this.chosen]) this.open(this.rows[this.chosen].id);
		else if (step && this.rows.length) {
			this.chosen = Math.min(this.rows.length - 1, Math.max(0, this.chosen + step));
			const top = this.chosen * ROW_HEIGHT;
			this.node.scrollTop = Math.min(top, Math.max(this.node.scrollTop, top + 2 * ROW_HEIGHT - this.node.clientHeight + 2));
			this.renderRows();
			this.node.setAttribute("aria-activedescendant", `row-${this.chosen}`);
		} else return;
		event.preventDefault();
	}
}

// The number of tasks in each state.
export function countStates(tasks) {
	const counts = Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));
	for (const task of tasks) if (task) counts[task.state] += 1;
	return Object.entries(counts);
}
