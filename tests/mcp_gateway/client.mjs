// SPDX-License-Identifier: Apache-2.0
// A session of npm's public clients. usage: client.mjs URL VERSION MODULES
// VERSION: `1` for the SDK before 2026, or what the newer one is to negotiate: `legacy`, `auto`, or a revision.
import { createRequire } from 'node:module';

const [url, version, modules] = process.argv.slice(2);
const require = createRequire(modules + '/');
const load = path => import(require.resolve(path));
const old = version === '1';
const said = {};
try {
  const { Client } = await load(old ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
  const { StreamableHTTPClientTransport } = await load(
    old ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
  const mode = version === 'auto' ? 'auto' : { pin: version };
  const client = new Client({ name: 'test', version: '1' },
    old || version === 'legacy' ? {} : { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  said.tools = (await client.listTools()).tools.map(tool => tool.name).sort();
  const call = (name, given) => client.callTool({ name, arguments: given });
  said.echo = (await call('echo', { text: 'grün', region: 'Größe' })).content[0].text;
  try {
    said.drop = (await call('drop', { table: 'users' })).content[0].text;
  } catch (refused) {
    said.refused = String(refused);
  }
  await client.close();
} catch (failed) {
  said.failed = `${failed} ${failed.cause ?? ''}`;
}
console.log(JSON.stringify(said));
process.exit(0);
