// Prints the conformance cases of an installed `@bufbuild/cel-spec` as JSON lines: the path of a case and its fields.
// Usage: node convert.mjs FOLDER_OF_NODE_MODULES
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const file = join(process.argv[2], "@bufbuild/cel-spec/dist/esm/testdata/conformance.js");
const { tests } = await import(pathToFileURL(file));

function print(suite, path) {
  for (const { original } of suite.tests ?? []) {
    console.log(JSON.stringify({ path: [...path, original.name].join("/"), ...original }));
  }
  for (const inner of suite.suites ?? []) {
    print(inner, [...path, inner.name]);
  }
}

for (const suite of tests.suites) {
  print(suite, [suite.name]);
}
