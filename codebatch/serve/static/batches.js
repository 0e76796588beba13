// The list of batches, running ones first.

import { button, cells, element, find, openDialog, span, stateChip, table } from "./dom.js";
import { clock, number, visible } from "./text.js";

export const isActive = ({ status }) => status === "RUNNING" || status === "PENDING";

export class Batches {
	constructor(api, choose) {
		Object.assign(this, { api, choose, node: find("batches") });
		this.node.addEventListener("keydown", (event) => this.press(event));
	}

	async open(before) {
		openDialog(this.node, "Batches", span("quiet", "Loading…"));
		try {
			const { batches, next } = await this.api.get("batches", { before });
			const rows = [...batches.filter(isActive), ...batches.filter((row) => !isActive(row))];
			openDialog(this.node, "Batches", rows.length ? table("batches", ["State", "Kind", "Source", "Size", "Started", "Batch"], rows.map((row) => this.row(row))) : "No batches", next ? button("Older", () => this.open(next)) : "");
			this.node.querySelector("[tabindex]")?.focus();
		} catch (error) {
			openDialog(this.node, "Batches", span("error", error.message));
		}
	}

	row({ batch_id: id, status, pipeline, source, names, files, created_at: at }) {
		const isDamaged = status === "DAMAGED";
		const open = () => {
			this.node.close();
			this.choose(id);
		};
		return element("tr", isDamaged ? null : { tabindex: "0", click: open },
			cells(stateChip(status), visible(pipeline), visible(source) + names.map((name) => ` @${visible(name)}`).join(""), isDamaged ? "" : number(files), at && clock(at, "short"), span("id", visible(id))));
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
