// SPDX-License-Identifier: Apache-2.0
// Budgets across runs on GitHub: what runs spend is kept on a branch, by the run itself or by the post of its report; one that
// is used up starts nothing and says so on the pull request; what was done at a run's limit is delivered as incomplete.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { GitHubService } from '../services/github/service.mjs';
import { Site, begin, end, finding, folder, fresh, reportOf, small } from './site.mjs';

const BRANCH = 'agentic-ci/budget';
const FILE = 'agentic-ci-budget.json';
const HOST = 'host.openshell.internal';
// Each answer costs a dollar.
const PRICES = 'prices: [{model: "claude-sonnet-4-5", input: 10000, output: 10000}]\n';
const ANSWER = JSON.stringify({ model: 'claude-sonnet-4-5', usage: { input_tokens: 60, output_tokens: 40 } });
let contract;
let model;
let policy;

before(async () => {
  contract = Contract.load(process.env.MODULES);
  begin('budget_test');
  model = http.createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER));
  });
  await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve));
  policy = path.join(folder, 'policy.yml');
  fs.writeFileSync(policy, `defaults: none\nendpoints: ["${HOST}:${model.address().port}:full:rest"]\n`);
});
after(() => {
  model.close();
  end();
});

// A repository whose base branch has this budget.
function siteWith(budget) {
  const site = new Site();
  site.git('checkout', '-q', 'main');
  site.write('.agentic-ci/config.yml', `budget: ${budget}\n${PRICES}`);
  site.base = site.commit('budget');
  site.push('main');
  site.git('update-ref', 'refs/agentic-ci/base', site.base);
  site.git('checkout', '-q', 'fix');
  return site;
}

function claim(name, budget, act) {
  it(name, async () => {
    const site = siteWith(budget);
    const service = await new GitHubService({ contract, git: site.bare, pullRequests: [7, 8] }).start();
    service.reviews.files = [{ filename: 'a.c', patch: '@@ -1,3 +1,4 @@\n one\n two\n three\n+four' }];
    service.allow('token-reads', { id: 41898282, login: 'github-actions[bot]', type: 'Bot' }, { installation: true, readOnly: true });
    try {
      await act(service, site);
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });
}

function start(args, env, input) {
  return new Promise((resolve) => {
    execFile(process.env.BINARY, args, { env, cwd: folder, timeout: 300000 }, (error, stdout, stderr) => {
      resolve({ status: error ? error.code : 0, stdout, stderr });
    }).stdin.end(input);
  });
}

function job(service, site, { number = 7, token = 'token-actions', fork = false, env = {} } = {}) {
  const event = fresh('event');
  const head = { ref: 'fix', sha: site.head, repo: { id: fork ? 2 : 1 } };
  fs.writeFileSync(event, JSON.stringify({ pull_request: { number, base: { ref: 'main', sha: site.base, repo: { id: 1 } }, head } }));
  return { PATH: process.env.PATH, HOME: folder, GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'pull_request', GITHUB_EVENT_PATH: event,
           GITHUB_REPOSITORY: 'acme/site', GITHUB_REPOSITORY_ID: '1', GITHUB_API_URL: service.url, GITHUB_WORKFLOW: 'CI', GITHUB_JOB: 'agent',
           GITHUB_REF: `refs/pull/${number}/merge`, GITHUB_SHA: site.head, GITHUB_ACTOR: 'writer', ...(token ? { GITHUB_TOKEN: token } : {}), ...env };
}

// A run that asks its model so many times.
async function run(service, site, { ask = 1, options = [], ...where } = {}) {
  const report = fresh('run');
  const question = `curl -s -d '{"model":"claude-sonnet-4-5"}' http://${HOST}:${model.address().port}/v1/messages`;
  const started = await start(['run', '--workdir', site.directory, '--policy', policy, '--report-dir', report, ...options, '--',
                               '/bin/sh', '-c', `${`${question}\n`.repeat(ask)} true`], job(service, site, where));
  const record = JSON.parse(fs.readFileSync(path.join(report, 'run.json')));
  return { ...started, report, record, kind: record.outcome.kind };
}

const post = (service, site, report, { what = 'comment', ...where } = {}) => start(
  ['post', report, '--marker', 'ci/agent', '--what', what], job(service, site, where));

function ledger(service) {
  if (!service.git.tip(BRANCH)) return null;
  return JSON.parse(service.git.git(['show', `${BRANCH}:${FILE}`]));
}
const entries = (service) => ledger(service)?.runs.map(({ number, usd, open }) => [number, usd, open]) ?? null;
// Puts a ledger there, as another run does.
function write(service, text) {
  const blob = service.git.git(['hash-object', '-w', '--stdin'], { input: text }).trim();
  const tree = service.git.git(['mktree'], { input: `100644 blob ${blob}\t${FILE}\n` }).trim();
  service.git.git(['update-ref', `refs/heads/${BRANCH}`, service.git.git(['commit-tree', tree, '-m', 'x']).trim()]);
}
const writes = (service) => service.requests.filter((request) => !request.startsWith('GET '));

describe('a run whose token may write', () => {
  claim('reserves and counts by itself, and the next has what is left', '{per_day: 2.5}', async (service, site) => {
    const one = await run(service, site);
    assert.equal(one.status, 0, one.stderr);
    assert.deepEqual(entries(service), [[7, 1, false]]);
    assert.deepEqual(service.requests.map((r) => r.replace(/[0-9a-f]{40}/g, 'ID')), [
      'GET /repos/acme/site/git/ref/heads%2Fagentic-ci%2Fbudget',
      'GET /repos/acme/site/git/ref/heads%2Fagentic-ci%2Fbudget', 'GET /repos/acme/site/commits?sha=ID&per_page=1',
      'POST /repos/acme/site/git/trees', 'POST /repos/acme/site/git/commits', 'POST /repos/acme/site/git/refs',
      'GET /repos/acme/site/git/ref/heads%2Fagentic-ci%2Fbudget', 'GET /repos/acme/site/contents/agentic-ci-budget.json?ref=ID',
      'GET /repos/acme/site/commits?sha=ID&per_page=1',
      'POST /repos/acme/site/git/trees', 'POST /repos/acme/site/git/commits', 'PATCH /repos/acme/site/git/refs/heads%2Fagentic-ci%2Fbudget']);
    // No pipeline is started for it.
    assert.match(service.git.git(['log', '-1', '--format=%B', BRANCH]), /\[skip ci\]/);
    const two = await run(service, site, { ask: 3 });
    assert.equal(two.status, 125, two.stderr);
    assert.deepEqual(two.record.limits.find(({ name }) => name === 'cost').limit, 1.5);
    const three = await run(service, site);
    assert.deepEqual([three.status, three.kind], [77, 'budget'], three.stderr);
    assert.match(three.record.outcome.reason, /the budget of the day is used up: \$3\.00 of \$2\.50 are spent/);
    // On the pull request, as what it is.
    const before = writes(service).length;
    const posted = await post(service, site, three.report, { what: 'comment,check' });
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(service.comments.at(-1).body, /Not started: The budget of the day is used up/);
    assert.equal(writes(service).slice(before).filter((request) => request.includes('/git/')).length, 0);
    // What the run has counted, its post does not count again.
    const again = await post(service, site, two.report);
    assert.equal(again.status, 0, again.stderr);
    assert.deepEqual(entries(service), [[7, 1, false], [7, 2, false]]);
  });

  claim('of two that start at once, each gets what the other leaves', '{per_day: 3}', async (service, site) => {
    const runs = await Promise.all(Array.from({ length: 4 }, () => run(service, site, { ask: 0, options: ['--max-cost', '1', '--env', 'A=1'] })));
    for (const one of runs) assert.ok([0, 77].includes(one.status), one.stderr);
    // None is lost, whichever was first.
    const started = runs.filter((one) => one.status === 0).length;
    assert.ok(started >= 3, `${started} started`);
    assert.deepEqual(entries(service), Array(started).fill([7, 0, false]));
    assert.deepEqual(ledger(service).runs.map(({ id }) => id).sort(),
                     runs.filter((one) => one.status === 0).map((one) => one.record.budget.id).sort());
  });

  claim('sees what another has reserved between its look and its start', '{per_day: 3}', async (service, site) => {
    const other = { id: 'a'.repeat(32), day: new Date().toISOString().slice(0, 10), number: 8, usd: 2.5, open: true };
    const overtake = () => write(service, JSON.stringify({ version: 1, runs: [other], pull_requests: {} }));
    service.hooks.push({ method: 'POST', path: '/git/refs', run: overtake });
    const one = await run(service, site, { ask: 2, options: ['--max-cost', '2'] });
    assert.equal(one.status, 125, one.stderr);
    assert.equal(one.record.limits.find(({ name }) => name === 'cost').limit, 0.5);
    assert.deepEqual(entries(service), [[8, 2.5, true], [7, 1, false]]);
    // And where nothing is left by then, it does not start.
    service.git.git(['update-ref', '-d', `refs/heads/${BRANCH}`]);
    other.usd = 3;
    service.hooks.push({ method: 'POST', path: '/git/refs', run: overtake });
    const two = await run(service, site);
    assert.deepEqual([two.status, two.kind], [77, 'budget'], two.stderr);
    assert.match(two.record.outcome.reason, /\$0\.00 of \$3\.00 are spent, and \$3\.00 are reserved for runs that go on/);
  });
});

describe('a run whose token only reads', () => {
  claim('is counted by the post of its report, once', '{per_day: 2.5}', async (service, site) => {
    const one = await run(service, site, { token: 'token-reads' });
    assert.equal(one.status, 0, one.stderr);
    assert.equal(entries(service), null);
    assert.deepEqual([one.record.budget.place, one.record.budget.spent_usd, one.record.budget.counted], ['forge', 1, false]);
    for (let times = 0; times < 2; ++times) {
      const posted = await post(service, site, one.report);
      assert.equal(posted.status, 0, posted.stderr);
      assert.match(posted.stdout, /^post: made .*budget/m);
      assert.deepEqual(entries(service), [[7, 1, false]]);
    }
    // The limit is what was left when it began: two that go on at once may each spend it.
    const both = [await run(service, site, { ask: 2, token: 'token-reads' }), await run(service, site, { ask: 2, token: 'token-reads' })];
    for (const { status, record, report } of both) {
      assert.equal(status, 0);
      assert.equal(record.budget.left_usd, 1.5);
      assert.equal((await post(service, site, report)).status, 0);
    }
    const three = await run(service, site, { token: 'token-reads' });
    assert.match(three.record.outcome.reason, /\$5\.00 of \$2\.50 are spent/);
    assert.deepEqual([three.status, three.kind], [77, 'budget']);
  });

  claim('has its post say that it cannot count', '{per_day: 2.5}', async (service, site) => {
    const one = await run(service, site, { token: 'token-reads' });
    service.fail({ method: 'POST', path: '/git/trees', status: 403, body: '{"message":"Resource not accessible by integration"}' });
    const posted = await post(service, site, one.report);
    assert.equal(posted.status, 77, posted.stderr);
    assert.match(posted.stdout + posted.stderr, /budget: counting what the run has spent: .*contents: write/);
    assert.equal(service.comments.length, 1);  // The rest is there.
    assert.equal(entries(service), null);
  });

  claim('may be given one for this alone', '{per_day: 2.5}', async (service, site) => {
    const one = await run(service, site, { token: 'token-reads', env: { AGENTIC_CI_BUDGET_TOKEN: 'token-actions' } });
    assert.equal(one.status, 0, one.stderr);
    assert.deepEqual(entries(service), [[7, 1, false]]);
  });

  claim('of a fork reads the budget of the repository, and changes nothing of it', '{per_day: 1.5}', async (service, site) => {
    await run(service, site, { ask: 2 });
    const before = service.git.tip(BRANCH);
    // What the pull request says of the budget does not count.
    site.write('.agentic-ci/config.yml', `budget: {per_day: 1000}\n${PRICES}`);
    const one = await run(service, site, { token: 'token-reads', fork: true });
    assert.deepEqual([one.status, one.kind], [77, 'budget'], one.stderr);
    assert.equal(service.git.tip(BRANCH), before);
    assert.deepEqual(writes(service).filter((request) => !request.includes('/git/')), []);
  });
});

describe('a budget', () => {
  claim('of pull requests is of each', '{per_pull_request: 1.5}', async (service, site) => {
    assert.equal((await run(service, site, { ask: 2 })).status, 0);
    const same = await run(service, site);
    assert.deepEqual([same.status, same.kind], [77, 'budget'], same.stderr);
    assert.match(same.record.outcome.reason, /the budget of the pull request is used up: \$2\.00 of \$1\.50/);
    const other = await run(service, site, { number: 8 });
    assert.equal(other.status, 0, other.stderr);
    assert.deepEqual(entries(service), [[7, 2, false], [8, 1, false]]);
  });

  claim('that cannot be read starts nothing, unless the configuration says so', '{per_day: 2.5}', async (service, site) => {
    write(service, 'garbage');
    const one = await run(service, site);
    assert.deepEqual([one.status, one.kind], [65, 'budget'], one.stderr);
    assert.match(one.record.outcome.reason, /what earlier runs have spent is not known: agentic-ci-budget.json of the branch agentic-ci\/budget/);
    const none = await run(service, site, { token: '' });
    assert.deepEqual([none.status, none.kind], [78, 'budget'], none.stderr);
    service.fail({ path: '/git/ref/', status: 403, times: -1 });
    const denied = await run(service, site);
    assert.deepEqual([denied.status, denied.kind], [77, 'budget'], denied.stderr);
    service.faults.length = 0;
    site.git('checkout', '-q', 'main');
    site.write('.agentic-ci/config.yml', `budget: {per_day: 2.5, unknown: warn}\n${PRICES}`);
    site.git('update-ref', 'refs/agentic-ci/base', site.commit('warn'));
    const warned = await run(service, site, { ask: 4 });
    assert.equal(warned.status, 125, warned.stderr);  // No more than a whole budget.
    assert.equal(warned.record.findings.find(({ rule }) => rule === 'budget').severity, 'warning');
    const posted = await post(service, site, warned.report);
    assert.match(service.comments.at(-1).body, /what earlier runs have spent is not known/);
    assert.equal(posted.status, 65, posted.stderr);  // It is mended by a person, or counts nothing.
  });

  claim('that a protected branch keeps from being written says so soon', '{per_day: 2.5}', async (service, site) => {
    await run(service, site);
    service.fail({ method: 'PATCH', path: '/git/refs/', status: 422, times: -1, body: '{"message":"Repository rule violations found"}' });
    const one = await run(service, site);
    assert.deepEqual([one.status, one.kind], [65, 'budget'], one.stderr);
    assert.ok(writes(service).length < 50);
    assert.deepEqual(entries(service), [[7, 1, false]]);
  });

  claim('is not written by a report that lies', '{per_day: 5}', async (service, site) => {
    const one = await run(service, site, { ask: 2 });
    const { id } = one.record.budget;
    const lie = (change) => reportOf('', (record) => {
      Object.assign(record.budget, { id: 'a'.repeat(32), place: 'forge', left_usd: 5, spent_usd: 1, counted: false }, change);
      record.event.head_sha = site.head;
    });
    // Another run's cost does not become less.
    await post(service, site, lie({ id, spent_usd: 0.5 }));
    assert.deepEqual(entries(service), [[7, 2, false]]);
    await post(service, site, lie({ id: '../../x' }));
    await post(service, site, lie({ spent_usd: -3 }));
    assert.deepEqual(entries(service), [[7, 2, false]]);
    // The control.
    await post(service, site, lie({}));
    assert.deepEqual(entries(service), [[7, 2, false], [7, 1, false]]);
  });
});

describe('what is there at the limit of cost', () => {
  const limited = (site, change = () => {}) => reportOf(small(site).text, (record) => {
    record.findings = [];
    record.event.head_sha = site.head;
    Object.assign(record.changes, { prefix: '', complete: true });
    Object.assign(record.outcome, { kind: 'limit', limit: 'cost', reason: "the run's budget of cost is used up" });
    change(record);
  });

  claim('is delivered as incomplete, in a pull request of its own', '{per_day: 5}', async (service, site) => {
    for (const what of ['comment,commits', 'comment,pull-request']) {
      const posted = await post(service, site, limited(site), { what });
      assert.equal(posted.status, 0, posted.stdout + posted.stderr);
    }
    assert.equal(service.git.tip('fix'), site.head);
    const [pull, ...more] = service.git.pulls;
    assert.deepEqual(more, []);
    assert.equal(pull.base, 'fix');
    assert.match(pull.title, /^Incomplete: Changes by /);
    assert.match(service.git.git(['log', '-1', '--format=%B', pull.head]), /whose budget was used up before it had finished/);
    assert.equal(service.git.git(['show', `${pull.head}:a.c`]), 'one\n2\nthree\nfour\n');
    assert.match(service.comments.at(-1).body, /The changes, which are incomplete, are in #\d+/);
  });

  claim('stays where it is if a gate refused it, or another limit ended the run', '{per_day: 5}', async (service, site) => {
    const refused = limited(site, (record) => { record.findings = [finding('a secret', { source: 'gate', rule: 'secrets', refuses: true })]; });
    const full = limited(site, (record) => Object.assign(record.outcome, { limit: 'memory' }));
    for (const report of [refused, full]) {
      const posted = await post(service, site, report, { what: 'comment,commits' });
      assert.equal(posted.status, 0, posted.stdout + posted.stderr);
    }
    assert.deepEqual([service.git.pulls, service.git.tip('fix')], [[], site.head]);
  });
});
