// The page: choose a batch, connect to it, draw its parts.

import { Api, readAddress } from "./api.js";
import { Attention } from "./attention.js";
import { Batches, isActive } from "./batches.js";
import { Connection } from "./connection.js";
import { button, element, find, openDialog, setText, span, table, tableRow } from "./dom.js";
import { Graph } from "./graph.js";
import { Panel } from "./panel.js";
import { Result } from "./result.js";
import { Stream } from "./stream.js";
import { renderSummary } from "./summary.js";
import { Tasks } from "./tasks.js";
import { REASONS, clock } from "./text.js";
import { Workers } from "./workers.js";

const DRAW_MS = 100;
const FOLLOW_MS = 5000;
const OPEN_AGAIN = "open the address that `codebatch serve` printed";

class App {
	address = readAddress();
	api = new Api();
	retryAt = 0;

	constructor() {
		const open = (id) => this.state && this.panel.open(this.state, id);
		this.actions = { open, control: null };
		this.panel = new Panel(this.api, this.actions);
		this.tasks = new Tasks(open);
		this.parts = [new Attention(this.actions), new Workers(open), new Stream(open), this.tasks, new Graph(open), this.panel, new Result(this.api)];
		const batches = new Batches(this.api, (id) => { location.hash = `batch=${id}`; });
		this.keys = {
			"/": ["Filter tasks", () => show("tasks", "filter")], f: ["Failures and questions", () => show("attention")], w: ["Workers", () => show("now")],
			t: ["Tasks", () => show("tasks", find("table").hidden ? "graph" : "table")], g: ["Graph or table of tasks", () => this.toggleGraph()],
			b: ["Batches", () => batches.open()], r: ["Open the report", () => this.openReport()], "↑ ↓ Enter": ["Open a row"],
			Space: ["Freeze the timeline"], Escape: ["Close", () => this.panel.close()], "?": ["Keys", () => this.showKeys()],
		};
		for (const node of document.querySelectorAll("button[aria-keyshortcuts]")) node.addEventListener("click", this.keys[node.getAttribute("aria-keyshortcuts")][1]);
		// A new token belongs to a new server.
		addEventListener("hashchange", () => (location.hash.includes("token=") ? location.reload() : this.go(readAddress())));
		addEventListener("keydown", (event) => this.press(event));
		setInterval(() => this.tick(), 1000);
	}

	async start() {
		if (!this.api.token) return this.showMessage(`This page needs a token: ${OPEN_AGAIN}`);
		try {
			const { allow_control: isAllowed, reasons } = await this.api.get("session");
			Object.assign(REASONS, reasons);
			if (isAllowed) this.actions.control = (request, sender) => this.control(request, sender);
			this.showMessage("No batches");
			await this.go(this.address);
			setInterval(() => this.follow().catch(() => {}), FOLLOW_MS);
		} catch (error) {
			this.failed(error);
		}
	}

	go(address) {
		this.isFixed = address && address !== "latest";
		this.newest = "";
		return address ? this.choose(address) : this.follow();
	}

	// Without a batch in the address, show the newest when the current one has ended.
	async follow() {
		if (this.isFixed || this.state?.isRunning) return;
		const { batches } = await this.api.get("batches", { limit: this.newest && 1 });
		const newest = batches.find(({ status }) => status !== "DAMAGED");
		if (!newest || newest.batch_id === this.newest) return;
		if (!find("panel").hidden) return setText(find("connection"), "a newer batch has started");
		const running = !this.newest && batches.find(isActive);
		this.newest = newest.batch_id;
		this.choose((running || newest).batch_id);
	}

	choose(id) {
		if (!id || id === this.connection?.id) return;
		this.connection?.close();
		this.panel.close();
		this.state = null;
		this.showMessage("Loading…");
		this.connection = new Connection(this.api, id, this);
	}

	showMessage(text) {
		setText(find("message"), text);
	}

	loaded(state) {
		this.panel.close();
		this.state = state;
		this.newest ||= state.id;
		this.showMessage("");
		document.body.classList.toggle("is-analysis", !state.isWork);
		this.draw();
	}

	// Changes that arrive together are drawn together.
	changed() {
		this.timer ??= setTimeout(() => this.draw(), DRAW_MS);
	}

	draw() {
		const { state } = this;
		this.timer = undefined;
		if (!state) return;
		renderSummary(state);
		find("now").hidden = !state.spans.all.size && !state.runningTasks().length;
		for (const part of this.parts) part.render(state);
	}

	tick() {
		if (this.retryAt) this.showLost();
		else if (this.state?.isRunning && !document.hidden) this.changed();
	}

	// Show why there is no connection. Without a reason, the connection is live.
	showConnection(reason, ...more) {
		document.body.classList.toggle("is-stale", reason !== "");
		find("gone").hidden = !reason;
		find("gone").replaceChildren(element("strong", null, reason), ...more);
		const node = find("connection");
		node.className = reason ? "disconnected" : "live";
		setText(node, node.className);
	}

	connected() {
		this.retryAt = this.lostAt = 0;
		this.showConnection("");
	}

	lost(retryAt, reason) {
		Object.assign(this, { retryAt, reason });
		this.lostAt ||= Date.now();
		this.showLost();
	}

	showLost() {
		const seconds = Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000));
		this.showConnection(this.reason, `Data from ${clock(this.lostAt)}. Reconnecting in ${seconds} s`, button("Reconnect now", () => this.connection.open()));
	}

	failed({ status, message }) {
		this.connection?.close();
		this.retryAt = 0;
		const text = status === 403 ? `The token of this page is not valid any more: ${OPEN_AGAIN}` : message;
		if (this.state) this.showConnection(text);
		else this.showMessage(text);
	}

	async guarded(sender, work) {
		sender.disabled = true;
		sender.parentNode.querySelector(".error")?.remove();
		try {
			return await work();
		} catch (error) {
			sender.after(span("error", error.message));
		} finally {
			sender.disabled = false;
		}
	}

	control(request, sender) {
		return this.guarded(sender, async () => {
			await this.api.batch(this.state.id, "/requests", {}, request);
			await this.connection.refresh(true);
		});
	}

	async openReport() {
		const sender = find("open-report");
		if (sender.disabled || find("result").hidden) return;
		const answer = await this.guarded(sender, () => this.api.batch(this.state.id, "/report", {}, {}));
		if (answer) window.open(answer.path, "_blank", "noopener");
	}

	toggleGraph() {
		const isGraph = (find("table").hidden = !find("table").hidden);
		find("graph").hidden = !isGraph;
		find("toggle-graph").setAttribute("aria-pressed", isGraph);
		this.draw();
	}

	press(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
		const isTyping = event.target.closest("input, textarea");
		if (isTyping && event.key === "Escape") {
			event.preventDefault();
			event.target.blur();
		} else if (!isTyping && this.keys[event.key]) {
			event.preventDefault();
			this.keys[event.key][1]();
		}
	}

	showKeys() {
		openDialog(find("keys"), "Keys", table(["Key", "Action"], Object.entries(this.keys).map(([key, [text]]) => tableRow(null, element("kbd", null, key), text))));
	}
}

function show(section, focused = section) {
	if (find(section).hidden) return;
	find(section).scrollIntoView();
	find(focused).focus({ preventScroll: true });
}

new App().start();
