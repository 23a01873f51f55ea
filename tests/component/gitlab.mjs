// SPDX-License-Identifier: Apache-2.0
// usage: node gitlab.mjs HEAD_SHA FILES OPTIONS
// The GitLab service of the tests with the merge request 7 of acme/site, whose head is HEAD_SHA and whose files are FILES (JSON; or `git`:
// what the project's repository says, after each push too).
// OPTIONS (JSON): `git`, the project's bare repository; `source`, the merge request's source project; `artifacts`, a directory that the
// job `check` of a pipeline of that project has kept.
// Prints its address, and below it the one of a server: what is sent there, a job's variables, is answered with its ID token,
// and a request without anything with what was posted.
import http from 'node:http';
import { difference, follow } from '../services/difference.mjs';
import { GitLabService } from '../services/gitlab/service.mjs';

const [head, files, options] = process.argv.slice(2);
const { artifacts, ...more } = JSON.parse(options);
const service = new GitLabService({ id: 1217, path: 'acme/site', iid: 7, ...more });
if (artifacts) {
  const project = more.source;
  // Besides an older one of another commit, a newer one without a report, and another job.
  service.pipelines = [{ id: 30, sha: 'f'.repeat(40) }, { id: 31, sha: head }].map((one) => ({ project_id: project, ref: 'fix', status: 'success', ...one }));
  service.jobs = [[40, 30, 'check', '/nowhere'], [41, 31, 'check', artifacts], [42, 31, 'other', '/nowhere'], [39, 31, 'check', null]]
    .map(([id, pipeline, name, kept]) => ({ id, pipeline, project, name, artifacts: kept }));
}
// The pipeline whose own jobs keep reports.
if (more.pipeline) service.jobs.push({ id: 43, pipeline: more.pipeline, project: 1217, name: 'agentic-ci', artifacts: null });
service.refs = { ...service.refs, head_sha: head };
if (files !== 'git') service.files = JSON.parse(files);
else follow(service, 'files', () => difference(more.git, 'main', 'fix').map(({ filename, patch }) => ({ new_path: filename, old_path: filename, diff: `${patch}\n` })));
await service.start();
const state = http.createServer(async (request, response) => {
  const sent = Buffer.concat(await request.toArray());
  const { discussions, requests, violations } = service;
  const proposals = service.git?.requests ?? [];
  response.end(sent.length ? service.idTokens.of(JSON.parse(sent)) : JSON.stringify({ discussions, requests, proposals, violations }));
});
state.listen(0, '127.0.0.1', () => console.log(`${service.server}\nhttp://127.0.0.1:${state.address().port}`));
