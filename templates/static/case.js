// Case page: output texts side by side, keys for the steps that differ, and buttons that copy.
"use strict";

// Output texts side by side. The choice is in the query of the address; the fragment belongs to the place on the page.
{
  const texts = document.querySelector(".texts");
  const VIEW = "view";
  const isSplit = () => new URLSearchParams(location.search).get(VIEW) === "split";

  // The part of a merged line that belongs to one side.
  function half(line, side) {
    const only = line.cloneNode(true);
    const isBaseline = side === "baseline";
    only.querySelectorAll(`${isBaseline ? "ins" : "del"}, .hidden`).forEach((part) => part.remove());
    const isSame = line.classList.contains("same");
    const isAbsent = line.classList.contains(isBaseline ? "added" : "removed");
    if (isAbsent) only.querySelector(".text").replaceChildren();
    const differs = !isAbsent && !isSame;
    only.querySelector(".sign").textContent = differs ? (isBaseline ? "−" : "+") : "";
    only.className = `line ${isAbsent ? "none" : isSame ? "same" : isBaseline ? "removed" : "added"}`;
    return only;
  }

  // Pairs removed lines with the added lines that replace them.
  function paired(lines) {
    const pairs = [];
    for (let index = 0; index < lines.length;) {
      const block = (name, from) => {
        let end = from;
        while (end < lines.length && lines[end].classList.contains(name)) end += 1;
        return lines.slice(from, end);
      };
      const removed = block("removed", index);
      const added = block("added", index + removed.length);
      if (removed.length + added.length === 0) {
        pairs.push([lines[index], lines[index]]);
        index += 1;
        continue;
      }
      for (let row = 0; row < Math.max(removed.length, added.length); row += 1) pairs.push([removed[row], added[row]]);
      index += removed.length + added.length;
    }
    return pairs;
  }

  function split(holder) {
    const table = document.createElement("div");
    table.className = "split";
    for (const [old, now] of paired([...holder.querySelectorAll(":scope > .line")])) {
      for (const [line, side] of [[old, "baseline"], [now, "new"]]) {
        if (line) table.append(half(line, side));
        else table.append(Object.assign(document.createElement("div"), { className: "line none" }));
      }
    }
    holder.append(table);
  }

  function show() {
    const on = isSplit();
    // A reader who asked for it wants to see it.
    for (let fold = texts.closest("details"); on && fold; fold = fold.parentElement.closest("details")) fold.open = true;
    for (const holder of texts.querySelectorAll(".hunk, details")) {
      if (on && !holder.querySelector(":scope > .split")) split(holder);
    }
    texts.classList.toggle("is-split", on);
    button.textContent = on ? "Unified" : "Side by side";
  }

  // Some browsers do not let a page from disk change its address. The page is then reloaded at the new address.
  function toggle() {
    const address = new URL(location.href);
    if (isSplit()) address.searchParams.delete(VIEW);
    else address.searchParams.set(VIEW, "split");
    try {
      history.pushState(null, "", address);
      show();
    } catch {
      location.assign(address);
    }
  }

  const button = Object.assign(document.createElement("button"), { type: "button", id: "view" });
  if (texts) {
    texts.before(button);
    button.addEventListener("click", toggle);
    addEventListener("popstate", show);
    counterproof.bind("show texts side by side or unified", { s: toggle });
    show();
  }
}

// Keys that move between the steps and actions that differ.
{
  const rows = ".row.changed, .row.added, .row.removed";
  if (document.querySelector(rows)) {
    const keys = { n: () => counterproof.step(rows, 1), p: () => counterproof.step(rows, -1) };
    counterproof.bind("next or previous difference", keys);
  }
}

// The position in the filter of the address, or else in all cases, the neighbours there, and the cases of the same pattern.
{
  // Larger data are loaded only where they are asked for.
  const MOST_SHARDS = 3;
  // Results without a pattern.
  const QUIET = ["noise", "same", "met"];
  const main = document.getElementById("main");
  const id = document.querySelector(".case-id").textContent;
  const query = counterproof.queryOf(location.search);
  const text = counterproof.textOf(query);

  // What the cases of the filter are called: `worse`, `high risk`, or `matching`.
  function word(cases) {
    const list = query.get("show");
    if (text !== counterproof.textOf(new Map([["show", list]])) || /^(notice|pattern|rule)-/.test(list)) return "matching";
    return cases.find((entry) => entry.result === list)?.label ?? list.replaceAll("-", " ");
  }

  function neighbour(rel, sign, entry) {
    document.querySelector(`a[rel=${rel}]`)?.remove();
    if (!entry) return;
    const link = Object.assign(document.createElement("a"), { rel, textContent: sign, href: text ? `${entry.page}?${text}` : entry.page });
    const tools = document.querySelector("nav.tools");
    if (rel === "prev") tools.prepend(link);
    else tools.insertBefore(link, tools.querySelector("a:not([rel])"));
  }

  function place(cases) {
    const found = counterproof.filterCases(cases, query);
    const index = found.findIndex((entry) => entry.id === id);
    // The address may have the filter of another list.
    if (index < 0) return;
    neighbour("prev", "‹ Previous", found.slice(0, index).findLast((entry) => entry.page));
    neighbour("next", "Next ›", found.slice(index + 1).find((entry) => entry.page));
    const position = document.getElementById("position");
    const of = `${counterproof.grouped(index + 1)} of ${counterproof.grouped(found.length)}`;
    position.textContent = text ? `${of} ${word(cases)}` : `case ${of}`;
    if (!text) position.title = "worst first";
  }

  function link(cases) {
    const { lists, result } = cases.find((entry) => entry.id === id) ?? {};
    const pattern = lists?.find((list) => list.startsWith("pattern-"));
    if (!pattern || QUIET.includes(result)) return;
    const count = cases.filter((entry) => entry.lists.includes(pattern)).length;
    const made = Object.assign(document.createElement("a"), { id: "pattern", className: "small", href: `../index.html#show=${pattern}` });
    made.textContent = `All ${counterproof.grouped(count)} cases of this pattern`;
    document.querySelector(".answer .meta").insertBefore(made, document.querySelector(".answer .review"));
  }

  if (text) {
    const list = document.getElementById("filter");
    list.href = `../index.html#${text}`;
    document.querySelector("a[rel=up]").href = list.href;
  }
  if (text || Number(main.dataset.shards) <= MOST_SHARDS) {
    counterproof.loadCases().then((cases) => {
      if (text) document.getElementById("filter").textContent = word(cases);
      place(cases);
      link(cases);
      document.documentElement.dataset.placed = "";
    }).catch(() => { /* the page keeps what it says without scripts */ });
  }
}

// Buttons that copy a text of the page.
for (const button of document.querySelectorAll("button[data-copies]")) {
  const source = document.getElementById(button.dataset.copies);
  const status = button.nextElementSibling;
  button.hidden = false;
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(source);
    try {
      await navigator.clipboard.writeText(source.textContent);
      status.textContent = "copied";
    } catch {
      status.textContent = "selected; copy it with the browser";
    }
  });
}
document.documentElement.dataset.ready = "";
