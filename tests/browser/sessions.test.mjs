// What the page of a session has to be in a browser, from disk and without a network. The folders come in `SESSIONS`, one a line,
// each with `session.html`. The page uses no scripts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { insideOf, launch, serve, unfold, violations } from "./browser.mjs";
import { addressOf } from "./report.mjs";

const PAGES = (process.env.SESSIONS ?? "").split("\n").filter(Boolean);
const FILE = "session.html";

let browser;
before(async () => {
  assert.ok(PAGES.length > 0, "SESSIONS names no folder");
  browser = await launch();
});
after(() => browser?.close());

/** Opens the page of a folder in a watched context. */
const open = (root, options, body) => insideOf(browser, root, options, async (page, context) => {
  await page.addInitScript(() => { window.injected = 0; });
  await page.goto(addressOf(root, FILE));
  return body(page, context);
});

for (const root of PAGES) {
  const isLarge = path.basename(root) === "large";
  describe(root, () => {
    test("every link leads to an element of the page, and each element has one address", async () => {
      await open(root, {}, async (page) => {
        const { broken, repeated, count } = await page.evaluate(() => {
          const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
          const known = new Set(ids);
          const hrefs = [...document.querySelectorAll("body [href]")].map((link) => link.getAttribute("href"));
          return { broken: hrefs.filter((href) => !href.startsWith("#") || !known.has(href.slice(1))), repeated: ids.length - known.size, count: hrefs.length };
        });
        assert.deepEqual([broken, repeated], [[], 0]);
        assert.ok(count > 10);
      });
    });

    test("it opens from disk without a complaint, with one first heading and no skipped level", async () => {
      await open(root, {}, async (page) => {
        const levels = await page.locator("h1, h2, h3, h4").evaluateAll((headings) => headings.map(({ tagName }) => Number(tagName[1])));
        assert.equal(levels.filter((level) => level === 1).length, 1);
        levels.forEach((level, index) => assert.ok(level <= (levels[index - 1] ?? 0) + 1, `heading ${index} of ${levels}`));
        assert.equal(await page.evaluate(() => getComputedStyle(document.body).maxWidth), "1264px", "the policy keeps the style out");
      });
    });

    test("everything is readable without scripts", async () => {
      await open(root, { javaScriptEnabled: false }, async (page) => {
        assert.ok(await page.locator("h1").isVisible());
        const fold = page.locator("details:not([open]) > summary").first();
        await fold.click();
        assert.ok(await page.locator("details[open] pre, details[open] ol").first().isVisible());
      });
    });

    for (const colorScheme of isLarge ? ["light"] : ["light", "dark"]) {
      test(`axe finds nothing, ${colorScheme}`, async () => {
        // The page's own policy would keep axe out.
        await open(root, { colorScheme, bypassCSP: true }, async (page) => {
          if (!isLarge) await unfold(page);
          assert.deepEqual(await violations(page, root), []);
        });
      });
    }

    for (const width of [320, 390, 800, 1280]) {
      test(`it does not scroll sideways at ${width} pixels`, async () => {
        await open(root, { viewport: { width, height: 800 } }, async (page) => {
          if (!isLarge) await unfold(page);
          const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(needed <= there, `it needs ${needed} pixels`);
        });
      });
    }

    test("nothing that an agent wrote runs or leaves its place", async () => {
      await open(root, {}, async (page) => {
        if (!isLarge) await unfold(page);
        assert.equal(await page.evaluate(() => window.injected), 0);
        assert.equal(await page.locator("script, iframe, object, embed, img, form, base, body style, body link, body meta, svg:not(.tokens)").count(), 0);
        const attributes = await page.evaluate(() => [...new Set([...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()))]);
        assert.deepEqual(attributes.filter((name) => name.startsWith("on") || ["style", "src", "srcset", "srcdoc", "xlink:href"].includes(name)), []);
        assert.ok(!/[\u202a-\u202e\u2066-\u2069\u001b]/.test(await page.evaluate(() => document.body.textContent)));
      });
    });

    test("the policy allows one style and nothing else", () => {
      const html = readFileSync(path.join(root, FILE), "utf8");
      const policy = html.match(/http-equiv="Content-Security-Policy" content="([^"]*)"/)[1];
      assert.match(policy, /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; img-src data:; base-uri 'none'; form-action 'none'$/);
    });

    test("a server's policy that allows no script changes nothing", async () => {
      const server = await serve(root, "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:");
      try {
        await insideOf(browser, server.address, { offline: false }, async (page) => {
          await page.goto(`${server.address}${FILE}`);
          assert.ok(await page.locator("h1").isVisible());
        });
      } finally {
        server.close();
      }
    });

    test("a bar of the chart leads to its record", async () => {
      await open(root, {}, async (page) => {
        const bar = page.locator("svg.tokens a").last();
        await bar.focus();
        await page.keyboard.press("Enter");
        const target = page.locator(":target");
        assert.ok(await target.isVisible());
        assert.ok((await target.getAttribute("class")).includes("model"));
      });
    });

    test("an address of a record leads to it", async () => {
      await open(root, {}, async (page) => {
        await page.goto(`${addressOf(root, FILE)}#e3`);
        const box = await page.locator("#e3").boundingBox();
        assert.ok(box.y >= -5 && box.y < 900, `it is at ${box.y}`);
      });
    });

    if (isLarge) {
      test("an output of 10 MB is whole, and can be opened and read", async () => {
        await open(root, {}, async (page) => {
          const longest = await page.evaluate(() => {
            const folds = [...document.querySelectorAll("details.long")];
            const length = (fold) => [...fold.querySelectorAll("pre")].reduce((sum, piece) => sum + piece.textContent.length, 0);
            const sizes = folds.map(length);
            const index = sizes.indexOf(Math.max(...sizes));
            let outer = folds[index];
            for (; outer; outer = outer.parentElement.closest("details")) outer.open = true;
            folds[index].scrollIntoView();
            return sizes[index];
          });
          assert.ok(longest >= 250_000 * 40, `${longest} characters`);
          assert.ok(await page.locator("details.long[open] pre").first().isVisible());
        });
      });
    }
  });
}
