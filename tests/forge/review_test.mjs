// SPDX-License-Identifier: Apache-2.0
// `agentic-ci post`: findings and suggestions beside the lines, check runs, and what becomes of them when
// the forge refuses, fails, or is posted to twice.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { ACTIONS_BOT, GitHubService } from '../services/github/service.mjs';
import { begin, end, finding, folder, reportOf } from './site.mjs';

const TOKEN = 'token-actions';
const HEAD = 'b'.repeat(40);
const FILES = [
  { filename: 'src/a.c', patch: '@@ -1,2 +1,4 @@\n one\n+two\n+three\n four\n@@ -30 +32,2 @@\n x\n+y' },
  { filename: 'logo.png' },
];
const PATCH = `diff --git a/src/a.c b/src/a.c
index ${'1'.repeat(40)}..${'2'.repeat(40)} 100644
--- a/src/a.c
+++ b/src/a.c
@@ -1,4 +1,4 @@
 one
-two
+2
 three
 four
`;
let contract;

before(() => {
  contract = Contract.load(process.env.MODULES);
  begin('review_test');
});
after(end);

const onLine = (message, line, more = {}) =>
    finding(message, { path: 'src/a.c', line, end_line: line, ...more });

// A report directory with these findings of the agent's, and this patch.
const report = (findings, { patch = '', head = HEAD, started = 1700000000000 } = {}) =>
  reportOf(patch, (record) => {
    record.findings = findings;
    record.event.head_sha = head;
    record.started_at_ms = started;
  });

function post(service, directory, { what = 'comment,review', token = TOKEN, args = [], env = {}, timed = false } = {}) {
  return new Promise((resolve) => {
    const child = execFile('sh', [
      // The second line of `times` is the children's.
      '-c', timed ? '"$0" "$@"; status=$?; times >&2; exit $status' : 'exec "$0" "$@"', process.env.BINARY, 'post', directory, '--repository', 'acme/site', '--number', '7', '--api-url', service.url,
      '--marker', 'ci/agent', '--what', what, ...args,
    ], { env: { GITHUB_TOKEN: token, ...env }, cwd: folder }, (error, stdout, stderr) => {
      const times = /\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n$/.exec(stderr)?.slice(1).map(Number) ?? [];
      const cpu_ms = 1000 * (60 * (times[0] + times[2]) + times[1] + times[3]);
      resolve({ status: error ? error.code : 0, signal: error?.signal, stdout, stderr, cpu_ms });
    });
    resolve.child = child;
  });
}

function claim(name, act) {
  it(name, async () => {
    const service = await new GitHubService({ contract }).start();
    service.reviews.files = structuredClone(FILES);
    try {
      await act(service, service.reviews);
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });
}

const texts = (reviews) => reviews.threads.map((thread) => thread.comments[0].body);
const writes = (service) => service.requests.filter((r) => !r.startsWith('GET ') && !r.includes('graphql'));

describe('a review', () => {
  claim('has findings and suggested changes beside their lines', async (service, reviews) => {
    const directory = report([
      onLine('two lines are wrong', 2, { end_line: 3, suggestion: '2\n3\n', severity: 'error' }),
      onLine('somewhere else in the file', 20),
      finding('about the whole'),
      finding('of another file', { path: 'src/b.c', line: 1 }),
    ], { patch: PATCH });
    const posted = await post(service, directory);
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /^review: 2 beside lines, 1 on files, 2 in the comment only, 0 resolved$/m);
    assert.equal(reviews.reviews.length, 1);
    const [first, second, third] = reviews.threads;
    assert.deepEqual([first.path, first.start_line, first.line], ['src/a.c', 2, 3]);
    assert.match(first.comments[0].body, /^<!-- agentic-ci:ci\/agent:[0-9a-f]{32} -->\n\*\*error\*\* two lines are wrong/);
    assert.match(first.comments[0].body, /\n```suggestion\n2\n3\n```\n$/);
    // The agent's own change, which no finding without a suggestion stands for.
    assert.deepEqual([second.start_line, second.line], [null, 2]);
    assert.match(second.comments[0].body, /The agent suggests this change\.[^]*```suggestion\n2\n```\n$/);
    assert.equal(third.subject, 'FILE');
    assert.match(third.comments[0].body, /somewhere else in the file/);
    for (const text of ['about the whole', 'of another file']) assert.ok(service.comments[0].body.includes(text));
  });

  claim('is not repeated, follows what moved, and resolves what is gone', async (service, reviews) => {
    await post(service, report([onLine('stays', 2), onLine('goes', 3)]));
    assert.equal(reviews.threads.length, 2);
    const before = writes(service).length;
    let again = await post(service, report([onLine('stays', 2), onLine('goes', 3)]));
    assert.equal(again.status, 0, again.stderr);
    assert.equal(reviews.threads.length, 2);
    assert.equal(writes(service).length - before, 1, 'more than the comment was written');
    again = await post(service, report([onLine('stays', 2)]));
    assert.match(again.stdout, /1 resolved/);
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [false, true]);
    // Its lines were changed: it is posted where it is now, and the old thread is resolved.
    reviews.threads[0].outdated = true;
    await post(service, report([onLine('stays', 3)]));
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [true, true, false]);
    assert.equal(reviews.threads[2].line, 3);
    // A person who resolves a thread has the last word.
    Object.assign(reviews.threads[2], { resolved: true, resolvedBy: 'octocat', outdated: true });
    await post(service, report([onLine('stays', 2)]));
    assert.equal(reviews.threads.length, 3);
    // A report without findings ends what is left, with one request.
    reviews.threads[2].resolved = false;
    const silent = service.requests.length;
    await post(service, report([]), { what: 'review' });
    assert.equal(reviews.threads[2].resolved, true);
    assert.equal(service.requests.length - silent, 2);
  });

  claim("leaves other people's threads alone, whatever they say", async (service, reviews) => {
    await post(service, report([onLine('ours', 2)]));
    const copy = structuredClone(reviews.threads[0]);
    copy.id = 'PRRT_other';
    copy.comments[0] = { id: 1, author: { id: 9, login: 'mallory' }, body: copy.comments[0].body };
    reviews.threads = [copy];
    await post(service, report([onLine('ours', 2)]));
    assert.equal(reviews.threads.length, 2, 'a copied marker passed for ours');
    await post(service, report([]));
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [false, true]);
  });

  claim('has the thirty worst beside the lines, and every finding somewhere', async (service, reviews) => {
    const findings = [];
    for (let i = 0; i < 500; ++i) findings.push(onLine(`finding number ${i}.`, 2 + i % 2));
    findings[499].severity = 'error';
    const directory = report(findings);
    const posted = await post(service, directory, { what: 'comment,review,check', timed: true });
    assert.equal(posted.status, 0, posted.stderr);
    assert.ok(posted.cpu_ms < 100, `${posted.cpu_ms} ms of CPU`);
    assert.equal(reviews.threads.length, 30);
    assert.match(texts(reviews)[0], /finding number 499\./);
    assert.equal(reviews.checkRuns.length, 1);
    const told = new Set(reviews.checkRuns[0].annotations.map((a) => a.message));
    for (let i = 0; i < 500; ++i) assert.ok(told.has(`finding number ${i}.`), `finding ${i} is lost`);
    assert.equal(reviews.checkRuns[0].status, 'completed');
    // Ten batches of 50 findings and refusals, one review, one comment.
    const count = (start) => service.requests.filter((r) => r.startsWith(start)).length;
    assert.equal(count('POST /repos/acme/site/pulls/7/reviews'), 1);
    assert.equal(count('POST /repos/acme/site/check-runs') + count('PATCH /repos/acme/site/check-runs'),
                 Math.ceil(reviews.checkRuns[0].annotations.length / 50));
    assert.ok(service.requests.length <= 25, `${service.requests.length} requests`);
  });

  claim('does not trust lines once the pull request has moved on', async (service, reviews) => {
    const posted = await post(service, report([onLine('where was it', 2)], { head: 'c'.repeat(40) }));
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(reviews.threads.length, 0);
    assert.match(service.comments[0].body, /has changed since this run/);
    assert.match(service.comments[0].body, /where was it/);
  });

  claim('goes on the file when the forge does not have the line after all', async (service, reviews) => {
    service.fail({ method: 'POST', path: '/reviews', status: 422 });
    const posted = await post(service, report([onLine('one', 2), onLine('two', 3)]));
    assert.equal(posted.status, 0, posted.stderr);
    assert.deepEqual(reviews.threads.map((t) => t.subject), ['FILE', 'FILE']);
  });

  for (const status of [403, 404]) {
    claim(`that the forge answers with ${status} costs no finding and no exit status`, async (service, reviews) => {
      service.fail({ method: 'POST', path: '/reviews', status, times: -1 });
      const event = path.join(folder, 'event.json');
      fs.writeFileSync(event, '{}');
      const posted = await post(service, report([onLine('one', 2), onLine('two', 3)]), {
        env: { GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'push', GITHUB_EVENT_PATH: event,
               GITHUB_REPOSITORY: 'acme/site', GITHUB_SHA: HEAD, GITHUB_REF: 'refs/heads/main' },
      });
      assert.equal(posted.status, 0, posted.stderr);
      assert.equal(reviews.threads.length, 0);
      assert.match(posted.stdout, /^::warning file=src\/a\.c,line=2,title=agentic-ci%3A bug::one$/m);
      assert.match(posted.stdout, /^::warning file=src\/a\.c,line=3,title=agentic-ci%3A bug::two$/m);
      assert.match(posted.stdout, /^::warning title=agentic-ci::not posted: review: /m);
      assert.equal(service.comments.length, 1);
    });
  }

  claim('and the one comment stay the same ones under pull_request_target', async (service, reviews) => {
    const event = path.join(folder, 'target.json');
    const repo = { id: 1, full_name: 'acme/site' };
    fs.writeFileSync(event, JSON.stringify({ repository: repo, pull_request: {
      number: 7, base: { ref: 'main', sha: 'a'.repeat(40), repo }, head: { ref: 'fix', sha: HEAD, repo } } }));
    const env = { GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'pull_request_target', GITHUB_EVENT_PATH: event,
                  GITHUB_REPOSITORY: 'acme/site', GITHUB_WORKFLOW: 'CI', GITHUB_JOB: 'agent' };
    for (let i = 0; i < 2; ++i) {
      const posted = await post(service, report([onLine('one', 2)]), { env });
      assert.equal(posted.status, 0, posted.stderr);
      assert.equal(service.comments.length, 1);
      assert.equal(reviews.threads.length, 1);
    }
  });

  claim('shows in a dry run what would be sent, and sends none of it', async (service, reviews) => {
    const posted = await post(service, report([onLine('one', 2)]), {
      what: 'comment,review,check', args: ['--dry-run'] });
    assert.equal(posted.status, 0, posted.stderr);
    const planned = posted.stdout.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(planned.map((p) => p.url.slice(service.url.length)), [
      '/repos/acme/site/pulls/7/reviews', '/repos/acme/site/check-runs', '/repos/acme/site/issues/7/comments']);
    assert.equal(planned[0].body.comments.length, 1);
    assert.ok(!posted.stdout.includes(TOKEN));
    assert.deepEqual(writes(service), []);
    assert.equal(reviews.threads.length + reviews.checkRuns.length + service.comments.length, 0);
  });

  claim('is on pull requests of applications that may not resolve threads', async (service, reviews) => {
    await post(service, report([onLine('goes', 2)]));
    // Hiding takes less: the thread is folded away once.
    service.allow(TOKEN, ACTIONS_BOT, { installation: true, mayResolve: false });
    const hidden = await post(service, report([]));
    assert.match(hidden.stdout, /1 resolved/);
    assert.equal(reviews.threads[0].comments[0].minimised, true);
    assert.match((await post(service, report([]), { what: 'review' })).stdout, /^$/);
    reviews.threads[0].comments[0].minimised = false;
    service.allow(TOKEN, ACTIONS_BOT, { installation: true, mayResolve: false, mayHide: false });
    const posted = await post(service, report([]));
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /refused: review: .*Resource not accessible/);
    assert.equal(reviews.threads[0].resolved, false);
  });
});

describe('nothing is lost or doubled', () => {
  const findings = [onLine('one', 2), onLine('two', 3), onLine('far', 20)];
  const whole = (service, reviews) => {
    const told = texts(reviews).map((text) => /(one|two|far)/.exec(text)[1]).sort();
    assert.deepEqual(told, ['far', 'one', 'two']);
    assert.equal(service.comments.length, 1);
    assert.equal(reviews.checkRuns.length, 1);
    const messages = reviews.checkRuns[0].annotations.map((a) => a.message);
    assert.equal(new Set(messages).size, messages.length, 'annotations are doubled');
    for (const message of ['one', 'two', 'far']) assert.ok(messages.includes(message), message);
    assert.equal(reviews.checkRuns[0].status, 'completed');
  };
  const options = { what: 'comment,review,check' };
  const IMPATIENT = ['--timeout', '6s'];  // A request that hangs fails after two of them.
  let requests;

  claim('when all goes well', async (service, reviews) => {
    await post(service, report(findings), options);
    whole(service, reviews);
    requests = service.requests.length;
  });

  for (const fault of [{ status: 403 }, { status: 404 }, { status: 409 }, { status: 422 }, { status: 429 },
                       { status: 502 }, { status: 502, after: true }, { cut: true }, { cut: true, after: true },
                       { hang: true }, { hang: true, after: true }]) {
    it(`when any one request meets ${JSON.stringify(fault)}`, async () => {
      // Of refusals, which all take the same way, every other request.
      const hit = [...Array(requests).keys()].filter((n) => !(fault.status < 429) || n % 2 === fault.status % 2);
      await Promise.all(hit.map(async (n) => {
        const service = await new GitHubService({ contract }).start();
        service.reviews.files = structuredClone(FILES);
        let seen = 0;
        service.before = () => {
          if (seen++ === n) {
            service.fail({ ...fault, headers: fault.status === 429 ? { 'retry-after': '0' } : {} });
          }
        };
        try {
          await post(service, report(findings), fault.hang ? { ...options, args: IMPATIENT } : options);
          service.faults.length = 0;
          const again = await post(service, report(findings), options);
          assert.equal(again.status, 0, again.stderr);
          whole(service, service.reviews);
          // A proxy may answer with what the description does not have.
          const others = service.violations.filter((v) => !v.endsWith(`${fault.status} is not described`));
          assert.deepEqual(others, []);
        } catch (error) {
          throw new Error(`request ${n} of ${requests}: ${error.message}\n${service.requests.join('\n')}`);
        } finally {
          await service.stop();
        }
      }));
    });
  }

  it('when it is killed before any one answer', async () => {
    for (let n = 0; n < requests; ++n) {
      const service = await new GitHubService({ contract }).start();
      service.reviews.files = structuredClone(FILES);
      let seen = 0;
      let child;
      service.before = () => { if (seen++ === n) child?.kill('SIGKILL'); };
      await new Promise((resolve) => {
        child = execFile(process.env.BINARY, [
          'post', report(findings), '--repository', 'acme/site', '--number', '7', '--api-url', service.url,
          '--marker', 'ci/agent', '--what', options.what,
        ], { env: { GITHUB_TOKEN: TOKEN } }, resolve);
      });
      service.before = null;
      try {
        const again = await post(service, report(findings), options);
        assert.equal(again.status, 0, again.stderr);
        whole(service, service.reviews);
      } finally {
        await service.stop();
      }
    }
  });

  claim('when two post at once', async (service, reviews) => {
    const twice = await Promise.all([post(service, report(findings), { what: 'comment,review' }),
                                     post(service, report(findings), { what: 'comment,review' })]);
    for (const one of twice) assert.equal(one.status, 0, one.stderr);
    await post(service, report(findings), options);  // What one left of the other, the next takes back.
    whole(service, reviews);
  });
});
