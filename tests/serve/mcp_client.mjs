// SPDX-License-Identifier: Apache-2.0
// A session of a public MCP client with `agentic-ci mcp`. usage: mcp_client.mjs MODULES VERSION BINARY
// VERSION: `1` for the SDK before 2026, or what the newer one is to negotiate: `legacy`, `auto`, or a revision.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [modules, version, binary] = process.argv.slice(2);
const require = createRequire(modules + '/');
const load = path => import(require.resolve(path));
const old = version === '1';
const { Client } = await load(old ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const { StdioClientTransport } = await load(
  old ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio');
const mode = version === 'auto' ? 'auto' : { pin: version };
const client = new Client({ name: 'test', version: '1' },
  old || version === 'legacy' ? {} : { versionNegotiation: { mode } });
await client.connect(new StdioClientTransport({ command: binary, args: ['mcp'], env: process.env }));
if (!old) {
  assert.equal(client.getNegotiatedProtocolVersion(), version === 'legacy' ? '2025-11-25' : '2026-07-28');
}
assert.equal(client.getServerVersion().name, 'agentic-ci');
const { tools } = await client.listTools();
assert.deepEqual(tools.map(tool => tool.name),
  ['run_command', 'read_file', 'write_file', 'diff', 'reset', 'snapshot']);

const call = async (name, given = {}, options = undefined) => {
  const params = { name, arguments: given };
  const result = await (old ? client.callTool(params, undefined, options) : client.callTool(params, options));
  if (!result.isError) assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result;
};
const ran = (await call('run_command', { command: 'cat a.txt; echo two >&2; v=1; (exit 3)' })).structuredContent;
assert.equal(ran.output, 'alpha\ntwo\n');
assert.equal(ran.status, 3);
await call('write_file', { path: 'made/by/model.txt', text: 'täxt\n', sandbox: ran.sandbox });
assert.equal((await call('read_file', { path: 'made/by/model.txt' })).structuredContent.text, 'täxt\n');
assert.match((await call('diff')).structuredContent.patch, /\+täxt/);
assert.equal((await call('read_file', { path: 'none' })).isError, true);
assert.equal((await call('run_command', { cmd: 'true' })).isError, true);
await assert.rejects(call('no_such_tool'), error => error.code === -32602);
const stop = new AbortController();
setTimeout(() => stop.abort(), 300);
await assert.rejects(call('run_command', { command: 'sleep 1000' }, { signal: stop.signal }));
assert.equal((await call('run_command', { command: 'echo "$v"' })).structuredContent.output, '1\n');
await call('reset');
assert.equal((await call('diff')).structuredContent.patch, '');
assert.equal(readFileSync('a.txt', 'utf8'), 'alpha\n');
await client.close();
console.log('done');
