// The arena over time: a rectangle for each buffer, from the step that writes it first to the last that touches it.

const memoryView = document.getElementById("view-memory");
const hint = make("div", { id: "hint", role: "tooltip", hidden: "" });
document.body.append(hint);
const HUES = [212, 158, 36, 280, 346, 190, 96, 22, 255, 320];
const AXIS = 64, FOOT = 34, TOP = 14;

function buildMemory() {
  const memory = data.memory;
  if (!memory || !memory.slots.length) {
    memoryView.replaceChildren(make("p", { class: "empty" }, memory ? "The program needs no temporary memory." : "There is no program yet: call the function once, or prepare(shapes)."));
    return;
  }
  const canvas = make("canvas", { id: "timeline", tabindex: "0", role: "img", "aria-label": memoryText(memory) });
  const list = make("table", {}, make("thead", {}, make("tr", {}, ...["Buffer", "Offset", "Size", "Steps", "Holds"].map((title, number) => make("th", { scope: "col", class: number === 1 || number === 2 ? "figure" : "" }, title)))),
    make("tbody", {}, ...memory.slots.map((slot, number) => slotRow(slot, number))));
  memoryView.replaceChildren(make("p", {}, memoryText(memory)), canvas, make("h3", {}, " "), list);
  const timeline = { canvas, memory, over: -1 };
  canvas.addEventListener("pointermove", (event) => hoverSlot(timeline, event));
  canvas.addEventListener("pointerleave", () => { timeline.over = -1; hint.hidden = true; paintTimeline(timeline); });
  canvas.addEventListener("click", () => { const slot = memory.slots[timeline.over]; if (slot && slot.nodes.length) { hint.hidden = true; showNode(slot.nodes[0]); } });
  canvas.addEventListener("keydown", (event) => stepThroughSlots(timeline, event));
  memoryView.timeline = timeline;
}

function memoryText(memory) {
  return `Arena of ${bytesText(memory.arena)} for ${memory.slots.length} buffers over ${memory.steps} steps; no plan can need less than ${bytesText(memory.bound)}.`;
}

function slotRow(slot, number) {
  const holds = slot.contents.map((text, place) => make("p", {}, slot.nodes[place] !== undefined ? linkTo(text, () => showNode(slot.nodes[place])) : text));
  const row = make("tr", { id: `slot-${number}` }, make("td", {}, slot.storage), make("td", { class: "figure" }, bytesText(slot.offset)), make("td", { class: "figure" }, bytesText(slot.bytes)),
    make("td", {}, slot.first === slot.last ? String(slot.first) : `${slot.first} – ${slot.last}`), make("td", {}, ...holds));
  row.addEventListener("pointerenter", () => { memoryView.timeline.over = number; paintTimeline(memoryView.timeline); });
  return row;
}

// Rectangles in pixels.
function slotRectangle({ canvas, memory }, slot) {
  const width = canvas.clientWidth - AXIS - 14, height = canvas.clientHeight - FOOT - TOP;
  const column = width / memory.steps;
  return { x: AXIS + slot.first * column, width: (slot.last - slot.first + 1) * column,
    y: TOP + height * (1 - (slot.offset + slot.bytes) / memory.arena), height: (height * slot.bytes) / memory.arena };
}

function paintTimeline(timeline) {
  const { canvas, memory } = timeline;
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${Math.min(Math.max(window.innerHeight * 0.48, 240), 560)}px`;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  drawAxes(context, canvas, memory);
  const dark = document.documentElement.dataset.theme === "dark";
  memory.slots.forEach((slot, number) => {
    const { x, y, width, height } = slotRectangle(timeline, slot);
    const hue = HUES[number % HUES.length], over = timeline.over === number;
    context.fillStyle = dark ? `hsl(${hue} 45% ${over ? 42 : 30}%)` : `hsl(${hue} 70% ${over ? 78 : 88}%)`;
    context.strokeStyle = over ? inks.accent : dark ? `hsl(${hue} 55% 58%)` : `hsl(${hue} 50% 45%)`;
    context.lineWidth = over ? 2 : 1;
    context.fillRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), Math.max(height - 1, 1));
    context.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), Math.max(height - 1, 1));
    if (width > 60 && height > 14) drawSlotLabel(context, slot, x, y, width, height);
  });
}

function drawSlotLabel(context, slot, x, y, width, height) {
  context.save();
  context.beginPath();
  context.rect(x + 3, y, width - 6, height);
  context.clip();
  context.fillStyle = inks.text;
  context.font = `11px ${FAMILY}`;
  context.textAlign = "left";
  context.fillText(slot.contents[0] || slot.storage, x + 7, y + Math.min(height / 2 + 4, 16));
  context.restore();
}

function drawAxes(context, canvas, memory) {
  const width = canvas.clientWidth - AXIS - 14, height = canvas.clientHeight - FOOT - TOP;
  context.font = `11px ${FAMILY}`;
  context.fillStyle = inks.faint;
  context.strokeStyle = inks.line;
  context.lineWidth = 1;
  for (let part = 0; part <= 4; part++) {
    const y = Math.round(TOP + height * (1 - part / 4)) + 0.5;
    context.beginPath();
    context.moveTo(AXIS, y);
    context.lineTo(AXIS + width, y);
    context.stroke();
    context.textAlign = "right";
    context.fillText(bytesText(Math.round((memory.arena * part) / 4)), AXIS - 7, y + 4);
  }
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => (width / memory.steps) * step > 34) || 2000;
  context.textAlign = "center";
  for (let step = 0; step < memory.steps; step += every) context.fillText(String(step), AXIS + ((step + 0.5) * width) / memory.steps, TOP + height + 16);
  context.fillText("step", AXIS + width / 2, TOP + height + 30);
}

function hoverSlot(timeline, event) {
  const bounds = timeline.canvas.getBoundingClientRect();
  const left = event.clientX - bounds.left, top = event.clientY - bounds.top;
  timeline.over = timeline.memory.slots.findIndex((slot) => {
    const { x, y, width, height } = slotRectangle(timeline, slot);
    return left >= x && left <= x + width && top >= y && top <= y + height;
  });
  paintTimeline(timeline);
  showHint(timeline, event.clientX, event.clientY);
}

function showHint(timeline, left, top) {
  const slot = timeline.memory.slots[timeline.over];
  hint.hidden = !slot;
  if (!slot) return;
  hint.replaceChildren(...slotText(slot).map((text, number) => make(number ? "div" : "b", {}, text)));
  hint.style.left = `${Math.min(left + 14, window.innerWidth - 390)}px`;
  hint.style.top = `${Math.min(top + 14, window.innerHeight - 40 - 22 * slot.contents.length)}px`;
}

function slotText(slot) {
  const steps = slot.first === slot.last ? `step ${slot.first}` : `steps ${slot.first} to ${slot.last}`;
  return [slot.storage, `${bytesText(slot.bytes)} at ${bytesText(slot.offset)}, ${steps}`, ...slot.contents];
}

// Left and right go from buffer to buffer; Enter shows its node.
function stepThroughSlots(timeline, event) {
  const count = timeline.memory.slots.length;
  if (event.key === "ArrowRight" || event.key === "ArrowDown") timeline.over = (timeline.over + 1) % count;
  else if (event.key === "ArrowLeft" || event.key === "ArrowUp") timeline.over = (timeline.over - 1 + count) % count;
  else if (event.key === "Enter" && timeline.over >= 0) { timeline.canvas.click(); return; }
  else return;
  event.preventDefault();
  paintTimeline(timeline);
  const slot = timeline.memory.slots[timeline.over], place = slotRectangle(timeline, slot), bounds = timeline.canvas.getBoundingClientRect();
  showHint(timeline, bounds.left + place.x, bounds.top + place.y + place.height);
  announcer.textContent = slotText(slot).join(", ");
}
