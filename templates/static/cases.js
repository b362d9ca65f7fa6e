// The cases as data, and filters over them. The data are scripts of the report folder, because a page that is opened from disk may not
// fetch files. They are loaded on first use.
"use strict";

{
  const data = new URL("search/", document.currentScript.src);
  // The names of a query in the address.
  const NAMES = ["text", "show", "risk", "tool", "tag", "suite", "reason", "mark", "sort"];
  // The case data by shard number. Each shard is a list of cases, worst first.
  const shards = [];
  let loading = null;

  // Called by each data script. `page` is 0 for a case without a page, and 1 where the page has the name of the case.
  counterproof.addCases = function (index, shard) {
    const names = (indexes) => indexes.map((index) => shard.strings[index]);
    shards[index] = shard.cases.map((fields) => {
      const [id, page, asked, result, label, effects, note, seen, duration, risk, suite, lists, codes, tools, tags, unconfirmed] = fields;
      return {
        id, asked, result, label, effects, note, seen, duration, risk, suite, unconfirmed,
        page: page === 0 ? "" : `${encodeURIComponent(page === 1 ? id : page)}.html`,
        lists: lists.map((index) => shard.lists[index]), codes: names(codes), tools: names(tools), tags: names(tags),
      };
    });
  };

  // All cases, worst first.
  counterproof.loadCases = function () {
    const loadShard = (index) => new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(`${index}.js`, data);
      script.onload = resolve;
      script.onerror = () => reject(new Error(script.src));
      document.head.append(script);
    });
    const length = Number(document.querySelector("[data-shards]").dataset.shards);
    loading ??= Promise.all(Array.from({ length }, (_, index) => loadShard(index))).then(() => shards.flat());
    return loading;
  };

  // A number as on the pages: a narrow space between each three digits keeps it in one piece.
  counterproof.grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

  // The query of an address: the value of each name, empty where it is not set.
  counterproof.queryOf = function (text) {
    const parameters = new URLSearchParams(text);
    return new Map(NAMES.map((name) => [name, parameters.get(name) ?? ""]));
  };

  counterproof.textOf = (query) => new URLSearchParams([...query].filter(([, value]) => value !== "")).toString();

  function matches(query) {
    const wanted = (name) => query.get(name) ?? "";
    const words = wanted("text").toLowerCase().split(/\s+/).filter(Boolean);
    const is = (name, value) => !wanted(name) || wanted(name) === value;
    const has = (name, values) => !wanted(name) || values.includes(wanted(name));
    return (entry) => {
      if (!has("show", entry.lists) || !is("risk", entry.risk) || !is("suite", entry.suite)) return false;
      if (!has("tool", entry.tools) || !has("tag", entry.tags) || !has("reason", entry.codes)) return false;
      if (!is("mark", counterproof.markOf(entry.id) || "none")) return false;
      if (words.length === 0) return true;
      const { id, asked, note, effects, suite, tools, tags } = entry;
      entry.text ??= [id, asked, note, suite, ...effects, ...tools, ...tags].join("\n").toLowerCase();
      return words.every((word) => entry.text.includes(word));
    };
  }

  const RISKS = ["high", "medium", "low", ""];
  const ORDERS = new Map([
    ["risk", (a, b) => RISKS.indexOf(a.risk) - RISKS.indexOf(b.risk)],
    ["id", (a, b) => (a.id < b.id ? -1 : 1)],
  ]);

  // The cases that match a query, in its order. The data are sorted worst first, and sorting is stable.
  counterproof.filterCases = function (cases, query) {
    const found = cases.filter(matches(query));
    const order = ORDERS.get(query.get("sort"));
    return order ? found.sort(order) : found;
  };

  // The filter of this page: that of a list, or of the first page, which sets it.
  counterproof.filter = document.getElementById("main").dataset.filter ?? "";

  // Links to cases carry the filter, so that the page of a case shows its place in it.
  counterproof.onFollow(".case-rows a.case", (parameters) => {
    for (const name of NAMES) parameters.delete(name);
    for (const [name, value] of new URLSearchParams(counterproof.filter)) parameters.set(name, value);
  });
}
