// SPDX-License-Identifier: Apache-2.0
// Weeks of a maintainer's: two hundred random steps on one pull request, after each of which every finding is
// visible exactly once, nothing that a person did is undone, and no verdict is older than the last.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Contract } from '../services/github/contract.mjs';
import { GitHubService } from '../services/github/service.mjs';
import { begin, end, finding, folder, reportOf } from './site.mjs';

const TOKEN = 'token-actions';
const STEPS = 200;
const SEEDS = (process.env.WEEK_SEEDS ?? '1 2 3').split(' ').map(Number);
const PERSON = { id: 9, login: 'octocat' };
let contract;

before(() => {
  contract = Contract.load(process.env.MODULES);
  begin('week_test');
});
after(end);

// The same numbers for the same seed: mulberry32.
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const digest = (text) => createHash('sha256').update(`${text}\n`).digest('hex');

class Week {
  log = [];
  clock = 1000;
  nextLine = 1;
  nextSha = 1;
  path = 'src/a.c';
  lines = [];         // {id, bug}: of the head's file, all shown by the difference.
  base_lines = 0;     // What the base has more, at the file's top.
  reports = [];       // {started, head, kind, findings}, in the order of the runs.
  posted = null;      // The last that was posted and not late.
  theirs = new Map(); // Thread -> what a person made of it.
  locked = false;
  checked = 0;

  constructor(service, seed) {
    this.service = service;
    this.reviews = service.reviews;
    this.random = numbers(seed);
    for (let i = 0; i < 12; ++i) this.lines.push(this.#line());
    this.#publish();
  }

  below(n) { return Math.floor(this.random() * n); }
  any(list) { return list[this.below(list.length)]; }
  #line() { return { id: this.nextLine++, bug: this.random() < 0.3 }; }
  #text(line) { return `line ${line.id}`; }

  // The forge's view of the head: its commit, the difference, and the threads that follow their lines.
  #publish() {
    this.head = (this.nextSha++).toString(16).padStart(40, 'c');
    this.reviews.headSha = this.head;
    const shown = this.lines.map((line) => `\n+${this.#text(line)}`).join('');
    this.reviews.files = [{ filename: this.path, sha: digest(shown).slice(0, 40),
                            patch: `@@ -0,0 +1,${this.lines.length} @@${shown}` }];
    for (const thread of this.reviews.threads) {
      if (thread.subject !== 'LINE' || thread.outdated) continue;
      const at = thread.path === this.path ? this.lines.indexOf(thread.of) : -1;
      thread.outdated = at < 0;
      thread.line = at < 0 ? null : at + 1;
    }
  }

  push() {
    for (let i = 1 + this.below(4); i > 0; --i) {
      const at = this.below(this.lines.length);
      const kind = this.below(3);
      if (kind === 0) this.lines.splice(at, 0, this.#line());
      if (kind === 1 && this.lines.length > 4) this.lines.splice(at, 1);
      if (kind === 2) this.lines[at] = this.#line();
    }
    this.#publish();
  }
  // The forge follows no line over it, even where the text is the same.
  forcePush() {
    this.lines = this.lines.map((line) => (this.random() < 0.7 ? { ...line } : this.#line()));
    this.#publish();
  }
  rename() {
    this.path = this.path === 'src/a.c' ? 'src/b.c' : 'src/a.c';
    this.#publish();
  }
  baseMoves() { this.base_lines = this.below(5); }

  #run(kind) {
    const finished = kind === 'success';
    const findings = [];
    for (const [at, line] of this.lines.entries()) {
      if (!line.bug || !(finished || this.random() < 0.5)) continue;
      const number = at + 1 + this.base_lines;
      const merged = this.base_lines > 0;
      findings.push({ at: at + 1, id: line.id, json: finding(`bug ${line.id} ${this.any(['is here', 'was found', 'again'])}.`, {
        path: this.path, line: number, end_line: number, severity: this.any(['error', 'warning', 'note']),
        blob: merged ? 'f'.repeat(40) : '', lines_sha256: merged ? digest(this.#text(line)) : '' }) });
    }
    if (this.random() < 0.3) findings.push({ at: 0, id: 'W', json: finding('bug W is about the whole.') });
    this.reports.push({ started: this.clock++, head: this.head, kind, findings });
  }
  run() { this.#run('success'); }
  fail() { this.#run(this.any(['agent-failed', 'limit', 'setup-failed'])); }
  timeOut() { this.#run('timed-out'); }

  #open() { return this.reviews.threads.filter((thread) => !thread.resolved && thread.comments.length > 0); }
  resolve() {
    const thread = this.any(this.#open());
    if (!thread) return;
    Object.assign(thread, { resolved: true, resolvedBy: PERSON.login });
    this.theirs.set(thread, 'resolved');
  }
  answer() {
    const thread = this.any(this.#open());
    if (!thread) return;
    thread.comments.push({ id: 100000 + this.clock++, author: PERSON, body: 'why?' });
    if (this.theirs.get(thread) !== 'resolved') this.theirs.set(thread, 'answered');
  }
  delete() {
    if (this.random() < 0.3) {
      this.service.comments.length = 0;
      this.posted = null;
      return;
    }
    const thread = this.any(this.reviews.threads);
    this.reviews.threads = this.reviews.threads.filter((other) => other !== thread);
    this.theirs.delete(thread);
  }
  lock() { this.locked = true; }  // Until after the next post.
  close() { this.reviews.state = 'closed'; }
  reopen() { this.reviews.state = 'open'; }

  async postLast() { await this.#post(this.reports.at(-1)); }
  async postLate() { await this.#post(this.any(this.reports)); }
  async postTwice() {
    const report = this.reports.at(-1);
    if (report && !this.locked) await Promise.all([this.#send(report), this.#send(report)]);
    await this.#post(report);
  }

  #send(report) {
    const directory = reportOf('', (record) => {
      record.findings = report.findings.map((one) => one.json);
      record.event.head_sha = report.head;
      record.started_at_ms = report.started;
      Object.assign(record.outcome, { kind: report.kind, exit_code: report.kind === 'success' ? 0 : 1 });
    });
    return new Promise((resolve) => execFile(process.env.BINARY, [
      'post', directory, '--repository', 'acme/site', '--number', '7', '--api-url', this.service.url, '--marker', 'ci/agent',
    ], { env: { GITHUB_TOKEN: TOKEN }, cwd: folder }, (error, stdout, stderr) =>
      resolve({ status: error ? error.code : 0, stdout, stderr })));
  }

  async #post(report) {
    if (!report) return;
    const before = this.#told();
    const open = this.#open().filter((thread) => !thread.outdated);
    if (this.locked) {
      for (const method of ['POST', 'PATCH']) this.service.fail({ method, path: '/repos/', status: 403, times: -1 });
    }
    const posted = await this.#send(report);
    this.service.faults.length = 0;
    for (const thread of this.reviews.threads) {
      if (thread.subject === 'LINE' && !thread.of && !thread.outdated) thread.of = this.lines[thread.line - 1];
    }
    if (/^kept /m.test(posted.stdout)) {
      this.locked = false;
      assert.deepEqual(this.#told(), before, 'a late report changed something');
      assert.ok(this.posted && (report.started < this.posted.started || report.head !== this.head), 'it is not late');
      return;
    }
    const locked = this.locked;
    this.locked = false;
    if (locked) return;
    assert.equal(posted.status, 0, posted.stdout + posted.stderr);
    assert.ok(!this.posted || report.started >= this.posted.started, 'an older verdict replaced a newer one');
    this.posted = report;
    if (report.kind === 'success' && report.head === this.head) {
      this.#checkAll(report);
    } else {
      // A run that did not look at all of this head knows nothing of what it does not say.
      for (const thread of open) assert.ok(!thread.resolved, 'a thread was resolved by a run that did not look');
    }
  }

  #told() {
    return JSON.stringify([this.service.comments.map((comment) => comment.body),
                           this.reviews.threads.map((t) => [t.id, t.resolved, t.comments.map((c) => c.body)])]);
  }

  // Of a report about the head whose run looked at everything.
  #checkAll(report) {
    ++this.checked;
    const comment = this.service.comments[0].body;
    for (const { at, id } of report.findings) {
      assert.ok(comment.includes(`bug ${id} `), `bug ${id} is not in the comment`);
      const said = this.reviews.threads.filter((thread) => thread.comments[0].body.includes(`bug ${id} `) &&
        !(thread.resolved && this.theirs.get(thread) !== 'resolved'));
      if (at === 0) {
        assert.equal(said.length, 0);
        continue;
      }
      const open = said.filter((thread) => !thread.resolved);
      // A thread that people answered stays where it is, and speaks for the finding.
      const answered = open.filter((thread) => this.theirs.get(thread) === 'answered');
      assert.ok(said.length >= 1, `bug ${id} at ${at} is nowhere beside its line`);
      assert.ok(open.length - answered.length <= 1, `bug ${id} is there ${open.length} times`);
      for (const thread of open) {
        if (!answered.includes(thread)) assert.equal(thread.line, at, `bug ${id} is not at its line`);
      }
    }
    // What is gone is not there any more.
    const current = new Set(report.findings.map((one) => String(one.id)));
    for (const thread of this.reviews.threads) {
      if (thread.resolved || this.theirs.has(thread)) continue;
      const id = /bug (\d+) /.exec(thread.comments[0].body)[1];
      assert.ok(current.has(id), `bug ${id} is fixed, and its thread open`);
    }
  }

  // After every step, whatever it was.
  check() {
    for (const [thread, made] of this.theirs) {
      assert.ok(this.reviews.threads.includes(thread), 'a thread of a person is gone');
      assert.equal(thread.resolved, made === 'resolved', `a thread that a person ${made}`);
      if (thread.resolved) assert.equal(thread.resolvedBy, PERSON.login);
    }
    const mine = this.reviews.threads.flatMap((t) => t.comments).filter((c) => c.author.id === PERSON.id);
    assert.ok(mine.every((comment) => comment.body === 'why?'));
    assert.ok(this.service.comments.length <= 1, 'the comment is doubled');
    if (this.service.comments.length > 0 && this.posted) {
      const [, stamp] = /<!-- agentic-ci-run: (\d+) /.exec(this.service.comments[0].body);
      assert.equal(Number(stamp), this.posted.started, 'the verdict is not the last');
    }
    assert.deepEqual(this.service.violations, []);
  }

  async step() {
    const kinds = [['push', 3], ['forcePush', 1], ['run', 8], ['fail', 1], ['timeOut', 1], ['postLast', 8], ['postLate', 2],
                   ['postTwice', 1], ['resolve', 2], ['answer', 2], ['delete', 1], ['lock', 1], ['close', 1], ['reopen', 1],
                   ['baseMoves', 2], ['rename', 1]].flatMap(([kind, weight]) => Array(weight).fill(kind));
    const kind = this.any(kinds);
    this.log.push(kind);
    await this[kind]();
    this.check();
  }
}

describe("a maintainer's week", () => {
  for (const seed of SEEDS) {
    it(`with seed ${seed}`, async () => {
      const service = await new GitHubService({ contract }).start();
      const week = new Week(service, seed);
      try {
        for (let i = 0; i < STEPS; ++i) await week.step();
        // The steps must have met what they are about.
        const met = `${week.checked} reports, ${service.reviews.threads.length} threads, ${week.theirs.size} of people`;
        assert.ok(week.checked >= 10 && service.reviews.threads.length >= 5 && week.theirs.size >= 3, met);
        console.log(`# seed ${seed}: ${met}`);
      } catch (error) {
        throw new Error(`seed ${seed}, step ${week.log.length}, ${week.log.slice(-12).join(' ')}: ${error.message}`, { cause: error });
      } finally {
        await service.stop();
      }
    });
  }
});
