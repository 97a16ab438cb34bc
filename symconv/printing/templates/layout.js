// Where the items and edges of one level of a drawing go: layers from top to bottom, boxes near what they are linked to.

const BOX_GAP = 22, SLOT_GAP = 14, LAYER_GAP = 36, PORT_GAP = 22, STRAIGHT_FROM = 24;
const PLACING_SWEEPS = 24, MANY_ITEMS = 5000, WEAK_PULL = 0.02, PULLS = [1, 2, 8];

// items: [{width, height, pin, weak, ports}], edges: [{source, target, port, arrival}] with source < target; `ports` has the
// places, from the left, where edges leave and reach a scope that is drawn open. Gives centres, stretches, paths, width, height.
function makeLayout(items, edges) {
  const layers = makeLayers(items, edges);
  const widths = [...items.map((item) => item.width), ...Array(layers.layerOf.length - items.length).fill(0)];
  const xs = placeAcross(layers, widths, items);
  const { tops, bottoms } = placeDown(layers, items);
  const left = Math.min(0, ...xs.map((x, item) => x - widths[item] / 2));
  const right = Math.max(...xs.map((x, item) => x + widths[item] / 2), 0);
  const centres = items.map((item, number) => {
    const layer = layers.layerOf[number];
    const y = item.pin === "top" ? tops[layer] : item.pin === "bottom" ? bottoms[layer] : (tops[layer] + bottoms[layer]) / 2;
    return { x: xs[number] - left, y };
  });
  const stretches = drawLinks(layers, items, edges, xs.map((x) => x - left), centres, tops, bottoms);
  return { centres, ...stretches, width: right - left, height: bottoms.at(-1) || 0 };
}

// Top and bottom of every layer; the gap grows with the links that cross it.
function placeDown(layers, items) {
  const tops = [], bottoms = [];
  let top = 0;
  for (const layer of layers.order) {
    const height = Math.max(0, ...layer.filter((item) => item < items.length).map((item) => items[item].height));
    tops.push(top);
    bottoms.push(top + height);
    const beside = [layer, layers.order[tops.length] || []];
    top += height + (beside.some((each) => each.length && each.every((item) => items[item]?.pin)) ? PORT_GAP : LAYER_GAP + Math.min(layer.length * 0.6, 20));
  }
  return { tops, bottoms };
}

// Centres from left to right: every layer in turn as near as it can be to the weighted mean of its neighbours.
function placeAcross(layers, widths, items) {
  const { above, below } = neighbours(widths.length, layers.links);
  const xs = Array(widths.length).fill(0);
  for (const layer of layers.order) {
    let x = 0;
    for (const item of layer) { xs[item] = x + widths[item] / 2; x += widths[item] + BOX_GAP; }
  }
  const isSlot = (item) => item >= items.length;
  const isWeak = (item) => !isSlot(item) && items[item].weak;
  const sweeps = widths.length < MANY_ITEMS ? PLACING_SWEEPS : PLACING_SWEEPS / 4;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const downwards = sweep % 2 === 0;
    for (const layer of downwards ? layers.order : [...layers.order].reverse()) {
      const wanted = [], weights = [], distances = [];
      layer.forEach((item, place) => {
        const near = sweep >= sweeps - 4 ? [...above[item], ...below[item]] : downwards ? above[item] : below[item];
        let total = 0, pulled = 0;
        for (const each of near) {
          const pull = isWeak(each) ? WEAK_PULL : PULLS[isSlot(item) + isSlot(each)];
          total += pull;
          pulled += pull * xs[each];
        }
        wanted.push(near.length ? pulled / total : xs[item]);
        weights.push(isWeak(item) ? WEAK_PULL : total || WEAK_PULL);
        const before = layer[place - 1];
        if (place) distances.push((widths[before] + widths[item]) / 2 + (isSlot(before) || isSlot(item) ? SLOT_GAP : BOX_GAP));
      });
      spread(wanted, weights, distances).forEach((x, place) => { xs[layer[place]] = x; });
    }
  }
  return xs;
}

// Positions nearest to the wanted ones (weighted squares) that keep their order and the least distances: pool adjacent violators.
function spread(wanted, weights, distances) {
  const offsets = [0];
  for (const distance of distances) offsets.push(offsets.at(-1) + distance);
  const blocks = [];
  wanted.forEach((want, place) => {
    blocks.push([want - offsets[place], weights[place], 1]);
    while (blocks.length > 1 && blocks.at(-2)[0] > blocks.at(-1)[0]) {
      const [value, weight, count] = blocks.pop();
      const last = blocks.at(-1);
      last[0] = (last[0] * last[1] + value * weight) / (last[1] + weight);
      last[1] += weight;
      last[2] += count;
    }
  });
  return blocks.flatMap(([value, , count]) => Array(count).fill(value)).map((value, place) => value + offsets[place]);
}

// Every link from the bottom of the one to the top of the other, and straight through the layers passed.  In a layer much higher
// than the box it goes straight too, so that it crosses no neighbour.
function drawLinks(layers, items, edges, xs, centres, tops, bottoms) {
  const arrivals = arrivalOffsets(layers, items, edges, xs);
  const stretches = [];
  const ofLink = layers.links.map(({ upper, lower, start, end }, number) => {
    const numbers = [];
    const add = (x1, y1, x2, y2) => { numbers.push(stretches.length); stretches.push({ x1, y1, x2, y2, edge: start }); };
    const left = layers.layerOf[upper], reached = layers.layerOf[lower];
    const isBox = upper < items.length;
    const x = xs[upper] + (isBox ? edges[start].leaving || 0 : 0);
    let y = isBox ? centres[upper].y + items[upper].height / 2 : bottoms[left];
    if (bottoms[left] - y > STRAIGHT_FROM) { add(x, y, x, bottoms[left]); y = bottoms[left]; }
    if (lower < items.length) {
      const endX = xs[lower] + arrivals[number], endY = centres[lower].y - items[lower].height / 2;
      const top = endY - tops[reached] > STRAIGHT_FROM ? tops[reached] : endY;
      add(x, y, endX, top);
      if (top < endY) add(endX, top, endX, endY);
      stretches.at(-1).end = end;
    } else {
      add(x, y, xs[lower], tops[reached]);
      if (bottoms[reached] > tops[reached]) add(xs[lower], tops[reached], xs[lower], bottoms[reached]);
    }
    return numbers;
  });
  return { stretches, paths: layers.paths.map((path) => path.flatMap((link) => ofLink[link])) };
}

// How far right of the middle each link arrives: at the port where there is one, else side by side in the order they come from.
function arrivalOffsets(layers, items, edges, xs) {
  const offsets = layers.links.map(() => 0);
  const arriving = new Map();
  layers.links.forEach(({ lower, end }, number) => {
    if (end === undefined) return;
    if (edges[end].arriving !== undefined) { offsets[number] = edges[end].arriving; return; }
    if (!arriving.has(lower)) arriving.set(lower, []);
    arriving.get(lower).push(number);
  });
  for (const [item, numbers] of arriving) {
    numbers.sort((a, b) => xs[layers.links[a].upper] - xs[layers.links[b].upper]);
    const step = Math.min(22, (items[item].width * 0.7) / Math.max(numbers.length - 1, 1));
    numbers.forEach((number, place) => { offsets[number] = (place - (numbers.length - 1) / 2) * step; });
  }
  return offsets;
}
