// The graph on the page: its scene, what is selected, and how pointer and keys move through it.

const viewport = document.getElementById("viewport");
const currentBox = document.getElementById("current");
const announcer = document.getElementById("announcer");

const view = { phase: Math.max(data.phases.length - 1, 0), closed: new Set(), scene: null, selected: "", hovered: "", hoveredCluster: "", found: new Set() };
const camera = new Camera(() => schedulePaint());
const painter = new Painter(document.getElementById("canvas"), camera);
const selectionListeners = [];
let painting = 0;

function schedulePaint() {
  if (!painting) painting = requestAnimationFrame(() => { painting = 0; paintNow(); });
}

function paintNow() {
  const at = view.scene.at.get(view.selected);
  painter.draw(view.scene, { selected: view.selected, hovered: view.hovered, hoveredCluster: view.hoveredCluster, found: view.found, traced: at ? at.stretches : new Set() });
  const box = view.scene.byKey.get(view.selected);
  currentBox.hidden = !box;
  if (!box) return;
  const [left, top] = camera.toScreen(box.x, box.y);
  currentBox.style.transform = `translate(${left}px, ${top}px)`;
  currentBox.style.width = `${box.width * camera.scale}px`;
  currentBox.style.height = `${box.height * camera.scale}px`;
}

// Make the scene anew (another phase, a scope opened or closed); what is selected stays, or what it was or became.
function rebuildScene(keep = true) {
  const selected = keep && view.scene ? view.scene.byKey.get(view.selected) : null;
  const before = selected || (keep && view.scene ? middleBox() : null);
  const anchor = before ? camera.toScreen(before.x + before.width / 2, before.y) : null;
  const graph = phaseGraph(view.phase);
  view.scene = makeScene(graph, view.closed);
  for (const box of view.scene.boxes) {
    if (box.scope !== undefined) box.nodes = view.scene.tree.byPath.get(box.scope).nodes;
    if (box.node !== undefined && (records[box.node].inputs || []).length > 1) markSeveral(box);
  }
  for (const stretch of view.scene.stretches) stretch.weak = Boolean(view.scene.byKey.get(stretch.source).weak);
  const box = keep ? boxFor(before, graph) : null;
  view.selected = box && selected ? box.key : "";
  view.hovered = view.hoveredCluster = "";
  if (box && anchor) {
    camera.x = box.x + box.width / 2 - (anchor[0] - camera.width / 2) / camera.scale;
    camera.y = box.y - (anchor[1] - camera.height / 2) / camera.scale;
  }
  announceSelection();
  schedulePaint();
}

// The box nearest to the middle of the window: it stays there when nothing is selected.
function middleBox() {
  const distance = (box) => Math.hypot(box.x + box.width / 2 - camera.x, box.y + box.height / 2 - camera.y);
  return view.scene.boxes.reduce((best, box) => (!best || distance(box) < distance(best) ? box : best), null);
}

function markSeveral(box) {
  for (const number of view.scene.at.get(box.key).stretches) {
    const stretch = view.scene.stretches[number];
    if (stretch.positions && stretch.source !== box.key) stretch.several = true;
  }
}

// The box of the new scene that stands for one of the old scene.
function boxFor(before, graph) {
  if (!before) return null;
  if (view.scene.byKey.has(before.key)) return view.scene.byKey.get(before.key);
  const nodes = before.nodes || [before.node];
  for (const node of nodes) {
    const found = nodeInPhase(node, graph.number);
    if (found >= 0) return view.scene.byKey.get(view.scene.boxOf.get(found).key);
  }
  return null;
}

function fitAll(smoothly = true) {
  camera.moveTo(camera.fitting(0, 0, view.scene.width, view.scene.height), smoothly);
}

// The first look: everything where that can be read, else the width of the graph from its top.
function firstLook() {
  const { width, height } = view.scene;
  const place = camera.fitting(0, 0, width, height);
  if (place.scale < 0.55 && height > width / 2) {
    place.scale = Math.min(Math.max((camera.width - 80) / width, 0.55), 1);
    place.y = (camera.height / 2 - 60) / place.scale;
  }
  camera.moveTo(place, false);
}

function select(key, { reveal = false } = {}) {
  view.selected = key;
  announceSelection();
  const box = view.scene.byKey.get(key);
  if (box && reveal) revealBox(box);
  schedulePaint();
}

function announceSelection() {
  const box = view.scene.byKey.get(view.selected);
  const label = box ? boxLabel(box) : "";
  if (box) { currentBox.setAttribute("aria-label", label); viewport.setAttribute("aria-activedescendant", "current"); } else viewport.removeAttribute("aria-activedescendant");
  announcer.textContent = label;
  for (const listener of selectionListeners) listener(box);
}

function boxLabel(box) {
  if (box.scope !== undefined) return `scope ${box.scope}, ${box.nodes.length} nodes, closed`;
  const record = records[box.node];
  const at = view.scene.at.get(box.key);
  return [record.head, ...(record.details || []), record.kind === "apply" ? record.name : record.kind, record.type, record.how, ...marksOf(view.scene.graph, box.node),
    `${at.above.length} inputs, ${at.below.length} readers`].filter(Boolean).join(", ");
}

// Bring a box into the middle, large enough to be read, unless it is seen well already.
function revealBox(box) {
  const [left, top] = camera.toScreen(box.x, box.y), [right, bottom] = camera.toScreen(box.x + box.width, box.y + box.height);
  const inside = left > 10 && top > 10 && right < camera.width - 10 && bottom < camera.height - 60;
  if (inside && camera.scale > 0.45) return;
  camera.moveTo({ x: box.x + box.width / 2, y: box.y + box.height / 2, scale: Math.max(camera.scale, 0.8) });
}

// Show a node wherever it is: scopes around it are opened.
function showNode(node) {
  const graph = phaseGraph(view.phase);
  const found = graph.inside.has(node) ? node : nodeInPhase(node, view.phase);
  if (found < 0) return false;
  const shut = prefixes(records[found].home).filter((path) => view.closed.has(path));
  if (shut.length) { shut.forEach((path) => view.closed.delete(path)); rebuildScene(false); }
  showView("graph");
  select(view.scene.boxOf.get(found).key, { reveal: true });
  return true;
}

function toggleScope(path) {
  if (view.closed.has(path)) view.closed.delete(path); else view.closed.add(path);
  const closing = view.closed.has(path);
  rebuildScene();
  if (closing) select(`s${path}`, { reveal: true });
}

function setPhase(number) {
  view.phase = Math.min(Math.max(number, 0), data.phases.length - 1);
  rebuildScene();
  showPhaseText();
  showLegend();
}
