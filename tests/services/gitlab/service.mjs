// SPDX-License-Identifier: Apache-2.0
// A GitLab REST service on loopback that remembers one merge request: its notes and discussions, the
// statuses of its commits, tokens, faults on demand, and optionally a git repository (git.mjs). It takes
// JSON, forms and query parameters, as GitLab does; tests/forge/gitlab_service_test.mjs drives it with
// another client, so that what it accepts is not just what agentic-ci sends. With a contract, every
// request in JSON and every answer is judged; see `violations`.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { GitLabRepository } from './git.mjs';
import { IdTokens } from './id_tokens.mjs';

const NOTE_CHARACTERS_MAX = 1000000;
const DIGEST = (text) => crypto.createHash('sha1').update(text).digest('hex');

export const BOT = { id: 501, username: 'project_21_bot_0a1b', name: 'agentic-ci' };
export const PERSON = { id: 7, username: 'jo', name: 'Jo' };

// The lines of a file's difference, by new number, with their old numbers (null: added).
function shownLines(diff) {
  const shown = new Map();
  let [before, after] = [0, 0];
  for (const text of (diff ?? '').split('\n')) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(text);
    if (head) {
      [before, after] = [Number(head[1]), Number(head[2])];
    } else if (text.startsWith('+')) {
      shown.set(after++, null);
    } else if (text.startsWith('-')) {
      ++before;
    } else if (text.startsWith(' ')) {
      shown.set(after++, before++);
    }
  }
  return shown;
}

// "position[new_line]" of forms and queries becomes {position: {new_line}}.
function nested(pairs) {
  const result = {};
  for (const [name, value] of pairs) {
    const keys = name.replaceAll(']', '').split('[');
    let at = result;
    for (const key of keys.slice(0, -1)) at = at[key] ??= {};
    at[keys.at(-1)] = value;
  }
  return result;
}

async function parse(headers, bytes) {
  const type = headers['content-type'] ?? '';
  if (bytes.length === 0) return {};
  if (type.startsWith('application/json')) return JSON.parse(bytes);
  return nested(await new Response(bytes, { headers: { 'content-type': type } }).formData());
}

class Refusal {
  constructor(status, body, headers = {}) { Object.assign(this, { status, body, headers }); }
}
const message = (status, text) => new Refusal(status, { message: text });

export class GitLabService {
  discussions = [];  // {id, individual, notes: [note]}
  statuses = [];     // {sha, name, status, description, target_url, ref}
  requests = [];     // "POST /path", in order of arrival.
  writes = [];       // {method, path, body} of all that would change something.
  violations = [];   // What no client may send.
  faults = [];       // See `fail`.
  before = null;     // Called for each request, before faults are looked at.
  tokens = new Map();  // Token to {who, level, scope}.
  files = [];        // As /diffs gives them: {old_path, new_path, diff, ...}
  refs = { base_sha: 'a'.repeat(40), start_sha: 'c'.repeat(40), head_sha: 'b'.repeat(40) };
  pipelines = [];    // Of the merge request: {id, project_id, sha, ref, status}.
  jobs = [];         // {id, pipeline, project, name, artifacts}; `artifacts` is a directory.
  idTokens = new IdTokens();
  fileComments = true;  // GitLab 16.4 and newer.
  noteCreationLimit = Infinity;
  #server;
  #nextId = 1000;

  // `git`: a bare repository, with the merge request's branch `fix`; without it there are no branches.
  constructor({ id = 21, path = 'acme/web/site', iid = 7, source = id, git = null, contract = null } = {}) {
    this.contract = contract;
    Object.assign(this, { id, path, iid, source, labels: [] });
    this.git = git && new GitLabRepository(this, git, message);
    this.allow('glpat-bot', BOT);
  }

  // `level`: 20 Reporter, 30 Developer. `scope`: api, or read_api. `job`: a CI_JOB_TOKEN.
  allow(token, who, { level = 30, scope = 'api', job = false } = {}) {
    this.tokens.set(token, { who, level, scope, job });
  }

  // The next `times` requests that fit are answered with {status, headers, body}, or the connection is
  // cut ("cut"), or there is no answer ("hang"). `after: true` acts on the request first.
  fail(fault) { this.faults.push({ method: '', path: '', times: 1, ...fault }); }

  async start() {
    this.#server = http.createServer((request, response) => {
      const chunks = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => this.#receive(request, response, Buffer.concat(chunks)));
    });
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.server = `http://127.0.0.1:${this.#server.address().port}`;
    this.url = `${this.server}/api/v4`;
    return this;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  // As GitLab does behind a push: what is on lines that are still there moves to the new head.
  push(head, { files = this.files, outdated = () => false } = {}) {
    this.files = files;
    this.refs = { ...this.refs, head_sha: head };
    for (const { notes } of this.discussions) {
      if (notes[0].position && !outdated(notes[0])) Object.assign(notes[0].position, this.refs);
    }
  }

  #note(viewer, body, more = {}) {
    const now = new Date(1700000000000 + this.#nextId * 1000).toISOString();
    return {
      id: this.#nextId++, type: null, body, author: viewer.who, created_at: now, updated_at: now, system: false,
      noteable_id: 99, noteable_type: 'MergeRequest', noteable_iid: this.iid, project_id: this.id, resolvable: false,
      confidential: false, internal: false, ...more,
    };
  }

  // A comment of somebody's, put there by the test.
  note(who, body, more = {}) {
    const note = this.#note({ who }, body, more);
    this.discussions.push({ id: DIGEST(String(note.id)), individual_note: true, notes: [note] });
    return note;
  }

  // The comments of the conversation, without threads.
  get comments() { return this.discussions.filter((d) => d.individual_note).map((d) => d.notes[0]); }
  get threads() { return this.discussions.filter((d) => !d.individual_note); }

  async #receive(request, response, bytes) {
    const { method, url } = request;
    this.requests.push(`${method} ${url}`);
    this.before?.(method, url);
    if (this.git) this.refs = { ...this.refs, head_sha: this.git.tip('fix') ?? this.refs.head_sha };
    const at = this.faults.findIndex((f) => (f.method || method) === method && url.includes(f.path) && f.times !== 0);
    const fault = at < 0 ? null : this.faults[at];
    if (fault?.times > 0) fault.times--;
    const silent = fault?.cut || fault?.hang;
    let answer;
    if (fault?.after || !(silent || fault?.status)) answer = await this.#answer(request, bytes);
    if (fault?.cut) return request.socket.destroy();
    if (fault?.hang) return;
    if (fault?.status) {
      answer = new Refusal(fault.status, fault.body ?? { message: `${fault.status} injected` }, fault.headers);
    }
    const text = answer.body === undefined ? '' : typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(text);
  }

  #judge({ method, url }, problems = []) {
    for (const problem of problems) this.violations.push(`${method} ${url}: ${problem}`);
  }

  async #answer(request, bytes) {
    try {
      const { method, headers } = request;
      const { pathname, searchParams } = new URL(request.url, this.server);
      if (method === 'GET' && pathname === '/oauth/discovery/keys') return { status: 200, body: this.idTokens.keys };
      const token = headers['private-token'] ?? /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ??
          headers['job-token'];
      const viewer = this.tokens.get(token);
      if (!viewer) throw message(401, '401 Unauthorized');
      const sent = await parse(headers, bytes);
      const form = bytes.length > 0 && !headers['content-type'].startsWith('application/json');
      if (!form) this.#judge(request, this.contract?.request(method, request.url, sent));
      const body = { ...nested(searchParams), ...sent };
      if (method !== 'GET') this.writes.push({ method, path: pathname, body });
      if (method !== 'GET' && viewer.scope !== 'api') {
        throw new Refusal(403, { error: 'insufficient_scope', error_description: 'The request requires higher privileges.' });
      }
      const answer = this.#route(method, pathname, searchParams, viewer, body);
      const shown = answer.body && JSON.parse(JSON.stringify(answer.body));  // Without what is undefined.
      this.#judge(request, this.contract?.answer(method, request.url, shown));
      return answer;
    } catch (error) {
      if (error instanceof Refusal) return error;
      this.violations.push(`${request.method} ${request.url}: ${error.stack}`);
      return message(500, '500 Internal Server Error');
    }
  }

  #route(method, pathname, query, viewer, body) {
    if (pathname === '/api/v4/user') {
      if (viewer.job) throw message(401, '401 Unauthorized');
      return { status: 200, body: viewer.who };
    }
    const kept = /^\/api\/v4\/projects\/(\d+)\/(pipelines\/(\d+)\/jobs|jobs\/(\d+)\/artifacts\/(.+))$/.exec(pathname);
    if (kept && method === 'GET') return this.#jobs(query, Number(kept[1]), kept[3], kept[4], kept[5]);
    const project = /^\/api\/v4\/projects\/([^/]+)(\/.*)?$/.exec(pathname);
    if (!project || ![String(this.id), this.path].includes(decodeURIComponent(project[1]))) {
      throw message(404, '404 Project Not Found');
    }
    const rest = project[2] ?? '';
    const answer = this.git?.answer(method, rest, query, viewer, body, (...list) => this.#page(...list));
    if (answer) return answer;
    // Without a repository every commit is there, and has nothing in it.
    if (!this.git && method === 'GET' && rest === '/repository/tree') return this.#page(query, []);
    if (!this.git && method === 'GET' && rest === '/repository/branches/main') {
      const id = 'e'.repeat(40);
      return { status: 200, body: { name: 'main', commit: { id, short_id: id.slice(0, 8), title: 'm', message: 'm', parent_ids: [] } } };
    }
    if (!this.git && method === 'GET' && rest === '/repository/commits') {
      const id = query.get('ref_name');
      return this.#page(query, [{ id, short_id: id.slice(0, 8), title: 'message', message: 'message', parent_ids: [] }]);
    }
    if (rest === '/merge_requests' && method === 'GET') {
      return this.#page(query, [this.#mergeRequest('GET', '', query, viewer).body]);
    }
    const request = /^\/merge_requests\/(\d+)(\/.*)?$/.exec(rest);
    if (request) {
      if (Number(request[1]) !== this.iid) throw message(404, '404 Not found');
      return this.#mergeRequest(method, request[2] ?? '', query, viewer, body);
    }
    const listed = /^\/repository\/commits\/([0-9a-f]{40})\/statuses$/.exec(rest);
    if (listed && method === 'GET') {
      const name = query.get('name');
      return this.#page(query, this.statuses.filter((s) => s.sha === listed[1] && (!name || s.name === name)));
    }
    const set = /^\/statuses\/([0-9a-f]{40})$/.exec(rest);
    if (set && method === 'POST') return this.#setStatus(set[1], viewer, body);
    throw message(404, '404 Not Found');
  }

  #mergeRequest(method, rest, query, viewer, body) {
    if (rest === '' && method === 'PUT' && this.git) this.git.addLabels(this, body.add_labels);
    if (rest === '' && (method === 'GET' || (method === 'PUT' && this.git))) {
      return { status: 200, body: {
        id: 99, iid: this.iid, project_id: this.id, title: 'Fix', state: 'opened', sha: this.refs.head_sha,
        source_branch: 'fix', target_branch: 'main', source_project_id: this.source, target_project_id: this.id,
        diff_refs: this.refs, labels: this.labels, web_url: `${this.server}/${this.path}/-/merge_requests/${this.iid}`,
      } };
    }
    if (viewer.job && !(rest.startsWith('/notes') && method === 'GET')) throw message(401, '401 Unauthorized');
    if (rest === '/diffs' && method === 'GET') {
      return this.#page(query, this.files.map((file) => ({
        old_path: file.new_path, a_mode: '100644', b_mode: '100644', diff: '', new_file: false, renamed_file: false,
        deleted_file: false, generated_file: false, collapsed: false, too_large: false, ...file,
      })));
    }
    if (rest === '/pipelines' && method === 'GET') return this.#page(query, this.pipelines);
    if (rest === '/notes' && method === 'GET') {
      const notes = this.discussions.flatMap((d) => d.notes).sort((a, b) => a.id - b.id);
      if (query.get('sort') !== 'asc') notes.reverse();
      return this.#page(query, notes);
    }
    if (rest === '/notes' && method === 'POST') return { status: 201, body: this.#createNote(viewer, body) };
    if (rest === '/discussions' && method === 'GET') return this.#page(query, this.discussions);
    if (rest === '/discussions' && method === 'POST') return { status: 201, body: this.#createDiscussion(viewer, body) };
    const note = /^\/notes\/(\d+)$/.exec(rest);
    if (note) return this.#oneNote(method, Number(note[1]), viewer, body);
    const discussion = /^\/discussions\/([0-9a-f]{40})$/.exec(rest);
    if (discussion && method === 'PUT') return this.#resolve(discussion[1], viewer, body);
    throw message(404, '404 Not Found');
  }

  #jobs(query, project, pipeline, job, file) {
    if (pipeline) {
      const of = this.jobs.filter((one) => one.project === project && one.pipeline === Number(pipeline));
      return this.#page(query, of.map(({ id, name, artifacts }) => ({
        id, name, status: 'success', ...(artifacts && { artifacts_file: { filename: 'artifacts.zip', size: 1 } }) })));
    }
    const from = this.jobs.find((one) => one.project === project && one.id === Number(job))?.artifacts;
    const at = from && path.join(from, path.normalize(`/${file}`));
    if (!at || !fs.existsSync(at)) throw message(404, '404 Not Found');
    return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: fs.readFileSync(at, 'utf8') };
  }

  #page(query, all) {
    const size = Math.min(100, Number(query.get('per_page') ?? 20));
    const page = Number(query.get('page') ?? 1);
    const last = Math.max(1, Math.ceil(all.length / size));
    const headers = { 'x-page': String(page), 'x-per-page': String(size), 'x-next-page': page < last ? String(page + 1) : '' };
    // With the whole query, as GitLab has it, but nowhere to go: a client that follows it shows its token.
    const next = new URLSearchParams(query);
    next.set('page', page + 1);
    next.set('per_page', size);
    if (page < last) headers.link = `<${this.server}/elsewhere?${next}>; rel="next"`;
    return { status: 200, headers, body: all.slice((page - 1) * size, page * size) };
  }

  #checkBody(body) {
    if (typeof body.body !== 'string') throw new Refusal(400, { error: 'body is missing' });
    if (body.body.trim() === '') throw message(400, '400 Bad request - Note {:note=>["can\'t be blank"]}');
    if ([...body.body].length > NOTE_CHARACTERS_MAX) {
      throw message(400, '400 Bad request - Note {:note=>["is too long (maximum is 1000000 characters)"]}');
    }
    this.checkActions(body.body);
    if (this.noteCreationLimit-- <= 0) {
      this.noteCreationLimit = Infinity;
      throw new Refusal(429, { message: { error: 'This endpoint has been requested too many times. Try again later.' } },
                        { 'retry-after': '1' });
    }
  }

  // GitLab acts on such a line, and takes it out of the text. Until 2023 it looked for code by regular
  // expressions, not by Markdown's rules (lib/gitlab/quick_actions/extractor.rb): a fence of four
  // backticks is none to them, and the next one of three may be read as its end or as a beginning. This
  // is as strict: it leaves out of account what those take for code, and nothing else.
  checkActions(text) {
    const actions = /^```.+?\n```$|^\/(?<name>[a-z_]+)(?:[ ][^\n]*)?(?:\s*\n|$)/gmis;
    for (const { groups: { name } } of text.replaceAll('\r', '').matchAll(actions)) {
      if (name) this.violations.push(`quick action /${name}`);
    }
  }

  #createNote(viewer, body) {
    this.#checkBody(body);
    return this.note(viewer.who, body.body);
  }

  #createDiscussion(viewer, body) {
    this.#checkBody(body);
    const { position } = body;
    const more = { type: position ? 'DiffNote' : 'DiscussionNote', resolvable: true, resolved: false, resolved_by: null };
    if (position) more.position = this.#checkPosition(position);
    const note = this.#note(viewer, body.body, more);
    const discussion = { id: DIGEST(String(note.id)), individual_note: false, notes: [note] };
    this.discussions.push(discussion);
    return discussion;
  }

  // What GitLab makes of a place: a line has to be in the difference between these commits, and one that
  // was there before is named by both numbers.
  #checkPosition(position) {
    const bad = (why) => message(400, `400 Bad request - Note {:line_code=>["${why}"]}`);
    for (const name of ['base_sha', 'start_sha', 'head_sha', 'position_type']) {
      if (!position[name]) throw new Refusal(400, { error: `position[${name}] is missing` });
    }
    const types = this.fileComments ? ['text', 'file', 'image'] : ['text', 'image'];
    if (!types.includes(position.position_type)) {
      throw new Refusal(400, { error: 'position[position_type] does not have a valid value' });
    }
    for (const name of ['base_sha', 'start_sha', 'head_sha']) {
      if (position[name] !== this.refs[name]) throw bad('must be a valid line code');
    }
    const file = this.files.find((f) => f.new_path === position.new_path);
    if (!file || (position.old_path ?? position.new_path) !== (file.old_path ?? file.new_path)) throw bad('is not a file');
    if (position.position_type === 'file') return { ...position };
    const line = Number(position.new_line);
    const shown = shownLines(file.diff);
    const old = position.old_line === undefined ? null : Number(position.old_line);
    if (!shown.has(line) || shown.get(line) !== old) throw bad("can't be blank");
    return { ...position, new_line: line, old_line: old };
  }

  #oneNote(method, id, viewer, body) {
    const discussion = this.discussions.find((d) => d.notes.some((n) => n.id === id));
    if (!discussion) throw message(404, '404 Note Not Found');
    const note = discussion.notes.find((n) => n.id === id);
    if (method === 'GET') return { status: 200, body: note };
    if (note.author.id !== viewer.who.id) throw message(403, '403 Forbidden');
    if (method === 'PUT') {
      this.#checkBody(body);
      note.body = body.body;
      return { status: 200, body: note };
    }
    if (method !== 'DELETE') throw message(405, '405 Method Not Allowed');
    discussion.notes = discussion.notes.filter((n) => n !== note);
    if (discussion.notes.length === 0) this.discussions.splice(this.discussions.indexOf(discussion), 1);
    return { status: 204 };
  }

  #resolve(id, viewer, body) {
    const discussion = this.discussions.find((d) => d.id === id);
    if (!discussion) throw message(404, '404 Discussion Not Found');
    if (viewer.level < 30) throw message(403, '403 Forbidden');
    if (!discussion.notes[0].resolvable) throw message(400, '400 Bad request');
    const resolved = String(body.resolved) === 'true';
    for (const note of discussion.notes) Object.assign(note, { resolved, resolved_by: resolved ? viewer.who : null });
    return { status: 200, body: discussion };
  }

  #setStatus(sha, viewer, body) {
    if (viewer.level < 30) throw message(403, '403 Forbidden');
    if (sha !== this.refs.head_sha) throw message(404, '404 Commit Not Found');
    if (!['pending', 'running', 'success', 'failed', 'canceled', 'skipped'].includes(body.state)) {
      throw new Refusal(400, { error: 'state does not have a valid value' });
    }
    if ((body.description ?? '').length > 255) throw message(400, { description: ['is too long'] });
    const status = { id: this.#nextId++, sha, status: body.state, name: body.name ?? 'default', ref: body.ref ?? 'fix',
                     description: body.description ?? null, target_url: body.target_url ?? null, author: viewer.who };
    // The older one of a name counts as retried, and is not listed.
    this.statuses = this.statuses.filter((s) => s.sha !== sha || s.name !== status.name);
    this.statuses.push(status);
    return { status: 201, body: status };
  }
}
