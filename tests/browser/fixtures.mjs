// Writes runs that the suite's reports are made of: answers of an agent that tries to get out of the page, several runs a side,
// an agent that is down, a pair in the shape of a recorded one, and 5,000 cases. Everything comes out the same each time.
import path from "node:path";

import { action, answer, call, failure, result, text, write, writeRun } from "./artifacts.mjs";
import { writeBroken, writeLarge, writeReal } from "./pairs.mjs";

/** What an agent or a foreign runner could try. Each of them would set `injected`, or ask for something outside. */
const TRICKS = [
  "</pre></code></script><script>injected=1</script>",
  "<img src=x onerror=injected=1><svg onload=injected=1>",
  "\"' onmouseover='injected=1' style='position:fixed;inset:0' x=\"",
  "<a href=\"javascript:injected=1\">javascript:injected=1</a>",
  "<style>body{display:none}@import 'https://outside.example/x.css';</style>",
  "<iframe srcdoc='<script>parent.injected=1</script>'></iframe>",
  "<base href='https://outside.example/'><meta http-equiv=refresh content='0;url=https://outside.example/'>",
  "<form action='https://outside.example/'><button>Continue</button></form>",
  "{{7*7}} ${injected=1} <!-- ]]> --!> <![CDATA[",
  "\u202Edesrever\u2066 isolated \u200Bnothing\u0000\u001B[31mred\u001B]8;;https://outside.example/\u0007link\u001B]8;;\u0007\u2028\u2029",
];
const ALL = TRICKS.join(" ");

function hostile(side) {
  const own = `${ALL} ${side}`;
  const first = side === "new" ? "c2" : "c1";
  const usage = (currency) => ({ input_tokens: side === "new" ? 4200 : 1840, output_tokens: 212, cost: side === "new" ? 0.0231 : 0.0093, currency });
  const tricked = answer({
    usage: usage(ALL),
    workflow_id: ALL,
    proposed_actions: [{
      ...action(ALL, ALL, { [ALL]: own, amount: side === "new" ? 500 : 50 }, [first, ALL]), action_type: ALL, risk_tags: TRICKS,
      evidence_refs: [{ kind: "tool_result", call_id: first }, { kind: "asset", id: "assets/page.html" }, { kind: "asset", id: "../../../etc/passwd" }, { kind: "retrieval_doc", doc_id: ALL }],
    }],
    events: [
      call(first, ALL, { [ALL]: own, long: own.repeat(10) }),
      { ...result(first, own), payload_asset_href: "assets/page.html" },
      { type: "retrieval", ts: 1600, query: own, doc_ids: [ALL] },
      { type: ALL, ts: 1700, [ALL]: own },
      { type: "final_output", ts: 1800, ...text(`${own}\nsame\n${ALL}`) },
    ],
    final_output: text(`${own}\nsame\n${ALL}`),
  });
  const object = answer({ final_output: { content_type: "json", content: { [ALL]: own, list: TRICKS.map((trick) => trick + side) } } });
  const lines = (changed) => Array.from({ length: 400 }, (_, line) => (line % 90 === 45 ? `line ${line} as ${changed} ${TRICKS[line % TRICKS.length]}` : `line ${line}`)).join("\n");
  const steps = Array.from({ length: 14 }, (_, step) => [
    call(`s${step}`, `look_up_${step % 3}`, { order: "W1", page: step === 9 && side === "new" ? 99 : step }, 1000 + step * 10),
    result(`s${step}`, { total: step, note: "x".repeat(300) }, 1005 + step * 10),
  ]).flat();
  const refund = (amount, refs) => answer({ usage: usage("USD"), events: steps, proposed_actions: [action("a1", "refund", { order: "W1", amount }, refs)], final_output: text(lines(side)) });
  return {
    "onmouseover=injected=1~(x)[a,1]": tricked,
    "json-output": object,
    "long-output": refund(side === "new" ? 500 : 50, ["s3"]),
    "evidence-gone": refund(50, side === "new" ? ["nowhere"] : ["s3"]),
    unchanged: answer({ events: steps.slice(0, 8), request_asset_href: "assets/unchanged.request.json" }),
    broken: side === "new" ? failure({ error_name: ALL, error_message: ALL, status_text: ALL, url: `http://x/${ALL}`, body_snippet: ALL, full_body_saved_to: "assets/body.bin" }) : answer({ events: steps.slice(0, 4) }),
    recovered: side === "new" ? answer({}) : failure({}),
    "still-broken": failure({ error_message: ALL }),
    invalid: side === "new" ? { case_id: `<img src=x onerror=injected=1>`, status: ALL } : answer({}),
    unreadable: side === "new" ? `{"schema_version": "case.v1", ${ALL}` : answer({}),
    missing: side === "new" ? undefined : answer({ events: steps.slice(0, 4) }),
    ...Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`many-${String(index).padStart(2, "0")}`, refund(side === "new" ? 500 : 50, ["s3"])])),
  };
}

const assets = {
  "page.html": `<script>injected=1</script>${ALL}`, "body.bin": ALL,
  "unchanged.request.json": JSON.stringify({ protocol: "contract", url: "http://agent.example/run-case", body: { case_id: "unchanged", input: ALL } }),
};

function writeHostile(root) {
  const cases = Object.keys(hostile("baseline")).map((id) => ({
    id, title: `${id} ${ALL}`, suite: ALL, input: { user: ALL, context: { [ALL]: ALL } }, metadata: { tags: [...TRICKS, "money"] },
    expected: { must_include: [ALL], action_required: ["write"] },
  }));
  write(path.join(root, "cases.json"), cases);
  for (const side of ["baseline", "new"]) {
    const artifacts = hostile(side);
    if (side === "new") delete artifacts.missing;
    writeRun(path.join(root, "runs", side, "hostile"), { side, id: `hostile-${side}`, model: `model ${side} ${TRICKS[0]}` }, artifacts, assets);
  }
}

/** Three runs of each side: one case is noise, one differs more than noise, one fails more often. */
function writeRepeats(root) {
  const look = (order, total) => [call("c1", "get_order", { order }), result("c1", { total })];
  const run = (side, number) => ({
    steady: answer({ events: look("W1", 50) }),
    "noise-in-words": answer({ events: look("W1", 50), final_output: text(`Done, said in way ${(number * 2 + (side === "new" ? 1 : 0)) % 3}.`) }),
    "other-amount": answer({ events: look("W1", 50), proposed_actions: [action("a1", "refund", { order: "W1", amount: side === "new" ? 500 : 50 }, ["c1"])] }),
    flaky: side === "new" && number < 2 ? failure({}) : answer({ events: look("W2", 5) }),
    "evidence-at-times": answer({ events: look("W3", 7), proposed_actions: [action("a1", "cancel", { order: "W3" }, side === "new" && number === 0 ? ["gone"] : ["c1"])] }),
  });
  for (const side of ["baseline", "new"]) {
    for (const number of [0, 1, 2]) writeRun(path.join(root, "runs", side, `run-${number}`), { side, id: `${side}-${number}` }, run(side, number));
  }
}

const [root] = process.argv.slice(2);
writeHostile(path.join(root, "hostile"));
writeRepeats(path.join(root, "repeats"));
writeBroken(path.join(root, "broken"));
writeReal(path.join(root, "real"));
writeLarge(path.join(root, "large"));
