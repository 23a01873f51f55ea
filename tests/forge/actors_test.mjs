// SPDX-License-Identifier: Apache-2.0
// Who may start a run that has secrets: `agentic-ci run` asks the forge before it starts anything.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { GitHubService } from '../services/github/service.mjs';

const GIT = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', GIT_AUTHOR_NAME: 't',
              GIT_AUTHOR_EMAIL: 't@localhost', GIT_COMMITTER_NAME: 't', GIT_COMMITTER_EMAIL: 't@localhost' };
const REPOSITORY = { id: 1, full_name: 'acme/site' };
let contract;
let folder;
let sha;

before(() => {
  contract = Contract.load(process.env.MODULES);
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'actors_test.'));
  const work = path.join(folder, 'work');
  fs.mkdirSync(path.join(work, '.agentic-ci'), { recursive: true });
  fs.writeFileSync(path.join(work, '.agentic-ci/openshell-policy.yml'), 'defaults: none\nendpoints: [api.example.com:443:full]\n');
  fs.writeFileSync(path.join(work, '.agentic-ci/config.yml'), 'bots: ["listed[bot]"]\n');
  for (const args of [['init', '-q'], ['add', '-A'], ['commit', '-qm', 'x'], ['update-ref', 'refs/agentic-ci/base', 'HEAD']]) {
    execFileSync('git', args, { cwd: work, env: GIT });
  }
  sha = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: work, env: GIT, encoding: 'utf8' }).trim();
});
after(() => fs.rmSync(folder, { recursive: true }));

const pull = (number = 7) => ({ number, base: { ref: 'main', sha, repo: REPOSITORY }, head: { ref: 'fix', sha, repo: REPOSITORY } });
const comment = (author) => ({ repository: REPOSITORY, issue: { number: 7, pull_request: {} }, comment: { body: '/fix', user: { login: author } } });

// Plans a run with one secret, as `actor` started it.
function run(service, name, payload, actor, { env = {}, secret = true, options = [] } = {}) {
  const event = path.join(folder, `event-${Math.random()}.json`);
  fs.writeFileSync(event, JSON.stringify({ repository: REPOSITORY, ...payload }));
  return new Promise((resolve) => {
    execFile(process.env.BINARY, ['run', '--plan-only', '--workdir', path.join(folder, 'work'), '--report-dir', `${event}.report`,
                                  ...(secret ? ['--secret', 'KEY@api.example.com'] : []), ...options, '--', 'true'], {
      env: { PATH: process.env.PATH, KEY: 'value-of-the-key', GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: name, GITHUB_EVENT_PATH: event,
             GITHUB_REPOSITORY: 'acme/site', GITHUB_REPOSITORY_ID: '1', GITHUB_SHA: sha, GITHUB_REF: 'refs/heads/main',
             GITHUB_ACTOR: actor, GITHUB_API_URL: service.url, GITHUB_TOKEN: 'token-actions', ...env }, cwd: folder,
    }, (error, stdout, stderr) => resolve({ status: error ? error.code : 0, stderr }));
  });
}

function claim(name, act) {
  it(name, async () => {
    const service = await new GitHubService({ contract }).start();
    for (const [login, permission] of [['owner', 'admin'], ['writer', 'write'], ['reader', 'read'], ['listed', 'read'], ['gone', 'none']]) {
      service.git.permissions.set(login, permission);
    }
    try {
      await act(service);
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });
}

async function starts(started) {
  const { status, stderr } = await started;
  assert.equal(status, 0, stderr);
}

async function stops(started, why, code = 77) {
  const { status, stderr } = await started;
  assert.equal(status, code, stderr);
  assert.match(stderr, why);
}

describe('a run with secrets', () => {
  claim('starts for who may write, and for no one else', async (service) => {
    for (const actor of ['owner', 'writer']) await starts(run(service, 'pull_request', { pull_request: pull() }, actor));
    for (const actor of ['reader', 'gone', 'stranger']) {
      await stops(run(service, 'pull_request', { pull_request: pull() }, actor), new RegExp(`${actor} may not write to acme/site`));
    }
    // Without secrets there is nothing to keep.
    await starts(run(service, 'pull_request', { pull_request: pull() }, 'reader', { secret: false }));
  });

  claim('starts for an application that is listed, never for a person of its name', async (service) => {
    await starts(run(service, 'pull_request', { pull_request: pull() }, 'listed[bot]'));
    await stops(run(service, 'pull_request', { pull_request: pull() }, 'other[bot]'), /other\[bot\] is not listed in bots/);
    await stops(run(service, 'pull_request', { pull_request: pull() }, 'listed'), /listed may not write/);
  });

  claim('stops when the forge does not say', async (service) => {
    service.fail({ path: '/collaborators/', status: 403, times: 1 });
    await stops(run(service, 'pull_request', { pull_request: pull() }, 'writer'), /asking the forge who started this run/);
    service.fail({ path: '/collaborators/', status: 200, body: '{"permission":"anything"}', times: -1 });
    await stops(run(service, 'pull_request', { pull_request: pull() }, 'writer'), /not a permission/, 75);
    service.faults.length = 0;
    await stops(run(service, 'pull_request', { pull_request: pull() }, 'writer', { env: { GITHUB_TOKEN: 'stolen' } }), /token is not valid/, 78);
  });

  claim('starts for a comment of who may write on a pull request of the repository itself', async (service) => {
    await starts(run(service, 'issue_comment', comment('writer'), 'writer'));
    await stops(run(service, 'issue_comment', comment('reader'), 'reader'), /reader may not write/);
    await stops(run(service, 'issue_comment', comment('stranger'), 'writer'), /stranger may not write/);
    service.reviews.fork = true;
    await stops(run(service, 'issue_comment', comment('writer'), 'writer'), /comes from a fork/);
    service.reviews.fork = false;
    await stops(run(service, 'issue_comment', comment('writer'), 'writer', { env: { GITHUB_TOKEN: '' } }), /does not say which repository/);
  });

  claim('starts after another run only for both of its actors', async (service) => {
    const after = (actor, triggering) => ({ workflow_run: { event: 'pull_request', head_branch: 'fix', head_sha: sha,
      head_repository: REPOSITORY, actor: { login: actor }, triggering_actor: { login: triggering } } });
    await starts(run(service, 'workflow_run', after('writer', 'owner'), 'writer'));
    await stops(run(service, 'workflow_run', after('reader', 'writer'), 'writer'), /reader may not write/);
    await stops(run(service, 'workflow_run', after('writer', 'reader'), 'writer'), /reader may not write/);
    await stops(run(service, 'pull_request', { pull_request: pull() }, 'reader', { env: { GITHUB_TRIGGERING_ACTOR: 'writer' } }), /reader may not write/);
  });

  claim('has its model, and nothing else, for a fork that a writer labeled', async (service) => {
    const config = path.join(folder, 'work/.agentic-ci/config.yml');
    const git = (...args) => execFileSync('git', args, { cwd: path.dirname(config), env: GIT, encoding: 'utf8' }).trim();
    const payload = (more = {}) => ({ action: 'labeled', label: { name: 'agent' },
      pull_request: { ...pull(), head: { ref: 'fix', sha: git('rev-parse', 'HEAD'), repo: { id: 2, full_name: 'eve/site' } } }, ...more });
    const options = ['--provider', 'anthropic', '--max-cost', '1'];
    const started = (change = {}, actor = 'writer', with_ = options, env = {}) => run(service, 'pull_request_target', payload(change), actor, {
      secret: false, options: with_, env: { ANTHROPIC_API_KEY: 'sk-test-0123456789', GITHUB_SHA: git('rev-parse', 'HEAD'), ...env } });
    await stops(started(), /the pull request comes from a fork, and such runs get no secrets/);
    fs.writeFileSync(config, 'forks: model\n');
    git('commit', '-qam', 'forks');
    git('update-ref', 'refs/agentic-ci/base', 'HEAD');
    try {
      await starts(started());
      await stops(started({}, 'reader'), /reader may not write to acme\/site/);
      await stops(started({}, 'listed[bot]'), /listed\[bot\] is not a person/);
      await stops(started({ action: 'synchronize' }), /no one has labeled it in this event/);
      await stops(started({}, 'writer', options.slice(0, 2)), /the run has no budget/);
      await stops(started({}, 'writer', [...options, '--secret', 'KEY@api.example.com']), /the secret KEY is not for it/);
      await stops(started({}, 'writer', ['--provider', 'github', '--max-cost', '1'], { GITHUB_TOKEN: 'token-actions' }), /'github' is not a model's/);
      await stops(started({}, 'writer', options, { GITHUB_TOKEN: '' }), /the forge cannot be asked whether writer may write/);
      await stops(run(service, 'pull_request', payload(), 'writer', { secret: false, options, env: { ANTHROPIC_API_KEY: 'sk-test-0123456789' } }), /no one has labeled it/);
      git('commit', '-q', '--allow-empty', '-m', 'pushed later');
      const late = payload();
      late.pull_request.head.sha = git('rev-parse', 'HEAD~1');
      await stops(started(late), /the checkout is not the commit that was labeled/);
    } finally {
      git('reset', '-q', '--hard', sha);
      git('update-ref', 'refs/agentic-ci/base', sha);
    }
  });

  claim('is not asked about where starting it takes write access', async (service) => {
    await starts(run(service, 'push', { ref: 'refs/heads/main', before: sha, after: sha }, 'reader'));
    await starts(run(service, 'schedule', {}, 'gone'));
    assert.deepEqual(service.requests, []);
  });
});
