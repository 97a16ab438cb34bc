// Search: by name, operation, type and file:line; the hits as a list, Enter goes to one.

const search = document.getElementById("search");
const hits = document.getElementById("hits");
let chosen = 0;
const MOST_HITS = 50;

// Nodes of the phase that have every word, those whose name or operation has the whole text first.
function findNodes(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const whole = words.join(" ");
  const found = phaseGraph(view.phase).phase.nodes.filter((node) => words.every((word) => searchText(node).includes(word)));
  const rank = (node) => (records[node].name || records[node].head).toLowerCase() === whole ? 0 : `${records[node].name || ""} ${records[node].head}`.toLowerCase().includes(whole) ? 1 : 2;
  return found.sort((a, b) => rank(a) - rank(b) || a - b);
}

function showHits() {
  const found = findNodes(search.value);
  chosen = 0;
  view.found = new Set(found.map((node) => view.scene.boxOf.get(node).key));
  const rows = found.slice(0, MOST_HITS).map((node, number) => {
    const record = records[node];
    const place = (record.places || []).length ? placeText(record.places[0]) : "";
    return make("li", { role: "option", id: `hit-${number}`, "aria-selected": String(!number), onmousedown: (event) => { event.preventDefault(); takeHit(node); } },
      make("b", {}, record.name || record.head), make("span", {}, place), make("span", {}, [record.name ? record.head : "", record.type].filter(Boolean).join(" · ")),
      make("span", {}, record.home));
  });
  if (found.length > MOST_HITS) rows.push(make("p", {}, `${found.length - MOST_HITS} more are marked in the graph`));
  if (search.value.trim() && !found.length) rows.push(make("p", {}, "no node of this phase has it"));
  hits.replaceChildren(...rows);
  setHitsShown(rows.length > 0);
  hits.found = found.slice(0, MOST_HITS);
  schedulePaint();
}

function setHitsShown(shown) {
  hits.hidden = !shown;
  search.setAttribute("aria-expanded", String(shown));
  if (shown && hits.querySelector("li")) search.setAttribute("aria-activedescendant", `hit-${chosen}`); else search.removeAttribute("aria-activedescendant");
}

function takeHit(node) {
  setHitsShown(false);
  showNode(node);
  viewport.focus({ preventScroll: true, focusVisible: true });
}

function moveHit(by) {
  const rows = [...hits.querySelectorAll("li")];
  if (!rows.length) return;
  rows[chosen].setAttribute("aria-selected", "false");
  chosen = (chosen + by + rows.length) % rows.length;
  rows[chosen].setAttribute("aria-selected", "true");
  rows[chosen].scrollIntoView({ block: "nearest" });
  setHitsShown(true);
}

search.addEventListener("input", showHits);
search.addEventListener("focus", () => { if (search.value) showHits(); });
search.addEventListener("blur", () => setHitsShown(false));
search.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") moveHit(event.key === "ArrowDown" ? 1 : -1);
  else if (event.key === "Enter" && hits.found && hits.found.length) takeHit(hits.found[chosen]);
  else if (event.key === "Escape") {
    search.value = "";
    showHits();
    viewport.focus({ preventScroll: true });
  } else return;
  event.preventDefault();
  event.stopPropagation();
});
