// A browser that is watched: what it asks for, what it complains about, and what runs in it that should not.
import { chromium } from "playwright-core";
import { pathToFileURL } from "node:url";

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
