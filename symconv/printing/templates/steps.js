// The steps of the program as a table; a row shows its node in the graph.

const stepsView = document.getElementById("view-steps");

function buildSteps() {
  if (!data.steps.length) {
    stepsView.replaceChildren(make("p", { class: "empty" }, "There is no program yet: call the function once, or prepare(shapes)."));
    return;
  }
  const timed = data.steps.some((step) => step.time);
  const slowest = Math.max(...data.steps.map((step) => (step.time ? step.time.share : 0)), 1e-9);
  const titles = ["Step", "What", "Implementation", "Result", timed ? "Time" : "Expected", timed ? "GFLOP/s" : "", "Written at"];
  const head = make("tr", {}, ...titles.map((title, number) => (title ? make("th", { scope: "col", class: [0, 4, 5].includes(number) ? "figure" : "" }, title) : null)));
  const rows = data.steps.map((step) => stepRow(step, timed, slowest));
  stepsView.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

function stepRow(step, timed, slowest) {
  const places = step.node >= 0 ? (records[step.node].places || []).map(placeText) : [];
  const chosen = (step.candidates || []).find((candidate) => candidate.chosen);
  const time = step.time ? secondsText(step.time.each) : chosen && chosen.seconds ? secondsText(chosen.seconds) : "";
  const bar = step.time && step.time.share > 0.002 ? make("span", { class: "bar" }) : null;
  if (bar) bar.style.width = `${Math.max((100 * step.time.share) / slowest, 1)}%`;
  const what = step.problem || step.what;
  return make("tr", { id: `step-${step.number}` }, make("td", { class: "figure" }, String(step.number)),
    make("td", {}, step.node >= 0 ? linkTo(shortened(what, 110), () => { setPhase(data.phases.length - 1); showNode(step.node); }) : what, step.prepared ? make("small", { class: "quiet" }, " when state changes") : null),
    make("td", {}, step.reference ? "NumPy reference" : step.how), make("td", { class: "code" }, step.writes.join(", ")),
    make("td", { class: "figure" }, time, bar), timed ? make("td", { class: "figure" }, step.time && step.time.gflops ? step.time.gflops.toFixed(1) : "") : null,
    make("td", {}, [...new Set(places)].join(", ")));
}
