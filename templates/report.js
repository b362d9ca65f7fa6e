// What every page has beyond its text: links that unfold what they lead to, keys, and paper. Every page is complete without it.
"use strict";

const counterproof = { keys: new Map(), sheet: [] };

// Single keys, by what each does, and what the sheet of keys says of them.
counterproof.bind = function (says, keys) {
  for (const [key, does] of Object.entries(keys)) counterproof.keys.set(key, does);
  counterproof.sheet.push([Object.keys(keys), says]);
};

// A link to a step within a folded stretch unfolds it. A fragment may also be a filter's state, which is no element's id.
counterproof.unfold = function () {
  let id = location.hash.slice(1);
  try { id = decodeURIComponent(id); } catch { return; }
  const target = id && document.getElementById(id);
  if (!target) return;
  let folded = false;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    folded = folded || !fold.open;
    fold.open = true;
  }
  if (folded) target.scrollIntoView();
};
addEventListener("hashchange", counterproof.unfold);
counterproof.unfold();

// Paper cannot be unfolded. What a reader had folded is folded again afterwards.
{
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    for (const fold of unfolded) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of unfolded) fold.open = false;
  });
}

// Keys that follow a link of the page, where it has one.
for (const [key, rel, says] of [["[", "prev", "previous"], ["]", "next", "next"], ["u", "up", "up to all cases"]]) {
  const link = document.querySelector(`a[rel=${rel}]`);
  if (link) counterproof.bind(says, { [key]: () => link.click() });
}

// Moves the focus among elements of a kind, from where it is.
counterproof.step = function (selector, by) {
  const seen = [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
  if (seen.length === 0) return;
  const here = document.activeElement;
  let place = seen.indexOf(here);
  if (place < 0) {
    const isAfter = (element) => here && here !== document.body && (here.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
    const after = seen.findIndex(isAfter);
    place = by > 0 ? (after < 0 ? -1 : after - 1) : (after < 0 ? seen.length : after);
  }
  seen[Math.min(Math.max(place + by, 0), seen.length - 1)].focus();
};

if (document.querySelector(".groups, .cases")) {
  const rows = ".groups > li > details > summary, .groups .case[href], .cases .case[href]";
  counterproof.bind("next row, row before; Enter opens it", { j: () => counterproof.step(rows, 1), k: () => counterproof.step(rows, -1) });
}

// The sheet of keys, and the choice to have none: speech input types letters that nobody meant as keys. It is there where
// a key does something, and is made when all scripts of the page have said what theirs do.
addEventListener("DOMContentLoaded", () => {
  if (counterproof.keys.size === 0) return;
  const STORED = "counterproof-keys";
  // A browser may refuse to store anything for a page from disk.
  const stored = () => { try { return localStorage.getItem(STORED); } catch { return null; } };
  const store = (value) => { try { localStorage.setItem(STORED, value); } catch { /* it holds for this page only */ } };
  const make = (name, properties = {}, ...parts) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...parts);
    return element;
  };

  const sheet = make("dialog", { id: "keys" }, make("h2", { id: "keys-title" }, "Keys"));
  sheet.setAttribute("aria-labelledby", "keys-title");
  counterproof.bind("this sheet", { "?": () => sheet.showModal() });
  const spaced = (keys) => keys.flatMap((key, index) => [index > 0 ? " " : "", make("kbd", {}, key)]);
  const rows = [...counterproof.sheet, [["Esc"], "close it"]];
  sheet.append(make("dl", {}, ...rows.map(([keys, says]) => make("div", {}, make("dt", {}, ...spaced(keys)), make("dd", {}, says)))));
  const on = make("input", { type: "checkbox", id: "keys-on", checked: stored() !== "off" });
  const close = make("button", { type: "button", id: "keys-close" }, "Close");
  sheet.append(make("p", {}, make("label", {}, on, " Single keys do something")), make("p", {}, close));
  const open = make("button", { type: "button", id: "keys-open" }, "Keys ", make("kbd", {}, "?"));
  document.body.append(open, sheet);
  on.addEventListener("change", () => store(on.checked ? "on" : "off"));
  open.addEventListener("click", () => sheet.showModal());
  close.addEventListener("click", () => sheet.close());

  addEventListener("keydown", (event) => {
    if (!on.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || sheet.open) return;
    if (event.target instanceof Element && event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    const does = counterproof.keys.get(event.key);
    if (!does) return;
    event.preventDefault();
    does();
  });
});
