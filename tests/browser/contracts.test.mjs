// What the pages of contracts and of guarded runs have to be in a browser, from disk and without a network. The folders come in
// `CONTRACTS`, one a line. The pages use no scripts.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { insideOf, JENKINS, launch, serve, STRICT, violations } from "./browser.mjs";
import { addressOf, brokenLinks, pagesOf } from "./report.mjs";

const FOLDERS = (process.env.CONTRACTS ?? "").split("\n").filter(Boolean);
const PAGES = FOLDERS.flatMap((root) => pagesOf(root).map((file) => ({ root, file })));

let browser;
before(async () => {
  assert.ok(PAGES.length > 0, "CONTRACTS names no folder");
  browser = await launch();
});
after(() => browser?.close());

for (const root of FOLDERS) {
  test(`${root}: every link leads to an element of a page, or to a file: of the folder, or of the evidence next to the store`, () => {
    const { count, broken } = brokenLinks(root);
    const outside = broken.map((problem) => problem.match(/^(\S+): (\S+) leads out of the report$/) ?? assert.fail(problem));
    for (const [, page, link] of outside) {
      const file = fileURLToPath(new URL(link, addressOf(root, page)));
      assert.ok(file.startsWith(path.join(root, "../contracts.jsonl.files/")) && existsSync(file), `${link} leads to ${file}`);
    }
    assert.ok(count >= 4);
  });
}

for (const { root, file } of PAGES) {
  /** Opens the page in a watched context. */
  const open = (root, options, body) => insideOf(browser, root, options, async (page, context) => {
    await page.addInitScript(() => { window.injected = 0; });
    await page.goto(addressOf(root, file));
    return body(page, context);
  });

  describe(`${root}/${file}`, () => {

    test("it opens from disk without a complaint, with one first heading and no skipped level", async () => {
      await open(root, {}, async (page) => {
        const levels = await page.locator("h1, h2, h3, h4").evaluateAll((headings) => headings.map(({ tagName }) => Number(tagName[1])));
        assert.equal(levels.filter((level) => level === 1).length, 1);
        levels.forEach((level, index) => assert.ok(level <= (levels[index - 1] ?? 0) + 1, `heading ${index} of ${levels}`));
      });
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`axe finds nothing, ${colorScheme}`, async () => {
        // The page's own policy would keep axe out.
        await open(root, { colorScheme, bypassCSP: true }, async (page) => {
          assert.deepEqual(await violations(page, root), []);
        });
      });
    }

    for (const width of [320, 390, 800, 1280]) {
      test(`it does not scroll sideways at ${width} pixels, and no text is cut off`, async () => {
        await open(root, { viewport: { width, height: 800 } }, async (page) => {
          const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(needed <= there, `it needs ${needed} pixels`);
          const outside = await page.evaluate(() => [...document.querySelectorAll("main :is(h1, h2, h3, p, dd, th, td, li)")]
            .filter((element) => element.checkVisibility() && !element.closest(".hidden, thead") && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0)
            .map((element) => element.textContent.slice(0, 60)));
          assert.deepEqual(outside, []);
        });
      });
    }

    test("the keyboard reaches everything, and the focus is seen", async () => {
      await open(root, {}, async (page) => {
        const all = await page.evaluate(() => {
          const seen = [...document.querySelectorAll("a[href], [tabindex='0']")].filter((element) => element.checkVisibility());
          seen.forEach((element, index) => { element.dataset.number = String(index); });
          return seen.length;
        });
        const expected = Math.min(all, 100);
        const reached = new Set();
        for (let press = 0; press < expected + 20 && reached.size < expected; press += 1) {
          await page.keyboard.press("Tab");
          const focus = await page.evaluate(() => {
            const element = document.activeElement;
            const shape = element.closest("svg") && element.querySelector("rect");
            const isMarked = shape ? getComputedStyle(shape).strokeWidth === "3px" : getComputedStyle(element).outlineStyle !== "none";
            return { number: element.dataset.number, isMarked };
          });
          if (focus.number !== undefined) {
            reached.add(focus.number);
            assert.ok(focus.isMarked, `the focus on link ${focus.number} is not seen`);
          }
        }
        assert.ok(reached.size >= expected, `${reached.size} of ${expected} were reached`);
      });
    });

    test("nothing that an agent wrote runs or leaves its place", async () => {
      await open(root, {}, async (page) => {
        assert.equal(await page.evaluate(() => window.injected), 0);
        assert.equal(await page.locator("script, iframe, object, embed, img, form, base, main style, main link, main svg:not(.bar, .graph)").count(), 0);
        const attributes = await page.evaluate(() => [...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()));
        assert.deepEqual(attributes.filter((name) => name.startsWith("on") || name === "style"), []);
        assert.ok(!/[\u202a-\u202e\u2066-\u2069\u001b]/.test(await page.evaluate(() => document.body.textContent)));
      });
    });

    test("it has its style under strict policies too", async () => {
      for (const policy of [STRICT, JENKINS]) {
        const server = await serve(root, policy);
        try {
          await insideOf(browser, server.address, { offline: false }, async (page) => {
            await page.goto(`${server.address}${file}`);
            assert.ok(await page.locator("h1").isVisible());
            assert.equal(await page.evaluate(() => getComputedStyle(document.body).maxWidth), "1264px");
          });
        } finally {
          server.close();
        }
      }
    });

    test("on paper nothing is cut off", async () => {
      await open(root, { viewport: { width: 700, height: 900 } }, async (page) => {
        await page.emulateMedia({ media: "print" });
        const widths = await page.locator(".drawing").evaluateAll((frames) => frames.map((frame) => [frame.scrollWidth, frame.clientWidth]));
        for (const [needed, there] of widths) assert.ok(needed <= there, `the drawing needs ${needed} pixels`);
      });
    });

    test("a command is a whole line of its own", async () => {
      await open(root, {}, async (page) => {
        for (const command of await page.locator(".commands pre").allTextContents()) {
          assert.match(command, /^(counterproof contract (approve|reject) \S+@\d+ --reason '[^']+'|(git|cp) .+)$/);
          assert.doesNotMatch(command, /…|\.\.\.|\n/);
        }
      });
    });

    test("on a narrow page and on paper, the graph is an indented list with a link to each contract", async () => {
      for (const [width, media] of [[390, "screen"], [1280, "print"]]) {
        await open(root, { viewport: { width, height: 800 } }, async (page) => {
          await page.emulateMedia({ media });
          if (await page.locator(".outline").count() === 0) return;
          await page.evaluate(() => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
          assert.equal(await page.locator("svg.graph:visible").count(), 0);
          const listed = await page.locator(".outline li").evaluateAll((items) => items.map((item) => ({
            left: item.getBoundingClientRect().left, link: item.querySelector("a").hash.slice(1), text: item.textContent,
          })));
          assert.equal(listed.length, await page.locator("tr[id]").count());
          assert.equal(new Set(listed.map(({ link }) => link)).size, listed.length);
          if (listed.some(({ text }) => text.includes("after "))) assert.ok(new Set(listed.map(({ left }) => left)).size > 1, "it has levels");
        });
      }
    });

    test("each box of a drawing leads to the row of its contract", async () => {
      await open(root, {}, async (page) => {
        for (const box of (await page.locator("svg.graph a").all()).slice(0, 8)) {
          const [start, end = ""] = (await box.locator(".id").textContent()).split("…");
          await box.click();
          const target = page.locator(":target");
          assert.ok(await target.isVisible());
          const id = await target.locator(".code").first().textContent();
          assert.ok(id.startsWith(start) && id.endsWith(end), `${start}…${end} leads to ${id}`);
        }
      });
    });
  });
}

test("the reason of a contract that is not met begins with the assertion that failed", async () => {
  const root = FOLDERS.find((folder) => folder.endsWith("demo/room"));
  await insideOf(browser, root, {}, async (page) => {
    await page.goto(addressOf(root, "index.html"));
    const item = page.locator("[id='contract-website/prices/001']");
    assert.match(await item.locator(".reason dd").textContent(), /^output\.published == true: assertion not met, output\.published is false;/);
    assert.deepEqual(await item.getByRole("link").allTextContents(), ["in the graph", "verification.json"]);
    await item.getByRole("link", { name: "in the graph" }).click();
    assert.match(await page.locator("tr:target").textContent(), /website\/prices\/001/);
    await page.locator("tr:target").getByRole("link", { name: "in the control room" }).click();
    assert.ok(await page.locator("li:target").isVisible());
  });
});
