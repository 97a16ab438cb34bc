// Draws a scene onto the canvas: only what the window shows, and text only where it can be read.

const LEGIBLE = 4.2; // pixels: smaller letters are left out
const SMALL = 0.2; // pixels for a unit: below, corners and curves cannot be seen
const inks = {};

function readInks() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "paper", "line", "text", "soft", "faint", "accent", "made", "made-soft", "gone", "gone-soft"]) {
    inks[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const dark = document.documentElement.dataset.theme === "dark";
  inks.palette = { ...data.palette[dark ? "dark" : "light"], scope: dark ? ["#1d2735", "#8c9aad"] : ["#eef1f6", "#64748b"] };
  inks.edge = dark ? "#8191a6" : "#64748b";
  inks.weak = dark ? "#3d4b5e" : "#c3ccd8";
  inks.mark = inks.gone;
  inks.cluster = dark ? "rgb(148 163 184 / 7%)" : "rgb(71 85 105 / 5%)";
}

class Painter {
  constructor(canvas, camera) {
    Object.assign(this, { canvas, camera, context: canvas.getContext("2d"), ratio: 1 });
  }

  resize(width, height) {
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    Object.assign(this.camera, { width, height });
  }

  // state: {selected, hovered, found, traced}: keys of boxes, and the stretches to make stand out.
  draw(scene, state) {
    const { context, camera, ratio } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = inks.ground;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const scale = camera.scale * ratio;
    context.setTransform(scale, 0, 0, scale, (camera.width / 2 - camera.x * camera.scale) * ratio, (camera.height / 2 - camera.y * camera.scale) * ratio);
    const [left, top] = camera.toWorld(0, 0), [right, bottom] = camera.toWorld(camera.width, camera.height);
    const seen = (x, y, width, height) => x < right && x + width > left && y < bottom && y + height > top;
    for (const cluster of scene.clusters) if (seen(cluster.x, cluster.y, cluster.width, cluster.height)) this.drawCluster(cluster, state);
    this.drawStretches(scene, state, seen);
    for (const box of scene.boxes) if (seen(box.x - 6, box.y - 6, box.width + 12, box.height + 12)) this.drawBox(box, scene.graph, state);
  }

  drawCluster(cluster, state) {
    const { context, camera } = this;
    context.beginPath();
    context.roundRect(cluster.x, cluster.y, cluster.width, cluster.height, 12);
    context.fillStyle = inks.cluster;
    context.fill();
    context.strokeStyle = state.hoveredCluster === cluster.path ? inks.accent : inks.line;
    context.lineWidth = 1.4;
    context.stroke();
    if (13 * camera.scale < LEGIBLE) return;
    context.font = fontOf("cluster");
    context.textAlign = "left";
    context.fillStyle = state.hoveredCluster === cluster.path ? inks.accent : inks.soft;
    context.fillText(`▾ ${cluster.label}`, cluster.x + 11, cluster.y + 18);
  }

  drawStretches(scene, state, seen) {
    const { context, camera } = this;
    const groups = [[], [], []];
    scene.stretches.forEach((stretch, number) => {
      const x = Math.min(stretch.x1, stretch.x2), y = Math.min(stretch.y1, stretch.y2);
      if (!seen(x - 8, y - 8, Math.abs(stretch.x1 - stretch.x2) + 16, Math.abs(stretch.y1 - stretch.y2) + 16)) return;
      groups[state.traced.has(number) ? 2 : stretch.weak ? 0 : 1].push(stretch);
    });
    const widths = [1.1, 1.4, 2.4], colours = [inks.weak, inks.edge, inks.accent];
    groups.forEach((group, number) => {
      context.beginPath();
      const trace = camera.scale < SMALL ? traceStraight : traceStretch;
      for (const stretch of group) trace(context, stretch);
      context.lineWidth = Math.max(widths[number], (number === 2 ? 1.6 : 0.6) / camera.scale);
      context.strokeStyle = colours[number];
      context.stroke();
      if (camera.scale < 0.22) return;
      context.beginPath();
      for (const stretch of group) if (stretch.arrow) traceArrow(context, stretch);
      context.fillStyle = colours[number];
      context.fill();
    });
    if (9 * camera.scale >= LEGIBLE) this.drawPositions(groups.flat());
  }

  // Which input of its reader an edge is, where there are several.
  drawPositions(stretches) {
    const { context } = this;
    context.font = `9px ${FAMILY}`;
    context.textAlign = "left";
    context.fillStyle = inks.faint;
    for (const stretch of stretches) {
      if (stretch.positions && stretch.several) context.fillText(`i${stretch.positions.join(", ")}`, stretch.x2 + 5, stretch.y2 - 9);
    }
  }

  drawBox(box, graph, state) {
    const { context, camera } = this;
    const [fill, stroke] = inks.palette[box.category];
    if (camera.scale < SMALL && !boxState(box, graph) && state.selected !== box.key && !state.found.has(box.key)) {
      context.fillStyle = fill;
      context.fillRect(box.x, box.y, box.width, box.height);
      context.strokeStyle = state.hovered === box.key ? inks.accent : stroke;
      context.lineWidth = Math.min(1.4, 0.7 / camera.scale);
      context.strokeRect(box.x, box.y, box.width, box.height);
      return;
    }
    const radius = box.category === "input" ? Math.min(box.height / 2, 20) : box.category === "constant" ? 4 : 9;
    const outline = (grow) => { context.beginPath(); context.roundRect(box.x - grow, box.y - grow, box.width + 2 * grow, box.height + 2 * grow, radius + grow); };
    const state_ = boxState(box, graph);
    if (state_) {
      outline(4);
      context.fillStyle = inks[`${state_}-soft`];
      context.fill();
      context.lineWidth = Math.max(2, 1.4 / camera.scale);
      context.strokeStyle = inks[state_];
      context.setLineDash(state_ === "gone" ? [6, 4] : []);
      context.stroke();
      context.setLineDash([]);
    }
    if (state.selected === box.key || state.found.has(box.key)) {
      outline(state.selected === box.key ? 5 : 3);
      context.lineWidth = Math.max(3, 2 / camera.scale);
      context.strokeStyle = inks.accent;
      context.stroke();
    }
    outline(0);
    context.fillStyle = fill;
    context.fill();
    const record = box.node === undefined ? null : records[box.node];
    const isResult = record && graph.phase.outputs[box.node];
    context.strokeStyle = state.hovered === box.key ? inks.accent : stroke;
    context.lineWidth = isResult ? 3.2 : 1.4;
    context.setLineDash(record && record.how === "view" ? [5, 3] : []);
    context.stroke();
    context.setLineDash([]);
    if (box.scope !== undefined) { outline(-4); context.lineWidth = 0.8; context.stroke(); }
    if (11 * camera.scale >= LEGIBLE) this.drawLines(box);
  }

  drawLines(box) {
    const { context } = this;
    const colours = { head: inks.text, detail: inks.soft, name: inks.text, type: inks.soft, how: inks.faint, mark: inks.mark };
    context.textAlign = "center";
    let y = box.y + PAD_Y;
    for (const { style, text } of box.lines) {
      const size = FONTS[style][0];
      y += size * LINE;
      context.font = fontOf(style);
      context.fillStyle = colours[style];
      context.fillText(text, box.x + box.width / 2, y - size * 0.34);
    }
  }
}

// Whether a phase made a box, or the next one takes it away.
function boxState(box, graph) {
  const nodes = box.nodes || [box.node];
  if (nodes.some((node) => graph.made.has(node))) return "made";
  return nodes.some((node) => graph.gone.has(node)) ? "gone" : "";
}

function traceStraight(context, { x1, y1, x2, y2 }) {
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
}

function traceStretch(context, { x1, y1, x2, y2 }) {
  context.moveTo(x1, y1);
  if (Math.abs(x1 - x2) < 0.5) { context.lineTo(x2, y2); return; }
  const middle = (y1 + y2) / 2;
  context.bezierCurveTo(x1, middle, x2, middle, x2, y2);
}

function traceArrow(context, { x1, y1, x2, y2, arrow }) {
  const [x, y] = arrow > 0 ? [x2, y2] : [x1, y1];
  context.moveTo(x, y);
  context.lineTo(x - 3.6, y - 8 * arrow);
  context.lineTo(x + 3.6, y - 8 * arrow);
  context.closePath();
}
