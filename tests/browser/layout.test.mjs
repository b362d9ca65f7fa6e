// Where the parts of a report are: positions and heights, widths from 320 to 1920 pixels, zoom, forced colours and paper.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { insideOf, launch, unfold } from "./browser.mjs";
import { addressOf, casePagesOf, isUsual, kindsOf, nameOf, REPORTS } from "./report.mjs";

/** Where the first screen ends, where the first line of an answer ends, and how high the page of a case with at most so many calls is. */
const FIRST_SCREEN = 560;
const ANSWER = 420;
const HEIGHT = 3000;
const CALLS = 20;
/** The widths in which nothing scrolls sideways: those of windows, and 640 for 1280 at 200 % zoom. */
const WIDTHS = [320, 390, 640, 800, 1280, 1920];
/** A sheet of A4 without its margins of 14 mm, in pixels. */
const SHEET = { width: 688, height: 1016 };

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const inside = (root, options, body) => insideOf(browser, root, options, body);
const desktop = { viewport: { width: 1280, height: 800 } };

for (const root of REPORTS) {
  describe(nameOf(root), { concurrency: 2 }, () => {
    const kinds = kindsOf(root);

    // Texts that an attacker made very long take more lines.
    test("the first screen has the decision, the worst case and the numbers, in this order", { skip: !isUsual(root) }, async () => {
      await inside(root, desktop, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const parts = await page.evaluate(() => [".top", ".verdict-card", ".warn", ".two", ".chips"].flatMap((part) => {
          const box = document.querySelector(part)?.getBoundingClientRect();
          return box ? [[part, Math.round(box.top), Math.round(box.bottom)]] : [];
        }));
        parts.slice(1).forEach(([part, top], index) => assert.ok(top >= parts[index][2], `${part} is below ${parts[index][0]}: ${parts}`));
        const [, , end] = parts.find(([part]) => part === ".two");
        assert.ok(end <= FIRST_SCREEN, `the numbers end at ${end}: ${parts}`);
      });
    });

    test("the page of a case shows an answer first, and is not long", { skip: !isUsual(root) }, async () => {
      await inside(root, desktop, async (page) => {
        for (const name of casePagesOf(root, 12)) {
          await page.goto(addressOf(root, name));
          const { answer, height, calls } = await page.evaluate(() => {
            // An excerpt, the values of an answer, or the failure.
            const lines = [...document.querySelectorAll(".excerpts dd, .bubble.agent, .bubble.none")].map((part) => {
              const range = document.createRange();
              range.selectNodeContents(part);
              return range.getClientRects()[0]?.bottom ?? Infinity;
            });
            const fact = [...document.querySelectorAll(".strip dt")].find((term) => term.textContent === "calls")?.nextElementSibling.textContent ?? "0";
            return { answer: Math.min(...lines), height: document.documentElement.scrollHeight, calls: fact.match(/\d+/g)?.map(Number) ?? [] };
          });
          assert.ok(answer <= ANSWER, `${name}: the first line of an answer ends at ${answer}`);
          const [one, other = one] = calls;
          if (one + other <= CALLS) assert.ok(height < HEIGHT, `${name}: ${one + other} calls take ${height} pixels`);
        }
      });
    });

    test("at 390 pixels a row is a block of five lines", async () => {
      await inside(root, { viewport: { width: 390, height: 844 } }, async (page) => {
        for (const name of ["index.html", ...kinds.filter((kind) => kind.startsWith("lists/"))]) {
          await page.goto(addressOf(root, name));
          const rows = await page.evaluate(() => [...document.querySelectorAll(".case-rows tr:not(.group):has(.case)")].map((row) => {
            const { paddingTop, paddingBottom } = getComputedStyle(row);
            const line = Number.parseFloat(getComputedStyle(row).lineHeight);
            return [row.querySelector(".case").textContent, (row.clientHeight - Number.parseFloat(paddingTop) - Number.parseFloat(paddingBottom)) / line];
          }));
          // A chip is a little higher than a line.
          assert.deepEqual(rows.filter(([, lines]) => lines > 5.5), [], name);
        }
      });
    });

    test(`nothing scrolls sideways from ${WIDTHS[0]} to ${WIDTHS.at(-1)} pixels, nor at 200 % zoom`, async () => {
      await inside(root, { deviceScaleFactor: 2 }, async (page) => {
        for (const name of kinds) {
          await page.goto(addressOf(root, name));
          await unfold(page);
          for (const width of WIDTHS) {
            await page.setViewportSize({ width, height: 400 });
            const needed = await page.evaluate(() => document.documentElement.scrollWidth);
            assert.ok(needed <= width, `${name} needs ${needed} pixels at ${width}`);
          }
        }
      });
    });

    test("in forced colours every mark has a text, a line or an edge", async () => {
      await inside(root, desktop, async (page) => {
        await page.emulateMedia({ forcedColors: "active" });
        for (const name of kinds) {
          await page.goto(addressOf(root, name));
          await unfold(page);
          const unmarked = await page.evaluate(() => {
            const style = (element) => getComputedStyle(element);
            const isLined = (element) => style(element).textDecorationLine !== "none";
            const isEdged = (element) => ["Left", "Top"].some((side) => style(element)[`border${side}Style`] !== "none" && style(element)[`border${side}Width`] !== "0px");
            const isSaid = (element) => element.textContent.trim() !== "";
            const rules = [
              [".chip, .chips a", (element) => isEdged(element) || element.classList.contains("plain-link")],
              [".chip", isSaid],
              [".counts a", isSaid],
              ["mark", (element) => isLined(element) || isEdged(element) || style(element).outlineStyle !== "none"],
              // A line has its sign, and a long value stands in the column of its side.
              ["del, ins", (element) => isLined(element) || element.closest(".line, .changes details")],
              [".bubble, .made, .verdict-card, .answer, .warn", isEdged],
              [".made.write", (element) => Number.parseFloat(style(element).borderInlineStartWidth) >= 4],
              [".chips a[aria-current]", (element) => Number.parseFloat(style(element).borderTopWidth) >= 2],
              [".squares .x", (element) => style(element).backgroundColor !== style(document.body).backgroundColor],
              [".bar rect", (element) => style(element).fill !== style(document.body).backgroundColor],
            ];
            return rules.flatMap(([selector, holds]) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility() && !holds(element))
              .slice(0, 2).map((element) => `${selector}: ${element.outerHTML.slice(0, 160)}`));
          });
          assert.deepEqual(unmarked, [], name);
        }
      });
    });

    test("the first sheet has the product, the decision and the violated rules, and no sheet has filters or commands", async () => {
      await inside(root, { viewport: SHEET }, async (page) => {
        for (const name of kinds) {
          await page.goto(addressOf(root, name));
          await page.emulateMedia({ media: "print" });
          await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
          assert.equal(await page.locator("details:not([open])").count(), 0, name);
          const controls = "#find, .chips, .next, .replay, #copy, button, input, select, [rel=prev], [rel=next], .tools";
          assert.deepEqual(await page.locator(controls).filter({ visible: true }).allTextContents(), [], name);
          if (name === "index.html" && isUsual(root)) {
            const ends = await page.evaluate(() => [".top b", "#decision", ".violated"].flatMap((part) => {
              const found = document.querySelector(part);
              return found ? [[part, found.checkVisibility(), found.getBoundingClientRect().bottom]] : [];
            }));
            assert.deepEqual(ends.filter(([, isSeen, end]) => !isSeen || end > SHEET.height), []);
            const paper = await page.pdf({ format: "A4" });
            assert.equal(paper.subarray(0, 5).toString(), "%PDF-");
          }
          await page.emulateMedia({ media: "screen" });
        }
      });
    });
  });
}
