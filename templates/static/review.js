// The marks of a reviewer: right, wrong or known. They are stored in the browser, under the name of the comparison. Some browsers refuse
// storage to pages from disk, or give each file a separate one. Links between the pages then carry the marks in their address.
"use strict";

{
  const MARKS = ["right", "wrong", "known"];
  // The value of a case whose mark was taken back, which replaces an earlier mark in another storage.
  const NONE = "none";
  const PARAMETER = "review";
  const STORED = `counterproof-review-${document.getElementById("main").dataset.report}`;
  const root = new URL("../", document.currentScript.src).href;
  const isFromDisk = location.protocol === "file:";
  // Only the first page exports.
  const exporter = document.getElementById("export");
  // The case of this page.
  const caseId = document.querySelector(".answer") && document.querySelector(".case-id").textContent;
  const isEntry = ([id, value]) => typeof id === "string" && (MARKS.includes(value) || value === NONE);

  // What is stored; `undefined` where nothing is, or where nothing can be.
  function stored() {
    try {
      const { isOfFirstPage, entries } = JSON.parse(localStorage.getItem(STORED));
      return { isOfFirstPage, entries: entries.filter(isEntry) };
    } catch {
      return undefined;
    }
  }

  function store() {
    try {
      localStorage.setItem(STORED, JSON.stringify({ isOfFirstPage, entries: [...marks] }));
      return true;
    } catch {
      return false;
    }
  }

  const before = stored();
  const isOfFirstPage = exporter !== null || before?.isOfFirstPage === true;
  let marks = new Map(before?.entries);
  const isStored = store();
  const isShared = isStored && (isOfFirstPage || !isFromDisk);
  // Elsewhere the address is ignored, so that a link from another site sets no mark.
  if (isFromDisk || !isStored) {
    const address = new URL(location.href);
    const carried = address.searchParams.getAll(PARAMETER).map((text) => [text.slice(text.indexOf(":") + 1), text.split(":", 1)[0]]);
    marks = new Map([...marks, ...carried.filter(isEntry)]);
    if (carried.length > 0 && store()) {
      address.searchParams.delete(PARAMETER);
      // A reload must not restore marks that were changed since.
      try { history.replaceState(null, "", address); } catch { /* the address stays */ }
    }
  }

  counterproof.onFollow("a[href*='.html']", (parameters, address) => {
    if (isShared || !address.href.startsWith(root)) return;
    parameters.delete(PARAMETER);
    for (const [id, value] of marks) parameters.append(PARAMETER, `${value}:${id}`);
  });

  // The mark of a case; empty without one.
  counterproof.markOf = (id) => (MARKS.includes(marks.get(id)) ? marks.get(id) : "");

  function element(name, properties, ...content) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...content);
    return made;
  }

  // Another tab may have stored marks meanwhile.
  const read = () => { marks = new Map([...marks, ...(stored()?.entries ?? [])]); };

  function mark(value) {
    read();
    marks.set(caseId, counterproof.markOf(caseId) === value ? NONE : value);
    store();
    show();
  }

  const button = (value) => element("button", { type: "button", className: `mark ${value}`, onclick: () => mark(value) }, value);
  const buttons = caseId === null ? [] : MARKS.map(button);
  if (caseId !== null) {
    const group = element("span", { className: "review small" }, "Review: ", ...buttons);
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Review of this case");
    document.querySelector(".answer .meta").append(group);
    const keys = { r: () => mark("right"), w: () => mark("wrong"), k: () => mark("known") };
    counterproof.bind("mark as right, wrong or known; again removes the mark", keys);
  }

  // Shows the marks in the rows of the page.
  counterproof.showMarks = function () {
    for (const link of document.querySelectorAll(".case-rows .case")) {
      const cell = link.closest("tr").cells[0];
      const value = counterproof.markOf(link.textContent);
      cell.querySelector(".mark")?.remove();
      if (value) cell.append(element("span", { className: `mark ${value}` }, `marked ${value}`));
    }
  };

  // The marked cases in the order of their ids.
  function marked() {
    const entries = [...marks].filter(([, value]) => value !== NONE).sort(([one], [other]) => (one < other ? -1 : 1));
    return entries.map(([case_id, value]) => ({ case_id, mark: value }));
  }

  function show() {
    const of = counterproof.markOf(caseId);
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(MARKS[index] === of)));
    counterproof.showMarks();
    if (exporter) exporter.querySelector(".figure").textContent = String(marked().length);
  }

  if (exporter) {
    exporter.hidden = false;
    exporter.addEventListener("click", () => {
      const text = `${JSON.stringify({ schema_version: "review.v1", marks: marked() }, null, 2)}\n`;
      const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      element("a", { href, download: "review.json" }).click();
      setTimeout(() => URL.revokeObjectURL(href), 10_000);
    });
  }

  const refresh = () => { read(); show(); };
  // The back button may show a page as it was left.
  addEventListener("pageshow", refresh);
  addEventListener("storage", refresh);
  show();
}
