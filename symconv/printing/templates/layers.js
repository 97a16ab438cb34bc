// Which layer every item of a drawing stands in, and in which order: few crossings, short edges.
// An edge over several layers passes each of them in a slot of its own; all edges of one source (and port) share their slots.

const SWEEPS = 12;
const COUNTED_LINKS = 20000;

// items: [{width, height, pin}], edges: [{source, target, port}] with source < target.
function makeLayers(items, edges) {
  const ranks = rankItems(items, edges);
  const { layerOf, links, paths } = withSlots(ranks, edges);
  const order = [];
  layerOf.forEach((layer, item) => { (order[layer] ||= []).push(item); });
  for (let layer = 0; layer < order.length; layer++) order[layer] ||= [];
  return { order: bestOrder(order, layerOf.length, links), links, layerOf, paths };
}

// Longest path from a source; then every box moves down as long as that shortens more edges than it lengthens.
// Pinned items are the ports of a scope: its first or last layer.
function rankItems(items, edges) {
  const below = items.map(() => new Set());
  const above = items.map(() => new Set());
  for (const { source, target } of edges) { below[source].add(target); above[target].add(source); }
  const least = items.some((item) => item.pin === "top") ? 1 : 0;
  const ranks = items.map((item) => (item.pin === "top" ? 0 : least));
  items.forEach((item, target) => {
    if (item.pin !== "top") for (const source of above[target]) ranks[target] = Math.max(ranks[target], ranks[source] + 1);
  });
  const last = Math.max(0, ...items.map((item, number) => (item.pin === "bottom" ? 0 : ranks[number]))) + 1;
  items.forEach((item, number) => { if (item.pin === "bottom") ranks[number] = last; });
  const light = items.map((_, number) => !above[number].size || ![...above[number]].some((each) => above[each].size));
  for (let number = items.length - 1; number >= 0; number--) {
    if (below[number].size && !items[number].pin) lowerItem(number, ranks, above, below, light);
  }
  return ranks;
}

function lowerItem(number, ranks, above, below, light) {
  let lowest = Infinity;
  for (const reader of below[number]) lowest = Math.min(lowest, ranks[reader] - 1);
  for (const source of above[number]) {
    if (light[source] && below[source].size === 1) continue;
    let reach = -1;
    for (const other of below[source]) if (other !== number) reach = Math.max(reach, ranks[other]);
    lowest = Math.min(lowest, reach < 0 ? ranks[number] : reach);
  }
  ranks[number] = Math.max(ranks[number], lowest);
}

// links: [{upper, lower, start}] for each stretch of an edge, `start` the edge whose port it leaves from; paths: the links of every edge.
function withSlots(ranks, edges) {
  const layerOf = [...ranks];
  const links = [];
  const chains = new Map();
  const paths = edges.map(() => []);
  const inOrder = edges.map((_, number) => number).sort((a, b) => edges[a].source - edges[b].source || edges[a].target - edges[b].target);
  for (const number of inOrder) {
    const { source, target, port } = edges[number];
    const key = `${source} ${port || ""}`;
    if (!chains.has(key)) chains.set(key, { items: [source], links: [] });
    const chain = chains.get(key);
    while (ranks[source] + chain.items.length < ranks[target]) {
      layerOf.push(ranks[source] + chain.items.length);
      chain.links.push(links.length);
      links.push({ upper: chain.items.at(-1), lower: layerOf.length - 1, start: number });
      chain.items.push(layerOf.length - 1);
    }
    const passed = Math.max(ranks[target] - ranks[source] - 1, 0);
    paths[number] = [...chain.links.slice(0, passed), links.length];
    links.push({ upper: chain.items[passed], lower: target, start: number, end: number });
  }
  return { layerOf, links, paths };
}

function neighbours(count, links) {
  const above = Array.from({ length: count }, () => []);
  const below = Array.from({ length: count }, () => []);
  for (const { upper, lower } of links) { above[lower].push(upper); below[upper].push(lower); }
  return { above, below };
}

// Layers sorted by the mean position of neighbours, down and up in turn; the order with fewest crossings is kept.
function bestOrder(order, count, links) {
  const { above, below } = neighbours(count, links);
  let best = order.map((layer) => [...layer]);
  let fewest = Infinity;
  const current = order.map((layer) => [...layer]);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep++) {
    const downwards = sweep % 2 === 0;
    sortLayers(current, downwards ? above : below, downwards);
    const crossings = links.length <= COUNTED_LINKS ? countCrossings(current, below) : SWEEPS - sweep;
    if (crossings < fewest) { fewest = crossings; best = current.map((layer) => [...layer]); }
  }
  return best;
}

function sortLayers(order, fixed, downwards) {
  let positions = new Map();
  for (const layer of downwards ? order : [...order].reverse()) {
    const wanted = new Map(layer.map((item, place) => {
      const found = fixed[item].map((each) => positions.get(each)).filter((each) => each !== undefined);
      return [item, found.length ? found.reduce((sum, each) => sum + each, 0) / found.length : place];
    }));
    layer.sort((a, b) => wanted.get(a) - wanted.get(b));
    positions = new Map(layer.map((item, place) => [item, place]));
  }
}

// Crossings between neighbouring layers, counted with a tree of sums (Barth, Jünger and Mutzel 2002).
function countCrossings(order, below) {
  let total = 0;
  for (let layer = 0; layer + 1 < order.length; layer++) {
    const places = new Map(order[layer + 1].map((item, place) => [item, place]));
    let first = 1;
    while (first < order[layer + 1].length) first *= 2;
    const tree = new Int32Array(2 * first);
    for (const item of order[layer]) {
      for (const place of below[item].map((each) => places.get(each)).sort((a, b) => a - b)) {
        let index = place + first;
        tree[index]++;
        for (; index > 1; index >>= 1) {
          if (index % 2 === 0) total += tree[index + 1];
          tree[index >> 1]++;
        }
      }
    }
  }
  return total;
}
