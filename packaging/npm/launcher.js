#!/usr/bin/env node
// Starts the program of the same name from the package of this platform.
"use strict";
const { spawn } = require("node:child_process");
const path = require("node:path");

const name = path.basename(__filename, ".js");
const platform = `@counterproof/${process.platform}-${process.arch}`;
let program;
try {
  program = path.join(path.dirname(require.resolve(`${platform}/package.json`)), "bin", name);
} catch {
  console.error(`error: the package ${platform} is not installed: there is no program for this platform, or optional`);
  console.error("dependencies were left out (`npm install --include=optional`)");
  process.exit(3);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // A terminal sends its signal to the child as well, and a second one would have another meaning.
  process.on(signal, () => (signal === "SIGINT" && process.stdin.isTTY) || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: cannot start ${program}: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
