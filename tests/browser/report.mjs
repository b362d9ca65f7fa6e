// A report as files: its pages, their links and ids, and which cases it holds.
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The folders of the reports that are looked at. */
export const REPORTS = (process.env.REPORTS ?? "").split("\n").filter(Boolean);

/** The folder's name, or that of the folder around it. */
export const nameOf = (root) => (path.basename(root) === "report" ? path.basename(path.dirname(root)) : path.basename(root));

/** Whether the report is not that of an attacker, whose texts are of any length. */
export const isUsual = (root) => !root.includes("hostile");

/** Whether the report is one more of the same program, of which only what its content changes is looked at. */
export const isAlike = (root) => ["guard", "large", "broken", "real"].includes(nameOf(root));

/** The pages of a report by their path within it, sorted. */
export function pagesOf(root) {
  const below = (folder) => readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "artifacts" ? [] : below(name);
    return name.endsWith(".html") ? [name] : [];
  });
  return below("").sort();
}

/** A number as on the pages: with a narrow space between each three digits. */
export const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

export const addressOf = (root, page) => pathToFileURL(path.join(root, page)).href;

export const evaluationOf = (root) => JSON.parse(readFileSync(path.join(root, "evaluation.json"), "utf8"));

const decoded = (value) => value.replaceAll("&#38;", "&").replaceAll("&#39;", "'").replaceAll("&#34;", '"').replaceAll("&#60;", "<").replaceAll("&#62;", ">");

// Within a tag only: a text may say anything with quotes, and no angle bracket that is not escaped.
function attributes(html, name) {
  const pattern = new RegExp(` ${name}="([^"]*)"`, "g");
  return [...html.matchAll(/<[^<>]*>/g)].flatMap(([tag]) => [...tag.matchAll(pattern)].map((found) => decoded(found[1])));
}

/** Links of all pages that lead to no file or to no element. A link out of the folder is to a page next to it, such as the history. */
export function brokenLinks(root) {
  const pages = pagesOf(root);
  const ids = new Map();
  const idsOf = (page) => {
    if (!ids.has(page)) ids.set(page, new Set(attributes(readFileSync(path.join(root, page), "utf8"), "id")));
    return ids.get(page);
  };
  const broken = [];
  let count = 0;
  for (const page of pages) {
    const html = readFileSync(path.join(root, page), "utf8");
    for (const link of [...attributes(html, "href"), ...attributes(html, "src")]) {
      count += 1;
      const url = new URL(link, addressOf(root, page));
      // A path from the root of the disk works on one machine only.
      if (url.protocol !== "file:" || /^(\/|file:)/.test(link)) {
        broken.push(`${page}: ${link} leads out of the report`);
        continue;
      }
      const file = fileURLToPath(url.href.split("#")[0]);
      const isNear = file.startsWith(`${path.dirname(root)}${path.sep}`);
      if (!isNear || !existsSync(file) || !statSync(file).isFile()) broken.push(`${page}: ${link} leads to no file`);
      else if (url.hash && file.startsWith(`${root}${path.sep}`) && !idsOf(path.relative(root, file)).has(decodeURIComponent(url.hash.slice(1)))) {
        broken.push(`${page}: ${link} leads to no element`);
      }
    }
  }
  return { count, broken };
}

/** The pages of cases, or pages from all over the report where it has more than `most`. */
export function casePagesOf(root, most) {
  const pages = pagesOf(root).filter((page) => page.startsWith("cases/"));
  return pages.length <= most ? pages : pages.filter((_, index) => index % Math.ceil(pages.length / most) === 0);
}

/** One page of each kind: the first page, a list, the suites, a run of its own, and of each verdict the case with the most to show. */
export function kindsOf(root) {
  const pages = new Set(pagesOf(root));
  const kinds = ["index.html"];
  const lists = [...pages].filter((page) => page.startsWith("lists/"));
  const patterns = lists.filter((page) => page.includes("/pattern-"));
  const runs = [...pages].filter((page) => page.includes(".run-"));
  kinds.push(...lists.slice(0, 1), ...patterns.slice(0, 1), ...lists.filter((page) => page.endsWith("/suites.html")), ...runs.slice(0, 1));
  const largest = new Map();
  for (const { case_id: id, verdict } of evaluationOf(root).cases) {
    const page = `cases/${id}.html`;
    if (!pages.has(page)) continue;
    const size = statSync(path.join(root, page)).size;
    if (size > (largest.get(verdict)?.size ?? 0)) largest.set(verdict, { page, size });
  }
  kinds.push(...[...largest.values()].map(({ page }) => page).sort());
  return kinds;
}
