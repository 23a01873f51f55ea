#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples' workflows, run by act on this host: action.yml and post/action.yml for real, against the GitHub service of the
tests. Stand-ins are only what lies outside: the actions of GitHub's own, sudo, npm, and the agent's program.

usage: act_test.py ACT BINARY NODE_MODULES [TEST...]
"""
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/credentials'))
from identity_service import ASK, Services, fill  # noqa: E402
from upstream import Upstream  # noqa: E402
sys.path.insert(0, str(ROOT / 'tests/attest'))
from sigstore_service import ISSUER, Instance  # noqa: E402

from stand_ins import CHECKOUT, DOWNLOAD, SHA, UPLOAD, write  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ACT, BINARY, MODULES = (os.path.abspath(argument) for argument in sys.argv[1:4])
del sys.argv[1:4]
COMMIT = '0123456789abcdef0123456789abcdef01234567'
VERSION = re.search(r'kVersion = "([^"]+)"', (ROOT / 'runner/base/version.h').read_text())[1]
ASSET = f'agentic-ci-{VERSION}-linux-{os.uname().machine}'
KEY = 'sk-test-0123456789'

# Stands for the agent: it prints what it sees of the job, finds a defect, and fixes it.
AGENT = r'''#!/bin/sh
[ "$1" = --version ] && exec echo '0.0.0 (stand-in)'
env >environment.seen 2>&1 && cat .git/config >>environment.seen
printf '{"findings":[{"rule":"typo","severity":"warning","message":"A typo.","path":"notes.txt","line":2,"suggestion":"right"}]}' \
  >agentic-ci-findings.json
sed -i 's/wrong/right/' notes.txt
echo '{"type":"result","subtype":"success","is_error":false,"result":"Fixed a typo.","num_turns":1,"session_id":"s","total_cost_usd":0.5,"usage":{"input_tokens":3,"output_tokens":4}}'
'''


@contextlib.contextmanager
def refusing_proxy():
    """A proxy that connects to nothing: its address, and the places that it is asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self):
            asked.append(self.path)
            self.send_error(403)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_port}', asked
        server.shutdown()


@contextlib.contextmanager
def cache_service(answer):
    """GitHub's cache service with that answer, or none at all: its address, and what it is asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(f'{self.command} {self.path}')
            self.send_response(answer[0])
            self.send_header('Content-Length', str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])

        do_POST = do_PATCH = do_PUT = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        if answer is not None:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_port}', asked
        if answer is not None:
            server.shutdown()


class Act(unittest.TestCase):
    workflows = '.github/workflows'
    local = []  # Further repositories of actions: NAME@COMMIT=DIRECTORY.

    def setUp(self):
        # Not below /tmp: a sandbox has its own, and the programs on the PATH are shown in it. In tier landlock, root's agent is
        # another user, who may not be able to enter this checkout.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='act-test-', dir='/srv' if os.geteuid() == 0 else ROOT / 'build'))
        self.addCleanup(shutil.rmtree, self.root)
        self.root.chmod(0o755)
        (self.root / 'home').mkdir()
        (self.root / 'tmp').mkdir()
        remote = f'url.file://{self.root}/remotes/.insteadOf=https://github.com/'
        key, value = remote.split('=', 1)
        self.environment = {'PATH': f'{self.root}/bin:{os.environ["PATH"]}', 'HOME': f'{self.root}/home',
                            'XDG_CACHE_HOME': f'{self.root}/cache', 'TMPDIR': f'{self.root}/tmp',
                            'GIT_CONFIG_NOSYSTEM': '1'}
        write(self.root / 'home/.gitconfig', f'[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n'
              f'[{key.split(".")[0]} "{key.split(".", 1)[1].rsplit(".", 1)[0]}"]\ninsteadOf = {value}\n'
              '[uploadpack]\nallowAnySHA1InWant = true\n')
        for name, text in (('checkout', CHECKOUT), ('upload-artifact', UPLOAD), ('download-artifact', DOWNLOAD)):
            write(self.root / 'actions' / name / 'action.yml', text)
        for name in ('sudo', 'npm'):
            write(self.root / 'bin' / name, '#!/bin/sh\nexit 0\n', 0o755)
        write(self.root / 'bin/claude', AGENT, 0o755)
        self.publish()

    def publish(self):
        """The action as its commit would have it, and its binary in the runner's tool cache."""
        action = self.root / 'actions/agentic-ci'
        for name in ('action', 'post', 'verify-run'):
            shutil.copytree(ROOT / name, action / name)
        shutil.copy(ROOT / 'action.yml', action)
        data = pathlib.Path(BINARY).read_bytes()
        (action / 'action/checksums.txt').write_text(f'{hashlib.sha256(data).hexdigest()}  {ASSET}\n')
        self.cached = self.root / 'cache/act/tool_cache/agentic-ci' / VERSION / ASSET
        self.cached.parent.mkdir(parents=True)
        self.cached.write_bytes(data)

    def git(self, *arguments, cwd=None):
        return subprocess.run(['git', *arguments], cwd=cwd or self.site, env=self.environment, check=True,
                              capture_output=True, text=True).stdout.strip()

    def consumer(self, example, files=(), head_repository=1):
        """A repository made of the example, with the pull request 7 that changes notes.txt; starts its GitHub."""
        self.site = self.root / 'site'
        shutil.copytree(ROOT / 'examples' / example, self.site)
        for name, text in dict(files).items():
            write(self.site / name, text)
        for workflow in self.site.rglob('*.yml'):
            workflow.write_text(workflow.read_text().replace('@COMMIT', '@' + COMMIT))
        (self.site / 'notes.txt').write_text('first\n')
        self.git('init', '-q')
        self.git('add', '-A')
        self.git('commit', '-qm', 'base')
        self.base = self.git('rev-parse', 'HEAD')
        self.git('checkout', '-qb', 'fix')
        (self.site / 'notes.txt').write_text('first\nwrong \n')
        self.git('commit', '-qam', 'change')
        self.head = self.git('rev-parse', 'HEAD')
        for name in ('merge', 'head'):
            self.git('update-ref', f'refs/pull/7/{name}', self.head)
        self.git('clone', '-q', '--mirror', str(self.site), f'{self.root}/remotes/acme/site')
        self.git('checkout', '-q', 'main')
        self.git('remote', 'add', 'origin', 'https://github.com/acme/site')
        patch = '@@ -1 +1,2 @@\n first\n+wrong '
        self.serve(json.dumps([{'filename': 'notes.txt', 'patch': patch}]), head_repository)

    def serve(self, files, head_repository=1):
        service = subprocess.Popen(['node', HERE / 'github.mjs', MODULES, self.head, files, str(head_repository),
                                    self.root / 'remotes/acme/site'],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(service.stdout.close)
        self.addCleanup(service.wait)
        self.addCleanup(service.terminate)
        self.url = service.stdout.readline().strip()

    def pull_request(self, **more):
        repository = {'id': 1, 'full_name': 'acme/site', 'default_branch': 'main'}
        return {'repository': repository,
                'pull_request': {'number': 7, 'draft': False, 'base': {'ref': 'main', 'sha': self.base, 'repo': repository},
                                 'head': {'ref': 'fix', 'sha': self.head, 'repo': repository}}, **more}

    def act(self, workflow, name, event, ref='refs/pull/7/merge', token='token-actions', variables=(),
            actor='maintainer', secrets=()):
        (self.root / 'event.json').write_text(json.dumps(event))
        command = [ACT, name, '-a', actor, '-W', f'{self.workflows}/{workflow}', '-e', self.root / 'event.json',
                   '-P', 'ubuntu-24.04=-self-hosted', '-P', 'ubuntu-latest=-self-hosted', '-P', 'self-hosted=-self-hosted', '--no-skip-checkout', '--action-offline-mode', '--no-cache-server',
                   '-s', f'GITHUB_TOKEN={token}', '-s', f'ANTHROPIC_API_KEY={KEY}',
                   '--local-repository', f'OWNER/agentic-ci@{COMMIT}={self.root}/actions/agentic-ci']
        for secret in secrets:
            command += ['-s', secret]
        for repository in self.local:
            command += ['--local-repository', repository]
        for action, sha in set(SHA.findall((self.site / self.workflows / workflow).read_text())):
            command += ['--local-repository', f'{action}@{sha}={self.root}/actions/{action.split("/")[1]}']
        for variable in (f'GITHUB_API_URL={self.url}', 'GITHUB_REPOSITORY=acme/site', f'GITHUB_REF={ref}',
                         f'TEST_ARTIFACTS={self.root}/artifacts', 'GITHUB_REPOSITORY_ID=1', *variables):
            command += ['--env', variable]
        run = subprocess.run(command, cwd=self.site, env=self.environment, capture_output=True, text=True, timeout=600)
        self.output = re.sub(r'\x1b\[[0-9;]*m', '', run.stdout + run.stderr)
        return run.returncode

    def state(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + '/_test/state', timeout=120) as answer:
            state = json.load(answer)
        self.assertEqual(state['violations'], [])
        return state

    def outputs(self):
        """The outputs of all steps, of the lines in which act shows them."""
        return dict(re.findall(r'::set-output:: ([a-z-]+)=(.*)', self.output))

    def artifact(self, name='agentic-ci-report'):
        return self.root / 'artifacts' / name

    def assert_reviewed(self):
        state = self.state()
        self.assertEqual(len(state['comments']), 1, self.output)
        bodies = [comment['body'] for thread in state['threads'] for comment in thread['comments']]
        self.assertTrue(any('```suggestion\nright' in body for body in bodies), bodies)
        return state

    def test_a_pull_request_is_reviewed_and_a_second_run_repeats_nothing(self):
        self.consumer('github-review')
        for _ in range(2):
            shutil.rmtree(self.artifact(), ignore_errors=True)
            self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request()), 0, self.output)
            self.assert_reviewed()
        record = json.loads((self.artifact() / 'run.json').read_text())
        self.assertEqual(record['outcome']['kind'], 'success')
        self.assertEqual(record['policy']['commit'], self.base)
        seen = (self.artifact() / 'changes.patch').read_text()
        self.assertIn('environment.seen', seen)
        for secret in (KEY, 'token-actions'):
            self.assertNotIn(secret, seen)
        self.assertNotIn(KEY, self.output)

    def test_a_review_without_a_key_exchanges_the_jobs_identity(self):
        services = Services()
        at = f'https://host.openshell.internal:{Upstream(str(self.root)).listen(services.answer)}'
        example = ROOT / 'examples/github-keyless'
        workflow = (example / '.github/workflows/review.yml').read_text()
        self.assertIn('id-token: write', workflow)
        self.assertNotIn('secrets.', workflow)
        self.consumer('github-keyless', {
            '.agentic-ci/config.yml': fill((example / '.agentic-ci/config.yml').read_text(), at),
            '.github/workflows/review.yml': workflow.replace('provider: anthropic ', f'ca-file: {self.root}/ca.pem\n          provider: anthropic ')})
        write(self.root / 'bin/claude', AGENT.replace('sed -i', ASK + 'sed -i'), 0o755)
        address = f'ANTHROPIC_BASE_URL={at}'
        # The variables of a job without `id-token: write`.
        self.assertNotEqual(self.act('review.yml', 'pull_request', self.pull_request(), variables=[address]), 0, self.output)
        self.assertEqual((self.outputs()['exit-code'], services.exchanges, services.api), ('78', [], []))
        self.assertIn('id-token: write', self.state()['comments'][0]['body'])
        shutil.rmtree(self.artifact())
        job = (address, f'ACTIONS_ID_TOKEN_REQUEST_URL={at}/gh/token?api-version=2.0', 'ACTIONS_ID_TOKEN_REQUEST_TOKEN=request-t0ken-5ecret')
        self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request(), variables=job), 0, self.output)
        self.assert_reviewed()
        seen = (self.artifact() / 'changes.patch').read_text()
        self.assertIn('+the model: 200', seen, self.output)
        self.assertEqual((services.exchanges, [path for path, _ in services.api]), (['anthropic'], ['/v1/messages']))
        self.assertNotIn('ACTIONS_ID_TOKEN', seen)
        [identity] = json.loads((self.artifact() / 'run.json').read_text())['identities']
        self.assertEqual((identity['provider'], identity['subject']), ('anthropic', 'repo:acme/site:pull_request'))
        for text in [self.output] + [path.read_text(errors='replace') for path in self.artifact().rglob('*') if path.is_file()]:
            self.assertNotIn('5ecret', text)

    def test_the_outputs_are_those_that_action_yml_lists(self):
        self.consumer('github-review')
        self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request()), 0, self.output)
        text = (ROOT / 'action.yml').read_text()
        listed = re.findall(r'(?m)^  ([a-z-]+):$', text[text.index('\noutputs:'):text.index('\nruns:')])
        outputs = self.outputs()
        self.assertEqual(set(listed) - set(outputs), set())
        expected = {'conclusion': 'success', 'exit-code': '0', 'findings-count': '1', 'blocked-count': '0', 'tokens': '7',
                    'cost-usd': '0.500000', 'version': VERSION, 'patch-path': 'agentic-ci-report/changes.patch'}
        self.assertEqual({name: outputs[name] for name in expected}, expected)

    def test_whatever_the_cache_service_answers_the_controls_are_the_same(self):
        self.consumer('github-review')

        def controls(*variables):
            shutil.rmtree(self.artifact(), ignore_errors=True)
            self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request(), variables=variables), 0, self.output)
            self.assertEqual(self.outputs()['enforced'], 'true', self.output)
            record = json.loads((self.artifact() / 'run.json').read_text())
            return record['policy'], record['isolation']['controls'], record['limits']

        def kinds(found):
            policy, held, limits = found
            return policy, [(control['name'], control['state']) for control in held], [(limit['name'], limit['limit']) for limit in limits]

        usual = kinds(controls())
        for answer in ((403, b'{"message":"read-only"}'), (200, b''), (200, b'<html>sign in</html>'), None):
            with cache_service(answer) as (url, asked):
                found = controls(f'ACTIONS_CACHE_URL={url}/', f'ACTIONS_RESULTS_URL={url}/', 'ACTIONS_RUNTIME_TOKEN=token-runtime', 'ACTIONS_CACHE_SERVICE_V2=true')
                self.assertEqual(kinds(found), usual, answer)
                self.assertEqual(asked, [])

    def test_a_draft_and_a_fork_are_not_reviewed(self):
        self.consumer('github-review')
        draft, fork = self.pull_request(), self.pull_request()
        draft['pull_request']['draft'] = True
        fork['pull_request']['head']['repo'] = {'id': 2, 'full_name': 'alice/site'}
        for event in (draft, fork):
            self.assertEqual(self.act('review.yml', 'pull_request', event), 0, self.output)
            self.assertFalse(self.artifact().exists())
        self.assertEqual(self.state()['requests'], [])

    def test_a_run_that_a_reader_of_the_repository_started_gets_no_secret(self):
        self.consumer('github-review')
        self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request(), actor='visitor'), 1, self.output)
        self.assertEqual(self.outputs()['conclusion'], 'untrusted')
        self.assertIn('visitor may not write to acme/site', self.outputs()['reason'])
        self.assertEqual(self.state()['comments'], [])

    def test_a_cached_binary_that_was_changed_is_not_run(self):
        self.consumer('github-review')
        self.cached.write_text('#!/bin/sh\necho "changed and run" >>"$GITHUB_STEP_SUMMARY"\n')
        with refusing_proxy() as (proxy, asked):  # Of what it was asked, since act loses last lines of a step that fails.
            variables = [f'HTTPS_PROXY={proxy}', f'https_proxy={proxy}']
            self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request(), variables=variables), 1)
        self.assertEqual(set(asked), {'github.com:443'}, self.output)
        self.assertNotIn('changed and run', self.output)
        self.assertEqual(self.outputs()['conclusion'], 'setup-failed')
        self.assertEqual(self.state()['requests'], [])

    def test_a_run_that_is_killed_is_reported_as_lost(self):
        self.consumer('github-review')
        self.cached.write_text('#!/bin/sh\nkill -KILL $$\n')
        checksums = self.root / 'actions/agentic-ci/action/checksums.txt'
        checksums.write_text(f'{hashlib.sha256(self.cached.read_bytes()).hexdigest()}  {ASSET}\n')
        self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request()), 1)
        self.assertEqual(self.outputs()['conclusion'], 'lost')
        self.assertEqual(self.state()['requests'], [])

    def comment(self, body='/agent fix', author='maintainer', **issue):
        return {'issue': {'number': 7, 'pull_request': {'url': 'x'}, **issue},
                'comment': {'id': 1, 'body': body, 'author_association': 'MEMBER', 'user': {'login': author}}}

    def on_own_branch(self, workflow, name, event):
        repository = {'id': 1, 'full_name': 'acme/site', 'default_branch': 'main'}
        return self.act(workflow, name, {'repository': repository, **event}, ref='refs/heads/main',
                        variables=[f'GITHUB_SHA={self.base}'])

    def test_a_comment_of_one_who_may_write_starts_a_fix_and_others_do_not(self):
        self.consumer('github-fix')
        for event in (self.comment(body='/agent fix\nrm -rf /'), self.comment(body='please /agent fix'),
                      self.comment(pull_request=None)):
            self.assertEqual(self.on_own_branch('command.yml', 'issue_comment', event), 0, self.output)
            self.assertEqual(self.state()['requests'], [])
        for author in ('visitor', 'stranger'):  # The first may read, the second is unknown.
            event = self.comment(author=author)
            self.assertEqual(self.on_own_branch('command.yml', 'issue_comment', event), 1, self.output)
            self.assertEqual(self.state()['requests'][-1], f'GET /repos/acme/site/collaborators/{author}/permission')
            self.assertEqual(self.state()['dispatched'], [])
        self.assertEqual(self.on_own_branch('command.yml', 'issue_comment', self.comment()), 0, self.output)
        dispatched = {'ref': 'main', 'inputs': {'number': '7', 'sha': self.head}}
        self.assertEqual(self.state()['dispatched'], [dispatched])
        self.assertEqual(self.state()['requests'][-1], 'POST /repos/acme/site/issues/comments/1/reactions')
        event = {'inputs': dispatched['inputs']}
        self.assertEqual(self.on_own_branch('fix.yml', 'workflow_dispatch', event), 0, self.output)
        self.assertEqual(len(self.state()['comments']), 1)
        remote = self.root / 'remotes/acme/site'
        self.assertEqual(self.git('rev-parse', 'fix~1', cwd=remote), self.head)
        self.assertEqual(self.git('show', 'fix:notes.txt', cwd=remote), 'first\nright')
        self.assertEqual(json.loads((self.artifact() / 'run.json').read_text())['policy']['commit'], self.base)

    def test_only_what_was_proven_is_merged(self):
        example = ROOT / 'examples/github-proven'
        instance = Instance(self.root / 'instance')
        instance.identity = 'https://github.com/acme/site/.github/workflows/fix.yml@refs/heads/main'
        instance.fulcio = {'12': 'https://github.com/acme/site', '21': 'https://github.com/acme/site/actions/runs/1/attempts/1'}
        rules = (example / '.agentic-ci/merge.yml').read_text()
        self.assertIn('issuer: https://token.actions.githubusercontent.com\n', rules)
        rules = rules.replace('OWNER/REPOSITORY', 'acme/site').replace('https://token.actions.githubusercontent.com', ISSUER)
        rules = rules.replace('max_cost: 5\n', '')  # No gateway counts what the stand-in says that it cost.
        workflow = (example / '.github/workflows/fix.yml').read_text()
        self.assertIn('          attest: true\n', workflow)
        with instance:
            services = f'signing-config: {instance.signing_config(2)}\n          trusted-root: {instance.trusted_root}'
            self.consumer('github-proven', {
                '.agentic-ci/merge.yml': rules + 'trusted_root: .agentic-ci/trusted_root.json\n',
                '.agentic-ci/trusted_root.json': instance.trusted_root.read_text(),
                '.github/workflows/fix.yml': workflow.replace('attest: true\n', f'attest: true\n          {services}\n')})
            job = (f'ACTIONS_ID_TOKEN_REQUEST_URL={instance.url}/token', 'ACTIONS_ID_TOKEN_REQUEST_TOKEN=request-t0ken-5ecret')
            event = {'inputs': {'number': '7', 'sha': self.head}}
            self.assertEqual(self.act('fix.yml', 'workflow_dispatch', event, ref='refs/heads/main', variables=job), 0, self.output)
        for path in self.artifact().rglob('*'):
            self.assertNotIn('5ecret', path.read_text(errors='replace') if path.is_file() else '')
        # GitHub's client, which fetches the artifacts of a run.
        write(self.root / 'bin/gh', '#!/bin/sh\n[ "$1 $2 $3" = "run download 1" ] && mkdir -p "$7" && cp -r "$TEST_ARTIFACTS/." "$7"\n', 0o755)
        remote = self.root / 'remotes/acme/site'

        def proven(status, word):
            self.git('update-ref', 'refs/pull/7/head', 'fix', cwd=remote)
            event = self.pull_request()
            event['pull_request']['head']['sha'] = self.git('rev-parse', 'fix', cwd=remote)
            self.assertEqual(self.act('proven.yml', 'pull_request_target', event, ref='refs/heads/main',
                                      variables=[f'GITHUB_SHA={self.base}']), status, self.output)
            self.assertIn(word, self.output)

        proven(0, f'proven, signed by {instance.identity}')
        self.git('clone', '-q', '-b', 'fix', str(remote), str(self.root / 'hand'), cwd=self.root)
        (self.root / 'hand/notes.txt').write_text('first\nby hand\n')
        self.git('commit', '-q', '-a', '--amend', '--no-edit', cwd=self.root / 'hand')
        self.git('push', '-q', '-f', 'origin', 'fix', cwd=self.root / 'hand')
        proven(1, 'unmet: commit')

    def test_a_fix_is_not_started_on_the_branch_of_a_fork(self):
        self.consumer('github-fix', head_repository=2)
        self.assertEqual(self.on_own_branch('command.yml', 'issue_comment', self.comment()), 1)
        self.assertEqual(self.state()['requests'], ['GET /repos/acme/site/collaborators/maintainer/permission',
                                                    'GET /repos/acme/site/pulls/7'])
        self.assertEqual(self.state()['dispatched'], [])

    def test_the_report_about_a_fork_is_posted_by_another_job(self):
        self.consumer('github-forks')
        event = self.pull_request()
        event['pull_request']['head']['repo'] = {'id': 2, 'full_name': 'alice/site'}
        self.assertEqual(self.act('check.yml', 'pull_request', event, token='token-read'), 0, self.output)
        self.assertEqual(self.state()['requests'], [])
        self.assertIn('+wrong\n', (self.artifact() / 'changes.patch').read_text())
        run = {'id': 1, 'event': 'pull_request', 'head_branch': 'fix', 'head_sha': self.head, 'pull_requests': [],
               'repository': {'id': 1, 'full_name': 'acme/site'},
               'head_repository': {'id': 2, 'full_name': 'alice/site', 'owner': {'login': 'alice'}}}
        event = {'repository': {'id': 1, 'full_name': 'acme/site', 'default_branch': 'main'}, 'workflow_run': run}
        for change, status, comments in (({'head_sha': 'c' * 40}, 1, 0), ({'event': 'push'}, 0, 0), ({}, 0, 1)):
            asked = {**event, 'workflow_run': {**run, **change}}
            self.assertEqual(self.act('post.yml', 'workflow_run', asked, ref='refs/heads/main'), status, self.output)
            self.assertEqual(len(self.state()['comments']), comments)

    def test_a_fork_has_a_model_after_a_maintainers_label_and_another_job_posts(self):
        self.consumer('github-forks')
        event = self.pull_request(label={'name': 'agent'}, action='labeled')
        event['pull_request']['head']['repo'] = {'id': 2, 'full_name': 'alice/site'}
        target = {'ref': 'refs/heads/main', 'variables': [f'GITHUB_SHA={self.base}']}
        self.assertEqual(self.act('review.yml', 'pull_request_target', event, actor='visitor', **target), 1, self.output)
        self.assertIn('the account visitor may not write to acme/site', self.output)
        self.assertEqual(self.state()['comments'], [])
        shutil.rmtree(self.artifact())
        self.assertEqual(self.act('review.yml', 'pull_request_target', event, **target), 0, self.output)
        record = json.loads((self.artifact() / 'run.json').read_text())
        self.assertEqual((record['outcome']['kind'], record['trust']['level'], record['event']['head_sha']), ('success', 'model', self.head))
        self.assertEqual(record['policy']['commit'], self.base)
        seen = (self.artifact() / 'changes.patch').read_text()
        self.assertIn('ANTHROPIC_API_KEY=openshell:resolve:env:ANTHROPIC_API_KEY', seen)
        self.assertNotIn(KEY, seen + self.output)
        [comment] = self.state()['comments']
        self.assertIn('A typo.', comment['body'])
        # The job that ran the agent does not post, whatever token it has.
        opened = self.root / 'event.json'
        posted = subprocess.run([BINARY, 'post', self.artifact()], capture_output=True, text=True, env={
            **self.environment, 'GITHUB_ACTIONS': 'true', 'GITHUB_EVENT_NAME': 'pull_request_target', 'GITHUB_EVENT_PATH': str(opened),
            'GITHUB_REPOSITORY': 'acme/site', 'GITHUB_SHA': self.base, 'GITHUB_REF': 'refs/heads/main', 'GITHUB_ACTOR': 'maintainer',
            'GITHUB_API_URL': self.url, 'GITHUB_TOKEN': 'token-actions'}, check=False)
        self.assertEqual(posted.returncode, 77, posted.stdout + posted.stderr)
        self.assertIn('a job of its own must post its report', posted.stderr)

    def test_a_scheduled_run_opens_one_pull_request(self):
        self.consumer('github-scheduled', {'notes.txt': 'wrong\n'})
        for _ in range(2):
            shutil.rmtree(self.artifact(), ignore_errors=True)
            self.assertEqual(self.on_own_branch('maintenance.yml', 'schedule', {'schedule': '17 4 * * 1'}), 0, self.output)
            self.assertEqual(json.loads((self.artifact() / 'run.json').read_text())['outcome']['kind'], 'success')
            [pull] = self.state()['pulls']
            self.assertEqual((pull['base'], pull['title']), ('main', 'Weekly maintenance'))
            self.assertEqual(self.git('merge-base', pull['commit'], 'main', cwd=self.root / 'remotes/acme/site'), self.base)
        self.assertEqual(self.state()['comments'], [])

    def test_each_model_of_a_matrix_has_a_comment_of_its_own(self):
        self.consumer('github-matrix')
        event = self.pull_request(label={'name': 'agents'})
        self.assertEqual(self.act('agents.yml', 'pull_request', event), 0, self.output)
        bodies = sorted(comment['body'].split('\n')[0] for comment in self.state()['comments'])
        self.assertEqual(bodies, ['<!-- agentic-ci:agents/haiku -->', '<!-- agentic-ci:agents/sonnet -->'])

    def test_the_example_of_a_fleet_asks_its_gateway_with_the_certificate(self):
        """OpenShell's command line has a stand-in, whose gateway is down; tests/openshell has the real one."""
        self.consumer('github-fleet')
        write(self.root / 'bin/openshell', f'''#!/bin/sh
[ "$1" = --version ] && exec echo openshell 0.0.112
echo "$@" >>{self.root}/asked
cat "$XDG_CONFIG_HOME"/openshell/gateways/*/metadata.json "$XDG_CONFIG_HOME"/openshell/gateways/*/mtls/* >>{self.root}/given
echo 'Error: tcp connect error' >&2
exit 1
''', 0o755)
        secrets = ('OPENSHELL_CA=the ca', 'OPENSHELL_CERTIFICATE=the certificate', 'OPENSHELL_KEY=the key')
        self.assertEqual(self.act('review.yml', 'pull_request', self.pull_request(), secrets=secrets), 1, self.output)
        self.assertEqual(self.outputs()['conclusion'], 'setup-failed', self.output)
        self.assertIn('tcp connect error', self.outputs()['reason'])
        self.assertEqual(json.loads((self.artifact() / 'run.json').read_text())['outcome']['exit_code'], 75)
        given = (self.root / 'given').read_text()
        for text in ('https://openshell.example.com:443', 'the ca', 'the certificate', 'the key'):
            self.assertIn(text, given)
        self.assertIn('status -o json', (self.root / 'asked').read_text())
        self.assertNotIn(KEY, given + (self.root / 'asked').read_text())

    def test_a_newcomer_gets_a_review_with_what_config_init_writes(self):
        """The README's four steps, but for the release, which is pinned by hand here."""
        self.consumer(self.fresh())
        event = self.pull_request(label={'name': 'agent'}, action='labeled')
        event['pull_request']['labels'] = [{'name': 'agent'}]
        self.assertEqual(self.act('agentic-ci.yml', 'pull_request', event), 0, self.output)
        self.assert_reviewed()
        self.assertTrue((self.artifact() / 'report.html').exists())  # What the comment links to.
        comment = self.state()['comments'][0]['body']
        self.assertIn('#artifacts', comment)
        # A push to a pull request that has the label is looked at; another label, or a push without it, starts nothing.
        shutil.rmtree(self.artifact())
        event = self.pull_request(action='synchronize')
        event['pull_request']['labels'] = [{'name': 'agent'}]
        self.assertEqual(self.act('agentic-ci.yml', 'pull_request', event), 0, self.output)
        self.assertTrue(self.artifact().exists())
        shutil.rmtree(self.artifact())
        bug = self.pull_request(label={'name': 'bug'}, action='labeled')
        bug['pull_request']['labels'] = [{'name': 'agent'}, {'name': 'bug'}]
        without = self.pull_request(action='synchronize')
        without['pull_request']['labels'] = []
        for event in (bug, without):
            self.assertEqual(self.act('agentic-ci.yml', 'pull_request', event), 0, self.output)
            self.assertFalse(self.artifact().exists())

    def fresh(self, *options):
        """What `config init` writes into an empty repository."""
        fresh = self.root / 'fresh'
        fresh.mkdir()
        self.git('init', '-q', cwd=fresh)
        self.git('remote', 'add', 'origin', 'https://github.com/acme/site', cwd=fresh)
        subprocess.run([BINARY, 'config', 'init', *options], cwd=fresh, env=self.environment, check=True, capture_output=True)
        shutil.rmtree(fresh / '.git')
        return fresh

    def test_each_push_is_reviewed_with_what_config_init_writes_for_it(self):
        self.consumer(self.fresh('--on', 'push', '--release', f'OWNER/agentic-ci@{COMMIT}'))
        event = self.pull_request(action='synchronize')
        self.assertEqual(self.act('agentic-ci.yml', 'pull_request', event), 0, self.output)
        self.assert_reviewed()

    def test_a_command_is_seen_carried_out_on_the_head_and_answered(self):
        self.consumer(self.fresh('--on', 'command'))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for after in (2, 4):  # The first result stands below its command; the second is an older comment, so it is answered.
            request = urllib.request.Request(f'{self.url}/repos/acme/site/issues/7/comments', data=b'{"body":"/review please"}',
                                             headers={'Authorization': 'Bearer token-actions', 'Accept': 'application/vnd.github+json',
                                                      'Content-Type': 'application/json', 'User-Agent': 'x', 'X-GitHub-Api-Version': '2022-11-28'})
            with opener.open(request, timeout=60) as answer:
                number = json.load(answer)['id']
            event = self.comment(body='/review please')
            event.update(action='created')
            event['comment']['id'] = number
            self.assertEqual(self.on_own_branch('agentic-ci.yml', 'issue_comment', event), 0, self.output)
            state = self.state()
            self.assertEqual(state['reactions'][-1], {'comment': number, 'content': 'eyes'}, self.output)
            self.assertEqual(len(state['comments']), after, state['comments'])
            record = json.loads((self.artifact() / 'run.json').read_text())
            self.assertEqual((record['outcome']['kind'], record['policy']['commit']), ('success', self.base))
            self.assertIn('-wrong \n+right \n', (self.artifact() / 'changes.patch').read_text())
            shutil.rmtree(self.artifact())
        self.assertRegex(state['comments'][-1]['body'], r'^@maintainer: done\. \[The result\]\(https?://.*#issuecomment-\d+\)')
        self.assertTrue(state['threads'])

    def test_a_label_on_gitea_and_forgejo_starts_what_config_init_writes(self):
        for forge, variable in (('gitea', 'GITEA_ACTIONS=true'), ('forgejo', 'FORGEJO_ACTIONS=true')):
            self.consumer(self.fresh('--forge', forge))
            self.workflows = f'.{forge}/workflows'
            workflow = self.site / self.workflows / 'agentic-ci.yml'
            # act knows no actions by URL, and the service of the tests is GitHub's: tests/gitea posts to a real one.
            workflow.write_text(workflow.read_text().replace('https://github.com/', '').replace(', post: true', ''))
            event = {**self.pull_request(action='label_updated'), 'number': 7, 'sender': {'login': 'maintainer'}}
            for labels, runs in ((['bug'], False), (['bug', 'agent'], True)):
                event['pull_request']['labels'] = [{'name': name} for name in labels]
                self.assertEqual(self.act('agentic-ci.yml', 'pull_request', event, variables=[variable]), 0, self.output)
                self.assertEqual(self.artifact().exists(), runs, self.output)
            record = json.loads((self.artifact() / 'run.json').read_text())
            self.assertEqual((record['outcome']['kind'], record['agent']['task']), ('success', 'review'))
            for path in (self.artifact(), self.site, self.root / 'fresh', self.root / 'remotes/acme/site'):
                shutil.rmtree(path)

    def test_the_readmes_workflow_runs_for_its_label_alone(self):
        blocks = re.findall(r'```yaml\n# (\.github/workflows/agent\.yml)\n(.*?)```', (ROOT / 'README.md').read_text(), re.DOTALL)
        self.assertEqual(len(blocks), 1)
        self.consumer('github-review', {blocks[0][0]: blocks[0][1]})
        self.assertEqual(self.act('agent.yml', 'pull_request', self.pull_request(label={'name': 'bug'})), 0, self.output)
        self.assertEqual(self.state()['requests'], [])
        self.assertEqual(self.act('agent.yml', 'pull_request', self.pull_request(label={'name': 'agent'})), 0, self.output)
        self.assert_reviewed()


if __name__ == '__main__':
    unittest.main(verbosity=2)
