// Finds cases on the first page. What is looked for stands in the address, behind the `#`: it survives a reload, the way
// back, and being sent to somebody. The cases come as scripts of the folder, when they are first needed.
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
  const AT_ONCE = 200;
  const SIGNS = { regressed: "✗", broken: "✗", "still-broken": "✗", invalid: "!", missing: "−", added: "+", changed: "~", noisy: "·", improved: "✓", recovered: "✓", unchanged: "=" };
  const RISKS = ["high", "medium", "low", ""];

  // The data: shards by their number, each a list of cases, worst first.
  const shards = [];
  let loading = null;

  counterproof.found = function (index, shard) {
    const word = (place) => shard.words[place];
    shards[index] = shard.cases.map(([id, page, title, verdict, risk, severity, reason, suite, codes, tools, tags]) => ({
      id, title, verdict, risk, severity, reason, suite,
      href: page === 0 ? "" : `cases/${encodeURIComponent(page === 1 ? id : page)}.html`,
      codes: codes.map(word), tools: tools.map(word), tags: tags.map(word),
    }));
  };

  function load() {
    const one = (index) => new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `static/search/${index}.js`;
      script.onload = resolve;
      script.onerror = () => reject(new Error(script.src));
      document.head.append(script);
    });
    loading ??= Promise.all(Array.from({ length: Number(form.dataset.shards) }, (_, index) => one(index))).then(() => shards.flat());
    return loading;
  }

  // The state: a field by its name, empty where nothing is asked.
  const fields = [...form.elements].filter((element) => element.name);

  function inAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    return new Map(fields.map((field) => [field.name, asked.get(field.name) ?? ""]));
  }

  function inForm() {
    return new Map(fields.map((field) => [field.name, field.value]));
  }

  function address(state) {
    const asked = new URLSearchParams([...state].filter(([, value]) => value !== ""));
    return `#${asked}`;
  }

  // What is asked for, in words.
  function asked(state) {
    return [...state].filter(([name, value]) => value !== "" && name !== "sort").map(([name, value]) => `${name} “${value}”`).join(" and ");
  }

  const isEmpty = (state) => [...state.values()].every((value) => value === "");

  function matches(state) {
    const wanted = (name) => state.get(name) ?? "";
    const words = wanted("text").toLowerCase().split(/\s+/).filter(Boolean);
    const is = (name, value) => !wanted(name) || wanted(name) === value;
    const has = (name, values) => !wanted(name) || values.includes(wanted(name));
    return (entry) => {
      if (!is("verdict", entry.verdict) || !is("risk", entry.risk) || !is("suite", entry.suite)) return false;
      if (!has("tool", entry.tools) || !has("tag", entry.tags) || !has("reason", entry.codes)) return false;
      if (words.length === 0) return true;
      entry.text ??= [entry.id, entry.title, entry.reason, entry.suite, ...entry.tools, ...entry.tags].join("\n").toLowerCase();
      return words.every((word) => entry.text.includes(word));
    };
  }

  // The data is sorted worst first, and sorting keeps the order of equals.
  const score = (entry) => (entry.severity === "<0.01" ? 0.001 : Number(entry.severity) || 0);
  const ORDERS = new Map([
    ["severity", (a, b) => score(b) - score(a)],
    ["risk", (a, b) => RISKS.indexOf(a.risk) - RISKS.indexOf(b.risk)],
    ["id", (a, b) => (a.id < b.id ? -1 : 1)],
  ]);

  function element(name, className, ...content) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...content);
    return made;
  }

  function row(entry) {
    const sign = element("span", "sign", SIGNS[entry.verdict] ?? "");
    sign.setAttribute("aria-hidden", "true");
    const verdict = element("span", `verdict ${entry.verdict}`, sign, ` ${entry.verdict.replaceAll("-", " ")}`);
    const link = element(entry.href ? "a" : "span", "case", entry.id);
    if (entry.href) link.href = entry.href;
    const head = element("th", "", link);
    head.scope = "row";
    if (entry.title) head.append(" ", element("bdi", "title", entry.title));
    return element("tr", "", element("td", "", verdict), head, element("td", "risk", entry.risk),
      element("td", "severity", entry.severity), element("td", "why", element("bdi", "", entry.reason)));
  }

  let shown = [];

  function showMore() {
    const from = rows.childElementCount;
    rows.append(...shown.slice(from, from + AT_ONCE).map(row));
    more.hidden = rows.childElementCount >= shown.length;
    if (from > 0) rows.children[from]?.querySelector("a")?.focus();
  }

  async function show() {
    const state = inAddress();
    for (const field of fields) {
      const asked = state.get(field.name);
      if (field.value === asked) continue;
      // What is not offered can be written into the address. The field shows it, so that it can be seen and taken back.
      if (field.options && ![...field.options].some((option) => option.value === asked)) field.add(new Option(asked, asked));
      field.value = asked;
    }
    const empty = isEmpty(state);
    overview.hidden = !empty;
    found.hidden = empty;
    if (empty) return;
    let cases;
    try {
      cases = await load();
    } catch (error) {
      count.textContent = `The cases could not be loaded: ${error.message} is not there.`;
      return;
    }
    if (address(state) !== address(inAddress())) return;
    shown = cases.filter(matches(state));
    const order = ORDERS.get(state.get("sort"));
    if (order) shown.sort(order);
    const none = shown.length === 0 ? `: none fits ${asked(state)}` : "";
    count.textContent = `${shown.length} of ${cases.length} cases${none}`;
    table.hidden = shown.length === 0;
    all.hidden = shown.length > 0;
    rows.replaceChildren();
    showMore();
    document.documentElement.dataset.found = String(shown.length);
    performance.mark("found");
  }

  // Typing replaces the address, so that the way back does not lead through every letter; a choice is a step of its own.
  function go(replace) {
    const to = address(inForm());
    if (to === address(inAddress())) return;
    if (replace) history.replaceState(null, "", to);
    else history.pushState(null, "", to);
    show();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => go(false)));
  form.addEventListener("input", (event) => {
    if (event.target.name === "text") go(true);
  });
  form.addEventListener("change", () => go(false));
  form.addEventListener("focusin", () => load().catch(() => {}), { once: true });
  more.addEventListener("click", showMore);
  // The button goes with the list, and the focus must not go with it.
  all.addEventListener("click", () => document.getElementById("find-text").focus());
  addEventListener("hashchange", show);
  addEventListener("popstate", show);

  // Links to a list become links to the same cases found here.
  for (const link of document.querySelectorAll("a[data-find]")) link.href = `#${link.dataset.find}`;

  counterproof.bind("find cases", { "/": () => document.getElementById("find-text").focus() });
  counterproof.bind("show all cases again", { x: () => form.reset() });
  form.hidden = false;
  show();
  document.documentElement.dataset.ready = "";
  performance.mark("ready");
}
