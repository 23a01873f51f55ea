// SPDX-License-Identifier: Apache-2.0
// `post --what statement` and `verify-run --pull-request --stored`: a run's signed statement in the store of the GitHub service, which
// GitHub's public description judges. The store is asked by digest, and writes bundles in its own way.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { GitHubService } from '../services/github/service.mjs';
import { Site, begin, end, folder, fresh } from './site.mjs';

const TOKEN = 'token-actions';
const AGENT = ['sh', '-c', 'echo changed >>a.c'];
let contract;
let key;

before(() => {
  contract = Contract.load(process.env.MODULES);
  begin('statement_test');
  key = path.join(folder, 'key.pem');
  execFileSync('openssl', ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', key]);
  execFileSync('openssl', ['pkey', '-in', key, '-pubout', '-out', `${key}.pub`]);
});
after(end);

const sha256 = (data) => crypto.createHash('sha256').update(data).digest('hex');
const statementIn = (bundle) => JSON.parse(Buffer.from(bundle.dsseEnvelope.payload, 'base64'));

// A run on the branch that a pull request is about, the report that it left, and the jobs of that pull request.
class Work {
  constructor(service, site) {
    Object.assign(this, { service, site, report: fresh('attested') });
  }

  job(event = 'pull_request_target') {
    const file = fresh('event');
    const repo = { id: 1, full_name: 'acme/site', default_branch: 'main' };
    const base = { ref: 'main', sha: this.site.git('rev-parse', 'main'), repo };
    const head = { ref: 'fix', sha: this.site.git('rev-parse', 'fix'), repo };
    fs.writeFileSync(file, JSON.stringify({ number: 7, repository: repo, pull_request: { number: 7, base, head } }));
    return { PATH: process.env.PATH, GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: event, GITHUB_EVENT_PATH: file, GITHUB_REPOSITORY: 'acme/site',
             GITHUB_SERVER_URL: 'https://github.com', GITHUB_RUN_ID: '77', GITHUB_RUN_ATTEMPT: '1', GITHUB_WORKFLOW: 'CI', GITHUB_JOB: 'agent',
             GITHUB_SHA: base.sha, GITHUB_REF: 'refs/heads/main', GITHUB_API_URL: this.service.url, GITHUB_TOKEN: TOKEN };
  }

  call(args, env = {}) {
    return new Promise((resolve) => execFile(process.env.BINARY, args, { env: { ...this.job(), ...env }, cwd: this.site.directory },
                                             (error, stdout, stderr) => resolve({ status: error ? error.code : 0, stdout, stderr })));
  }

  run(words = ['--attest-key', key]) {
    return this.call(['run', '--report-dir', this.report, ...words, '--', ...AGENT], { GITHUB_EVENT_NAME: 'pull_request' });
  }
  post(what) { return this.call(['post', this.report, '--what', what]); }
  verify(words = ['--stored']) { return this.call(['verify-run', '--pull-request', ...words, '--key', `${key}.pub`]); }

  // Takes what was posted to the branch.
  fetch() {
    this.site.git('fetch', '-q', this.site.bare, 'fix');
    this.site.git('reset', '-q', '--hard', 'FETCH_HEAD');
  }
}

function claim(name, act) {
  it(name, async () => {
    const site = new Site();
    site.git('update-ref', 'refs/agentic-ci/base', 'main');
    const service = await new GitHubService({ contract, git: site.bare }).start();
    service.reviews.files = [{ filename: 'a.c', patch: '@@ -1,3 +1,4 @@\n one\n two\n three\n+four' }];
    try {
      await act(new Work(service, site), service);
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });
}

describe('a statement in the store', () => {
  claim('is kept once, and found by the commit that the run made', async (work, service) => {
    const made = await work.run();
    assert.equal(made.status, 0, made.stderr);
    for (let i = 0; i < 2; ++i) {
      const posted = await work.post('commits,statement');
      assert.equal(posted.status, 0, posted.stderr);
    }
    const [bundle, ...more] = service.git.attestations;
    assert.equal(more.length, 0);
    const text = fs.readFileSync(path.join(work.report, 'run.sigstore.json'), 'utf8');
    assert.deepEqual(bundle, JSON.parse(text));
    assert.notEqual(JSON.stringify(bundle), text.trim());  // No digest of its bytes finds it.
    work.fetch();
    const tree = sha256(work.site.git('rev-parse', 'HEAD^{tree}'));
    assert.ok(statementIn(bundle).subject.some((one) => one.name === 'tree' && one.digest.sha256 === tree));
    const verified = await work.verify();
    assert.equal(verified.status, 0, verified.stdout + verified.stderr);
    assert.match(verified.stdout, /proven, signed by key/);
    assert.ok(service.requests.some((request) => decodeURIComponent(request).includes(`/attestations/sha256:${tree}`)), service.requests.join('\n'));
    // By the digest of its record, too, as any client asks.
    const digest = `sha256:${sha256(fs.readFileSync(path.join(work.report, 'run.json')))}`;
    const answer = await fetch(`${service.url}/repos/acme/site/attestations/${digest}`, { headers: { authorization: `Bearer ${TOKEN}`,
      accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' } });
    assert.equal((await answer.json()).attestations.length, 1);
  });

  claim('does not prove what it is not about', async (work, service) => {
    assert.equal((await work.run()).status, 0);
    assert.equal((await work.post('commits,statement')).status, 0);
    work.fetch();
    // The control is above. What the store has is hostile: others' statements about this tree, and broken ones.
    const [good] = service.git.attestations;
    const forged = structuredClone(good);
    const statement = statementIn(good);
    statement.predicate.isolation.tier = 'namespaces+';
    forged.dsseEnvelope.payload = Buffer.from(JSON.stringify(statement)).toString('base64');
    service.git.attestations = [forged];
    const refused = await work.verify();
    assert.equal(refused.status, 77, refused.stdout);
    assert.match(refused.stdout, /unmet: statement: signature: /);
    service.git.attestations = [forged, good];  // One of them has to do.
    const found = await work.verify();
    assert.equal(found.status, 0, found.stdout);
    // Amended by hand: nothing is kept about this tree.
    work.site.write('a.c', 'another\n');
    work.site.git('commit', '-q', '-a', '--amend', '--no-edit');
    const amended = await work.verify();
    assert.equal(amended.status, 77, amended.stdout);
    assert.match(amended.stdout, /unmet: statement: the statement [0-9a-f]{64} was not found/);
  });

  claim('is missed where the run has none, or the store is away', async (work, service) => {
    assert.equal((await work.run([])).status, 0);
    const posted = await work.post('status,statement');
    assert.equal(posted.status, 77, posted.stderr);
    assert.match(posted.stderr, /storing the statement: the report has no signed statement/);
    assert.equal(service.git.statuses.length, 1);  // The others are posted all the same.
    work.site.git('commit', '-q', '--allow-empty', '-m', 'x\n\nAgentic-CI: a/b/c');
    assert.match((await work.verify()).stdout, /unmet: statement: the commit names no statement/);
    const nowhere = await work.call(['verify-run', '--pull-request', '--stored', '--key', `${key}.pub`], { GITHUB_API_URL: 'http://127.0.0.1:9' });
    assert.equal(nowhere.status, 75, nowhere.stderr);
    const without = await work.call(['verify-run', '--pull-request', '--stored', '--key', `${key}.pub`], { GITHUB_TOKEN: '' });
    assert.equal(without.status, 78, without.stderr);
    const neither = await work.verify([]);
    assert.equal(neither.status, 64, neither.stderr);
  });
});
