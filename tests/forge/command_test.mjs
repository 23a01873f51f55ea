// SPDX-License-Identifier: Apache-2.0
// `agentic-ci post` from outside: a report directory in, a comment, outputs and an exit status out.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { ACTIONS_BOT, GitHubService } from '../services/github/service.mjs';

const TOKEN = 'token-actions';
let contract;
let folder;

before(() => {
  contract = Contract.load(process.env.MODULES);
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'command_test.'));
  for (const kind of ['full', 'empty']) {
    execFileSync(process.env.SAMPLES, [kind, path.join(folder, kind)]);
  }
});
after(() => fs.rmSync(folder, { recursive: true }));

// The variables of a job of pull request 7.
function job(service) {
  const event = path.join(folder, 'event.json');
  fs.writeFileSync(event, JSON.stringify({
    pull_request: { number: 7, base: { ref: 'main', sha: 'a'.repeat(40), repo: { id: 1 } },
                    head: { ref: 'fix', sha: 'b'.repeat(40), repo: { id: 1 } } },
  }));
  return { GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'pull_request', GITHUB_EVENT_PATH: event, GITHUB_REPOSITORY: 'acme/site',
           GITHUB_API_URL: service.url, GITHUB_WORKFLOW: 'CI', GITHUB_JOB: 'agent', GITHUB_TOKEN: TOKEN };
}

function agenticCi(args, env) {
  return new Promise((resolve) => {
    execFile(process.env.BINARY, args, { env, cwd: folder }, (error, stdout, stderr) => {
      assert.ok(!error?.signal, `ended by ${error?.signal}`);
      const token = env.GITHUB_TOKEN;
      if (token) assert.ok(!`${stdout}${stderr}`.includes(token), 'the token is in the output');
      resolve({ status: error ? error.code : 0, stdout, stderr });
    });
  });
}

function post(service, report, { env = { GITHUB_TOKEN: TOKEN }, number = 7, url = service.url, args = [] } = {}) {
  return agenticCi(['post', path.join(folder, report), '--repository', 'acme/site', '--number', String(number),
                    '--api-url', url, '--marker', 'ci/agent', ...args], env);
}

function claim(name, act) {
  it(name, async () => {
    const service = await new GitHubService({ contract }).start();
    try {
      await act(service);
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });
}

describe('agentic-ci post', () => {
  claim('posts a report, and the next one in its place', async (service) => {
    const first = await post(service, 'empty');
    assert.equal(first.status, 0, first.stderr);
    assert.match(first.stdout, /^created https:\/\/github\.com\/acme\/site\/pull\/7#issuecomment-\d+\npost: made comment, review\n$/);
    const second = await post(service, 'full');
    assert.match(second.stdout, /^updated https:/);
    assert.equal(service.comments.length, 1);
    assert.match(service.comments[0].body, /^<!-- agentic-ci:ci\/agent -->\n<!-- agentic-ci-run: \d+ [0-9a-f]{40} found[ 0-9a-f]* -->\n./);
  });

  claim('posts as an application, with a token of least rights that ends with the post', async (service) => {
    const { privateKey, publicKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = privateKey.export({ type: 'pkcs1', format: 'pem' });
    service.app = { id: '1234', key: publicKey, permissions: ['pull_requests', 'statuses'], installed: true };
    const env = { AGENTIC_CI_APP_ID: '1234', AGENTIC_CI_APP_KEY: pem };
    const posted = await post(service, 'empty', { env, args: ['--what', 'comment,review'] });
    assert.equal(posted.status, 0, posted.stderr);
    assert.deepEqual(service.granted.map(({ permissions, repositories }) => [permissions, repositories]), [[{ pull_requests: 'write' }, ['site']]]);
    assert.equal(service.comments[0].author.login, 'house[bot]');
    assert.deepEqual(service.revoked, [service.granted[0].token]);
    assert.ok(!`${posted.stdout}${posted.stderr}`.includes('payload'));
    // Ended also after a post that fails.
    service.fail({ method: 'PATCH', path: '/comments', status: 500, times: -1 });
    assert.notEqual((await post(service, 'empty', { env, args: ['--what', 'comment', '--timeout', '5s'] })).status, 0);
    assert.equal(service.revoked.length, 2);
    service.faults.length = 0;
    const lacking = await post(service, 'empty', { env, args: ['--what', 'comment,check'] });
    assert.match(`${lacking.status} ${lacking.stderr}`, /^77 .*lacks a permission/s);
    service.app.installed = false;
    const absent = await post(service, 'empty', { env });
    assert.match(`${absent.status} ${absent.stderr}`, /^77 .*is not installed in acme\/site/s);
    for (const [odd, wanted] of [[{ AGENTIC_CI_APP_ID: '1234' }, /^78 .*AGENTIC_CI_APP_KEY is not set/s],
      [{ ...env, AGENTIC_CI_APP_KEY: 'no key' }, /^78 .*private key is not an RSA key/s], [{ ...env, AGENTIC_CI_APP_ID: '9' }, /^78 /]]) {
      const refused = await post(service, 'empty', { env: odd });
      assert.match(`${refused.status} ${refused.stderr}`, wanted);
    }
    service.violations.length = 0;  // What was sent with keys that are none.
  });

  claim('posts a hostile report without a mention, HTML of its own or a second marker', async (service) => {
    const hostile = '@octocat <!-- agentic-ci:ci/agent --> <script>x</script><img src=x> ![i](http://x.example) ' +
        'closes #1\n\n/close\n::error::x\n```\n# heading\n';
    const directory = path.join(folder, 'hostile');
    fs.cpSync(path.join(folder, 'full'), directory, { recursive: true });
    const record = JSON.parse(fs.readFileSync(path.join(directory, 'run.json')));
    Object.assign(record, { agent_text: hostile });
    record.outcome.reason = hostile;
    record.findings[0].message = hostile;
    record.denials[0].reason = hostile;
    fs.writeFileSync(path.join(directory, 'run.json'), JSON.stringify(record));
    fs.writeFileSync(path.join(directory, 'summary.md'), `summary.md is not believed ${hostile}`);
    const outcome = await post(service, 'hostile');
    assert.equal(outcome.status, 0, outcome.stderr);
    const body = service.comments[0].body.replace(/\n<!-- agentic-ci-run: \d+ [0-9a-f]{40} found[ 0-9a-f]* -->\n/, '\n');  // Ours.
    assert.equal(body.lastIndexOf('<!--'), 0);
    assert.match(body, /octocat/);  // The text is there, made harmless; otherwise this shows nothing.
    assert.doesNotMatch(body, /summary\.md is not believed/);
    const prose = body.replace(/^(`{3,}|~{3,})[^]*?^\1/gm, '').replace(/(`+)[^`]+\1/g, '');
    assert.doesNotMatch(prose, /<(script|img)|@octocat|!\[i\]|^\/close|^# heading/im);
  });

  claim("takes everything from the event in Actions, and writes the step's summary and output", async (service) => {
    const file = (name) => path.join(folder, name);
    fs.writeFileSync(file('summary'), 'before\n');
    fs.writeFileSync(file('output'), '');
    const outcome = await agenticCi(['post', file('full')], {
      ...job(service), GITHUB_STEP_SUMMARY: file('summary'),
      GITHUB_OUTPUT: file('output'),
    });
    assert.equal(outcome.status, 0, outcome.stderr);
    assert.match(service.comments[0].body, /^<!-- agentic-ci:CI\/agent -->\n/);
    assert.match(fs.readFileSync(file('summary'), 'utf8'), /^before\n./);
    assert.match(fs.readFileSync(file('output'), 'utf8'),
                 /^comment-url<<([0-9a-f]{32})\nhttps:\/\/github\.com\/acme\/site\/pull\/7#issuecomment-\d+\n\1\n/);
  });

  claim('asks for the pull request of a head that a workflow_run of a fork names', async (service) => {
    const sha = 'b'.repeat(40);
    const event = path.join(folder, 'run.json');
    fs.writeFileSync(event, JSON.stringify({ repository: { id: 1, full_name: 'acme/site' }, workflow_run: {
      event: 'pull_request', head_branch: 'fix', head_sha: sha, head_repository: { id: 2, full_name: 'mallory/site' } } }));
    const env = { ...job(service), GITHUB_EVENT_NAME: 'workflow_run', GITHUB_EVENT_PATH: event };
    const run = (heads) => {
      service.reviews.heads = heads;
      return agenticCi(['post', path.join(folder, 'full'), '--what', 'comment'], env);
    };
    const head = { number: 7, label: 'mallory:fix', sha };
    const found = await run([{ number: 8, label: 'mallory:fix', sha: 'c'.repeat(40) }, head]);
    assert.equal(found.status, 0, found.stderr);
    assert.equal(service.comments.length, 1);
    const none = await run([{ ...head, label: 'other:fix' }]);
    assert.equal(none.status, 78, none.stderr);
    assert.match(none.stderr, /does not name a pull request/);
    const several = await run([head, { ...head, number: 9 }]);
    assert.equal(several.status, 77, several.stderr);
    assert.match(several.stderr, /several pull requests have the head/);
  });

  claim('keeps the jobs of a matrix apart', async (service) => {
    for (const index of ['0', '1', '0']) {
      const posted = await agenticCi(['post', path.join(folder, 'full'), '--what', 'comment'], { ...job(service), AGENTIC_CI_MATRIX_JOB: index });
      assert.equal(posted.status, 0, posted.stderr);
    }
    assert.deepEqual(service.comments.map((c) => c.body.split('\n')[0]),
                     ['<!-- agentic-ci:CI/agent/0 -->', '<!-- agentic-ci:CI/agent/1 -->']);
  });

  it('posts to GitHub Enterprise Server, whose API is below a path', async () => {
    const service = await new GitHubService({ contract, enterprise: true }).start();
    try {
      service.reviews.headSha = JSON.parse(fs.readFileSync(path.join(folder, 'full/run.json'))).event.head_sha;
      const env = { ...job(service), GITHUB_GRAPHQL_URL: service.url.replace('/v3', '/graphql') };
      for (let i = 0; i < 2; ++i) {
        const outcome = await agenticCi(['post', path.join(folder, 'full'), '--what', 'comment,review,check,status'], env);
        assert.equal(outcome.status, 0, outcome.stderr);
      }
      assert.equal(service.comments.length, 1);
      assert.equal(service.reviews.checkRuns.length, 1);
      assert.ok(service.requests.includes('POST /graphql'), service.requests.join());
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });

  claim('ends as docs/reference/exit-codes.md says', async (service) => {
    service.allow('token-read', ACTIONS_BOT, { installation: true, readOnly: true });
    const status = async (options, report = 'full') => (await post(service, report, options)).status;
    assert.equal(await status({ env: {} }), 78);
    assert.equal(await status({ env: { GITHUB_TOKEN: 'token-stolen' } }), 78);
    assert.equal(await status({ env: { GITHUB_TOKEN: 'token-read' } }), 77);
    assert.equal(await status({ number: 8 }), 66);
    assert.equal(await status({}, 'absent'), 66);
    service.fail({ method: 'POST', path: '/comments', status: 422, body: '{"message":"no"}' });
    assert.equal(await status({}), 65);
    for (const limit of ['0s', '3', '-1s']) assert.equal(await status({ args: ['--timeout', limit] }), 64);
    assert.deepEqual(service.comments, []);
  });

  claim('a forge that never answers is 75 after the limit', async (service) => {
    service.fail({ path: '/comments', hang: true, times: -1 });
    const outcome = await post(service, 'full', { args: ['--what', 'comment', '--timeout', '4s'] });
    assert.equal(outcome.status, 75, outcome.stderr);
    assert.ok(service.requests.length > 1, 'nothing was sent again');
  });

  const limited = (type, message) => JSON.stringify({ data: null, errors: [{ type, message }] });
  for (const [name, fault] of Object.entries({
    "GraphQL's limit, which is a 200": { path: '/graphql', status: 200, body: limited('RATE_LIMITED', 'API rate limit exceeded'),
                                         headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' } },
    "GraphQL's secondary limit": { path: '/graphql', status: 200, headers: { 'retry-after': '0' },
                                   body: limited('', 'You have exceeded a secondary rate limit.') },
    'a query that failed by chance': { path: '/graphql', status: 200,
                                       body: limited('', 'Something went wrong while executing your query.') },
    'content that came too quickly': { method: 'POST', path: '/comments', status: 422, headers: { 'retry-after': '0' },
                                       body: '{"message":"Validation Failed","errors":[{"code":"abuse"}]}' },
  })) {
    claim(`waits after ${name}`, async (service) => {
      service.fail({ ...fault, times: 2 });
      const outcome = await post(service, 'full');
      assert.equal(outcome.status, 0, outcome.stderr);
      assert.equal(service.faults.filter((one) => one.times > 0).length, 0);
    });
  }

  it('asks through a proxy that wants a password, but for the hosts of NO_PROXY, and never shows the password', async () => {
    const asked = [];
    const proxy = http.createServer().on('connect', (request, socket) => {
      asked.push([request.url, request.headers['proxy-authorization']]);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const host = `${'a'.repeat(64)}.corp.example`;  // No name server is asked for so long a label.
    const reach = async (env) => {
      asked.length = 0;
      const outcome = await post({}, 'full', { url: `https://${host}`, args: ['--timeout', '3s'], env: { GITHUB_TOKEN: TOKEN, ...env } });
      assert.ok(!`${outcome.stdout}${outcome.stderr}`.includes('w0rd'), outcome.stderr);
      return outcome.status;
    };
    const address = `127.0.0.1:${proxy.address().port}`;
    const sent = [`${host}:443`, `Basic ${Buffer.from('user:p@ss w0rd').toString('base64')}`];
    const url = `http://user:p%40ss%20w0rd@${address}`;
    try {
      assert.equal(await reach({ HTTPS_PROXY: url }), 75);
      assert.deepEqual(asked[0], sent);
      assert.equal(await reach({ https_proxy: url.replace('http://', '') }), 75);
      assert.deepEqual(asked[0], sent);
      for (const name of ['NO_PROXY', 'no_proxy']) {
        assert.equal(await reach({ HTTPS_PROXY: url, [name]: 'x.example,corp.example' }), 75);
        assert.deepEqual(asked, []);
      }
      assert.equal(await reach({ HTTPS_PROXY: 'socks5://user:w0rd@127.0.0.1:1' }), 65);
    } finally {
      await new Promise((resolve) => proxy.close(resolve));
    }
  });

  it('a forge that is not there is 75', async () => {
    const gone = await new GitHubService().start();
    await gone.stop();
    const outcome = await post(gone, 'full', { args: ['--timeout', '3s'] });
    assert.equal(outcome.status, 75, outcome.stderr);
    assert.match(outcome.stderr, /^agentic-ci: error: .*127\.0\.0\.1/m);
  });
});
