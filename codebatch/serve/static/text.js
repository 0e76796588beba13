// Values as text. Control characters of data become visible escapes.

const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;
const UNITS = [["h", 3600], ["min", 60], ["s", 1]];

// Texts of reasons, from the server.
export const REASONS = {};

// Glyph and word of each state, in the order of the filters.
export const STATES = {
	RUNNING: ["▶", "running"], BLOCKED: ["?", "question"], FAILED: ["✕", "failed"], WAITING: ["↻", "waiting"], READY: ["○", "ready"],
	PENDING: ["·", "pending"], DONE: ["✓", "done"], SKIPPED: ["–", "skipped"], CANCELLED: ["⊘", "cancelled"],
	COMPLETED: ["✓", "completed"], PARTIAL: ["◐", "partial"], DAMAGED: ["!", "damaged"],
};

export const visibleLines = (text) => text.replaceAll("\r\n", "\n").replace(HIDDEN, (character) => {
	const code = character.codePointAt(0);
	if (code === 0x1b) return "\\e";
	const [letter, width] = code < 0x100 ? ["x", 2] : ["u", 4];
	return `\\${letter}${code.toString(16).padStart(width, "0")}`;
});

export function visible(text, limit = 200) {
	const all = String(text ?? "");
	return visibleLines(all.length > limit ? `${all.slice(0, limit)}…` : all);
}

export const number = (value) => Number(value).toLocaleString("en-US", { maximumFractionDigits: 6 });

export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

export const percentage = (part, whole) => `${whole ? Math.floor((100 * part) / whole) : 100} %`;

export function bytes(value) {
	const unit = Math.floor(Math.log2(value || 1) / 10);
	const size = value / 1024 ** unit;
	return `${size.toFixed(unit && size < 10 ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

export function duration(seconds) {
	if ((seconds ?? "") === "") return "";
	return seconds < 60 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : stopwatch(seconds);
}

export function stopwatch(seconds) {
	const hours = Math.floor(seconds / 3600);
	return (hours > 0 ? `${hours}:` : "") + new Date(1000 * Math.max(0, seconds)).toISOString().slice(14, 19);
}

export function remaining(ends, blocked, unknown, paused) {
	if (!ends) return "";
	const [low, , high] = ends.map((end) => Math.max(0, (end - Date.now()) / 1000));
	const [unit, size] = UNITS.find((each) => high >= 2 * each[1]) ?? UNITS[2];
	const first = Math.round(low / size);
	const last = Math.max(1, Math.round(high / size));
	const range = unknown ? `at least ${first}` : first < last ? `${first}–${last}` : `about ${last}`;
	return `${range} ${unit} left${paused ? " after the pause" : blocked ? " once questions are answered" : ""}`;
}

// A local time; with the date if it is not today.
export function clock(at, timeStyle = "medium") {
	const time = new Date(at);
	const text = time.toLocaleTimeString("en-GB", { timeStyle });
	return time.toDateString() === new Date().toDateString() ? text : `${time.toLocaleDateString("sv-SE")} ${text}`;
}

export function failureReason(reason, exitStatus) {
	const ended = exitStatus < 0 ? `signal ${-exitStatus}` : `exit status ${exitStatus}`;
	if (reason === "when" && exitStatus === 1) return "nothing to do: `when` is not met";
	if (exitStatus !== null && ["check", "when"].includes(reason)) return `\`${reason}\`: ${ended}`;
	return reason === "exit" || reason === "signal" ? ended : REASONS[reason] ?? visible(reason);
}

export const eventKind = ({ event }) => event.replace(/^BATCH_(TASK_)?/, "");

export const codebatch = (...words) => ["codebatch", ...words].map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
