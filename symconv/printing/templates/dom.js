// Elements, made so that every text stays text.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

// A heading with what stands below it; nothing where there is nothing.
function section(title, ...children) {
  const shown = children.flat().filter(Boolean);
  return shown.length ? [make("h3", {}, title), ...shown] : [];
}

function pairs(rows) {
  const list = make("dl");
  for (const [name, value] of rows) {
    if (value === "" || value === null || value === undefined) continue;
    list.append(make("dt", {}, name), make("dd", {}, value));
  }
  return list;
}

function linkTo(text, action) {
  return make("button", { type: "button", class: "link", onclick: action }, text);
}

function nodeLink(node) {
  const record = records[node];
  return linkTo(shortened(record.name || record.label || record.head, 60), () => showNode(node));
}

// So many of a long list, and a button for the rest.
function longList(rows, most = 60) {
  if (rows.length <= most) return rows;
  const more = make("button", { type: "button", onclick: () => more.replaceWith(...rows.slice(most)) }, `${rows.length - most} more`);
  return [...rows.slice(0, most), more];
}
