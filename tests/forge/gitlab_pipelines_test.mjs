// SPDX-License-Identifier: Apache-2.0
// Whom a run under GitLab CI trusts: a table of pipelines, each planned with the program itself, with and without a secret.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { IdTokens } from '../services/gitlab/id_tokens.mjs';

const POLICY = '.agentic-ci/openshell-policy.yml';
const TARGET = 'refs/agentic-ci/base';  // Fetched by the job from the target or default branch.
let folder;
let keys;  // The file with the instance's.
const instance = new IdTokens();
const commits = {};  // `base`, the target branch's, and `head`, which brings a policy of its own.

const git = (cwd, ...args) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args],
                                           { cwd, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: folder } }).trim();

before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'gitlab_pipelines.'));
  keys = path.join(folder, 'keys.json');
  fs.writeFileSync(keys, JSON.stringify(instance.keys));
  const work = path.join(folder, 'work');
  fs.mkdirSync(path.join(work, '.agentic-ci'), { recursive: true });
  git(work, 'init', '-q', '-b', 'main');
  fs.writeFileSync(path.join(work, POLICY), 'endpoints: [api.example.com:443:read-only]\ndefaults: none\n');
  git(work, 'add', '.');
  git(work, 'commit', '-qm', 'base');
  commits.base = git(work, 'rev-parse', 'HEAD');
  git(work, 'switch', '-qc', 'fix');
  fs.writeFileSync(path.join(work, POLICY), 'endpoints: [eve.example.com:443:full]\n');
  git(work, 'commit', '-qam', 'head');
  commits.head = git(work, 'rev-parse', 'HEAD');
  // As a job has it: shallow, at one commit, with the target branch that it fetched or without.
  for (const [name, commit, fetched] of [['head', 'head', true], ['unfetched', 'head', false], ['base', 'base', true]]) {
    const checkout = path.join(folder, name);
    fs.mkdirSync(checkout);
    git(checkout, 'init', '-q');
    git(checkout, 'fetch', '-q', '--depth=1', `file://${work}`, commits[commit]);
    git(checkout, 'checkout', '-q', '--detach', 'FETCH_HEAD');
    if (fetched) git(checkout, 'fetch', '-q', '--no-tags', '--depth=1', `file://${work}`, `+refs/heads/main:${TARGET}`);
  }
});
after(() => fs.rmSync(folder, { recursive: true }));

function job(source, more = {}) {
  return { GITLAB_CI: 'true', CI: 'true', CI_PIPELINE_SOURCE: source, CI_PROJECT_ID: '21', CI_PROJECT_PATH: 'acme/web/site',
           CI_SERVER_URL: 'https://gitlab.example', CI_API_V4_URL: 'https://gitlab.example/api/v4', CI_DEFAULT_BRANCH: 'main',
           GITLAB_USER_LOGIN: 'jo', ...more };
}

// Of project 21, from `source` (99 is a fork), in a pipeline of `project`.
function merge(source, project, more = {}) {
  return job('merge_request_event', {
    CI_PROJECT_ID: String(project), CI_MERGE_REQUEST_IID: '7', CI_MERGE_REQUEST_PROJECT_ID: '21',
    CI_MERGE_REQUEST_PROJECT_PATH: 'acme/web/site', CI_MERGE_REQUEST_PROJECT_URL: 'https://gitlab.example/acme/web/site',
    CI_MERGE_REQUEST_SOURCE_PROJECT_ID: String(source), CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: 'fix',
    CI_MERGE_REQUEST_TARGET_BRANCH_NAME: 'main', ...more });
}
const branch = (name, more = {}) => ({ CI_COMMIT_BRANCH: name, ...more });
const GUARDED = { CI_COMMIT_REF_PROTECTED: 'true' };
const MERGED = { CI_MERGE_REQUEST_EVENT_TYPE: 'merged_result', CI_MERGE_REQUEST_SOURCE_BRANCH_SHA: 'c'.repeat(40),
                 CI_MERGE_REQUEST_TARGET_BRANCH_SHA: 'd'.repeat(40) };
const TRAIN = { ...MERGED, CI_MERGE_REQUEST_EVENT_TYPE: 'merge_train' };

// What a pipeline is, its variables, whether it gets secrets (in a merge request's, with the job's ID token), and what the policy is read at: TARGET, "head", "base", or the
// exit status of a run that reads none. `at` is the checkout.
const PIPELINES = [
  ['merge request within one project', merge(21, 21), true, TARGET],
  ['the same, merged result', merge(21, 21, MERGED), true, TARGET],
  ['the same, merge train', merge(21, 21, TRAIN), true, TARGET],
  ['the same, protected source branch', merge(21, 21, GUARDED), true, TARGET],
  ['the same, in a child pipeline', { ...merge(21, 21), CI_PIPELINE_SOURCE: 'parent_pipeline' }, true, TARGET],
  ['the same, shallow and nothing fetched', merge(21, 21), true, 66, 'unfetched'],
  ['from a fork, in the target project', merge(99, 21), false, TARGET],
  ['from a fork, in the fork', merge(99, 99), false, TARGET],
  ['from a fork, merged result', merge(99, 21, MERGED), false, TARGET],
  ['from a fork, merge train', merge(99, 21, TRAIN), false, TARGET],
  ['from a fork, in a child pipeline', { ...merge(99, 21), CI_PIPELINE_SOURCE: 'parent_pipeline' }, false, TARGET],
  ['from a fork, nothing fetched', merge(99, 21), false, 66, 'unfetched'],
  ['from a fork that calls itself protected', merge(99, 21, GUARDED), false, TARGET],
  ['from a fork that calls its branch the default one', merge(99, 21, { CI_DEFAULT_BRANCH: 'fix' }), false, TARGET],
  ['from a fork that names a branch', merge(99, 21, branch('main')), false, TARGET],
  ['from a fork with the name of the target project', merge(99, 21, { CI_MERGE_REQUEST_SOURCE_PROJECT_PATH: 'acme/web/site' }), false,
   TARGET],
  ['from a fork, another source named', { ...merge(99, 21), CI_PIPELINE_SOURCE: 'web' }, false, TARGET],
  ['from a fork, a source that is new', { ...merge(99, 21), CI_PIPELINE_SOURCE: 'quantum' }, false, TARGET],
  ['from a fork, its pipeline calls itself the project\'s', merge(99, 99, { CI_PROJECT_PATH: 'acme/web/site' }), false, TARGET],
  ['of another project, source and target forged alike', merge(21, 99), false, TARGET],
  ['source project missing', merge('', 21), false, TARGET],
  ['source project no number', merge('21x', 21), false, TARGET],
  ['target project missing', merge(21, 21, { CI_MERGE_REQUEST_PROJECT_ID: '' }), false, TARGET],
  ['number missing', merge(21, 21, { CI_MERGE_REQUEST_IID: '' }), false, 65],
  ['target branch missing', merge(21, 21, { CI_MERGE_REQUEST_TARGET_BRANCH_NAME: '' }), false, 65],
  ['push to the default branch', job('push', branch('main')), true, 'base', 'base'],
  ['push to a protected branch', job('push', branch('release', GUARDED)), true, 'head'],
  ['push to a branch', job('push', branch('fix')), true, TARGET],
  ['push to a branch, nothing fetched', job('push', branch('fix')), true, 66, 'unfetched'],
  ['push to a branch, no default branch known', job('push', branch('fix', { CI_DEFAULT_BRANCH: '' })), true, 78],
  ['protected tag', job('push', { CI_COMMIT_TAG: 'v1', ...GUARDED }), true, 'head'],
  ['tag', job('push', { CI_COMMIT_TAG: 'v1' }), true, TARGET],
  ['a tag with the default branch\'s name', job('push', { CI_COMMIT_TAG: 'main' }), true, TARGET],
  ['push of nothing that is named', job('push'), false, 78],
  ['schedule on the default branch', job('schedule', branch('main')), true, 'base', 'base'],
  ['schedule on a branch', job('schedule', branch('fix')), true, TARGET],
  ['web', job('web', branch('fix')), true, TARGET],
  ['web editor', job('webide', branch('fix')), true, TARGET],
  ['API', job('api', branch('fix')), true, TARGET],
  ['trigger token', job('trigger', branch('fix')), true, TARGET],
  ['trigger token, protected branch', job('trigger', branch('release', GUARDED)), true, 'head'],
  ['chat', job('chat', branch('fix')), true, TARGET],
  ['pipeline of another project', job('pipeline', branch('fix')), true, TARGET],
  ['child pipeline of a branch', job('parent_pipeline', branch('fix')), true, TARGET],
  ['external pull request', job('external_pull_request_event', branch('main')), false, 78],
  ['external pull request, protected', job('external_pull_request_event', branch('main', GUARDED)), false, 78],
  ['external status', job('external', branch('main')), false, 78],
  ['a security scan\'s own pipeline', job('ondemand_dast_scan', branch('main')), false, 78],
  ['a source that is new', job('quantum', branch('main', GUARDED)), false, 78],
  ['a source in another case', job('Push', branch('main', GUARDED)), false, 78],
  ['no source', job('', branch('main')), false, 78],
  ['no commit', job('push', branch('main', { CI_COMMIT_SHA: '' })), false, 78],
  ['a commit that is none', job('push', branch('main', { CI_COMMIT_SHA: 'main' })), false, 65],
  ['no project', job('push', branch('main', { CI_PROJECT_PATH: '' })), false, 78],
  ['GitHub\'s signs beside GitLab\'s', job('push', branch('main', { GITHUB_ACTIONS: 'true' })), false, 78],
  ['Gitea\'s signs beside GitLab\'s', job('push', branch('main', { GITEA_ACTIONS: 'true' })), false, 78],
  ['GITLAB_CI taken away', job('push', branch('main', { GITLAB_CI: 'false' })), false, 78],
  ['GITLAB_CI and CI taken away', job('push', branch('main', { GITLAB_CI: '', CI: '' })), false, 78],
];

// Variables that say other than what GitLab signed of the job: what `truth` replaces in the token, what is said, and what the
// policy is read at without a token (the exit status is 0 then).
const FORGED = [
  ['a fork\'s merge request calls itself the project\'s', merge(21, 21), { project_id: '99' }, /source project is '21'.* '99'/, TARGET],
  ['a fork\'s pipeline calls itself the project\'s', job('push', branch('main', GUARDED)), { project_id: '99', job_project_id: '99' },
   /CI_PROJECT_ID is '21'.* '99'/, 'head'],
  ['the same, on a GitLab before 18.3', job('push', branch('main', GUARDED)), { project_id: '99', job_project_id: undefined },
   /source project is '21'.* '99'/, 'head'],
  ['a branch calls itself protected', job('push', branch('fix', GUARDED)), { ref_protected: 'false' },
   /CI_COMMIT_REF_PROTECTED is 'true'.* 'false'/, 'head'],
  ['a merge request calls itself a push', job('push', branch('main', GUARDED)), { pipeline_source: 'merge_request_event' },
   /CI_PIPELINE_SOURCE is 'push'.* 'merge_request_event'/, 'head'],
  ['another branch', job('push', branch('main', { CI_COMMIT_REF_NAME: 'main', ...GUARDED })), { ref: 'fix' },
   /CI_COMMIT_REF_NAME is 'main'.* 'fix'/, 'head'],
  ['another commit', job('push', branch('main', GUARDED)), { sha: 'e'.repeat(40) }, /CI_COMMIT_SHA is '.* 'eeee/, 'head'],
  ['another job\'s token', job('push', branch('main', { CI_JOB_ID: '302', ...GUARDED })), { job_id: '301' },
   /CI_JOB_ID is '302'.* '301'/, 'head'],
  ['another pipeline\'s token', job('push', branch('main', { CI_PIPELINE_ID: '9', ...GUARDED })), { pipeline_id: '8' },
   /CI_PIPELINE_ID is '9'.* '8'/, 'head'],
];

// Variables of every job that the tests do not name.
const complete = (at, variables) => ({ CI_COMMIT_SHA: commits[at === 'base' ? 'base' : 'head'], ...variables });

function plan(at, variables, ...options) {
  const env = { PATH: process.env.PATH, HOME: folder, TOKEN: 't', ...complete(at, variables) };
  const done = spawnSync(process.env.BINARY, ['run', '--plan-only', ...options, '--', 'true'],
                         { cwd: path.join(folder, at), env, encoding: 'utf8' });
  const policy = /^policy +repository \S+ at (\S+)$/m.exec(done.stdout);
  return { status: done.status, stderr: done.stderr, policy: policy?.[1] };
}

describe('pipelines of GitLab', () => {
  for (const [name, variables, secrets, policy, at = 'head'] of PIPELINES) {
    it(`${name}: ${secrets ? 'secrets' : 'no secrets'}, policy at ${policy}`, () => {
      const plain = plan(at, variables);
      const reads = typeof policy === 'string';
      assert.equal(plain.status, reads ? 0 : policy, plain.stderr);
      if (reads) assert.equal(plain.policy, commits[policy] ?? policy);
      // The trusted policy given by hand leaves the question of secrets alone.
      const given = reads || policy === 66 ? [] : ['--policy-ref', commits[at === 'base' ? 'base' : 'head']];
      if (policy === 65 || policy === 66) return;
      const bound = (env) => plan(at, { ...variables, ...env }, ...given, '--policy', path.join(folder, 'work', POLICY),
                                  '--secret', 'TOKEN@eve.example.com', '--gitlab-keys', keys);
      const verified = bound({ AGENTIC_CI_ID_TOKEN: instance.of(complete(at, variables)) });
      assert.equal(verified.status === 0, secrets, verified.stderr);
      if (!secrets) assert.ok([77, 78].includes(verified.status), verified.stderr);
      const unsigned = bound({});
      const merges = Boolean(variables.CI_MERGE_REQUEST_IID);
      assert.equal(unsigned.status === 0, secrets && !merges, unsigned.stderr);
      if (secrets && merges) {
        assert.equal(unsigned.status, 77);
        assert.match(unsigned.stderr, /hint: id_tokens: \{ AGENTIC_CI_ID_TOKEN: \{ aud: agentic-ci \} \}/);
      }
    });
  }

  for (const [name, variables, truth, said, policy] of FORGED) {
    it(`${name}: told by the token`, () => {
      const token = (more) => ({ ...variables, AGENTIC_CI_ID_TOKEN: instance.of(complete('head', variables), more) });
      const forged = plan('head', token(truth), '--gitlab-keys', keys);
      assert.equal(forged.status, 78, forged.stderr);
      assert.match(forged.stderr, said);
      assert.equal(plan('head', token({}), '--gitlab-keys', keys).status, 0);  // The controls.
      assert.equal(plan('head', variables).policy, commits[policy] ?? policy);
    });
  }

  it('on a branch that calls itself the default one: the policy of the default branch', () => {
    const variables = job('push', branch('fix', { CI_DEFAULT_BRANCH: 'fix' }));
    const token = { AGENTIC_CI_ID_TOKEN: instance.of(complete('head', variables)) };
    assert.equal(plan('head', { ...variables, ...token }, '--gitlab-keys', keys).policy, TARGET);
    assert.equal(plan('head', variables).policy, commits.head);  // The control.
  });

  it('with a token that is not the instance\'s, or not for this, or over', () => {
    const variables = merge(21, 21);
    const now = Math.floor(Date.now() / 1000);
    const full = complete('head', variables);
    for (const [token, said] of [
      [new IdTokens().of(full), /not signed with a key of https:\/\/gitlab\.example/], ['x.y.z', /not a token/],
      [instance.of(full, { aud: 'vault' }), /not for agentic-ci/], [instance.of(full, { exp: now - 100 }), /expired/],
      [instance.of(full, { nbf: now + 100 }), /not valid yet/], [instance.of(full, { iss: 'https://eve.example' }), /issued by/],
      [instance.of(full, { project_id: undefined }), /without project_id/],
      [instance.of({ ...full, CI_SERVER_URL: 'https://eve.example' }), /issued by 'https:\/\/eve\.example'/]]) {
      const done = plan('head', { ...variables, AGENTIC_CI_ID_TOKEN: token }, '--gitlab-keys', keys);
      assert.equal(done.status, 78, done.stderr);
      assert.match(done.stderr, said);
    }
    // Whose word counts is not for the variables to say, where the job says it.
    const forged = { ...full, CI_SERVER_URL: 'https://eve.example' };
    const own = { ...forged, AGENTIC_CI_ID_TOKEN: instance.of(forged) };
    assert.equal(plan('head', own, '--gitlab-keys', keys).status, 0);
    assert.equal(plan('head', own, '--gitlab-keys', keys, '--gitlab-issuer', 'https://gitlab.example').status, 78);
    const genuine = { ...full, AGENTIC_CI_ID_TOKEN: instance.of(full) };
    assert.equal(plan('head', genuine, '--gitlab-keys', keys, '--gitlab-issuer', 'https://gitlab.example/').status, 0);
  });

  it('without a token, where its variables are trusted on request', () => {
    const secret = ['--policy', path.join(folder, 'work', POLICY), '--secret', 'TOKEN@eve.example.com'];
    assert.equal(plan('head', merge(21, 21), ...secret, '--gitlab-trust-variables').status, 0);
    assert.equal(plan('head', merge(99, 21), ...secret, '--gitlab-trust-variables').status, 77);  // A fork stays one.
  });

  it('are at least forty', () => assert.ok(PIPELINES.length >= 40));
});
