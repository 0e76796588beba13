// Requests to the server, with the token of the page.

const KEY = "codebatch-token";

export class ApiError extends Error {
	constructor(status, body) {
		super((body?.message ?? `the server responded with status ${status}`) + (body?.hint ? ` (${body.hint})` : ""));
		this.status = status;
	}
}

// Remove the token from the shown address. The browser's history may keep it.
export function readAddress() {
	const parameters = new URLSearchParams(location.hash.slice(1));
	const token = parameters.get("token");
	if (token !== null) {
		sessionStorage.setItem(KEY, token);
		parameters.delete("token");
		history.replaceState(null, "", `${location.pathname}${parameters.size ? `#${parameters}` : ""}`);
	}
	return parameters.get("batch");
}

export class Api {
	get token() {
		return sessionStorage.getItem(KEY);
	}

	async request(path, parameters = {}, body = null) {
		const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => (value ?? "") !== ""));
		const response = await fetch(`/api/v1/${path}?${query}`, {
			method: body ? "POST" : "GET", body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
		}).catch(() => {
			throw new ApiError(0, { message: "The server is gone" });
		});
		if (response.ok) return response;
		const answer = await response.json().catch(() => null);
		throw new ApiError(response.status, answer?.error ?? answer);
	}

	async get(...request) {
		return (await this.request(...request)).json();
	}

	batch(id, part = "", ...rest) {
		return this.get(`batches/${encodeURIComponent(id)}${part}`, ...rest);
	}

	// A part of a log, with the offsets of its start and end.
	async log(id, parameters) {
		const response = await this.request(`batches/${encodeURIComponent(id)}/log`, parameters);
		const data = new Uint8Array(await response.arrayBuffer());
		const end = Number(response.headers.get("X-Next-Offset"));
		return { data, start: end - data.length, end, log: response.headers.get("X-Log") };
	}

	socket(id, since) {
		return new WebSocket(`ws://${location.host}/ws/batch/${encodeURIComponent(id)}?since=${since}`, ["codebatch", `codebatch.${this.token}`]);
	}
}
