// What the page of a case has beyond its text: texts side by side, the steps that differ one after the other, and a command
// to copy.
"use strict";

// Texts side by side. The choice stands in the address, before the `#`, which belongs to the place on the page.
{
  const texts = document.querySelector(".texts");
  const VIEW = "view";
  const isSplit = () => new URLSearchParams(location.search).get(VIEW) === "split";

  // Of a line that shows both sides in one, what one side has of it.
  function half(line, side) {
    const only = line.cloneNode(true);
    const other = side === "baseline" ? "ins" : "del";
    only.querySelectorAll(`${other}, .hidden`).forEach((part) => part.remove());
    const absent = line.classList.contains(side === "baseline" ? "added" : "removed");
    if (absent) only.querySelector(".text").replaceChildren();
    only.querySelector(".sign").textContent = absent || line.classList.contains("same") ? "" : side === "baseline" ? "−" : "+";
    only.className = `line ${absent ? "none" : line.classList.contains("same") ? "same" : side === "baseline" ? "removed" : "added"}`;
    return only;
  }

  // Removed lines stand beside the added ones that took their place.
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
    for (const holder of texts.querySelectorAll(".hunk, details")) {
      if (on && !holder.querySelector(":scope > .split")) split(holder);
    }
    texts.classList.toggle("is-split", on);
    button.textContent = on ? "In one" : "Side by side";
  }

  // A browser may keep a page from disk from changing its address; then the page is opened again at the other one.
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
    counterproof.bind("texts side by side, or in one", { s: toggle });
    show();
  }
}

// The steps and actions that differ, one after the other.
{
  const rows = ".row.changed, .row.added, .row.removed";
  if (document.querySelector(rows)) {
    counterproof.bind("next step that differs, the one before", { n: () => counterproof.step(rows, 1), p: () => counterproof.step(rows, -1) });
  }
}

{
  const command = document.getElementById("replay");
  const button = document.getElementById("replay-copy");
  const said = document.getElementById("replay-copied");
  if (command) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(command);
      try {
        await navigator.clipboard.writeText(command.textContent);
        said.textContent = "copied";
      } catch {
        said.textContent = "selected, copy it with the browser";
      }
    });
  }
}
document.documentElement.dataset.ready = "";
