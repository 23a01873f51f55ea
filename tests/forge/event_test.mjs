// SPDX-License-Identifier: Apache-2.0
// GitHub's published examples of webhook payloads, as the event file of a run, and what they lack:
// forks, deleted forks, comments on pull requests and hostile names are derived by editing them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

let folder;
let examples;

before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'event_test.'));
  const file = path.join(process.env.MODULES, '@octokit/webhooks-examples/api.github.com/index.json');
  examples = new Map(JSON.parse(fs.readFileSync(file)).map((event) => [event.name, event.examples]));
});
after(() => fs.rmSync(folder, { recursive: true }));

const SHA = 'c'.repeat(40);

function read(name, payload, env = {}) {
  const file = path.join(folder, 'event.json');
  fs.writeFileSync(file, typeof payload === 'string' ? payload : JSON.stringify(payload));
  const variables = {
    GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: name, GITHUB_EVENT_PATH: file, GITHUB_SHA: SHA,
    GITHUB_REF: 'refs/heads/main', GITHUB_REPOSITORY: payload.repository?.full_name ?? 'acme/site',
    GITHUB_ACTOR: payload.sender?.login ?? 'octocat', ...env,
  };
  try {
    return JSON.parse(execFileSync(process.env.PROBE, ['event'], { env: variables }));
  } catch (error) {
    return JSON.parse(error.stdout);
  }
}

const pullRequest = () => structuredClone(examples.get('pull_request')[0]);

describe("GitHub's own examples", () => {
  it('every pull_request payload is read as its own repository\'s pull request', () => {
    assert.equal(examples.get('pull_request').length, 29);
    for (const payload of examples.get('pull_request')) {
      const pull = payload.pull_request;
      assert.deepEqual(read('pull_request', payload), {
        forge: 'github', name: 'pull_request', repository: payload.repository.full_name,
        number: pull.number, base_ref: pull.base.ref, base_sha: pull.base.sha,
        head_ref: pull.head.ref, head_sha: pull.head.sha,
        head_repository: pull.head.repo.full_name, head_origin: 'base', trusted_sha: '',
        trusted_ref: 'refs/agentic-ci/base', actor: payload.sender.login,
      });
    }
  });

  // Of a commit that is not GITHUB_SHA nobody says where it is from.
  const ORIGINS = {
    check_run: () => 'unknown', deployment: () => 'unknown',
    workflow_run: ({ workflow_run: run, repository }) =>
      run.head_repository.id !== repository.id ? 'fork' :
        ['push', 'pull_request'].includes(run.event) ? 'base' : 'unknown',
  };

  for (const name of ['issue_comment', 'push', 'workflow_dispatch', 'workflow_run', 'merge_group',
                      'pull_request_review', 'pull_request_review_comment', 'check_run', 'release',
                      'repository_dispatch', 'deployment']) {
    it(`every ${name} payload is read`, () => {
      assert.ok(examples.get(name).length > 0);
      for (const payload of examples.get(name)) {
        const event = read(name, payload);
        assert.equal(event.what, undefined);
        assert.equal(event.number, payload.pull_request?.number ?? 0);
        assert.equal(event.head_origin, ORIGINS[name]?.(payload) ?? 'base');
      }
    });
  }
});

describe('what the examples lack', () => {
  it('a fork is told by its id, under pull_request and pull_request_target', () => {
    const payload = pullRequest();
    payload.pull_request.head.repo.id += 1;
    for (const name of ['pull_request', 'pull_request_target']) {
      assert.equal(read(name, payload).head_origin, 'fork');
    }
    payload.pull_request.head.repo = null;
    const deleted = read('pull_request', payload);
    assert.equal(deleted.head_origin, 'unknown');
    assert.equal(deleted.head_repository, '');
  });

  it('a comment on a pull request names the number and no head', () => {
    const payload = structuredClone(examples.get('issue_comment')[0]);
    payload.issue.pull_request = { url: 'https://api.github.com/repos/a/b/pulls/1' };
    const event = read('issue_comment', payload);
    assert.equal(event.number, payload.issue.number);
    assert.equal(event.head_origin, 'unknown');
    assert.equal(event.trusted_sha, SHA);
    assert.equal(event.head_sha, '');
    assert.equal(event.base_sha, SHA);
  });

  it('titles and bodies may say anything', () => {
    const payload = pullRequest();
    payload.pull_request.title = '$(id) `id` ::error::x \u0000\u202e" \\ ${{ secrets.X }}';
    payload.pull_request.body = 'x'.repeat(1 << 20);
    assert.equal(read('pull_request', payload).number, payload.number);
  });

  it('a branch has any name that git takes', () => {
    for (const ref of ['$(id)', '`id`', 'a;b', 'a&&b', 'a|b', 'a>b', '<a>', "a'b", '"a"', '!a', '{a}', 'a%b', 'ü']) {
      const payload = pullRequest();
      payload.pull_request.head.ref = ref;
      assert.equal(read('pull_request', payload).head_ref, ref);
    }
  });

  it('a branch name that git does not take is refused, with a way out', () => {
    for (const ref of ['-x', 'a..b', 'a@{b', 'a.lock', 'a//b', 'a/', 'a.', 'a b', 'a\nb', 'a\\b', 'a~b']) {
      const payload = pullRequest();
      payload.pull_request.head.ref = ref;
      const event = read('pull_request', payload);
      assert.equal(event.code, 'refused', ref);
      assert.match(event.hint, /^git branch -m /);
    }
  });

  it('what is no payload is an error that names the file', () => {
    for (const payload of ['', '[]', '"x"', '{"pull_request":', '{}', 'null', '\u0000']) {
      const event = read('pull_request', payload);
      assert.equal(event.code, 'invalid', payload);
      assert.match(event.what, /event\.json/);
    }
    const huge = `{"a":"${'x'.repeat(26 * 1024 * 1024)}"}`;
    assert.equal(read('push', huge).code, 'invalid');
  });
});
