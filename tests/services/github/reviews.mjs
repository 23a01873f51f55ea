// SPDX-License-Identifier: Apache-2.0
// The reviews of the GitHub service: a pull request's files, its review threads by REST and GraphQL, and
// check runs. Comments are accepted where GitHub accepts them: on lines that the difference shows.
import { failure, simpleUser, validationFailure } from './objects.mjs';

// Lines of the new file that a patch shows, each with its hunk.
function shownLines(patch) {
  const shown = new Map();
  let line = 0;
  let hunk = 0;
  for (const text of (patch ?? '').split('\n')) {
    const head = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(text);
    if (head) {
      line = Number(head[1]);
      ++hunk;
    } else if (/^[ +]/.test(text)) {
      shown.set(line++, hunk);
    }
  }
  return shown;
}

export class Reviews {
  headSha = 'b'.repeat(40);
  headRef = 'fix';
  fork = false;
  state = 'open';
  files = [];     // {filename, status, patch, previous_filename}
  changedFiles = null;  // How many there are, where GitHub has cut the list.
  threads = [];   // {id, path, line, start_line, subject, commit, resolved, resolvedBy, outdated, comments}
  reviews = [];   // {id, body, comments}
  checkRuns = [];
  heads = null;   // Open pull requests of forks: {number, label: 'owner:branch', sha}
  refused = new Set();  // Lines that are not in the difference, although the list of files shows them.
  #service;
  #contract;
  #nextId = 5000;

  constructor(service, contract) {
    this.#service = service;
    this.#contract = contract;
  }

  #example(method, path, status) { return this.#contract?.example(method, path, status) ?? {}; }

  // The answer to a REST request below the repository, or null where this is not the place.
  answer(method, rest, query, viewer, text) {
    const body = text === '' ? {} : JSON.parse(text);
    const pull = /^\/pulls\/(\d+)(\/.*)?$/.exec(rest);
    if (rest.startsWith('/pulls/comments/') && method === 'DELETE') {
      return this.#delete(Number(rest.slice('/pulls/comments/'.length)));
    }
    if (pull && this.#service.pullRequests.has(Number(pull[1]))) {
      if (!pull[2]) return { status: 200, body: this.#pull(Number(pull[1])) };
      if (pull[2] === '/files') return this.#files(query);
      if (pull[2] === '/reviews' && method === 'POST') return this.#review(viewer, body);
      if (/^\/reviews\/\d+$/.test(pull[2]) && method === 'PUT') return this.#retext(Number(pull[2].slice(9)), body);
      if (pull[2] === '/comments' && method === 'POST') return this.#onFile(viewer, body);
    }
    if (rest === '/pulls' && method === 'GET' && this.heads) return this.#listHeads(query);
    if (rest.startsWith('/commits/') && rest.endsWith('/check-runs')) return this.#listChecks(rest, query);
    if (rest === '/check-runs') return this.#createCheck(body);
    const check = /^\/check-runs\/(\d+)$/.exec(rest);
    if (check) return this.#updateCheck(Number(check[1]), body);
    return null;
  }

  #listHeads(query) {
    const example = this.#example('get', '/repos/{owner}/{repo}/pulls', 200)[0];
    const found = this.heads.filter((head) => head.label === query.get('head') && query.get('state') === 'open');
    return { status: 200, body: found.map(({ number, sha, label }) => (
      { ...example, requested_teams: [], id: number, number, head: { ...example.head, sha, label } })) };
  }

  #head() {
    const { git } = this.#service;
    // A pull request keeps the last head of a branch that is gone.
    if (git.hasBranches) this.headSha = git.tip(this.headRef) ?? this.headSha;
    return this.headSha;
  }

  #pull(number) {
    const pull = structuredClone(this.#example('get', '/repos/{owner}/{repo}/pulls/{pull_number}', 200));
    // The example's team has no type, which the description wants.
    Object.assign(pull, { number, state: this.state, requested_teams: [],
                          changed_files: this.changedFiles ?? this.files.length });
    pull.head = { ...pull.head, sha: this.#head(), ref: this.headRef };
    pull.base = { ...pull.base, sha: 'a'.repeat(40), ref: 'main' };
    pull.head.repo = this.fork ? { ...pull.base.repo, id: pull.base.repo.id + 1 } : pull.base.repo;
    return pull;
  }

  #files(query) {
    const perPage = Number(query.get('per_page') ?? 30);
    const page = Number(query.get('page') ?? 1);
    const example = this.#example('get', '/repos/{owner}/{repo}/pulls/{pull_number}/files', 200)[0];
    const part = this.files.slice((page - 1) * perPage, page * perPage)
        .map((file) => ({ ...example, status: 'modified', ...file }));
    const headers = this.files.length > page * perPage ?
        { link: `<${this.#service.url}/repositories/1/pulls/7/files?page=${page + 1}>; rel="next"` } : {};
    return { status: 200, headers, body: part };
  }

  #takes(comment) {
    const file = this.files.find((f) => f.filename === comment.path);
    const shown = shownLines(file?.patch);
    const first = comment.start_line ?? comment.line;
    return !this.refused.has(comment.line) && shown.has(first) && shown.get(first) === shown.get(comment.line) && comment.side === 'RIGHT' &&
        first <= comment.line;
  }

  #thread(viewer, comment, subject, commit) {
    const thread = {
      id: `PRRT_${this.#nextId++}`, path: comment.path, line: comment.line ?? null,
      start_line: comment.start_line ?? null, subject, commit, resolved: false, resolvedBy: null,
      outdated: false, comments: [{ id: this.#nextId++, author: viewer.who, body: comment.body }],
    };
    this.threads.push(thread);
    return thread;
  }

  #review(viewer, body) {
    if (body.commit_id !== this.#head() || !body.comments.every((comment) => this.#takes(comment))) {
      return { status: 422, body: { ...failure(422, 'Unprocessable Entity'),
                                       errors: ['Pull request review thread line must be part of the diff'] } };
    }
    const review = structuredClone(
        this.#example('post', '/repos/{owner}/{repo}/pulls/{pull_number}/reviews', 200));
    Object.assign(review, { id: this.#nextId++, body: body.body, state: 'COMMENTED' });
    for (const comment of body.comments) {
      this.#thread(viewer, comment, 'LINE', body.commit_id).review = review.id;
    }
    this.reviews.push({ id: review.id, body: body.body, comments: body.comments.length });
    return { status: 200, body: review };
  }

  #retext(id, body) {
    const review = this.reviews.find((r) => r.id === id);
    if (!review) return { status: 404, body: failure(404, 'Not Found') };
    review.body = body.body;
    const told = structuredClone(
        this.#example('put', '/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}', 200));
    return { status: 200, body: Object.assign(told, { id, body: body.body }) };
  }

  #onFile(viewer, body) {
    if (body.subject_type !== 'file' || !this.files.some((file) => file.filename === body.path)) {
      return { status: 422, body: validationFailure('path is invalid') };
    }
    const thread = this.#thread(viewer, body, 'FILE', body.commit_id);
    const comment = structuredClone(
        this.#example('post', '/repos/{owner}/{repo}/pulls/{pull_number}/comments', 201));
    Object.assign(comment, { id: thread.comments[0].id, body: body.body, path: body.path,
                             user: simpleUser(this.#service.url, viewer.who) });
    return { status: 201, body: comment };
  }

  #delete(id) {
    const thread = this.threads.find((t) => t.comments.some((c) => c.id === id));
    if (!thread) return { status: 404, body: failure(404, 'Not Found') };
    thread.comments = thread.comments.filter((c) => c.id !== id);
    this.threads = this.threads.filter((t) => t.comments.length > 0);
    return { status: 204 };
  }

  // The data of one GraphQL query or mutation of ours.
  graphql(viewer, { query, variables }) {
    const login = viewer.who.login.replace('[bot]', '');
    if (query.includes('minimizeComment')) {
      const hidden = this.threads.flatMap((t) => t.comments).find((c) => `PRRC_${c.id}` === variables.id);
      if (!hidden || viewer.mayHide === false) {
        return { errors: [{ type: 'FORBIDDEN', message: 'Resource not accessible by integration' }], data: null };
      }
      hidden.minimised = true;
      return { data: { minimizeComment: { minimizedComment: { isMinimized: true } } } };
    }
    if (query.includes('resolveReviewThread')) {
      const thread = this.threads.find((t) => t.id === variables.id);
      if (!thread) return { errors: [{ type: 'NOT_FOUND', message: 'Could not resolve to a node' }], data: null };
      if (viewer.mayResolve === false) {
        return { errors: [{ type: 'FORBIDDEN', message: 'Resource not accessible by integration' }], data: null };
      }
      const again = query.includes('unresolveReviewThread');
      thread.resolved = !again;
      thread.resolvedBy = again ? null : login;
      return { data: { [again ? 'unresolveReviewThread' : 'resolveReviewThread']: { thread: { isResolved: !again } } } };
    }
    const from = Number(variables.after ?? 0);
    const part = this.threads.slice(from, from + 100);
    const nodes = part.map((thread) => ({
      id: thread.id, isResolved: thread.resolved, isOutdated: thread.outdated, line: thread.outdated ? null : thread.line,
      resolvedBy: thread.resolvedBy && { login: thread.resolvedBy },
      comments: { totalCount: thread.comments.length, nodes: thread.comments.slice(0, 1).map((comment) => ({
        id: `PRRC_${comment.id}`, isMinimized: comment.minimised ?? false,
        databaseId: comment.id, body: comment.body, viewerDidAuthor: comment.author.id === viewer.who.id,
      })) },
    }));
    const pageInfo = { hasNextPage: this.threads.length > from + 100, endCursor: String(from + 100) };
    const reviews = { nodes: this.reviews.slice(-100).map((review) => ({
      databaseId: review.id, body: review.body, viewerDidAuthor: true,
      comments: { totalCount: this.threads.filter((thread) => thread.review === review.id).length },
    })) };
    return { data: { viewer: { login },
                     repository: { pullRequest: { reviews, reviewThreads: { pageInfo, nodes } } } } };
  }

  #renderCheck(run) {
    const check = structuredClone(this.#example('post', '/repos/{owner}/{repo}/check-runs', 201));
    const { annotations, ...rest } = run;
    return { ...check, ...rest, conclusion: run.conclusion ?? null,
             output: { ...check.output, ...run.output, annotations_count: annotations.length } };
  }

  #listChecks(rest, query) {
    const sha = rest.split('/')[2];
    const found = this.checkRuns.filter((run) => run.head_sha === sha && run.name === query.get('check_name'));
    return { status: 200, body: { total_count: found.length, check_runs: found.map((r) => this.#renderCheck(r)) } };
  }

  #accept(run, body) {
    const { annotations = [], ...output } = body.output ?? {};
    if (annotations.length > 50) return { status: 422, body: validationFailure('too many annotations') };
    run.annotations.push(...annotations);
    Object.assign(run, body, { output });
    return null;
  }

  #createCheck(body) {
    const run = { id: this.#nextId++, annotations: [] };
    const refusal = this.#accept(run, body);
    if (refusal) return refusal;
    this.checkRuns.push(run);
    return { status: 201, body: this.#renderCheck(run) };
  }

  #updateCheck(id, body) {
    const run = this.checkRuns.find((entry) => entry.id === id);
    if (!run) return { status: 404, body: failure(404, 'Not Found') };
    return this.#accept(run, body) ?? { status: 200, body: this.#renderCheck(run) };
  }
}
