// How soon the first page of a report can be used, opened from disk with nothing in the browser's cache, and how soon after typing in its
// field the matching rows are painted, with the cases loaded in between: prints milliseconds.
import path from "node:path";

import { launch, watched } from "./browser.mjs";
import { addressOf } from "./report.mjs";

const [root] = process.argv.slice(2);
const ROUNDS = 5;

const middle = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

const ready = [];
const found = [];
for (let round = 0; round < ROUNDS; round += 1) {
  // A browser of its own each time.
  const browser = await launch();
  const { page, problems } = await watched(browser, path.resolve(root));
  await page.goto(addressOf(path.resolve(root), "index.html"));
  await page.waitForFunction(() => "ready" in document.documentElement.dataset);
  ready.push(await page.evaluate(() => performance.getEntriesByName("ready")[0].startTime));
  found.push(await page.evaluate(async () => {
    const field = document.getElementById("find-text");
    const from = performance.now();
    field.focus();
    field.value = "1";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    while (document.documentElement.dataset.found === undefined) await new Promise(requestAnimationFrame);
    // The rows are painted before the second frame from here.
    await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
    return performance.now() - from;
  }));
  if (problems.length > 0) throw new Error(problems.join("\n"));
  await browser.close();
}
console.log(`interactive after ${middle(ready).toFixed(0)} ms (${ready.map((ms) => ms.toFixed(0)).join(", ")}); filtered rows ${middle(found).toFixed(0)} ms after typing (${found.map((ms) => ms.toFixed(0)).join(", ")})`);
