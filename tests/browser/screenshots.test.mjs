// Ten states of the pages, compared with accepted pictures in `accepted/`. `UPDATE_SCREENSHOTS=1` renews the pictures.
//
// Both pictures are made four times smaller first, so that only layout and colours count, not how letters are drawn. A state fails if more
// than `SHARE` of the points differ, or the tint of a square of 64 pixels. Where the fonts have other widths than those of the accepted
// pictures, lines break elsewhere: then the test is skipped.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { insideOf, launch } from "./browser.mjs";
import { addressOf, nameOf, REPORTS } from "./report.mjs";

const ACCEPTED = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "accepted");
const FONTS = path.join(ACCEPTED, "fonts.json");
const OUT = process.env.SCREENSHOTS ?? "screenshots";
const UPDATE = process.env.UPDATE_SCREENSHOTS === "1";
/** The share of points that may differ, and by how much of 255 a point may differ. */
const SHARE = 0.005;
const LEVEL = 40;
/** By how much the mean tint of a square, red or blue less green, may differ. Letters that are drawn otherwise keep their tint. */
const TINT = 5;

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 390, height: 844 };
const CANCEL = "cases/cancel-three-bookings.html";
const STATES = [
  { name: "index", report: "real", page: "index.html" },
  { name: "index-dark", report: "real", page: "index.html", dark: true },
  { name: "index-390", report: "real", page: "index.html", viewport: NARROW },
  { name: "rows", report: "real", page: "index.html", at: "#cases" },
  { name: "rows-390-dark", report: "real", page: "index.html#show=different", viewport: NARROW, dark: true, at: "#found" },
  { name: "all-broken", report: "broken", page: "index.html" },
  { name: "suites", report: "real", page: "lists/suites.html" },
  { name: "case", report: "real", page: CANCEL },
  { name: "case-390", report: "real", page: CANCEL, viewport: NARROW },
  { name: "case-steps-dark", report: "real", page: "cases/certificate-for-delay.html#divergence", dark: true },
];

let browser;
let fonts;
before(async () => {
  browser = await launch();
  const page = await browser.newPage();
  fonts = await page.evaluate(() => {
    const context = document.createElement("canvas").getContext("2d");
    const widthIn = (font) => {
      context.font = font;
      return Math.round(context.measureText("Do not ship: 3 cases always fail → 1,671 USD").width);
    };
    return ["24px system-ui", "bold 24px system-ui", "24px ui-monospace, Menlo, Consolas, 'Liberation Mono', monospace"].map(widthIn);
  });
  await page.close();
  if (UPDATE) {
    mkdirSync(ACCEPTED, { recursive: true });
    writeFileSync(FONTS, `${JSON.stringify(fonts)}\n`);
  }
});
after(() => browser?.close());

/** Compares two PNG files in a page: the share of points and the number of squares that differ, and a picture of them. */
async function compare(accepted, taken) {
  const page = await browser.newPage();
  try {
    return await page.evaluate(async ([one, other, level, tint]) => {
      const images = await Promise.all([one, other].map(async (source) => createImageBitmap(await (await fetch(`data:image/png;base64,${source}`)).blob())));
      const sizes = images.map(({ width, height }) => `${width} × ${height}`);
      if (sizes[0] !== sizes[1]) return { share: 1, why: `the accepted one has ${sizes[0]} pixels, this one ${sizes[1]}` };
      const width = Math.round(images[0].width / 4);
      const height = Math.round(images[0].height / 4);
      const points = images.map((image) => {
        const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
        context.imageSmoothingQuality = "high";
        context.drawImage(image, 0, 0, width, height);
        return context.getImageData(0, 0, width, height);
      });
      const canvas = Object.assign(document.createElement("canvas"), { width, height });
      const drawn = new ImageData(new Uint8ClampedArray(points[1].data), width, height);
      let differing = 0;
      for (let at = 0; at < drawn.data.length; at += 4) {
        const most = Math.max(...[0, 1, 2].map((channel) => Math.abs(points[0].data[at + channel] - points[1].data[at + channel])));
        if (most > level) {
          differing += 1;
          drawn.data.set([255, 0, 255, 255], at);
        }
      }
      const context = canvas.getContext("2d");
      context.putImageData(drawn, 0, 0);
      context.strokeStyle = "#f0f";
      const SQUARE = 16;
      let tinted = 0;
      for (let top = 0; top < height; top += SQUARE) {
        for (let left = 0; left < width; left += SQUARE) {
          const means = points.map(({ data }) => {
            const sums = [0, 0];
            for (let y = top; y < Math.min(top + SQUARE, height); y += 1) {
              for (let x = left; x < Math.min(left + SQUARE, width); x += 1) {
                const at = (y * width + x) * 4;
                sums[0] += data[at] - data[at + 1];
                sums[1] += data[at + 2] - data[at + 1];
              }
            }
            return sums.map((sum) => sum / SQUARE ** 2);
          });
          if (means[0].some((mean, index) => Math.abs(mean - means[1][index]) > tint)) {
            tinted += 1;
            context.strokeRect(left + 0.5, top + 0.5, SQUARE - 1, SQUARE - 1);
          }
        }
      }
      return { share: differing / (width * height), tinted, diff: canvas.toDataURL("image/png").split(",")[1] };
    }, [accepted.toString("base64"), taken.toString("base64"), LEVEL, TINT]);
  } finally {
    await page.close();
  }
}

describe("screenshots", { concurrency: 2 }, () => {
  for (const { name, report, page: address, viewport = WIDE, dark = false, at } of STATES) {
    test(name, async (context) => {
      const root = REPORTS.find((folder) => nameOf(folder) === report);
      assert.ok(root, `REPORTS has no report ${report}`);
      const [file, hash] = address.split("#");
      const taken = await insideOf(browser, root, { viewport, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" }, async (page) => {
        await page.goto(addressOf(root, file) + (hash ? `#${hash}` : ""));
        if (hash?.includes("=")) await page.waitForFunction(() => document.documentElement.dataset.found);
        if (at) await page.locator(at).evaluate((element) => element.scrollIntoView());
        return page.screenshot({ caret: "hide", animations: "disabled" });
      });
      const accepted = path.join(ACCEPTED, `${name}.png`);
      if (UPDATE) return writeFileSync(accepted, taken);
      const widths = existsSync(FONTS) ? JSON.parse(readFileSync(FONTS, "utf8")) : [];
      if (widths.join() !== fonts.join()) return context.skip(`the fonts have other widths than those of the accepted pictures: ${fonts}, not ${widths}`);
      const { share, tinted, diff, why } = await compare(readFileSync(accepted), taken);
      if (share <= SHARE && tinted === 0) return undefined;
      mkdirSync(OUT, { recursive: true });
      const here = path.join(OUT, `${name}.png`);
      writeFileSync(here, taken);
      if (diff) writeFileSync(path.join(OUT, `${name}.diff.png`), Buffer.from(diff, "base64"));
      return assert.fail(`${here} differs from ${accepted}: ${why ?? `${(share * 100).toFixed(1)} % of the points and the tint of ${tinted} squares, see ${name}.diff.png next to it`}. Accept it with UPDATE_SCREENSHOTS=1`);
    });
  }
});
