// A browser that is watched: what it asks for, what it complains about, and what runs in it that should not.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const AXE_RULES = { preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] };
export const STRICT = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'";
/** What Jenkins sends with every file of a build: no scripts at all. */
export const JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self';";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
];

/** Starts the browser that `CHROMIUM` names. */
export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/** A context without a network, and the list of what went wrong in it. */
export async function watched(browser, root, options = {}) {
  const { offline = true, allow = () => false, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline, ...rest });
  const problems = [];
  const inside = root.startsWith("http") ? root : folderUrl(root);
  context.on("request", (request) => {
    if (!request.url().startsWith(inside)) problems.push(`asked for ${request.url()}`);
  });
  context.on("requestfailed", (request) => {
    // Leaving a page ends what it was still loading.
    if (request.failure()?.errorText === "net::ERR_ABORTED") return;
    if (!allow(request.url())) problems.push(`could not load ${request.url()}`);
  });
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !allow(message.text())) problems.push(`console: ${message.text()}`);
  });
  context.on("weberror", (error) => problems.push(`page error: ${error.error().message}`));
  context.on("dialog", (dialog) => {
    problems.push(`a dialog said: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  const page = await context.newPage();
  return { context, page, problems };
}

/** The address of a folder on disk, with a slash at its end. */
export function folderUrl(folder) {
  return pathToFileURL(folder.endsWith("/") ? folder : `${folder}/`).href;
}

/** Runs a body in a watched context, and fails for anything that went wrong in it. */
export async function insideOf(browser, root, options, body) {
  const { context, page, problems } = await watched(browser, root, options);
  try {
    const result = await body(page, context);
    assert.deepEqual(problems, []);
    return result;
  } finally {
    await context.close();
  }
}

/** Opens everything that is folded, so that it is looked at too. */
export const unfold = (page) => page.evaluate(() => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));

/** As many children of one element are looked at by axe: more rows of a table or nodes of a drawing are the same again. */
const ALIKE = 40;

/** What axe says of a page as it stands, without the rest of long lists, which it takes out. */
export async function violations(page, name) {
  await page.evaluate((most) => {
    for (const list of document.querySelectorAll("main *")) [...list.children].slice(most).forEach((more) => more.remove());
  }, ALIKE);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate((rules) => window.axe.run(document, rules), AXE_RULES);
  return violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("\n")}`);
}

/** Serves a folder on the loopback with one policy. */
export async function serve(root, policy) {
  const types = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json" };
  const server = createServer((request, response) => {
    const file = path.join(root, decodeURIComponent(new URL(request.url, "http://x").pathname));
    if (!file.startsWith(root) || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[path.extname(file)] ?? "text/plain", "content-security-policy": policy });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}
