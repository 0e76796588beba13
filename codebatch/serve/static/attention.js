// Questions, and groups of equal failures, the newest first.

import { appendOutput } from "./ansi.js";
import { button, command, div, element, find, isShown, limited, span, stateChip, taskLink } from "./dom.js";
import { clock, codebatch, number, plural, visible } from "./text.js";

const CARDS_MAX = 30;
const NAMES_MAX = 12;
const TAIL_LINES = 20;

export class Attention {
	closed = new Set();
	questions = new Map();

	// `actions`: open(task), and control(request, button) or null.
	constructor(actions) {
		Object.assign(this, { actions, node: find("attention") });
	}

	render(state) {
		const questions = state.isWork ? state.rows.filter((task) => task?.state === "BLOCKED") : [];
		const groups = state.failures();
		if (isShown(this, state.id, questions.map(({ id, question }) => [id, question]), groups.map(({ ids, ...group }) => group))) return;
		this.node.hidden = !questions.length && !groups.length;
		const focused = document.activeElement;
		const part = (noun, count, all, card) => all.length ? [element("h2", null, plural(count, noun)), ...limited(all, CARDS_MAX, card)] : [];
		this.node.replaceChildren(
			...part("question", questions.length, questions, (task) => this.questionCard(state, task)),
			...part("failure", groups.reduce((sum, { count }) => sum + count, 0), groups, (group) => this.failureCard(state, group)));
		if (this.node.contains(focused)) focused.focus({ preventScroll: true });
	}

	// The card of an open question is kept, because it may have typed text.
	questionCard(state, task) {
		const key = JSON.stringify([state.id, task.id, task.question?.digest, task.question?.choices]);
		const card = this.questions.get(key) ?? element("article", { class: "card question" },
			element("header", null, stateChip("BLOCKED"), taskLink(task.id, this.actions.open), span("quiet", visible(task.title))),
			div("body", questionParts(state, task, this.actions.control)));
		this.questions.set(key, card);
		return card;
	}

	failureCard(state, group) {
		const { count, path, reason, task, at } = group;
		const key = `${reason}\n${task}`;
		const body = div("body");
		const card = element("details", { class: "card", open: !this.closed.has(key), toggle: () => {
			this.closed[card.open ? "delete" : "add"](key);
			if (card.open && !body.hasChildNodes()) body.append(...this.failureParts(state, group));
		} },
			element("summary", null, stateChip("FAILED", count > 1 ? `${number(count)} ×` : "failed"), count > 1 || !state.isWork ? span("id", visible(task)) : taskLink(path, this.actions.open), span("", visible(reason)), at && element("time", null, clock(at))),
			body);
		return card;
	}

	failureParts(state, { path, evidence, ids }) {
		const { open, control } = this.actions;
		const output = element("pre", { class: "output", tabindex: "0", "aria-label": `Output of ${visible(path)}` });
		appendOutput(output, (evidence ?? "").split("\n").slice(-TAIL_LINES).join("\n"));
		if (!ids) return [span("id", visible(path)), evidence && output, command(state.resume)].filter(Boolean);
		return [
			output,
			ids.length > 1 ? span("names", limited(ids, NAMES_MAX, (id) => taskLink(id, open))) : "",
			span("names", control && button("Retry", (event) => control({ do: "retry", tasks: ids }, event.target)), command(ids.length > NAMES_MAX ? state.resume : codebatch("work", "retry", "--batch", state.id, ...ids))),
		];
	}
}

// A question, with a box for the answer, or the command that answers.
export function questionParts(state, { id, question }, control) {
	const choices = question?.choices ?? [];
	const text = element("p", { class: "text" }, visible(question?.text, 20000));
	const answer = (value, sender) => value.trim() && control({ do: "answer", task: id, text: value, question: question.digest }, sender);
	if (!control) return [text, choices.length ? span("quiet", `Choices: ${choices.map((choice) => visible(choice)).join(", ")}`) : "", command(codebatch("work", "answer", "--batch", state.id, id, "TEXT"))];
	if (choices.length) return [text, span("names", choices.map((choice) => button(visible(choice), (event) => answer(choice, event.target))))];
	const send = button("Send answer", () => answer(box.value, send), { class: "primary" });
	const box = element("textarea", { rows: "1", "aria-label": `Answer for ${visible(id)}`, placeholder: "Answer", keydown: (event) => {
		if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
		event.preventDefault();
		send.click();
	} });
	return [text, span("names", box, send)];
}
