"use strict";
// What pages of many items share: one is shown at a time, filters choose among them, and the
// address keeps the place. A second script draws the items (html.py puts both into a page).
const content = JSON.parse(document.getElementById("data").textContent);
const tip = make("div", { id: "tip", hidden: "" });

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "text", "rect", "path"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Words beside the pointer, inside the window. */
function point(event, words) {
  tip.hidden = false;
  tip.textContent = words;
  const over = event.clientX + 14 + tip.offsetWidth > document.documentElement.clientWidth;
  tip.style.left = `${Math.max(0, event.clientX + (over ? -tip.offsetWidth - 10 : 14))}px`;
  tip.style.top = `${event.clientY + 16}px`;
}

/**
 * Lead through items.
 * kind: what an item is; texts: of each, what the filter looks at; hint: what that is;
 * draw(index, section): fills the section with an item;
 * choices: other filters, { name, select, passes(index, value) }, off where the value is "".
 */
function browse({ kind, texts, hint, draw, choices = [] }) {
  const haystacks = texts.map((text) => text.toLowerCase());
  let current = 0; // index of the item shown
  let matches = []; // indices of the items that pass the filters
  let timer = 0;
  let written = ""; // the address's part that this script has set

  function redraw() {
    tip.hidden = true;
    const place = matches.indexOf(current);
    number.max = slider.max = Math.max(matches.length, 1);
    number.value = slider.value = place + 1;
    total.textContent = `of ${matches.length}`
      + (matches.length < texts.length ? ` that match, ${texts.length} in all` : "");
    back.disabled = place <= 0;
    next.disabled = place === matches.length - 1;
    if (place >= 0) draw(current, shown);
    else shown.replaceChildren(make("p", {}, choices.length ? `No ${kind} passes all filters.`
      : `No ${kind} contains this text.`));
  }

  /** Show the item, or the next one that passes the filters. */
  function show(index) {
    const text = filter.value.trim().toLowerCase();
    const chosen = choices.filter(({ select }) => select.value !== "");
    matches = [...haystacks.keys()].filter((i) => haystacks[i].includes(text)
      && chosen.every(({ select, passes }) => passes(i, select.value)));
    current = matches.find((i) => i >= index) ?? matches.at(-1) ?? index;
    redraw();
    // Late, because browsers slow down pages that change their address many times a second.
    clearTimeout(timer);
    timer = setTimeout(() => {
      const state = new URLSearchParams({ [kind]: current + 1 });
      if (filter.value.trim()) state.set("text", filter.value.trim());
      for (const { name, select } of chosen) state.set(name, select.value);
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
    for (const { name, select } of choices) {
      select.value = state.get(name) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    show(Math.min(Math.max(parseInt(state.get(kind), 10) || 1, 1), texts.length) - 1);
  }

  const back = make("button", { type: "button", "aria-label": `previous ${kind}` }, "←");
  const next = make("button", { type: "button", "aria-label": `next ${kind}` }, "→");
  const number = make("input", { type: "number", min: 1, "aria-label": kind });
  const slider = make("input", { type: "range", min: 1, "aria-label": kind });
  const total = make("span", { "aria-live": "polite" });
  const filter = make("input", { type: "search", autocomplete: "off", placeholder: hint,
    "aria-label": "filter by text" });
  const shown = make("section");

  back.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  slider.addEventListener("input", () => show(matches[slider.value - 1] ?? current));
  number.addEventListener("change", () => {
    const place = Math.min(Math.max(Math.round(number.valueAsNumber), 1), matches.length) - 1;
    show(matches[place] ?? current);
  });
  filter.addEventListener("input", () => show(current));
  for (const { select } of choices) select.addEventListener("change", () => show(current));
  addEventListener("hashchange", () => { if (location.hash !== written) read(); });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey
      || event.target.closest("input, select, .scroll")) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });

  document.getElementById("drawings").append(make("nav", {}, back, next, number, total, slider,
    filter, ...choices.map(({ select }) => select)), shown, tip);
  read();
}

