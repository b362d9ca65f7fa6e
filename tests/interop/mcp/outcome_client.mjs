// An agent with the TypeScript SDK, which prints what each call to a guarded server gives it. See outcome_client.py.
//
// Usage: outcome_client.mjs SDK COUNTERPROOF NODE SERVERS FOLDER

import { writeFileSync } from "node:fs";

const [sdk, counterproof, node, servers, folder] = process.argv.slice(2);
const { Client } = await import(`${sdk}/dist/esm/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/dist/esm/client/stdio.js`);

const everything = [node, `${servers}/@modelcontextprotocol/server-everything/dist/index.js`];
const files = [node, `${servers}/@modelcontextprotocol/server-filesystem/dist/index.js`, folder];
const script = 'exec 3<&0; "$@" <&3 & while [ ! -e stop ]; do sleep 0.1; done; kill -9 $!; exit 3';

async function connect(name, command) {
  const args = ["guard", "shim", "--server-name", name, "--", ...command];
  const client = new Client({ name: "outcome", version: "1.0.0" });
  await client.connect(new StdioClientTransport({ command: counterproof, args }));
  return client;
}

async function show(situation, call) {
  let line;
  try {
    const result = await call;
    const text = result.content.map((part) => part.text ?? "").join("");
    line = [situation, "result", (result.isError ? "isError: " : "") + text];
  } catch (error) {
    line = [situation, "raised", `${error.constructor.name}: ${error.message}`];
  }
  console.log(JSON.stringify(line));
}

const call = (client, name, args = {}) => client.callTool({ name, arguments: args });
const [one, two] = [await connect("everything", everything), await connect("files", files)];
await show("block", call(one, "get-sum", { a: 1, b: 2 }));
await call(one, "echo", { message: "hello" });
await call(one, "echo", { message: "hello" });
await call(two, "list_allowed_directories");
await show("budget", call(two, "list_allowed_directories"));
await one.close();
await two.close();

const crashing = await connect("crashing", ["sh", "-c", script, "sh", ...everything]);
const open = show("crash", call(crashing, "trigger-long-running-operation", { duration: 300, steps: 1 }));
await crashing.listTools();
writeFileSync("stop", "");
await open;
await crashing.close();
