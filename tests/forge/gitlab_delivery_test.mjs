// SPDX-License-Identifier: Apache-2.0
// `agentic-ci post --what commits|branch|merge-request` on GitLab: the agent's patch through the commits
// API, against a real git repository behind the GitLab service.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { GitLabContract } from '../services/gitlab/contract.mjs';
import { BOT, GitLabService } from '../services/gitlab/service.mjs';
import { BINARY, MOVED, Site, begin, checkMoved, end, folder, forEachRequest, fresh, moveHead, report, reportOf, small } from './site.mjs';

const TOKEN = 'glpat-bot';
const API = '/projects/acme%2Fweb%2Fsite';

before(() => begin('gitlab_delivery_test'));
after(end);

function post(service, directory, what, { args = [], env = { GITLAB_TOKEN: TOKEN }, number = ['--number', '7'], onStart = null,
                                          repository = ['--repository', 'acme/web/site'] } = {}) {
  return new Promise((resolve) => {
    const child = execFile(process.env.BINARY, ['post', directory, ...repository, ...number, '--api-url', service.url, '--marker', 'ci/agent',
                                                '--what', what, ...args], { env, cwd: folder }, (error, stdout, stderr) => {
      resolve({ status: error ? error.code : 0, stdout, stderr });
    });
    onStart?.(child);
  });
}

// The environment of a job whose event names the head that the run saw.
const job = (service, site) => ({
  GITLAB_CI: 'true', CI: 'true', CI_API_V4_URL: service.url, CI_SERVER_URL: service.server, CI_COMMIT_SHA: site.head,
  CI_PIPELINE_SOURCE: 'merge_request_event', CI_PROJECT_ID: '21', CI_PROJECT_PATH: 'acme/web/site',
  CI_PIPELINE_URL: `${service.server}/acme/web/site/-/pipelines/5`, CI_JOB_NAME: 'agent', CI_CONFIG_PATH: 'ci',
  CI_MERGE_REQUEST_IID: '7', CI_MERGE_REQUEST_PROJECT_ID: '21', CI_MERGE_REQUEST_PROJECT_PATH: 'acme/web/site',
  CI_MERGE_REQUEST_SOURCE_PROJECT_ID: '21', CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: 'fix',
  CI_MERGE_REQUEST_TARGET_BRANCH_NAME: 'main', GITLAB_USER_LOGIN: 'jo', GITLAB_TOKEN: TOKEN,
});

async function serve(act, site = new Site(), options = {}) {
  const service = await new GitLabService({ git: site.bare, contract: GitLabContract.load(process.env.GITLAB_CLIENT), ...options }).start();
  try {
    await act(service, site);
    assert.deepEqual(service.violations, []);
  } finally {
    await service.stop();
  }
}

const claim = (name, act, options) => it(name, () => serve(act, new Site(), options));
const parents = (service, commit) => service.git.git(['log', '-1', '--format=%P', commit]).trim().split(' ');
const treeOf = (service, commit) => service.git.git(['rev-parse', `${commit}^{tree}`]).trim();
const show = (service, name) => service.git.git(['show', name]);

// A commit of a person's to a branch of the forge.
function personPushes(site, branch, name, text) {
  site.git('fetch', '-q', site.bare, branch);
  const back = site.git('rev-parse', '--abbrev-ref', 'HEAD');
  site.git('checkout', '-q', '--detach', 'FETCH_HEAD');
  site.write(name, text);
  const sha = site.commit('of a person');
  site.push(`refs/heads/${branch}`);
  site.git('checkout', '-q', back);
  return sha;
}

describe("commits on the merge request's branch", () => {
  claim('hold exactly what the agent made: text, binaries, modes, renames and deletions', async (service, site) => {
    const { text, tree } = site.patch((s) => {
      s.write('a.c', 'one\n2\r\nthree\nfour');
      s.write('src/deep/b.c', 'b\nc\n');
      s.write('new/dir/file', 'with "quotes"\n');
      s.write('ünï code.txt', 'ä\n');
      s.write('empty', '');
      s.write('tool', '#!/bin/sh\n');
      fs.chmodSync(s.at('tool'), 0o755);
      s.write('data.bin', Buffer.concat([BINARY, BINARY]));
      s.write('latin1', Buffer.from([0x61, 0xe4, 0x0a]));
      fs.unlinkSync(s.at('gone.txt'));
      fs.chmodSync(s.at('run.sh'), 0o755);
      fs.renameSync(s.at('old name'), s.at('new name'));
    });
    const posted = await post(service, report(site, text), 'comment,commits');
    assert.equal(posted.status, 0, posted.stdout + posted.stderr);
    const tip = service.git.tip('fix');
    assert.equal(treeOf(service, tip), tree);
    assert.deepEqual(parents(service, tip), [site.head]);
    assert.match(posted.stdout, new RegExp(`^changes: commit ${tip} on fix$`, 'm'));
    assert.match(service.comments[0].body, new RegExp(`The changes are in the commit ${tip}`));
    assert.match(show(service, tip), /Changes by \S+ for !7/);
  });

  claim('are one request that writes, and another post repeats none', async (service, site) => {
    const { text } = small(site);
    await post(service, report(site, text), 'commits');
    assert.deepEqual(service.requests.map((r) => r.replace(/[0-9a-f]{40}/g, 'ID').replace(`/api/v4${API}`, '')), [
      'GET /merge_requests/7', 'GET /repository/branches/fix', 'GET /repository/commits?ref_name=ID&per_page=100',
      'GET /repository/branches/main', 'GET /repository/files/.agentic-ci%2Fconfig.yml?ref=ID',
      'GET /repository/tree?ref=ID&recursive=true&per_page=100&page=1',
      'GET /repository/blobs/ID', 'GET /repository/branches/fix', 'POST /repository/commits']);
    const tip = service.git.tip('fix');
    const again = await post(service, report(site, text), 'commits');
    assert.equal(again.status, 0, again.stderr);
    assert.match(again.stdout, new RegExp(`changes: commit ${tip} on fix`));
    personPushes(site, 'fix', 'more', 'x\n');
    const later = await post(service, report(site, text), 'commits');
    assert.match(later.stdout, new RegExp(`changes: commit ${tip} on fix`));
    assert.equal(service.writes.length, 1);
  });

  for (const one of MOVED.cases) {
    claim(`end as a person expects with ${one.name}`, async (service, site) => {
      const directory = moveHead(site, one);
      const env = one.event ? job(service, site) : undefined;
      service.git.isProtected = one.protected;
      const posted = await post(service, directory, 'comment,commits', { env });
      checkMoved(site, one, posted, (words) => service.git.git(words));
      if (one.protected) return;
      const before = service.writes.length;
      const again = await post(service, directory, 'commits', { env });
      assert.equal(again.status, one.want.status ?? 0, again.stdout + again.stderr);
      assert.equal(service.writes.length, before, again.stdout);
    });
  }

  claim('are merged if the branch moves before the request', async (service, site) => {
    let tip;
    let looks = 0;
    service.before = (method, url) => {
      if (url.endsWith('/branches/fix') && ++looks === 2) tip = personPushes(site, 'fix', 'more', 'x\n');
    };
    const posted = await post(service, report(site, small(site).text), 'commits');
    assert.equal(posted.status, 0, posted.stdout + posted.stderr);
    assert.deepEqual(parents(service, service.git.tip('fix')), [tip]);
  });

  for (const name of ['a.c', 'new']) {
    claim(`go to a merge request if a file changes at the very request: ${name}`, async (service, site) => {
      let tip;
      service.before = (method) => {
        if (method === 'POST') tip ??= personPushes(site, 'fix', name, 'theirs\n');
      };
      const { text } = site.patch((s) => s.write(name, 'ours\n'));
      const posted = await post(service, report(site, text), 'commits');
      assert.equal(posted.status, 0, posted.stdout + posted.stderr);
      assert.ok(posted.stdout.includes(`with conflicts in ${name}`), posted.stdout);
      assert.equal(service.git.tip('fix'), tip);
    });
  }

  claim('lose no commit to other files that comes at the very request, and are not made twice', async (service, site) => {
    let theirs;
    service.before = (method) => {
      if (method === 'POST' && !theirs) theirs = personPushes(site, 'fix', 'other', 'theirs\n');
    };
    const directory = report(site, small(site).text);
    const posted = await post(service, directory, 'commits');
    assert.equal(posted.status, 0, posted.stderr);
    const tip = service.git.tip('fix');
    assert.deepEqual(parents(service, tip), [theirs]);
    assert.equal(show(service, 'fix:other'), 'theirs\n');
    assert.equal(show(service, 'fix:a.c'), 'one\n2\nthree\nfour\n');
    assert.match((await post(service, directory, 'commits')).stdout, new RegExp(`changes: commit ${tip} on fix`));
    assert.equal(service.writes.length, 1);
  });

  claim("are never on a fork's branch, which is told before anything is written", async (service, site) => {
    for (const what of ['commits', 'branch', 'merge-request']) {
      const posted = await post(service, report(site, small(site).text), what);
      assert.equal(posted.status, 0, posted.stderr);
      assert.match(posted.stdout, /refused: changes: the pull request comes from a fork/);
    }
    assert.deepEqual(service.writes, []);
    service.source = service.id;
    assert.equal((await post(service, report(site, small(site).text), 'commits')).status, 0);
    assert.notEqual(service.git.tip('fix'), site.head);
  }, { source: 99 });

  claim('need a token that may write', async (service, site) => {
    service.allow('glpat-reporter', BOT, { level: 20 });
    const directory = report(site, small(site).text);
    const posted = await post(service, directory, 'comment,commits', { env: { GITLAB_TOKEN: 'glpat-reporter' } });
    assert.equal(posted.status, 77);
    assert.match(posted.stderr, /role Developer and the scope api/);
    assert.equal(service.comments.length, 1);
    const job = await post(service, directory, 'commits', { env: { CI_JOB_TOKEN: 'glcbt-1' } });
    assert.equal(job.status, 78);
    assert.match(job.stderr, /CI_JOB_TOKEN may not post/);
    assert.equal(service.git.tip('fix'), site.head);
  });

  claim('are shown by a dry run', async (service, site) => {
    const posted = await post(service, report(site, small(site).text), 'commits', { args: ['--dry-run'] });
    assert.equal(posted.status, 0, posted.stderr);
    const [planned, ...more] = posted.stdout.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(more, []);
    assert.equal(planned.url, `${service.url}${API}/repository/commits`);
    assert.deepEqual(planned.body.actions, [{ action: 'update', file_path: 'a.c', encoding: 'base64', last_commit_id: site.head,
                                              content: Buffer.from('one\n2\nthree\nfour\n').toString('base64') }]);
    assert.deepEqual(service.writes, []);
  });
});

describe('nothing is delivered', () => {
  const refused = (name, change, why, options = {}) => claim(name, async (service, site) => {
    const directory = report(site, site.patch(change).text, options);
    for (const what of ['commits', 'merge-request']) {
      const posted = await post(service, directory, what);
      assert.equal(posted.status, 77, posted.stdout + posted.stderr);
      assert.match(posted.stderr, why);
    }
    assert.deepEqual(service.writes, []);
  });
  refused('on a protected path', (s) => s.write('.gitlab-ci.yml', 'x: {script: id}\n'), /protected-paths refuses/);
  refused('on a path that a link on a later page of the tree makes a protected one', (s) => {
    for (let i = 0; i < 120; ++i) s.write(`docs/${i}`, 'x\n');
    fs.mkdirSync(s.at('pkg'));
    fs.symlinkSync('../docs/7', s.at('pkg/CLAUDE.md'));
    s.head = s.commit('a link');
    s.push();
    s.write('docs/7', 'obey\n');
  }, /by the link pkg\/CLAUDE\.md/);
  refused('as a new symbolic link', (s) => fs.symlinkSync('a.c', s.at('other')), /cannot write symbolic links: other/);
  refused('where a symbolic link goes', (s) => fs.unlinkSync(s.at('link')), /cannot write symbolic links: link/);
  const fileToDirectory = (s) => { fs.unlinkSync(s.at('a.c')); s.write('a.c/b', 'x\n'); };
  const directoryToFile = (s) => { fs.rmSync(s.at('src'), { recursive: true }); s.write('src', 'x\n'); };
  refused('where a file becomes a directory', fileToDirectory, /a\.c is a file on one side of the patch and a directory on the other/);
  refused('where a directory becomes a file', directoryToFile, /src is a file on one side of the patch and a directory on the other/);
  refused('of a checkout that was not the head', (s) => {
    s.write('a.c', 'another\n');
    s.commit('not pushed');
    s.write('a.c', 'changed\n');
  }, /a\.c: the file differs from the one the patch was made from/);

  claim("on paths that the target branch's configuration refuses, and it may allow others", async (service, site) => {
    site.git('checkout', '-q', 'main');
    site.write('.agentic-ci/config.yml', 'gates:\n  paths:\n    deploy/: refuse\n    .github/: allow\n');
    site.commit('rules');
    site.push('main');
    site.git('checkout', '-q', 'fix');
    site.git('push', '-q', site.bare, 'fix:refs/tags/main');  // Git takes it for the branch, by its bare name.
    const no = await post(service, report(site, site.patch((s) => s.write('deploy/run', 'x\n')).text), 'commits');
    assert.equal(no.status, 77, no.stdout);
    assert.match(no.stderr, /protected-paths refuses/);
    const yes = await post(service, report(site, site.patch((s) => s.write('.github/x.yml', 'x\n')).text), 'commits');
    assert.equal(yes.status, 0, yes.stderr);
  });
});

describe('a branch with a merge request', () => {
  claim('is made once and updated in place', async (service, site) => {
    const one = site.patch((s) => {
      s.write('a.c', 'one\n2\nthree\nfour\n');
      s.write('fresh', 'x\n');
      fs.renameSync(s.at('old name'), s.at('new name'));
      fs.unlinkSync(s.at('gone.txt'));
      fs.chmodSync(s.at('run.sh'), 0o755);
    });
    const args = ['--title', 'Fix it', '--label', 'agent', '--label', 'fix'];
    const first = await post(service, report(site, one.text), 'comment,merge-request', { args });
    assert.equal(first.status, 0, first.stderr);
    assert.equal(service.git.requests.length, 1);
    const [request] = service.git.requests;
    assert.deepEqual([request.target_branch, request.title, request.labels], ['fix', 'Fix it', ['agent', 'fix']]);
    assert.match(request.source_branch, /^agentic-ci\/pull-7-[0-9a-f]{8}$/);
    assert.match(request.description, /^<!-- agentic-ci:ci\/agent -->/);
    assert.equal(treeOf(service, service.git.tip(request.source_branch)), one.tree);
    assert.equal(service.git.tip('fix'), site.head);
    assert.ok(first.stdout.includes(request.web_url), first.stdout);
    assert.match(service.comments[0].body, /The changes are in !100\./);

    const before = service.writes.length;
    await post(service, report(site, one.text), 'merge-request', { args });
    assert.equal(service.writes.length, before, 'the same report wrote again');

    // What the first patch did and the second does not is undone, and nothing else.
    const two = site.patch((s) => {
      s.write('a.c', 'one\ntwo\n3\nfour\n');
      s.write('data.bin', 'text\n');
    });
    const old = service.git.tip(request.source_branch);
    const second = await post(service, report(site, two.text), 'pull-request', { args: ['--title', 'Fix it better'] });
    assert.equal(second.status, 0, second.stderr);
    assert.equal(service.git.requests.length, 1);
    const tip = service.git.tip(request.source_branch);
    assert.equal(treeOf(service, tip), two.tree);
    assert.deepEqual(parents(service, tip), [old]);
    assert.equal(request.title, 'Fix it better');
  });

  claim('is not brought to a later commit, which is told, until it is deleted', async (service, site) => {
    await post(service, report(site, small(site).text), 'branch');
    const branch = service.git.git(['for-each-ref', '--format=%(refname:short)', 'refs/heads/agentic-ci']).trim();
    site.write('more', 'x\n');
    site.head = site.commit('more');
    site.push();
    const { text, tree } = small(site);
    const before = service.git.tip(branch);
    const refused = await post(service, report(site, text), 'branch');
    assert.equal(refused.status, 77, refused.stdout);
    assert.match(refused.stderr, /holds changes for an earlier commit, and GitLab's API cannot merge: delete the branch/);
    assert.equal(service.git.tip(branch), before);
    service.git.git(['update-ref', '-d', `refs/heads/${branch}`]);
    const posted = await post(service, report(site, text), 'branch');
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(treeOf(service, service.git.tip(branch)), tree);
  });

  claim('keeps what a person pushed to it', async (service, site) => {
    await post(service, report(site, small(site).text), 'merge-request');
    const mine = personPushes(site, service.git.requests[0].source_branch, 'mine', 'x\n');
    const again = await post(service, report(site, site.patch((s) => s.write('a.c', 'x\n')).text), 'merge-request');
    assert.equal(again.status, 77, again.stdout);
    assert.match(again.stderr, /has commits that agentic-ci did not make/);
    assert.equal(service.git.tip(service.git.requests[0].source_branch), mine);
  });

  claim("is not taken for a fork's of the same name, and stays closed once a person closed it", async (service, site) => {
    const one = report(site, small(site).text);
    await post(service, one, 'branch');
    const branch = service.git.git(['for-each-ref', '--format=%(refname:short)', 'refs/heads/agentic-ci']).trim();
    const foreign = service.git.request({ source_branch: branch, target_branch: 'fix', title: 'theirs', source: 99 });
    await post(service, one, 'merge-request');
    assert.equal(service.git.requests.length, 2);
    assert.equal(foreign.title, 'theirs');
    service.git.requests[1].state = 'closed';
    const again = await post(service, one, 'merge-request');
    assert.equal(again.status, 0, again.stderr);
    assert.match(again.stdout, /refused: changes: the pull request !101 is closed/);
    assert.equal(service.git.requests.length, 2);
  });

  claim('is made by a pipeline without a merge request, such as of a schedule', async (service, site) => {
    site.git('checkout', '-q', 'main');
    site.head = site.git('rev-parse', 'HEAD');
    const { text, tree } = site.patch((s) => s.write('a.c', 'x\n'));
    const env = { GITLAB_TOKEN: TOKEN, GITLAB_CI: 'true', CI_API_V4_URL: service.url, CI_SERVER_URL: service.server, CI_COMMIT_SHA: site.head,
                  CI_PIPELINE_SOURCE: 'schedule', CI_PROJECT_ID: '21', CI_PROJECT_PATH: 'acme/web/site', CI_COMMIT_BRANCH: 'main',
                  CI_DEFAULT_BRANCH: 'main', CI_JOB_NAME: 'agent' };
    const options = { env, number: [], repository: [], args: ['--label', 'weekly'] };
    const posted = await post(service, report(site, text), 'merge-request', options);
    assert.equal(posted.status, 0, posted.stderr);
    const [request] = service.git.requests;
    assert.deepEqual([request.target_branch, /^agentic-ci\/main-[0-9a-f]{8}$/.test(request.source_branch), request.labels],
                     ['main', true, ['weekly']]);
    assert.equal(treeOf(service, service.git.tip(request.source_branch)), tree);
    assert.ok(service.requests.every((r) => r.startsWith(`GET /api/v4/projects/21/`) || r.startsWith('POST ') || r.startsWith('PUT ')));
    for (const what of ['comment', 'commits', 'status']) {
      const none = await post(service, report(site, text), what, { env, number: [], repository: [] });
      assert.equal(none.status, 78, none.stdout);
      assert.match(none.stderr, /does not name a merge request/);
    }
  });

  claim('is not wanted twice, and parts that GitLab does not have are refused', async (service, site) => {
    const directory = report(site, small(site).text);
    for (const [what, args, why] of [['commits,branch', [], /one place/], ['comment', ['--branch', 'x'], /are for --what branch/],
                                     ['check', [], /GitLab has no check runs/], ['sarif', [], /GitLab has no code scanning/],
                                     ['merge-requests', [], /--what merge-request/], ['branch', ['--label', 'a,b'], /is not a label/]]) {
      const posted = await post(service, directory, what, { args });
      assert.equal(posted.status, 64, posted.stderr);
      assert.match(posted.stderr, why);
    }
    assert.deepEqual(service.requests, []);
  });
});

describe('nothing is lost or doubled', () => {
  const args = ['--label', 'agent'];
  const IMPATIENT = ['--timeout', '6s'];  // A request that hangs fails after two of them.
  let template;
  let patch;
  let directory;
  let requests;
  before(() => {
    template = new Site();
    patch = small(template);
    directory = report(template, patch.text);
  });

  async function serveCopy(act) {
    const bare = fresh('copy');
    fs.cpSync(template.bare, bare, { recursive: true });
    await serve(act, { bare });
  }

  function whole(service) {
    assert.equal(service.git.requests.length, 1);
    const [request] = service.git.requests;
    const tip = service.git.tip(request.source_branch);
    assert.equal(treeOf(service, tip), patch.tree);
    assert.deepEqual(parents(service, tip), [template.head]);
    assert.deepEqual(request.labels, ['agent']);
    assert.equal(service.git.git(['for-each-ref', 'refs/heads/agentic-ci']).trim().split('\n').length, 1);
  }

  it('when all goes well', () => serveCopy(async (service) => {
    const posted = await post(service, directory, 'merge-request', { args });
    assert.equal(posted.status, 0, posted.stderr);
    whole(service);
    requests = service.requests.length;
    assert.ok(requests <= 15, `${requests} requests:\n${service.requests.join('\n')}`);
  }));

  const each = (act) => forEachRequest(requests, 4, serveCopy, async (n, service) => {
    await act(n, service);
    service.before = null;
    service.faults.length = 0;
    const again = await post(service, directory, 'merge-request', { args });
    assert.equal(again.status, 0, again.stderr);
    whole(service);
  });

  const faults = {
    'is refused': (n) => ({ status: [400, 403, 404, 409][n % 4] }),
    'is lost': (n) => (n % 2 ? { status: 503 } : { cut: true }),
    'is too many': () => ({ status: 429, headers: { 'retry-after': '0' } }),
    'is acted on, and its answer lost': (n) => (n % 2 ? { status: 502, after: true } : { cut: true, after: true }),
    'is never answered': (n) => ({ hang: true, after: n % 2 === 0 }),
  };
  for (const [name, fault] of Object.entries(faults)) {
    it(`when any one request ${name}`, () => each(async (n, service) => {
      let seen = 0;
      service.before = () => { if (seen++ === n) service.fail(fault(n)); };
      const posted = await post(service, directory, 'merge-request', { args: fault(n).hang ? [...args, ...IMPATIENT] : args });
      const late = fault(n).hang && posted.status === 75;  // A slow machine may use up the six seconds before.
      assert.ok(seen > n || late, 'the fault was never met');
    }));
  }

  it('when it is killed between any two requests', () => each(async (n, service) => {
    let seen = 0;
    let child;
    service.before = () => { if (seen++ === n) child.kill('SIGKILL'); };
    await post(service, directory, 'merge-request', { args, onStart: (started) => { child = started; } });
  }));

  it('when three post at once', () => serveCopy(async (service) => {
    const all = await Promise.all([1, 2, 3].map(() => post(service, directory, 'merge-request')));
    for (const one of all) assert.equal(one.status, 0, one.stderr);
    await post(service, directory, 'merge-request', { args });
    whole(service);
  }));
});

describe('what a run has spent', () => {
  claim('is counted on a branch by the post, once for each run, whoever posts at the same moment', async (service, site) => {
    const spent = (id, usd) => reportOf('', (record) => {
      record.event.head_sha = site.head;
      Object.assign(record.budget, { id: id.repeat(32), place: 'forge', left_usd: 5, spent_usd: usd, counted: false });
    });
    const ledger = () => JSON.parse(show(service, 'agentic-ci/budget:agentic-ci-budget.json')).runs
      .map(({ id, number, usd, open }) => [id[0], number, usd, open]).sort();
    const reports = [...'abcd'].map((id, at) => spent(id, at + 1));
    const env = job(service, site);
    for (const posted of await Promise.all(reports.map((report) => post(service, report, 'comment', { env, number: [] })))) {
      assert.equal(posted.status, 0, posted.stdout + posted.stderr);
      assert.match(posted.stdout, /^post: made .*budget/m);
    }
    const all = [['a', 7, 1, false], ['b', 7, 2, false], ['c', 7, 3, false], ['d', 7, 4, false]];
    assert.deepEqual(ledger(), all);
    const before = service.git.tip('agentic-ci/budget');
    for (const report of reports) assert.equal((await post(service, report, 'comment', { env, number: [] })).status, 0);
    assert.equal(service.git.tip('agentic-ci/budget'), before);
    assert.match(show(service, before), /\[skip ci\]/);
    assert.equal(service.git.tip('fix'), site.head);
  });
});
