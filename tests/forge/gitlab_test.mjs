// SPDX-License-Identifier: Apache-2.0
// `agentic-ci post` to a merge request of GitLab's: the note, discussions on the lines, suggestions,
// the commit's status, and what becomes of them when GitLab refuses, fails, or is posted to twice.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { GitLabContract } from '../services/gitlab/contract.mjs';
import { BOT, GitLabService, PERSON } from '../services/gitlab/service.mjs';
import { begin, end, finding, folder, reportOf } from './site.mjs';

const TOKEN = 'glpat-bot';
const HEAD = 'b'.repeat(40);
const FILES = [
  { new_path: 'src/a.c', diff: '@@ -1,2 +1,4 @@\n one\n+two\n+three\n four\n@@ -30 +32,2 @@\n x\n+y\n' },
  { new_path: 'src/new.c', old_path: 'src/old.c', renamed_file: true, diff: '@@ -9,2 +9,2 @@\n same\n-was\n+is\n' },
  { new_path: 'logo.png' },
];
const PATCH = `diff --git a/src/a.c b/src/a.c
index ${'1'.repeat(40)}..${'2'.repeat(40)} 100644
--- a/src/a.c
+++ b/src/a.c
@@ -1,4 +1,4 @@
 one
-two
-three
+2
+3
 four
`;

before(() => begin('gitlab_test'));
after(end);

const onLine = (message, line, more = {}) =>
    finding(message, { path: 'src/a.c', line, end_line: line, ...more });

// A report directory with these findings of the agent's, and this patch.
const report = (findings, { patch = '', head = HEAD, change = () => {} } = {}) =>
  reportOf(patch, (record) => {
    record.findings = findings;
    record.event.head_sha = head;
    change(record);
  });

// The variables of the post job, in the project that has the merge request.
const job = (service, more = {}) => ({
  GITLAB_CI: 'true', CI: 'true', CI_API_V4_URL: service.url, CI_SERVER_URL: service.server, CI_COMMIT_SHA: HEAD,
  CI_PIPELINE_SOURCE: 'merge_request_event', CI_PROJECT_ID: '21', CI_PROJECT_PATH: 'acme/web/site',
  CI_PIPELINE_URL: `${service.server}/acme/web/site/-/pipelines/5`, CI_JOB_NAME: 'agent', CI_CONFIG_PATH: 'ci',
  CI_MERGE_REQUEST_IID: '7', CI_MERGE_REQUEST_PROJECT_ID: '21', CI_MERGE_REQUEST_PROJECT_PATH: 'acme/web/site',
  CI_MERGE_REQUEST_SOURCE_PROJECT_ID: '21', CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: 'fix',
  CI_MERGE_REQUEST_TARGET_BRANCH_NAME: 'main', GITLAB_USER_LOGIN: 'jo', ...more,
});

function agenticCi(args, env, started = () => {}) {
  return new Promise((resolve) => {
    started(execFile(process.env.BINARY, args, { env, cwd: folder }, (error, stdout, stderr) => {
      for (const secret of [env.GITLAB_TOKEN, env.CI_JOB_TOKEN]) {
        if (secret) assert.ok(!`${stdout}${stderr}`.includes(secret), 'a token is in the output');
      }
      resolve({ status: error ? error.code : 0, signal: error?.signal, stdout, stderr });
    }));
  });
}

const post = (service, directory, { what, args = [], env = {}, started } = {}) =>
    agenticCi(['post', directory, ...(what ? ['--what', what] : []), ...args],
              { ...job(service), GITLAB_TOKEN: TOKEN, ...env }, started);

async function open(options) {
  const service = await new GitLabService({ contract: GitLabContract.load(process.env.GITLAB_CLIENT), ...options }).start();
  service.files = structuredClone(FILES);
  return service;
}

// Runs `act` with a service of its own, which nobody may have sent what GitLab would act on.
function claim(name, act, options = {}) {
  it(name, async () => {
    const service = await open(options);
    try {
      await act(service);
      assert.deepEqual(service.violations, []);
    } finally {
      await service.stop();
    }
  });
}

const texts = (service) => service.threads.map((thread) => thread.notes[0].body);
const places = (service) => service.threads.map(({ notes: [{ position: p }] }) =>
  p && [p.position_type, p.old_path, p.new_path, p.old_line ?? null, p.new_line ?? null]);

describe('a report on a merge request', () => {
  claim('is one note, and discussions on the lines', async (service) => {
    const posted = await post(service, report([
      onLine('two lines are wrong', 2, { end_line: 3, suggestion: '2\n3\n', severity: 'error' }),
      onLine('a line that was there', 4),
      finding('a renamed file', { path: 'src/new.c', line: 10, end_line: 10 }),
      onLine('somewhere else in the file', 20),
      finding('about the whole'),
      finding('of another file', { path: 'src/b.c', line: 1 }),
    ]));
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /^created http:\/\/127\.0\.0\.1:\d+\/acme\/web\/site\/-\/merge_requests\/7#note_\d+$/m);
    assert.match(posted.stdout, /^review: 3 on lines, 1 on files, 2 in the comment only, 0 resolved$/m);
    assert.deepEqual(places(service), [
      ['text', 'src/a.c', 'src/a.c', null, 3],
      ['text', 'src/a.c', 'src/a.c', 2, 4],
      ['text', 'src/old.c', 'src/new.c', null, 10],
      ['file', 'src/a.c', 'src/a.c', null, null],
    ]);
    const [first] = texts(service);
    assert.match(first, /^<!-- agentic-ci:ci\/agent:[0-9a-f]{32} -->\n\*\*error\*\* Lines 2 to 3: two lines are wrong/);
    assert.match(first, /\n```suggestion:-1\+0\n2\n3\n```\n$/);
    assert.equal(service.comments.length, 1);
    assert.match(service.comments[0].body, /^<!-- agentic-ci:ci\/agent -->\n/);
    for (const text of ['about the whole', 'of another file']) assert.ok(service.comments[0].body.includes(text));
    for (const path of new Set(service.requests.map((r) => r.split(' ')[1].split('/')[4]))) {
      if (path) assert.equal(path, '21', 'the project is named by its number');
    }
  });

  claim('has the agent\'s own change as a suggestion on the lines it replaces', async (service) => {
    await post(service, report([], { patch: PATCH }));
    assert.deepEqual(places(service), [['text', 'src/a.c', 'src/a.c', null, 3]]);
    assert.match(texts(service)[0], /The agent suggests this change\.[^]*\n```suggestion:-1\+0\n2\n3\n```\n$/);
  });

  claim('is not repeated, follows what moved, and resolves what is gone', async (service) => {
    await post(service, report([onLine('stays', 2), onLine('goes', 3)]));
    assert.equal(service.threads.length, 2);
    service.writes.length = 0;
    let again = await post(service, report([onLine('stays', 2), onLine('goes', 3)]));
    assert.equal(again.status, 0, again.stderr);
    assert.deepEqual(service.writes.map((w) => w.method), ['PUT'], 'more than the note was written');
    again = await post(service, report([onLine('stays', 2)]));
    assert.match(again.stdout, /1 resolved/);
    assert.deepEqual(service.threads.map((t) => t.notes[0].resolved), [false, true]);
    // A push that leaves the line alone moves the discussion along.
    service.push('d'.repeat(40));
    await post(service, report([onLine('stays', 2)], { head: 'd'.repeat(40) }));
    assert.deepEqual(service.threads.map((t) => t.notes[0].resolved), [false, true]);
    // One that changes it leaves the discussion behind: it is resolved, and posted where the line is now.
    service.push('e'.repeat(40), { outdated: () => true });
    await post(service, report([onLine('stays', 3)], { head: 'e'.repeat(40) }));
    assert.deepEqual(service.threads.map((t) => [t.notes[0].resolved, t.notes[0].position.new_line]),
                     [[true, 2], [true, 3], [false, 3]]);
    // A person who resolves a discussion has the last word.
    Object.assign(service.threads[2].notes[0], { resolved: true, resolved_by: PERSON });
    await post(service, report([onLine('stays', 3)], { head: 'e'.repeat(40) }));
    assert.equal(service.threads.length, 3);
    // A report without findings ends what is left.
    Object.assign(service.threads[2].notes[0], { resolved: false, resolved_by: null });
    await post(service, report([]), { what: 'review' });  // The control: of what was the head once.
    assert.equal(service.threads[2].notes[0].resolved, false);
    await post(service, report([], { head: 'e'.repeat(40) }), { what: 'review' });
    assert.equal(service.threads[2].notes[0].resolved, true);
  });

  claim("leaves other people's discussions and notes alone, whatever they say", async (service) => {
    await post(service, report([onLine('ours', 2)]));
    for (const { notes: [note] } of service.discussions) note.author = PERSON;
    await post(service, report([onLine('ours', 2)]));
    assert.equal(service.threads.length, 2, 'a copied marker passed for ours');
    assert.equal(service.comments.length, 2, 'a copied marker passed for ours');
    await post(service, report([]));
    assert.deepEqual(service.threads.map((t) => t.notes[0].resolved), [false, true]);
  });

  claim('brings notes left double together on the oldest, on whichever page', async (service) => {
    for (let i = 0; i < 230; i++) service.note(PERSON, `note ${i}`);
    const oldest = service.note(BOT, '<!-- agentic-ci:ci/agent -->\na');
    service.note(BOT, '<!-- agentic-ci:ci/agent -->\nb');
    service.note(BOT, 'added 1 commit', { system: true });
    await post(service, report([]));
    assert.deepEqual(service.comments.filter((c) => c.author.id === BOT.id && !c.system).map((c) => c.id), [oldest.id]);
    assert.match(oldest.body, /^<!-- agentic-ci:ci\/agent -->\n<!-- agentic-ci-run: .*\n###/);
    assert.ok(!service.requests.some((r) => r.includes('/elsewhere')), 'a link led the token away');
  });

  claim('has the thirty worst on the lines, and every finding somewhere', async (service) => {
    const findings = [];
    for (let i = 0; i < 500; ++i) findings.push(onLine(`finding number ${i}.`, 2 + i % 2));
    findings[499].severity = 'error';
    const posted = await post(service, report(findings));
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /30 on lines, 0 on files, 50 in the comment only, 0 resolved, 420 not posted/);
    for (let i = 0; i < 500; ++i) assert.ok(posted.stdout.includes(`finding number ${i}. [`), `finding ${i} is lost`);
    assert.match(texts(service)[0], /finding number 499\./);
    // One a discussion; the merge request, its diffs, the user, discussions and notes twice.
    assert.ok(service.requests.length <= 40, `${service.requests.length} requests`);
  });

  claim('does not trust lines once the merge request has moved on', async (service) => {
    const posted = await post(service, report([onLine('where was it', 2)], { head: 'f'.repeat(40) }));
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(service.threads.length, 0);
    assert.match(service.comments[0].body, /The merge request has changed since this run[^]*where was it/);
  });

  claim('goes on the file, and then into the note, when GitLab does not have the line after all', async (service) => {
    service.before = (method) => {
      if (method === 'POST') service.files[0].diff = '@@ -90 +90 @@\n-x\n+y\n';
    };
    let posted = await post(service, report([onLine('one', 2), onLine('two', 3)]));
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /0 on lines, 2 on files/);
    assert.deepEqual(places(service).map((p) => p[0]), ['file', 'file']);
    service.discussions = [];
    service.fileComments = false;  // GitLab before 16.4.
    posted = await post(service, report([onLine('one', 2), onLine('two', 3)]));
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /0 on lines, 0 on files, 2 in the comment only/);
    assert.match(service.comments[0].body, /one[^]*two/);
  });

  claim('waits while GitLab has not made the difference of the last push', async (service) => {
    service.before = (method, url) => {
      if (url.endsWith('/merge_requests/7')) service.refs.head_sha = HEAD;
    };
    const posted = await post(service, report([onLine('one', 2)]));
    assert.equal(posted.status, 0, posted.stderr);
  });

  claim('shows in a dry run what would be sent, and sends none of it', async (service) => {
    const directory = report([onLine('one', 2)]);
    const options = { what: 'comment,review,status' };
    const planned = (await post(service, directory, { ...options, args: ['--dry-run'] })).stdout.trim().split('\n')
        .map((line) => JSON.parse(line));
    assert.deepEqual(service.writes, []);
    assert.deepEqual(planned.map((p) => p.url.slice(service.url.length)), [
      '/projects/21/merge_requests/7/notes', '/projects/21/merge_requests/7/discussions', `/projects/21/statuses/${HEAD}`]);
    await post(service, directory, options);
    assert.deepEqual(service.writes.map(({ method, path, body }) => ({ method, url: service.server + path, body })), planned);
  });
});

describe('the status of the head', () => {
  claim('says how the run ended, and is set once', async (service) => {
    for (let i = 0; i < 2; ++i) {
      const posted = await post(service, report([]), { what: 'status' });
      assert.equal(posted.status, 0, posted.stderr);
    }
    assert.deepEqual(service.writes.map((w) => w.method), ['POST']);
    assert.deepEqual(service.statuses.map(({ sha, status, name, ref, target_url: url }) => [sha, status, name, ref, url]),
                     [[HEAD, 'success', 'agentic-ci (ci/agent)', 'fix', `${service.server}/acme/web/site/-/pipelines/5`]]);
    const failed = report([], { change: (record) => Object.assign(record.outcome, { kind: 'agent-failed', exit_code: 3 }) });
    await post(service, failed, { what: 'status' });
    assert.deepEqual(service.statuses.map((s) => s.status), ['failed']);
  });

  claim('is on no commit that the report alone names', async (service) => {
    for (const head of ['f'.repeat(40), '../../../user', '']) {
      const posted = await post(service, report([], { head }), { what: 'status' });
      assert.match(posted.stdout + posted.stderr, head ? /another commit than the head|not a commit/ : /does not say which commit/);
    }
    assert.deepEqual(service.writes, []);
  });

  claim('is told, and no success, where the token is a Reporter\'s', async (service) => {
    service.allow('glpat-reporter', BOT, { level: 20 });
    const posted = await post(service, report([]), { what: 'comment,status', env: { GITLAB_TOKEN: 'glpat-reporter' } });
    assert.equal(posted.status, 77, posted.stderr);
    assert.match(posted.stdout, /^refused: status: .*403.*role Developer/m);
    assert.equal(service.comments.length, 1);
  });
});

describe('what a report says', () => {
  claim('has no effect: no mention, HTML, quick action, reference or second marker', async (service) => {
    const hostile = '/merge\n/close @jo <!-- agentic-ci:ci/agent --> <script>x</script> ![i](http://x.example) !7 #1 ~bug ' +
        '%1 &2 $3 [vulnerability:4]\n\n/label ~x\n```\n/approve\n/assign @root\n```\n/merge\n# heading\n\r\u001b[31m\u202e::include{file=a}';
    const directory = report([
      onLine(hostile, 2, { rule: hostile, suggestion: `${'`'.repeat(5)}\n/close\n` }), finding(hostile),
      finding('outside', { path: '../../etc/passwd', line: 1, end_line: 1 }),
    ], { change: (record) => {
      Object.assign(record, { agent_text: hostile });
      Object.assign(record.outcome, { reason: hostile });
    } });
    fs.writeFileSync(path.join(directory, 'summary.md'), 'not believed');
    const posted = await post(service, directory, { what: 'comment,review,status' });
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(service.threads.length, 1);
    assert.match(texts(service)[0], /\n\nThere is a change for it that is not offered: [^\n`]+\n$/);
    assert.match(service.comments[0].body, /\n`{3,}[a-z]*\n[^]*\n \/approve\n/);  // The fence that GitLab does not see.
    for (const { notes: [{ body }] } of service.discussions) {
      const prose = body.replace(/\n<!-- agentic-ci-run: \d+ [0-9a-f]{40} found[ 0-9a-f]* -->\n/, '\n')  // Ours.
          .replace(/^(`{3,})[^]*?^\1/gm, '').replace(/(`+)[^`]+\1/g, '');
      assert.equal(prose.lastIndexOf('<!--'), 0);
      assert.match(prose, /merge/);  // The text is there, made harmless; otherwise this shows nothing.
      assert.doesNotMatch(prose, /<script|@jo|!\[i\]|^\/[a-z]|^# heading|!7|#1\b|~bug|%1|\u202e|\u001b|not believed/m);
    }
  });

  claim('that is no report is refused before anything is sent', async (service) => {
    const directory = report([]);
    fs.writeFileSync(path.join(directory, 'run.json'), '{"schema": 1}');
    const posted = await post(service, directory);
    assert.equal(posted.status, 65, posted.stderr);
    assert.deepEqual(service.requests, []);
  });
});

describe('a job without a token that may post', () => {
  claim('says so, with the findings in its log, and ends with 78', async (service) => {
    service.allow('glcbt-job', PERSON, { job: true });
    const directory = report([
      onLine('kept\u001b[0Ksection_start:1:x\r', 2), finding('about the whole'),
    ]);
    const posted = await post(service, directory, { env: { GITLAB_TOKEN: '', CI_JOB_TOKEN: 'glcbt-job' } });
    assert.equal(posted.status, 78);
    assert.match(posted.stdout, /^src\/a\.c:2: warning: kept.* \[bug\]$/m);
    assert.match(posted.stdout, /^warning: about the whole \[bug\]$/m);
    assert.match(posted.stdout, /^warning: refused: .* \[egress-denied\]$/m);
    assert.doesNotMatch(posted.stdout, /[\u001b\r]|^::/m);
    assert.match(posted.stderr, /GITLAB_TOKEN is not set, and CI_JOB_TOKEN may not post: the findings are in this log and in gl-code-quality-report\.json/);
    assert.match(posted.stderr, /hint: GITLAB_TOKEN: a project access token/);
    assert.deepEqual(service.requests, []);
    // What is said of the file is so.
    const items = JSON.parse(fs.readFileSync(path.join(directory, 'gl-code-quality-report.json')));
    assert.ok(items.length > 0);
  });

  claim('whose token is the job\'s own is told by GitLab, and loses no finding', async (service) => {
    service.allow('glcbt-job', PERSON, { job: true });
    const posted = await post(service, report([onLine('kept', 2)]), { env: { GITLAB_TOKEN: 'glcbt-job' } });
    assert.equal(posted.status, 78, posted.stderr);
    assert.match(posted.stdout, /^src\/a\.c:2: warning: kept \[bug\]$/m);
    assert.deepEqual(service.discussions, []);
  });

  claim('whose token may only read ends with 77, and loses no finding', async (service) => {
    service.allow('glpat-read', BOT, { scope: 'read_api' });
    const posted = await post(service, report([onLine('kept', 2)]), { env: { GITLAB_TOKEN: 'glpat-read' } });
    assert.equal(posted.status, 77);
    assert.match(posted.stdout, /^src\/a\.c:2: warning: kept \[bug\]$/m);
    assert.match(posted.stdout, /^warning: refused: .* \[egress-denied\]$/m);
    assert.match(posted.stderr, /scope api/);
    assert.deepEqual(service.discussions, []);
  });

  claim('whose token GitLab does not know ends with 78', async (service) => {
    const posted = await post(service, report([]), { env: { GITLAB_TOKEN: 'glpat-stolen' } });
    assert.equal(posted.status, 78);
    assert.match(posted.stderr, /401 Unauthorized/);
  });
});

describe('where a report is posted', () => {
  claim("a fork's pipeline posts to the target project", async (service) => {
    const env = { CI_PROJECT_ID: '99', CI_PROJECT_PATH: 'eve/site', CI_MERGE_REQUEST_SOURCE_PROJECT_ID: '99' };
    const posted = await post(service, report([onLine('one', 2)]), { env, what: 'comment,review,status' });
    assert.equal(posted.status, 0, posted.stderr);
    assert.equal(service.threads.length, 1);
    assert.equal(service.statuses[0].status, 'success');
  }, { source: 99 });

  claim('outside of GitLab by the address of its API', async (service) => {
    const args = ['post', report([onLine('one', 2)]), '--repository', 'acme/web/site', '--number', '7', '--marker', 'm'];
    const posted = await agenticCi([...args, '--api-url', `${service.url}/`], { GITLAB_TOKEN: TOKEN });
    assert.equal(posted.status, 0, posted.stderr);
    assert.match(posted.stdout, /\/acme\/web\/site\/-\/merge_requests\/7#note_/);
    assert.ok(service.requests.some((r) => r.includes('/projects/acme%2Fweb%2Fsite/')));
    for (const [status, more] of [[66, ['--number', '8']], [66, ['--repository', 'acme/other']],
                                  [64, ['--repository', 'site']], [64, ['--what', 'check']], [64, ['--number', 'x']]]) {
      const wrong = [...args];
      if (wrong.includes(more[0])) wrong.splice(wrong.indexOf(more[0]), 2);
      const refused = await agenticCi([...wrong, ...more, '--api-url', service.url], { GITLAB_TOKEN: TOKEN });
      assert.equal(refused.status, status, `${more}: ${refused.stderr}`);
    }
  });

  claim("the event of another forge's job names nothing here", async (service) => {
    const event = path.join(folder, 'event.json');
    fs.writeFileSync(event, '{}');
    const env = { GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'push', GITHUB_EVENT_PATH: event, GITHUB_SHA: HEAD,
                  GITHUB_REPOSITORY: 'acme/web', GITHUB_REF: 'refs/heads/main', GITLAB_TOKEN: TOKEN };
    const posted = await agenticCi(['post', report([]), '--number', '7', '--api-url', service.url], env);
    assert.equal(posted.status, 78);
    assert.match(posted.stderr, /--repository GROUP\/NAME/);
  });

  claim('is not where GitLab redirects to, which may be another machine', async (service) => {
    const headers = { location: `${service.server}/elsewhere` };
    service.fail({ path: '/merge_requests/', status: 301, headers, times: -1 });
    const posted = await post(service, report([onLine('kept', 2)]));
    assert.equal(posted.status, 77, posted.stderr);
    assert.match(posted.stdout, /^src\/a\.c:2: warning: kept \[bug\]$/m);
    assert.ok(!service.requests.some((r) => r.includes('/elsewhere')));
  });

  claim('is told to try again by an answer that is none of GitLab\'s', async (service) => {
    for (const body of ['<html>', '{"id":', '{}', '[{"id":0}]', '']) {
      service.fail({ path: '/notes?', status: 200, body });
      const posted = await post(service, report([]), { what: 'comment' });
      assert.equal(posted.status, 75, `${body}: ${posted.stderr}`);
    }
    for (const body of ['[]', '{"sha":7}', 'null']) {
      service.fail({ path: '/merge_requests/7', status: 200, body });
      const posted = await post(service, report([onLine('kept', 2)]), { what: 'review' });
      assert.equal(posted.status, 75, `${body}: ${posted.stderr}`);
      assert.match(posted.stdout, /: kept \[bug\]$/m);
    }
    assert.deepEqual(service.discussions, []);
  });

  it('never in clear to another machine', async () => {
    const posted = await agenticCi(['post', report([]), '--repository', 'a/b', '--number', '7', '--api-url',
                                    'http://gitlab.example/api/v4'], { GITLAB_TOKEN: TOKEN });
    assert.equal(posted.status, 78);
    assert.match(posted.stderr, /only over https/);
  });
});

describe('nothing is lost or doubled', () => {
  const findings = [onLine('one', 2), onLine('two', 3), onLine('far', 20)];
  const options = { what: 'comment,review,status' };
  const IMPATIENT = ['--timeout', '6s'];  // A request that hangs fails after two of them.
  const whole = (service) => {
    const told = texts(service).map((text) => /(one|two|far)/.exec(text)[1]).sort();
    assert.deepEqual(told, ['far', 'one', 'two']);
    assert.deepEqual(service.threads.map((t) => t.notes[0].resolved), [false, false, false]);
    assert.equal(service.comments.length, 1);
    assert.deepEqual(service.statuses.map((s) => s.status), ['success']);
    assert.deepEqual(service.violations, []);
  };
  let requests;

  claim('when all goes well', async (service) => {
    await post(service, report(findings), options);
    whole(service);
    requests = service.requests.length;
  });

  for (const fault of [{ status: 403 }, { status: 404 }, { status: 409 }, { status: 422 },
                       { status: 429, headers: { 'retry-after': '0' } }, { status: 500 }, { status: 502, after: true },
                       { cut: true }, { cut: true, after: true }, { hang: true }, { hang: true, after: true }]) {
    it(`when any one request meets ${JSON.stringify(fault)}`, async () => {
      // Of refusals, which all take the same way, every other request.
      const hit = [...Array(requests).keys()].filter((n) => !(fault.status < 429) || n % 2 === fault.status % 2);
      await Promise.all(hit.map(async (n) => {
        const service = await open();
        let seen = 0;
        service.before = () => { if (seen++ === n) service.fail(fault); };
        try {
          await post(service, report(findings), fault.hang ? { ...options, args: IMPATIENT } : options);
          service.faults.length = 0;
          const again = await post(service, report(findings), options);
          assert.equal(again.status, 0, again.stderr);
          whole(service);
        } catch (error) {
          throw new Error(`request ${n} of ${requests}: ${error.message}\n${service.requests.join('\n')}`);
        } finally {
          await service.stop();
        }
      }));
    });
  }

  it('when it is killed before any one answer', async () => {
    for (let n = 0; n < requests; ++n) {
      const service = await open();
      let seen = 0;
      let child;
      service.before = () => { if (seen++ === n) child?.kill('SIGKILL'); };
      await post(service, report(findings), { ...options, started: (process) => { child = process; } });
      service.before = null;
      try {
        const again = await post(service, report(findings), options);
        assert.equal(again.status, 0, again.stderr);
        whole(service);
      } finally {
        await service.stop();
      }
    }
  });

  claim('when two post at once', async (service) => {
    const twice = await Promise.all([post(service, report(findings), options), post(service, report(findings), options)]);
    for (const one of twice) assert.equal(one.status, 0, one.stderr);
    await post(service, report(findings), options);  // What one left of the other, the next takes back.
    whole(service);
  });

  claim('when GitLab asks to wait', async (service) => {
    service.noteCreationLimit = 2;
    const started = Date.now();
    const posted = await post(service, report(findings), options);
    assert.equal(posted.status, 0, posted.stderr);
    assert.ok(Date.now() - started >= 1000, 'it did not wait');
    whole(service);
  });

  claim('when GitLab asks to wait for longer than the post lasts', async (service) => {
    service.fail({ method: 'POST', status: 429, headers: { 'retry-after': '3600' }, times: -1 });
    const posted = await post(service, report(findings), options);
    assert.equal(posted.status, 75);
    assert.match(posted.stdout, /^src\/a\.c:2: warning: one \[bug\]$/m);
    assert.match(posted.stderr, /rate limited/);
  });
});
