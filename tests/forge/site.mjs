// SPDX-License-Identifier: Apache-2.0
// Repositories and reports for the tests of what becomes of an agent's patch.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const ENV = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', GIT_AUTHOR_NAME: 't',
              GIT_AUTHOR_EMAIL: 't@localhost', GIT_COMMITTER_NAME: 't', GIT_COMMITTER_EMAIL: 't@localhost' };
export const BINARY = Buffer.from([0, 1, 2, 255, 254, 0, 10, 13]);
export let folder;
let count = 0;

export function begin(name) {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), `${name}.`));
  execFileSync(process.env.SAMPLES, ['full', path.join(folder, 'full')]);
}
export const end = () => fs.rmSync(folder, { recursive: true });
// A path in the folder that nothing has yet.
export const fresh = (stem) => path.join(folder, `${stem}-${count++}`);

// A working tree on `fix`, and the bare repository that the service serves.
export class Site {
  static #first = null;
  constructor() {
    this.directory = fresh('site');
    this.bare = `${this.directory}.git`;
    if (!Site.#first) {
      this.#make();
      Site.#first = path.join(folder, 'first');
      fs.cpSync(this.directory, Site.#first, { recursive: true, verbatimSymlinks: true });
      fs.cpSync(this.bare, `${Site.#first}.git`, { recursive: true });
    } else {
      fs.cpSync(Site.#first, this.directory, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
      fs.cpSync(`${Site.#first}.git`, this.bare, { recursive: true });
    }
    this.head = this.git('rev-parse', 'HEAD');
  }
  #make() {
    fs.mkdirSync(this.directory);
    this.git('init', '-q', '-b', 'main');
    for (const [name, text] of Object.entries({
      'a.c': 'one\ntwo\nthree\n', 'src/deep/b.c': 'b\n', 'gone.txt': 'x\n', 'run.sh': '#!/bin/sh\n', 'old name': 'same\n'.repeat(20),
      'data.bin': BINARY, 'CLAUDE.md': '# rules\n',
    })) this.write(name, text);
    fs.symlinkSync('a.c', this.at('link'));
    this.git('add', '-A');
    this.git('commit', '-qm', 'main');
    this.git('checkout', '-qb', 'fix');
    this.write('a.c', 'one\ntwo\nthree\nfour\n');
    this.commit('fix');
    execFileSync('git', ['clone', '-q', '--bare', this.directory, this.bare], { env: ENV });
  }
  at(name) { return path.join(this.directory, name); }
  write(name, bytes) {
    fs.mkdirSync(path.dirname(this.at(name)), { recursive: true });
    fs.writeFileSync(this.at(name), bytes);
  }
  git(...args) { return execFileSync('git', args, { cwd: this.directory, env: ENV, encoding: 'utf8' }).trim(); }
  commit(message) {
    this.git('add', '-A');
    this.git('commit', '-qm', message);
    return this.git('rev-parse', 'HEAD');
  }
  push(branch = 'fix') { this.git('push', '-q', this.bare, `HEAD:${branch}`); }
  // The patch that makes of the head what `change` does, and its tree.
  patch(change) {
    change(this);
    this.git('add', '-A');
    const text = execFileSync('git', ['diff', '--cached', '--binary', '--full-index', '-M', 'HEAD'],
                              { cwd: this.directory, env: ENV, encoding: 'latin1', maxBuffer: 1 << 26 });
    const tree = this.git('write-tree');
    this.git('reset', '-q', '--hard', 'HEAD');
    return { text, tree };
  }
}

export const small = (site) => site.patch((s) => s.write('a.c', 'one\n2\nthree\nfour\n'));
export const finding = (message, place = {}) => ({
  source: 'agent', rule: 'bug', severity: 'warning', message, path: '', line: 0, end_line: 0, suggestion: null,
  refuses: false, blob: '', lines_sha256: '', line_hash: '', ...place,
});

// A report directory with this patch, whose record is the sample's after `change`.
export function reportOf(patch, change) {
  const directory = fresh('report');
  fs.cpSync(path.join(folder, 'full'), directory, { recursive: true });
  const record = JSON.parse(fs.readFileSync(path.join(directory, 'run.json')));
  Object.assign(record.outcome, { kind: 'success', exit_code: 0, reason: '' });
  change(record);
  fs.writeFileSync(path.join(directory, 'run.json'), JSON.stringify(record));
  fs.writeFileSync(path.join(directory, 'changes.patch'), patch, 'latin1');
  return directory;
}

export function report(site, patch, { outcome = 'success', head = site.head, prefix = '', findings = [], complete = true } = {}) {
  return reportOf(patch, (record) => {
    record.findings = findings;
    record.event.head_sha = head;
    Object.assign(record.changes, { prefix, complete });
    Object.assign(record.outcome, { kind: outcome, limit: '' });
  });
}

// Runs `act` once for each of so many requests, each time with a service of `serve`'s, `workers` at once:
// one after another would take minutes.
export async function forEachRequest(requests, workers, serve, act) {
  let next = 0;
  await Promise.all(Array.from({ length: workers }, async () => {
    while (next < requests) {
      const n = next++;
      await serve(async (service) => {
        try {
          await act(n, service);
        } catch (error) {
          throw new Error(`request ${n} of ${requests}: ${error.message}\n${service.requests.join('\n')}`);
        }
      });
    }
  }));
}

// Cases of a branch that moved while the agent worked, for each forge.
export const MOVED = JSON.parse(fs.readFileSync(new URL('moved_head.json', import.meta.url)));

function change(site, { write = {}, remove = [], rename = {} }) {
  for (const [name, text] of Object.entries(write)) site.write(name, text);
  for (const name of remove) fs.unlinkSync(site.at(name));
  for (const [from, to] of Object.entries(rename)) fs.renameSync(site.at(from), site.at(to));
}

// Moves the branch as the case says. Returns the report of the run that saw it before. `side`: the base branch merges `base`; `has`: the
// branch has merged it before the run; `of`: which of its commits the agent says it merged, by default the last.
export function moveHead(site, one) {
  change(site, { write: MOVED.seen });
  site.head = site.commit('seen');
  site.push();
  if (one.base) {
    const branch = one.base.branch ?? 'main';
    site.git('checkout', '-q', '-B', one.side ? 'topic' : branch, 'main');
    const commits = [one.base].flat().map((made) => {
      change(site, made);
      return site.commit('of the base branch');
    });
    if (one.side) {
      site.git('checkout', '-q', branch);
      site.git('merge', '-q', '--no-ff', '--no-edit', 'topic');
      commits.push(site.git('rev-parse', 'HEAD'));
    }
    site.base = commits.at(one.of ?? -1);
    site.push(branch);
    site.git('checkout', '-q', 'fix');
    if (one.has) {
      site.git('merge', '-q', '--no-edit', branch);
      site.head = site.git('rev-parse', 'HEAD');
      site.push();
    }
  }
  const directory = reportOf(site.patch((s) => change(s, one.patch)).text, (record) => {
    record.findings = [];
    record.event.head_sha = site.head;
    Object.assign(record.changes, { prefix: '', complete: true, merged: one.merged ? site.base : '' });
    const check = { command: 'make test', outcome: 'success', status: 0, reason: '', ms: 1, report: 'checks/1', output: [] };
    record.checks = one.checks ? [check] : [];
  });
  for (const move of one.moves) {
    if (move.delete) {
      site.git('--git-dir', site.bare, 'update-ref', '-d', 'refs/heads/fix');
      return directory;
    }
    if (move.reset) site.git('reset', '-q', '--hard', 'HEAD~1');
    for (let i = 0; i < (move.commits ?? 1); ++i) {
      change(site, move.commits ? { write: { [`commit-${i}`]: `${i}\n` } } : move);
      site.commit('of a person');
    }
    site.git('push', '-qf', site.bare, 'HEAD:fix');
  }
  return directory;
}

// Checks what `posted` did of the case. `git` runs git in the forge's repository; `merges`: the forge's API can make a merge.
export function checkMoved(site, one, posted, git, merges = false) {
  const said = posted.stdout + posted.stderr;
  const { end, files = {}, how, status = 0, says } = one.want;
  assert.equal(posted.status, status, said);
  if (says) assert.ok(said.includes(says), said);
  if (how) assert.ok(said.includes(how), said);
  const [, commit, branch, url] = posted.stdout.match(/^changes: commit ([0-9a-f]{40}) on ([^,\n]+)(?:, (.*))?$/m) ?? [];
  if (end === 'none') return assert.equal(commit, undefined, said);
  const on = git(['log', '-1', '--format=%P', commit]).trim();
  const head = site.git('rev-parse', 'HEAD');
  assert.equal(git(['rev-parse', branch]).trim(), commit);
  if (end === 'commit') {
    assert.equal(branch, 'fix', said);
    assert.equal(on, merges && one.merged && !one.onlyHead ? `${head} ${site.base}` : head);
    for (const [name, text] of Object.entries(files)) assert.equal(git(['show', `${commit}:${name}`]), text);
  } else {
    assert.match(branch, /^agentic-ci\/pull-7-/);
    assert.ok(url, said);
    assert.equal(on, site.head);
    assert.equal(git(['rev-parse', 'fix']).trim(), head);
  }
}
