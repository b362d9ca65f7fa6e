// Runs and artifacts as files: the documents of a run, and the parts of an answer with the fields that a runner writes.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

export function write(file, value) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, typeof value === "string" ? value : `${JSON.stringify(value, null, 2)}\n`);
}

export function writeRun(folder, { side, id, model = `model of ${side}` }, artifacts, assets = {}) {
  const cases = Object.keys(artifacts);
  write(path.join(folder, "run.json"), {
    schema_version: "run.v1", run_id: id, version: side, generated_at: "2026-11-20T00:00:00.000Z", base_url: "http://agent.example",
    cases_path: "../../../cases.json", out_dir: "../..", selected_case_ids: cases, runner_version: "test/1", model,
    stats: { cases_total: cases.length, cases_completed: cases.length, cases_failed: 0, duration_ms: 1000 },
  });
  const items = Object.entries(assets).map(([name]) => ({ asset_id: name, href: `assets/${name}`, kind: "other" }));
  write(path.join(folder, "assets", "manifest.json"), { schema_version: "assets-manifest.v1", generated_at: "2026-11-20T00:00:00.000Z", items });
  for (const [name, content] of Object.entries(assets)) write(path.join(folder, "assets", name), content);
  for (const [name, artifact] of Object.entries(artifacts)) {
    if (artifact === undefined) continue;
    write(path.join(folder, `${name}.json`), typeof artifact === "string" ? artifact : { schema_version: "case.v1", case_id: name, version: side, ...artifact });
  }
}

export const attempts = [{ attempt: 1, started_at: "2026-11-20T00:00:00Z", latency_ms: 12, outcome: "ok" }];
export const call = (id, tool, args, ts = 1000) => ({ type: "tool_call", ts, call_id: id, tool, args, risk_level: "low", risk_tags: [] });
export const result = (id, payload, ts = 1500) => ({ type: "tool_result", ts, call_id: id, status: "ok", latency_ms: 12, payload_summary: payload });
export const text = (content) => ({ content_type: "text", content });
export const action = (id, tool, params, calls, more = {}) => ({
  action_id: id, action_type: "write", tool_name: tool, params, risk_level: "high", risk_tags: ["money"],
  evidence_refs: calls.map((call_id) => ({ kind: "tool_result", call_id })), ...more,
});
export const answer = (fields) => ({ status: "ok", attempts, workflow_id: "shop", proposed_actions: [], events: [], final_output: text("Done."), ...fields });
export const failure = (fields) => ({
  status: "runner_error",
  attempts: [{ attempt: 1, started_at: "2026-11-20T00:00:00Z", latency_ms: 12, outcome: "runner_error", error_class: "http_error" }],
  runner_failure: { class: "http_error", status: 500, url: "http://agent.example/run-case", attempt: 1, body_snippet: null, full_body_saved_to: null, ...fields },
});
