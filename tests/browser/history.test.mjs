// What the page of a history has to be in a browser, from disk and without a network. The folders come in `HISTORIES`, one a
// line. The page uses no scripts.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { insideOf, JENKINS, launch, serve, STRICT, violations } from "./browser.mjs";
import { addressOf } from "./report.mjs";

const HISTORIES = (process.env.HISTORIES ?? "").split("\n").filter(Boolean);

let browser;
before(async () => {
  assert.ok(HISTORIES.length > 0, "HISTORIES names no folder");
  browser = await launch();
});
after(() => browser?.close());

/** Opens the page of a history in a watched context. */
const open = (root, options, body) => insideOf(browser, root, options, async (page) => {
  await page.addInitScript(() => { window.injected = 0; });
  await page.goto(addressOf(root, "index.html"));
  return body(page);
});

/** The columns of the table of nights by the verdicts that they count. */
const WORDS = {
  worse: ["regressed"], "failed to answer": ["broken", "still_broken"], "not compared": ["invalid", "missing", "added", "not_comparable"],
  different: ["changed", "undecided"], noise: ["noisy"], better: ["improved", "recovered"], same: ["unchanged"],
};
const FAILING = ["regressed", "broken", "still_broken", "invalid", "missing"];

for (const root of HISTORIES) {
  describe(root, { concurrency: 2 }, () => {
    test("it leads to reports that are there, and says all without scripts", async () => {
      const read = (options) => open(root, options, async (page) => {
        // The links of a drawing have no `href` that is a text.
        const hrefs = () => [...document.querySelectorAll("a[href]")].map((link) => new URL(link.getAttribute("href"), document.baseURI).href);
        assert.equal(await page.locator("script").count(), 0);
        return [await page.evaluate(() => document.body.innerText), await page.evaluate(hrefs)];
      });
      const [text, links] = await read({});
      assert.deepEqual([text, links], await read({ javaScriptEnabled: false }));
      const files = links.map((link) => fileURLToPath(link.split("#")[0]));
      assert.deepEqual(files.filter((file) => !existsSync(file)), []);
      assert.ok(new Set(files.map((file) => path.dirname(file))).size > 2, "it leads to several reports");
    });

    test("the answer is first, and each mark has a title and a link that the tables have too", async () => {
      await open(root, {}, async (page) => {
        const box = await page.locator("h1").boundingBox();
        assert.ok(box.y < 120, `it is at ${box.y}`);
        const marks = await page.locator(".nights svg rect").evaluateAll((rects) => rects.map((rect) => {
          const of = rect.parentElement;
          return [of.localName, of.querySelector("title").textContent.length > 0, of.getAttribute("href")];
        }));
        assert.ok(marks.length > 0);
        const cut = await page.locator(".nights svg").evaluateAll((drawings) => drawings.filter((drawing) => {
          const [box, around] = [drawing.getBoundingClientRect(), drawing.closest(".nights").getBoundingClientRect()];
          return box.top < around.top || box.bottom > around.bottom;
        }).length);
        assert.equal(cut, 0, "a drawing is cut off");
        assert.deepEqual(marks.filter(([name, isNamed]) => name !== "a" || !isNamed), []);
        const { drawn, focused } = await page.evaluate(() => ({
          drawn: [...document.querySelectorAll("svg a")].map((link) => [link.getAttribute("href"), link.tabIndex]),
          focused: [...document.querySelectorAll("a[href]")].filter((link) => link.tabIndex === 0).map((link) => link.getAttribute("href")),
        }));
        assert.deepEqual(drawn.filter(([, tabIndex]) => tabIndex !== -1), []);
        const others = new Set(focused);
        assert.deepEqual(drawn.filter(([href]) => !others.has(href)), []);
      });
    });

    test("every count is that of the evaluation of its night", async () => {
      await open(root, {}, async (page) => {
        const { words, nights } = await page.evaluate(() => {
          const table = document.querySelector("#evaluations").parentElement.querySelector("table");
          const words = [...table.querySelectorAll("thead .figure")].map((head) => head.textContent);
          const numberOf = (cell) => Number(cell.textContent.replace(/\D/g, ""));
          return { words, nights: [...table.querySelectorAll("tbody tr")].map((row) => ({
            href: new URL(row.querySelector("th a").getAttribute("href"), document.baseURI).href,
            counts: [...row.querySelectorAll(".figure")].map(numberOf),
          })) };
        });
        const read = (href) => JSON.parse(readFileSync(path.join(path.dirname(fileURLToPath(href)), "evaluation.json"), "utf8")).cases;
        const count = (cases, verdicts) => cases.filter(({ verdict }) => verdicts.includes(verdict)).length;
        for (const { href, counts } of nights) {
          const cases = read(href);
          assert.deepEqual(counts, words.map((word) => count(cases, WORDS[word])), href);
          assert.equal(counts.reduce((all, one) => all + one), cases.length, href);
        }
        const columns = await page.locator(".nights li").evaluateAll((columns) => columns.map((column) => ({
          href: new URL(column.querySelector("a.day").getAttribute("href"), document.baseURI).href,
          isBar: column.querySelectorAll("svg rect[width='10']").length === 0,
          marks: [...column.querySelectorAll("svg text")].map((text) => text.textContent),
          squares: column.querySelectorAll("svg rect").length,
          failing: column.querySelector("p.failed").textContent,
        })));
        assert.equal(columns.length, Math.min(nights.length, 20));
        for (const { href, isBar, marks, squares, failing } of columns) {
          const cases = read(href);
          const loud = ["worse", "failed to answer", "not compared", "different", "better"].map((word) => count(cases, WORDS[word])).filter((number) => number > 0);
          if (isBar) assert.deepEqual(marks.map(Number), loud, href);
          else assert.equal(squares, cases.length, href);
          // Expectations that both sides fail are counted as well.
          const unmet = cases.filter(({ verdict, expectations = [] }) => !FAILING.includes(verdict) && expectations.some((one) => one.new?.passed === false)).length;
          assert.equal(parseInt(failing, 10), count(cases, FAILING) + unmet, href);
        }
      });
    });

    test("a link to a case or to a night leads to its row", async () => {
      await open(root, {}, async (page) => {
        const ids = await page.locator("tr[id]").evaluateAll((rows) => rows.map((row) => row.id));
        assert.equal(new Set(ids).size, ids.length);
        assert.ok(ids.some((id) => id.startsWith("case-")) && ids.some((id) => id.startsWith("night-")));
        for (const id of [ids[0], ids[Math.floor(ids.length / 2)], ids.at(-1)]) {
          await page.goto("about:blank");
          await page.goto(`${addressOf(root, "index.html")}#${encodeURIComponent(id)}`);
          const isSeen = await page.evaluate((id) => {
            const box = document.querySelector("tr:target")?.getBoundingClientRect();
            return document.querySelector("tr:target")?.id === id && box.bottom > 0 && box.top < innerHeight;
          }, id);
          assert.ok(isSeen, id);
        }
      });
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`axe finds nothing, ${colorScheme}`, async () => {
        // The page's own policy would keep axe out.
        await open(root, { colorScheme, bypassCSP: true }, async (page) => {
          assert.deepEqual(await violations(page, "history"), []);
        });
      });
    }

    for (const width of [320, 360, 390, 800, 1000, 1280, 1920]) {
      test(`nothing scrolls sideways at ${width} pixels, and no column is empty`, async () => {
        await open(root, { viewport: { width, height: 800 } }, async (page) => {
          const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(needed <= there, `it needs ${needed} pixels`);
          const widths = await page.locator(".nights li:visible").evaluateAll((columns) => columns.map((column) => column.clientWidth));
          assert.ok(widths.length > 0 && widths.every((width) => width > 20), `${widths}`);
        });
      });
    }

    test("the keyboard reaches every link outside of the drawings, and the focus is seen", async () => {
      await open(root, {}, async (page) => {
        const all = await page.evaluate(() => {
          const seen = [...document.querySelectorAll("a[href]:not(svg a)")].filter((link) => link.checkVisibility());
          seen.forEach((link, index) => { link.dataset.number = String(index); });
          return seen.length;
        });
        const expected = Math.min(all, 100);
        const reached = new Set();
        for (let press = 0; press < expected + 5 && reached.size < expected; press += 1) {
          await page.keyboard.press("Tab");
          const [number, outline] = await page.evaluate(() => [document.activeElement.dataset.number, getComputedStyle(document.activeElement).outlineStyle]);
          assert.notEqual(outline, "none");
          if (number !== undefined) reached.add(number);
        }
        assert.equal(reached.size, expected);
      });
    });

    test("on paper and with forced colours the marks are there", async () => {
      for (const media of [{ media: "print" }, { forcedColors: "active" }, { media: "print", forcedColors: "active" }]) {
        await open(root, { viewport: { width: 700, height: 900 } }, async (page) => {
          await page.emulateMedia(media);
          const fills = await page.locator(".nights svg a > rect").evaluateAll((marks) => marks.map((mark) => [mark.getAttribute("class"), getComputedStyle(mark).fill]));
          const loud = new Set(fills.filter(([name]) => name !== "same" && name !== "noise").map(([, fill]) => fill));
          const quiet = new Set(fills.filter(([name]) => name === "same").map(([, fill]) => fill));
          assert.deepEqual([...quiet].filter((fill) => loud.has(fill)), []);
          const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(needed <= there, `it needs ${needed} pixels`);
        });
      }
    });

    test("nothing that an agent said runs or leaves its place", async () => {
      await open(root, {}, async (page) => {
        assert.equal(await page.evaluate(() => window.injected), 0);
        assert.equal(await page.locator("script, iframe, object, embed, img, form, base, main style, main link, meta[http-equiv=refresh]").count(), 0);
        const attributes = await page.evaluate(() => [...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()));
        assert.deepEqual(attributes.filter((name) => name.startsWith("on") || name === "style"), []);
        assert.ok(!/[\u202a-\u202e\u2066-\u2069\u001b]/.test(await page.evaluate(() => document.documentElement.textContent)));
      });
    });

    test("it has its style under strict policies too", async () => {
      for (const policy of [STRICT, JENKINS]) {
        const server = await serve(root, policy);
        try {
          await insideOf(browser, server.address, { offline: false }, async (page) => {
            await page.goto(`${server.address}index.html`);
            assert.equal(await page.evaluate(() => getComputedStyle(document.body).maxWidth), "1264px");
          });
        } finally {
          server.close();
        }
      }
    });
  });
}
