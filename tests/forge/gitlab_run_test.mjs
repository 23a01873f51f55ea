// SPDX-License-Identifier: Apache-2.0
// GitLab from the pipeline's variables to the merge request: a runner's shallow clone, the target branch
// fetched as the component does it, an agent in the sandbox, and its report posted by another job.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { GitLabService } from '../services/gitlab/service.mjs';

const POLICY = '.agentic-ci/openshell-policy.yml';
const BEFORE = ['one', 'two', 'three', 'four', 'five'].map((line) => `${line}\n`).join('');
// What the agent does: says whether it has the secret, changes a line of the merge request, finds fault.
const AGENT = `
case "\${TOKEN:-}" in
  "") echo "the agent has no TOKEN" ;;
  the-secret-value) echo "the agent has the secret itself" ;;
  *) echo "the agent has a placeholder" ;;
esac
sed -i s/addde/added/ a.txt
printf '{"findings": [{"message": "a typo", "path": "a.txt", "line": 3, "severity": "error"}]}' >"$AGENTIC_CI_FINDINGS"
`;
const KEYS = 'GET /oauth/discovery/keys';
let folder;
let base;   // The target branch's head, with the policy that allows api.example.com.
let head;   // The merge request's, with a policy of its own.
let service;

const git = (cwd, ...args) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args],
                                           { cwd, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: folder } }).trim();

before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'gitlab_run.'));
  fs.chmodSync(folder, 0o755);
  // The target project and the fork are two repositories.
  const work = path.join(folder, 'target');
  fs.mkdirSync(path.join(work, '.agentic-ci'), { recursive: true });
  git(work, 'init', '-q', '-b', 'main');
  fs.writeFileSync(path.join(work, 'a.txt'), BEFORE);
  fs.writeFileSync(path.join(work, POLICY), 'endpoints: [api.example.com:443:read-only]\ndefaults: none\n');
  git(work, 'add', '.');
  git(work, 'commit', '-qm', 'base');
  base = git(work, 'rev-parse', 'HEAD');
  git(folder, 'clone', '-q', work, 'fork');
  const fork = path.join(folder, 'fork');
  git(fork, 'switch', '-qc', 'fix');
  fs.writeFileSync(path.join(fork, 'a.txt'), BEFORE.replace('two\n', 'two\naddde\n'));
  fs.writeFileSync(path.join(fork, POLICY), 'endpoints: [eve.example.com:443:full]\n');
  git(fork, 'commit', '-qam', 'head');
  head = git(fork, 'rev-parse', 'HEAD');
  git(work, 'fetch', '-q', fork, 'fix:refs/merge-requests/7/head');
});
after(() => fs.rmSync(folder, { recursive: true }));

beforeEach(async () => {
  service = await new GitLabService().start();
  service.refs = { base_sha: base, start_sha: base, head_sha: head };
  service.files = [{ new_path: 'a.txt', diff: '@@ -1,5 +1,6 @@\n one\n two\n+addde\n three\n four\n five\n' }];
});
afterEach(async () => {
  assert.deepEqual(service.violations, []);
  await service.stop();
});

const pipeline = (source, project) => ({
  PATH: process.env.PATH, HOME: folder, GITLAB_CI: 'true', CI: 'true', CI_API_V4_URL: service.url, CI_SERVER_URL: service.server,
  CI_COMMIT_SHA: head, CI_PIPELINE_SOURCE: 'merge_request_event', CI_PROJECT_ID: String(project),
  CI_PROJECT_PATH: project === 21 ? 'acme/web/site' : 'eve/site', CI_JOB_NAME: 'review', GITLAB_USER_LOGIN: 'jo',
  CI_DEFAULT_BRANCH: 'main', CI_MERGE_REQUEST_IID: '7', CI_MERGE_REQUEST_PROJECT_ID: '21',
  CI_MERGE_REQUEST_PROJECT_PATH: 'acme/web/site', CI_MERGE_REQUEST_SOURCE_PROJECT_ID: String(source),
  CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: 'fix', CI_MERGE_REQUEST_TARGET_BRANCH_NAME: 'main',
  CI_MERGE_REQUEST_DIFF_BASE_SHA: base,
});

function agenticCi(args, cwd, env) {
  return new Promise((resolve) => {
    execFile(process.env.BINARY, args, { cwd, env }, (error, stdout, stderr) => {
      resolve({ status: error ? error.code : 0, stdout, stderr });
    });
  });
}

// The checkout of a job: one commit, and the target branch where the policy is.
function checkOut(name) {
  const checkout = path.join(folder, name);
  fs.mkdirSync(checkout);
  git(checkout, 'init', '-q');
  const from = name.startsWith('in-fork') ? ['fork', 'refs/heads/fix'] : ['target', 'refs/merge-requests/7/head'];
  git(checkout, 'fetch', '-q', '--depth=1', `file://${folder}/${from[0]}`, from[1]);
  git(checkout, 'checkout', '-q', '--detach', 'FETCH_HEAD');
  git(checkout, 'fetch', '-q', '--no-tags', '--depth=1', `file://${folder}/target`, '+refs/heads/main:refs/agentic-ci/base');
  return checkout;
}

async function run(name, source, project, { secret = false, signed = true } = {}) {
  const checkout = checkOut(name);
  const variables = pipeline(source, project);
  if (signed) variables.AGENTIC_CI_ID_TOKEN = service.idTokens.of(variables);
  const done = await agenticCi(['run', ...(secret ? ['--secret', 'TOKEN@api.example.com'] : []), '--', 'sh', '-c', AGENT],
                               checkout, { ...variables, TOKEN: 'the-secret-value' });
  const report = path.join(checkout, 'agentic-ci-report');
  const record = JSON.parse(fs.readFileSync(path.join(report, 'run.json')));
  const log = path.join(report, 'agent.log');
  return { ...done, report, record, log: fs.existsSync(log) ? fs.readFileSync(log, 'utf8') : '' };
}

const post = (report, env, ...args) => agenticCi(['post', report, ...args], folder, env);

// The policy of the target branch held, whatever the head brought.
function assertTargetPolicy({ record }) {
  assert.equal(record.policy.source, 'repository');
  assert.equal(record.policy.ref, 'refs/agentic-ci/base');
  assert.equal(record.policy.commit, base);
}

describe('a merge request', () => {
  it("within one project gets the secret's placeholder, and discussions", async () => {
    const done = await run('in-target', 21, 21, { secret: true });
    assert.equal(done.status, 0, done.stderr);
    assertTargetPolicy(done);
    assert.match(done.log, /^the agent has a placeholder$/m);
    assert.equal(done.record.trust.level, 'trusted');
    assert.equal(done.record.trust.reason, "started by merge_request_event, as the job's ID token says");
    assert.deepEqual(service.requests, [KEYS]);
    assert.equal(done.record.event.forge, 'gitlab');
    assert.equal(done.record.event.from_fork, false);
    assert.match(done.stdout, /^\x1b\[0Ksection_start:\d+:agentic_ci_agent\[collapsed=true\]\r\x1b\[0KThe agent's output\nthe agent has a placeholder\n/);
    assert.match(done.stdout, /\n\x1b\[0Ksection_end:\d+:agentic_ci_agent\r\x1b\[0K\n/);
    assert.doesNotMatch(done.stdout + done.stderr, /^::/m);  // GitLab's log knows no commands of GitHub's.
    const posted = await post(done.report, { ...pipeline(21, 21), GITLAB_TOKEN: 'glpat-bot' }, '--what', 'comment,review,status');
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(service.threads.length, 1);
    const { body, position } = service.threads[0].notes[0];
    assert.match(body, /\*\*error\*\* a typo[^]*\n```suggestion:-0\+0\nadded\n```\n$/);
    assert.deepEqual([position.new_path, position.new_line, position.head_sha], ['a.txt', 3, head]);
    assert.equal(service.comments.length, 1);
    assert.deepEqual(service.statuses.map((s) => s.status), ['success']);
    const quality = JSON.parse(fs.readFileSync(path.join(done.report, 'gl-code-quality-report.json')));
    assert.deepEqual(quality.map((q) => [q.description, q.severity, q.location.path, q.location.lines.begin]),
                     [['a typo', 'major', 'a.txt', 3]]);
  });

  it('within one project, of whose job nothing is signed, gets no secret', async () => {
    const refused = await run('in-target-unsigned', 21, 21, { secret: true, signed: false });
    assert.equal(refused.status, 77);
    assert.match(refused.stderr, /can be forged, as the job has no ID token \(AGENTIC_CI_ID_TOKEN\), and such runs get no secrets/);
    const done = await run('in-target-unsigned-plain', 21, 21, { signed: false });
    assert.equal(done.status, 0, done.stderr);  // The control.
    assert.match(done.log, /^the agent has no TOKEN$/m);
    assert.deepEqual(service.requests, []);
  });

  it('with a token whose keys are not to be had is refused, with a reason', async () => {
    for (const [fault, status, said, times] of [
      [{ status: 404 }, 78, /discovery\/keys responded with 404[^]*hint: --gitlab-issuer URL/, 1],
      [{ status: 200, body: '<html>' }, 65, /not a JSON Web Key Set/, 1],
      [{ status: 503, headers: { 'retry-after': '120' } }, 75, /discovery\/keys responded with 503/, 1]]) {
      service.faults = [];
      service.requests = [];
      service.fail({ path: '/oauth/', times: -1, ...fault });
      const done = await run(`in-target-keys-${status}`, 21, 21);
      assert.equal(done.status, status, done.stderr);
      assert.match(done.stderr, said);
      assert.equal(service.requests.length, times);
    }
    service.faults = [];
    service.fail({ path: '/oauth/', cut: true, times: 2 });
    assert.equal((await run('in-target-keys-cut', 21, 21)).status, 0);  // Asked again.
  });

  for (const [name, project] of [['in-fork', 99], ['in-target-from-fork', 21]]) {
    it(`from a fork, ${name}, gets no secret and the policy of the target branch`, async () => {
      const refused = await run(`${name}-secret`, 99, project, { secret: true });
      assert.equal(refused.status, 77);
      assert.match(refused.stderr, /the merge request comes from a fork, and such runs get no secrets/);
      assert.equal(refused.log, '', 'the agent was started');
      const done = await run(name, 99, project);
      assert.equal(done.status, 0, done.stderr);
      assertTargetPolicy(done);
      assert.match(done.log, /^the agent has no TOKEN$/m);
      assert.equal(done.record.trust.level, 'untrusted');
      assert.equal(done.record.event.from_fork, true);
      // The fork has no token that may post to the target: its log has the finding.
      const untold = await post(done.report, { ...pipeline(99, project), CI_JOB_TOKEN: 'glcbt-fork' });
      assert.equal(untold.status, 78);
      assert.match(untold.stdout, /^a\.txt:3: error: a typo /m);
      assert.deepEqual(service.requests.filter((one) => one !== KEYS), []);
      // A trusted pipeline may post the fork's report.
      const posted = await post(done.report, { ...pipeline(99, project), GITLAB_TOKEN: 'glpat-bot' });
      assert.equal(posted.status, 0, posted.stderr);
      assert.equal(service.threads.length, 1);
    });
  }
});
