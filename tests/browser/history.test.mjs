// What the page of a history has to be in a browser, from disk and without a network. The folders come in `HISTORIES`, one a
// line. The page uses no scripts.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { insideOf, launch, unfold, violations } from "./browser.mjs";
import { addressOf } from "./report.mjs";

const HISTORIES = (process.env.HISTORIES ?? "").split("\n").filter(Boolean);

let browser;
before(async () => {
  assert.ok(HISTORIES.length > 0, "HISTORIES names no folder");
  browser = await launch();
});
after(() => browser?.close());

const inside = (root, options, body) => insideOf(browser, root, options, body);

for (const root of HISTORIES) {
  describe(root, { concurrency: 2 }, () => {
    test("a history leads to reports that are there, and says all without scripts", async () => {
      const read = (options) => inside(root, options, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        await unfold(page);
        // The links of a drawing have no `href` that is a text.
        const hrefs = () => [...document.querySelectorAll("a[href]")].map((link) => new URL(link.getAttribute("href"), document.baseURI).href);
        return [await page.evaluate(() => document.body.innerText), await page.evaluate(hrefs)];
      });
      const [text, links] = await read({});
      assert.deepEqual([text, links], await read({ javaScriptEnabled: false }));
      const files = links.map((link) => fileURLToPath(link.split("#")[0]));
      assert.deepEqual(files.filter((file) => !existsSync(file)), []);
      assert.ok(new Set(files.map((file) => path.dirname(file))).size > 2, "it leads to several reports");
    });

    test("the answer of a history is first, and each mark of a night has a title and a link", async () => {
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const box = await page.locator("h1").boundingBox();
        assert.ok(box.y < 120, `it is at ${box.y}`);
        const marks = await page.locator(".nights rect").evaluateAll((rects) => rects.map((rect) => {
          const of = rect.parentElement;
          return [of.localName, of.querySelector("title").textContent.length > 0];
        }));
        assert.ok(marks.length > 0);
        assert.deepEqual(marks.filter(([name, isNamed]) => name !== "a" || !isNamed), []);
      });
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`axe finds nothing on a history, ${colorScheme}`, async () => {
        await inside(root, { colorScheme, bypassCSP: true }, async (page) => {
          await page.goto(addressOf(root, "index.html"));
          await unfold(page);
          assert.deepEqual(await violations(page, "history"), []);
        });
      });
    }

    for (const width of [320, 360, 800, 1000, 1280, 1920]) {
      test(`no history scrolls sideways at ${width} pixels`, async () => {
        await inside(root, { viewport: { width, height: 800 } }, async (page) => {
          await page.goto(addressOf(root, "index.html"));
          await unfold(page);
          const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(needed <= there, `it needs ${needed} pixels`);
        });
      });
    }
  });
}
