// SPDX-License-Identifier: Apache-2.0
// Posting against a GitHub that remembers. Every request of ours, and every answer of the service, is
// judged by GitHub's own OpenAPI description.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { ACTIONS_BOT, GitHubService } from '../services/github/service.mjs';

const MARKER = '<!-- agentic-ci:ci/agent -->';
const MALLORY = { id: 666, login: 'mallory', type: 'User' };
const OTHER_BOT = { id: 667, login: 'other[bot]', type: 'Bot' };
let contract;
let folder;

before(() => {
  contract = Contract.load(process.env.MODULES);
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'post_test.'));
});
after(() => fs.rmSync(folder, { recursive: true }));

let bodies = 0;
function post(service, body, { token = 'token-actions', number = 7, repository = 'acme/site',
                              marker = 'ci/agent', seconds = 60, url = service.url, env = {} } = {}) {
  const file = path.join(folder, `body-${bodies++}`);
  fs.writeFileSync(file, body);
  const started = Date.now();
  return new Promise((resolve) => {
    execFile(process.env.PROBE, ['post', url, repository, String(number), marker, file, String(seconds)],
             { env: { POST_TOKEN: token, ...env } }, (error, stdout) => {
      assert.ok(!error?.signal, `ended by ${error?.signal}`);
      assert.ok(!stdout.includes(token) || token === '', 'the token is in the output');
      resolve({ ...JSON.parse(stdout), ok: !error, ms: Date.now() - started });
    });
  });
}

// Runs `act` with a service of its own; nothing in it may have been against the contract.
function claim(name, act, options = {}) {
  it(name, async () => {
    const service = await new GitHubService({ contract, ...options }).start();
    try {
      await act(service);
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });
}

const count = (service, start) => service.requests.filter((r) => r.startsWith(start)).length;

describe('one comment per pull request', () => {
  claim('the first post creates, the second updates in place', async (service) => {
    const first = await post(service, '# one\n');
    assert.ok(first.ok, first.what);
    assert.equal(first.created, true);
    const second = await post(service, '# two\n');
    assert.equal(second.created, false);
    assert.equal(second.id, first.id);
    assert.match(second.url, /^https:\/\/github\.com\/acme\/site\/pull\/7#issuecomment-\d+$/);
    assert.deepEqual(service.comments.map((c) => c.body), [`${MARKER}\n# two\n`]);
  });

  claim('two markers are two comments', async (service) => {
    await post(service, 'a', { marker: 'ci/agent' });
    await post(service, 'b', { marker: 'ci/agent2' });
    await post(service, 'c', { marker: 'ci/agent' });
    assert.deepEqual(service.comments.map((c) => c.body),
                     [`${MARKER}\nc`, '<!-- agentic-ci:ci/agent2 -->\nb']);
  });

  claim('a comment of somebody else that carries our marker is left alone', async (service) => {
    service.comment(MALLORY, `${MARKER}\nmine now`);
    service.comment(OTHER_BOT, `${MARKER}\nmine too`);
    service.comment(null, `${MARKER}\na deleted account's`);
    const outcome = await post(service, 'ours');
    assert.equal(outcome.created, true);
    await post(service, 'ours again');
    assert.deepEqual(service.comments.map((c) => c.body),
                     [`${MARKER}\nmine now`, `${MARKER}\nmine too`, `${MARKER}\na deleted account's`,
                      `${MARKER}\nours again`]);
  });

  claim('our other comments are left alone, also when they quote the marker', async (service) => {
    service.comment(ACTIONS_BOT, 'a linter was here');
    service.comment(ACTIONS_BOT, `> ${MARKER}\nquoted`);
    await post(service, 'report');
    assert.equal(service.comments.length, 3);
    assert.equal(service.comments[0].body, 'a linter was here');
  });

  claim('ours is found on the last of many pages', async (service) => {
    for (let i = 0; i < 250; i++) service.comment(MALLORY, `comment ${i}`);
    const ours = service.comment(ACTIONS_BOT, `${MARKER}\nold`);
    const outcome = await post(service, 'new');
    assert.equal(outcome.id, ours.id);
    assert.equal(count(service, 'GET /repos/'), 3);
    assert.equal(ours.body, `${MARKER}\nnew`);
  });

  claim('comments left double are brought together on the oldest', async (service) => {
    const oldest = service.comment(ACTIONS_BOT, `${MARKER}\na`);
    service.comment(ACTIONS_BOT, `${MARKER}\nb`);
    service.comment(ACTIONS_BOT, `${MARKER}\r\nc`);
    await post(service, 'd');
    assert.deepEqual(service.comments.map((c) => [c.id, c.body]), [[oldest.id, `${MARKER}\nd`]]);
  });

  claim('a comment deleted between looking and writing is made again', async (service) => {
    service.comment(ACTIONS_BOT, `${MARKER}\nold`);
    service.hooks.push({ method: 'PATCH', path: '', times: 1, run: (s) => { s.comments = []; } });
    const outcome = await post(service, 'new');
    assert.ok(outcome.ok, outcome.what);
    assert.equal(outcome.created, true);
    assert.deepEqual(service.comments.map((c) => c.body), [`${MARKER}\nnew`]);
  });

  claim('posts at the same moment end on one comment', async (service) => {
    const outcomes = await Promise.all([1, 2, 3, 4].map((i) => post(service, `text ${i}`)));
    for (const outcome of outcomes) assert.ok(outcome.ok, outcome.what);
    assert.equal(service.comments.length, 1);
    assert.match(service.comments[0].body, /^<!-- agentic-ci:ci\/agent -->\ntext [1-4]$/);
  });

  claim('a post that finds an older one after its own moves there and takes its own back', async (service) => {
    // The other post's comment becomes visible only between our listing and our creation.
    service.hooks.push({ method: 'POST', path: '/comments', times: 1,
                         run: (s) => s.comment(ACTIONS_BOT, `${MARKER}\nthe other's`) });
    const outcome = await post(service, 'ours');
    assert.equal(outcome.created, false);
    assert.deepEqual(service.comments.map((c) => [c.id, c.body]), [[outcome.id, `${MARKER}\nours`]]);
  });
});

describe('whose comment it is', () => {
  claim("a person's token is known by GET /user", async (service) => {
    service.allow('token-person', MALLORY);
    service.comment(ACTIONS_BOT, `${MARKER}\nthe bot's`);
    await post(service, 'a', { token: 'token-person' });
    await post(service, 'b', { token: 'token-person' });
    assert.deepEqual(service.comments.map((c) => [c.author.login, c.body]),
                     [['github-actions[bot]', `${MARKER}\nthe bot's`], ['mallory', `${MARKER}\nb`]]);
    assert.equal(count(service, 'POST /graphql'), 0);
  });

  claim("an application's token is known by GraphQL", async (service) => {
    service.allow('token-app', OTHER_BOT, { installation: true });
    service.comment(ACTIONS_BOT, `${MARKER}\nthe Actions' own`);
    await post(service, 'a', { token: 'token-app' });
    await post(service, 'b', { token: 'token-app' });
    assert.deepEqual(service.comments.map((c) => c.body), [`${MARKER}\nthe Actions' own`, `${MARKER}\nb`]);
  });

  claim('without GraphQL, GITHUB_TOKEN is the Actions bot', async (service) => {
    service.allow('token-plain', ACTIONS_BOT, { installation: true, graphql: false });
    await post(service, 'a', { token: 'token-plain' });
    const second = await post(service, 'b', { token: 'token-plain' });
    assert.equal(second.created, false);
    assert.equal(service.comments.length, 1);
  });
});

describe('what is posted', () => {
  claim('hostile text carries no marker and no bytes that are not text', async (service) => {
    const hostile = Buffer.concat([
      Buffer.from(`${MARKER}\n<!-- agentic-ci:other -->\n<<!--!--x\n`), Buffer.from([0xff, 0x00, 0x1b, 0x0d, 0x0a]),
      Buffer.from('"\\ \u2028 end'),
    ]);
    const outcome = await post(service, hostile);
    assert.ok(outcome.ok, outcome.what);
    assert.equal(service.comments[0].body, `${MARKER}\n&lt;!-- agentic-ci:ci/agent -->\n` +
                 '&lt;!-- agentic-ci:other -->\n<&lt;!--!--x\n\ufffd\n"\\ \u2028 end');
  });

  for (const [name, line] of [['ASCII', 'x'.repeat(99)], ['four-byte characters', '🌈'.repeat(99)]]) {
    claim(`a text of ${name} beyond 65 536 characters is cut, with a note`, async (service) => {
      const outcome = await post(service, `${line}\n`.repeat(1000));
      assert.ok(outcome.ok, outcome.what);
      assert.equal(outcome.cut, true);
      const characters = [...service.comments[0].body].length;
      assert.ok(characters <= 65536 && characters > 65400, `${characters}`);
      assert.match(service.comments[0].body, /was shortened .* the artifacts of https:\/\/example\.com\/runs\/1/);
    });
  }

  claim('exactly 65 536 characters are posted whole', async (service) => {
    const outcome = await post(service, 'é'.repeat(65536 - MARKER.length - 1));
    assert.equal(outcome.cut, false);
    assert.equal([...service.comments[0].body].length, 65536);
  });
});

describe('what goes wrong', () => {
  claim('no token: said before anything is sent', async (service) => {
    const outcome = await post(service, 'x', { token: '' });
    assert.equal(outcome.code, 'setup');
    assert.match(outcome.hint, /GITHUB_TOKEN/);
    assert.deepEqual(service.requests, []);
  });

  claim('a token the forge does not know', async (service) => {
    const outcome = await post(service, 'x', { token: 'token-stolen' });
    assert.equal(outcome.code, 'setup');
    assert.match(outcome.what, /401: Bad credentials/);
    assert.equal(service.requests.length, 1);
  });

  claim('a token without the permission: refused, with the line to add', async (service) => {
    service.allow('token-read', ACTIONS_BOT, { installation: true, readOnly: true });
    const outcome = await post(service, 'x', { token: 'token-read' });
    assert.equal(outcome.code, 'refused');
    assert.match(outcome.hint, /pull-requests: write/);
    assert.equal(count(service, 'POST /repos/'), 1);  // Not repeated: it is no rate limit.
  });

  claim('no such pull request, no such repository', async (service) => {
    assert.equal((await post(service, 'x', { number: 8 })).code, 'not-found');
    assert.equal((await post(service, 'x', { repository: 'acme/other' })).code, 'not-found');
  });

  for (const [status, code] of [[410, 'refused'], [422, 'invalid'], [301, 'refused'], [400, 'refused']]) {
    claim(`an answer of ${status} is ${code} and final`, async (service) => {
      service.fail({ method: 'POST', path: '/comments', status, body: JSON.stringify({ message: 'm' }),
                     headers: { location: `${service.url}/elsewhere` }, times: -1 });
      const outcome = await post(service, 'x');
      assert.equal(outcome.code, code);
      assert.equal(count(service, 'POST /repos/'), 1);
      assert.equal(count(service, 'GET /elsewhere'), 0);
    });
  }

  claim("the forge's own words are made harmless", async (service) => {
    service.fail({ method: 'POST', path: '/comments', status: 403,
                   body: JSON.stringify({ message: 'a\n::error::b\u001b[31m' }) });
    const outcome = await post(service, 'x');
    assert.equal(outcome.code, 'refused');
    assert.doesNotMatch(outcome.what, /[\n\u001b]/);
  });

  it('a forge that is not there is temporary, within the deadline', async () => {
    const closed = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => closed.once('listening', resolve));
    const { port } = closed.address();
    await new Promise((resolve) => closed.close(resolve));
    const outcome = await post(null, 'x', { url: `http://127.0.0.1:${port}`, seconds: 2 });
    assert.equal(outcome.code, 'temporary');
    assert.ok(outcome.ms < 6000, `${outcome.ms} ms`);
  });

  it('a token is not sent in clear to another machine', async () => {
    for (const url of ['http://forge.example', 'http://127.0.0.1.example/', 'ftp://127.0.0.1', 'http://', '',
                       'http://127.0.0.1@forge.example']) {
      const outcome = await post(null, 'x', { url });
      assert.match(outcome.code, /setup|invalid/, url);
    }
  });

  claim('an answer that never comes ends with the deadline', async (service) => {
    service.comment(MALLORY, MARKER);  // Whose it is, is to be told.
    service.fail({ method: 'GET', path: '/user', delay_ms: 30000, times: -1 });
    const outcome = await post(service, 'x', { seconds: 1 });
    assert.equal(outcome.code, 'temporary');
    assert.ok(outcome.ms < 15000, `${outcome.ms} ms`);
  });

  claim('an answer without end is not kept', async (service) => {
    service.fail({ method: 'GET', path: '/comments', status: 200, body: ' '.repeat(97 * 1024 * 1024) });
    const outcome = await post(service, 'x');
    assert.equal(outcome.code, 'invalid');
    assert.match(outcome.what, /larger than/);
  });

  claim('environment proxies are not asked unless the caller says so', async (service) => {
    const env = { http_proxy: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1', all_proxy: 'http://127.0.0.1:1' };
    const outcome = await post(service, 'x', { env });
    assert.ok(outcome.ok, outcome.what);
  });
});

describe('over TLS', () => {
  // A certificate that is its own authority, for one name.
  function certificate(name) {
    const [key, cert] = ['key', 'cert'].map((part) => path.join(folder, `${part}-${name}.pem`));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                             '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=test', '-addext',
                             `subjectAltName=${name}`], { stdio: 'ignore' });
    return { key: fs.readFileSync(key), cert: fs.readFileSync(cert), file: cert };
  }

  async function over(name, act) {
    const tls = certificate(name);
    const service = await new GitHubService({ contract }).start(tls);
    try { await act(service, tls); } finally { await service.stop(); }
  }

  it('a service whose authority is trusted is spoken to', () => over('IP:127.0.0.1', async (service, tls) => {
    const outcome = await post(service, 'x', { env: { POST_CA: tls.file } });
    assert.ok(outcome.ok, outcome.what);
    assert.deepEqual(service.violations, []);
    assert.equal(service.comments.length, 1);
  }));

  it('an unknown authority gets no request, whatever the environment says', () => over('IP:127.0.0.1', async (service, tls) => {
    const env = { SSL_CERT_FILE: tls.file, CURL_CA_BUNDLE: tls.file };
    const outcome = await post(service, 'x', { env });
    assert.equal(outcome.code, 'setup');
    assert.match(outcome.what, /certificate/i);
    assert.deepEqual(service.requests, []);
  }));

  it('a certificate for another name gets no request', () => over('DNS:forge.example', async (service, tls) => {
    const outcome = await post(service, 'x', { env: { POST_CA: tls.file } });
    assert.equal(outcome.code, 'setup');
    assert.deepEqual(service.requests, []);
  }));
});

describe('what passes', () => {
  claim('429 with retry-after is waited out, as long as asked', async (service) => {
    service.fail({ method: 'POST', path: '/comments', status: 429, headers: { 'retry-after': '1' } });
    const outcome = await post(service, 'x');
    assert.ok(outcome.ok, outcome.what);
    assert.ok(outcome.ms >= 1000, `${outcome.ms} ms`);
    assert.equal(service.comments.length, 1);
  });

  claim('a limit that resets beyond the deadline is temporary at once', async (service) => {
    service.fail({ method: 'POST', path: '/comments', status: 403, times: -1,
                   headers: { 'retry-after': '3600', 'x-ratelimit-remaining': '0' } });
    const outcome = await post(service, 'x', { seconds: 20 });
    assert.equal(outcome.code, 'temporary');
    assert.match(outcome.what, /rate limited/);
    assert.ok(outcome.ms < 15000, `${outcome.ms} ms`);
  });

  for (const status of [500, 502, 503]) {
    claim(`${status} twice on reading and on updating, then success`, async (service) => {
      service.comment(ACTIONS_BOT, `${MARKER}\nold`);
      service.fail({ method: 'GET', path: '/comments', status, times: 2 });
      service.fail({ method: 'PATCH', path: '/comments', status, times: 2 });
      const outcome = await post(service, 'new');
      assert.ok(outcome.ok, outcome.what);
      assert.deepEqual(service.comments.map((c) => c.body), [`${MARKER}\nnew`]);
    });
  }

  for (const fault of [{ cut: true }, { status: 502 }]) {
    claim(`a creation that arrived but whose answer did not (${JSON.stringify(fault)}) is not repeated`, async (service) => {
      service.fail({ method: 'POST', path: '/comments', after: true, ...fault });
      const outcome = await post(service, 'x');
      assert.ok(outcome.ok, outcome.what);
      assert.equal(service.comments.length, 1);
      assert.equal(count(service, 'POST /repos/'), 1);
    });
  }

  claim('a creation that was cut before it arrived is made again', async (service) => {
    service.fail({ method: 'POST', path: '/comments', cut: true });
    const outcome = await post(service, 'x');
    assert.ok(outcome.ok, outcome.what);
    assert.equal(service.comments.length, 1);
  });

  claim('an answer that is no JSON, or not whole, is temporary', async (service) => {
    for (const body of ['<html>', '{"id":', '{}', '[{"id":0}]', '']) {
      service.fail({ method: 'GET', path: '/comments', status: 200, body });
      assert.equal((await post(service, 'x')).code, 'temporary', body);
    }
  });

  claim('a service that fails all along is temporary, and nothing was posted', async (service) => {
    service.comment(MALLORY, MARKER);
    service.fail({ method: 'GET', path: '/user', status: 500, times: -1 });
    const outcome = await post(service, 'x', { seconds: 3 });
    assert.equal(outcome.code, 'temporary');
    assert.deepEqual(service.comments.map((c) => c.author.login), ['mallory']);
  });
});
