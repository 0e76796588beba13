// The panel of one task: its state, dependencies, question, attempts and log.

import { questionParts } from "./attention.js";
import { button, closeButton, command, div, element, find, isShown, limited, span, stateChip, table, tableRow, taskLink } from "./dom.js";
import { LogView } from "./log.js";
import { STATES, bytes, clock, codebatch, duration, failureReason, visible } from "./text.js";

const ATTEMPTS_MAX = 50;
const LINKS_MAX = 30;

export class Panel {
	constructor(api, actions) {
		Object.assign(this, { api, actions, node: find("panel") });
	}

	open(state, id) {
		const opener = this.node.hidden ? document.activeElement : this.opener;
		this.close();
		Object.assign(this, { state, opener, task: state.task(id), loaded: "", shown: "", round: 0, chip: span(""), facts: element("dl", { class: "pairs" }), question: div("card question"), attempts: span(""), logPart: div("log") });
		this.scroller = div("scroll", this.facts, this.question, this.attempts, this.logPart);
		this.node.replaceChildren(element("header", null, this.chip, element("h2", { class: "id" }, visible(id)), closeButton(() => this.close())), this.scroller);
		this.node.hidden = false;
		this.node.focus();
		this.render();
	}

	close() {
		if (this.node.hidden) return;
		this.log?.close();
		this.state = this.log = null;
		this.node.hidden = true;
		this.opener?.focus();
	}

	render() {
		const { state, task } = this;
		if (!state) return;
		const loaded = `${task.state} ${task.round}`;
		if (state.isWork && loaded !== this.loaded) this.load(state, task);
		this.loaded = loaded;
		if (isShown(this, { ...task, began: 0, output: 0 })) return;
		this.chip.replaceChildren(stateChip(task.state));
		const facts = {
			Title: task.title, Reason: task.explanation, Attempt: task.triesMax > 1 ? `${Math.max(1, task.tryNumber)} of ${task.triesMax}` : "", Time: duration(task.seconds),
			Result: task.result, Needs: this.links(task.needs), "Runs after": this.links(task.after),
		};
		this.facts.replaceChildren(...Object.entries(facts).filter(([, value]) => String(value ?? "")).flatMap(([name, value]) => [element("dt", null, name), element("dd", null, Array.isArray(value) ? value : visible(value, 4000))]));
		this.question.hidden = task.state !== "BLOCKED";
		this.question.replaceChildren(div("body", questionParts(state, task, this.actions.control)));
	}

	links(ids) {
		return limited(ids, LINKS_MAX, (id) => [taskLink(id, this.actions.open, `${STATES[this.state.task(id).state]?.[0]} `), " "]);
	}

	async load(state, task) {
		try {
			const { attempts, question } = await this.api.batch(state.id, "/task", { id: task.id });
			if (task !== this.task) return;
			if (question) task.question = { ...question, digest: question.question };
			this.renderAttempts(attempts.slice(-ATTEMPTS_MAX).reverse());
			this.render();
		} catch (error) {
			this.attempts.replaceChildren(span("error", error.message));
		}
	}

	renderAttempts(attempts) {
		const { state } = this;
		const hasCost = attempts.some(({ report }) => state.costText(report?.cost));
		const rows = attempts.map(({ round, reason, report, ...attempt }) => tableRow({ "data-round": round },
			button(`${round}`, () => this.showLog(round), { class: "link" }), attempt.began_ns && clock(attempt.began_ns / 1e6), duration(attempt.seconds),
			attempt.memory_peak_bytes && bytes(attempt.memory_peak_bytes), ...(hasCost ? [state.costText(report?.cost)] : []),
			attempt.ended + (reason ? `: ${failureReason(reason, attempt.exit_status)}` : "")));
		this.attempts.replaceChildren(rows.length ? table(["Attempt", "Started", "Time", "Memory", ...(hasCost ? ["Cost"] : []), "Ended"], rows) : span("quiet", "Not started"));
		const latest = attempts[0]?.round;
		if (latest) this.showLog(latest === this.latest && this.round ? this.round : latest);
		this.latest = latest;
	}

	showLog(round) {
		const { state, task } = this;
		for (const row of this.attempts.querySelectorAll("[data-round]")) row.classList.toggle("chosen", row.dataset.round === `${round}`);
		if (this.log && this.round === round) return;
		this.log?.close();
		this.round = round;
		this.log = new LogView((part) => this.api.log(state.id, { task: task.id, round, ...part }), () => task.state === "RUNNING" && task.round === round, this.scroller);
		this.logPart.replaceChildren(element("h3", null, `Log of attempt ${round}`), ...this.log.nodes, command(codebatch("work", "log", "--batch", state.id, "--round", `${round}`, task.id)));
	}
}
