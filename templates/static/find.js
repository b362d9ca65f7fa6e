// Index page: chips, search and filters. The query is stored in the fragment of the address, which survives a reload, the back
// button, and sharing the link.
"use strict";

{
  const form = document.getElementById("find");
  const overview = document.getElementById("overview");
  const found = document.getElementById("found");
  const count = document.getElementById("found-count");
  const rows = document.getElementById("found-rows");
  const table = document.getElementById("found-table");
  const all = document.getElementById("found-all");
  const more = document.getElementById("found-more");
  const chips = [...document.querySelectorAll(".chips a[data-find]")];
  const PAGE_SIZE = 200;
  const SIGNS = {
    worse: "✗", failed: "✗", unmet: "✗", "not-compared": "!", different: "~", noise: "·", better: "✓", met: "✓", same: "=",
  };

  const fields = [...form.elements].filter((element) => element.name);

  const queryOfAddress = () => counterproof.queryOf(location.hash.slice(1));

  function queryOfForm() {
    return new Map(fields.map((field) => [field.name, field.value]));
  }

  const fragment = (query) => `#${counterproof.textOf(query)}`;

  // The filters of a query as text.
  function describe(query) {
    const set = [...query].filter(([name, value]) => value !== "" && name !== "sort");
    return set.map(([name, value]) => `${name} “${value}”`).join(" and ");
  }

  const isEmpty = (query) => [...query.values()].every((value) => value === "");

  function element(name, className, ...content) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...content);
    return made;
  }

  // A square for each run of new, a gap, and a square for each run of the baseline.
  function squares(ofNew, ofBaseline) {
    const square = (state) => element("i", state === "x" ? "x" : "");
    const made = element("span", "squares", ...[...ofNew].map(square), element("b"), ...[...ofBaseline].map(square));
    made.setAttribute("aria-hidden", "true");
    return made;
  }

  function row(entry) {
    const sign = element("span", "", SIGNS[entry.result] ?? "");
    sign.setAttribute("aria-hidden", "true");
    const link = element(entry.page ? "a" : "span", "case", entry.id);
    if (entry.page) link.href = `cases/${entry.page}`;
    const head = element("th", "", link, " ", element("bdi", entry.asked ? "asked" : "asked soft", entry.asked || "request not recorded"));
    head.scope = "row";
    const effects = element("td", "", ...entry.effects.map((effect) => element("bdi", "effect", effect)));
    if (entry.note) effects.append(element("bdi", "note soft", entry.note));
    const [text, ofNew, ofBaseline] = entry.seen;
    const seen = element("td", "", text);
    seen.dataset.label = "Seen in";
    if (ofNew) seen.append(squares(ofNew, ofBaseline));
    const duration = element("td", "num", entry.duration);
    duration.dataset.label = "Duration";
    const result = element("td", "", element("span", `chip ${entry.result}`, sign, ` ${entry.label}`));
    if (entry.unconfirmed) result.append(" ", element("span", "small soft", "unconfirmed"));
    return element("tr", "", result, head, effects, seen, duration);
  }

  let shown = [];

  function showMore() {
    const from = rows.childElementCount;
    rows.append(...shown.slice(from, from + PAGE_SIZE).map(row));
    more.hidden = rows.childElementCount >= shown.length;
    counterproof.showMarks();
    if (from > 0) rows.children[from]?.querySelector("a")?.focus();
  }

  function markChips(query) {
    const list = query.get("show");
    for (const chip of chips) {
      const is = chip.dataset.find === (list ? `show=${list}` : "");
      if (is) chip.setAttribute("aria-current", "true"); else chip.removeAttribute("aria-current");
    }
  }

  async function show() {
    const query = queryOfAddress();
    counterproof.filter = counterproof.textOf(query);
    for (const field of fields) {
      const value = query.get(field.name);
      if (field.value === value) continue;
      // A link may contain a value that is no option. It becomes one, so that it is visible and can be
      // cleared.
      if (field.options && ![...field.options].some((option) => option.value === value)) {
        field.add(new Option(value, value));
      }
      field.value = value;
      if (value && field.closest("#find-more")) document.getElementById("find-more").open = true;
    }
    markChips(query);
    const empty = isEmpty(query);
    overview.hidden = !empty;
    found.hidden = empty;
    if (empty) return;
    let cases;
    try {
      cases = await counterproof.loadCases();
    } catch (error) {
      count.textContent = `Cannot load the cases: ${error.message} is missing.`;
      return;
    }
    // The query may have changed while the data were loading.
    if (fragment(query) !== fragment(queryOfAddress())) return;
    shown = counterproof.filterCases(cases, query);
    const none = shown.length === 0 ? `: none matches ${describe(query)}` : "";
    count.textContent = `${counterproof.grouped(shown.length)} of ${counterproof.grouped(cases.length)} cases${none}`;
    table.hidden = shown.length === 0;
    all.hidden = shown.length > 0;
    rows.replaceChildren();
    showMore();
    document.documentElement.dataset.found = String(shown.length);
    performance.mark("found");
  }

  // Typing replaces the history entry, because one entry per letter would make the back button useless.
  // A choice adds an entry.
  function go(change) {
    const to = fragment(queryOfForm());
    if (to === fragment(queryOfAddress())) return;
    change.call(history, null, "", to);
    show();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => {
    // A hidden field keeps its value on a reset.
    document.getElementById("find-show").value = "";
    go(history.pushState);
  }));
  form.addEventListener("input", (event) => {
    if (event.target.name === "text") go(history.replaceState);
  });
  form.addEventListener("change", () => go(history.pushState));
  form.addEventListener("focusin", () => counterproof.loadCases().catch(() => {}), { once: true });
  more.addEventListener("click", showMore);
  // The button disappears with the list, so the focus has to move.
  all.addEventListener("click", () => document.getElementById("find-text").focus());
  addEventListener("hashchange", show);
  addEventListener("popstate", show);

  // With scripts, links to a list become links to the same filter on this page.
  for (const link of document.querySelectorAll("a[data-find]")) link.href = `#${link.dataset.find}`;

  counterproof.bind("search cases", { "/": () => document.getElementById("find-text").focus() });
  counterproof.bind("clear the search", { x: () => form.reset() });
  form.hidden = false;
  show();
  document.documentElement.dataset.ready = "";
  performance.mark("ready");
}
