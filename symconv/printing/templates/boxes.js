// What stands in the box of a node or of a scope that is shown closed, and how large the box is.

const LINE = 1.32, PAD_X = 12, PAD_Y = 8, WRAP = 36, MOST_DETAILS = 4;
const FONTS = {
  head: [13, "600"], detail: [11, "400"], name: [12, "italic 400"], type: [11, "400"], how: [10.5, "400"], mark: [10.5, "600"],
  cluster: [13, "600"],
};
const FAMILY = 'system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif';
const measuring = document.createElement("canvas").getContext("2d");
const widthsMeasured = new Map();

function fontOf(style) {
  const [size, weight] = FONTS[style];
  return `${weight} ${size}px ${FAMILY}`;
}

function textWidth(style, text) {
  const key = `${style} ${text}`;
  if (!widthsMeasured.has(key)) {
    measuring.font = fontOf(style);
    widthsMeasured.set(key, measuring.measureText(text).width);
  }
  return widthsMeasured.get(key);
}

function shortened(text, length) {
  return text.length <= length ? text : `${text.slice(0, Math.floor(length * 0.62))}…${text.slice(text.length - Math.ceil(length * 0.34))}`;
}

// Texts broken at spaces into lines of about WRAP characters, at most MOST_DETAILS.
function wrapped(texts) {
  const lines = [];
  for (const text of texts) {
    let line = "";
    for (const word of text.split(" ")) {
      if (line && line.length + word.length + 1 > WRAP) { lines.push(line); line = word; } else line = line ? `${line} ${word}` : word;
    }
    if (line) lines.push(line);
  }
  const shown = lines.slice(0, MOST_DETAILS).map((line) => shortened(line, WRAP + 8));
  if (lines.length > MOST_DETAILS) shown[MOST_DETAILS - 1] += " …";
  return shown;
}

function sized(lines, extra) {
  const width = Math.max(...lines.map(({ style, text }) => textWidth(style, text)), 24) + 2 * PAD_X;
  const height = lines.reduce((sum, { style }) => sum + FONTS[style][0] * LINE, 0) + 2 * PAD_Y;
  return { lines, width, height, ...extra };
}

// The box of a node: a step's time stands with its implementation, results and stored state are marked.
function nodeBox(graph, node) {
  const record = records[node];
  const lines = [{ style: "head", text: shortened(record.head, 42) }];
  for (const text of wrapped(record.details || [])) lines.push({ style: "detail", text });
  if (record.kind === "apply" && record.name) lines.push({ style: "name", text: shortened(record.name, 42) });
  const types = record.type.split(/, (?=[a-z])/);
  const same = types.length > 1 && new Set(types).size === 1;
  lines.push({ style: "type", text: shortened(same ? `${types.length} × ${types[0]}` : record.type, 60) + (record.layout ? ` · ${record.layout}` : "") });
  if (record.how) lines.push({ style: "how", text: shortened(howText(record), 52) });
  for (const text of marksOf(graph, node)) lines.push({ style: "mark", text: shortened(text, 46) });
  return sized(lines, { key: `n${node}`, node, category: record.category, weak: record.kind === "shared" || record.kind === "constant" });
}

function howText(record) {
  if (record.step === undefined) return record.how;
  const time = data.steps[record.step] && data.steps[record.step].time;
  return `step ${record.step}: ${record.how}${time ? ` · ${secondsText(time.each)}` : ""}`;
}

// The box of a closed scope: its name and how many nodes it has.
function scopeBox(scope) {
  const lines = [{ style: "head", text: shortened(scope.label, 42) }, { style: "type", text: `${scope.nodes.length} nodes` }];
  return sized(lines, { key: `s${scope.path}`, scope: scope.path, category: "scope" });
}

function secondsText(seconds) {
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  return seconds >= 1e-3 ? `${(seconds * 1e3).toPrecision(3)} ms` : `${(seconds * 1e6).toPrecision(3)} µs`;
}

function bytesText(count) {
  const power = Math.min(Math.floor(Math.log2(Math.max(count, 1)) / 10), 3);
  return power ? `${(count / 1024 ** power).toFixed(1)} ${["KiB", "MiB", "GiB"][power - 1]}` : `${count} B`;
}
