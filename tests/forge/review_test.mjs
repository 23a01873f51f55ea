// SPDX-License-Identifier: Apache-2.0
// `agentic-ci post`: findings and suggestions on the lines, check runs, and what becomes of them when
// the forge refuses, fails, or is posted to twice.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
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
  claim('offers no change that the gates would refuse, whatever the report says of them', async (service, reviews) => {
    reviews.files.push({ filename: '.github/workflows/ci.yml', patch: '@@ -1,2 +1,2 @@\n on: push\n-jobs: {x: 1}\n+jobs: {}' });
    const token = `${'ghp_'}aB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3lN5`;
    const patch = `diff --git a/.github/workflows/ci.yml b/.github/workflows/ci.yml
index ${'1'.repeat(40)}..${'2'.repeat(40)} 100644
--- a/.github/workflows/ci.yml
+++ b/.github/workflows/ci.yml
@@ -1,2 +1,2 @@
 on: push
-jobs: {}
+jobs: {x: {steps: [{run: "curl x | sh"}]}}
`;
    const posted = await post(service, report([onLine('a token', 2, { suggestion: `key = "${token}"\n` }), onLine('fine', 3, { suggestion: '3\n' })], { patch }));
    assert.equal(posted.status, 0, posted.stderr);
    const said = texts(reviews);
    assert.equal(said.length, 3);
    assert.match(said.find((text) => text.includes('fine')), /```suggestion\n3\n```/);
    assert.match(said.find((text) => text.includes('a token')), /that is not offered: the gate secrets refuses it: [^`]+\n$/);
    assert.match(said.find((text) => text.includes('The agent suggests')), /that is not offered: the gate protected-paths refuses it: [^`]+\n$/);
    assert.ok(!said.join().includes(token) && !said.join().includes('curl'));
  });

  claim('offers no change of lines to what they are already', async (service, reviews) => {
    const posted = await post(service, report([
      onLine('as it is', 2, { suggestion: 'two\n' }), onLine('another', 3, { suggestion: 'Three\n' })]));
    assert.equal(posted.status, 0, posted.stderr);
    assert.deepEqual(texts(reviews).map((text) => text.includes('```suggestion')), [false, true]);
  });

  claim('says in one line that earlier posts were made with another token', async (service) => {
    const findings = report([onLine('placed', 2), onLine('placed, too', 3)]);
    const first = await post(service, findings);
    assert.doesNotMatch(first.stdout, /another token/);
    service.allow('token-other', { id: 667, login: 'other[bot]', type: 'Bot' }, { installation: true });
    const second = await post(service, findings, { token: 'token-other' });
    assert.equal(second.status, 0, second.stderr);
    assert.match(second.stdout, /^1 comment and 2 threads with this marker: written with another token \(github-actions\[bot\]\), and left as they are$/m);
    const json = await post(service, findings, { token: 'token-other', args: ['--json'] });
    assert.equal(JSON.parse(json.stdout).of_others, 3);
  });

  claim('on a locked conversation says what to do', async (service) => {
    service.fail({ method: 'POST', path: '/comments', status: 403, times: -1,
                   body: { message: 'Unable to create comment because issue is locked.', documentation_url: 'https://docs.github.com/', status: '403' } });
    const posted = await post(service, report([]), { what: 'comment' });
    assert.equal(posted.status, 77, posted.stdout);
    assert.match(posted.stderr, /the conversation of acme\/site#7 is locked: .*issue is locked/);
    assert.match(posted.stderr, /hint: unlock the conversation/);
    assert.doesNotMatch(posted.stderr, /permissions:/);
  });

  claim('has findings and suggested changes on their lines', async (service, reviews) => {
    const directory = report([
      onLine('two lines are wrong', 2, { end_line: 3, suggestion: '2\n3\n', severity: 'error' }),
      onLine('somewhere else in the file', 20),
      finding('about the whole'),
      finding('of another file', { path: 'src/b.c', line: 1 }),
    ], { patch: PATCH });
    const posted = await post(service, directory);
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /^review: 2 on lines, 1 on files, 2 in the comment only, 0 resolved$/m);
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
    // A report without findings ends what is left, with one request, once it is about the head.
    reviews.threads[2].resolved = false;
    const silent = service.requests.length;
    await post(service, report([]), { what: 'review' });
    assert.equal(reviews.threads[2].resolved, true);
    assert.equal(service.requests.length - silent, 3);
  });

  claim('keeps its thread where a finding is worded otherwise, and not where it is elsewhere', async (service, reviews) => {
    await post(service, report([onLine('first words', 2)]));
    const reworded = await post(service, report([onLine('other words', 2)]));
    assert.match(reworded.stdout, /^review: 1 on lines, 0 on files, 0 in the comment only, 0 resolved$/m);
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [false]);
    await post(service, report([onLine('other words', 3)]));
    assert.deepEqual(reviews.threads.map((t) => [t.line, t.resolved]), [[2, true], [3, false]]);
    // A click must apply what is meant now.
    await post(service, report([onLine('other words', 3, { suggestion: 'old\n' })]));
    await post(service, report([onLine('other words', 3, { suggestion: 'new\n' })]));
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [true, true, true, false]);
    assert.match(texts(reviews)[3], /new/);
    // Two with one text are two.
    await post(service, report([onLine('twice', 2), onLine('twice', 3)]));
    await post(service, report([onLine('twice', 3)]));
    assert.deepEqual(reviews.threads.slice(4).map((t) => [t.line, t.resolved]), [[2, true], [3, false]]);
  });

  const digest = (...lines) => createHash('sha256').update(lines.map((line) => line + '\n').join('')).digest('hex');

  claim('follows lines that the agent saw elsewhere', async (service, reviews) => {
    reviews.files[0].sha = '1'.repeat(40);
    const seen = (message, line, lines, more = {}) =>
      onLine(message, line, { end_line: line + lines.length - 1, blob: '2'.repeat(40), lines_sha256: digest(...lines), ...more });
    const posted = await post(service, report([
      seen('moved', 12, ['two', 'three'], { suggestion: '2\n3\n' }),
      seen('gone', 3, ['of the base'], { suggestion: 'x\n' }),
      seen('the same file', 3, ['nothing'], { blob: '1'.repeat(40) }),
      seen('not shown', 20, ['z'], { path: 'src/b.c' }),
    ]), { what: 'comment,review,check' });
    assert.equal(posted.status, 0, posted.stderr);
    const told = Object.fromEntries(reviews.threads.map((t) => [/(moved|gone|the same file)/.exec(t.comments[0].body)[1], t]));
    assert.deepEqual([told.moved.start_line, told.moved.line], [2, 3]);
    assert.match(told.moved.comments[0].body, /```suggestion\n2\n3\n```/);
    assert.equal(told.gone.subject, 'FILE');
    assert.match(told.gone.comments[0].body, /Line 3 of the file that the agent saw, which is another one here: gone/);
    assert.doesNotMatch(told.gone.comments[0].body, /```suggestion/);
    assert.equal(told['the same file'].line, 3);
    const lines = Object.fromEntries(reviews.checkRuns[0].annotations.map((a) => [a.message, a.start_line]));
    assert.equal(lines.moved, 2);
    assert.ok(Object.keys(lines).some((message) => /^Line 3 of the file that the agent saw.*gone$/.test(message)));
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

  claim('has the thirty worst on the lines, and every finding somewhere', async (service, reviews) => {
    const findings = [];
    for (let i = 0; i < 500; ++i) findings.push(onLine(`finding number ${i}.`, 2 + i % 2));
    findings[499].severity = 'error';
    const directory = report(findings);
    const token = 'ghs_500';  // Of an installation, as GITHUB_TOKEN is.
    service.allow(token, ACTIONS_BOT, { installation: true });
    const posted = await post(service, directory, { what: 'comment,review,check', timed: true, token });
    assert.equal(posted.status, 0, posted.stderr);
    // Ten times what was measured, 40 to 70 ms: a search of all for each would take seconds.
    assert.ok(posted.cpu_ms < 700, `${posted.cpu_ms} ms of CPU`);
    assert.equal(reviews.threads.length, 30);
    assert.match(texts(reviews)[0], /finding number 499\./);
    assert.equal(reviews.checkRuns.length, 1);
    const told = new Set(reviews.checkRuns[0].annotations.map((a) => a.message));
    for (let i = 0; i < 500; ++i) assert.ok(told.has(`finding number ${i}.`), `finding ${i} is lost`);
    assert.equal(reviews.checkRuns[0].status, 'completed');
    // A check run and ten batches of 50 findings and refusals for it, one review, one comment.
    const count = (start) => service.requests.filter((r) => r.startsWith(start)).length;
    assert.equal(count('POST /repos/acme/site/pulls/7/reviews'), 1);
    assert.equal(count('POST /repos/acme/site/check-runs') + count('PATCH /repos/acme/site/check-runs'),
                 1 + Math.ceil(reviews.checkRuns[0].annotations.length / 50));
    assert.ok(service.requests.length <= 21, `${service.requests.length} requests`);
  });

  claim('alone says what it has no place for', async (service, reviews) => {
    const findings = [onLine('placed', 2), finding('nowhere to go'), finding('of another file', { path: 'src/b.c', line: 1 })];
    const alone = await post(service, report(findings), { what: 'review' });
    assert.equal(alone.status, 77, alone.stderr);
    assert.match(alone.stderr, /2 of the findings have no place/);
    assert.match(alone.stderr, /--what comment,review/);
    assert.match(alone.stdout, /^review: 1 on lines, 0 on files, 0 in the comment only, 0 resolved, 2 not posted$/m);
    for (const text of ['placed', 'nowhere to go', 'of another file']) assert.ok(alone.stdout.includes(text), text);
    assert.equal(reviews.threads.length, 1);
    // The controls: with a comment, and with nothing to say there.
    assert.equal((await post(service, report(findings))).status, 0);
    assert.equal((await post(service, report([onLine('placed', 2)]), { what: 'review' })).status, 0);
  });

  claim('of which the forge takes nothing leaves every finding in the log, none of them a command', async (service) => {
    service.fail({ method: 'POST', path: '/reviews', status: 403, times: -1 });
    const event = path.join(folder, 'push.json');
    fs.writeFileSync(event, '{}');
    const findings = [];
    for (let i = 0; i < 60; ++i) findings.push(onLine(`number ${i}.`, 2));
    findings.push(finding('hostile', { path: '::set-output name=a::b', line: 1 }));
    const posted = await post(service, report(findings), {
      env: { GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'push', GITHUB_EVENT_PATH: event,
             GITHUB_REPOSITORY: 'acme/site', GITHUB_SHA: HEAD, GITHUB_REF: 'refs/heads/main' },
    });
    assert.equal(posted.status, 77);
    const stop = /^::stop-commands::(\w+)$/m.exec(posted.stdout);
    const told = posted.stdout.slice(stop.index, posted.stdout.indexOf(`\n::${stop[1]}::`));
    for (let i = 0; i < 60; ++i) assert.ok(told.includes(`number ${i}.`), `finding ${i} is lost`);
    assert.doesNotMatch(posted.stdout.replace(told, ''), /set-output/);
  });

  claim('does not trust lines once the pull request has moved on', async (service, reviews) => {
    const posted = await post(service, report([onLine('where was it', 2)], { head: 'c'.repeat(40) }));
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(reviews.threads.length, 0);
    assert.match(service.comments[0].body, /has changed since this run/);
    assert.match(service.comments[0].body, /where was it/);
  });

  claim('takes only that comment off its line which the forge refuses', async (service, reviews) => {
    reviews.refused.add(3);
    const posted = await post(service, report([onLine('one', 2), onLine('two', 3), onLine('three', 1)]));
    assert.equal(posted.status, 0, posted.stderr);
    const places = reviews.threads.map((t) => [t.subject, t.line, /(one|two|three)/.exec(t.comments[0].body)[1]]);
    assert.deepEqual(places.sort(), [['FILE', null, 'two'], ['LINE', 1, 'three'], ['LINE', 2, 'one']]);
    assert.match(posted.stdout, /^review: 2 on lines, 1 on files, /m);
  });

  claim('ends, when the forge refuses every line', async (service, reviews) => {
    for (const line of [1, 2, 3]) reviews.refused.add(line);
    const findings = [];
    for (let i = 0; i < 30; ++i) findings.push(onLine(`number ${i}.`, 1 + i % 3));
    const posted = await post(service, report(findings));
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /^review: 0 on lines, 10 on files, 20 in the comment only/m);
    assert.ok(service.requests.length < 50, `${service.requests.length} requests`);
  });

  claim('opens again what was resolved for a finding that is back', async (service, reviews) => {
    await post(service, report([onLine('comes and goes', 2)], { started: 1 }));
    await post(service, report([], { started: 2 }));
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [true]);
    const back = await post(service, report([onLine('comes and goes', 2)], { started: 3 }));
    assert.equal(back.status, 0, back.stderr);
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [false]);
    // A person's word stays.
    Object.assign(reviews.threads[0], { resolved: true, resolvedBy: 'octocat' });
    const settled = await post(service, report([onLine('comes and goes', 2)], { started: 4 }));
    assert.match(settled.stdout, /^review: 1 resolved by people, and left so$/m);
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [true]);
  });

  claim('is not resolved by a run that did not come to its end', async (service, reviews) => {
    await post(service, report([onLine('still there', 2)], { started: 1 }));
    for (const [at, kind] of ['agent-failed', 'timed-out', 'limit', 'setup-failed'].entries()) {
      const failed = reportOf('', (record) => {
        record.event.head_sha = HEAD;
        record.started_at_ms = 2 + at;
        record.outcome.kind = kind;
        record.findings = [];
      });
      const posted = await post(service, failed);
      assert.equal(posted.status, 0, posted.stderr);
      assert.deepEqual(reviews.threads.map((t) => t.resolved), [false], kind);
    }
    await post(service, report([], { started: 9 }));  // The control.
    assert.deepEqual(reviews.threads.map((t) => t.resolved), [true]);
  });

  claim('is people\'s once they answered', async (service, reviews) => {
    await post(service, report([onLine('discussed', 2)], { started: 1 }));
    reviews.threads[0].comments.push({ id: 77, author: { id: 9, login: 'octocat' }, body: 'why?' });
    await post(service, report([], { started: 2 }));
    assert.equal(reviews.threads[0].resolved, false);
    reviews.threads[0].outdated = true;
    await post(service, report([onLine('discussed', 3)], { started: 3 }));
    assert.equal(reviews.threads.length, 1);
  });

  claim('and comment of a later run are not replaced by those of an earlier one', async (service, reviews) => {
    await post(service, report([onLine('new', 2)], { started: 2000 }));
    const late = await post(service, report([onLine('old', 3)], { started: 1000 }), { what: 'comment,review,check' });
    assert.equal(late.status, 0, late.stderr);
    assert.match(late.stdout, /^kept .*: it is about a later run or a newer commit$/m);
    assert.match(service.comments[0].body, /new/);
    assert.equal(reviews.threads.length, 1);
    assert.equal(reviews.checkRuns.length, 0);
    // Of a commit that is the head no more, although the run began later.
    const moved = await post(service, report([onLine('older commit', 3)], { started: 3000, head: 'c'.repeat(40) }));
    assert.match(moved.stdout, /^kept /m);
    // A time in the future says nothing, or a hostile report would keep all others out.
    await post(service, report([onLine('far', 2)], { started: 4e15 }));
    const after = await post(service, report([onLine('after', 2)], { started: Date.now() + 1000 }));
    assert.match(after.stdout, /^updated /m);
  });

  claim('asks nothing about a commit that only the report names', async (service, reviews) => {
    for (const head of ['../../../../user', 'main', 'd'.repeat(40), '']) {
      const posted = await post(service, report([], { head }), { what: 'check,status,sarif' });
      assert.equal(posted.status, 77, `${head}: ${posted.stdout}${posted.stderr}`);
      assert.match(posted.stderr, /the report (is about another commit than the head|does not say which commit)/);
    }
    assert.ok(service.requests.every((r) => r.startsWith('GET /repos/acme/site/pulls/7')), service.requests.join('\n'));
    assert.equal(reviews.checkRuns.length, 0);
    const own = await post(service, report([]), { what: 'check' });  // The control.
    assert.equal(own.status, 0, own.stderr);
    assert.equal(reviews.checkRuns.length, 1);
  });

  claim('reaches a request only as a text, whatever a report has in any of its fields', async (service) => {
    const places = [];  // Of every string and number of a record: ['event', 'head_sha'].
    const walk = (value, at) => {
      if (value !== null && typeof value === 'object') {
        for (const [key, inner] of Object.entries(value)) walk(inner, [...at, key]);
      } else if (typeof value === 'string' || typeof value === 'number') {
        places.push(at);
      }
    };
    const record = JSON.parse(fs.readFileSync(path.join(report([onLine('one', 2)], { patch: PATCH }), 'run.json')));
    walk(record, []);
    assert.ok(places.length > 100, `${places.length} fields`);
    const what = 'comment,review,check,status,sarif';
    const usual = async (directory) => {
      service.requests.length = service.headers.length = 0;
      const { reviews, threads, checkRuns } = service.reviews;
      service.comments.length = threads.length = reviews.length = checkRuns.length = 0;
      return { ...await post(service, directory, { what }), requests: [...service.requests], headers: [...service.headers] };
    };
    let taken = 0;
    for (const at of places) {
      const hostile = reportOf(PATCH, (changed) => {
        Object.assign(changed, structuredClone(record));
        const holder = at.slice(0, -1).reduce((value, key) => value[key], changed);
        holder[at.at(-1)] = typeof holder[at.at(-1)] === 'number' ? 424243 : 'h0stile/../../user?a=b&c#\r\nX-H0stile: 1 ::error::';
      });
      const posted = await usual(hostile);
      taken += posted.status === 0 ? 1 : 0;
      for (const text of [...posted.requests, ...posted.headers]) {
        assert.doesNotMatch(decodeURIComponent(text), /h0stile|424243/i, at.join('.'));
      }
      for (const request of posted.requests) assert.match(request, /^(GET|POST|PATCH) (\/repos\/acme\/site\/|\/graphql|\/user$)/, at.join('.'));
    }
    assert.ok(taken > places.length / 2, `${taken} of ${places.length} were taken`);
  });

  claim('has no gate hidden behind findings of the agent', async (service, reviews) => {
    const findings = [];
    for (let i = 0; i < 60; ++i) findings.push(finding(`agent says ${i}.`, { severity: 'error' }));
    findings.push(finding('a token', { source: 'gate', rule: 'secrets', path: 'a.env', line: 1, severity: 'error', refuses: true }));
    const posted = await post(service, report(findings), { what: 'comment,check' });
    assert.equal(posted.status, 0, posted.stderr);
    const body = service.comments[0].body;
    assert.ok(body.indexOf('a token') > 0 && body.indexOf('a token') < body.indexOf('agent says'), body.slice(0, 2000));
    assert.match(reviews.checkRuns[0].annotations[0].message, /a token/);
    // One without a place is in the summary, and on no line of a file that it says nothing about.
    assert.ok(!reviews.checkRuns[0].annotations.some((a) => /agent says/.test(a.message)));
  });

  for (const status of [403, 404]) {
    claim(`that the forge answers with ${status} costs no finding, and is told`, async (service, reviews) => {
      service.fail({ method: 'POST', path: '/reviews', status, times: -1 });
      const event = path.join(folder, 'event.json');
      fs.writeFileSync(event, '{}');
      const posted = await post(service, report([onLine('one', 2), onLine('two', 3)]), {
        env: { GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'push', GITHUB_EVENT_PATH: event,
               GITHUB_REPOSITORY: 'acme/site', GITHUB_SHA: HEAD, GITHUB_REF: 'refs/heads/main' },
      });
      assert.equal(posted.status, status === 403 ? 77 : 66, posted.stderr);
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
      '/repos/acme/site/issues/7/comments', '/repos/acme/site/pulls/7/reviews', '/repos/acme/site/check-runs',
      '/repos/acme/site/check-runs/0']);
    assert.equal(planned[1].body.comments.length, 1);
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
    assert.match((await post(service, report([]), { what: 'review' })).stdout, /^post: made review\n$/);
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

  for (const parts of ['comment,review', 'comment,review,check']) {
    claim(`when four post ${parts} at once`, async (service, reviews) => {
      const four = await Promise.all(Array.from({ length: 4 }, () => post(service, report(findings), { what: parts })));
      for (const one of four) assert.equal(one.status, 0, one.stderr);
      await post(service, report(findings), options);  // What they left of each other, the next takes back.
      // Of check runs the forge shows the last of a name; none can be deleted.
      assert.ok(reviews.checkRuns.every((run) => run.status === 'completed' && run.conclusion === reviews.checkRuns[0].conclusion));
      reviews.checkRuns = reviews.checkRuns.filter((run) => run.annotations.length > 0);
      whole(service, reviews);
      // What is left of a review that another one repeats says so.
      for (const review of reviews.reviews) {
        const alive = reviews.threads.some((thread) => thread.review === review.id);
        assert.match(review.body, alive ? /comments?\.\n$/ : /^The comments of this review were taken back/);
      }
    });
  }

  claim('when two post at once', async (service, reviews) => {
    const twice = await Promise.all([post(service, report(findings), { what: 'comment,review' }),
                                     post(service, report(findings), { what: 'comment,review' })]);
    for (const one of twice) assert.equal(one.status, 0, one.stderr);
    await post(service, report(findings), options);  // What one left of the other, the next takes back.
    whole(service, reviews);
  });
});
