// Writes nights that the suite's histories are made of: many nights of many cases, and nights whose texts try to get out of the
// page. A night is an evaluation with an empty page. Everything comes out the same each time.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const TRICKS = [
  "</title></svg></script><script>injected=1</script>", "<img src=x onerror=injected=1><svg onload=injected=1>",
  "\"' onmouseover='injected=1' style='position:fixed;inset:0' x=\"", "<style>body{display:none}</style><base href='https://outside.example/'>",
  "\u202Edesrever\u2066 isolated \u200Bnothing\u001B[31mred\u2028",
];

function write(file, value) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value));
}

// A number from 0 to 1 that two numbers always give.
function mixed(one, other) {
  let value = Math.imul(one + 1, 0x9E3779B1) ^ Math.imul(other + 1, 0x85EBCA6B);
  value = Math.imul(value ^ (value >>> 15), 0x2C1B3C6D);
  return ((value ^ (value >>> 12)) >>> 0) / 2 ** 32;
}

const usage = (code, value, currency) => ({ code, cases: 1, baseline: value, new: value, rose: 0, fell: 0, p: 1, method: "exact", ...(currency && { currency }) });

/** Writes a night. `cases` are its verdicts by the id of the case. */
function writeNight(folder, time, cases, { reason = "the answer differs", commit, model, currency = "USD" } = {}) {
  const run = (id, more) => ({ run_id: id, generated_at: time, runner_version: "test/1", cases_selected: Object.keys(cases).length, ...more });
  const id = `night-${path.basename(folder).replace(/[^A-Za-z0-9]/g, "-")}`;
  const entries = Object.entries(cases);
  write(path.join(folder, "evaluation.json"), {
    schema_version: "evaluation.v1", evaluator_version: "test/1", baseline: run("good"), new: run(id, { repo_commit: commit }), counts: {},
    usage: [usage("duration", 900 + 40 * mixed(time.length, Number(time.slice(8, 10)))), usage("cost", 0.02, currency)],
    gate: { passed: false, outcome: "failed", rules: [] },
    cases: entries.map(([case_id, verdict]) => ({ case_id, verdict, reasons: [{ code: "output-changed", message: reason, pointers: [] }] })),
  });
  if (model) write(path.join(folder, "run.json"), { schema_version: "run.v1", run_id: id, version: "new", generated_at: time, base_url: "http://agent.example", cases_path: "c", out_dir: "o", selected_case_ids: [], runner_version: "test/1", model });
  write(path.join(folder, "index.html"), "<!doctype html><title>A night</title>");
  for (const [case_id, verdict] of entries) {
    if (verdict !== "unchanged") write(path.join(folder, "cases", `${case_id}.html`), "<!doctype html><title>A case</title>");
  }
}

const day = (number) => new Date(Date.UTC(2026, 8, 1 + number, 2)).toISOString();
const caseId = (number) => `refund-${String(number).padStart(3, "0")}`;

/** 60 nights of 120 cases: some always fail, some recover, some alternate, and most are right. */
function writeLarge(root) {
  const verdict = (night, number) => {
    if (number < 4) return night > 40 + number * 4 ? "regressed" : "unchanged";
    if (number < 8) return night < 20 ? "broken" : "unchanged";
    if (number < 30) return mixed(night, number) < 0.3 ? "regressed" : "unchanged";
    if (number < 60) return ["changed", "noisy", "improved", "not_comparable", "unchanged"][Math.floor(mixed(night, number) * 5)];
    return "unchanged";
  };
  for (let night = 0; night < 60; night += 1) {
    const cases = Object.fromEntries(Array.from({ length: 120 }, (_, number) => [caseId(number), verdict(night, number)]));
    const release = Math.floor(night / 9);
    writeNight(path.join(root, "nights", String(night)), day(night), cases, { commit: `${release}c0ffee${release}aa`, model: `agent-model-2026-${release}` });
  }
}

/** Nights with hostile reasons, models, commits, times, currencies and folders. */
function writeHostile(root) {
  const id = "onmouseover=injected=1~(x)[a,1]";
  const verdicts = ["regressed", "unchanged", "broken", "changed"];
  for (let night = 0; night < 4; night += 1) {
    const cases = { [id]: verdicts[night], [`@${"long-".repeat(24)}`]: "regressed", "=steady": "unchanged" };
    const trick = TRICKS[night % TRICKS.length];
    writeNight(path.join(root, "nights", `${night} ${"#?&'\"<b>%"}`.replaceAll("/", "")), day(night), cases, { reason: TRICKS.join(" "), commit: trick, model: trick, currency: trick });
  }
  const last = path.join(root, "nights", "unknown time");
  writeNight(last, TRICKS[1], { [id]: "regressed" }, { reason: TRICKS[2] });
  write(path.join(root, "nights", `torn ${TRICKS[3].replaceAll("/", "")}`, "evaluation.json"), `{"schema_version": ${TRICKS[0]}`);
}

const [root] = process.argv.slice(2);
writeLarge(path.join(root, "large"));
writeHostile(path.join(root, "hostile"));
