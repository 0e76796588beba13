// The result of an analysis: findings that became worse since the base, and the report.

import { find, span, table, tableRow } from "./dom.js";
import { plural, visible } from "./text.js";

export class Result {
	constructor(api) {
		Object.assign(this, { api, node: find("regressions") });
	}

	async render(state) {
		find("result").hidden = state.isWork || !state.isOver;
		if (find("result").hidden || this.state === state) return;
		this.state = state;
		this.node.replaceChildren(span("quiet", "Comparing…"));
		try {
			const { base, count, regressions } = await this.api.batch(state.id, "/regressions");
			const rows = regressions.map(({ severity, path, line, code, message }) => tableRow(null, severity, span("id", visible(`${path}:${line}`)), visible(code), visible(message)));
			if (this.state !== state) return;
			this.node.replaceChildren(base ? `${plural(count, "finding")} new or more severe since ${base}` : "No base to compare with", rows.length ? table(["Severity", "Place", "Rule", "Message"], rows) : "");
		} catch (error) {
			this.node.replaceChildren(span("error", error.message));
		}
	}
}
