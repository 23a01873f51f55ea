// SPDX-License-Identifier: Apache-2.0
// The GitLab service of these tests, driven by a client that others wrote for the real one.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { GitLabContract } from '../services/gitlab/contract.mjs';
import { BOT, GitLabService, PERSON } from '../services/gitlab/service.mjs';
import { Site, begin, end } from './site.mjs';

const PROJECT = 'acme/web/site';
let Gitlab;
let service;
let api;

before(async () => {
  ({ Gitlab } = await import(path.join(process.env.MODULES, '@gitbeaker/rest/dist/index.mjs')));
  service = await new GitLabService({ contract: GitLabContract.load(process.env.GITLAB_CLIENT) }).start();
  service.files = [{ new_path: 'a.c', diff: '@@ -1,2 +1,3 @@\n one\n+two\n three\n' }];
  api = new Gitlab({ host: service.server, token: 'glpat-bot' });
});
after(() => service.stop());

const position = (more) => ({
  baseSha: service.refs.base_sha, startSha: service.refs.start_sha, headSha: service.refs.head_sha, positionType: 'text',
  oldPath: 'a.c', newPath: 'a.c', ...more,
});
const refused = (status, act) => assert.rejects(act, (error) => error.cause?.response?.status === status);

describe("GitLab's own client in Go, as a judge", () => {
  const contract = GitLabContract.load(process.env.GITLAB_CLIENT);
  const url = '/api/v4/projects/21/merge_requests/7';
  for (const [what, problem, judge] of [
    ['an operation', /no operation PATCH/, (judge) => judge.request('PATCH', url, {})],
    ['a member that it does not send', /body\.position\.line is unknown/,
     (judge) => judge.request('POST', `${url}/discussions`, { body: 'x', position: { line: 3 } })],
    ['a member of another type', /body\.position\.new_line is not of type integer/,
     (judge) => judge.request('POST', `${url}/discussions`, { body: 'x', position: { new_line: '3' } })],
    ['a member that is missing', /body is missing/, (judge) => judge.request('POST', `${url}/notes`, {})],
    ['a parameter', /parameter nonsense is unknown/, (judge) => judge.request('GET', `${url}/notes?nonsense=1`, {})],
    ['a value', /actions\[0\]\.action is 'append', not one of create/, (judge) => judge.request(
        'POST', '/api/v4/projects/21/repository/commits', { branch: 'b', commit_message: 'm', actions: [{ action: 'append' }] })],
    ['an answer', /answer\.author\.login is unknown/, (judge) => judge.answer('GET', url, { iid: 7, author: { login: 'jo' } })],
  ]) {
    it(`knows ${what} that GitLab does not have`, { skip: !contract }, () => assert.match(judge(contract).join(), problem));
  }
  it('knows what GitLab has', { skip: !contract }, () => {
    assert.deepEqual(contract.request('POST', `${url}/discussions`, { body: 'x', position: { new_line: 3 } }), []);
    assert.deepEqual(contract.answer('GET', url, { iid: 7, author: { username: 'jo' } }), []);
  });
});

describe("GitLab's other client gets from the service what it expects", () => {
  it('the user, the merge request and its diffs', async () => {
    assert.equal((await api.Users.showCurrentUser()).id, BOT.id);
    const request = await api.MergeRequests.show(PROJECT, 7);
    assert.deepEqual(request.diff_refs, service.refs);
    const [file] = await api.MergeRequests.allDiffs(21, 7);
    assert.equal(file.new_path, 'a.c');
    assert.equal(file.deleted_file, false);
  });

  it('notes, made, changed, listed over pages and removed', async () => {
    for (let i = 0; i < 45; ++i) service.note(PERSON, `note ${i}`);
    const note = await api.MergeRequestNotes.create(PROJECT, 7, 'ours');
    assert.equal(note.author.id, BOT.id);
    await api.MergeRequestNotes.edit(PROJECT, 7, note.id, { body: 'ours again' });
    const notes = await api.MergeRequestNotes.all(PROJECT, 7, { perPage: 20, sort: 'asc', orderBy: 'created_at' });
    assert.equal(notes.length, 46);
    assert.equal(notes.at(-1).body, 'ours again');
    await refused(403, () => api.MergeRequestNotes.remove(PROJECT, 7, notes[0].id));
    await api.MergeRequestNotes.remove(PROJECT, 7, note.id);
    await refused(404, () => api.MergeRequestNotes.show(PROJECT, 7, note.id));
  });

  it('a discussion beside a line, where the difference has it alone', async () => {
    const added = await api.MergeRequestDiscussions.create(PROJECT, 7, 'on the added line',
                                                           { position: position({ newLine: '2' }) });
    assert.equal(added.notes[0].position.new_line, 2);
    assert.equal(added.notes[0].type, 'DiffNote');
    await api.MergeRequestDiscussions.create(PROJECT, 7, 'on an old line', { position: position({ oldLine: '2', newLine: '3' }) });
    for (const wrong of [{ newLine: '3' }, { newLine: '9' }, { newLine: '2', oldLine: '2' }, { newLine: '2', newPath: 'b.c' },
                         { newLine: '2', headSha: 'f'.repeat(40) }]) {
      await refused(400, () => api.MergeRequestDiscussions.create(PROJECT, 7, 'x', { position: position(wrong) }));
    }
    const resolved = await api.MergeRequestDiscussions.resolve(PROJECT, 7, added.id, true);
    assert.equal(resolved.notes[0].resolved, true);
    assert.equal(resolved.notes[0].resolved_by.id, BOT.id);
    const threads = (await api.MergeRequestDiscussions.all(PROJECT, 7)).filter((d) => !d.individual_note);
    assert.deepEqual(threads.map((d) => d.notes[0].resolved), [true, false]);
  });

  it('the status of a commit', async () => {
    const sha = service.refs.head_sha;
    for (const state of ['failed', 'success']) {
      await api.Commits.editStatus(PROJECT, sha, state, { name: 'check', description: state });
    }
    const statuses = await api.Commits.allStatuses(PROJECT, sha, { name: 'check' });
    assert.deepEqual(statuses.map((s) => [s.name, s.status, s.description]), [['check', 'success', 'success']]);
    await refused(400, () => api.Commits.editStatus(PROJECT, sha, 'neutral'));
    const judged = service.violations.splice(0);
    if (service.contract) assert.match(judged.join(), /body\.state is 'neutral', not one of created, /);
  });

  it('quick actions where its older versions find them, also behind a fence that they do not see', async () => {
    const told = (text) => {
      service.checkActions(text);
      return service.violations.splice(0).map((violation) => violation.replace('quick action ', ''));
    };
    assert.deepEqual(told('/approve\r\n/close now'), ['/approve', '/close']);
    assert.deepEqual(told('```\n/approve\n```\n'), []);
    assert.deepEqual(told('````\n```\n/approve\n````\n'), ['/approve']);
    assert.deepEqual(told(' /approve\n//approve\n/* x */\n/usr/bin\n> /approve\n'), []);
  });

  it('branches, files, commits and merge requests of a git repository', async () => {
    begin('gitlab_service_test');
    const site = new Site();
    const git = await new GitLabService({ git: site.bare, contract: GitLabContract.load(process.env.GITLAB_CLIENT) }).start();
    const client = new Gitlab({ host: git.server, token: 'glpat-bot' });
    try {
      assert.equal((await client.Branches.show(PROJECT, 'fix')).commit.id, site.head);
      const tree = await client.Repositories.allRepositoryTrees(PROJECT, { ref: 'fix', path: 'src' });
      assert.deepEqual(tree.map((entry) => [entry.type, entry.path, entry.mode]), [['tree', 'src/deep', '040000']]);
      const file = await client.RepositoryFiles.show(PROJECT, 'src/deep/b.c', 'fix');
      assert.equal(Buffer.from(file.content, 'base64').toString(), 'b\n');
      assert.equal((await client.Repositories.showBlob(PROJECT, file.blob_id)).content, file.content);
      assert.equal((await client.Commits.all(PROJECT, { refName: 'fix' }))[0].parent_ids[0], file.last_commit_id);
      const change = (content) => [{ action: 'update', filePath: 'a.c', content, lastCommitId: site.head }];
      const made = await client.Commits.create(PROJECT, 'new', 'change', change('x\n'), { startSha: site.head });
      assert.deepEqual(made.parent_ids, [site.head]);
      assert.equal(git.git.git(['show', 'new:a.c']), 'x\n');
      await refused(400, () => client.Commits.create(PROJECT, 'new', 'again', change('y\n'), { startSha: site.head }));
      await refused(400, () => client.Commits.create(PROJECT, 'new', 'stale', change('y\n')));
      await refused(400, () => client.Commits.create(PROJECT, 'none', 'nowhere', change('y\n')));
      const diff = await client.Repositories.compare(PROJECT, site.head, made.id, { straight: true });
      assert.deepEqual(diff.diffs.map((one) => one.new_path), ['a.c']);
      const request = await client.MergeRequests.create(PROJECT, 'new', 'fix', 'Change');
      await refused(409, () => client.MergeRequests.create(PROJECT, 'new', 'fix', 'Change'));
      await client.MergeRequests.edit(PROJECT, request.iid, { addLabels: 'one,two', description: 'text' });
      const [listed] = await client.MergeRequests.all({ projectId: PROJECT, sourceBranch: 'new', targetBranch: 'fix', state: 'opened' });
      assert.deepEqual([listed.iid, listed.labels, listed.description], [request.iid, ['one', 'two'], 'text']);
      assert.deepEqual(git.violations, []);
    } finally {
      await git.stop();
      end();
    }
  });

  it('refusals: a token that is not known, that may only read, or that is a job\'s', async () => {
    service.allow('glpat-read', BOT, { scope: 'read_api' });
    service.allow('glcbt-job', PERSON, { job: true });
    const as = (options) => new Gitlab({ host: service.server, ...options });
    await refused(401, () => as({ token: 'glpat-stolen' }).Users.showCurrentUser());
    await refused(403, () => as({ token: 'glpat-read' }).MergeRequestNotes.create(PROJECT, 7, 'x'));
    const job = as({ jobToken: 'glcbt-job' });
    assert.ok((await job.MergeRequestNotes.all(PROJECT, 7)).length > 0);
    await refused(401, () => job.MergeRequestNotes.create(PROJECT, 7, 'x'));
    await refused(401, () => job.MergeRequestDiscussions.all(PROJECT, 7));
    await refused(404, () => api.MergeRequests.show('acme/other', 7));
    assert.deepEqual(service.violations, []);
  });
});
