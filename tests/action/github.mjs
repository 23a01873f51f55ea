// SPDX-License-Identifier: Apache-2.0
// usage: node github.mjs MODULES HEAD_SHA FILES HEAD_REPOSITORY BARE_REPOSITORY [ADDRESS]
// The GitHub service of the tests with one open pull request, number 7 from alice:fix, whose head is HEAD_SHA and whose
// files are FILES (JSON, or `git`: what BARE_REPOSITORY says, after each push too); where HEAD_REPOSITORY is not 1, from a fork. Listens on ADDRESS, which is 127.0.0.1 by default, and prints its URL. GET /_test/state gives what was posted and what broke the contract.
import http from 'node:http';
import { Contract } from '../services/github/contract.mjs';
import { difference, follow } from '../services/difference.mjs';
import { GitHubService } from '../services/github/service.mjs';

const [modules, headSha, files, headRepository, bare, address = '127.0.0.1'] = process.argv.slice(2);
const service = new GitHubService({ contract: Contract.load(modules), git: bare });
service.allow('token-read', { id: 1, login: 'reader', type: 'Bot' }, { installation: true, readOnly: true });
service.reviews.headSha = headSha;
if (files === 'git') follow(service.reviews, 'files', () => difference(bare, 'main', 'fix'));
else service.reviews.files = JSON.parse(files);
service.git.permissions.set('maintainer', 'write').set('visitor', 'read');
await service.start();

if (headRepository !== '1') {
  const answer = service.reviews.answer.bind(service.reviews);
  service.reviews.answer = (method, rest, ...more) => {
    const found = answer(method, rest, ...more);
    if (rest === '/pulls/7') found.body.head.repo = { ...found.body.head.repo, id: Number(headRepository) };
    return found;
  };
}

const dispatched = [];
const server = http.createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, service.url);
  if (pathname === '/_test/state') {
    const { comments, reactions, requests, violations } = service;
    const { threads } = service.reviews;
    const pulls = service.git.pulls.map((pull) => ({ ...pull, commit: service.git.tip(pull.head) }));
    return void response.end(JSON.stringify({ comments, reactions, requests, violations, threads, dispatched, pulls }));
  }
  if (request.method === 'POST' && pathname === '/repos/acme/site/actions/workflows/fix.yml/dispatches') {
    let body = '';
    request.on('data', (chunk) => { body += chunk; });
    return void request.on('end', () => {
      dispatched.push(JSON.parse(body));
      response.writeHead(204).end();
    });
  }
  // What the workflows themselves ask: which open pull request has this head.
  if (request.method === 'GET' && pathname === '/repos/acme/site/pulls' && searchParams.get('head') === 'alice:fix') {
    const found = searchParams.get('state') === 'open';
    return void response.end(JSON.stringify(found ? [{ number: 7, head: { sha: headSha } }] : []));
  }
  const onward = http.request(service.url + request.url, { method: request.method, headers: request.headers },
                              (answer) => {
                                response.writeHead(answer.statusCode, answer.headers);
                                answer.pipe(response);
                              });
  request.pipe(onward);
});
server.listen(0, address, () => console.log(`http://${address}:${server.address().port}`));
