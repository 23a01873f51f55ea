// SPDX-License-Identifier: Apache-2.0
// `agentic-ci post --what commits|branch|pull-request`: the agent's patch as commits, against a real git
// repository behind the GitHub service, and what becomes of it when the forge refuses, fails, is posted to
// twice, or the report lies.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { GitHubService } from '../services/github/service.mjs';
import { BINARY, MOVED, Site, begin, checkMoved, end, finding, folder, forEachRequest, fresh, moveHead, report, small } from './site.mjs';

const TOKEN = 'token-actions';
let contract;

before(() => {
  contract = Contract.load(process.env.MODULES);
  begin('delivery_test');
});
after(end);

function post(service, directory, what, { args = [], env = {}, number = ['--number', '7'], onStart = null } = {}) {
  return new Promise((resolve) => {
    const child = execFile(process.env.BINARY, [
      'post', directory, '--repository', 'acme/site', ...number, '--api-url', service.url, '--marker', 'ci/agent',
      '--what', what, ...args,
    ], { env: { GITHUB_TOKEN: TOKEN, ...env }, cwd: folder }, (error, stdout, stderr) => {
      resolve({ status: error ? error.code : 0, stdout, stderr });
    });
    onStart?.(child);
  });
}

// The environment of a job whose event names the head that the run saw.
function job(service, site) {
  const event = fresh('event');
  const head = { ref: 'fix', sha: site.head, repo: { id: 1 } };
  fs.writeFileSync(event, JSON.stringify({ pull_request: { number: 7, base: { ref: 'main', sha: 'a'.repeat(40), repo: { id: 1 } }, head } }));
  return { GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'pull_request', GITHUB_EVENT_PATH: event, GITHUB_REPOSITORY: 'acme/site',
           GITHUB_API_URL: service.url, GITHUB_WORKFLOW: 'CI', GITHUB_JOB: 'agent' };
}

async function serve(act, site = new Site()) {
  const service = await new GitHubService({ contract, git: site.bare }).start();
  service.reviews.files = [{ filename: 'a.c', patch: '@@ -1,3 +1,4 @@\n one\n two\n three\n+four' }];
  try {
    await act(service, site);
  } finally {
    await service.stop();
  }
}

function claim(name, act) {
  it(name, () => serve(async (service, site) => {
    await act(service, site);
    assert.deepEqual(service.violations, []);
  }));
}

const writes = (service) => service.requests.filter((r) => !r.startsWith('GET ') && !r.includes('graphql'));
const parents = (service, commit) => service.git.git(['log', '-1', '--format=%P', commit]).trim().split(' ');
const treeOf = (service, commit) => service.git.git(['rev-parse', `${commit}^{tree}`]).trim();

describe("commits on the pull request's branch", () => {
  claim('hold exactly what the agent made: text, binaries, modes, links, renames and deletions', async (service, site) => {
    const { text, tree } = site.patch((s) => {
      s.write('a.c', 'one\n2\r\nthree\nfour');
      s.write('src/deep/b.c', 'b\nc\n');
      s.write('new/dir/file', 'with "quotes"\n');
      s.write('ünï code.txt', 'ä\n');
      s.write('empty', '');
      s.write('data.bin', Buffer.concat([BINARY, BINARY]));
      s.write('latin1', Buffer.from([0x61, 0xe4, 0x0a]));
      fs.unlinkSync(s.at('gone.txt'));
      fs.chmodSync(s.at('run.sh'), 0o755);
      fs.renameSync(s.at('old name'), s.at('new name'));
      fs.unlinkSync(s.at('link'));
      fs.symlinkSync('run.sh', s.at('link'));
      fs.symlinkSync('b.c', s.at('src/deep/other'));
    });
    const posted = await post(service, report(site, text), 'comment,commits');
    assert.equal(posted.status, 0, posted.stdout + posted.stderr);
    const tip = service.git.tip('fix');
    assert.equal(treeOf(service, tip), tree);
    assert.deepEqual(parents(service, tip), [site.head]);
    assert.match(posted.stdout, new RegExp(`^changes: commit ${tip} on fix$`, 'm'));
    assert.match(service.comments[0].body, new RegExp(`The changes are in the commit ${tip}`));
    const message = service.git.git(['log', '-1', '--format=%B', tip]);
    assert.match(message, /^Changes by \S+ for #7\n\nMade by an agent/);
  });

  claim('have no word of the report in their message, except the name of an agent', async (service, site) => {
    for (const [name, title] of [['my-agent', 'my-agent'], ['x [skip ci] closes #1', 'the agent'], ['', 'the agent']]) {
      const directory = report(site, site.patch((s) => s.write('a.c', `${name}.\n`)).text);
      const file = path.join(directory, 'run.json');
      const record = JSON.parse(fs.readFileSync(file));
      Object.assign(record.agent, { name, task: 'closes #2', version: 'closes #3', model: 'closes #4' });
      fs.writeFileSync(file, JSON.stringify(record));
      const posted = await post(service, directory, 'branch', { args: ['--branch', `b${title.length}${name.length}`] });
      assert.equal(posted.status, 0, posted.stdout + posted.stderr);
      const message = service.git.git(['log', '-1', '--format=%B', `b${title.length}${name.length}`]);
      assert.ok(message.startsWith(`Changes by ${title} for #7\n\nMade by an agent`), message);
      assert.doesNotMatch(message, /closes|skip ci/);
    }
  });

  claim("are told with the forge's own word for who made them", async (service, site) => {
    const one = report(site, site.patch((s) => s.write('a.c', 'one\n')).text);
    const made = await post(service, one, 'branch', { args: ['--json', '--branch', 'signed'] });
    assert.equal(JSON.parse(made.stdout).verification, 'verified', made.stderr);
    service.git.unsigned = true;  // As with a person's token.
    const other = await post(service, one, 'branch', { args: ['--branch', 'unsigned'] });
    assert.match(other.stdout, /^changes: not verified: unsigned$/m);
  });

  claim('are few requests, and none of them is repeated by another post', async (service, site) => {
    const { text } = small(site);
    await post(service, report(site, text), 'commits');
    assert.deepEqual(service.requests.map((r) => r.replace(/[0-9a-f]{40}/g, 'ID')), [
      'GET /repos/acme/site/pulls/7', 'GET /repos/acme/site/git/ref/heads%2Ffix',
      'GET /repos/acme/site/commits?sha=ID&per_page=100', 'GET /repos/acme/site/git/ref/heads%2Fmain',
      'GET /repos/acme/site/contents/.agentic-ci/config.yml?ref=ID',
      'GET /repos/acme/site/git/trees/ID?recursive=1',
      'GET /repos/acme/site/git/blobs/ID', 'POST /repos/acme/site/git/trees', 'POST /repos/acme/site/git/commits',
      'PATCH /repos/acme/site/git/refs/heads%2Ffix']);
    const tip = service.git.tip('fix');
    const before = writes(service).length;
    const again = await post(service, report(site, text), 'commits');
    assert.equal(again.status, 0, again.stderr);
    assert.match(again.stdout, new RegExp(`changes: commit ${tip} on fix`));
    assert.equal(service.git.tip('fix'), tip);
    assert.equal(writes(service).length, before);
    // A person's commit on top does not bring it back.
    site.git('fetch', '-q', site.bare, 'fix');
    site.git('reset', '-q', '--hard', 'FETCH_HEAD');
    site.write('more', 'x\n');
    site.commit('more');
    site.push();
    const later = await post(service, report(site, text), 'commits');
    assert.match(later.stdout, new RegExp(`changes: commit ${tip} on fix`));
    assert.equal(writes(service).length, before);
  });

  for (const one of MOVED.cases) {
    claim(`end as a person expects with ${one.name}`, async (service, site) => {
      const directory = moveHead(site, one);
      const refusal = { message: 'Protected branch update failed for refs/heads/fix.', documentation_url: 'https://docs.github.com/rest' };
      if (one.protected) service.fail({ method: 'PATCH', path: '/git/refs/', status: 422, body: JSON.stringify(refusal), times: -1 });
      const posted = await post(service, directory, 'comment,commits', { env: one.event ? job(service, site) : {} });
      checkMoved(site, one, posted, (words) => service.git.git(words), true);
      if (one.protected) return assert.match(service.comments[0].body, /Protected branch update failed/);
      if (one.want.how && one.want.end === 'commit') assert.ok(service.comments[0].body.includes('the branch has moved from'), service.comments[0].body);
      // Once more changes nothing.
      const before = writes(service).length;
      const again = await post(service, directory, 'commits', { env: one.event ? job(service, site) : {} });
      assert.equal(again.status, one.want.status ?? 0, again.stdout + again.stderr);
      assert.equal(writes(service).length, before, again.stdout);
    });
  }

  claim('are merged when the branch moves while they are made', async (service, site) => {
    const { text } = small(site);
    let tip;
    service.hooks.push({ method: 'PATCH', path: '/git/refs/', run: () => {
      if (tip) return;
      site.write('more', 'x\n');
      tip = site.commit('more');
      site.push();
    } });
    const posted = await post(service, report(site, text), 'commits');
    assert.equal(posted.status, 0, posted.stdout + posted.stderr);
    assert.deepEqual(parents(service, service.git.tip('fix')), [tip]);
    assert.equal(service.git.git(['show', 'fix:a.c']), 'one\n2\nthree\nfour\n');
  });

  claim("are never on a fork's branch, which is told before anything is written", async (service, site) => {
    service.reviews.fork = true;
    const { text } = small(site);
    for (const what of ['commits', 'branch', 'pull-request']) {
      const posted = await post(service, report(site, text), what);
      assert.equal(posted.status, 0, posted.stderr);
      assert.match(posted.stdout, /refused: changes: the pull request comes from a fork/);
    }
    assert.deepEqual(writes(service), []);
    assert.ok(service.requests.every((r) => r === 'GET /repos/acme/site/pulls/7'), service.requests.join('\n'));
    // The control: the same report where the head is the repository's own.
    service.reviews.fork = false;
    assert.equal((await post(service, report(site, text), 'commits')).status, 0);
    assert.notEqual(service.git.tip('fix'), site.head);
  });

  claim('replace the suggestions, and keep the threads of the findings', async (service, site) => {
    const { text } = small(site);
    const findings = [finding('far', { path: 'a.c', line: 4, end_line: 4 })];
    const directory = report(site, text, { findings });
    const posted = await post(service, directory, 'comment,review,commits');
    assert.equal(posted.status, 0, posted.stderr);
    const bodies = () => service.reviews.threads.map((t) => t.comments[0].body);
    assert.equal(bodies().length, 1);
    assert.match(bodies()[0], /far/);
    assert.doesNotMatch(bodies()[0], /suggestion/);
    const again = await post(service, directory, 'comment,review,commits');
    assert.match(again.stdout, /0 resolved/);
    assert.doesNotMatch(service.comments[0].body, /has changed since this run/);
    assert.equal(bodies().length, 1);
    assert.equal(service.reviews.threads[0].resolved, false);
  });

  claim('need the permission to write contents, and say so', async (service, site) => {
    service.fail({ method: 'POST', path: '/git/trees', status: 403, times: -1 });
    const posted = await post(service, report(site, small(site).text), 'comment,commits');
    assert.equal(posted.status, 77);
    assert.match(posted.stderr, /permissions: \{ contents: write \}/);
    assert.equal(service.comments.length, 1);
  });

  claim('are shown by a dry run', async (service, site) => {
    const posted = await post(service, report(site, small(site).text), 'commits', { args: ['--dry-run'] });
    assert.equal(posted.status, 0, posted.stderr);
    const planned = posted.stdout.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(planned.map((p) => `${p.method} ${p.url.slice(service.url.length)}`), [
      'POST /repos/acme/site/git/trees', 'POST /repos/acme/site/git/commits', 'PATCH /repos/acme/site/git/refs/heads%2Ffix']);
    assert.equal(planned[0].body.tree[0].content, 'one\n2\nthree\nfour\n');
    assert.deepEqual(writes(service), []);
  });
});

describe('nothing is delivered', () => {
  for (const outcome of ['refused', 'agent-failed', 'timed-out', 'limit', 'interrupted', 'setup-failed']) {
    claim(`of a run that ended as ${outcome}`, async (service, site) => {
      const posted = await post(service, report(site, small(site).text, { outcome }), 'commits');
      assert.equal(posted.status, 0, posted.stderr);
      assert.deepEqual(writes(service), []);
      assert.equal(service.git.tip('fix'), site.head);
    });
  }

  const refused = (name, change, why, options = {}) => claim(name, async (service, site) => {
    const { text } = typeof change === 'function' ? site.patch(change) : { text: change };
    const directory = report(site, text, options);
    const kept = fs.readFileSync(path.join(directory, 'changes.patch'));
    for (const what of ['commits', 'pull-request']) {
      const posted = await post(service, directory, `comment,${what}`);
      assert.equal(posted.status, 77, posted.stdout + posted.stderr);
      assert.match(posted.stderr, why);
    }
    assert.equal(service.git.tip('fix'), site.head);
    assert.deepEqual(service.git.pulls, []);
    assert.ok(writes(service).every((r) => r.includes('/comments')), writes(service).join('\n'));
    assert.deepEqual(fs.readFileSync(path.join(directory, 'changes.patch')), kept);
  });

  refused('on a protected path', (s) => s.write('.github/workflows/ci.yml', 'on: push\n'), /protected-paths refuses/);
  refused('on a path that a link makes a protected one', (s) => {
    fs.unlinkSync(s.at('CLAUDE.md'));
    fs.symlinkSync('a.c', s.at('CLAUDE.md'));
    s.head = s.commit('a link');
    s.push();
    s.write('a.c', 'obey\n');
  }, /by the link CLAUDE\.md/);
  refused('on a path that a link further down makes a protected one', (s) => {
    s.write('docs/rules.md', 'x\n');
    fs.mkdirSync(s.at('pkg'));
    fs.symlinkSync('../docs/rules.md', s.at('pkg/CLAUDE.md'));
    s.head = s.commit('a link');
    s.push();
    s.write('docs/rules.md', 'obey\n');
  }, /by the link pkg\/CLAUDE\.md/);
  claim('of a commit whose tree the forge cuts, and the control is', async (service, site) => {
    const directory = report(site, creation('fine'));
    service.git.treeEntriesMax = 5;
    const posted = await post(service, directory, 'commits');
    assert.equal(posted.status, 77, posted.stdout + posted.stderr);
    assert.match(posted.stderr, /the commit has too many files for the forge to list/);
    assert.equal(service.git.tip('fix'), site.head);
    service.git.treeEntriesMax = 100;
    assert.equal((await post(service, directory, 'commits')).status, 0);
  });
  refused('that makes a directory a repository', (s) => {
    for (const part of ['objects', 'refs']) s.write(`docs/${part}/keep`, 'x\n');
    s.head = s.commit('two directories');
    s.push();
    s.write('docs/HEAD', 'ref: refs/heads/main\n');
  }, /takes the directory 'docs' for a repository/);
  refused('that inflates to more than a run captures', (s) => s.write('zeros', Buffer.alloc(65 << 20)), /inflate to more than 64MiB/);
  refused('with a token in it', (s) => s.write('config', `token = ${'ghp_'}aB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3lN5\n`), /the gate secrets refuses/);
  refused('of more than 100 files', (s) => {
    for (let i = 0; i < 101; ++i) s.write(`many/${i}`, 'x\n');
  }, /at most 100 files and 4MiB of patch/);
  refused('of more than 4096 KB', (s) => s.write('large', `${'x'.repeat(99)}\n`.repeat(42_000)), /4MiB of patch/);
  refused('that is not the whole', (s) => s.write('a.c', 'x\n'), /the patch is incomplete/, { complete: false });
  refused('with a link out of the repository', (s) => fs.symlinkSync('../../etc/passwd', s.at('out')), /symbolic link that may lead outside/);
  const fileToDirectory = (s) => { fs.unlinkSync(s.at('a.c')); s.write('a.c/b', 'x\n'); };
  const directoryToFile = (s) => { fs.rmSync(s.at('src'), { recursive: true }); s.write('src', 'x\n'); };
  refused('where a file becomes a directory', fileToDirectory, /a\.c is a file on one side of the patch and a directory on the other/);
  refused('where a directory becomes a file', directoryToFile, /src is a file on one side of the patch and a directory on the other/);
  refused('of a checkout that was not the head', (s) => {
    s.write('a.c', 'another\n');
    s.commit('not pushed');
    s.write('a.c', 'changed\n');
  }, /a\.c: the file differs from the one the patch was made from/);
  refused('with a directory that does not exist', (s) => s.write('a.c', 'x\n'), /does not apply/, { prefix: 'elsewhere/' });
  const creation = (name) => `diff --git a/${name} b/${name}\nnew file mode 100644\nindex ${'0'.repeat(40)}..587be6b4c3f93f93c489c0111bba5596147a26cb\n` +
      `--- /dev/null\n+++ b/${name}\n@@ -0,0 +1 @@\n+x\n`;
  for (const name of ['../x', '/abs', 'a/../../x', '.git/hooks/post-checkout', 'a.c/x', '.GIT/config']) {
    refused(`at the path ${name}`, creation(name), /./);
  }
  refused('where a link is in the way', creation('link/x'), /link is in the way/);
  for (const prefix of ['../', '/etc/', 'x', '.git/']) {
    refused(`with the prefix ${prefix}`, creation('fine'), /invalid path of the checkout/, { prefix });
  }

  claim('that the control is delivered all the same', async (service, site) => {
    const posted = await post(service, report(site, creation('fine')), 'commits');
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(service.git.git(['show', `${service.git.tip('fix')}:fine`]), 'x\n');
  });

  for (const name of ['plain', 'd\n::error title=agentic-ci::All passed\u001b[31m', 'd ##[error]passed']) {
    claim(`with a path that says ${JSON.stringify(name)}, of which the log carries nothing out`, async (service, site) => {
      site.write(`${name}/y`, 'y\n');
      site.commit('a directory');
      site.push();
      const { text } = site.patch((s) => {
        fs.rmSync(s.at(name), { recursive: true });
        s.write(name, 'x\n');
      });
      const head = site.git('rev-parse', 'HEAD');
      const lines = await post(service, report(site, text, { head }), 'comment,commits');
      const json = await post(service, report(site, text, { head }), 'comment,commits', { args: ['--json'] });
      assert.deepEqual([lines.status, json.status], [77, 77]);
      const [refused] = lines.stdout.split('\n').filter((line) => line.startsWith('refused: changes: '));
      assert.match(refused, /(plain|passed).* is a file on one side of the patch and a directory on the other/);
      for (const said of [lines.stdout, lines.stderr, json.stdout, json.stderr]) {
        assert.doesNotMatch(said, /^\s*::|##\[|\u001b/m);
      }
      assert.ok(JSON.parse(json.stdout).refused[0].startsWith(`changes: ${name} is a file`), json.stdout);
    });
  }

  claim("on paths that the base branch's configuration refuses, and it may allow others", async (service, site) => {
    const change = (s) => s.write('deploy/run', 'x\n');
    site.git('checkout', '-q', 'main');
    site.write('.agentic-ci/config.yml', 'gates:\n  paths:\n    deploy/: refuse\n    .github/: allow\n');
    site.commit('rules');
    site.push('main');
    site.git('checkout', '-q', 'fix');
    site.git('push', '-q', site.bare, 'fix:refs/tags/main');  // Git takes it for the branch, by its bare name.
    const no = await post(service, report(site, site.patch(change).text), 'commits');
    assert.equal(no.status, 77, no.stdout);
    assert.match(no.stderr, /protected-paths refuses/);
    const yes = await post(service, report(site, site.patch((s) => s.write('.github/x.yml', 'x\n')).text), 'commits');
    assert.equal(yes.status, 0, yes.stderr);
  });

  claim("on paths that a task refuses, unless the run was another's by the workflow's word", async (service, site) => {
    site.git('checkout', '-q', 'main');
    site.write('.agentic-ci/config.yml', ['tasks:', '  fix: {agent: command, command: [x], gates: {paths: {docs/: refuse}}}',
      '  review: {agent: command, command: [x], gates: {bytes: 400, paths: {a.c: refuse}}}', ''].join('\n'));
    site.commit('rules');
    site.push('main');
    site.git('checkout', '-q', 'fix');
    const findings = [finding('m', { path: 'a.c', line: 4, end_line: 4, suggestion: '4\n' })];
    const one = report(site, small(site).text, { findings });
    for (const [args, why] of [[[], /a\.c: protected/], [['--task', 'review'], /a\.c: protected/], [['--task', 'fixx'], /no task 'fixx'/]]) {
      const refused = await post(service, one, 'comment,review,commits', { args });
      assert.equal(refused.status, 77, refused.stdout);
      assert.match(refused.stdout, why);
      assert.match(service.comments[0].body + JSON.stringify(service.reviews.threads), /that is not offered/);
    }
    const long = report(site, site.patch((s) => s.write('b.c', 'x'.repeat(500))).text);
    const large = await post(service, long, 'commits');
    assert.match(large.stderr, /the gate size refuses .*the limit is 400/);
    assert.equal(service.git.tip('fix'), site.head);
    const delivered = await post(service, one, 'commits', { args: ['--task', 'fix'] });
    assert.equal(delivered.status, 0, delivered.stderr);
    assert.notEqual(service.git.tip('fix'), site.head);
  });
});

describe('a branch with a pull request', () => {
  claim('is made once, updated in place, and never forced', async (service, site) => {
    const one = small(site);
    const first = await post(service, report(site, one.text), 'comment,pull-request', { args: ['--title', 'Fix it', '--label', 'agent', '--label', 'fix'] });
    assert.equal(first.status, 0, first.stderr);
    assert.equal(service.git.pulls.length, 1);
    const [pull] = service.git.pulls;
    assert.deepEqual([pull.base, pull.title], ['fix', 'Fix it']);
    assert.match(pull.head, /^agentic-ci\/pull-7-[0-9a-f]{8}$/);
    assert.match(pull.body, /^<!-- agentic-ci:ci\/agent -->/);
    assert.equal(treeOf(service, service.git.tip(pull.head)), one.tree);
    assert.equal(service.git.tip('fix'), site.head);
    assert.deepEqual(service.git.labels.get(pull.number), ['agent', 'fix']);
    assert.match(first.stdout, /https:\/\/github\.com\/acme\/site\/pull\/100/);
    assert.match(service.comments[0].body, /The changes are in #100\./);

    const before = writes(service).length;
    await post(service, report(site, one.text), 'pull-request', { args: ['--title', 'Fix it', '--label', 'fix'] });
    assert.equal(writes(service).length, before, 'the same report wrote again');

    const two = site.patch((s) => s.write('a.c', 'one\ntwo\n3\nfour\n'));
    const old = service.git.tip(pull.head);
    await post(service, report(site, two.text), 'pull-request', { args: ['--title', 'Fix it better'] });
    assert.equal(service.git.pulls.length, 1);
    const tip = service.git.tip(pull.head);
    assert.equal(treeOf(service, tip), two.tree);
    assert.deepEqual(parents(service, tip), [old]);
    assert.equal(service.git.pulls[0].title, 'Fix it better');

    // The pull request goes on: the branch follows, and has the new head in it.
    site.write('more', 'x\n');
    site.head = site.commit('more');
    site.push();
    const three = small(site);
    await post(service, report(site, three.text), 'pull-request');
    assert.equal(treeOf(service, service.git.tip(pull.head)), three.tree);
    assert.deepEqual(parents(service, service.git.tip(pull.head)), [tip, site.head]);
    assert.equal(service.git.pulls.length, 1);
  });

  claim('keeps what a person pushed to it', async (service, site) => {
    await post(service, report(site, small(site).text), 'pull-request');
    const { head } = service.git.pulls[0];
    site.git('fetch', '-q', site.bare, head);
    site.git('checkout', '-q', 'FETCH_HEAD');
    site.write('mine', 'x\n');
    const mine = site.commit('mine');
    site.push(`refs/heads/${head}`);
    site.git('checkout', '-q', 'fix');
    const again = await post(service, report(site, site.patch((s) => s.write('a.c', 'x\n')).text), 'pull-request');
    assert.equal(again.status, 77, again.stdout);
    assert.match(again.stderr, /has commits that agentic-ci did not make/);
    assert.equal(service.git.tip(head), mine);
  });

  claim('that a person closed stays closed until there is a new patch', async (service, site) => {
    const one = report(site, small(site).text);
    await post(service, one, 'pull-request');
    service.git.pulls[0].state = 'closed';
    const again = await post(service, one, 'pull-request');
    assert.equal(again.status, 0, again.stderr);
    assert.match(again.stdout, /refused: changes: the pull request #100 is closed/);
    assert.equal(service.git.pulls.length, 1);
    await post(service, report(site, site.patch((s) => s.write('a.c', 'x\n')).text), 'pull-request');
    assert.equal(service.git.pulls.length, 2);
  });

  claim('that the repository lets no workflow open is told with the setting, and the comment says where the changes are', async (service, site) => {
    service.fail({ method: 'POST', path: '/pulls', status: 403, times: -1,
                   body: { message: 'GitHub Actions is not permitted to create or approve pull requests.', documentation_url: 'https://docs.github.com/', status: '403' } });
    const posted = await post(service, report(site, small(site).text), 'comment,pull-request');
    assert.equal(posted.status, 77, posted.stdout);
    assert.match(posted.stdout, /Settings > Actions > General: Allow GitHub Actions to create and approve pull requests/);
    const { body } = service.comments[0];
    assert.match(body, /The changes are in the commit [0-9a-f]{40} on the branch `agentic-ci\/[^`]+`, and in no open pull request: /);
    assert.doesNotMatch(body, /not delivered/);
  });

  claim('that is closed is not called the place of the changes', async (service, site) => {
    const one = report(site, small(site).text);
    await post(service, one, 'comment,pull-request');
    assert.match(service.comments[0].body, /The changes are in #100\./);
    service.git.pulls[0].state = 'closed';
    await post(service, one, 'comment,pull-request');
    assert.match(service.comments[0].body, /The changes are in the commit [^,]+, and in no open pull request: the pull request \S+ is closed\./);
    assert.doesNotMatch(service.comments[0].body, /not delivered/);
  });

  claim('is made for a branch without a pull request, such as of a schedule', async (service, site) => {
    const event = path.join(folder, 'event.json');
    fs.writeFileSync(event, '{}');
    site.git('checkout', '-q', 'main');
    site.head = site.git('rev-parse', 'HEAD');
    const { text, tree } = site.patch((s) => s.write('a.c', 'x\n'));
    const output = fresh('output');
    const posted = await post(service, report(site, text), 'pull-request', { number: [], env: {
      GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'schedule', GITHUB_EVENT_PATH: event, GITHUB_REPOSITORY: 'acme/site',
      GITHUB_SHA: site.head, GITHUB_REF: 'refs/heads/main', GITHUB_OUTPUT: output } });
    assert.equal(posted.status, 0, posted.stderr);
    const [pull] = service.git.pulls;
    assert.deepEqual([pull.base, /^agentic-ci\/main-[0-9a-f]{8}$/.test(pull.head)], ['main', true]);
    assert.equal(treeOf(service, service.git.tip(pull.head)), tree);
    assert.match(fs.readFileSync(output, 'utf8'), /pull-request-url<<\w+\nhttps:\/\/github\.com\/acme\/site\/pull\/100\n/);
  });

  claim('is not made from a commit that is not on the branch', async (service, site) => {
    site.git('checkout', '-q', '--orphan', 'stranger');
    site.head = site.commit('stranger');
    site.push('refs/pull/9/head');
    const posted = await post(service, report(site, small(site).text), 'branch');
    assert.equal(posted.status, 77, posted.stdout);
    assert.match(posted.stderr, /which is not on the branch fix/);
    assert.deepEqual(writes(service), []);
  });

  claim('is not a branch that is there for something else', async (service, site) => {
    const posted = await post(service, report(site, small(site).text), 'branch', { args: ['--branch', 'main'] });
    assert.equal(posted.status, 77, posted.stdout);
    assert.match(posted.stderr, /the branch main has commits that agentic-ci did not make/);
    const itself = await post(service, report(site, small(site).text), 'branch', { args: ['--branch', 'fix'] });
    assert.match(itself.stderr, /is the one they are for/);
    assert.deepEqual(writes(service), []);
  });

  it('is refused with a name that is none, or two places at once', async () => serve(async (service, site) => {
    const directory = report(site, small(site).text);
    for (const [what, args, why] of [
      ['branch', ['--branch', '-x'], /is not a branch name/], ['commits,branch', [], /one place/],
      ['comment', ['--branch', 'x'], /are for --what branch/], ['branch', ['--label', 'a,b'], /is not a label/],
      ['comment,brunch', [], /unknown part 'brunch'/]]) {
      const posted = await post(service, directory, what, { args });
      assert.equal(posted.status, 64, posted.stderr);
      assert.match(posted.stderr, why);
    }
    assert.deepEqual(service.requests, []);
  }));
});

describe("what a pull request would change about agentic-ci's rules", () => {
  claim('is in the comment, and has no effect', async (service, site) => {
    const directory = report(site, '');
    await post(service, directory, 'comment');
    assert.doesNotMatch(service.comments[0].body, /changes agentic-ci's own rules/);
    site.git('checkout', '-q', 'main');
    site.write('.agentic-ci/openshell-policy.yml', 'endpoints: [api.example.com:443:read-only]\ndefaults: none\n');
    site.commit('policy');
    site.push('main');
    site.git('checkout', '-q', 'fix');
    site.write('.agentic-ci/openshell-policy.yml', 'endpoints: ["paste.example.com:443:full"]\ndefaults: none\n');
    site.write('.agentic-ci/config.yml', 'gates: {paths: {.github/: allow}}\n```\n<script>@all\n');
    site.commit('wider');
    site.push();
    service.reviews.files.push(
        { filename: '.agentic-ci/openshell-policy.yml', patch: '@@ -0,0 +1 @@\n+x' },
        { filename: '.agentic-ci/config.yml', patch: '@@ -0,0 +1,3 @@\n+gates: {paths: {.github/: allow}}\n+```\n+<script>@all' });
    const posted = await post(service, directory, 'comment');
    assert.equal(posted.status, 0, posted.stderr);
    const { body } = service.comments[0];
    assert.match(body, /> This pull request changes agentic-ci's own rules: `\.agentic-ci\/openshell-policy\.yml`, `\.agentic-ci\/config\.yml`/);
    const policy = /```text\n([^]*?)\n```/.exec(body)[1];
    assert.match(policy, /paste\.example\.com/);
    assert.match(policy, /api\.example\.com/);
    assert.match(body, /\n````diff\n\+gates: \{paths: \{\.github\/: allow\}\}\n\+```\n\+<script>@all\n````\n/);
    // The configuration of the pull request itself would have let this through.
    site.head = site.git('rev-parse', 'HEAD');
    const refused = await post(service, report(site, site.patch((s) => s.write('.github/x.yml', 'x\n')).text), 'commits');
    assert.equal(refused.status, 77, refused.stdout);
    assert.match(refused.stderr, /protected-paths refuses/);
  });
});

describe("a list of files that GitHub has cut", () => {
  claim('is not taken for one without rules in it', async (service, site) => {
    const directory = report(site, '');
    service.reviews.files = [{ filename: '.agentic-ci/config.yml', patch: '@@ -0,0 +1 @@\n+x' }];
    for (const [changedFiles, cut] of [[1, false], [2, true]]) {
      service.reviews.changedFiles = changedFiles;
      await post(service, directory, 'comment');
      const { body } = service.comments[0];
      assert.match(body, /> This pull request changes agentic-ci's own rules/);
      assert.equal(/> The forge lists only 1 of the 2 changed files/.test(body), cut);
    }
    service.reviews.files[0].filename = 'a.c';
    await post(service, directory, 'comment');
    assert.match(service.comments[0].body, /> \[!WARNING\]\n> The forge lists only 1 of the 2 changed files\. The others may/);
    service.reviews.changedFiles = null;
    await post(service, directory, 'comment');
    assert.doesNotMatch(service.comments[0].body, /own rules/);
  });
});

describe('statuses, code scanning and labels', () => {
  claim('say the same once', async (service, site) => {
    const findings = [finding('wrong', { path: 'a.c', line: 2, end_line: 2, severity: 'error' })];
    const directory = report(site, '', { findings });
    for (let i = 0; i < 2; ++i) {
      const posted = await post(service, directory, 'comment,status,sarif', { args: ['--label', 'ägent'] });
      assert.equal(posted.status, 0, posted.stderr);
    }
    assert.equal(service.git.statuses.length, 1);
    assert.equal(service.git.statuses[0].context, 'agentic-ci (ci/agent)');
    assert.equal(service.git.statuses[0].sha, site.head);
    assert.deepEqual(service.git.labels.get(7), ['ägent']);
    const [log] = service.git.sarifs;
    assert.deepEqual([log.ref, log.commit_sha], ['refs/pull/7/head', site.head]);
    const sarif = JSON.parse(zlib.gunzipSync(Buffer.from(log.sarif, 'base64')));
    assert.ok(sarif.runs[0].results.some((result) => result.message.text === 'wrong'));
    assert.equal(writes(service).filter((r) => r.includes('labels')).length, 1);
  });
});

describe('nothing is lost or doubled', () => {
  const what = 'status,pull-request';
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
    assert.equal(service.git.pulls.length, 1);
    const [pull] = service.git.pulls;
    assert.equal(treeOf(service, service.git.tip(pull.head)), patch.tree);
    assert.equal(service.git.git(['rev-list', '--count', service.git.tip(pull.head), '^fix']).trim(), '1');
    assert.deepEqual(service.git.labels.get(pull.number), ['agent']);
    assert.equal(service.git.git(['for-each-ref', 'refs/heads/agentic-ci']).trim().split('\n').length, 1);
    assert.equal(new Set(service.git.statuses.map((s) => JSON.stringify(s))).size, 1);
  }

  it('when all goes well', () => serveCopy(async (service) => {
    const posted = await post(service, directory, what, { args });
    assert.equal(posted.status, 0, posted.stderr);
    whole(service);
    requests = service.requests.length;
    assert.ok(requests <= 17, `${requests} requests:\n${service.requests.join('\n')}`);
    assert.deepEqual(service.violations, []);
  }));

  const each = (act) => forEachRequest(requests, 6, serveCopy, async (n, service) => {
    await act(n, service);
    const again = await post(service, directory, what, { args });
    assert.equal(again.status, 0, again.stderr);
    whole(service);
  });

  const REFUSALS = [403, 404, 409, 422];  // Which all take the same way: each request meets one of them.
  const faults = {
    'is refused': (n) => ({ status: REFUSALS[n % 4] }),
    'is too many or too early': (n) => ({ status: n % 2 ? 429 : 503, headers: { 'retry-after': '0' } }),
    'is lost': () => ({ cut: true }),
    'is acted on, and its answer lost': (n) => (n % 2 ? { status: 502, after: true } : { cut: true, after: true }),
    'is never answered': (n) => ({ hang: true, after: n % 2 === 0 }),
  };
  for (const [name, fault] of Object.entries(faults)) {
    it(`when any one request ${name}`, () => each(async (n, service) => {
      let seen = 0;
      service.before = () => { if (seen++ === n) service.fail(fault(n)); };
      await post(service, directory, what, { args: fault(n).hang ? [...args, ...IMPATIENT] : args });
      service.faults.length = 0;
      service.before = null;
      assert.deepEqual(service.violations.filter((v) => !/\d{3} is not described$/.test(v)), []);
    }));
  }

  it('when it is killed between any two requests, or while one is acted on', () => each(async (n, service) => {
    let seen = 0;
    let child;
    service.before = () => {
      if (seen++ !== n) return;
      child.kill('SIGKILL');
      if (n % 2) service.fail({ cut: true });
    };
    await post(service, directory, what, { args, onStart: (started) => { child = started; } });
    service.before = null;
    service.faults.length = 0;
  }));

  for (const way of ['commits', 'pull-request']) {
    it(`when three post at once: ${way}`, () => serveCopy(async (service) => {
      const all = await Promise.all([1, 2, 3].map(() => post(service, directory, way)));
      for (const one of all) assert.equal(one.status, 0, one.stderr);
      assert.equal(new Set(all.map((one) => /commit ([0-9a-f]{40})/.exec(one.stdout)[1])).size, 1);
      const branch = way === 'commits' ? 'fix' : service.git.pulls[0].head;
      assert.equal(treeOf(service, service.git.tip(branch)), patch.tree);
      assert.deepEqual(parents(service, service.git.tip(branch)), [template.head]);
      assert.equal(service.git.pulls.length, way === 'commits' ? 0 : 1);
      assert.deepEqual(service.violations, []);
    }));
  }
});
