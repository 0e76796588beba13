// Output: ANSI colours become classes, other control characters visible escapes.

import { span } from "./dom.js";
import { visibleLines } from "./text.js";

const SEQUENCE = /(\x1b\[[\d;]*m)/;
const ON = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse" };
const OFF = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"] };

// Append a text. `style` is that at its start, and becomes that at its end.
export function appendOutput(node, text, style = {}) {
	for (const part of text.split(SEQUENCE)) {
		const kind = Object.values(style).join(" ");
		if (SEQUENCE.test(part)) changeStyle(style, part.slice(2, -1).split(";").map(Number));
		else if (part) node.append(kind ? span(kind, visibleLines(part)) : visibleLines(part));
	}
}

function changeStyle(style, codes) {
	while (codes.length) {
		const code = codes.shift();
		const color = code >= 90 ? code - 60 : code;
		const name = code % 10;
		if (code === 0) for (const key of Object.keys(style)) delete style[key];
		else if (ON[code]) style[ON[code]] = ON[code];
		else if (OFF[code]) OFF[code].forEach((key) => delete style[key]);
		else if (color >= 30 && color < 50) {
			const layer = color < 40 ? "f" : "g";
			// Of the colours with an index, only the first 16 have a class.
			const index = name === 8 ? codes.splice(0, codes[0] === 5 ? 2 : 4)[1] : name;
			if (name === 9 || index > 15) delete style[layer];
			else style[layer] = `${layer}${index % 8}`;
		}
	}
}
