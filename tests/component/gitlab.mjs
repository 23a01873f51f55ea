// SPDX-License-Identifier: Apache-2.0
// usage: node gitlab.mjs HEAD_SHA FILES
// The GitLab service of the tests with the merge request 7 of acme/site, whose head is HEAD_SHA and whose files are FILES (JSON).
// Prints its address, and below it the one of a server whose answer is what was posted.
import http from 'node:http';
import { GitLabService } from '../services/gitlab/service.mjs';

const [head, files] = process.argv.slice(2);
const service = new GitLabService({ id: 1217, path: 'acme/site', iid: 7 });
service.refs = { ...service.refs, head_sha: head };
service.files = JSON.parse(files);
await service.start();
const state = http.createServer((_, response) => {
  const { discussions, requests, violations } = service;
  response.end(JSON.stringify({ discussions, requests, violations }));
});
state.listen(0, '127.0.0.1', () => console.log(`${service.server}\nhttp://127.0.0.1:${state.address().port}`));
