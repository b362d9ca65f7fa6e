// Every number of cases on every page is that of `evaluation.json`, and a violated rule leads to exactly the cases that it counts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { insideOf, launch } from "./browser.mjs";
import { addressOf, casePagesOf, evaluationOf, grouped, nameOf, REPORTS } from "./report.mjs";

const WORDS = {
  regressed: "worse", broken: "failed", still_broken: "failed", invalid: "not-compared", missing: "not-compared", added: "not-compared",
  not_comparable: "not-compared", changed: "different", undecided: "different", noisy: "noise", improved: "better", recovered: "better", unchanged: "same",
};

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const inside = (root, options, body) => insideOf(browser, root, options, body);
const numberOf = (text) => Number(text.replace(/\D/g, ""));
/** The first number of a text; thousands are set apart by a space. */
const firstNumber = (text) => Number(/\d+(?:\s\d{3})*/.exec(text)[0].replace(/\s/g, ""));
const sorted = (ids) => [...ids].sort();

/** The ids of the cases of a list, over all its pages. The pages are read as files: without scripts, they show what is in them. */
function listed(root, list) {
  const ids = [];
  for (let page = list; page;) {
    const html = readFileSync(path.join(root, page), "utf8");
    ids.push(...[...html.matchAll(/class="case"[^>]*>([^<]*)</g)].map(([, id]) => id));
    const [next] = html.match(/<a [^>]*rel="next"[^>]*>/) ?? [];
    page = next ? path.posix.join(path.posix.dirname(page), /href="([^"]*)"/.exec(next)[1]) : null;
  }
  return ids;
}

/** The cases that failed in `junit.xml`. An id is written there as on the pages. */
function failedInJunit(root) {
  const xml = readFileSync(path.join(root, "junit.xml"), "utf8");
  const cases = xml.slice(xml.indexOf('<testsuite name="counterproof.cases"'));
  return [...cases.matchAll(/<testcase name="([^"]*)"[^>]*>\s*<(?:failure|error)\b/g)].map(([, name]) => name);
}

for (const root of REPORTS) {
  const evaluation = evaluationOf(root);
  const isAlone = evaluation.notices?.some((notice) => notice.code === "no-baseline");
  describe(nameOf(root), { concurrency: 2, skip: isAlone && "a report without a baseline has other words" }, () => {
    const idsBy = (wanted) => evaluation.cases.filter(wanted).map((entry) => entry.case_id);
    const words = [...new Set(evaluation.cases.map(({ verdict }) => WORDS[verdict]))];
    const ofWord = (word) => idsBy(({ verdict }) => WORDS[verdict] === word);

    test("bar, counts and chips have the numbers of the evaluation", async () => {
      const expected = Object.fromEntries(words.map((word) => [word, ofWord(word).length]));
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const read = (links) => links.map((link) => [link.dataset.find.replace("show=", ""), link.querySelector(".figure").textContent]);
        const counted = (entries) => Object.fromEntries(entries.map(([word, text]) => [word, numberOf(text)]));
        assert.deepEqual(counted(await page.locator(".counts a").evaluateAll(read)), expected);
        const chips = counted(await page.locator(".chips a[data-find]").evaluateAll(read));
        for (const [word, number] of Object.entries({ ...expected, "": evaluation.cases.length })) assert.equal(chips[word], number, word);
        assert.equal(numberOf(await page.locator("#numbers").textContent()), evaluation.cases.length);
        const compared = await page.locator(".top nav > .soft").last().textContent();
        assert.equal(firstNumber(compared), evaluation.cases.length);
        // The bar says in words what it shows: a number for each result, and in brackets how many are unconfirmed.
        const said = (await page.locator("svg.bar").getAttribute("aria-label")).replace(/\([^)]*\)/g, "").split(/, | and /).map(firstNumber);
        assert.deepEqual(said.toSorted((one, other) => one - other), Object.values(expected).toSorted((one, other) => one - other));
      });
    });

    test("each chip leads to as many cases as it says, with and without scripts, and those of a result are its cases", async () => {
      const chips = await inside(root, { javaScriptEnabled: false }, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const links = await page.locator(".chips a[data-find]").evaluateAll((all) => all.map((link) => [link.dataset.find, link.querySelector(".figure").textContent, link.getAttribute("href")]));
        for (const [find, text, href] of links) {
          const ids = listed(root, href);
          assert.equal(new Set(ids).size, ids.length, `${find} has no case twice`);
          assert.equal(ids.length, numberOf(text), find);
          const word = find.replace("show=", "");
          if (words.includes(word)) assert.deepEqual(sorted(ids), sorted(ofWord(word)), word);
          if (word === "") assert.deepEqual(sorted(ids), sorted(idsBy(() => true)));
        }
        return links;
      });
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        for (const [find, text] of chips.filter(([find]) => find)) {
          await page.evaluate((hash) => { location.hash = hash; }, find);
          await page.waitForFunction((wanted) => document.getElementById("found-count").textContent.startsWith(wanted), `${grouped(numberOf(text))} of ${grouped(evaluation.cases.length)} `);
        }
      });
    });

    test("the groups of the first page have all cases once, and their lists as many as they say", async () => {
      await inside(root, { javaScriptEnabled: false }, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const groups = await page.locator("#overview .group th").evaluateAll((heads) => heads.map((head) => {
          const rows = head.closest("tbody").querySelectorAll("tr:not(.group)").length;
          return { count: head.querySelector("span").firstChild.textContent, rows, list: head.querySelector("a")?.getAttribute("href") };
        }));
        const total = groups.reduce((sum, { count }) => sum + firstNumber(count), 0);
        // What has no room is counted in a sentence below.
        if (await page.locator("#overview > p").count() === 0) assert.equal(total, evaluation.cases.length);
        for (const { count, rows, list } of groups) {
          if (list) assert.equal(listed(root, list).length, firstNumber(count));
          else assert.equal(rows, firstNumber(count));
        }
      });
    });

    test("each suite has its cases", async () => {
      await inside(root, { javaScriptEnabled: false }, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const link = page.locator(".chips a.plain-link");
        if (await link.count() === 0) return;
        await page.goto(await link.evaluate(({ href }) => href));
        const suites = await page.locator(".suites tbody tr").evaluateAll((rows) => rows.map((row) => ({
          depth: Number(row.querySelector("th").className.replace("depth-", "")), name: row.querySelector("th").textContent,
          numbers: [...row.querySelectorAll("td")].slice(0, 2).map((cell) => cell.textContent), list: row.querySelector("a")?.getAttribute("href"),
        })));
        const totals = suites.filter(({ depth }) => depth === 1).map(({ numbers }) => numbers.map(numberOf));
        const bad = ofWord("worse").length + ofWord("failed").length;
        assert.deepEqual([0, 1].map((column) => totals.reduce((sum, numbers) => sum + numbers[column], 0)), [evaluation.cases.length, bad]);
        const isBad = new Set([...ofWord("worse"), ...ofWord("failed")]);
        const suiteOf = new Map(evaluation.cases.map((entry) => [entry.case_id, entry.suite]));
        for (const { name, numbers, list } of suites.filter((suite) => suite.list)) {
          const ids = listed(root, `lists/${list}`);
          assert.deepEqual(numbers.map(numberOf), [ids.length, ids.filter((id) => isBad.has(id)).length], name);
          const of = new Set(ids.map((id) => suiteOf.get(id)));
          assert.equal(of.size, 1, `${name} has the cases of ${[...of]}`);
        }
      });
    });

    test("each rule has the number of the evaluation, and a violated one leads to exactly its cases", async () => {
      await inside(root, { javaScriptEnabled: false }, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const rules = await page.locator(".gate-rules tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map(({ textContent }) => textContent)));
        assert.deepEqual(rules.map(([, actual, , is]) => [numberOf(actual), is === "violated"]), evaluation.gate.rules.map(({ actual, passed }) => [actual, !passed]));
        const violated = await page.locator(".violated li").evaluateAll((items) => items.map((item) => ({
          sentence: item.querySelector("b").textContent, cases: [...item.querySelectorAll(".case")].map(({ textContent }) => textContent),
          list: item.querySelector("a[data-find]")?.getAttribute("href"),
        })));
        const headline = await page.locator("h1").textContent();
        // A rule without cases of its own is not listed again where the headline says it.
        const unlisted = evaluation.gate.rules.filter(({ passed }) => !passed).length - violated.length;
        assert.ok(unlisted === 0 || (unlisted === 1 && violated.every(({ sentence, cases }) => cases.length > 0 || !headline.includes(sentence))));
        const reached = new Set();
        for (const { sentence, cases, list } of violated) {
          const ids = list ? listed(root, list) : cases;
          if (ids.length > 0) assert.equal(ids.length, firstNumber(sentence), sentence);
          assert.deepEqual(cases.filter((id) => !ids.includes(id)), [], sentence);
          ids.forEach((id) => reached.add(id));
        }
        const failed = failedInJunit(root);
        if (!root.includes("hostile")) assert.deepEqual(sorted(reached), sorted(failed));
        else assert.equal(reached.size, failed.length);
      });
    });

    test("the numbers of both sides are there where the evaluation has them", async () => {
      const known = new Set((evaluation.usage ?? []).map(({ code }) => code.replace("_", " ")));
      await inside(root, {}, async (page) => {
        await page.goto(addressOf(root, "index.html"));
        const rows = await page.locator(".numbers tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map(({ textContent }) => textContent)));
        const [rate, ...names] = rows.map(([name]) => name.split(",")[0]);
        // Where no expectation was judged, an answer is all that is known of a run.
        assert.ok(["solved", "answered", "with evidence"].includes(rate), rate);
        assert.deepEqual(names, ["duration", "steps", "tool time", "tokens", "cost"]);
        const solved = (evaluation.suite ?? []).find(({ code }) => code === "solved");
        if (solved) assert.deepEqual(rows[0].slice(1, 3), [solved.baseline, solved.new].map(({ passed, runs }) => `${passed}/${runs}`));
        // The time of tools that are simulated can be longer than the whole.
        for (const [name, baseline, side] of rows.slice(1).filter(([name]) => name !== "tool time")) {
          assert.deepEqual([baseline !== "–", side !== "–"], [known.has(name), known.has(name)], name);
        }
      });
    });

    test("the page of a case has the result of the evaluation", async () => {
      await inside(root, {}, async (page) => {
        for (const name of casePagesOf(root, 12).filter((page) => !page.includes(".run-"))) {
          await page.goto(addressOf(root, name));
          const id = await page.locator(".top .case-id").textContent();
          const found = evaluation.cases.find((entry) => entry.case_id === id);
          const classes = await page.locator(".answer .chip").first().getAttribute("class");
          if (found.verdict !== "added") assert.deepEqual(classes, `chip ${WORDS[found.verdict]}`, name);
        }
      });
    });
  });
}
