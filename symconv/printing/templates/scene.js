// The drawing of a phase: name scopes as boxes in boxes, each level laid out by itself; edges pass the border of an open scope
// at ports.  Every value has one port where it enters or leaves, however many nodes read it.

const SCOPE_PAD = 18, SCOPE_HEAD = 26;

// The tree of scopes of a phase; a scope with one node counts as its parent.
function scopeTree(graph) {
  const root = { path: "", label: "", parent: null, depth: 0, nodes: [], inner: new Map() };
  const homes = new Map();
  const byPath = new Map([["", root]]);
  const counts = new Map();
  for (const node of graph.phase.nodes) for (const path of prefixes(records[node].home)) counts.set(path, (counts.get(path) || 0) + 1);
  for (const node of graph.phase.nodes) {
    let scope = root;
    root.nodes.push(node);
    for (const path of prefixes(records[node].home)) {
      if (counts.get(path) < 2) break;
      if (!byPath.has(path)) {
        const made = { path, label: path.split("/").at(-1), parent: scope, depth: scope.depth + 1, nodes: [], inner: new Map() };
        byPath.set(path, made);
        scope.inner.set(path, made);
      }
      scope = byPath.get(path);
      scope.nodes.push(node);
    }
    homes.set(node, scope);
  }
  return { root, homes, byPath, orders: ordersOf(graph, byPath) };
}

// Where things stand on the way from inputs to results: a node by the longest path to it, a scope by the mean of its operations.
// Ties are broken by the place in the phase, so that every edge between two things is clearly forward or back.
function ordersOf(graph, byPath) {
  const ranks = new Map();
  graph.phase.nodes.forEach((node, place) => {
    const inputs = records[node].inputs || [];
    ranks.set(node, inputs.reduce((most, [source]) => Math.max(most, Math.floor(ranks.get(source)) + 1), 0) + place / (graph.phase.nodes.length + 1));
  });
  const orders = new Map(ranks);
  for (const scope of byPath.values()) {
    const operations = scope.nodes.filter((node) => records[node].kind === "apply");
    const counted = operations.length ? operations : scope.nodes;
    orders.set(scope, counted.reduce((sum, node) => sum + ranks.get(node), 0) / Math.max(counted.length, 1));
  }
  return orders;
}

// Whether one item of a level stands behind another.
function isBehind(a, b) {
  return a.order === b.order ? a.key > b.key : a.order > b.order;
}

function prefixes(path) {
  if (!path) return [];
  const levels = path.split("/");
  return levels.map((_, count) => levels.slice(0, count + 1).join("/"));
}

// The drawing with some scopes closed: boxes, clusters (open scopes), stretches of edges, and for each box the stretches at it.
function makeScene(graph, closed) {
  const tree = scopeTree(graph);
  const levels = new Map();
  const boxOf = new Map();
  levelOf(tree.root, levels);
  for (const node of graph.phase.nodes) {
    const chain = scopeChain(tree.homes.get(node));
    const shut = chain.find((scope) => closed.has(scope.path));
    const level = levelOf(shut ? shut.parent : tree.homes.get(node), levels);
    const key = shut ? `s${shut.path}` : `n${node}`;
    boxOf.set(node, { key, chain: scopeChain(shut ? shut.parent : tree.homes.get(node)) });
    if (!level.items.has(key)) level.items.set(key, { ...(shut ? scopeBox(shut) : nodeBox(graph, node)), order: shut ? tree.orders.get(shut) : tree.orders.get(node) });
    openAncestors(level, levels, tree);
  }
  const edges = joinedEdges(graph, boxOf, levels);
  const scene = { graph, tree, boxes: [], clusters: [], stretches: [], at: new Map(), boxOf, width: 0, height: 0 };
  const size = layLevel(levels.get(""), levels);
  placeLevel(levels.get(""), 0, 0, scene, levels);
  Object.assign(scene, { width: size.width, height: size.height });
  scene.boxes.sort((a, b) => a.y - b.y || a.x - b.x);
  indexEdges(scene, edges, levels);
  scene.byKey = new Map(scene.boxes.map((box) => [box.key, box]));
  return scene;
}

// The scopes around something, the outermost first, without the root.
function scopeChain(scope) {
  const chain = [];
  for (let each = scope; each && each.parent; each = each.parent) chain.unshift(each);
  return chain;
}

function levelOf(scope, levels) {
  if (!levels.has(scope.path)) levels.set(scope.path, { scope, items: new Map(), ports: new Map(), edges: new Map() });
  return levels.get(scope.path);
}

// Every open scope stands as an item in the level around it.
function openAncestors(level, levels, tree) {
  let scope = level.scope;
  while (scope.parent) {
    const outer = levelOf(scope.parent, levels);
    const key = `o${scope.path}`;
    if (!outer.items.has(key)) outer.items.set(key, { key, open: scope.path, order: tree.orders.get(scope) });
    scope = scope.parent;
  }
}

// The edges between boxes, each cut into its pieces in the levels it passes.
function joinedEdges(graph, boxOf, levels) {
  const edges = new Map();
  for (const node of graph.phase.nodes) {
    (records[node].inputs || []).forEach(([source], position) => {
      const from = boxOf.get(source), to = boxOf.get(node);
      if (from.key === to.key) return;
      const key = `${from.key} ${to.key}`;
      if (!edges.has(key)) edges.set(key, { from: from.key, to: to.key, pieces: cutEdge(from, to, levels), positions: [] });
      if (to.key[0] === "n") edges.get(key).positions.push(position);
    });
  }
  return [...edges.values()];
}

function cutEdge(from, to, levels) {
  let shared = 0;
  while (shared < from.chain.length && from.chain[shared] === to.chain[shared]) shared++;
  const common = levels.get(shared ? from.chain[shared - 1].path : "");
  const itemFrom = from.chain.length > shared ? `o${from.chain[shared].path}` : from.key;
  const itemTo = to.chain.length > shared ? `o${to.chain[shared].path}` : to.key;
  const back = isBehind(common.items.get(itemFrom), common.items.get(itemTo));
  const pieces = [];
  let current = { item: from.key };
  for (let depth = from.chain.length - 1; depth >= shared; depth--) {
    const level = levels.get(from.chain[depth].path);
    const port = addPort(level, from.key, "out", back ? "top" : "bottom");
    pieces.push(addPiece(level, current, { item: port }, back, from.key));
    current = { item: `o${from.chain[depth].path}`, port };
  }
  for (let depth = shared; depth <= to.chain.length; depth++) {
    const level = depth === shared ? common : levels.get(to.chain[depth - 1].path);
    const isLast = depth === to.chain.length;
    const port = isLast ? undefined : addPort(levels.get(to.chain[depth].path), from.key, "in", back ? "bottom" : "top");
    pieces.push(addPiece(level, current, isLast ? { item: to.key } : { item: `o${to.chain[depth].path}`, port }, back, from.key));
    if (!isLast) current = { item: port };
  }
  return pieces;
}

function addPort(level, source, way, side) {
  const key = `p${way} ${source} ${side}`;
  if (!level.ports.has(key)) level.ports.set(key, { key, source, width: 0, height: 0, pin: side });
  return key;
}

function addPiece(level, from, to, back, source) {
  const key = `${from.item} ${from.port || ""} > ${to.item} ${to.port || ""}`;
  if (!level.edges.has(key)) level.edges.set(key, { from, to, back, source });
  return { level: level.scope.path, key };
}

// Lay out a level and, before it, the open scopes in it; gives the size of its contents.
function layLevel(level, levels) {
  for (const item of level.items.values()) {
    if (item.open === undefined) continue;
    const size = layLevel(levels.get(item.open), levels);
    item.width = Math.max(size.width, textWidth("cluster", levels.get(item.open).scope.label) + 30) + 2 * SCOPE_PAD;
    item.height = size.height + SCOPE_HEAD + SCOPE_PAD;
    item.inset = (item.width - size.width) / 2;
  }
  const pinned = (side) => [...level.ports.values()].filter((port) => port.pin === side);
  const boxes = [...level.items.values()].sort((a, b) => (isBehind(a, b) ? 1 : -1));
  level.list = [...pinned("top"), ...boxes, ...pinned("bottom")];
  const numbers = new Map(level.list.map((item, number) => [item.key, number]));
  level.edgeList = [...level.edges.values()].map((edge) => {
    const ends = edge.back ? [edge.to, edge.from] : [edge.from, edge.to];
    const [leaving, arriving] = ends.map((end) => portOffset(level, levels, end));
    return { ...edge, source: numbers.get(ends[0].item), target: numbers.get(ends[1].item), port: ends[0].port, leaving, arriving, value: edge.source };
  });
  [...level.edges.values()].forEach((edge, number) => { edge.number = number; });
  level.layout = makeLayout(level.list, level.edgeList);
  level.portPlaces = new Map(level.list.map((item, number) => [item.key, level.layout.centres[number]]));
  return level.layout;
}

// How far right of its middle an open scope's port is; undefined where the end is a box.
function portOffset(level, levels, end) {
  if (!end.port) return undefined;
  const item = level.items.get(end.item);
  return item.inset + levels.get(item.open).portPlaces.get(end.port).x - item.width / 2;
}

// Put a level and what is in it into the drawing.
function placeLevel(level, left, top, scene, levels) {
  level.offset = scene.stretches.length;
  for (const stretch of level.layout.stretches) {
    const edge = level.edgeList[stretch.edge];
    scene.stretches.push({ x1: stretch.x1 + left, y1: stretch.y1 + top, x2: stretch.x2 + left, y2: stretch.y2 + top, source: edge.value, arrow: 0 });
  }
  level.list.forEach((item, number) => {
    const centre = level.layout.centres[number];
    const x = left + centre.x - item.width / 2, y = top + centre.y - item.height / 2;
    if (item.open !== undefined) {
      const inner = levels.get(item.open);
      scene.clusters.push({ path: item.open, label: inner.scope.label, depth: inner.scope.depth, x, y, width: item.width, height: item.height });
      placeLevel(inner, x + item.inset, y + SCOPE_HEAD, scene, levels);
      placePorts(inner, x + item.inset, { y, bottom: y + item.height }, scene);
    } else if (!item.pin) {
      scene.boxes.push({ ...item, x, y });
    }
  });
}

// From the border of an open scope to where its layout begins.
function placePorts(level, left, { y, bottom }, scene) {
  level.portStretches = new Map();
  for (const port of level.ports.values()) {
    const place = level.portPlaces.get(port.key);
    const x = left + place.x, inner = y + SCOPE_HEAD + place.y;
    level.portStretches.set(port.key, scene.stretches.length);
    const [y1, y2] = port.pin === "top" ? [y, inner] : [inner, bottom];
    scene.stretches.push({ x1: x, y1, x2: x, y2, source: port.source, arrow: 0 });
  }
}

// For every box the stretches of the edges that reach or leave it, and the boxes at their other ends.
function indexEdges(scene, edges, levels) {
  for (const box of scene.boxes) scene.at.set(box.key, { stretches: new Set(), above: [], below: [] });
  for (const edge of edges) {
    const parts = edge.pieces.map(({ level, key }) => {
      const laid = levels.get(level), piece = laid.edges.get(key);
      const ports = [piece.from.item, piece.to.item].map((item) => laid.portStretches?.get(item)).filter((number) => number !== undefined);
      return [...ports, ...laid.layout.paths[piece.number].map((number) => number + laid.offset)];
    });
    for (const end of [edge.from, edge.to]) parts.flat().forEach((number) => scene.at.get(end).stretches.add(number));
    scene.at.get(edge.from).below.push(edge.to);
    scene.at.get(edge.to).above.push(edge.from);
    const last = edge.pieces.at(-1);
    const level = levels.get(last.level), piece = level.edges.get(last.key);
    const path = level.layout.paths[piece.number], goesUp = piece.back;
    const arriving = scene.stretches[level.offset + (goesUp ? path[0] : path.at(-1))];
    arriving.arrow = goesUp ? -1 : 1;
    if (!goesUp && edge.positions.length) arriving.positions = edge.positions;
  }
}
