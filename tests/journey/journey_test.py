#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From an empty repository to a second reviewed push: what a maintainer types, with what `config init` writes and nothing edited, the real
Claude Code, and a scripted model in place of the provider. The steps are counted; every job is green.

usage: journey_test.py BUILD_DIR BINARY github|gitlab|gitea [TEST...]
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

TESTS = pathlib.Path(__file__).resolve().parents[1]
BUILD, BINARY, FORGE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
GITEA_START = TESTS.parents[1] / 'shared/testbed/gitea/start.sh'
STEPS_MAX = 8
DEFECT, MENDED = 'echo "hello $nam"\n', 'echo "hello $name"\n'
FINDING = {'findings': [{'rule': 'unset-variable', 'severity': 'error', 'message': 'nam is never set.', 'path': 'greet.sh', 'line': 3}]}
REVIEWS = [  # What the model says of the first push, and of the second.
    {'turns': [{'text': 'I look.', 'action': {'run': {'command': f"printf '%s' '{json.dumps(FINDING)}' >agentic-ci-findings.json"}}},
               {'text': 'One variable is never set.'}]},
    {'turns': [{'text': 'Nothing is left.'}]}]
SINCE = '1 fixed, 0 new since'


def installed(script, *words):
    """The last line of what an installing script prints; where it cannot, the whole test is skipped."""
    done = subprocess.run([TESTS / script, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.split('\n')[0]


def load(folder, name, *arguments):
    """The module of another suite, which reads its arguments when it is imported."""
    kept, sys.argv = sys.argv, [name, *arguments]
    sys.path.insert(0, str(TESTS / folder))
    try:
        return __import__(name)
    finally:
        sys.argv = kept


sys.path.insert(0, str(TESTS / 'services/model'))
from model import Model  # noqa: E402  pylint: disable=wrong-import-position

CLAUDE = installed('agents/install', f'{BUILD}/agents', 'claude-code')
if FORGE == 'gitlab':
    if not shutil.which('rsync'):
        print('# SKIP rsync: no rsync here; the way on GitLab is not tried')
        sys.exit(4)
    NODE = installed('agents/install', f'{BUILD}/agents', 'node') + '/node'
    component_test = load('component', 'component_test', NODE, installed('component/install', f'{BUILD}/gitlab-ci-local'), BINARY)
else:
    if FORGE == 'gitea' and not GITEA_START.exists():
        print(f'# SKIP gitea: {GITEA_START} is not there')
        sys.exit(4)
    act_test = load('action', 'act_test', installed('action/install', f'{BUILD}/actions', 'act'), BINARY,
                    installed('services/github/install', f'{BUILD}/github-service'))
if FORGE == 'gitea':
    gitea_test = load('gitea', 'gitea_test')


class Journey(unittest.TestCase):
    def begin(self, way):
        """Borrows the other suite's machine: its folders, its release, its forge."""
        self.way = way
        way.setUp()
        self.addCleanup(way.doCleanups)
        # Below the other suite's folder, since root's agent in tier landlock is another user, who may not be able to enter this checkout.
        (way.root / 'bin/claude').unlink()
        try:
            os.link(f'{CLAUDE}/claude', way.root / 'bin/claude')
        except OSError:
            shutil.copy2(f'{CLAUDE}/claude', way.root / 'bin/claude')
        self.site = way.site = way.root / 'site'
        self.site.mkdir()
        self.steps = []

    def types(self, *command):
        """A step that the maintainer types in the repository."""
        self.steps.append(' '.join(str(word) for word in command))
        environment = {**self.way.environment, 'ANTHROPIC_API_KEY': 'sk-test-0123456789'}
        done = subprocess.run([BINARY if word == 'agentic-ci' else word for word in command], cwd=self.site, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, f'{command}: {done.stdout}{done.stderr}')
        return done.stdout

    def does(self, step):
        """A step that the maintainer does elsewhere, such as on the forge's pages."""
        self.steps.append(step)

    def save(self, line):
        (self.site / 'greet.sh').write_text(f'#!/bin/sh\nname=$1\n{line}')

    @contextlib.contextmanager
    def model(self, review):
        with Model(self.way.root / 'model', REVIEWS[review], key='sk-test-0123456789') as model:
            yield f'ANTHROPIC_BASE_URL=http://host.openshell.internal:{model.port}'
            self.assertTrue(any(request['path'] == '/v1/messages' for request in model.requests()), 'the model was not asked')

    def set_up(self, release, write=lambda: None):
        """The project, and its configuration on main."""
        self.save('echo hello\n')
        self.way.git('init', '-q', cwd=self.site)
        self.way.git('add', '-A', cwd=self.site)
        self.way.git('commit', '-qm', 'the project', cwd=self.site)
        self.remote()
        self.types('agentic-ci', 'config', 'init', '--release', release)
        write()
        self.assertIn('ok', self.types('agentic-ci', 'config', 'check'))
        self.types('sh', '-ec', "git add -A && git commit -qm 'Review pull requests' && git push -q origin main")

    def propose(self):
        self.way.git('checkout', '-q', '-b', 'fix', cwd=self.site)
        self.save(DEFECT)
        self.types('sh', '-ec', "git commit -qam 'Greet by name' && git push -q origin fix")

    def mend(self):
        self.save(MENDED)
        self.types('sh', '-ec', "git commit -qam 'Set the name' && git push -q origin fix")

    def end(self, comments):
        """One comment, which says what has become of the first push's finding."""
        self.assertEqual(len(comments), 1, comments)
        self.assertIn(SINCE, comments[0])
        self.assertLessEqual(len(self.steps), STEPS_MAX, self.steps)
        print(f'{FORGE}: {len(self.steps)} steps')

    # Each forge's own part.

    def remote(self):
        {'github': self.remote_of_act, 'gitlab': self.remote_of_gitlab, 'gitea': self.remote_of_gitea}[FORGE]()

    def remote_of_act(self):
        bare = self.way.root / 'remotes/acme/site'
        self.way.git('clone', '-q', '--bare', str(self.site), str(bare), cwd=self.site)
        self.way.git('remote', 'add', 'origin', 'https://github.com/acme/site', cwd=self.site)

    def remote_of_gitlab(self):
        bare = self.way.root / 'remotes/acme/site.git'
        bare.parent.mkdir(parents=True, exist_ok=True)
        self.way.git('clone', '-q', '--bare', '.', str(bare), cwd=self.site)
        (bare.parent / 'site').symlink_to('site.git')
        self.way.git('remote', 'add', 'origin', f'git@{component_test.HOST}:acme/site.git', cwd=self.site)
        self.way.git('remote', 'set-url', '--push', 'origin', f'file://{bare}', cwd=self.site)

    def remote_of_gitea(self):
        self.gitea.api('POST', '/user/repos', {'name': 'site', 'default_branch': 'main'})
        remote = f'{self.gitea.url}/ci/site'
        self.way.git('remote', 'add', 'origin', remote, cwd=self.site)
        self.way.git('config', f'url.{self.gitea.url.replace("://", f"://ci:{self.gitea.token}@")}/.insteadOf', f'{self.gitea.url}/', cwd=self.site)
        self.way.git('push', '-q', 'origin', 'main', cwd=self.site)

    def job(self, workflow, event, **more):
        """The forge starts the job of an event, which has to be green."""
        self.assertEqual(self.way.act(workflow, 'pull_request', event, **more), 0, self.way.output)
        self.assertEqual(self.way.outputs()['conclusion'], 'success', self.way.output)
        shutil.rmtree(self.way.artifact())

    def heads(self, bare=None):
        """GitHub's own references of a pull request, after a push; returns its head."""
        head = self.way.git('rev-parse', 'fix', cwd=self.site)
        for name in ('head', 'merge') if bare else ():
            self.way.git('update-ref', f'refs/pull/7/{name}', head, cwd=bare)
        return head

    def test_github(self):
        self.begin(act_test.Act())
        bare = self.way.root / 'remotes/acme/site'
        self.set_up(f'acme/agentic-ci@{act_test.COMMIT}')
        self.as_published()
        self.does('store the secret ANTHROPIC_API_KEY')
        self.way.base = self.way.git('rev-parse', 'main', cwd=self.site)
        self.propose()
        self.way.head = self.heads(bare)
        self.way.serve('git')
        self.does('open the pull request and give it the label agent')
        labels = [{'name': 'agent'}]
        for review, action in enumerate(('labeled', 'synchronize')):
            event = self.way.pull_request(action=action, **({'label': labels[0]} if review == 0 else {}))
            event['pull_request']['labels'] = labels
            with self.model(review) as address:
                self.job('agentic-ci.yml', event, variables=[address])
            state = self.way.state()
            if review == 0:
                self.assertEqual([thread['path'] for thread in state['threads']], ['greet.sh'])
                self.mend()
                self.way.head = self.heads(bare)
        self.assertEqual([thread['resolved'] for thread in state['threads']], [True])
        self.end([comment['body'] for comment in state['comments']])

    def as_published(self):
        """act finds the release where the workflow says it is."""
        published = self.way.root / 'actions/agentic-ci'
        self.way.local = [f'acme/agentic-ci@{act_test.COMMIT}={published}']

    def test_gitea(self):
        base = tempfile.mkdtemp(prefix='gitea-journey-')
        self.addCleanup(shutil.rmtree, base, ignore_errors=True)
        os.chmod(base, 0o755)
        self.gitea = gitea_test.GITEA = gitea_test.Gitea(str(GITEA_START), base + '/gitea')
        self.addCleanup(self.gitea.stop)
        self.begin(act_test.Act())
        self.way.workflows = '.gitea/workflows'
        # On its own host Gitea is known by its folder, as after the first workflow in it.
        (self.site / '.gitea').mkdir()
        self.set_up(f'acme/agentic-ci@{act_test.COMMIT}')
        self.as_published()
        self.does('store the secret ANTHROPIC_API_KEY')
        self.propose()
        self.does('open the pull request and give it the label agent')
        project = '/repos/ci/site'
        self.gitea.api('POST', f'{project}/hooks', {'type': 'gitea', 'active': True, 'events': ['pull_request', 'pull_request_label', 'pull_request_sync'],
                                                  'config': {'url': 'http://127.0.0.1:9/', 'content_type': 'json'}})
        self.eventually(lambda: self.gitea.api('POST', f'{project}/pulls', {'title': 'Greet by name', 'head': 'fix', 'base': 'main'}))
        label = self.gitea.api('POST', f'{project}/labels', {'name': 'agent', 'color': '#112233'})['id']
        self.gitea.api('POST', f'{project}/issues/1/labels', {'labels': [label]})
        for review, action in enumerate(('label_updated', 'synchronized')):
            event = self.sent(base, action)
            with self.model(review) as address:
                self.job_of_gitea(event, address)
            if review == 0:
                self.mend()
        self.end([comment['body'] for comment in self.gitea.api('GET', f'{project}/issues/1/comments')])

    def sent(self, base, action):
        """The event that Gitea makes for a webhook, of which its Actions make the same for a job."""
        def read():
            with contextlib.closing(sqlite3.connect(f'file:{base}/gitea/work/gitea.db?mode=ro', uri=True, timeout=60)) as database:
                events = [json.loads(text) for text, in database.execute('select payload_content from hook_task order by id')]
            return [one for one in events if one['action'] == action][-1]
        return self.eventually(read)

    def job_of_gitea(self, event, address):
        # act knows no actions by URL.
        workflow = self.site / '.gitea/workflows/agentic-ci.yml'
        written = workflow.read_text()
        workflow.write_text(written.replace('https://github.com/', ''))
        self.way.url = self.gitea.url + '/api/v1'
        sha = event['pull_request']['head']['sha']
        settings = [address, 'GITEA_ACTIONS=true', 'GITHUB_REPOSITORY=ci/site', f'GITHUB_SERVER_URL={self.gitea.url}', f'GITHUB_SHA={sha}',
                    'GIT_CONFIG_COUNT=1', f'GIT_CONFIG_KEY_0=url.{self.gitea.url.replace("://", f"://ci:{self.gitea.token}@")}/.insteadOf',
                    f'GIT_CONFIG_VALUE_0={self.gitea.url}/']
        try:
            self.job('agentic-ci.yml', event, ref='refs/pull/1/head', token=self.gitea.token, variables=settings)
        finally:
            workflow.write_text(written)

    def eventually(self, act):
        """Gitea takes a moment to see what was pushed."""
        for attempt in range(300):
            try:
                return act()
            except (urllib.error.HTTPError, IndexError):
                if attempt == 299:
                    raise
                time.sleep(0.1)

    def test_gitlab(self):
        self.begin(component_test.Component())
        bare = self.way.root / 'remotes/acme/site.git'
        self.set_up(f'platform/agentic-ci@{self.way.component}', write=self.fill_in)
        self.does('store the variables ANTHROPIC_API_KEY and GITLAB_TOKEN')
        self.propose()
        self.does('open the merge request')
        self.way.head = self.heads()
        self.way.serve_gitlab(files='git', git=str(bare))
        for review in range(2):
            with self.model(review) as address:
                name, value = address.split('=', 1)
                status = self.way.pipeline(ANTHROPIC_API_KEY='sk-test-0123456789', GITLAB_TOKEN='glpat-bot', **{name: value})
                self.assertEqual(status, 0, self.way.output)
                self.assertEqual(self.way.record()['outcome']['kind'], 'success')
            if review == 0:
                self.assertEqual([note['position']['new_path'] for note in self.way.notes() if note.get('position')], ['greet.sh'])
                self.mend()
        self.end([note['body'] for note in self.way.notes() if not note.get('position')])

    def fill_in(self):
        """The one word that is left: the image that the pipeline's jobs run in."""
        self.does('put an image in place of IMAGE')
        pipeline = self.site / '.gitlab-ci.yml'
        pipeline.write_text(re.sub(r'\bIMAGE\b', 'agents.example.com/agents:1', pipeline.read_text()))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *(sys.argv[4:] or [f'Journey.test_{FORGE}'])], verbosity=2)
