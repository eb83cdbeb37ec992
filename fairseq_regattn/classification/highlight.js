// Draws one text at a time, its tokens highlighted by weight (page.py writes the data).
const { faint, labels, names, texts } = content;
const everyLabel = texts.map(([, , , , runs]) => [...new Set(runs.map(([label]) => label))]);

/** The opposite of page.py's repeats: [millionths, how many tokens in a row] each. */
function segments(numbers) {
  const found = [];
  for (const number of numbers) {
    if (number < 0) found.at(-1)[1] -= number;
    else found.push([number, 1]);
  }
  return found;
}

/** Tokens between spaces; those of one weight, other than 0, are one box. */
function highlighted(tokens, numbers) {
  const found = segments(numbers);
  const largest = Math.max(...found.map(([weight]) => weight), 1);
  const text = make("p", { class: "text", dir: "auto" });
  let start = 0;
  for (const [weight, count] of found) {
    const words = tokens.slice(start, start + count).join(" ");
    start += count;
    const alone = count === 1 ? "" : `, each of ${count} tokens`;
    const told = weight === 0 ? "0" : `${(weight / 1e6).toFixed(6)}${alone}`;
    const node = weight === 0 ? make("span", {}, words)
      : make("mark", { class: count > 1 ? "fused" : "one",
        style: `--o:${(faint + (1 - faint) * weight / largest).toFixed(3)}` }, words);
    const short = words.length > 60 ? `${words.slice(0, 60)}…` : words;
    node.dataset.tip = `${short}: ${told}`;
    text.append(node, " ");
  }
  if (!tokens.length) text.append("(empty)");
  return text;
}

function bars(label, probabilities) {
  return make("dl", { class: "bars" }, ...probabilities.flatMap((p, i) => {
    if (p === null) return []; // a label that this model has not
    const name = i === label ? { class: "chosen" } : {};
    return [make("dt", name, labels[i]),
      make("dd", { class: "bar" }, make("div", { style: `width:${(100 * p).toFixed(2)}%` })),
      make("dd", name, `${(100 * p).toFixed(1)} %`)];
  }));
}

function block(name, tokens, gold, [label, probabilities, numbers]) {
  const verdict = gold === null ? [] : label === gold
    ? [make("span", { class: "right", title: "right" }, `✓ ${labels[label]}`)]
    : [make("span", { class: "wrong", title: "wrong" }, `✗ ${labels[label]}`)];
  return make("article", {},
    make("header", {}, make("b", {}, name),
      ...(verdict.length ? verdict : [make("span", {}, labels[label])])),
    bars(label, probabilities), highlighted(tokens, numbers));
}

function draw(index, section) {
  const [id, gold, tokens, hypothesis, runs] = texts[index];
  const facts = make("dl");
  if (gold !== null) facts.append(make("dt", {}, "gold"), make("dd", {}, labels[gold]));
  if (hypothesis !== null) {
    facts.append(make("dt", {}, "hypothesis"),
      make("dd", { dir: "auto" }, hypothesis.join(" ") || "(empty)"));
  }
  section.replaceChildren(make("h3", {}, `text ${id}, ${tokens.length} tokens`), facts,
    make("div", { class: "blocks" }, ...runs.map((run, i) => block(names[i], tokens, gold, run))));
}

function choice(name, title, options, passes) {
  const select = make("select", { "aria-label": title }, make("option", { value: "" }, title),
    ...options.map(([value, words]) => make("option", { value }, words)));
  return { name, select, passes };
}

const hover = (event) => {
  const node = event.target.closest("[data-tip]");
  if (node) point(event, node.dataset.tip);
  else tip.hidden = true;
};
addEventListener("pointermove", hover);
addEventListener("pointerdown", hover); // a finger

const golden = texts.some(([, gold]) => gold !== null);
const each = (before) => labels.map((label, i) => [i, `${before} ${label}`]);
browse({
  kind: "example", // not "text", which is the filter's name in the address
  texts: texts.map(([, , tokens, hypothesis]) => [tokens, hypothesis ?? []]
    .map((words) => words.join(" ")).join("\n")),
  hint: "words of the text",
  draw,
  choices: [
    ...(golden ? [choice("gold", "any gold label", each("gold:"),
      (i, value) => texts[i][1] === Number(value))] : []),
    choice("predicted", "any prediction", each("some predict"),
      (i, value) => everyLabel[i].includes(Number(value))),
    choice("only", "all texts", [
      ...(names.length > 1 ? [["disagree", "mappings disagree"]] : []),
      ...(golden ? [["mistakes", "some are wrong"]] : []),
    ], (i, value) => (value === "disagree" ? everyLabel[i].length > 1
      : texts[i][1] !== null && everyLabel[i].some((label) => label !== texts[i][1]))),
  ],
});
