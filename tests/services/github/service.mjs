// SPDX-License-Identifier: Apache-2.0
// A GitHub REST service on loopback that remembers: comments of one repository, tokens, and faults on
// demand. With a contract, every request and every answer of its own is judged; see `violations`.
import crypto from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { failure, fullUser, issueComment, simpleUser, validationFailure } from './objects.mjs';
import { GitData } from './git.mjs';
import { Reviews } from './reviews.mjs';

const CHARACTERS_MAX = 65536;  // Code points, as GitHub counts.

export const ACTIONS_BOT = { id: 41898282, login: 'github-actions[bot]', type: 'Bot' };

export class GitHubService {
  reactions = [];   // {comment, content}
  comments = [];    // {id, number, author, body, created, updated}
  requests = [];    // "POST /path", in order of arrival.
  headers = [];     // Of each, as JSON.
  violations = [];  // What GitHub's description does not allow, ours or the client's.
  faults = [];      // See `fail`.
  hooks = [];       // {method, path, run}: once, before the request is handled.
  before = null;    // Called for each request, before faults are looked at.
  exposeState = false;  // Answer GET /_test/state, for tests in another process.
  viewers = new Map();  // Token to {who, installation, readOnly, graphql}.
  #server;
  #mount;
  #contract;
  #nextId = 1000;

  // `enterprise`: REST below /api/v3 and GraphQL at /api/graphql, as GitHub Enterprise Server has them.
  constructor({ repository = 'acme/site', pullRequests = [7], contract = null, git = null, enterprise = false } = {}) {
    this.#mount = enterprise ? '/api/v3' : '';
    this.repository = repository;
    this.pullRequests = new Set(pullRequests);
    this.#contract = contract;
    this.reviews = new Reviews(this, contract);
    this.git = new GitData(this, contract, git);
    this.allow('token-actions', ACTIONS_BOT, { installation: true });
  }

  // Lets a token in. `installation`: GET /user answers 403, as it does for GITHUB_TOKEN.
  allow(token, who, options = {}) { this.viewers.set(token, { who, ...options }); }

  // The next `times` requests that fit are answered with {status, headers, body}, or the connection is
  // cut ("cut"), or there is no answer ("hang"), or it is late by `delay_ms`. `after: true` acts on the
  // request first.
  fail(fault) { this.faults.push({ method: '', path: '', times: 1, ...fault }); }

  comment(author, body, number = 7) {
    const now = new Date(1700000000000 + this.#nextId * 1000).toISOString().replace('.000', '');
    const comment = { id: this.#nextId++, number, author, body, created: now, updated: now };
    this.comments.push(comment);
    return comment;
  }

  // `tls`: {key, cert} in PEM, to serve https.
  async start(tls = null) {
    const receive = (request, response) => this.#receive(request, response);
    this.#server = tls ? https.createServer(tls, receive) : http.createServer(receive);
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `${tls ? 'https' : 'http'}://127.0.0.1:${this.#server.address().port}${this.#mount}`;
    return this;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #receive(request, response) {
    if (this.#mount) {
      const graphql = request.url === '/api/graphql';
      if (!graphql && !request.url.startsWith(`${this.#mount}/repos/`) && request.url !== `${this.#mount}/user`) {
        this.violations.push(`${request.url} is not of the API`);
      }
      request.url = graphql ? '/graphql' : request.url.slice(this.#mount.length);
    }
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => this.#handle(request, response, Buffer.concat(chunks).toString()));
  }

  #take(list, method, path) {
    const at = list.findIndex((entry) => (entry.method || method) === method &&
                              path.includes(entry.path ?? '') && entry.times !== 0);
    if (at < 0) return null;
    if (list[at].times > 0) list[at].times--;
    return list[at];
  }

  #handle(request, response, body) {
    const { method, url } = request;
    if (this.exposeState && url === '/_test/state') {
      const { comments, requests, violations } = this;
      return void response.end(JSON.stringify({ comments, requests, violations }));
    }
    this.requests.push(`${method} ${url}`);
    this.headers.push(JSON.stringify(request.headers));
    if (this.#contract && url !== '/graphql') {
      for (const problem of this.#contract.request(method, url, request.headers, body)) {
        this.violations.push(`request ${method} ${url}: ${problem}`);
      }
    }
    this.before?.(method, url);
    this.#take(this.hooks, method, url)?.run(this);
    const fault = this.#take(this.faults, method, url);
    const silent = fault?.cut || fault?.hang;
    let answer;
    if (fault?.after || !(silent || fault?.status)) answer = this.#answer(method, url, request.headers, body);
    if (fault?.cut) return request.socket.destroy();
    if (fault?.hang) return;
    if (fault?.status) {
      const { status, headers } = fault;
      answer = { status, headers, body: fault.body ?? failure(status, 'injected') };
    }
    setTimeout(() => this.#send(request, response, answer), fault?.delay_ms ?? 0).unref();
  }

  #send(request, response, { status, headers = {}, body }) {
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    if (this.#contract && typeof body !== 'string') {
      for (const problem of this.#contract.answer(request.method, request.url, status, text)) {
        this.violations.push(`answer ${request.method} ${request.url}: ${problem}`);
      }
    }
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
    response.end(text);
  }

  // A GitHub App: its JWT is verified with `key` (PEM); `permissions`: what its installation was given.
  app = null;  // {id, key, permissions, installed}
  granted = [];  // {token, permissions, repositories}
  revoked = [];

  #appRequest(method, pathname, token, body) {
    if (pathname === '/installation/token' && method === 'DELETE') {
      if (!this.viewers.delete(token)) return { status: 401, body: failure(401, 'Bad credentials') };
      this.revoked.push(token);
      return { status: 204 };
    }
    const asks = pathname === `/repos/${this.repository}/installation` || /^\/app\/installations\/7\/access_tokens$/.test(pathname);
    if (!this.app || !asks) return null;
    const [head, claims, signature] = (token ?? '').split('.');
    const said = claims ? JSON.parse(Buffer.from(claims, 'base64url')) : {};
    const now = Date.now() / 1000;
    const good = signature && crypto.createVerify('sha256').update(`${head}.${claims}`).verify(this.app.key, Buffer.from(signature, 'base64url')) &&
      String(said.iss) === this.app.id && said.iat < now && said.exp > now && said.exp - said.iat <= 660;
    if (!good) return { status: 401, body: failure(401, 'A JSON web token could not be decoded') };
    if (!this.app.installed) return { status: 404, body: failure(404, 'Not Found') };
    if (pathname.endsWith('/installation')) return { status: 200, body: { ...this.#contract.example('get', '/repos/{owner}/{repo}/installation', 200), id: 7 } };
    const wanted = JSON.parse(body);
    for (const permission of Object.keys(wanted.permissions)) {
      if (!this.app.permissions.includes(permission)) return { status: 422, body: validationFailure('The permissions requested are not granted to this installation.') };
    }
    const made = `ghs_${this.app.id}_head.payload-${this.granted.length}.signature_of-the-token`;
    this.granted.push({ token: made, ...wanted });
    this.allow(made, { id: 99, login: 'house[bot]', type: 'Bot' }, { installation: true });
    return { status: 201, body: { token: made, expires_at: '2099-01-01T00:00:00Z', permissions: wanted.permissions, repository_selection: 'selected' } };
  }

  #answer(method, url, headers, body) {
    const { pathname, searchParams } = new URL(url, this.url);
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    const ofApp = this.#appRequest(method, pathname, token, body);
    if (ofApp) return ofApp;
    const viewer = this.viewers.get(token);
    if (!viewer) return { status: 401, body: failure(401, 'Bad credentials') };
    if (pathname === '/graphql') return this.#graphql(viewer, body);
    if (pathname === '/user') {
      if (!viewer.installation) return { status: 200, body: fullUser(this.url, viewer.who) };
      return { status: 403, body: failure(403, 'Resource not accessible by integration') };
    }
    const repository = `/repos/${this.repository}`;
    if (!pathname.startsWith(`${repository}/`)) return { status: 404, body: failure(404, 'Not Found') };
    if (method !== 'GET' && viewer.readOnly) {
      return { status: 403, body: failure(403, 'Resource not accessible by integration') };
    }
    const rest = pathname.slice(repository.length);
    const list = /^\/issues\/(\d+)\/comments$/.exec(rest);
    if (list) return this.#list(method, Number(list[1]), searchParams, viewer, body);
    const one = /^\/issues\/comments\/(\d+)$/.exec(rest);
    if (one) return this.#one(method, Number(one[1]), body);
    const reaction = /^\/issues\/comments\/(\d+)\/reactions$/.exec(rest);
    if (reaction && method === 'POST') return this.#react(viewer.who, Number(reaction[1]), JSON.parse(body).content);
    const data = this.git.answer(method, rest, searchParams, body);
    if (data) return data;
    const review = this.reviews.answer(method, rest, searchParams, viewer, body);
    if (review) return review;
    return { status: 404, body: failure(404, 'Not Found') };
  }

  #graphql(viewer, body) {
    const query = JSON.parse(body);
    for (const problem of this.#contract?.graphql(query) ?? []) this.violations.push(`graphql: ${problem}`);
    if (viewer.graphql === false) return { status: 404, body: failure(404, 'Not Found') };
    if (query.variables) return { status: 200, body: this.reviews.graphql(viewer, query) };
    return { status: 200, body: { data: { viewer: { login: viewer.who.login } } } };
  }

  #render(comment) { return issueComment(this.url, this.repository, comment.number, comment); }

  // A refusal, or null. `text`: the request's body.
  #refusal(text) {
    const body = JSON.parse(text).body ?? '';
    if ([...body].length > CHARACTERS_MAX) {
      return { status: 422, body: validationFailure(`Body is too long (maximum is ${CHARACTERS_MAX} characters)`) };
    }
    return body.trim() === '' ? { status: 422, body: validationFailure("Body can't be blank") } : null;
  }

  #list(method, number, query, viewer, text) {
    if (!this.pullRequests.has(number)) return { status: 404, body: failure(404, 'Not Found') };
    if (method === 'POST') {
      const refusal = this.#refusal(text);
      if (refusal) return refusal;
      const comment = this.#render(this.comment(viewer.who, JSON.parse(text).body, number));
      return { status: 201, headers: { location: comment.url }, body: comment };
    }
    const perPage = Number(query.get('per_page') ?? 30);
    const page = Number(query.get('page') ?? 1);
    const all = this.comments.filter((c) => c.number === number).map((c) => this.#render(c));
    const last = Math.max(1, Math.ceil(all.length / perPage));
    const link = (to, rel) => `<${this.url}/repositories/1/issues/${number}/comments?per_page=${perPage}&page=${to}>; rel="${rel}"`;
    const headers = page < last ? { link: `${link(page + 1, 'next')}, ${link(last, 'last')}` } : {};
    return { status: 200, headers, body: all.slice((page - 1) * perPage, page * perPage) };
  }

  #react(who, comment, content) {
    if (!this.comments.some(({ id }) => id === comment)) return { status: 404, body: failure(404, 'Not Found') };
    const id = this.reactions.push({ comment, content });
    return { status: 201, body: { id, node_id: `R_${id}`, user: simpleUser(this.url, who), content, created_at: '2026-01-01T00:00:00Z' } };
  }

  #one(method, id, text) {
    const at = this.comments.findIndex((comment) => comment.id === id);
    if (at < 0) return { status: 404, body: failure(404, 'Not Found') };
    if (method === 'DELETE') {
      this.comments.splice(at, 1);
      return { status: 204 };
    }
    if (method === 'PATCH') {
      const refusal = this.#refusal(text);
      if (refusal) return refusal;
      this.comments[at].body = JSON.parse(text).body;
    }
    return { status: 200, body: this.#render(this.comments[at]) };
  }
}
