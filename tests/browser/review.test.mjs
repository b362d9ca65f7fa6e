// Reviewing a report: the marks of cases and their export, and the place of a case in a filter. The folders come in `REPORTS`, one a line.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { insideOf, launch, serve, STRICT, violations } from "./browser.mjs";
import { addressOf, evaluationOf, grouped, isAlike, REPORTS } from "./report.mjs";

const MARKS = ["right", "wrong", "known"];

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const buttonOf = (page, mark) => page.getByRole("group", { name: "Review of this case" }).getByRole("button", { name: mark, exact: true });
const pressed = (page) => page.locator(".review [aria-pressed=true]").allTextContents();
const placed = (page) => page.waitForFunction(() => "placed" in document.documentElement.dataset);

async function exported(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#export").click()]);
  assert.equal(download.suggestedFilename(), "review.json");
  return JSON.parse(readFileSync(await download.path(), "utf8"));
}

const review = (marks) => ({ schema_version: "review.v1", marks });

// Puts the storage of the browser out of reach.
const denied = () => Object.defineProperty(window, "localStorage", { get() { throw new DOMException("denied", "SecurityError"); } });
// Gives each page a storage of its own, kept in the history entry.
const separate = () => {
  const path = location.pathname;
  const key = (name) => `${path} ${name}`;
  const { localStorage } = window;
  Object.defineProperty(window, "localStorage", {
    value: { getItem: (name) => localStorage.getItem(key(name)), setItem: (name, value) => localStorage.setItem(key(name), value) },
  });
};

for (const root of REPORTS) {
  describe(root, { concurrency: 2 }, () => {
    const evaluation = evaluationOf(root);
    // What does not depend on the content of a report.
    const behaviour = isAlike(root) ? () => {} : test;
    const paged = evaluation.cases.map((entry) => entry.case_id).filter((id) => existsSync(path.join(root, `cases/${id}.html`)));
    const [first, second] = [...paged].sort().filter((_, index) => index < 2);
    const inside = (options, body) => insideOf(browser, root, { acceptDownloads: true, ...options }, body);
    const open = (page, id) => page.goto(addressOf(root, `cases/${id}.html`));

    behaviour("marks of cases are shown in the rows and exported in the order of ids", { skip: !second }, async () => {
      await inside({}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        assert.deepEqual(await exported(page), review([]));
        await open(page, second);
        assert.deepEqual(await pressed(page), []);
        await buttonOf(page, "wrong").click();
        assert.deepEqual(await pressed(page), ["wrong"]);
        await open(page, first);
        await page.keyboard.press("k");
        assert.deepEqual(await pressed(page), ["known"]);
        await page.reload();
        assert.deepEqual(await pressed(page), ["known"]);
        await page.keyboard.press("u");
        await page.waitForURL((url) => url.pathname.endsWith("/index.html"));
        assert.equal(new URL(page.url()).search, "");
        assert.equal(await page.locator("#export .figure").textContent(), "2");
        assert.deepEqual(await exported(page), review([{ case_id: first, mark: "known" }, { case_id: second, mark: "wrong" }]));
        await page.goto(`${addressOf(root, "index.html")}#mark=wrong`);
        await page.waitForFunction(() => document.querySelectorAll("#found-rows tr").length === 1);
        assert.equal(await page.locator("#found-rows .mark").textContent(), "marked wrong");
        assert.equal(await page.locator("#found-rows .case").textContent(), second);

        await open(page, first);
        await buttonOf(page, "known").focus();
        await page.keyboard.press("Enter");
        assert.deepEqual(await pressed(page), [], "the same mark again removes it");
        await page.goto(addressOf(root, "index.html"));
        assert.deepEqual(await exported(page), review([{ case_id: second, mark: "wrong" }]));
      });
    });

    for (const [name, script] of [["without storage", denied], ["with a storage for each file", separate]]) {
      behaviour(`links carry the marks ${name}`, { skip: !second }, async () => {
        await inside({}, async (page) => {
          await page.addInitScript(script);
          await page.goto(addressOf(root, "index.html"));
          await open(page, first);
          await buttonOf(page, "wrong").click();
          await placed(page);
          const link = page.locator("a[rel=next], a[rel=prev]").first();
          await link.click();
          await page.waitForURL((url) => !url.pathname.endsWith(`/${first}.html`));
          const other = await page.locator(".case-id").textContent();
          await buttonOf(page, "right").click();
          await page.locator("a[rel=up]").click();
          await page.waitForURL((url) => url.pathname.endsWith("/index.html"));
          const marks = [{ case_id: first, mark: "wrong" }, { case_id: other, mark: "right" }];
          assert.deepEqual(await exported(page), review(marks.sort((a, b) => (a.case_id < b.case_id ? -1 : 1))));
        });
      });
    }

    behaviour("an address from elsewhere marks nothing, and what is stored is not trusted", { skip: !first }, async () => {
      const server = await serve(root, STRICT);
      try {
        await insideOf(browser, server.address, { offline: false, acceptDownloads: true }, async (page) => {
          await page.goto(`${server.address}index.html?review=right:${encodeURIComponent(first)}`);
          assert.deepEqual(await exported(page), review([]), "under a strict policy");
          const name = await page.evaluate(() => Object.keys(localStorage).find((key) => key.startsWith("counterproof-review-")));
          for (const value of ["{", "null", "[]", '{"entries": 3}', '{"entries": [3, null, ["x", "<img>"]]}']) {
            await page.evaluate(([key, text]) => localStorage.setItem(key, text), [name, value]);
            await page.reload();
            assert.deepEqual(await exported(page), review([]), value);
          }
          const entries = [["<img src=x onerror=alert(1)>", "wrong"], ["__proto__", "right"]];
          await page.evaluate(([key, text]) => localStorage.setItem(key, text), [name, JSON.stringify({ entries })]);
          await page.reload();
          assert.equal((await exported(page)).marks.length, 2);
        });
      } finally {
        server.close();
      }
    });

    test("the page of a case shows its place in the filter, and the keys follow it", { skip: !second }, async () => {
      await inside({}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const [list, word] = await page.locator(".counts a").evaluateAll((links) => {
          const numberOf = (link) => Number(link.querySelector(".figure").textContent.replace(/\s/g, ""));
          const most = links.toSorted((a, b) => numberOf(b) - numberOf(a))[0];
          return [most.dataset.find, most.querySelector("b:not(.figure)").textContent];
        });
        await page.locator(`.counts a[data-find="${list}"]`).click();
        await page.waitForFunction(() => document.querySelectorAll("#found-rows tr").length > 0);
        const rows = await page.locator("#found-rows .case").evaluateAll((links) => links.map((link) => [link.textContent, Boolean(link.href)]));
        const [total] = (await page.locator("#found-count").textContent()).split(" ");
        const links = rows.filter(([, isLink]) => isLink).map(([id]) => id);
        if (links.length === 0) return;
        await page.locator("#found-rows a.case").first().click();
        for (const [index, id] of links.slice(0, 4).entries()) {
          await page.waitForURL((url) => decodeURIComponent(url.pathname).endsWith(`/${id}.html`));
          await placed(page);
          const at = rows.findIndex(([other]) => other === id) + 1;
          assert.equal(await page.locator("#position").textContent(), `${grouped(at)} of ${total} ${word}`);
          assert.equal(await page.locator("a[rel=prev]").count(), index > 0 ? 1 : 0);
          if (index + 1 < Math.min(links.length, 4)) await page.keyboard.press("]");
        }
        assert.equal(await page.locator("#filter").textContent(), word);
        if (links.length > 1) {
          await page.keyboard.press("[");
          await page.waitForURL((url) => decodeURIComponent(url.pathname).endsWith(`/${links[Math.min(links.length, 4) - 2]}.html`));
          await placed(page);
        }
        await page.locator("#filter").click();
        await page.waitForFunction((wanted) => document.getElementById("found-count").textContent.startsWith(`${wanted} of`), total);
        assert.equal(new URL(page.url()).hash, `#${list}`);
      });
    });

    test("a list without scripts leads to the same place", { skip: !second }, async () => {
      await inside({}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const slug = await page.locator(".counts a").first().evaluate((link) => link.dataset.find.replace("show=", ""));
        await page.goto(addressOf(root, `lists/${slug}-1.html`));
        const link = page.locator("a.case").first();
        if (await link.count() === 0) return;
        await link.click();
        await placed(page);
        assert.match(await page.locator("#position").textContent(), /^1 of [\d\u202f]+ /);
        assert.equal(new URL(page.url()).search, `?show=${slug}`);
      });
    });

    test("a case links to the cases of its pattern", async () => {
      await inside({}, async (page) => {
        for (const id of paged.slice(0, 30)) {
          await open(page, id);
          await placed(page);
          const link = page.locator("#pattern");
          if (await link.count() === 0) continue;
          const [, count] = /^All ([\d\u202f]+) cases/.exec(await link.textContent());
          await link.click();
          await page.waitForFunction((wanted) => document.getElementById("found-count").textContent.startsWith(`${wanted} of`), count);
          const found = await page.locator("#found-rows .case").allTextContents();
          assert.ok(count !== "1" && found.includes(id));
          return;
        }
      });
    });

    test("without scripts a case has its place among all cases, and nothing that marks", { skip: !first }, async () => {
      await inside({ javaScriptEnabled: false }, async (page) => {
        await open(page, first);
        const number = evaluation.cases.findIndex((entry) => entry.case_id === first) + 1;
        assert.equal(await page.locator("#position").textContent(), `case ${grouped(number)} of ${grouped(evaluation.cases.length)}`);
        assert.equal(await page.locator(".review").count(), 0);
        await page.goto(addressOf(root, "index.html"));
        assert.ok(!(await page.locator("#export").isVisible()));
      });
    });

    test("links to a step work with a filter in the address", { skip: !first }, async () => {
      await inside({}, async (page) => {
        await page.goto(`${addressOf(root, `cases/${first}.html`)}?show=%3Cimg%3E&text=%22#copy`);
        await placed(page);
        assert.ok(await page.locator("#copy").evaluate((fold) => fold.open && fold.matches(":target")));
        assert.equal(await page.locator("#position").textContent(), `case ${grouped(evaluation.cases.findIndex((entry) => entry.case_id === first) + 1)} of ${grouped(evaluation.cases.length)}`);
        assert.equal(await page.locator("main img").count(), 0);
      });
    });

    for (const colorScheme of ["light", "dark"]) {
      behaviour(`axe finds nothing with marks, ${colorScheme}`, { skip: !second }, async () => {
        await inside({ colorScheme, bypassCSP: true }, async (page) => {
          for (const mark of MARKS) {
            await open(page, first);
            await placed(page);
            await buttonOf(page, mark).click();
            assert.deepEqual(await violations(page, mark), []);
            await page.goto(`${addressOf(root, "index.html")}#sort=id`);
            await page.waitForFunction(() => document.documentElement.dataset.found);
            assert.deepEqual(await violations(page, `index, ${mark}`), []);
          }
        });
      });
    }
  });
}
