// What every report has to be in a browser, from disk and without a network. The folders come in `REPORTS`, one a line.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { insideOf, JENKINS, launch, serve, STRICT, unfold, violations } from "./browser.mjs";
import { addressOf, brokenLinks, evaluationOf, grouped, isAlike, kindsOf, nameOf, pagesOf, REPORTS } from "./report.mjs";

let browser;
before(async () => {
  assert.ok(REPORTS.length > 0, "REPORTS names no folder");
  browser = await launch();
});
after(() => browser?.close());

const inside = (root, options, body) => insideOf(browser, root, options, body);

// The word with the most cases on the first screen, and its number.
const largestCount = (page) => page.locator(".counts a").evaluateAll((links) => {
  const counted = links.map((link) => [link.dataset.find.replace("show=", ""), Number(link.querySelector(".figure").textContent.replace(/\D/g, ""))]);
  return counted.sort((one, other) => other[1] - one[1])[0];
});

for (const root of REPORTS) {
  describe(nameOf(root), { concurrency: 2 }, () => {
    const evaluation = evaluationOf(root);
    const kinds = kindsOf(root);
    // What does not depend on the content of a report.
    const behaviour = isAlike(root) ? () => {} : test;

    test("every link of every page leads to a file of the folder, and to an element of it", () => {
      const { count, broken } = brokenLinks(root);
      assert.deepEqual(broken, []);
      assert.ok(count > 10);
    });

    test("every page opens from disk without a complaint and without asking for anything outside", async () => {
      const pages = pagesOf(root);
      // Of a large report every page kind, and pages from all over it.
      const some = pages.length <= 40 ? pages : [...new Set([...kinds, ...pages.filter((_, index) => index % Math.ceil(pages.length / 8) === 0)])];
      await inside(root, {}, async (page) => {
        for (const name of some) {
          await page.goto(addressOf(root, name));
          assert.equal(await page.locator("h1").count(), 1, name);
        }
      });
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`axe finds nothing on any kind of page in three widths, ${colorScheme}`, async () => {
        // The page's own policy would keep axe out.
        await inside(root, { colorScheme, bypassCSP: true }, async (page) => {
          const few = ["index.html", kinds.find((kind) => kind.startsWith("lists/")), kinds.findLast((kind) => kind.startsWith("cases/"))];
          // A report of the same program has the same elements: only what its content makes of them is looked at.
          const states = isAlike(root) ? few.filter(Boolean) : [...kinds, "index.html#sort=risk"];
          for (const name of states) {
            const [file, hash] = name.split("#");
            await page.goto("about:blank");
            await page.goto(addressOf(root, file) + (hash ? `#${hash}` : ""));
            if (hash) await page.waitForFunction(() => document.documentElement.dataset.found);
            await unfold(page);
            for (const width of few.includes(name) ? [1280, 800, 390] : [1280]) {
              await page.setViewportSize({ width, height: 900 });
              assert.deepEqual(await violations(page, `${name} at ${width} pixels`), []);
            }
          }
          await page.goto(addressOf(root, "index.html"));
          await page.keyboard.press("?");
          assert.deepEqual(await violations(page, "the sheet of keys"), []);
        });
      });
    }

    behaviour("no two fields of the filter touch, whatever the width", async () => {
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        for (let width = 320; width <= 1600; width += 20) {
          await page.setViewportSize({ width, height: 800 });
          const boxes = await page.evaluate(() =>
            [...document.querySelectorAll("#find input, #find select, #find button")].map((field) => field.getBoundingClientRect().toJSON()),
          );
          boxes.forEach((one, index) => {
            const touches = (other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
            assert.ok(!boxes.slice(index + 1).some(touches), `field ${index} at ${width} pixels`);
          });
        }
      });
    });

    behaviour("the keyboard reaches everything", async () => {
      await inside(root, {}, async (page) => {
        for (const name of kinds) {
          await page.goto(addressOf(root, name));
          // A page of very many links is the same again and again.
          const all = await page.evaluate(() => {
            const seen = [...document.querySelectorAll("a[href], button, input, select, summary")].filter((element) => element.checkVisibility());
            seen.forEach((element, index) => { element.dataset.number = String(index); });
            return seen.length;
          });
          const expected = Math.min(all, 80);
          const reached = new Set();
          for (let press = 0; press < expected + 20 && reached.size < expected; press += 1) {
            await page.keyboard.press("Tab");
            const number = await page.evaluate(() => document.activeElement?.dataset.number);
            if (number !== undefined) reached.add(number);
          }
          assert.ok(reached.size >= expected, `${name}: ${reached.size} of ${expected} were reached`);
          const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
          assert.notEqual(outline, "none", `${name}: the focus is not seen`);
        }
      });
    });

    behaviour("keys do what the sheet of keys says, and nothing where they are turned off", async () => {
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        await page.keyboard.press("?");
        assert.ok(await page.locator("#keys").isVisible());
        await page.keyboard.press("Escape");
        assert.ok(!(await page.locator("#keys").isVisible()));
        await page.keyboard.press("j");
        assert.equal(await page.evaluate(() => document.activeElement.closest("#overview") !== null), true);
        await page.keyboard.press("/");
        assert.equal(await page.evaluate(() => document.activeElement.id), "find-text");
        await page.keyboard.type("?j");
        assert.equal(await page.locator("#find-text").inputValue(), "?j", "in a field a letter is a letter");
        await page.locator("#find button[type=reset]").click();
        await page.locator("#keys-open").click();
        await page.locator("#keys-on").uncheck();
        await page.locator("#keys-close").click();
        await page.keyboard.press("?");
        assert.ok(!(await page.locator("#keys").isVisible()));
      });
    });

    behaviour("what is looked for survives a reload, a case and the way back", async () => {
      await inside(root, {}, async (page) => {
        const found = () => page.locator("#found-rows tr").count();
        const count = (text) => page.waitForFunction((wanted) => document.getElementById("found-count").textContent.startsWith(wanted), text);
        const [word, number] = await page.goto(addressOf(root, "index.html")).then(() => largestCount(page));
        assert.ok(await page.locator("#overview").isVisible() && !(await page.locator("#found").isVisible()));
        await page.locator(`.chips a[data-find="show=${word}"]`).click();
        await count(`${grouped(number)} of ${grouped(evaluation.cases.length)} `);
        assert.equal(await found(), Math.min(number, 200));
        assert.ok(!(await page.locator("#overview").isVisible()));
        await page.reload();
        await count(`${grouped(number)} of`);
        assert.equal(await page.locator(".chips a[aria-current]").getAttribute("data-find"), `show=${word}`);

        const first = await page.locator("#found-rows .case").first().textContent();
        await page.locator("#find-text").fill(first);
        await page.waitForFunction((id) => [...document.querySelectorAll("#found-rows .case")].some((link) => link.textContent === id), first);
        const address = page.url();
        const link = page.locator("#found-rows a.case", { hasText: first }).first();
        if (await link.count() > 0) {
          await link.click();
          await page.waitForURL((url) => url.pathname.includes("/cases/"));
          await page.goBack();
          await page.waitForURL(address);
          await page.waitForFunction((id) => [...document.querySelectorAll("#found-rows .case")].some((link) => link.textContent === id), first);
        }
        await page.locator("#find button[type=reset]").click();
        await page.waitForFunction(() => !document.getElementById("overview").hidden);
        await page.goBack();
        await page.waitForFunction(() => document.getElementById("overview").hidden);
        assert.equal(await page.locator("#find-text").inputValue(), first);
      });
    });

    behaviour("where nothing fits, what was asked for is told and can be taken back", async () => {
      await inside(root, {}, async (page) => {
        await page.goto(`${addressOf(root, "index.html")}#show=worze&text=%22%3E&sort=__proto__`);
        const told = `0 of ${grouped(evaluation.cases.length)} cases: none matches text “">” and show “worze”`;
        await page.waitForFunction((wanted) => document.getElementById("found-count").textContent === wanted, told);
        assert.ok(!(await page.locator("#found-table").isVisible()));
        await page.locator("#found-all").click();
        await page.waitForFunction(() => !document.getElementById("overview").hidden);
        assert.equal(new URL(page.url()).hash, "");
        assert.equal(await page.evaluate(() => document.activeElement.id), "find-text");
        await page.locator("#find-more").evaluate((fold) => { fold.open = true; });
        await page.locator("#find-sort").selectOption("id");
        await page.waitForFunction(() => document.querySelectorAll("#found-rows tr").length > 0);
        assert.ok(await page.locator("#found-table").isVisible() && !(await page.locator("#found-all").isVisible()));
      });
    });

    behaviour("counts are links that filter", async () => {
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const link = page.locator(".counts a").last();
        const number = await link.locator(".figure").textContent();
        await link.click();
        await page.waitForFunction((wanted) => document.getElementById("found-count").textContent.startsWith(`${wanted} of`), number);
      });
    });

    behaviour("without scripts every case is listed, and folds still open", async () => {
      await inside(root, { javaScriptEnabled: false }, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        assert.ok(!(await page.locator("#find").isVisible()), "what needs scripts is not shown");
        assert.ok(!(await page.locator("#keys-open").isVisible()));
        const listed = new Set();
        const read = async () => (await page.locator(".case").allTextContents()).forEach((id) => listed.add(id));
        const starts = await page.locator(".counts a").evaluateAll((links) => links.map((link) => link.href));
        for (const start of starts) {
          await page.goto(start);
          for (;;) {
            await read();
            const next = page.locator("a[rel=next]");
            if (await next.count() === 0) break;
            await page.goto(await next.evaluate((link) => link.href));
          }
        }
        assert.deepEqual(evaluation.cases.map((entry) => entry.case_id).filter((id) => !listed.has(id)), []);
        for (const name of kinds) {
          await page.goto(addressOf(root, name));
          const fold = page.locator("summary:visible").first();
          if (await fold.count() === 0) continue;
          const was = await fold.evaluate((summary) => summary.parentElement.open);
          await fold.click();
          assert.equal(await fold.evaluate((summary) => summary.parentElement.open), !was, name);
        }
      });
    });

    behaviour("under a policy of this folder's files alone all of it works", async () => {
      const server = await serve(root, STRICT);
      try {
        await inside(server.address, { offline: false }, async (page) => {
          for (const name of kinds) {
            await page.goto(server.address + name.split("/").map(encodeURIComponent).join("/"));
            assert.equal(await page.evaluate(() => getComputedStyle(document.body).maxWidth), "1264px", `${name} has its style`);
            assert.ok(await page.locator("#keys-open").isVisible(), `${name} has its scripts`);
          }
          await page.goto(`${server.address}index.html#sort=id`);
          await page.waitForFunction((all) => document.getElementById("found-count").textContent.startsWith(`${all} of`), grouped(evaluation.cases.length));
        });
      } finally {
        server.close();
      }
    });

    behaviour("under a policy without scripts it reads the same as without scripts", async () => {
      const server = await serve(root, JENKINS);
      try {
        const blocked = (text) => /script|sandbox|\.js$/i.test(text);
        await inside(server.address, { offline: false, allow: blocked }, async (page) => {
          for (const name of kinds) {
            await page.goto(server.address + name.split("/").map(encodeURIComponent).join("/"));
            assert.ok(await page.locator("h1").isVisible(), name);
            assert.equal(await page.evaluate(() => getComputedStyle(document.body).maxWidth), "1264px", name);
          }
        });
      } finally {
        server.close();
      }
    });

    test("links within a case land on what they name, unfold it and light it up", async () => {
      await inside(root, {}, async (page) => {
        for (const name of kinds.filter((kind) => kind.startsWith("cases/"))) {
          await page.goto(addressOf(root, name));
          const targets = await page.locator("main a[href^='#']").evaluateAll((links) => [...new Set(links.map((link) => link.getAttribute("href")))]);
          for (const target of targets.slice(0, 6)) {
            // A link that somebody was sent: the page opens at it.
            await page.goto("about:blank");
            await page.goto(addressOf(root, name) + target);
            const state = await page.evaluate(() => {
              const found = document.querySelector(":target");
              const lit = found?.closest(".cell, section, li, .hunk, .row, p, h2, tbody") ?? found;
              const box = lit?.getBoundingClientRect();
              return { found: Boolean(found), seen: Boolean(box && lit.checkVisibility() && box.bottom > 0 && box.top < innerHeight) };
            });
            assert.deepEqual(state, { found: true, seen: true }, `${name}${target}`);
          }
        }
      });
    });

    behaviour("texts stand in one or side by side, and the address keeps which", async () => {
      const name = kinds.find((kind) => kind.startsWith("cases/") && readFileSync(path.join(root, kind), "utf8").includes('class="texts"'));
      if (!name) return;
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, name));
        assert.equal(await page.locator(".split:visible").count(), 0);
        await page.locator("#raw > summary").click();
        await page.locator("#view").click();
        assert.ok(await page.locator(".split:visible").count() > 0);
        assert.ok(await page.locator(".split .removed").count() > 0 && await page.locator(".split .added").count() > 0);
        assert.equal(await page.locator(".split .removed ins, .split .added del").count(), 0);
        await page.reload();
        assert.ok(await page.locator(".split:visible").count() > 0);
        await page.goBack();
        await page.waitForFunction(() => !document.querySelector(".is-split"));
      });
    });

    test("nothing that an agent said runs", async () => {
      await inside(root, {}, async (page) => {
        await page.addInitScript(() => { window.injected = 0; });
        const pages = pagesOf(root);
        for (const name of pages.length <= 20 ? pages : kinds) {
          await page.goto(addressOf(root, name));
          await unfold(page);
          assert.equal(await page.evaluate(() => window.injected), 0, name);
          const foreign = "main script, main iframe, main object, main embed, main style, main link, main img, main form:not(#find), main svg:not(.bar, .fall), base, meta[http-equiv=refresh]";
          assert.equal(await page.locator(foreign).count(), 0, `${name} holds an element that is not the report's`);
          assert.equal(await page.evaluate(() => [...document.querySelectorAll("*")].some((element) => [...element.attributes].some(({ name }) => name.startsWith("on") || name === "style"))), false, name);
        }
        for (const hash of ["#text=script&sort=id", "#text=%3Cimg%20src%3Dx%20onerror%3Dinjected%3D1%3E", "#show=%22%3E%3Cscript%3Einjected%3D1%3C/script%3E", "#%E0%A4%A"]) {
          await page.goto("about:blank");
          await page.goto(addressOf(root, "index.html") + hash);
          await page.waitForFunction(() => "ready" in document.documentElement.dataset);
          await page.waitForTimeout(200);
          assert.equal(await page.evaluate(() => window.injected), 0, hash);
          assert.equal(await page.locator("main img, main script").count(), 0, hash);
        }
      });
    });

  });
}
