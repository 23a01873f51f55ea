#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The action runs a binary only when its hash is the one pinned in its own commit, and passes inputs
on without making program text of them."""
import base64
import functools
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import workflow_rules
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCH = os.uname().machine
VERSION = '9.8.7'
ASSET = f'agentic-ci-{VERSION}-linux-{ARCH}'
BINARY = b'#!/bin/sh\necho "ran $*"\n'


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A download host. Below /to/HOST:PORT/ it sends to the same file there."""

    def do_GET(self):
        leads = re.match(r'/to/([^/]+)(/.*)', self.path)
        if not leads:
            return super().do_GET()
        self.send_response(302)
        self.send_header('Location', f'http://{leads[1]}{leads[2]}')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *args):
        pass


class Action(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for name in ('temp', 'cache', 'release', 'work'):
            (self.root / name).mkdir()
        shutil.copytree(ROOT / 'action', self.root / 'action')
        self.pin(hashlib.sha256(BINARY).hexdigest())
        self.publish(BINARY)
        handler = functools.partial(Quiet, directory=self.root / 'release')
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def pin(self, digest, asset=ASSET):
        (self.root / 'action/checksums.txt').write_text(f'# a comment\n{digest}  {asset}\n')

    def publish(self, data):
        folder = self.root / 'release' / f'v{VERSION}'
        folder.mkdir(exist_ok=True)
        (folder / ASSET).write_bytes(data)

    def script(self, name, *arguments, **variables):
        self.output = self.root / 'output'
        self.output.write_text('')
        environment = {
            'PATH': os.environ['PATH'], 'GITHUB_OUTPUT': str(self.output),
            'RUNNER_TEMP': str(self.root / 'temp'), 'RUNNER_TOOL_CACHE': str(self.root / 'cache'),
            'GITHUB_SERVER_URL': 'https://github.example', 'VERSION': VERSION,
            'DOWNLOAD_URL': f'http://127.0.0.1:{self.server.server_port}', **variables,
        }
        return subprocess.run(['bash', '--noprofile', '--norc', '-eo', 'pipefail', '-c',
                               ' '.join([f'"{self.root}/action/{name}.sh"', *arguments])], env=environment, cwd=self.root / 'work',
                              capture_output=True, text=True)

    def path(self):
        match = re.fullmatch(r'path=(.+)\n', self.output.read_text())
        self.assertIsNotNone(match, self.output.read_text())
        return pathlib.Path(match[1])

    def assert_refused(self, run, status, words):
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn('::error title=agentic-ci::', run.stdout)
        self.assertIn(words, run.stdout)
        self.assertEqual(self.output.read_text(), '')
        for file in (self.root / 'temp').rglob('*'):
            self.assertFalse(file.is_file() and file.stat().st_mode & 0o111, f'{file} is executable')

    def test_a_hosted_runner_gets_the_setting_that_the_doctor_names_and_no_other_machine_does(self):
        binary, tools = self.root / 'agentic-ci', self.root / 'tools'
        tools.mkdir()
        (tools / 'sudo').write_text(f'#!/bin/sh\necho "$*" >>{self.root}/sudo\n')
        remedy = '            for more: sudo sysctl -w kernel.some_setting=0\n'
        cases = (('github-hosted', remedy, '-n sysctl -qw kernel.some_setting=0\n'), ('self-hosted', remedy, ''),
                 ('', remedy, ''), ('github-hosted', 'tier namespaces: runs can start here\n', ''),
                 ('github-hosted', '            for more: sudo chown -R 0:0 /\n', ''))
        for environment, said, called in cases:
            with self.subTest(environment=environment, said=said):
                (self.root / 'said').write_text(said)
                (self.root / 'sudo').write_text('')
                binary.write_text(f'#!/bin/sh\n[ "$1" != doctor ] || {{ cat {self.root}/said; exit 69; }}\necho "ran $*"\n')
                for program in (binary, tools / 'sudo'):
                    program.chmod(0o755)
                run = self.script('run', BINARY=str(binary), RUNNER_ENVIRONMENT=environment,
                                  PATH=f'{tools}:{os.environ["PATH"]}')
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                self.assertEqual(run.stdout.splitlines()[-1], 'ran action')
                self.assertEqual((self.root / 'sudo').read_text(), called)

    def test_the_pinned_release_is_fetched_and_runs(self):
        run = self.script('install')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(subprocess.check_output([self.path(), 'x'], text=True), 'ran x\n')

    def test_a_release_with_another_hash_is_refused_and_never_executable(self):
        self.publish(BINARY + b'evil\n')
        self.assert_refused(self.script('install'), 77, 'is not what action/checksums.txt pins')

    def test_what_was_cut_off_or_is_another_architecture_s_is_refused(self):
        for data in (BINARY[:-1], b'', b'\x7fELF' + bytes(100)):
            self.publish(data)
            self.assert_refused(self.script('install'), 77, 'is not what action/checksums.txt pins')
        self.publish(BINARY)
        self.assertEqual(self.script('install').returncode, 0)

    def test_a_redirect_leads_to_the_same_host_alone(self):
        here = f'127.0.0.1:{self.server.server_port}'
        self.assertEqual(self.script('install', DOWNLOAD_URL=f'http://{here}/to/{here}').returncode, 0)
        shutil.rmtree(self.root / 'cache/agentic-ci')
        self.path().unlink()
        # The other name is the same server, which would have the file.
        for other in (f'localhost:{self.server.server_port}', f'127.0.0.1:{self.server.server_port}1', '127.0.0.1',
                      f'{here}@localhost:{self.server.server_port}'):
            self.assert_refused(self.script('install', DOWNLOAD_URL=f'http://{here}/to/{other}'), 77, 'leads to another host')
        # Of an address with a user, the host is not read: it leads nowhere, though it may be the file's own.
        for other in (here, f'x@localhost:{self.server.server_port}'):
            self.assert_refused(self.script('install', DOWNLOAD_URL=f'http://127.0.0.1:{self.server.server_port}@{here}/to/{other}'), 77, 'nothing says which host')
        self.assertEqual(self.script('install', DOWNLOAD_URL=f'http://localhost:x@{here}').returncode, 0)
        shutil.rmtree(self.root / 'cache/agentic-ci')
        self.path().unlink()
        loop = f'http://{here}/to/{here}' + f'/to/{here}' * 5
        self.assert_refused(self.script('install', DOWNLOAD_URL=loop), 77, 'leads to ever more addresses')

    def test_the_component_follows_redirects_to_the_same_host_alone(self):
        here = f'127.0.0.1:{self.server.server_port}'
        text = (ROOT / 'gitlab-component/install.sh').read_text()
        text = text.replace("checksums='\n", f"checksums='\n{hashlib.sha256(BINARY).hexdigest()}  {ASSET}\n") + '"$binary" from here\n'
        for path, status, words in (('', 0, 'ran from here'), (f'/to/{here}', 0, 'ran from here'),
                                    (f'@{here}', 0, 'ran from here'), (f'@{here}/to/x@{here}', 77, 'nothing says which host'),
                                    (f'/to/localhost:{self.server.server_port}', 77, 'leads to another host'),
                                    (f'/to/{here}' * 6, 77, 'leads to ever more addresses')):
            run = subprocess.run(['sh', '-c', text], capture_output=True, text=True, env={
                'PATH': os.environ['PATH'], 'AGENTIC_CI_VERSION': VERSION, 'AGENTIC_CI_DOWNLOAD_URL': f'http://{here}{path}'})
            self.assertEqual(run.returncode, status, run.stdout + run.stderr)
            self.assertIn(words, run.stdout + run.stderr)

    def test_an_asset_without_a_checksum_is_refused_before_anything_is_fetched(self):
        self.pin('0' * 64, ASSET + 'x')
        self.server.shutdown()
        self.assert_refused(self.script('install'), 77, 'has no checksum')

    def test_a_short_checksum_is_none(self):
        self.pin(hashlib.sha256(BINARY).hexdigest()[:40])
        self.assert_refused(self.script('install'), 77, 'has no checksum')

    def test_a_cached_binary_is_compared_again(self):
        self.assertEqual(self.script('install').returncode, 0)
        cached = self.root / 'cache/agentic-ci' / VERSION / ASSET
        self.assertEqual(cached.read_bytes(), BINARY)
        cached.write_bytes(b'#!/bin/sh\necho changed\n')
        self.assertEqual(self.script('install').returncode, 0)
        self.assertEqual(self.path().read_bytes(), BINARY)
        self.assertEqual(cached.read_bytes(), BINARY)

    def test_a_cached_binary_needs_no_network(self):
        self.assertEqual(self.script('install').returncode, 0)
        (self.root / 'release' / f'v{VERSION}' / ASSET).unlink()
        self.assertEqual(self.script('install').returncode, 0)
        self.assertNotIn(str(self.root / 'cache'), str(self.path()))

    def test_a_cache_that_cannot_be_written_is_no_failure(self):
        (self.root / 'cache/agentic-ci').write_text('in the way')
        run = self.script('install')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn('not cached', run.stdout)

    def test_a_release_that_is_not_there_is_temporary(self):
        (self.root / 'release' / f'v{VERSION}' / ASSET).unlink()
        self.assert_refused(self.script('install'), 75, 'cannot fetch')

    def test_no_release_is_fetched_in_clear_from_another_machine(self):
        self.assert_refused(self.script('install', DOWNLOAD_URL='http://release.example'), 75, 'cannot fetch')

    def test_path_is_used_as_it_is_and_nothing_is_fetched(self):
        mine = self.root / 'work/my agentic-ci'
        mine.write_bytes(BINARY)
        mine.chmod(0o755)
        self.assertEqual(self.script('install', BINARY_PATH='my agentic-ci', VERSION='').returncode, 0)
        self.assertEqual(self.path(), mine)
        self.assertEqual(list((self.root / 'temp').iterdir()), [])

    def test_a_path_that_is_no_program_is_an_error(self):
        self.assert_refused(self.script('install', BINARY_PATH='nowhere'), 66, 'no executable file nowhere')
        (self.root / 'work/data').write_text('x')
        self.assert_refused(self.script('install', BINARY_PATH='data'), 66, 'no executable file data')

    def test_a_version_is_a_version(self):
        for version in ('latest', '../1.2.3', '1.2', '1.2.3/..', '$(id)', ''):
            self.assert_refused(self.script('install', VERSION=version), 64, 'version')
        self.assertEqual(self.script('install', VERSION='v' + VERSION).returncode, 0)

    def test_an_input_of_two_lines_can_not_write_an_output_or_a_command(self):
        run = self.script('install', BINARY_PATH='x\n::error::y')
        self.assert_refused(run, 64, 'several lines')
        self.assertNotIn('\n::error::y', run.stdout)

    def test_run_passes_the_inputs_on_and_keeps_the_status(self):
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\necho "$* $INPUTS"\nexit 9\n')
        program.chmod(0o755)
        run = self.script('run', BINARY=str(program), INPUTS='{"prompt":"$(id) `id`"}')
        self.assertEqual((run.returncode, run.stdout), (9, 'action {"prompt":"$(id) `id`"}\n'))

    def test_the_token_goes_to_the_forge_alone_and_not_to_the_binary(self):
        heard = []

        class Forge(Quiet):
            def do_GET(self):
                heard.append((self.server.server_port, self.headers.get_all('Authorization')))
                self.send_error(404)

        ports = []
        for _ in range(2):
            server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Forge)
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
            ports.append(server.server_port)
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\necho "[$TOKEN] $(env | grep -c GIT_CONFIG)"\n')
        program.chmod(0o755)
        for port in ports:
            site = self.root / f'work/{port}'
            subprocess.run(['git', 'init', '-q', site], check=True)
            subprocess.run(['git', '-C', site, 'remote', 'add', 'origin', f'http://127.0.0.1:{port}/acme/site'], check=True)
            # This is how actions/checkout leaves it with persist-credentials.
            subprocess.run(['git', '-C', site, 'config', f'http.http://127.0.0.1:{ports[0]}/.extraheader',
                            'AUTHORIZATION: basic kept'], check=True)
            run = self.script('run', BINARY=str(program), WORKDIR=str(site), BASE_SHA='a' * 40, TOKEN='secret',
                              GITHUB_SERVER_URL=f'http://127.0.0.1:{ports[0]}')
            self.assertEqual(run.stdout, '::warning title=agentic-ci::the base could not be fetched\n[] 0\n')
        basic = 'basic ' + base64.b64encode(b'x-access-token:secret').decode()
        self.assertEqual(heard, [(ports[0], [basic]), (ports[1], None)])

    def fetched(self, checkout, **variables):
        """What the ref leads to when the binary is started, and what the step said before."""
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\ngit -C "$WORKDIR" rev-parse -q --verify refs/agentic-ci/base || echo none\n')
        program.chmod(0o755)
        run = self.script('run', BINARY=str(program), WORKDIR=str(checkout), TOKEN='secret', **{
            'GITHUB_EVENT_NAME': 'pull_request', 'GITHUB_SERVER_URL': f'file://{self.root}/forge',
            'GITHUB_REPOSITORY': 'acme/site', **variables})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout.splitlines()

    def test_a_pull_request_gets_the_base_branch_of_today_in_every_kind_of_checkout(self):
        up = self.root / 'forge/acme/site'
        identity = ['git', '-c', 'user.email=a@b', '-c', 'user.name=a', '-c', 'init.defaultBranch=main', '-C']

        def git(where, *arguments):
            run = subprocess.run([*identity, where, *arguments], check=True, capture_output=True, text=True)
            return run.stdout.strip()

        up.mkdir(parents=True)
        git(up, 'init', '-q')
        git(up, 'commit', '-q', '--allow-empty', '-m', 'root')
        git(up, 'commit', '-q', '--allow-empty', '-m', 'old')
        old = git(up, 'rev-parse', 'HEAD')
        git(up, 'checkout', '-q', '-b', 'zz/refs/heads/main')  # A name that git finds for refs/heads/main, too.
        git(up, 'commit', '-q', '--allow-empty', '-m', 'head')
        head = git(up, 'rev-parse', 'HEAD')
        git(up, 'update-ref', 'refs/pull/7/head', head)
        git(up, 'checkout', '-q', 'main')
        git(up, 'commit', '-q', '--allow-empty', '-m', 'today')
        today = git(up, 'rev-parse', 'HEAD')
        # GitHub's own merge, which is behind.
        merge = git(up, 'commit-tree', '-p', old, '-p', head, '-m', 'merge', f'{head}^{{tree}}')
        git(up, 'update-ref', 'refs/pull/7/merge', merge)
        fork = self.root / 'forge/alice/site'
        git(self.root, 'clone', '-q', up, fork)
        git(fork, 'commit', '-q', '--allow-empty', '-m', 'the main of the fork')
        variables = {'BASE_REF': 'main', 'BASE_SHA': old, 'GITHUB_SHA': merge}
        kinds = {'depth 1': (up, ['--depth=1', 'refs/pull/7/merge']), 'the head': (up, ['--depth=1', 'refs/pull/7/head']),
                 'all': (up, ['refs/pull/7/merge', '+refs/heads/*:refs/remotes/origin/*']),
                 'all of the head': (up, ['refs/pull/7/head']), 'some': (up, ['--depth=2', 'refs/pull/7/merge', 'main']),
                 'a fork': (fork, ['--depth=1', 'main'])}
        for kind, (origin, fetch) in kinds.items():
            with self.subTest(kind):
                site = self.root / 'work' / kind
                git(self.root, 'init', '-q', site)
                git(site, 'remote', 'add', 'origin', f'file://{origin}')
                git(site, 'fetch', '-q', 'origin', *fetch)
                git(site, 'checkout', '-q', 'FETCH_HEAD')
                before = git(site, 'rev-list', '--all', 'HEAD')
                if kind != 'depth 1':  # The others have the ref that an earlier job has left.
                    git(site, 'update-ref', 'refs/agentic-ci/base', 'HEAD')
                self.assertEqual(self.fetched(site, **variables), [today])
                self.assertLessEqual(set(before.split()), set(git(site, 'rev-list', '--all', 'HEAD').split()))
                if kind.startswith('all'):
                    self.assertEqual(git(site, 'merge-base', 'refs/agentic-ci/base', 'HEAD'), old)
                # No ref is better than one that is not this branch's.
                said = self.fetched(site, **{**variables, 'BASE_REF': 'gone'})
                self.assertEqual(said[-1], 'none')
                self.assertIn('::warning title=agentic-ci::', said[0])
        # The events that name the commit themselves, and a forge whose event does.
        site = self.root / 'work/named'
        git(self.root, 'clone', '-q', '--depth=1', '--branch=zz/refs/heads/main', f'file://{up}', site)
        git(up, 'config', 'uploadpack.allowAnySHA1InWant', 'true')
        self.assertEqual(self.fetched(site, BASE_REF='main', BASE_SHA=old, GITEA_ACTIONS='true'), ['none'])
        git(site, 'cat-file', '-e', old)
        variables.update(GITHUB_EVENT_NAME='pull_request_target', GITHUB_SHA=today)
        self.assertRaises(subprocess.CalledProcessError, git, site, 'cat-file', '-e', today)
        git(site, 'remote', 'set-url', 'origin', f'file://{self.root}/gone')  # The origin may be a fork, which need not have it.
        self.assertEqual(self.fetched(site, **variables), ['none'])
        git(site, 'cat-file', '-e', today)

    def test_a_comments_job_works_on_the_head_of_the_pull_request_or_not_at_all(self):
        up = self.root / 'forge/acme/site'

        def git(where, *arguments):
            run = subprocess.run(['git', '-c', 'user.email=a@b', '-c', 'user.name=a', '-c', 'init.defaultBranch=main', '-C', where,
                                  *arguments], check=True, capture_output=True, text=True)
            return run.stdout.strip()

        up.mkdir(parents=True)
        git(up, 'init', '-q')
        (up / 'a.txt').write_text('base\n')
        git(up, 'add', '-A')
        git(up, 'commit', '-q', '-m', 'base')
        base = git(up, 'rev-parse', 'HEAD')
        git(up, 'checkout', '-q', '-b', 'fix')
        (up / 'a.txt').write_text('head\n')
        git(up, 'commit', '-qam', 'head')
        head = git(up, 'rev-parse', 'HEAD')
        git(up, 'update-ref', 'refs/pull/7/head', head)
        (up / 'a.txt').write_text('of a fork\n')
        git(up, 'commit', '-qam', 'fork')
        git(up, 'update-ref', 'refs/pull/8/head', 'HEAD')  # In no branch, as what a fork has.
        git(up, 'reset', '-q', '--hard', head)
        git(up, 'checkout', '-q', 'main')
        git(up, 'config', 'uploadpack.allowAnySHA1InWant', 'true')
        variables = {'GITHUB_SERVER_URL': f'file://{self.root}/forge', 'GITHUB_REPOSITORY': 'acme/site', 'GITHUB_SHA': base,
                     'TOKEN': 'secret'}

        def fetch(name, number, change='', checkout='main'):
            site = self.root / 'work' / name
            git(self.root, 'clone', '-q', '--depth=1', f'--branch={checkout}', f'file://{up}', site)
            if change:
                (site / 'a.txt').write_text(change)
            run = self.script('fetch', WORKDIR=str(site), NUMBER=number, **variables)
            return run, git(site, 'rev-parse', 'HEAD'), (site / 'a.txt').read_text()

        run, at, text = fetch('plain', '7')
        self.assertEqual((run.returncode, at, text), (0, head, 'head\n'), run.stdout + run.stderr)
        git(self.root / 'work/plain', 'cat-file', '-e', base)  # What the policy is read from.
        for name, number, change, words in (('fork', '8', '', 'is no branch of acme/site'), ('none', '9', '', 'has no head'),
                                            ('changed', '7', 'mine\n', 'earlier steps have changed'), ('odd', '7;id', '', 'number')):
            run, at, text = fetch(name, number, change)
            self.assertEqual((run.returncode, at, text), (77, base, change or 'base\n'), run.stdout + run.stderr)
            self.assertIn('::error title=agentic-ci::', run.stdout)
            self.assertIn(words, self.output.read_text())
            self.assertIn('ref: refs/pull/', self.output.read_text())
        run, at, text = fetch('chosen', '8', checkout='fix')  # What the workflow has checked out itself stays.
        self.assertEqual((run.returncode, at), (0, head), run.stdout + run.stderr)
        variables['GITHUB_SHA'] = head  # As on Gitea, whose jobs start on the head.
        run, at, text = fetch('there', '7', checkout='fix')
        self.assertEqual((run.returncode, at), (0, head), run.stdout + run.stderr)
        run = self.script('report', INSTALLED='success', HEAD_REASON='it is a fork\'s')
        self.assertIn("conclusion=refused\nreason=it is a fork's\n", self.output.read_text())

    def test_a_command_is_answered_where_it_stands_unless_the_result_does(self):
        heard = []

        class Api(Quiet):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length'])).decode()
                heard.append((self.path, json.loads(body), self.headers['Authorization']))
                self.send_response(403 if '/9/' in self.path else 201)
                self.end_headers()

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Api)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

        def answer(what, **variables):
            heard.clear()
            given = {'COMMENT': '50', 'NUMBER': '7', 'LOGIN': 'octocat', 'CONCLUSION': 'success', 'TOKEN': 'secret',
                     'RESULT': 'https://github.com/acme/site/pull/7#issuecomment-40', 'GITHUB_REPOSITORY': 'acme/site',
                     'GITHUB_API_URL': f'http://127.0.0.1:{server.server_port}', **variables}
            run = self.script('answer', what, **given)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            return run.stdout

        answer('seen')
        self.assertEqual(heard, [('/repos/acme/site/issues/comments/50/reactions', {'content': 'eyes'}, 'Bearer secret')])
        self.assertIn('::notice', answer('seen', COMMENT='9'))
        answer('done')
        self.assertEqual([(path, body) for path, body, _ in heard], [('/repos/acme/site/issues/7/comments', {
            'body': '@octocat: done. [The result](https://github.com/acme/site/pull/7#issuecomment-40) is in the comment above.'})])
        for variables in ({'RESULT': 'https://github.com/acme/site/pull/7#issuecomment-60'}, {'RESULT': ''}, {'LOGIN': 'a"b'},
                          {'RESULT': 'https://github.com/a"b#issuecomment-4'}, {'COMMENT': ''}):
            answer('done', **variables)
            self.assertEqual(heard, [], variables)

    def test_what_looks_like_a_bare_repository_is_not_taken_for_the_repository(self):
        """A pull request can add its files to the directory that the workflow works in."""
        up, site, ran = self.root / 'up', self.root / 'work/site', self.root / 'ran'
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\nexit 0\n')
        program.chmod(0o755)
        git = ['git', '-c', 'user.email=a@b', '-c', 'user.name=a', '-c', 'init.defaultBranch=main', '-C']
        subprocess.run([*git, self.root, 'init', '-q', up], check=True)
        for name in ('base', 'head'):
            subprocess.run([*git, up, 'commit', '-q', '--allow-empty', '-m', name], check=True)
        base = subprocess.run([*git, up, 'rev-parse', 'HEAD~'], check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run([*git, self.root, 'clone', '-q', '--depth=1', f'file://{up}', site], check=True)
        planted = site / 'api'
        for folder in ('objects', 'refs'):
            (planted / folder).mkdir(parents=True)
        (planted / 'HEAD').write_text('ref: refs/heads/main\n')
        (planted / 'config').write_text('[core]\nrepositoryformatversion = 0\nbare = true\n[protocol "ext"]\nallow = always\n'
                                        f'[remote "origin"]\nurl = "ext::sh -c env% >{ran}"\n')
        fetch = [*git[:1], '-c', 'safe.bareRepository=all', *git[1:], planted, 'fetch', '-q', 'origin', base]
        subprocess.run(fetch, capture_output=True)
        self.assertTrue(ran.exists())  # git's own choice, which this test is about.
        ran.unlink()
        run = self.script('run', BINARY=str(program), WORKDIR='site/api', BASE_SHA=base, TOKEN='secret')
        self.assertEqual((run.returncode, run.stdout), (0, ''), run.stderr)
        self.assertFalse(ran.exists())
        subprocess.run([*git, site, 'cat-file', '-e', base], check=True)  # From the checkout's own origin.

    def test_post_turns_a_refusal_into_a_warning_and_nothing_else(self):
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\necho "$1 [$2] [$GITHUB_STEP_SUMMARY]"\n'
                           'printf "comment-url<<w\\n%s\\nw\\n" "$FAKE_COMMENT" >>"$GITHUB_OUTPUT"\nexit "$FAKE_STATUS"\n')
        program.chmod(0o755)
        output = self.root / 'work/output'
        # Once a comment stands, 77 says that something else was refused, such as the changes by a gate.
        url = 'https://github.com/acme/site/pull/7#issuecomment-1'
        for status, comment, ends in ((0, url, 0), (77, '', 0), (77, url, 77), (75, '', 75), (78, '', 78)):
            output.write_text('')
            run = self.script('post', BINARY=str(program), REPORT_DIR='a b', FAKE_STATUS=str(status), FAKE_COMMENT=comment,
                              GITHUB_STEP_SUMMARY='there', GITHUB_OUTPUT=str(output))
            self.assertEqual(run.returncode, ends)
            self.assertIn('post [a b] []\n', run.stdout)
            self.assertEqual(output.read_text(), f'comment-url<<w\n{comment}\nw\n')
            self.assertEqual('::warning title=agentic-ci::no comment' in run.stdout, (status, ends) == (77, 0))

    def test_post_says_which_task_was_run(self):
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\necho "$*"\n')
        program.chmod(0o755)
        for said, words in (({'TASK': 'fix'}, 'post --task fix r'), ({'TASK': ''}, 'post r'), ({'TASK': 'fix', 'WHAT': 'commits'},
                                                                                         'post --what commits --task fix r')):
            run = self.script('post', BINARY=str(program), REPORT_DIR='r', PULL_REQUEST='7', **said)
            self.assertEqual((run.returncode, run.stdout), (0, words + '\n'), run.stderr)

    def test_post_leaves_out_what_is_about_a_pull_request_where_the_event_has_none(self):
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\necho "$*"\n')
        program.chmod(0o755)
        for what, words in (('comment,review,pull-request', 'post --what pull-request r\n'), ('status,branch,comment',
                            'post --what status,branch r\n'), ('comment,commits', '')):
            run = self.script('post', BINARY=str(program), REPORT_DIR='r', WHAT=what)
            self.assertEqual((run.returncode, run.stdout), (0, words), run.stderr)

    def test_both_actions_tell_the_jobs_of_a_matrix_apart(self):
        told = []
        for name in ('action.yml', 'post/action.yml'):
            steps = yaml.safe_load((ROOT / name).read_text())['runs']['steps']
            told += [step['env'].get('AGENTIC_CI_MATRIX_JOB') for step in steps if step['id'] in ('run', 'post')]
        self.assertIn('strategy.job-index', told[0])
        self.assertEqual(told, [told[0]] * 3)


class Workflows(unittest.TestCase):
    """What people copy. `config init`'s own are held to the same by tests/config."""

    def test_no_run_is_cancelled_by_an_event_that_its_jobs_leave_out(self):
        self.assertGreater(len(workflow_rules.workflows()), 10)
        for where, text in workflow_rules.workflows().items():
            self.assertFalse(workflow_rules.cancelled_by_others(text), where)
        wrong = ('on: { pull_request: { types: [labeled] } }\nconcurrency: { group: a, cancel-in-progress: true }\n'
                 "jobs: { a: { if: github.event.label.name == 'agent', steps: [] } }\n")
        self.assertTrue(workflow_rules.cancelled_by_others(wrong))

    def test_the_report_that_a_comment_links_to_is_kept(self):
        for where, text in workflow_rules.workflows().items():
            self.assertFalse(workflow_rules.keeps_no_report(text), where)
        self.assertTrue(workflow_rules.keeps_no_report('jobs: { a: { steps: [ { uses: OWNER/agentic-ci@COMMIT } ] } }'))


class Pin(unittest.TestCase):
    """tools/pin, which the release uses, on a copy."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for name in ('tools/pin', 'action/checksums.txt'):
            (self.root / name).parent.mkdir()
            shutil.copy(ROOT / name, self.root / name)

    def pin(self, text):
        (self.root / 'new').write_text(text)
        before = (self.root / 'action/checksums.txt').read_text()
        run = subprocess.run([self.root / 'tools/pin', self.root / 'new'], capture_output=True, text=True)
        after = (self.root / 'action/checksums.txt').read_text()
        self.assertEqual(after, before + text if run.returncode == 0 else before)
        return run.returncode, run.stderr

    def test_assets_are_added_once(self):
        lines = ''.join(f'{"ab" * 32}  agentic-ci-1.2.3-linux-{machine}\n' for machine in ('x86_64', 'aarch64'))
        self.assertEqual(self.pin(lines), (0, ''))
        status, words = self.pin(lines.replace('ab', 'cd'))
        self.assertEqual(status, 1)
        self.assertIn('agentic-ci-1.2.3-linux-x86_64 is in action/checksums.txt already', words)

    def test_anything_else_is_refused(self):
        good = f'{"ab" * 32}  agentic-ci-1.2.3-linux-x86_64\n'
        for text in ('', good.replace('x86_64', 'mips'), good.replace('ab', 'AB'), good.replace('1.2.3', '../1'), good + 'x\n',
                     good[2:]):
            self.assertEqual(self.pin(text)[0], 1, text)


class Metadata(unittest.TestCase):
    def setUp(self):
        self.texts = {name: (ROOT / name).read_text() for name in ('action.yml', 'post/action.yml')}

    def block(self, name, begin, end):
        text = self.texts[name]
        return text[text.index(f'\n{begin}:'):text.index(f'\n{end}:')]

    def test_no_expression_stands_inside_a_script(self):
        for name, steps in (('action.yml', 7), ('post/action.yml', 2)):
            runs = re.findall(r'^ +run: (.*)$', self.texts[name], re.MULTILINE)
            self.assertEqual(len(runs), steps)
            for run in runs:
                self.assertRegex(run, r"""^'"\$(GITHUB_ACTION_PATH(/\.\.)?/action/[a-z]+\.sh"( seen| done)?|BINARY" action post)'$""")

    def test_no_other_action_is_used(self):
        for text in self.texts.values():
            self.assertNotRegex(text, r'(?m)^\s*(- )?uses:')

    def test_the_default_version_is_this_one(self):
        version = re.search(r'kVersion = "([^"]+)"', (ROOT / 'runner/base/version.h').read_text())[1]
        for text in self.texts.values():
            self.assertRegex(text, r'(?s)\n  version:\n.{0,300}?default: "' + re.escape(version) + '"')
        # Beside a commit: what Renovate and Dependabot go by.
        pinned = {path: re.findall(r'(?:uses|component): .*agentic-ci(?:/\w+)?@COMMIT(.*)', path.read_text())
                  for path in [ROOT / 'README.md', ROOT / 'gitlab-component/README.md', *ROOT.glob('examples/**/*.yml')]}
        self.assertGreater(sum(map(len, pinned.values())), 10)
        for path, comments in pinned.items():
            self.assertTrue(all(f' # v{version}' in comment for comment in comments), f'{path}: {comments}')

    def test_outputs_are_those_the_program_writes(self):
        header = (ROOT / 'runner/cli/github.h').read_text()
        written = {}
        for table in ('kActionOutputs', 'kPostOutputs'):
            start = header.index(f'{table} =')
            written[table] = re.findall(r'\{"([a-z-]+)",', header[start:header.index('});', start)])
        for name, tables in (('action.yml', ('kActionOutputs', 'kPostOutputs')), ('post/action.yml', ('kPostOutputs',))):
            listed = re.findall(r'(?m)^  ([a-z-]+):$', self.block(name, 'outputs', 'runs'))
            self.assertEqual(listed, [output for table in tables for output in written[table]])

    def test_every_input_a_step_reads_is_declared_once(self):
        for name, text in self.texts.items():
            declared = re.findall(r'(?m)^  ([a-z-]+):$', self.block(name, 'inputs', 'outputs'))
            self.assertEqual(len(declared), len(set(declared)), declared)
            for read in re.findall(r'inputs\.([a-z-]+)', text):
                self.assertIn(read, declared)

    def test_scripts_are_executable_and_short(self):
        for script in (ROOT / 'action').glob('*.sh'):
            self.assertTrue(os.access(script, os.X_OK), script)
            text = script.read_text()
            self.assertLess(len(text.splitlines()), 80, script)
            self.assertIn('\nset -euo pipefail\n', text)


if __name__ == '__main__':
    unittest.main()
