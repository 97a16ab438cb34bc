// Pointer, wheel and keys over the graph.

let drag = null;

function boxAt(left, top) {
  const [x, y] = camera.toWorld(left, top);
  return view.scene.boxes.find((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
}

// The open scope whose title is at a point.
function clusterAt(left, top) {
  const [x, y] = camera.toWorld(left, top);
  return view.scene.clusters.findLast((each) => x >= each.x && x <= each.x + each.width && y >= each.y && y <= each.y + SCOPE_HEAD);
}

function within(event) {
  const bounds = viewport.getBoundingClientRect();
  return [event.clientX - bounds.left, event.clientY - bounds.top];
}

viewport.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  viewport.setPointerCapture(event.pointerId);
  drag = { x: event.clientX, y: event.clientY, moved: false };
});
viewport.addEventListener("pointermove", (event) => {
  const [left, top] = within(event);
  if (drag) {
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    Object.assign(drag, { x: event.clientX, y: event.clientY, moved: true });
    viewport.classList.add("dragging");
    camera.panBy(dx, dy);
    return;
  }
  const box = boxAt(left, top);
  const cluster = box ? null : clusterAt(left, top);
  const hovered = box ? box.key : "", hoveredCluster = cluster ? cluster.path : "";
  if (hovered === view.hovered && hoveredCluster === view.hoveredCluster) return;
  Object.assign(view, { hovered, hoveredCluster });
  viewport.classList.toggle("over", Boolean(box || cluster));
  schedulePaint();
});
viewport.addEventListener("pointerup", (event) => {
  const clicked = drag && !drag.moved;
  drag = null;
  viewport.classList.remove("dragging");
  if (!clicked) return;
  const box = boxAt(...within(event));
  const cluster = box ? null : clusterAt(...within(event));
  if (cluster) toggleScope(cluster.path);
  else if (box && box.scope !== undefined && view.selected === box.key) toggleScope(box.scope);
  else select(box ? box.key : "");
});
viewport.addEventListener("pointercancel", () => { drag = null; viewport.classList.remove("dragging"); });
viewport.addEventListener("dblclick", (event) => {
  const box = boxAt(...within(event));
  if (box && box.scope !== undefined) toggleScope(box.scope);
});
viewport.addEventListener("wheel", (event) => {
  event.preventDefault();
  const pixels = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? camera.height : 1;
  if (event.shiftKey) { camera.panBy(-event.deltaY * pixels, -event.deltaX * pixels); return; }
  camera.zoomAt(...within(event), Math.exp(-Math.max(Math.min(event.deltaY * pixels, 240), -240) * (event.ctrlKey ? 0.01 : 0.0016)));
}, { passive: false });

// The box beside the selected one in its row, to the left or right.
function neighbourOf(box, direction) {
  const middle = box.y + box.height / 2;
  let best = null, least = Infinity;
  for (const other of view.scene.boxes) {
    const distance = (other.x + other.width / 2 - box.x - box.width / 2) * direction;
    if (other === box || distance <= 0 || other.y > middle || other.y + other.height < middle) continue;
    if (distance < least) { least = distance; best = other; }
  }
  return best;
}

// The nearest across of the boxes at the other ends of edges.
function linkedBox(box, direction) {
  const keys = view.scene.at.get(box.key)[direction > 0 ? "below" : "above"];
  const across = (key) => Math.abs(view.scene.byKey.get(key).x + view.scene.byKey.get(key).width / 2 - box.x - box.width / 2);
  const best = [...keys].sort((a, b) => across(a) - across(b))[0];
  return best === undefined ? null : view.scene.byKey.get(best);
}

const ARROWS = { ArrowUp: [linkedBox, -1], ArrowDown: [linkedBox, 1], ArrowLeft: [neighbourOf, -1], ArrowRight: [neighbourOf, 1] };

const PANS = { ArrowUp: [0, 60], ArrowDown: [0, -60], ArrowLeft: [60, 0], ArrowRight: [-60, 0] };

function moveBy(key) {
  const box = view.scene.byKey.get(view.selected);
  const [find, direction] = ARROWS[key];
  const next = box ? find(box, direction) : view.scene.boxes[0];
  if (next) select(next.key, { reveal: true });
}

// Tab goes from node to node while one is selected, and on to the rest of the page behind the last one (or after Escape).
function tabTo(event) {
  if (!view.selected) return;
  const place = view.scene.boxes.findIndex((box) => box.key === view.selected) + (event.shiftKey ? -1 : 1);
  if (place < 0 || place >= view.scene.boxes.length) return;
  event.preventDefault();
  select(view.scene.boxes[place].key, { reveal: true });
}

viewport.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in ARROWS && event.shiftKey) {
    camera.panBy(...PANS[event.key]);
  } else if (event.key in ARROWS) moveBy(event.key);
  else if (event.key === "Tab") { tabTo(event); return; }
  else if (event.key === "Enter" || event.key === " ") {
    const box = view.scene.byKey.get(view.selected);
    if (box && box.scope !== undefined) toggleScope(box.scope);
    else if (!box) moveBy("ArrowDown");
  } else return;
  event.preventDefault();
});

function zoomKey(key) {
  if (key === "+" || key === "=") camera.zoomAt(camera.width / 2, camera.height / 2, 1.25);
  else if (key === "-" || key === "_") camera.zoomAt(camera.width / 2, camera.height / 2, 0.8);
  else if (key === "0") fitAll();
  else return false;
  return true;
}
