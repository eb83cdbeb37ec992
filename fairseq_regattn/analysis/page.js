"use strict";
// Draws one sentence at a time from the page's data (analysis/html.py writes both).
const { faint, sentences } = JSON.parse(document.getElementById("data").textContent);
const CELL = 19; // pixels: the side of a cell
const FONT = "12px ui-monospace, monospace"; // of labels, as in page.css
const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;

const haystacks = sentences.map(([name, source, reference, drawings]) =>
  [name, source, reference, ...drawings.map(([, text]) => text)].join("\n").toLowerCase());
let current = 0; // index of the sentence shown
let matches = []; // indices of the sentences that pass the filter
let timer = 0;
let written = ""; // the address's part that this script has set

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "text", "rect", "path"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** The opposite of html.py's run_lengths: thousandths, row after row. */
function unpack(runs) {
  return runs.flatMap((run) => (run < 0 ? Array(-run).fill(0) : [run]));
}

/** A rectangle a weight, none where it is zero. */
function alignment(name, source, target, weights) {
  const width = (tokens) => Math.ceil(Math.max(...tokens.map((t) => pen.measureText(t).width))) + 8;
  const left = width(target), top = width(source);
  const right = left + CELL * source.length, bottom = top + CELL * target.length;
  const svg = make("svg", { width: right + 1, height: bottom + 1, role: "img",
    "aria-label": `alignment of ${name}` });
  source.forEach((token, column) => {
    const x = left + CELL * (column + 0.5) + 4;
    svg.append(make("text", { transform: `translate(${x} ${top - 5}) rotate(-90)` }, token));
  });
  target.forEach((token, row) => {
    const y = top + CELL * (row + 0.5) + 4;
    svg.append(make("text", { x: left - 5, y, class: "end" }, token));
  });
  weights.forEach((weight, i) => {
    if (weight === 0) return;
    const column = i % source.length, row = (i - column) / source.length;
    svg.append(make("rect", { x: left + CELL * column, y: top + CELL * row, width: CELL,
      height: CELL, opacity: (faint + (1 - faint) * weight / 1000).toFixed(3) }));
  });
  const columns = source.map((_, i) => `M${left + CELL * i} ${top}V${bottom}`);
  const rows = target.map((_, i) => `M${left} ${top + CELL * i}H${right}`);
  const frame = `M${right} ${top}V${bottom}H${left}`;
  svg.append(make("path", { d: columns.join("") + rows.join("") + frame }));

  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / CELL);
    const row = Math.floor((event.clientY - box.top - top) / CELL);
    const inside = column >= 0 && row >= 0 && column < source.length && row < target.length;
    tip.hidden = !inside;
    if (!inside) return;
    const weight = weights[row * source.length + column];
    tip.textContent = `${target[row]} ← ${source[column]}: ${weight ? (weight / 1000).toFixed(3) : 0}`;
    const over = event.clientX + 14 + tip.offsetWidth > document.documentElement.clientWidth;
    tip.style.left = `${Math.max(0, event.clientX + (over ? -tip.offsetWidth - 10 : 14))}px`;
    tip.style.top = `${event.clientY + 16}px`;
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point); // a finger
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  return svg;
}

function figure([name, text, source, target, runs]) {
  const svg = alignment(name, source.split(" "), target.split(" "), unpack(runs));
  return make("figure", {},
    make("figcaption", {}, make("b", {}, name), make("div", { dir: "auto" }, text || "(empty)")),
    make("div", { class: "scroll" }, svg));
}

function draw() {
  tip.hidden = true;
  const place = matches.indexOf(current);
  number.max = slider.max = Math.max(matches.length, 1);
  number.value = slider.value = place + 1;
  total.textContent = `of ${matches.length}`
    + (matches.length < sentences.length ? ` that match, ${sentences.length} in all` : "");
  back.disabled = place <= 0;
  next.disabled = place === matches.length - 1;
  if (place < 0) {
    shown.replaceChildren(make("p", {}, "No sentence contains this text."));
    return;
  }
  const [name, source, reference, drawings] = sentences[current];
  const side = make("div", { class: "side" }, ...drawings.map(figure));
  shown.replaceChildren(make("h3", {}, name), make("dl", {},
    make("dt", {}, "source"), make("dd", { dir: "auto" }, source),
    make("dt", {}, "reference"), make("dd", { dir: "auto" }, reference)), side);
  // The panels of a sentence begin at one height, whatever the lengths of their translations.
  const captions = [...side.querySelectorAll("figcaption")];
  const height = Math.max(...captions.map((caption) => caption.offsetHeight));
  for (const caption of captions) caption.style.minHeight = `${height}px`;
}

/** Show the sentence, or the next one that passes the filter. */
function show(index) {
  const text = filter.value.trim().toLowerCase();
  matches = [...haystacks.keys()].filter((i) => haystacks[i].includes(text));
  current = matches.find((i) => i >= index) ?? matches.at(-1) ?? index;
  draw();
  // Late, because browsers slow down pages that change their address many times a second.
  clearTimeout(timer);
  timer = setTimeout(() => {
    const state = new URLSearchParams({ sentence: current + 1 });
    if (filter.value.trim()) state.set("text", filter.value.trim());
    written = `#${state}`;
    if (location.hash !== written) location.replace(written);
  }, 250);
}

function step(by) {
  const place = matches.indexOf(current) + by;
  if (place >= 0 && place < matches.length) show(matches[place]);
}

function read() {
  const state = new URLSearchParams(location.hash.slice(1));
  filter.value = state.get("text") ?? "";
  show(Math.min(Math.max(parseInt(state.get("sentence"), 10) || 1, 1), sentences.length) - 1);
}

const back = make("button", { type: "button", "aria-label": "previous sentence" }, "←");
const next = make("button", { type: "button", "aria-label": "next sentence" }, "→");
const number = make("input", { type: "number", min: 1, "aria-label": "sentence" });
const slider = make("input", { type: "range", min: 1, "aria-label": "sentence" });
const total = make("span", { "aria-live": "polite" });
const filter = make("input", { type: "search", autocomplete: "off",
  placeholder: "text of source, reference, translations", "aria-label": "filter by text" });
const shown = make("section");
const tip = make("div", { id: "tip", hidden: "" });

back.addEventListener("click", () => step(-1));
next.addEventListener("click", () => step(1));
slider.addEventListener("input", () => show(matches[slider.value - 1] ?? current));
number.addEventListener("change", () => {
  const place = Math.min(Math.max(Math.round(number.valueAsNumber), 1), matches.length) - 1;
  show(matches[place] ?? current);
});
filter.addEventListener("input", () => show(current));
addEventListener("hashchange", () => { if (location.hash !== written) read(); });
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, .scroll")) return;
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});

document.getElementById("alignments").append(
  make("nav", {}, back, next, number, total, slider, filter), shown, tip);
read();
