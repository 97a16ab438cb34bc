// The data of the page and what follows from it: the graph of each phase, readers, what a node was before and became.
const data = JSON.parse(document.getElementById("data").textContent);
const records = data.records;
const becomes = records.map(() => []);
records.forEach((record, number) => (record.was || []).forEach((before) => becomes[before].push(number)));

const phaseGraphs = new Map();

// The graph of a phase: its nodes in order, who reads each, and which of them the phase made or the next one takes away.
function phaseGraph(number) {
  if (phaseGraphs.has(number)) return phaseGraphs.get(number);
  const phase = data.phases[number];
  const inside = new Set(phase.nodes);
  const readers = new Map(phase.nodes.map((node) => [node, []]));
  for (const node of phase.nodes) {
    (records[node].inputs || []).forEach(([source], position) => readers.get(source).push([node, position]));
  }
  const made = new Set(phase.nodes.filter((node) => (records[node].by || [-1])[0] === number));
  const following = data.phases[number + 1];
  const gone = new Set();
  for (const node of following ? following.nodes : []) {
    const record = records[node];
    if (record.by && record.by[0] === number + 1) (record.was || []).forEach((before) => inside.has(before) && gone.add(before));
  }
  const graph = { number, phase, inside, readers, made, gone };
  phaseGraphs.set(number, graph);
  return graph;
}

// The node of another phase that a node was or became; -1 where there is none.
function nodeInPhase(node, number) {
  const { inside } = phaseGraph(number);
  const seen = new Set([node]);
  let level = [node];
  while (level.length && seen.size < 5000) {
    const found = level.find((each) => inside.has(each));
    if (found !== undefined) return found;
    level = level.flatMap((each) => [...becomes[each], ...(records[each].was || [])]).filter((each) => !seen.has(each) && seen.add(each));
  }
  return -1;
}

// Every application of a rule that led to a node, in order: [{phase, number, application}].
function historyOf(node) {
  const found = new Map();
  const seen = new Set([node]);
  const waiting = [node];
  while (waiting.length && seen.size < 2000) {
    const record = records[waiting.pop()];
    if (record.by) {
      const [phase, numbers] = record.by;
      for (const number of numbers) found.set(phase * 1e6 + number, { phase, number, application: data.phases[phase].applications[number] });
    }
    for (const before of record.was || []) if (!seen.has(before)) { seen.add(before); waiting.push(before); }
  }
  return [...found.keys()].sort((a, b) => a - b).map((key) => found.get(key));
}

function placeText(number) {
  const place = data.places[number];
  return `${place.file.split(/[\\/]/).pop()}:${place.line}`;
}

// What can be searched of a node, in lower case.
const searchTexts = new Map();
function searchText(node) {
  if (!searchTexts.has(node)) {
    const record = records[node];
    const parts = [record.name, record.label, record.head, ...(record.details || []), record.type, record.how, record.home,
      ...(record.places || []).flatMap((place) => [placeText(place), data.places[place].text])];
    searchTexts.set(node, parts.filter(Boolean).join("\n").toLowerCase());
  }
  return searchTexts.get(node);
}

function marksOf(graph, node) {
  const outputs = (graph.phase.outputs[node] || []).map((number) => `output ${number}`);
  return [...outputs, ...(graph.phase.marks[node] || [])];
}
