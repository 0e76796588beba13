// The graph of dependencies: a drawing for small batches, otherwise one row per level.

import { command, find, isShown, shape, span, stateChip, table, tableRow } from "./dom.js";
import { countStates } from "./tasks.js";
import { STATES, codebatch, number, visible } from "./text.js";

const NODES_MAX = 150;
const LEVELS_MAX = 50;
const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [168, 26, 56, 10];

export class Graph {
	constructor(open) {
		Object.assign(this, { open, node: find("graph") });
	}

	render(state) {
		if (this.node.hidden) return;
		const rows = state.rows.filter(Boolean);
		const isSmall = rows.length <= NODES_MAX;
		if (isShown(this, state.id, rows.length, isSmall ? rows.map((task) => task.state) : state.counts)) return;
		const columns = levels(rows);
		const focused = document.activeElement.id;
		this.node.replaceChildren(...(isSmall ? [this.drawing(columns)] : levelTable(rows, columns)));
		find(focused)?.focus();
	}

	drawing(columns) {
		const places = new Map();
		columns.forEach((column, x) => {
			// The mean height of dependencies: fewer edges cross.
			const mean = (task) => dependencies(task, places).reduce((sum, id, _, { length }) => sum + places.get(id).y / length, 0);
			[...column].sort((a, b) => mean(a) - mean(b)).forEach((task, y) => places.set(task.id, { x: x * (WIDTH + GAP_X) + 2, y: y * (HEIGHT + GAP_Y) + 2, task }));
		});
		const lines = [...places.values()].flatMap((to) => dependencies(to.task, places).map((on) => {
			const [x, y, end, half] = [places.get(on).x + WIDTH, places.get(on).y + HEIGHT / 2, to.y + HEIGHT / 2, GAP_X / 2];
			return shape("path", { class: "edge", d: `M${x} ${y}C${x + half} ${y} ${to.x - half} ${end} ${to.x} ${end}` });
		}));
		const nodes = [...places.values()].map(({ x, y, task: { id, state } }, index) => {
			const [glyph, word] = STATES[state];
			const open = (event) => { if (event.type === "click" || event.key === "Enter") this.open(id); };
			return shape("g", { id: `node-${index}`, class: `node is-${word}`, transform: `translate(${x} ${y})`, tabindex: "0", role: "button", click: open, keydown: open },
				shape("title", null, `${visible(id)}: ${word}`), shape("rect", { width: WIDTH, height: HEIGHT, rx: 6 }), shape("text", { class: "glyph", x: 9, y: 17 }, glyph), shape("text", { x: 26, y: 17 }, visible(id, 20)));
		});
		const height = Math.max(...columns.map(({ length }) => length)) * (HEIGHT + GAP_Y);
		return shape("svg", { width: columns.length * (WIDTH + GAP_X), height, role: "group", "aria-label": "Dependencies" }, lines, nodes);
	}
}

const dependencies = ({ needs, after }, known) => [...needs, ...after].filter((id) => known.has(id));

// The tasks by level, which is one above those of their dependencies.
function levels(rows) {
	const nodes = new Map(rows.map((task) => [task.id, { task, level: 0, waits: 0, dependents: [] }]));
	for (const node of nodes.values()) {
		for (const on of dependencies(node.task, nodes)) {
			node.waits += 1;
			nodes.get(on).dependents.push(node);
		}
	}
	const columns = [];
	const ready = [...nodes.values()].filter(({ waits }) => !waits);
	for (const { task, level, dependents } of ready) {
		(columns[level] ??= []).push(task);
		for (const dependent of dependents) {
			dependent.level = Math.max(dependent.level, level + 1);
			dependent.waits -= 1;
			if (!dependent.waits) ready.push(dependent);
		}
	}
	return columns;
}

function levelTable(rows, columns) {
	const chips = (column) => countStates(column).map(([state, count]) => count > 0 && [stateChip(state), ` ${number(count)} `]);
	return [
		span("quiet", `A graph has up to ${NODES_MAX} tasks, this batch ${number(rows.length)}. For DOT: `), command(codebatch("work", "analyze", "--format", "dot")),
		table(["Level", "Tasks", "States"], columns.slice(0, LEVELS_MAX).map((column, level) => tableRow(null, `${level}`, number(column.length), chips(column)))),
	];
}
