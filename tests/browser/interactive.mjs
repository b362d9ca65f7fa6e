// How soon the first page of a report can be used, opened from disk with nothing in the browser's cache: prints milliseconds.
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
  const asked = await page.evaluate(() => performance.now());
  await page.locator("#find-sort").selectOption("id");
  await page.waitForFunction(() => document.documentElement.dataset.found !== undefined);
  found.push(await page.evaluate((from) => performance.getEntriesByName("found").at(-1).startTime - from, asked));
  if (problems.length > 0) throw new Error(problems.join("\n"));
  await browser.close();
}
console.log(`interactive after ${middle(ready).toFixed(0)} ms (${ready.map((ms) => ms.toFixed(0)).join(", ")}); all cases loaded and sorted ${middle(found).toFixed(0)} ms after they were asked for`);
