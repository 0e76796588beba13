// The list of batches, running ones first.

import { button, find, openDialog, span, stateChip, table, tableRow } from "./dom.js";
import { clock, number, visible } from "./text.js";

export const isActive = ({ status }) => status === "RUNNING" || status === "PENDING";

export class Batches {
	constructor(api, choose) {
		Object.assign(this, { api, choose, node: find("batches") });
		this.node.addEventListener("keydown", (event) => this.press(event));
	}

	async open(before) {
		const show = (...content) => openDialog(this.node, "Batches", ...content);
		show(span("quiet", "Loading…"));
		try {
			const { batches, next } = await this.api.get("batches", { before });
			batches.sort((a, b) => isActive(b) - isActive(a));
			show(batches.length ? table(["State", "Kind", "Source", "Size", "Started", "Batch"], batches.map((row) => this.row(row))) : "No batches", next ? button("Older", () => this.open(next)) : "");
			this.node.querySelector("[tabindex]")?.focus();
		} catch (error) {
			show(span("error", error.message));
		}
	}

	row({ batch_id: id, status, pipeline, source, names, files, created_at: at }) {
		const isDamaged = status === "DAMAGED";
		const open = () => {
			this.node.close();
			this.choose(id);
		};
		return tableRow(isDamaged ? null : { tabindex: "0", click: open }, stateChip(status), visible(pipeline),
			visible(source) + names.map((name) => ` @${visible(name)}`).join(""), isDamaged ? "" : number(files), at && clock(at, "short"), span("id", visible(id)));
	}

	press(event) {
		const row = event.target.closest("tr[tabindex]");
		const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[event.key];
		if (event.key === "Enter" && row) row.click();
		else if (next) next.focus();
		else return;
		event.preventDefault();
	}
}
