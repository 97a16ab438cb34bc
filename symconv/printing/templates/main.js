// Puts the page together: views, phases, theme, legend, and the keys that work everywhere.

const VIEWS = ["graph", "steps", "memory"];
const CLOSED_FROM = 400; // graphs with more nodes start with their scopes closed

function showView(name) {
  for (const each of VIEWS) {
    const tab = document.getElementById(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    document.getElementById(`view-${each}`).hidden = each !== name;
  }
  panel.hidden = name !== "graph";
  document.getElementById("phases").hidden = name !== "graph" || data.phases.length < 2;
  if (name === "memory" && memoryView.timeline) paintTimeline(memoryView.timeline);
  if (name === "graph") schedulePaint();
}

function showPhaseText() {
  const { phase, made } = view.scene.graph;
  const slider = document.getElementById("phase");
  slider.value = String(view.phase);
  slider.setAttribute("aria-valuetext", `${view.phase + 1} of ${data.phases.length}: ${phase.name}, ${phase.nodes.length} nodes`);
  const rewrites = (phase.applications || []).length;
  const changed = phase.applications ? (rewrites ? `${rewrites} rewrite${rewrites === 1 ? "" : "s"}, ${made.size} node${made.size === 1 ? "" : "s"} made` : "nothing rewritten") : "";
  document.getElementById("phase-text").replaceChildren(`${view.phase + 1}/${data.phases.length} `, make("b", {}, phase.name), ` · ${phase.nodes.length} nodes`,
    changed ? make("span", { class: rewrites ? "made" : "" }, ` · ${changed}`) : "", phase.about ? ` · ${phase.about}` : "");
  document.getElementById("phase-back").disabled = view.phase === 0;
  document.getElementById("phase-on").disabled = view.phase === data.phases.length - 1;
}

function showLegend() {
  const { phase, made, gone } = view.scene.graph;
  const present = new Set(phase.nodes.map((node) => records[node].category));
  const rows = Object.entries(inks.palette).filter(([name]) => present.has(name)).map(([name, colours]) => legendRow(name, colours, "solid"));
  if (Object.keys(phase.outputs).length) rows.push(legendRow("result", [inks.paper, inks.soft], "solid", "3px"));
  if (phase.nodes.some((node) => records[node].how === "view")) rows.push(legendRow("view: needs no step", [inks.paper, inks.soft], "dashed"));
  if (made.size) rows.push(legendRow("made by this phase", [inks["made-soft"], inks.made], "solid"));
  if (gone.size) rows.push(legendRow("replaced in the next", [inks["gone-soft"], inks.gone], "dashed"));
  document.getElementById("legend").replaceChildren(...rows);
}

function legendRow(name, [fill, stroke], line, width = "1.5px") {
  const swatch = make("i", { "aria-hidden": "true" });
  Object.assign(swatch.style, { background: fill, borderColor: stroke, borderStyle: line, borderWidth: width });
  return make("li", {}, swatch, name);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = theme === "dark" ? "☀" : "☾";
  button.setAttribute("aria-label", theme === "dark" ? "Light colours" : "Dark colours");
  readInks();
  showLegend();
  schedulePaint();
  if (memoryView.timeline && !memoryView.hidden) paintTimeline(memoryView.timeline);
}

function resize() {
  const { clientWidth, clientHeight } = viewport;
  if (!clientWidth) return;
  painter.resize(clientWidth, clientHeight);
  paintNow();
}

function scopePaths() {
  return [...view.scene.tree.byPath.keys()].filter(Boolean);
}

function setClosed(paths) {
  view.closed = new Set(paths);
  rebuildScene(false);
  fitAll();
}

// Escape lets go, one thing at a time; / + - 0 work wherever no text is being written.
document.addEventListener("keydown", (event) => {
  if (event.target instanceof HTMLInputElement && event.target.type !== "range") return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { search.focus(); search.select(); }
  else if (event.key === "Escape") {
    view.found = new Set();
    hint.hidden = true;
    select("");
  } else if (document.getElementById("view-graph").hidden || !zoomKey(event.key)) return;
  event.preventDefault();
});

function connectButtons() {
  const actions = {
    "phase-back": () => setPhase(view.phase - 1), "phase-on": () => setPhase(view.phase + 1), fit: () => fitAll(),
    "zoom-in": () => zoomKey("+"), "zoom-out": () => zoomKey("-"), collapse: () => setClosed(scopePaths()), expand: () => setClosed([]),
    theme: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
  };
  for (const [id, action] of Object.entries(actions)) document.getElementById(id).addEventListener("click", action);
  const slider = document.getElementById("phase");
  slider.max = String(data.phases.length - 1);
  slider.addEventListener("input", () => setPhase(Number(slider.value)));
}

function connectTabs() {
  for (const name of VIEWS) document.getElementById(`tab-${name}`).addEventListener("click", () => showView(name));
  document.getElementById("views").addEventListener("keydown", (event) => {
    const shown = VIEWS.filter((name) => !document.getElementById(`tab-${name}`).hidden);
    const place = shown.findIndex((name) => document.getElementById(`tab-${name}`) === document.activeElement);
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined || place < 0) return;
    const next = shown[(place + by + shown.length) % shown.length];
    showView(next);
    document.getElementById(`tab-${next}`).focus();
    event.stopPropagation();
  });
}

function showTitles() {
  document.getElementById("title").textContent = data.title;
  document.title = data.title;
  const note = document.getElementById("note");
  note.textContent = data.note;
  note.hidden = !data.note;
  viewport.setAttribute("aria-label", `Graph: ${data.title}`);
}

// What the graph has none of is not offered.
function hideWhatIsEmpty() {
  const scoped = scopePaths().length > 0;
  for (const id of ["collapse", "expand"]) document.getElementById(id).hidden = !scoped;
  for (const name of ["steps", "memory"]) document.getElementById(`tab-${name}`).hidden = !data.steps.length;
}

function start() {
  showTitles();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  readInks();
  view.scene = makeScene(phaseGraph(view.phase), view.closed);
  if (view.scene.graph.phase.nodes.length > CLOSED_FROM) view.closed = new Set(scopePaths());
  selectionListeners.push(showPanel);
  rebuildScene(false);
  buildSteps();
  buildMemory();
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  connectButtons();
  connectTabs();
  hideWhatIsEmpty();
  showView("graph");
  showPhaseText();
  painter.resize(viewport.clientWidth, viewport.clientHeight);
  firstLook();
  new ResizeObserver(resize).observe(viewport);
  window.addEventListener("resize", () => { if (!memoryView.hidden && memoryView.timeline) paintTimeline(memoryView.timeline); });
}

start();
