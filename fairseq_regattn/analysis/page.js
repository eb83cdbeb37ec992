// Draws one sentence at a time from the page's data (html.py writes both).
const { faint, sentences } = content;
const CELL = 19; // pixels: the side of a cell
const FONT = "12px ui-monospace, monospace"; // of labels, as in page.css
const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;

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

  const hover = (event) => {
    const box = svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / CELL);
    const row = Math.floor((event.clientY - box.top - top) / CELL);
    const inside = column >= 0 && row >= 0 && column < source.length && row < target.length;
    tip.hidden = !inside;
    if (!inside) return;
    const weight = weights[row * source.length + column];
    point(event, `${target[row]} ← ${source[column]}: ${weight ? (weight / 1000).toFixed(3) : 0}`);
  };
  svg.addEventListener("pointermove", hover);
  svg.addEventListener("pointerdown", hover); // a finger
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  return svg;
}

function figure([name, text, source, target, runs]) {
  const svg = alignment(name, source.split(" "), target.split(" "), unpack(runs));
  return make("figure", {},
    make("figcaption", {}, make("b", {}, name), make("div", { dir: "auto" }, text || "(empty)")),
    make("div", { class: "scroll" }, svg));
}

function draw(index, section) {
  const [name, source, reference, drawings] = sentences[index];
  const side = make("div", { class: "side" }, ...drawings.map(figure));
  section.replaceChildren(make("h3", {}, name), make("dl", {},
    make("dt", {}, "source"), make("dd", { dir: "auto" }, source),
    make("dt", {}, "reference"), make("dd", { dir: "auto" }, reference)), side);
  // The panels of a sentence begin at one height, whatever the lengths of their translations.
  const captions = [...side.querySelectorAll("figcaption")];
  const height = Math.max(...captions.map((caption) => caption.offsetHeight));
  for (const caption of captions) caption.style.minHeight = `${height}px`;
}

browse({
  kind: "sentence",
  texts: sentences.map(([name, source, reference, drawings]) =>
    [name, source, reference, ...drawings.map(([, text]) => text)].join("\n")),
  hint: "text of source, reference, translations",
  draw,
});
