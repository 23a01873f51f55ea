// SPDX-License-Identifier: Apache-2.0
// The Git data API of the GitHub service, over a real bare repository, and the pull requests that its
// branches make. Objects are git's own; GitHub's rules are here: a reference moves without force only
// to a descendant, and a head and a base have one open pull request.
import { execFileSync } from 'node:child_process';
import { failure, simpleUser, validationFailure } from './objects.mjs';

const R = '/repos/{owner}/{repo}';
const BRANCH = 'refs/heads/';

export class GitData {
  unsigned = false;  // Commits are made with the token of a person.
  pulls = [];    // {number, head, base, title, body, state} of those that were opened here.
  statuses = [];  // {sha, state, context, description, target_url}
  sarifs = [];    // {commit_sha, ref, sarif, tool_name}
  attestations = [];  // Bundles.
  labels = new Map();  // Number to names.
  treeEntriesMax = 100000;
  permissions = new Map();  // Login to "admin", "write", "read", "none".
  #service;
  #contract;
  #directory;
  #nextNumber = 100;

  // `directory`: a bare repository, or null for a service without branches.
  constructor(service, contract, directory) {
    this.#service = service;
    this.#contract = contract;
    this.#directory = directory;
  }

  get hasBranches() { return this.#directory !== null; }

  git(args, { input, encoding = 'utf8' } = {}) {
    return execFileSync('git', ['--git-dir', this.#directory, ...args], {
      input, encoding, stdio: ['pipe', 'pipe', 'pipe'], maxBuffer: 1 << 28,
      env: { PATH: process.env.PATH, GIT_AUTHOR_NAME: 'bot', GIT_AUTHOR_EMAIL: 'bot@localhost',
             GIT_COMMITTER_NAME: 'bot', GIT_COMMITTER_EMAIL: 'bot@localhost', GIT_CONFIG_NOSYSTEM: '1' },
    });
  }

  #try(args, options) { try { return this.git(args, options).trim(); } catch { return null; } }
  tip(branch) { return this.#try(['rev-parse', '--verify', '-q', `${BRANCH}${branch}^{commit}`]); }
  #type(id) { return /^[0-9a-f]{40}$/.test(id ?? '') ? this.#try(['cat-file', '-t', id]) : null; }

  #example(method, path, status) { return structuredClone(this.#contract?.example(method, path, status) ?? {}); }

  // The answer to a REST request below the repository, or null where this is not the place.
  answer(method, rest, query, text) {
    const body = text === '' ? {} : JSON.parse(text);
    const label = /^\/issues\/(\d+)\/labels$/.exec(rest);
    if (label) return this.#label(method, Number(label[1]), body);
    const permission = /^\/collaborators\/([^/]+)\/permission$/.exec(rest);
    if (permission) return this.#permission(decodeURIComponent(permission[1]));
    const status = /^\/statuses\/([0-9a-f]{40})$/.exec(rest);
    if (status && method === 'POST') return this.#setStatus(status[1], body);
    const combined = /^\/commits\/([^/]+)\/status$/.exec(rest);
    if (combined) return this.#combined(combined[1]);
    if (rest === '/code-scanning/sarifs') {
      this.sarifs.push(body);
      return { status: 202, body: { id: 'sarif-1', url: `${this.#service.url}/sarif-1` } };
    }
    const subject = /^\/attestations\/(.+)$/.exec(rest);
    if (subject && method === 'GET') return this.#findAttestations(decodeURIComponent(subject[1]), query.get('predicate_type'));
    if (rest === '/attestations' && method === 'POST') {
      const { mediaType, verificationMaterial, dsseEnvelope } = body.bundle;
      if (!dsseEnvelope) return { status: 422, body: validationFailure('bundle') };
      this.attestations.push({ dsseEnvelope, verificationMaterial, mediaType });  // In an order of its own.
      return { status: 201, body: { id: this.attestations.length } };
    }
    const contents = /^\/contents\/(.+)$/.exec(rest);
    if (contents && method === 'GET') return this.#contents(decodeURIComponent(contents[1]), query);
    if (!this.#directory) return method === 'GET' ? this.#empty(rest, query) : null;
    if (rest === '/commits' && method === 'GET') return this.#history(query);
    if (rest.startsWith('/git/')) return this.#data(method, rest.slice('/git/'.length), query, body);
    if (rest === '/pulls') return method === 'POST' ? this.#open(body) : this.#list(query);
    const pull = /^\/pulls\/(\d+)$/.exec(rest);
    const ours = pull && this.pulls.find((entry) => entry.number === Number(pull[1]));
    if (ours && method === 'PATCH') {
      Object.assign(ours, body);
      return { status: 200, body: this.#renderPull(ours) };
    }
    return null;
  }

  #findAttestations(subject, type) {
    const found = this.attestations.filter(({ dsseEnvelope }) => {
      const statement = JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64'));
      return statement.subject.some((one) => `sha256:${one.digest.sha256}` === subject) && (!type || statement.predicateType === type);
    });
    if (found.length === 0) return { status: 404, body: failure(404, 'Not Found') };
    return { status: 200, body: { attestations: found.map((bundle) => ({ bundle, repository_id: 1, bundle_url: this.#service.url })) } };
  }

  // Without a repository every commit is there, and has nothing in it.
  #empty(rest, query) {
    const url = this.#service.url;
    const tree = 'e'.repeat(40);
    if (rest === `/git/trees/${tree}`) return { status: 200, body: { sha: tree, url, tree: [], truncated: false } };
    if (rest === '/git/ref/heads%2Fmain') return { status: 200, body: this.#renderRef('refs/heads/main', 'd'.repeat(40)) };
    if (rest !== '/commits') return null;
    const who = simpleUser(url, { id: 1, login: 'bot' });
    const person = { name: 'bot', email: 'bot@localhost', date: '2026-01-01T00:00:00Z' };
    const sha = query.get('sha');
    const commit = { url, author: person, committer: person, message: 'message', tree: { sha: tree, url }, comment_count: 0 };
    return { status: 200, body: [{ url, sha, node_id: 'C_1', html_url: url, comments_url: url, author: who, committer: who,
                                   parents: [], commit }] };
  }

  #data(method, rest, query, body) {
    const [kind] = rest.split('/');
    const id = decodeURIComponent(rest.slice(kind.length + 1));
    if (method === 'GET' && kind === 'ref') return this.#readRef(id);
    if (method === 'GET' && kind === 'trees') return this.#readTree(id, query.has('recursive'));
    if (method === 'GET' && kind === 'blobs') return this.#readBlob(id);
    if (method === 'POST' && kind === 'blobs') return this.#makeBlob(body);
    if (method === 'POST' && kind === 'trees') return this.#makeTree(body);
    if (method === 'POST' && kind === 'commits') return this.#makeCommit(body);
    if (method === 'POST' && kind === 'refs') return this.#makeRef(body);
    if (method === 'PATCH' && kind === 'refs') return this.#moveRef(id, body);
    return null;
  }

  #renderRef(ref, sha) {
    const url = `${this.#service.url}/repos/${this.#service.repository}/git/${ref}`;
    return { ref, node_id: 'REF_1', url, object: { type: 'commit', sha, url } };
  }

  #readRef(name) {
    const sha = this.tip(name.replace(/^heads\//, ''));
    if (!sha) return { status: 404, body: failure(404, 'Not Found') };
    return { status: 200, body: this.#renderRef(`refs/${name}`, sha) };
  }

  // With directories beneath, up to treeEntriesMax entries.
  #readTree(id, recursive = false) {
    if (this.#type(id) !== 'tree') return { status: 404, body: failure(404, 'Not Found') };
    const url = `${this.#service.url}/git/${id}`;
    const tree = this.git(['ls-tree', '-z', ...(recursive ? ['-r', '-t'] : []), id]).split('\0').filter(Boolean).map((line) => {
      const [, mode, type, sha, path] = /^(\d+) (\w+) ([0-9a-f]+)\t([^]*)$/.exec(line);
      return { path, mode, type, sha, url };
    });
    const truncated = tree.length > this.treeEntriesMax;
    return { status: 200, body: { sha: id, url, tree: truncated ? tree.slice(0, this.treeEntriesMax) : tree, truncated } };
  }

  #readBlob(id) {
    if (this.#type(id) !== 'blob') return { status: 404, body: failure(404, 'Not Found') };
    const content = this.git(['cat-file', 'blob', id], { encoding: 'buffer' });
    const lines = content.toString('base64').replace(/(.{60})/g, '$1\n');  // As GitHub breaks them.
    return { status: 200, body: { content: lines, encoding: 'base64', sha: id, node_id: 'B_1', size: content.length,
                                  url: `${this.#service.url}/git/blobs/${id}` } };
  }

  #hash(bytes) { return this.git(['hash-object', '-w', '--stdin'], { input: bytes }).trim(); }

  #makeBlob({ content, encoding = 'utf-8' }) {
    const sha = this.#hash(Buffer.from(content, encoding === 'base64' ? 'base64' : 'utf8'));
    return { status: 201, body: { sha, url: `${this.#service.url}/git/blobs/${sha}` } };
  }

  #makeTree({ base_tree: base, tree }) {
    if (base && this.#type(base) !== 'tree') return { status: 422, body: validationFailure('base_tree is not a tree') };
    const index = `${this.#directory}/index-${Math.random()}`;
    const run = (args, input) => execFileSync('git', ['--git-dir', this.#directory, ...args], {
      input, encoding: 'utf8', env: { PATH: process.env.PATH, GIT_INDEX_FILE: index } }).trim();
    run(['read-tree', base ?? '--empty']);
    const lines = tree.map(({ path, mode, sha, content }) => {
      if (sha === null) return `0 ${'0'.repeat(40)}\t${path}\0`;
      return `${mode} ${sha ?? this.#hash(Buffer.from(content, 'utf8'))}\t${path}\0`;
    });
    run(['update-index', '-z', '--index-info'], lines.join(''));
    const sha = run(['write-tree']);
    return { status: 201, body: this.#readTree(sha).body };
  }

  #makeCommit({ message, tree, parents, author, committer }) {
    if (author || committer) this.#service.violations.push('a commit with an author is not verified');
    const bad = [tree, ...parents].find((id) => !this.#type(id));
    if (bad) return { status: 422, body: validationFailure(`${bad} does not exist`) };
    const sha = this.git(['commit-tree', tree, ...parents.flatMap((id) => ['-p', id])], { input: message }).trim();
    const reason = this.unsigned ? 'unsigned' : 'valid';
    return { status: 201, body: { ...this.#renderGitCommit(sha), verification: {
      verified: !this.unsigned, reason, signature: 's', payload: 'p', verified_at: null } } };
  }

  #renderGitCommit(sha) {
    const url = `${this.#service.url}/git/commits/${sha}`;
    const [tree, parents, date, message] = this.git(['log', '-1', '--format=%T%x00%P%x00%cI%x00%B', sha]).split('\0');
    const who = { name: 'bot', email: 'bot@localhost', date };
    return { sha, node_id: 'C_1', url, html_url: url, author: who, committer: who, message: message.trimEnd(),
             tree: { sha: tree, url }, parents: parents.split(' ').filter(Boolean).map((id) => ({ sha: id, url, html_url: url })) };
  }

  #makeRef({ ref, sha }) {
    if (this.#type(sha) !== 'commit') return { status: 422, body: validationFailure('Object does not exist') };
    if (this.#try(['rev-parse', '--verify', '-q', ref])) {
      return { status: 422, body: validationFailure('Reference already exists') };
    }
    this.git(['update-ref', ref, sha]);
    return { status: 201, body: this.#renderRef(ref, sha) };
  }

  #moveRef(name, { sha, force = false }) {
    if (force) this.#service.violations.push('a reference was moved by force');
    const ref = `refs/${name}`;
    const old = this.#try(['rev-parse', '--verify', '-q', ref]);
    if (!old || this.#type(sha) !== 'commit') return { status: 422, body: validationFailure('Reference does not exist') };
    if (this.#try(['merge-base', '--is-ancestor', old, sha]) === null) {
      return { status: 422, body: validationFailure('Update is not a fast forward') };
    }
    this.git(['update-ref', ref, sha]);
    return { status: 200, body: this.#renderRef(ref, sha) };
  }

  #history(query) {
    const list = this.#try(['rev-list', '-n', query.get('per_page') ?? '30', query.get('sha')]);
    if (list === null) return { status: 404, body: failure(404, 'Not Found') };
    const url = this.#service.url;
    const who = simpleUser(url, { id: 1, login: 'bot' });
    const commits = list.split('\n').map((sha) => {
      const { author, committer, message, tree, parents } = this.#renderGitCommit(sha);
      return { url, sha, node_id: 'C_1', html_url: url, comments_url: url, author: who, committer: who, parents,
               commit: { url, author, committer, message, tree, comment_count: 0 } };
    });
    return { status: 200, body: commits };
  }

  #contents(path, query) {
    const found = this.#directory && this.#try(['rev-parse', '--verify', '-q', `${query.get('ref')}:${path}`]);
    if (!found) return { status: 404, body: failure(404, 'Not Found') };
    const content = this.git(['cat-file', 'blob', found], { encoding: 'buffer' });
    const url = this.#service.url;
    return { status: 200, body: {
      type: 'file', encoding: 'base64', size: content.length, name: path.split('/').pop(), path,
      content: content.toString('base64'), sha: found, url, git_url: url, html_url: url, download_url: url,
      _links: { git: url, self: url, html: url } } };
  }

  #renderPull(pull) {
    const rendered = this.#example('get', `${R}/pulls/{pull_number}`, 200);
    const side = (branch) => ({ ...rendered.base, ref: branch, sha: this.tip(branch) ?? 'f'.repeat(40) });
    return { ...rendered, requested_teams: [], number: pull.number, state: pull.state, title: pull.title, body: pull.body,
             html_url: `https://github.com/${this.#service.repository}/pull/${pull.number}`,
             head: side(pull.head), base: side(pull.base) };
  }

  #open({ head, base, title, body }) {
    if (!this.tip(head) || !this.tip(base)) return { status: 422, body: validationFailure('head or base is invalid') };
    if (this.pulls.some((pull) => pull.state === 'open' && pull.head === head && pull.base === base)) {
      return { status: 422, body: validationFailure(`A pull request already exists for acme:${head}.`) };
    }
    const pull = { number: this.#nextNumber++, head, base, title, body, state: 'open' };
    this.pulls.push(pull);
    return { status: 201, body: this.#renderPull(pull) };
  }

  #list(query) {
    const [owner] = this.#service.repository.split('/');
    const found = this.pulls.filter((pull) => `${owner}:${pull.head}` === query.get('head') && pull.base === query.get('base') &&
                                              ['all', pull.state].includes(query.get('state') ?? 'open'));
    const example = this.#example('get', `${R}/pulls`, 200)[0];
    const side = (branch) => ({ ...example.base, ref: branch, sha: this.tip(branch) });
    return { status: 200, body: found.reverse().map((pull) => ({
      ...example, requested_teams: [], number: pull.number, state: pull.state, title: pull.title, body: pull.body,
      html_url: `https://github.com/${this.#service.repository}/pull/${pull.number}`,
      head: side(pull.head), base: side(pull.base) })) };
  }

  #label(method, number, { labels = [] }) {
    const there = this.labels.get(number) ?? [];
    const now = [...new Set([...there, ...labels])];
    if (method === 'POST') this.labels.set(number, now);
    const url = this.#service.url;
    const list = (method === 'POST' ? now : there).map((name, id) => (
      { id, node_id: 'L_1', url, name, description: null, color: 'ededed', default: false }));
    return { status: 200, body: list };
  }

  #permission(login) {
    const permission = this.permissions.get(login);
    if (!permission) return { status: 404, body: failure(404, 'Not Found') };
    const user = { ...simpleUser(this.#service.url, { id: 1, login }), role_name: permission };
    return { status: 200, body: { permission, role_name: permission, user: permission === 'none' ? null : user } };
  }

  #setStatus(sha, body) {
    this.statuses.push({ sha, ...body });
    const example = this.#example('post', `${R}/statuses/{sha}`, 201);
    return { status: 201, body: { ...example, ...body } };
  }

  #combined(sha) {
    const latest = new Map(this.statuses.filter((status) => status.sha === sha).map((status) => [status.context, status]));
    const example = this.#example('get', `${R}/commits/{ref}/status`, 200);
    const statuses = [...latest.values()].map(({ state, context, description, target_url: target = null }) => ({
      ...example.statuses?.[0], state, context, description, target_url: target }));
    return { status: 200, body: { ...example, sha, statuses, total_count: statuses.length } };
  }
}
