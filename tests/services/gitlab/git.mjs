// SPDX-License-Identifier: Apache-2.0
// The repository API of the GitLab service, over a real bare repository, and the merge requests that its
// branches make. Objects are git's own; GitLab's rules are here: a commit is made on the tip that the
// branch has at that moment, files that are changed are compared with `last_commit_id`, a branch that is
// there is not started anew, and two branches have one open merge request.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

const COMMIT = ['%H', '%P', '%an', '%ae', '%cI', '%B'].join('%x00');

export class GitLabRepository {
  requests = [];  // The merge requests that were made here, as they are given.
  #directory;
  #refuse;
  #service;
  #nextIid = 100;
  #nextIndex = 0;

  // `directory`: a bare repository. `refuse(status, text)`: an error that the service answers with.
  constructor(service, directory, refuse) {
    this.#service = service;
    this.#directory = directory;
    this.#refuse = refuse;
  }

  git(args, { input, encoding = 'utf8', env = {} } = {}) {
    return execFileSync('git', ['--git-dir', this.#directory, ...args], {
      input, encoding, stdio: ['pipe', 'pipe', 'pipe'], maxBuffer: 1 << 28,
      env: { PATH: process.env.PATH, GIT_AUTHOR_NAME: 'bot', GIT_AUTHOR_EMAIL: 'bot@localhost', GIT_COMMITTER_NAME: 'bot',
             GIT_COMMITTER_EMAIL: 'bot@localhost', GIT_CONFIG_NOSYSTEM: '1', ...env },
    });
  }

  isProtected = false;  // The branches: no token may push to one.

  #try(args) { try { return this.git(args).trim(); } catch { return null; } }
  tip(branch) { return this.#try(['rev-parse', '--verify', '-q', `refs/heads/${branch}^{commit}`]); }
  // As git does: a tag goes before a branch of its name.
  #resolve(ref) { return this.#try(['rev-parse', '--verify', '-q', `${ref}^{commit}`]); }

  // The answer to a request below the project, or null where this is not the place.
  answer(method, rest, query, viewer, body, page) {
    const [, kind, name] = /^\/repository\/(\w+)(?:\/(.+))?$/.exec(rest) ?? [];
    if (method === 'GET' && kind === 'branches' && name) return this.#branch(decodeURIComponent(name));
    if (method === 'GET' && kind === 'commits' && !name) return this.#history(query, page);
    if (method === 'GET' && kind === 'tree') return this.#tree(query, page);
    if (method === 'GET' && kind === 'blobs') return this.#blob(name);
    if (method === 'GET' && kind === 'files') return this.#file(decodeURIComponent(name), query.get('ref'));
    if (method === 'GET' && kind === 'compare') return this.#compare(query);
    if (method === 'POST' && kind === 'commits' && !name) return this.#commit(viewer, body);
    if (rest === '/merge_requests') return method === 'POST' ? this.#open(viewer, body) : this.#list(query, page);
    const own = /^\/merge_requests\/(\d+)$/.exec(rest);
    const request = own && this.requests.find((one) => one.iid === Number(own[1]));
    if (!request) return null;
    if (method === 'PUT') {
      const { add_labels: labels, ...rest } = body;
      this.#service.checkActions(rest.description ?? '');
      Object.assign(request, rest);
      this.addLabels(request, labels);
    }
    return { status: 200, body: request };
  }

  addLabels(request, labels) {
    request.labels = [...new Set([...(request.labels ?? []), ...(labels ?? '').split(',').map((l) => l.trim()).filter(Boolean)])];
  }

  #render(sha) { return this.#log(['-1', sha])[0]; }

  // Of many commits, in one process.
  #log(args) {
    return this.git(['log', `--format=${COMMIT}%x01`, ...args]).split('\x01\n').filter(Boolean).map((text) => this.#parse(text));
  }

  #parse(text) {
    const [id, parents, name, email, date, message] = text.split('\0');
    return { id, short_id: id.slice(0, 8), title: message.split('\n')[0], message: message.replace(/\n$/, ''), author_name: name,
             author_email: email, committed_date: date, parent_ids: parents.split(' ').filter(Boolean), trailers: {} };
  }

  #branch(name) {
    const sha = this.tip(name);
    if (!sha) throw this.#refuse(404, '404 Branch Not Found');
    return { status: 200, body: { name, commit: this.#render(sha), merged: false, protected: false } };
  }

  #history(query, page) {
    const sha = this.#resolve(query.get('ref_name'));
    if (!sha) throw this.#refuse(404, '404 Repository Not Found');
    return page(query, this.#log([sha]));
  }

  #entries(args) {
    return this.git(['ls-tree', '-z', ...args]).split('\0').filter(Boolean).map((line) => {
      const [, mode, type, id, path] = /^(\d+) (\w+) ([0-9a-f]+)\t([^]*)$/.exec(line);
      return { id, name: path.split('/').pop(), type, path, mode };
    });
  }

  #tree(query, page) {
    const sha = this.#resolve(query.get('ref'));
    const path = query.get('path') ?? '';
    const found = sha && this.#try(['cat-file', '-t', `${sha}:${path}`]);
    if (found !== 'tree') throw this.#refuse(404, '404 invalid revision or path Not Found');
    const entries = this.#entries([...(query.get('recursive') === 'true' ? ['-r', '-t'] : []), `${sha}:${path}`]).map((entry) => ({ ...entry, path: path ? `${path}/${entry.path}` : entry.path }));
    return page(query, entries);
  }

  #blob(id) {
    if (this.#try(['cat-file', '-t', id]) !== 'blob') throw this.#refuse(404, '404 Blob Not Found');
    const content = this.git(['cat-file', 'blob', id], { encoding: 'buffer' });
    return { status: 200, body: { size: content.length, encoding: 'base64', content: content.toString('base64'), sha: id } };
  }

  #lastCommit(ref, path) { return this.#try(['log', '-1', '--format=%H', ref, '--', `:(literal)${path}`]); }

  #file(path, ref) {
    const sha = this.#resolve(ref);
    const [entry] = sha ? this.#entries([sha, '--', path]) : [];
    if (entry?.type !== 'blob') throw this.#refuse(404, '404 File Not Found');
    return { status: 200, body: { file_name: entry.name, file_path: path, ...this.#blob(entry.id).body, content_sha256: '', ref,
                                  blob_id: entry.id, commit_id: sha, last_commit_id: this.#lastCommit(sha, path),
                                  execute_filemode: entry.mode === '100755', sha: undefined } };
  }

  #compare(query) {
    const [from, to] = [this.#resolve(query.get('from')), this.#resolve(query.get('to'))];
    if (!from || !to) throw this.#refuse(404, '404 Ref Not Found');
    if (query.get('straight') !== 'true') this.#service.violations.push('compared with the merge base');
    const fields = this.git(['diff', '--raw', '-z', '-M', '--full-index', from, to]).split('\0').filter(Boolean);
    const diffs = [];
    while (fields.length > 0) {
      const [a_mode, b_mode, , , status] = fields.shift().slice(1).split(' ');
      const old_path = fields.shift();
      const new_path = status.startsWith('R') ? fields.shift() : old_path;
      diffs.push({ old_path, new_path, a_mode, b_mode, diff: '', new_file: status === 'A', deleted_file: status === 'D',
                   renamed_file: status.startsWith('R') });
    }
    return { status: 200, body: { commit: this.#render(to), commits: [], diffs, compare_timeout: false, compare_same_ref: from === to } };
  }

  #commit(viewer, { branch, commit_message: message, start_sha: start, start_branch, actions, force }) {
    if (this.isProtected) throw this.#refuse(403, '403 Forbidden - You are not allowed to push into this branch');
    if (viewer.level < 30) throw this.#refuse(403, '403 Forbidden');
    if (force || start_branch) this.#service.violations.push('a commit by force, or of another branch');
    const bad = (why) => this.#refuse(400, why);
    const old = this.tip(branch);
    if (start && old) throw bad(`A branch called '${branch}' already exists. Switch to that branch in order to make changes`);
    if (start && !this.#resolve(start)) throw bad(`Cannot find start_sha '${start}'`);
    if (!start && !old) throw bad('You can only create or edit files when you are on a branch');
    const parent = old ?? start;
    const files = new Map(this.#entries(['-r', parent]).map(({ mode, id, path }) => [path, { mode, id }]));
    for (const action of actions) this.#act(files, action, old);
    for (const path of files.keys()) {
      for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
        if (files.has(path.slice(0, at))) throw bad('A file with this name already exists');
      }
    }
    const sha = this.git(['commit-tree', this.#write(files), '-p', parent], { input: message }).trim();
    this.git(['update-ref', `refs/heads/${branch}`, sha, old ?? '0'.repeat(40)]);
    return { status: 201, body: this.#render(sha) };
  }

  #act(files, { action, file_path: path, content, encoding, last_commit_id: known, execute_filemode: executable }, tip) {
    const there = files.get(path);
    if (action === 'create' && there) throw this.#refuse(400, 'A file with this name already exists');
    if (action !== 'create' && !there) throw this.#refuse(400, "A file with this name doesn't exist");
    if (['update', 'delete'].includes(action) && tip && known && this.#lastCommit(tip, path) !== this.#lastCommit(known, path)) {
      throw this.#refuse(400, `The file has changed since you started editing it: ${path}`);
    }
    if (['update', 'delete'].includes(action) && tip && !known) this.#service.violations.push(`${path} is not compared`);
    if (action === 'delete') return files.delete(path);
    if (action === 'chmod') return files.set(path, { ...there, mode: executable ? '100755' : '100644' });
    if (!['create', 'update'].includes(action)) throw this.#refuse(400, 'actions[action] does not have a valid value');
    const id = this.git(['hash-object', '-w', '--stdin'], { input: Buffer.from(content, encoding === 'base64' ? 'base64' : 'utf8') });
    return files.set(path, { mode: there?.mode ?? '100644', id: id.trim() });
  }

  #write(files) {
    const index = `${this.#directory}/index-${this.#nextIndex++}`;
    const env = { GIT_INDEX_FILE: index };
    const input = [...files].map(([path, { mode, id }]) => `${mode} ${id}\t${path}\0`).join('');
    this.git(['update-index', '-z', '--index-info'], { input, env });
    const tree = this.git(['write-tree'], { env }).trim();
    fs.rmSync(index, { force: true });
    return tree;
  }

  // A merge request as GitLab gives it; `source`: the project of its branch.
  request({ source_branch, target_branch, title, description = null, source = this.#service.id, state = 'opened' }) {
    const iid = this.#nextIid++;
    const request = {
      id: 1000 + iid, iid, project_id: this.#service.id, title, description, state, source_branch, target_branch, labels: [],
      source_project_id: source, target_project_id: this.#service.id,
      web_url: `${this.#service.server}/${this.#service.path}/-/merge_requests/${iid}`,
    };
    this.requests.push(request);
    return request;
  }

  #open(viewer, body) {
    if (viewer.level < 30) throw this.#refuse(403, '403 Forbidden');
    const { source_branch: source, target_branch: target } = body;
    this.#service.checkActions(body.description ?? '');
    if (!this.tip(source) || !this.tip(target)) throw this.#refuse(400, ['Source or target branch does not exist']);
    const same = this.requests.find((one) => one.state === 'opened' && one.source_branch === source && one.target_branch === target &&
                                             one.source_project_id === this.#service.id);
    if (same) throw this.#refuse(409, [`Another open merge request already exists for this source branch: !${same.iid}`]);
    return { status: 201, body: { ...this.request(body), force_remove_source_branch: body.remove_source_branch } };
  }

  #list(query, page) {
    const found = this.requests.filter((one) => one.source_branch === query.get('source_branch') &&
        one.target_branch === query.get('target_branch') && ['all', one.state].includes(query.get('state') ?? 'all'));
    return page(query, found.reverse());
  }
}
