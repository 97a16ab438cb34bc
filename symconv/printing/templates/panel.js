// The panel at the side: what is known of the selected node, or of the phase where none is selected.

const panel = document.getElementById("panel");

function showPanel(box) {
  panel.replaceChildren(...(box ? (box.scope !== undefined ? scopeParts(box) : nodeParts(box.node)) : phaseParts()).flat());
  panel.scrollTop = 0;
}

function nodeParts(node) {
  const record = records[node];
  const graph = view.scene.graph;
  const step = record.step === undefined ? null : data.steps[record.step];
  const chips = [...marksOf(graph, node).map((text) => make("span", { class: "chip" }, text))];
  if (graph.made.has(node)) chips.unshift(make("span", { class: "chip made" }, "made by this phase"));
  if (graph.gone.has(node)) chips.push(make("span", { class: "chip gone" }, "replaced in the next phase"));
  return [
    make("h2", {}, [record.head, record.kind === "apply" ? record.name : ""].filter(Boolean).join(" · ")),
    ...(record.details || []).map((text) => make("p", { class: "lead code" }, text)),
    make("p", {}, ...chips),
    pairs([["kind", record.kind === "apply" ? record.category : record.kind], ["type", make("span", { class: "code" }, record.type)],
      ["layout", record.layout], ["scope", (record.scopes || []).join(", ") || record.home]]),
    ...section("Written at", (record.places || []).map(placeCard)),
    ...(step ? stepParts(step, record) : record.how === "view" ? section("Runs", make("p", {}, "nothing: it only looks at the same memory with other strides")) : []),
    ...section("Inputs", linkRows(record.inputs || [], ([source, output], position) => [`i${position} `, nodeLink(source), outputText(source, output)])),
    ...section("Read by", linkRows(graph.readers.get(node) || [], ([reader, position]) => [nodeLink(reader), ` as i${position}`])),
    ...section("Rewrites that led here", longList(historyOf(node).map(applicationCard))),
    ...section("What became of it", becameParts(node)),
  ];
}

function linkRows(rows, parts) {
  return longList(rows.map((row, number) => make("p", {}, ...parts(row, number))));
}

function outputText(source, output) {
  const several = (records[source].type.match(/, (?=[a-z])/g) || []).length;
  return several ? ` .${output}` : "";
}

function placeCard(number) {
  const place = data.places[number];
  return make("div", { class: "card" }, make("small", { title: place.file }, placeText(number)), make("br"), make("code", {}, place.text));
}

function applicationCard({ phase, application }) {
  return make("div", { class: "card" }, make("b", {}, application.rule), make("small", {}, ` in ${data.phases[phase].name}`), make("br"),
    make("code", {}, application.before), make("span", { class: "arrow" }, " → "), make("code", {}, application.after));
}

// The applications of the next phase that take a node away.
function becameParts(node) {
  const following = data.phases[view.phase + 1];
  if (!following || !view.scene.graph.gone.has(node)) return [];
  const next = phaseGraph(view.phase + 1);
  return becomes[node].filter((each) => next.inside.has(each))
    .map((each) => make("p", {}, `in ${following.name}: `, linkTo(records[each].label || records[each].head, () => { setPhase(view.phase + 1); showNode(each); })));
}

function stepParts(step, record) {
  const rows = [["step", String(step.number)], ["implementation", step.how], ["kernel", step.kernel && make("span", { class: "code" }, step.kernel)],
    ["problem", step.problem && make("span", { class: "code" }, step.problem)], ["moves", bytesText(step.bytes)],
    ["runs", step.prepared ? "when the state that it reads changes" : ""]];
  return [
    ...section("Runs", pairs(rows), step.reference && make("p", { class: "refusal" }, `the NumPy reference: ${step.reference}`)),
    ...section("Time", step.time && pairs(timeRows(step.time))),
    ...section("Fused into it", (step.fused || []).map((text) => make("p", {}, text))),
    ...section("Not fused", (step.unfused || []).map((text) => make("p", { class: "refusal" }, text))),
    ...section("Candidates", (step.candidates || []).map(candidateCard), step.unmeasured && make("p", { class: "quiet" }, `not measured: ${step.unmeasured}`),
      step.cudnn && make("p", { class: "quiet" }, `cuDNN: no, ${step.cudnn}`)),
    ...section("Notes", (step.notes || []).map((text) => make("p", {}, text))),
    ...section("Generated source", sourcePart(step)),
  ];
}

function timeRows(time) {
  return [["one run", secondsText(time.each)], ["share", `${(time.share * 100).toFixed(1)} % of ${time.runs} runs`],
    ["speed", time.gflops ? `${time.gflops.toFixed(1)} GFLOP/s, ${time.gbytes.toFixed(1)} GB/s` : `${time.gbytes.toFixed(1)} GB/s`],
    ["roofline", time.roofline === null ? "" : `${(time.roofline * 100).toFixed(0)} % of what the machine allows`]];
}

function candidateCard(candidate) {
  const figures = [candidate.seconds && `${secondsText(candidate.seconds)} ${candidate.measured ? "measured" : "expected"}`,
    candidate.gflops && `${candidate.gflops.toFixed(1)} GFLOP/s`, candidate.share && `${(candidate.share * 100).toFixed(0)} % of the peak`];
  return make("div", { class: candidate.chosen ? "card chosen" : "card" }, make("b", {}, candidate.name), candidate.chosen ? make("small", {}, " chosen") : null,
    make("br"), candidate.refusal === null ? make("span", {}, figures.filter(Boolean).join(", ") || "the only one: not estimated")
      : make("span", { class: "refusal" }, candidate.refusal));
}

function sourcePart(step) {
  const source = data.sources[step.kernel];
  if (!source) return null;
  const fold = make("details", {}, make("summary", {}, `${step.kernel}, ${source.split("\n").length} lines`));
  fold.addEventListener("toggle", () => { if (fold.open && fold.children.length === 1) fold.append(highlighted(source)); });
  return fold;
}

function scopeParts(box) {
  const kinds = new Map();
  for (const node of box.nodes) kinds.set(records[node].head, (kinds.get(records[node].head) || 0) + 1);
  const rows = [...kinds].sort((a, b) => b[1] - a[1]).map(([head, count]) => make("p", {}, `${count} × ${head}`));
  return [make("h2", {}, `Scope ${box.scope}`), make("p", { class: "lead" }, `${box.nodes.length} nodes`),
    make("p", {}, make("button", { type: "button", onclick: () => toggleScope(box.scope) }, "Open")), ...section("Inside", longList(rows))];
}

function phaseParts() {
  const { phase } = view.scene.graph;
  const counts = new Map();
  for (const { rule } of phase.applications || []) counts.set(rule, (counts.get(rule) || 0) + 1);
  const summary = [...counts].sort((a, b) => b[1] - a[1]).map(([rule, count]) => make("span", { class: "chip" }, `${rule} ${count}`));
  const applications = (phase.applications || []).map((application) => {
    const card = applicationCard({ phase: view.phase, application });
    const shown = application.nodes.find((node) => view.scene.graph.inside.has(node));
    if (shown !== undefined) card.append(make("br"), linkTo("show", () => showNode(shown)));
    return card;
  });
  const declined = (phase.declined || []).map(({ rule, text, reason, node }) => make("div", { class: "card" }, make("b", {}, rule), make("br"),
    make("code", {}, text), make("br"), make("span", { class: "refusal" }, reason), node >= 0 && view.scene.graph.inside.has(node) ? make("br") : null,
    node >= 0 && view.scene.graph.inside.has(node) ? linkTo("show", () => showNode(node)) : null));
  return [make("h2", {}, phase.name), make("p", { class: "lead" }, phase.about), pairs([["nodes", String(phase.nodes.length)]]),
    ...section("Rewrites", summary.length ? make("p", {}, ...summary) : phase.applications ? make("p", { class: "quiet" }, "none applied here") : null),
    ...section("Each of them", longList(applications)), ...section("Recognised and left alone", longList(declined)),
    make("p", { class: "quiet" }, "Select a node to see more of it.")];
}
