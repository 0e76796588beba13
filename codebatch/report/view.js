"use strict";
/* Shows a report (contents.py). Text from the project is set as text, never as markup or as an address. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { numbers, tree, in_all: inAll } = data;
  const isMeasured = data.asked.includes("metric");
  const main = document.getElementById("main");
  const SVG = "http://www.w3.org/2000/svg";

  // Text. Control characters and invisible ones are shown as escapes, as on the command line.

  const shown = (text) =>
    String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (each) => {
      const code = each.codePointAt(0);
      if (each === "\n" || each === "\t") return each === "\n" ? "\\n" : "\\t";
      return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    });
  const shownCode = (text) => text.split("\t").map(shown).join("\t");
  const comma = (number) => (number === null ? "?" : number.toLocaleString("en"));
  const countOf = (count, noun, plural = `${noun}s`) => `${comma(count)} ${count === 1 ? noun : plural}`;
  const brief = (number) =>
    number < 1000 ? String(number) : number < 1e6 ? `${(number / 1000).toFixed(number < 1e4 ? 1 : 0)}k` : `${(number / 1e6).toFixed(1)}M`;

  const fill = (made, attributes, parts) => {
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
    made.append(...parts.filter((part) => part !== null && part !== undefined));
    return made;
  };
  const el = (tag, attributes = {}, ...parts) => fill(document.createElement(tag), attributes, parts);
  const svg = (tag, attributes = {}, ...parts) => fill(document.createElementNS(SVG, tag), attributes, parts);
  const button = (text, act, attributes = {}) => {
    const made = el("button", { type: "button", ...attributes }, text);
    made.addEventListener("click", act);
    return made;
  };
  // A path or a qualified name, which may break after its parts.
  const broken = (text, kind = "path") =>
    el("span", { class: kind }, ...(text.split(kind === "name" ? /(?<=[._])(?=[^._])/u : /(?<=[/_])(?=[^/_])/u)).flatMap((part, place) => (place ? [el("wbr"), part] : [part])));
  const section = (id, title, lead) => {
    const made = el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), el("p", { class: "lead" }, lead));
    main.append(made);
    return made;
  };
  const soFar = data.incomplete ? " so far" : "";
  const none = (text) => el("p", { class: "none" }, `${text}${soFar}.`);

  // The tree: children and sums, from columns in which whoever is above comes first.

  const rows = tree.names.length;
  const children = Array.from({ length: rows }, () => []);
  for (let at = 1; at < rows; at++) children[tree.parents[at]].push(at);
  const isFile = (at) => tree.files[at] === 1;
  const pathOf = (at) => {
    const parts = [];
    for (let each = at; each > 0; each = tree.parents[each]) parts.unshift(nameOf(each));
    return parts.join("/") || shown(data.title);
  };
  const nameOf = (at) => (tree.files[at] > 1 || (isFile(at) && !tree.names[at]) ? countOf(tree.files[at], "more file") : shown(tree.names[at]));
  // The categories of files that are included; production code always is.
  const CATEGORIES = [[1, "tests"], [2, "vendored and generated code"]].filter(([category]) => tree.categories.includes(category));
  const included = new Set([0]);
  const isIncluded = (at) => included.has(tree.categories[at]);
  const summed = (column) => {
    const sums = column.map((value, at) => (isIncluded(at) ? value : 0));
    for (let at = rows - 1; at > 0; at--) sums[tree.parents[at]] += sums[at];
    return sums;
  };
  const greatest = (column) => {
    const found = column.map((value, at) => (isIncluded(at) ? value : 0));
    for (let at = rows - 1; at > 0; at--) found[tree.parents[at]] = Math.max(found[tree.parents[at]], found[at]);
    return found;
  };
  const addUp = () => ({
    files: summed(tree.files), code: summed(tree.code), cognitive: summed(tree.cognitive), duplicated: summed(tree.duplicated),
    findings: summed(tree.findings), hardest: greatest(tree.hardest), dependents: greatest(tree.dependents),
    changes: tree.changes && summed(tree.changes), changesMax: tree.changes && greatest(tree.changes),
  });
  let total = addUp();

  // In some languages files can be used without an import. Then the number is a lower bound.
  const usersOf = (count, isPartial) => (count === null || (isPartial && !count) ? "?" : `${comma(count)}${isPartial ? "+" : ""}`);

  const facts = (at) => {
    const facts = [];
    if (total.files[at] !== 1) facts.push(countOf(total.files[at], "file"));
    if (tree.languages[at]) facts.push(shown(tree.languages[at]));
    facts.push(countOf(total.code[at], "line") + " of code", `cognitive complexity ${comma(total.cognitive[at])}, hardest function ${comma(total.hardest[at])}`);
    if (tree.changes) facts.push(countOf(total.changes[at], "commit"));
    if (total.duplicated[at]) facts.push(countOf(total.duplicated[at], "duplicated line"));
    if (isFile(at)) facts.push(tree.partial[at] ? `${usersOf(tree.dependents[at], true)} dependents` : countOf(tree.dependents[at], "dependent"));
    if (total.findings[at]) facts.push(countOf(total.findings[at], "finding"));
    return facts.join(" · ");
  };
  const factBox = (hint) => {
    const made = el("p", { class: "facts", "aria-live": "polite" }, el("span", { class: "numbers" }, hint));
    made.tell = (at) => made.replaceChildren(broken(pathOf(at)), el("span", { class: "numbers" }, facts(at)));
    return made;
  };

  // Tables.

  /* `columns`: {title, value(row), cell(row)?, isNumber, isRare}; the first is the row's head. */
  const table = (caption, columns, list, { first = 25, sorted = -1, kind } = {}) => {
    const body = el("tbody");
    const heads = columns.map((column, place) => {
      const head = el("th", { scope: "col", class: [column.isNumber ? "number" : "", column.isRare ? "rare" : ""].join(" ").trim() || undefined });
      head.append(button(column.title, () => sortBy(place)));
      return head;
    });
    let order = list.slice();
    let isAll = false;
    const draw = () => {
      body.replaceChildren(
        ...order.slice(0, isAll ? order.length : first).map((row) =>
          el("tr", {}, ...columns.map((column, place) => {
            const content = column.cell ? column.cell(row) : column.isNumber ? comma(column.value(row)) : shown(column.value(row));
            const kind = [column.isNumber ? "number" : "", column.isRare ? "rare" : "", column.kind || ""].join(" ").trim() || undefined;
            return el(place ? "td" : "th", place ? { class: kind } : { class: kind, scope: "row" }, content);
          }))));
      more.hidden = isAll || order.length <= first;
    };
    const sortBy = (place) => {
      const down = heads[place].getAttribute("aria-sort") === "descending" || (!columns[place].isNumber && heads[place].getAttribute("aria-sort") !== "ascending");
      const sign = down ? 1 : -1;
      const value = columns[place].order || columns[place].value;
      order = list.map((row, at) => [value(row), at, row])
        .sort((one, other) => (one[0] < other[0] ? -sign : one[0] > other[0] ? sign : one[1] - other[1])).map((each) => each[2]);
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[place].setAttribute("aria-sort", down ? "ascending" : "descending");
      draw();
    };
    const more = button(`Show all ${comma(list.length)}`, () => { isAll = true; draw(); }, { class: "more" });
    draw();
    if (sorted >= 0) heads[sorted].setAttribute("aria-sort", "descending");
    return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", { class: kind }, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), body)), more);
  };
  const topOf = (part, whole, noun, order, bound = "") => (part < whole ? `Top ${comma(part)} of ${bound}${countOf(whole, noun)} by ${order}` : `${countOf(whole, noun)} by ${order}`);

  // A chart in which one spot at a time has the focus, and arrow keys go to the next one in their direction.

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const roving = (chart, spots, act) => {
    let current = 0;
    const go = (place) => {
      spots[current].made.setAttribute("tabindex", "-1");
      current = place;
      spots[current].made.setAttribute("tabindex", "0");
      spots[current].made.focus({ preventScroll: false });
    };
    const next = (arrow) => {
      const [dx, dy] = ARROWS[arrow];
      const from = spots[current];
      let best = -1, least = Infinity;
      spots.forEach((each, place) => {
        const x = each.x - from.x, y = each.y - from.y;
        const ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
        const cost = ahead + 2.5 * aside;
        if (place !== current && ahead > 0.5 && aside <= 3 * ahead && cost < least) [best, least] = [place, cost];
      });
      if (best >= 0) go(best);
    };
    spots.forEach((each, place) => {
      each.made.setAttribute("tabindex", place ? "-1" : "0");
      each.made.addEventListener("focus", () => { current = place; act.tell(each.at); });
      each.made.addEventListener("mouseenter", () => act.tell(each.at));
      each.made.addEventListener("click", () => { go(place); if (act.open) act.open(each.at); });
    });
    chart.onkeydown = (event) => {
      if (event.key in ARROWS) next(event.key);
      else if (event.key === "Enter" || event.key === " ") act.open && act.open(spots[current].at);
      else if (event.key === "Escape") act.close && act.close();
      else return;
      event.preventDefault();
    };
    return go;
  };

  // Treemap, squarified: Bruls, Huizing, van Wijk, "Squarified Treemaps" (2000).

  const squarify = (items, x, y, width, height) => {
    const placed = [];
    const sum = items.reduce((all, each) => all + each.size, 0);
    if (!(sum > 0) || !(width > 0) || !(height > 0)) return placed;
    const scale = (width * height) / sum;
    let start = 0;
    while (start < items.length) {
      const side = Math.min(width, height);
      let end = start, area = 0, worst = Infinity;
      while (end < items.length) {
        const more = area + items[end].size * scale;
        const ratio = Math.max((side * side * items[start].size * scale) / (more * more), (more * more) / (side * side * items[end].size * scale));
        if (ratio > worst) break;
        [area, worst, end] = [more, ratio, end + 1];
      }
      const thick = area / side;
      let along = 0;
      for (const each of items.slice(start, end)) {
        const length = (each.size * scale) / thick;
        placed.push(width >= height ? { ...each, x, y: y + along, w: thick, h: length } : { ...each, x: x + along, y, w: length, h: thick });
        along += length;
      }
      if (width >= height) [x, width] = [x + thick, width - thick];
      else [y, height] = [y + thick, height - thick];
      start = end;
    }
    return placed;
  };

  const per = (part, whole, scale) => (whole ? (part * scale) / whole : 0);
  const COLOURS = [
    { name: "Hardest function (cognitive complexity)", of: (at) => total.hardest[at], steps: [5, 10, 15, 25, 50] },
    { name: "Cognitive complexity per 100 lines", of: (at) => per(total.cognitive[at], total.code[at], 100), steps: [5, 10, 20, 30, 45] },
    ...(tree.changes ? [{ name: "Commits of the most often changed file", of: (at) => total.changesMax[at], steps: [1, 3, 6, 12, 24] }] : []),
    ...(data.asked.includes("duplicate") ? [{ name: "Duplicated lines, percent", of: (at) => per(total.duplicated[at], total.code[at], 100), steps: [1, 10, 25, 50, 75] }] : []),
    ...(data.asked.includes("edge") ? [{ name: "Dependents of the most used file", of: (at) => total.dependents[at], steps: [1, 5, 10, 25, 100] }] : []),
    ...(data.asked.includes("diagnostic") ? [{ name: "Findings per 1,000 lines", of: (at) => per(total.findings[at], total.code[at], 1000), steps: [0.5, 2, 5, 10, 20] }] : []),
  ];
  const stepOf = (colour, at) => colour.steps.filter((step) => colour.of(at) >= step).length;
  const HEAD = 17, CELLS_MAX = 2600, CELL_AREA_MIN = 14;
  const fit = (text, width, size) => { // Less than a few characters say nothing.
    const room = Math.floor((width - 8) / size);
    return text.length <= room ? text : room < 6 ? "" : `${text.slice(0, room - 1)}…`;
  };

  const drawTree = () => {
    const part = section("tree", "Code by directory", "Each rectangle is a file, sized by lines of code. Choose a metric for the colour. Click a directory or press Enter to zoom in; press Escape to zoom out; use the arrow keys to move.");
    if (!total.code[0]) return part.append(none(isMeasured ? "This batch contains no code files" : "The pipeline of this batch does not measure files"));
    const pick = el("select", {}, ...COLOURS.map((colour, place) => el("option", { value: place }, colour.name)));
    const crumbs = el("nav", { class: "crumbs", "aria-label": "Directory" });
    const chart = svg("svg", { class: "chart", role: "group", "aria-label": "Treemap of the code" });
    const legend = el("ul", { class: "legend" });
    const box = factBox("Point at a rectangle or focus it to see its numbers.");
    part.append(el("div", { class: "tools" }, crumbs, el("label", {}, "Colour", pick)), chart, legend, box);
    let top = 0;
    let focus = () => {};

    const cellsOf = (at, x, y, w, h, depth, into) => {
      const items = children[at].map((each) => ({ at: each, size: total.code[each] })).filter((each) => each.size > 0)
        .sort((one, other) => other.size - one.size || one.at - other.at);
      for (const each of squarify(items, x, y, w, h)) {
        if (each.w * each.h < CELL_AREA_MIN || each.w < 2 || each.h < 2 || into.length > CELLS_MAX) continue;
        const isDirectory = children[each.at].length > 0;
        if (isDirectory && each.w > 20 && each.h > 20) {
          const hasHead = each.w > 46 && each.h > 40;
          into.push({ ...each, isFrame: true, hasHead, depth });
          const head = hasHead ? HEAD : 2;
          cellsOf(each.at, each.x + 2, each.y + head, each.w - 4, each.h - head - 2, depth + 1, into);
        } else into.push({ ...each, isFrame: false, depth });
      }
      return into;
    };
    const inTop = (at) => { // The part of what is shown in which something is.
      let each = at;
      while (each && tree.parents[each] !== top) each = tree.parents[each];
      return each;
    };
    const open = (at) => {
      let into = children[at].length ? at : inTop(at);
      if (!children[into].length) return;
      while (children[into].length === 1 && children[children[into][0]].length) into = children[into][0];
      show(into, true);
    };
    const close = () => {
      if (!top) return;
      let out = tree.parents[top];
      while (out && children[out].length === 1) out = tree.parents[out];
      show(out, true);
    };
    const show = (at, hasFocus) => {
      top = at;
      const colour = COLOURS[pick.value];
      const width = Math.max(280, Math.round(chart.clientWidth || part.clientWidth || 900));
      const height = Math.round(Math.min(660, Math.max(400, width * 0.54)));
      chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const spots = [];
      const drawn = cellsOf(top, 2, 2, width - 4, height - 4, 0, []).map((each) => {
        const step = stepOf(colour, each.at);
        const kind = each.isFrame ? `frame${each.depth % 2 ? " deep" : ""}` : `cell s${step}`;
        const made = svg("g", { class: "spot", role: children[each.at].length ? "button" : "img", "aria-label": `${pathOf(each.at)}: ${facts(each.at)}` },
          svg("rect", { class: kind, x: each.x, y: each.y, width: each.w, height: each.h }));
        const name = each.h > 15 && (!each.isFrame || each.hasHead) ? fit(nameOf(each.at), each.w, each.isFrame ? 7.2 : 6.4) : "";
        if (name) made.append(svg("text", { class: each.isFrame ? "head" : `t${step}`, x: each.x + 4, y: each.y + 12.5 }, name));
        if (name && !each.isFrame && each.h > 32 && each.w > 44) made.append(svg("text", { class: `t${step}`, x: each.x + 4, y: each.y + 26 }, fit(`${brief(total.code[each.at])} lines`, each.w, 6.4)));
        spots.push({ at: each.at, made, x: each.x + (each.isFrame ? 8 : each.w / 2), y: each.y + (each.isFrame ? 8 : each.h / 2) });
        return made;
      });
      chart.replaceChildren(...drawn);
      if (spots.length) focus = roving(chart, spots, { tell: box.tell, open, close });
      const above = [];
      for (let each = top; ; each = tree.parents[each]) { above.unshift(each); if (!each) break; }
      crumbs.replaceChildren(...above.flatMap((each, place) => {
        const name = each ? nameOf(each) : shown(data.title) || "all";
        const here = button(name, () => show(each, false), each === top ? { "aria-current": "location" } : {});
        return place ? [el("span", { "aria-hidden": "true" }, "/"), here] : [here];
      }));
      legend.replaceChildren(...[0, ...colour.steps].map((from, place) =>
        el("li", {}, el("span", { class: `swatch s${place}` }), place < colour.steps.length ? (place ? `from ${from}` : `below ${colour.steps[0]}`) : `${from} and more`)));
      box.tell(top);
      if (hasFocus && spots.length) focus(0);
    };
    pick.addEventListener("change", () => show(top, false));
    let drawnWidth = 0;
    new ResizeObserver(() => {
      if (Math.abs(chart.clientWidth - drawnWidth) > 3) { drawnWidth = chart.clientWidth; show(top, false); }
    }).observe(chart);
    show(0, false);
    drawnWidth = chart.clientWidth;
    const rest = tree.files.reduce((all, count) => all + (count > 1 ? count : 0), 0);
    if (rest) part.append(el("p", { class: "lead" }, `The ${comma(rest)} smallest files are combined into one rectangle per directory.`));
  };

  // Scatter plot of change frequency and complexity.

  const DOTS_MAX = 1200, LABELS_MAX = 14, LABEL_WIDTH_MIN = 70; // Plots have a label per 70 px of width.
  const hasHistory = tree.changes !== null;
  const HAS_TESTS = tree.categories.includes(1);
  const across = hasHistory ? { of: (at) => tree.changes[at], name: "commits in the last year" } : { of: (at) => tree.code[at], name: "lines of code" };
  const weight = (at) => Math.log1p(across.of(at)) * Math.log1p(tree.cognitive[at]);
  const rankFiles = () => {
    const found = [];
    for (let at = 1; at < rows; at++) if (isFile(at) && isIncluded(at) && tree.cognitive[at] > 0 && across.of(at) > 0) found.push(at);
    return found.sort((one, other) => weight(other) - weight(one) || one - other);
  };
  let ranked = rankFiles();

  const ticksTo = (greatestValue) => {
    const ticks = [];
    for (let power = 1; power <= greatestValue; power *= 10) for (const step of [1, 2, 5]) if (power * step <= greatestValue) ticks.push(power * step);
    return ticks;
  };
  const drawScatter = () => {
    const lead = hasHistory
      ? "Each dot is a file. Files at the top right are the most expensive: complex and changed often."
      : "Each dot is a file. Without a change history, files are placed by length and complexity.";
    const note = shown(data.history_note);
    const notes = [note && `${note[0].toUpperCase()}${note.slice(1)}.`];
    const part = section("hotspots", "Hotspots: files", [lead, ...notes.filter(Boolean)].join(" "));
    if (!ranked.length) return part.append(none("No complexity was measured in this batch"));
    const chart = svg("svg", { class: "chart", role: "group", "aria-label": `Cognitive complexity by ${across.name}` });
    const box = factBox("Point at a dot or focus it to see its numbers.");
    part.append(chart, box);
    if (ranked.length > DOTS_MAX) part.append(el("p", { class: "lead" }, `Top ${comma(DOTS_MAX)} of ${countOf(ranked.length, "file")} by hotspot score.`));
    const list = ranked.slice(0, DOTS_MAX);
    const draw = () => {
      const width = Math.max(280, Math.round(chart.clientWidth || part.clientWidth || 900)), height = Math.round(Math.min(520, Math.max(340, width * 0.5)));
      chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const left = 46, right = width - 18, topEdge = 16, bottom = height - 42;
      const xs = list.map(across.of), ys = list.map((at) => tree.cognitive[at]);
      const scaleOf = (values, from, to) => {
        const low = Math.log(Math.max(0.8, Math.min(...values) * 0.8)), high = Math.log(Math.max(...values) * 1.25);
        return (value) => from + ((Math.log(value) - low) / (high - low || 1)) * (to - from);
      };
      const x = scaleOf(xs, left, right), y = scaleOf(ys, bottom, topEdge);
      const drawn = [];
      const ticks = (values, draw, least) => {
        let before = -Infinity;
        for (const tick of ticksTo(Math.max(...values)).filter((each) => each >= Math.min(...values))) {
          const place = draw(tick, before, least);
          if (place !== undefined) before = place;
        }
      };
      ticks(xs, (tick, before, least) => {
        if (Math.abs(x(tick) - before) < least) return undefined;
        drawn.push(svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: topEdge, y2: bottom }),
          svg("text", { class: "tick", x: x(tick), y: bottom + 15, "text-anchor": "middle" }, comma(tick)));
        return x(tick);
      }, 38);
      ticks(ys, (tick, before, least) => {
        if (Math.abs(y(tick) - before) < least) return undefined;
        drawn.push(svg("line", { class: "axis", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
          svg("text", { class: "tick", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, comma(tick)));
        return y(tick);
      }, 22);
      drawn.push(svg("text", { class: "axis-name", x: right, y: height - 8, "text-anchor": "end" }, `${across.name} →`),
        svg("text", { class: "axis-name", x: left, y: 11 }, "↑ cognitive complexity"));
      const longest = Math.max(...list.map((at) => tree.code[at]));
      const dots = list.map((at) => ({ at, x: x(across.of(at)), y: y(tree.cognitive[at]), r: 3 + 7 * Math.sqrt(tree.code[at] / longest) }));
      const labelled = dots.slice(0, Math.min(LABELS_MAX, Math.floor(width / LABEL_WIDTH_MIN)));
      const taken = labelled.map((dot) => [dot.x - dot.r, dot.y - dot.r, dot.x + dot.r, dot.y + dot.r]);
      const labels = [];
      const named = new Set();
      const room = (dot, wide) => { // The nearest free place around a dot.
        for (const far of [4, 16, 30, 46]) for (const [dx, dy] of [[1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1], [0, -1], [0, 1]]) {
          const away = dot.r + far, middle = [dot.x + dx * away, dot.y + dy * away * (dx ? 0.7 : 1)];
          const from = dx > 0 ? middle[0] : dx < 0 ? middle[0] - wide : middle[0] - wide / 2;
          const box = [from, middle[1] - 7, from + wide, middle[1] + 7];
          if (box[0] < left + 2 || box[2] > width - 4 || box[1] < topEdge || box[3] > bottom) continue;
          if (!taken.some((each) => box[0] < each[2] && box[2] > each[0] && box[1] < each[3] && box[3] > each[1])) return { box, middle, far };
        }
        return null;
      };
      for (const dot of labelled) {
        const isTwice = labelled.some((each) => each !== dot && nameOf(each.at) === nameOf(dot.at));
        const name = labelOf(dot.at, width < 600 ? 20 : 34, isTwice);
        const text = svg("text", { class: "label" }, name);
        chart.append(text); // Only then it has a width.
        const found = room(dot, text.getComputedTextLength() + 4);
        if (!found) continue;
        taken.push(found.box);
        named.add(dot.at);
        if (found.far > 4) labels.push(svg("line", { class: "leader", x1: dot.x, y1: dot.y, x2: found.middle[0], y2: found.middle[1] }));
        labels.push(fill(text, { x: found.box[0] + 2, y: found.middle[1] + 4 }, []));
      }
      const spots = dots.map((dot) => ({ ...dot, made: svg("g", { class: "spot", role: "img", "aria-label": `${pathOf(dot.at)}: ${facts(dot.at)}` },
        svg("circle", { class: named.has(dot.at) ? "dot named" : "dot", cx: dot.x, cy: dot.y, r: dot.r })) }));
      chart.replaceChildren(...drawn, ...spots.map((spot) => spot.made).reverse(), ...labels);
      roving(chart, spots, { tell: box.tell });
    };
    let drawnWidth = 0;
    new ResizeObserver(() => { if (Math.abs(chart.clientWidth - drawnWidth) > 3) { drawnWidth = chart.clientWidth; draw(); } }).observe(chart);
    draw();
    drawnWidth = chart.clientWidth;

    const numbersOf = (title, column, isRare) => ({ title, value: (at) => column[at], isNumber: true, isRare });
    const columns = [
      { title: "File", value: pathOf, cell: (at) => broken(pathOf(at)) },
      ...(hasHistory ? [numbersOf("Commits/yr", tree.changes, false)] : []),
      numbersOf("Complexity", tree.cognitive, false), numbersOf("Hardest function", tree.hardest, true), numbersOf("Lines of code", tree.code, hasHistory),
      ...(data.asked.includes("duplicate") ? [numbersOf("Duplicated lines", tree.duplicated, true)] : []),
      ...(data.asked.includes("edge") ? [{ ...numbersOf("Dependents", tree.dependents, true), cell: (at) => usersOf(tree.dependents[at], tree.partial[at]) }] : []),
      ...(data.asked.includes("diagnostic") ? [numbersOf("Findings", tree.findings, true)] : []),
    ];
    const top = ranked.slice(0, 200);
    part.append(table(topOf(top.length, ranked.length, "file", "hotspot score"), columns, top, { first: 12 }));
  };
  const labelOf = (at, room, isTwice) => {
    const name = nameOf(at), parent = tree.parents[at];
    const isCommon = isTwice || /^(__init__|index|mod|main)\.\w+$/.test(name);
    const label = isCommon && parent ? `${nameOf(parent)}/${name}` : name;
    return label.length > room ? `…${label.slice(1 - room)}` : label;
  };

  // Functions, duplicate blocks, directories, findings.

  const placed = (name, path, line) => el("div", {}, broken(shown(name), "name"), broken(`${shown(path)}:${line}`));

  const drawFunctions = () => {
    const part = section("functions", "Hotspots: functions", "Ranked by cognitive complexity (which counts branches, and nested ones more), commits in the last year and dependents of the file. Consider splitting functions with a complexity above 15.");
    const functions = data.functions.filter((each) => included.has(each.category)).sort((one, other) => other.score - one.score);
    if (!functions.length) return part.append(none(data.asked.includes("metric") ? "No functions were found" : "The pipeline of this batch does not measure functions"));
    const number = (title, field, isRare) => ({ title, value: (row) => row[field], isNumber: true, isRare });
    const isKnown = (field) => functions.some((row) => row[field] !== null);
    const columns = [
      { title: "Function", value: (row) => row.name, cell: (row) => placed(row.name, row.path, row.line) },
      { title: "Score", value: (row) => row.score, cell: (row) => comma(Math.round(row.score)), isNumber: true, isRare: true },
      number("Complexity", "cognitive", false), ...(isKnown("changes") ? [number("Commits/yr", "changes", true)] : []),
      ...(isKnown("dependents") ? [{ ...number("Dependents", "dependents", true), cell: (row) => usersOf(row.dependents, row.dependents_partial) }] : []),
    ];
    part.append(table(topOf(functions.length, inAll.functions, "function", "hotspot score"), columns, functions, { first: 20, sorted: 1 }));
  };

  /* Two excerpts line by line, those that are equal but for blanks at their ends beside each other (longest common subsequence). */
  const beside = (one, other) => {
    const same = (a, b) => one[a].trim() === other[b].trim();
    const length = Array.from({ length: one.length + 1 }, () => new Array(other.length + 1).fill(0));
    for (let a = one.length - 1; a >= 0; a--) for (let b = other.length - 1; b >= 0; b--)
      length[a][b] = same(a, b) ? length[a + 1][b + 1] + 1 : Math.max(length[a + 1][b], length[a][b + 1]);
    const pairs = [];
    for (let a = 0, b = 0; a < one.length || b < other.length;) {
      if (a < one.length && b < other.length && same(a, b)) pairs.push([a++, b++]);
      else if (b >= other.length || (a < one.length && length[a + 1][b] >= length[a][b + 1])) pairs.push([a++, -1]);
      else pairs.push([-1, b++]);
    }
    return pairs;
  };
  const drawSides = (copied) => {
    const pairs = beside(...[0, 1].map((side) => (copied.shown[side] || { text: [] }).text));
    return el("div", { class: "sides" }, ...copied.shown.map((excerpt, side) =>
      el("div", { class: "side" }, el("h4", {}, broken(`${shown(excerpt.path)}:${excerpt.line}`)),
        excerpt.text.length
          ? el("div", { class: "lines code", tabindex: "0", role: "region", "aria-label": `Source of ${shown(excerpt.path)}` }, el("ol", {}, ...pairs.map((pair) => {
            const at = pair[side];
            const attributes = { class: pair[0] < 0 || pair[1] < 0 ? "differs" : undefined, "data-line": at < 0 ? "" : String(excerpt.line + at) };
            return el("li", attributes, at < 0 ? "" : shownCode(excerpt.text[at]));
          })))
          : none("The source is not available"))));
  };
  const drawCopies = () => {
    const part = section("copies", "Duplicate blocks", "Identical code in several locations, ignoring comments and blank lines. Change one copy and you must change the others.");
    if (!data.copies.length) return part.append(none(data.asked.includes("duplicate") ? "No duplicate blocks were found" : "The pipeline of this batch does not look for duplicate blocks"));
    part.append(el("p", {}, `${topOf(data.copies.length, inAll.copies, "block", "size", inAll.copies_bound)}.${inAll.copies_left_out ? ` Not listed: ${inAll.copies_left_out_bound}${countOf(inAll.copies_left_out, "block")} that occur only in tests or in vendored code.` : ""}`));
    const drawn = data.copies.map((copied, place) => {
      const places = [...copied.shown.map((each) => [each.path, each.line]), ...copied.others];
      const [one, other] = places.map(([path, line]) => `${shown(path)}:${line}`);
      const made = el("details", {}, el("summary", {}, el("strong", {}, `${countOf(copied.lines, "line")} × ${comma(copied.copies)} `),
        broken(other ? `${one} = ${other}` : one), copied.copies > 2 ? ` and ${comma(copied.copies - 2)} more` : ""));
      const open = () => {
        if (made.childElementCount > 1) return;
        made.append(drawSides(copied));
        const also = copied.others.map(([path, line]) => `${shown(path)}:${line}`);
        const more = copied.copies - places.length;
        if (also.length) made.append(el("p", { class: "also" }, "Also at ", broken(also.join(", ")), `${more > 0 ? ` and ${countOf(more, "more location")}` : ""}`));
      };
      made.addEventListener("toggle", open);
      made.hidden = place >= 12;
      if (place === 0) { open(); made.open = true; }
      return { made, open };
    });
    part.append(...drawn.map((each) => each.made));
    const more = button(`Show all ${drawn.length}`, () => { drawn.forEach((each) => { each.made.hidden = false; }); more.hidden = true; }, { class: "more" });
    if (drawn.length > 12) part.append(more);
    addEventListener("beforeprint", () => drawn.slice(0, 3).forEach((each) => { each.open(); each.made.open = true; }));
  };

  const drawMatrix = () => {
    const part = section("directories", "Imports between directories", "Each row imports the columns. Directories are ordered so that importers come first: marks below the diagonal are part of a cycle.");
    const { matrix } = data;
    if (!data.asked.includes("edge")) return part.append(none("The pipeline of this batch does not resolve imports"));
    if (!matrix) return part.append(none("No file in this batch imports another file"));
    const cells = new Map(matrix.cells.map(([row, column, count]) => [row * matrix.directories.length + column, count]));
    const most = Math.max(1, ...matrix.cells.map((cell) => cell[2]));
    const kindOf = (row, column, count) => {
      if (row > column) return "back"; // Only within a cycle.
      if (cells.has(column * matrix.directories.length + row)) return "within";
      return `b${count * 20 > most ? (count * 4 > most ? 3 : 2) : 1}`;
    };
    const names = matrix.directories.map(shown);
    const head = el("tr", {}, el("th", { scope: "col" }, "imports →"), ...names.map((name, at) => el("th", { scope: "col", title: name, "aria-label": name }, String(at + 1))));
    const lines = names.map((name, row) => el("tr", {}, el("th", { scope: "row", title: `${name}: ${countOf(matrix.files[row], "file")}` }, el("span", { class: "number-of" }, String(row + 1)), name),
      ...names.map((other, column) => {
        if (row === column) return el("td", { class: "self", title: `${name}: ${countOf(matrix.inside[row], "import")} within` }, matrix.inside[row] ? brief(matrix.inside[row]) : "·");
        const count = cells.get(row * names.length + column);
        if (!count) return el("td", {});
        const kind = kindOf(row, column, count);
        const text = `${name} imports ${other}: ${countOf(count, "import")}${kind === "back" ? ", part of a cycle" : kind === "within" ? ", in both directions" : ""}`;
        return el("td", { class: kind, title: text }, brief(count));
      })));
    const inCycles = matrix.cycles.filter(Boolean).length;
    const caption = inCycles ? `${countOf(names.length, "directory", "directories")}, ${comma(inCycles)} in a cycle` : `${countOf(names.length, "directory", "directories")}, no cycles`;
    part.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix of directories" }, el("table", { class: "matrix" }, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...lines))),
      el("ul", { class: "legend" }, ...[["b2", "imports"], ["within", "imports in both directions"], ["back", "part of a cycle (underlined)"], ["self", "within the directory"]]
        .map(([kind, text]) => el("li", {}, el("span", { class: `swatch ${kind}` }), text))));
    if (data.cycles.length) {
      part.append(el("h3", {}, `Import cycles: ${topOf(data.cycles.length, inAll.cycles, "cycle", "size")}`),
        el("ul", { class: "ways" }, ...data.cycles.map((cycle) => el("li", {}, el("strong", {}, countOf(cycle.files, "file")), ": ", broken(cycle.shortest.map(shown).join(" → "))))));
    }
  };

  const SEVERITIES = ["error", "warning", "info", "hint"];
  const exampleOf = (rule) => {
    const { example } = rule;
    const place = broken(`${shown(example.path)}:${example.line}`);
    if (!example.text.length || !example.text[0].trim()) return el("div", { class: "example" }, el("p", {}, shown(rule.message)), place);
    const characters = Array.from(example.text[0]);
    const indent = characters.findIndex((each) => each.trim());
    const from = Math.max(indent, rule.column - 1), to = Math.min(characters.length, Math.max(from, from + rule.width));
    const codeBetween = (start, end) => shownCode(characters.slice(start, end).join(""));
    return el("div", { class: "example" }, el("p", {}, shown(rule.message)), place,
      el("pre", {}, codeBetween(indent, from), rule.width ? el("mark", {}, codeBetween(from, to)) : "", codeBetween(rule.width ? to : from, characters.length)));
  };
  const drawFindings = () => {
    const part = section("findings", "Findings by rule", `The most severe rules first, each with one example.${inAll.hints ? ` Not listed: ${countOf(inAll.hints, "hint")}.` : ""}`);
    if (!data.rules.length) return part.append(none(data.asked.includes("diagnostic") ? "No findings" : "The pipeline of this batch does not lint"));
    const columns = [
      { title: "Rule", value: (rule) => rule.code, cell: (rule) => broken(shown(rule.code), "code") },
      { title: "Severity", value: (rule) => rule.severity, order: (rule) => SEVERITIES.indexOf(rule.severity), cell: (rule) => el("span", { class: `severity ${SEVERITIES.includes(rule.severity) ? rule.severity : "hint"}` }, shown(rule.severity)) },
      { title: "Count", value: (rule) => rule.count, isNumber: true }, { title: "Files", value: (rule) => rule.files, isNumber: true, isRare: true },
      ...(HAS_TESTS ? [{ title: "In tests", value: (rule) => rule.apart, isNumber: true, isRare: true }] : []),
      { title: "Example", value: (rule) => rule.message, cell: exampleOf },
    ];
    part.append(table(topOf(data.rules.length, inAll.rules, "rule", "severity"), columns, data.rules, { first: 15, kind: "rules" }));
  };

  const STATES = { severity_raised: "severity raised", new: "new", fixed: "fixed", severity_lowered: "severity lowered" };
  const drawSince = () => {
    const { since } = data;
    if (!since) return;
    const states = Object.entries(STATES).map(([state, word]) => `${comma(since.states[state] || 0)} ${word}`);
    const beside = [["moved", "moved"], ["changed", "changed"], ["suppressed", "suppressed"], ["removed", "in removed files"], ["not_comparable", "not comparable"], ["unchanged", "unchanged"]]
      .filter(([state]) => since.states[state]).map(([state, word]) => `${comma(since.states[state])} ${word}`);
    const part = section("since", "Changes", `Compared with ${shown(since.batch_id)} of ${since.made_at}. Findings without hints: ${states.join(", ")}${beside.length ? `; also ${beside.join(", ")}` : ""}.`);
    const severityOf = (each) => el("span", { class: `severity ${SEVERITIES.includes(each.severity) ? each.severity : "hint"}` }, shown(each.severity));
    const placeOf = (each) => broken(`${shown(each.path)}:${each.line}`);
    if (since.findings.length) {
      part.append(table(topOf(since.findings.length, since.findings_count, "finding", "state"), [
        { title: "State", value: (each) => STATES[each.state] || each.state, order: (each) => Object.keys(STATES).indexOf(each.state) },
        { title: "Severity", value: (each) => each.severity, order: (each) => SEVERITIES.indexOf(each.severity), cell: severityOf },
        { title: "Rule", value: (each) => each.code, cell: (each) => broken(shown(each.code), "code") },
        { title: "Location", value: (each) => each.path, cell: placeOf },
        { title: "Message", value: (each) => each.message },
      ], since.findings, { first: 15, kind: "since" }));
    } else part.append(none("No finding is new or fixed, and no severity changed"));
    if (since.functions.length) {
      part.append(table(topOf(since.functions.length, since.functions_count, "function", "increase of complexity"), [
        { title: "Function", value: (each) => each.name, cell: (each) => broken(shown(each.name), "name") },
        { title: "Complexity before", value: (each) => each.before, isNumber: true }, { title: "Complexity now", value: (each) => each.after, isNumber: true },
        { title: "Change", value: (each) => each.after - each.before, isNumber: true, cell: (each) => `${each.after > each.before ? "+" : "−"}${comma(Math.abs(each.after - each.before))}` },
        { title: "Location", value: (each) => each.path, cell: placeOf },
      ], since.functions, { first: 15, kind: "steps" }));
    }
  };

  // Head and foot.

  const DUPLICATED_MAX = 3; // Percent: the limit of SonarQube's default quality gate.
  /* The most important result of each section: [section, title, text]. */
  const headlines = () => {
    const cards = [];
    const [file] = ranked;
    if (file !== undefined) {
      const path = pathOf(file);
      const hardest = data.functions.filter((each) => shown(each.path) === path).sort((one, other) => other.cognitive - one.cognitive)[0];
      cards.push(["hotspots", "Hotspot", [`${path}: ${hasHistory ? countOf(tree.changes[file], "commit") : countOf(tree.code[file], "line")}`,
        tree.dependents[file] ? countOf(tree.dependents[file], "dependent") : "", hardest ? `hardest function ${shown(hardest.name)}` : ""].filter(Boolean).join(", ")]);
    }
    const [rule] = data.rules;
    if (rule) cards.push(["findings", "Finding", `${shown(rule.example.path)}:${rule.example.line}: ${shown(rule.severity)} ${shown(rule.code)} ${shown(rule.message)}`]);
    const [block] = data.copies;
    if (block && block.shown.length) {
      const places = [...block.shown.map((each) => [each.path, each.line]), ...block.others].slice(0, 2);
      cards.push(["copies", "Duplicate block", `${countOf(block.lines, "line")}: ${places.map(([path, line]) => `${shown(path)}:${line}`).join(" and ")}`]);
    }
    const [cycle] = data.cycles;
    if (cycle) cards.push(["directories", "Import cycle", `${countOf(cycle.files, "file")}: ${cycle.shortest.map(shown).join(" → ")}`]);
    return cards;
  };
  const drawSwitches = (nav) => {
    if (!CATEGORIES.length) return;
    nav.append(el("div", { class: "switches" }, "Include", ...CATEGORIES.map(([category, name]) => {
      const box = el("input", { type: "checkbox" });
      box.addEventListener("change", () => { box.checked ? included.add(category) : included.delete(category); drawParts(); });
      return el("label", {}, box, name);
    })));
  };

  const drawHead = () => {
    const top = document.querySelector(".top");
    document.title = `${shown(data.title) || "codebatch"} – codebatch report`;
    const theme = button("", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"), { class: "theme" });
    const setTheme = (name) => {
      document.documentElement.dataset.theme = name;
      theme.textContent = name === "dark" ? "Light colours" : "Dark colours";
    };
    const dark = matchMedia("(prefers-color-scheme: dark)");
    setTheme(dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
    const of = data.paths.length ? ` · restricted to ${data.paths.map(shown).join(", ")}` : "";
    top.append(el("div", { class: "title" }, el("h1", {}, shown(data.title) || "codebatch report"),
      el("p", {}, `Analysed on ${data.made_at} · ${shown(data.batch_id)}${of}`), theme));
    if (data.incomplete) top.append(el("p", { class: "banner", role: "alert" }, `Incomplete: ${shown(data.incomplete)}. The numbers below cover the results so far.`));
    const parts = [...(data.since ? [["since", "Changes"]] : []), ["hotspots", "Files"], ["functions", "Functions"], ["tree", "Code by directory"], ["copies", "Duplicate blocks"], ["directories", "Imports"], ["findings", "Findings"]];
    const nav = el("nav", { class: "parts", "aria-label": "Sections" }, el("ul", {}, ...parts.map(([id, title]) => el("li", {}, el("a", { href: `#${id}` }, title)))));
    drawSwitches(nav);
    main.before(nav);

    const found = SEVERITIES.filter((each) => each !== "hint" && numbers.findings[each]).map((each) => [each, numbers.findings[each]]);
    const share = numbers.production ? (100 * numbers.production_duplicated) / numbers.production : 0;
    // [label, value, section, is known, verdict]
    const tiles = [
      ["files", comma(numbers.files), "tree", !isMeasured], ["lines of code", comma(numbers.code), "tree", isMeasured],
      [`code files of ${comma(numbers.files)} files`, comma(numbers.code_files), "hotspots", isMeasured], ["functions", comma(numbers.functions), "functions", isMeasured],
      ["duplicated lines of production code", numbers.production ? `${share.toFixed(1)} %` : "–", "copies", data.asked.includes("duplicate"), share > DUPLICATED_MAX ? `above ${DUPLICATED_MAX} %, a common limit` : ""],
      [inAll.cycles === 1 ? "import cycle" : "import cycles", comma(inAll.cycles), "directories", data.asked.includes("edge")],
      ...found.slice(0, 2).map(([severity, count]) => [`findings with severity ${severity}`, comma(count), "findings", true]),
      ...(found.length ? [] : [["findings", "0", "findings", data.asked.includes("diagnostic")]]),
    ];
    const box = el("div", { class: "numbers" }, el("dl", { class: "tiles" }, ...tiles.filter((tile) => tile[3]).map(([what, value, id, , verdict]) => el("a", { class: "tile", href: `#${id}` },
      el("dt", {}, `${what}${soFar}`, verdict ? el("span", { class: "verdict" }, verdict) : null), el("dd", {}, value)))));
    const cards = headlines();
    if (cards.length) top.append(el("ul", { class: "cards", "aria-label": "Headlines" }, ...cards.map(([id, title, text]) => el("li", {}, el("a", { href: `#${id}` }, el("strong", {}, title), el("span", {}, text))))));
    top.append(box);
    const languages = Object.entries(numbers.languages).sort((one, other) => (one[0] === "others") - (other[0] === "others") || other[1] - one[1]);
    if (!languages.length) return;
    const named = languages.slice(0, 5), rest = languages.slice(5).reduce((all, each) => all + each[1], 0);
    const segments = rest ? [...named, ["others", rest]] : named;
    let x = 0;
    const stripes = segments.map(([, code], place) => {
      const width = (1000 * code) / numbers.code;
      x += width;
      return svg("rect", { class: `l${place}`, x: x - width, y: 0, width: Math.max(1, width - 1.5), height: 14 });
    });
    box.append(svg("svg", { class: "bar", viewBox: "0 0 1000 14", preserveAspectRatio: "none", role: "img", "aria-label": "Code by language" }, ...stripes),
      el("ul", { class: "keys" }, ...segments.map(([name, code], place) => el("li", {}, el("span", { class: `swatch l${place}` }), `${shown(name)} ${((100 * code) / numbers.code).toFixed(1)} %`))));
  };
  const drawFoot = () => {
    const left = Object.entries(numbers.left_out).map(([name, [files, lines]]) => `${countOf(files, `${shown(name)} file`)}${lines ? ` (${countOf(lines, "line")})` : ""}`);
    const paragraphs = [
      left.length ? `Not part of the totals: ${left.join(", ")}.` : "",
      numbers.partly_parsed ? `${countOf(numbers.partly_parsed, "file")} could only be parsed partially.` : "",
      numbers.failures ? `${countOf(numbers.failures, "result")} failed; to see why, run: codebatch errors` : "",
      `Made by codebatch from ${shown(data.snapshot_id)}, pipeline ${shown(data.pipeline)}. The page is self-contained and makes no network requests.`,
    ];
    document.querySelector(".foot").append(el("ul", {}, ...paragraphs.filter(Boolean).map((text) => el("li", {}, text))));
  };

  const drawParts = () => {
    total = addUp();
    ranked = rankFiles();
    main.replaceChildren();
    for (const draw of [drawSince, drawScatter, drawFunctions, drawTree, drawCopies, drawMatrix, drawFindings]) draw();
  };
  drawHead();
  drawParts();
  drawFoot();
})();
