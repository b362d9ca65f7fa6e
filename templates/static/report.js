// All pages: links that unfold their target, keys, and printing. Every page is complete without scripts.
"use strict";

const counterproof = { keys: new Map(), shortcuts: [] };

// Binds single keys to functions and describes them in the list of keyboard shortcuts.
counterproof.bind = function (description, keys) {
  for (const [key, action] of Object.entries(keys)) counterproof.keys.set(key, action);
  counterproof.shortcuts.push([Object.keys(keys), description]);
};

// Unfolds the target of a link. A fragment may also be the query of a search, which is not the id of an element.
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

// Printing unfolds everything. Afterwards the folds are restored.
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

// Changes the address of the links that match a selector when they are followed, because rows are added later.
counterproof.onFollow = function (selector, change) {
  const follow = ({ target }) => {
    const link = target instanceof Element && target.closest(selector);
    if (!link) return;
    const address = new URL(link.href);
    const before = address.search;
    change(address.searchParams, address);
    if (address.search !== before) link.href = address.href;
  };
  for (const type of ["click", "auxclick", "contextmenu"]) addEventListener(type, follow, true);
};

// Keys that follow a link of the page. The links of a case change with its filter.
const LINK_KEYS = [["[", "prev", "previous page"], ["]", "next", "next page"], ["u", "up", "all cases"]];
for (const [key, rel, description] of LINK_KEYS) {
  const link = () => document.querySelector(`a[rel=${rel}]`);
  if (link() || document.getElementById("position")) counterproof.bind(description, { [key]: () => link()?.click() });
}

// Moves the focus among the visible elements of a selector, starting from the focused element.
counterproof.step = function (selector, by) {
  const seen = [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
  if (seen.length === 0) return;
  const here = document.activeElement;
  let place = seen.indexOf(here);
  if (place < 0) {
    const follows = (element) => here.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
    const after = here && here !== document.body ? seen.findIndex(follows) : -1;
    place = by > 0 ? (after < 0 ? -1 : after - 1) : (after < 0 ? seen.length : after);
  }
  seen[Math.min(Math.max(place + by, 0), seen.length - 1)].focus();
};

if (document.querySelector(".case-rows")) {
  const rows = ".case-rows .case[href]";
  const keys = { j: () => counterproof.step(rows, 1), k: () => counterproof.step(rows, -1) };
  counterproof.bind("next or previous row; Enter opens it", keys);
}

// The list of keyboard shortcuts, and the option to turn them off: speech input types letters that are not
// meant as keys. The list is built after all scripts of the page have bound their keys.
addEventListener("DOMContentLoaded", () => {
  if (counterproof.keys.size === 0) return;
  const STORED = "counterproof-keys";
  // Some browsers refuse storage to pages from disk. The option then applies to the current page only.
  const stored = () => { try { return localStorage.getItem(STORED); } catch { return null; } };
  const store = (value) => { try { localStorage.setItem(STORED, value); } catch { /* see above */ } };
  const make = (name, properties = {}, ...parts) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...parts);
    return element;
  };

  const dialog = make("dialog", { id: "keys" }, make("h2", { id: "keys-title" }, "Keyboard shortcuts"));
  dialog.setAttribute("aria-labelledby", "keys-title");
  counterproof.bind("this list", { "?": () => dialog.showModal() });
  const spaced = (keys) => keys.flatMap((key, index) => [index > 0 ? " " : "", make("kbd", {}, key)]);
  const row = ([keys, description]) =>
    make("div", {}, make("dt", {}, ...spaced(keys)), make("dd", {}, description));
  dialog.append(make("dl", {}, ...[...counterproof.shortcuts, [["Esc"], "close the list"]].map(row)));
  const on = make("input", { type: "checkbox", id: "keys-on", checked: stored() !== "off" });
  const close = make("button", { type: "button", id: "keys-close" }, "Close");
  dialog.append(make("p", {}, make("label", {}, on, " Enable keyboard shortcuts")), make("p", {}, close));
  const open = make("button", { type: "button", id: "keys-open" }, "Keyboard shortcuts ", make("kbd", {}, "?"));
  document.body.append(open, dialog);
  on.addEventListener("change", () => store(on.checked ? "on" : "off"));
  open.addEventListener("click", () => dialog.showModal());
  close.addEventListener("click", () => dialog.close());

  addEventListener("keydown", (event) => {
    if (!on.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog.open) return;
    const isTyping = "input:not([type=checkbox]), select, textarea";
    if (event.target instanceof Element && event.target.closest(isTyping)) return;
    const action = counterproof.keys.get(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  });
});
