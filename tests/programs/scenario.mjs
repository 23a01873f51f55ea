// SPDX-License-Identifier: Apache-2.0
// A user's program, for Node. usage: scenario.mjs AGENTIC-CI [COMMAND]   In a checkout; with COMMAND it starts that and waits to be killed.
import assert from 'node:assert/strict';
import { AgenticCiError, Server } from 'agentic-ci-client';

const server = await Server.start(process.argv[2]);
const box = await server.create({ name: 'one' });
if (process.argv[3]) {
  await box.start(process.argv[3]);
  console.log('holds');
  await new Promise((done) => setTimeout(done, 1e6));
}
// Output comes as it is written, and input goes to it.
const echo = await box.start('while read -r x; do echo "got $x"; done; echo end >&2; exit 3', { input: true });
await echo.write(Buffer.from('first\n'));
const seen = [];
let result = await echo.wait({
  onOutput: (stream, data) => {
    seen.push([stream, data.toString()]);
    if (seen.length === 1) echo.write(Buffer.from('second\n'), true);
  },
});
assert.deepEqual(seen, [['stdout', 'got first\n'], ['stdout', 'got second\n'], ['stderr', 'end\n']]);
assert.deepEqual([result.status, result.reason], [3, 'exit']);
// More than any window.
const much = Buffer.alloc(5_000_000, 0xff);
assert.ok((await box.exec(['cat'], { input: much })).stdout.equals(much));
result = await box.exec('echo "$x $PWD"', { env: { x: "it's" }, directory: '/tmp' });
assert.equal(result.stdout.toString(), "it's /tmp\n");
// Ends by others.
assert.equal((await box.exec('sleep 1000', { timeout: '1s' })).reason, 'timeout');
const stop = new AbortController();
result = await box.exec('echo runs; sleep 1000', { signal: stop.signal, onOutput: () => stop.abort() });
assert.equal(result.reason, 'cancelled');
// Files.
const bytes = Buffer.from([255, 0, 10]);
await box.put('/tmp/new/data', bytes, true);
assert.ok((await box.get('/tmp/new/data')).equals(bytes));
result = await box.exec('test -x /tmp/new/data; echo changed > a.txt');
assert.deepEqual(result.changes, [{ kind: 'modified', path: 'a.txt' }]);
assert.match((await box.diff()).patch.toString(), /\+changed/);
await box.snapshot({ tag: 'scenario' });
await box.reset();
assert.deepEqual((await box.diff()).changes, []);
await box.restore('scenario');
assert.equal((await box.get('a.txt')).toString(), 'changed\n');
// Requests.
const enough = new AbortController();
const records = [];
const events = box.events((record) => {
  records.push(JSON.stringify(record));
  enough.abort();
}, enough.signal);
while (!records.length) { // The first may be earlier than the server sends them.
  result = await box.exec('curl -s -m 20 http://refused.invalid/');
  assert.deepEqual(result.refused.map((one) => one.host), ['refused.invalid']);
}
await events.catch(() => {});
assert.match(records[0], /refused\.invalid/);
// Errors.
await assert.rejects(server.call('exec', { sandbox: 'none', script: 'true' }), (error) => {
  assert.ok(error instanceof AgenticCiError);
  assert.deepEqual([error.exitCode, error.kind, error.hint], [66, 'not_found', 'agentic-ci sandbox list']);
  return true;
});
assert.equal((await box.apply()).files, 1);
await box.delete();
assert.deepEqual((await server.call('list')).sandboxes, []);
await server.close();
await assert.rejects(server.call('list'), (error) => error.kind === 'ended');
console.log('done');
