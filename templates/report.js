// What every page has beyond its text: links that unfold what they lead to, keys, and paper. Every page is complete without it.
"use strict";

const counterproof = { keys: new Map() };

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

// The sheet of keys, and the choice to have none: speech input types letters that nobody meant as keys.
{
  const STORED = "counterproof-keys";
  const sheet = document.getElementById("keys");
  const on = document.getElementById("keys-on");
  const open = document.getElementById("keys-open");
  // A browser may refuse to store anything for a page from disk.
  const stored = () => { try { return localStorage.getItem(STORED); } catch { return null; } };
  const store = (value) => { try { localStorage.setItem(STORED, value); } catch { /* it holds for this page only */ } };
  on.checked = stored() !== "off";
  on.addEventListener("change", () => store(on.checked ? "on" : "off"));
  open.hidden = false;
  open.addEventListener("click", () => sheet.showModal());
  document.getElementById("keys-close").addEventListener("click", () => sheet.close());
  counterproof.keys.set("?", () => sheet.showModal());

  addEventListener("keydown", (event) => {
    if (!on.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || sheet.open) return;
    if (event.target instanceof Element && event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    const does = counterproof.keys.get(event.key);
    if (!does) return;
    event.preventDefault();
    does();
  });
}

// Keys that follow a link of the page, where it has one.
for (const [key, rel] of [["[", "prev"], ["]", "next"], ["u", "up"]]) {
  const link = document.querySelector(`a[rel=${rel}]`);
  if (link) counterproof.keys.set(key, () => link.click());
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
  counterproof.keys.set("j", () => counterproof.step(rows, 1));
  counterproof.keys.set("k", () => counterproof.step(rows, -1));
}
