// Elements of the page. Every text becomes a text node, so no data can become markup.

import { STATES, number, visible } from "./text.js";

export const find = (id) => document.getElementById(id);

// Functions are listeners. Children that are false or empty are left out.
export const element = (name, attributes, ...children) => filled(document.createElement(name), attributes, children);

export const shape = (name, attributes, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

function filled(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (typeof value === "function") node.addEventListener(name, value);
		else if ((value ?? false) !== false) node.setAttribute(name, value === true ? "" : value);
	}
	node.append(...children.flat(2).filter(Boolean));
	return node;
}

export const span = (kind, ...children) => element("span", { class: kind }, children);

export const div = (kind, ...children) => element("div", { class: kind }, children);

export const button = (label, click, attributes) => element("button", { click, ...attributes }, label);

// The first of many elements, and the number of others.
export const limited = (all, max, draw) => [...all.slice(0, max).map(draw), all.length > max ? span("quiet", `and ${number(all.length - max)} more`) : ""];

export const taskLink = (id, open, prefix = "") => button(prefix + visible(id), () => open(id), { class: "link id" });

export const table = (headings, rows) => element("table", null, element("thead", null, element("tr", null, headings.map((name) => element("th", null, name)))), element("tbody", null, rows));

export const tableRow = (attributes, ...values) => element("tr", attributes, values.map((value) => element("td", null, value)));

// Whether a part shows these values. It keeps them.
export function isShown(part, ...values) {
	const before = part.shown;
	return before === (part.shown = JSON.stringify(values));
}

// An equal text is not set again, to keep selections.
export function setText(node, text) {
	if (node.textContent !== text) node.textContent = text;
}

export function stateChip(state, word) {
	const [glyph, name] = STATES[state] ?? ["•", visible(state).toLowerCase()];
	return span(`state is-${name}`, span("glyph", glyph), span("", word ?? name));
}

export function command(text) {
	const code = element("code", null, visible(text, 2000));
	const copy = button("Copy", async () => {
		getSelection().selectAllChildren(code);
		await navigator.clipboard.writeText(text);
		copy.textContent = "Copied";
	}, { "aria-label": `Copy ${code.textContent}` });
	return span("command", code, copy);
}

export const closeButton = (close) => button("✕", close, { "aria-label": "Close" });

export function openDialog(dialog, title, ...content) {
	dialog.replaceChildren(element("header", null, element("h2", null, title), closeButton(() => dialog.close())), ...content);
	if (!dialog.open) dialog.showModal();
}
