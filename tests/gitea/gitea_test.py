#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`agentic-ci post` against a real Gitea: a repository, a push, a pull request, and what is posted to it again and again.

gitea_test.py START RUNNER SAMPLES [NAME...]

START starts a Gitea on loopback in a directory of the test's.
"""
import base64
import concurrent.futures
import contextlib
import fcntl
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

MARKER = 'ci/agent'
LOCK = threading.Lock()  # Of a test's working tree.
GIT = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main']
# Lines 1 to 20 are there before; the pull request adds a line after the second.
BEFORE = ''.join(f'line {number}\n' for number in range(1, 21))
# The cases of tests/forge, as far as a repository of its own for each is not needed.
with open(os.path.dirname(os.path.abspath(__file__)) + '/../forge/moved_head.json') as cases:
    MOVED = json.load(cases)
AFTER = BEFORE.replace('line 2\n', 'line 2\nadded\n')


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(text.encode() if isinstance(text, str) else text)


class Gitea:
    """One instance, with an administrator's token and another user's."""

    def __init__(self, start, directory):
        self.directory = directory
        for attempt in range(2):  # The port may be taken by another process in between.
            if self.start(start):
                break
            with open(directory + '.log') as log:
                print(log.read())
            if attempt:
                raise AssertionError('Gitea does not start')
            shutil.rmtree(directory, ignore_errors=True)
        with open(directory + '/env') as file:
            words = dict(re.findall(r'(GITEA_\w+)=(\S+)', file.read()))
        self.url, self.token = words['GITEA_URL'], words['GITEA_TOKEN']

    def start(self, script):
        with socket.create_server(('127.0.0.1', 0)) as listener:
            port = listener.getsockname()[1]
        lock = os.path.expanduser('~/.cache/agentic-ci-gitea.lock')
        os.makedirs(os.path.dirname(lock), exist_ok=True)
        # One at a time: the first unpacks the program for all. Its output to a file: the service inherits it, and would hold
        # a pipe open.
        with open(self.directory + '.log', 'w') as log, open(lock, 'w') as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            # From a directory that Gitea's own user may enter, wherever this checkout lies.
            return subprocess.run(['bash', script, self.directory, str(port)], cwd='/', stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log, timeout=600).returncode == 0

    def stop(self):
        """The file has the shell's process; the service is its child."""
        with open(self.directory + '/pid') as file:
            shell = int(file.read())
        with open(f'/proc/{shell}/task/{shell}/children') as file:
            service = [int(pid) for pid in file.read().split()]
        for pid in service + [shell]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for _ in range(1200):
            if not any(os.path.exists(f'/proc/{pid}') for pid in service):
                return
            time.sleep(0.1)
        raise AssertionError(f'Gitea did not end: {service}')

    def api(self, method, path, body=None):
        request = urllib.request.Request(f'{self.url}/api/v1{path}', method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={'Authorization': 'token ' + self.token, 'Content-Type': 'application/json'})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300) as answer:
            text = answer.read()
        return json.loads(text) if text else None


class Way:
    """A way to Gitea on which the request number `at` meets `fault`: {status, cut, hang, kill, acted}. `acted`: it arrives all the
    same. `kill` is called once it did or did not."""

    def __init__(self, at=-1, **fault):
        self.requests, self.lock, self.closing = [], threading.Lock(), threading.Event()
        way = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def handle_one_request(self):
                with contextlib.suppress(ConnectionError):  # A client that was killed, or gave up waiting.
                    super().handle_one_request()

            def do(self):
                body = self.rfile.read(int(self.headers.get('content-length', 0)))
                with way.lock:
                    way.requests.append(f'{self.command} {self.path}')
                    met = fault if len(way.requests) - 1 == at else {}
                answer = way.forward(self, body) if not met or met.get('acted') else (met.get('status', 200), [], b'{}')
                if met.get('kill'):
                    met['kill']()
                if met.get('hang'):
                    way.closing.wait()
                if met.get('hang') or met.get('cut') or met.get('kill'):
                    self.close_connection = True
                    return
                status, headers, content = answer
                if met:
                    status, headers = met['status'], [('retry-after', '0')]
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header('content-length', str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()

    @staticmethod
    def forward(request, body):
        connection = http.client.HTTPConnection(GITEA.url.removeprefix('http://'), timeout=60)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in ('host', 'connection')}
        connection.request(request.command, request.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() in ('content-type', 'link', 'x-total-count')]
        return answer.status, kept, content

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


def finding(message, **place):
    return {'source': 'agent', 'rule': 'bug', 'severity': 'warning', 'message': message, 'path': '', 'line': 0, 'end_line': 0, 'blob': '', 'lines_sha256': '', 'line_hash': '',
            'suggestion': None, 'refuses': False, **place}


def beside(message, line, **more):
    return finding(message, **{'path': 'a.c', 'line': line, 'end_line': line, **more})


class Post(unittest.TestCase):
    count = 0

    def setUp(self):
        Post.count += 1
        self.repository = f'ci/site{Post.count}'
        self.directory = tempfile.mkdtemp(dir=BASE)
        GITEA.api('POST', '/user/repos', {'name': f'site{Post.count}', 'default_branch': 'main'})
        self.push('main', BEFORE)
        self.head = self.push('fix', AFTER)
        self.open_pull_request()
        self.event = self.directory + '/event.json'
        with open(self.event, 'w') as file:
            json.dump(GITEA.api('GET', f'/repos/{self.repository}/pulls/1'), file)

    def open_pull_request(self, head='fix'):
        """Gitea takes a moment to see what was pushed."""
        for attempt in range(100):
            try:
                return GITEA.api('POST', f'/repos/{self.repository}/pulls', {'title': 'Fix', 'head': head, 'base': 'main'})
            except urllib.error.HTTPError as error:
                if error.code != 404 or attempt == 99:
                    raise
                time.sleep(0.1)

    def push(self, branch, text):
        work = self.directory + '/work'
        if not os.path.exists(work):
            subprocess.run([*GIT, 'init', '-q', work], check=True)
        run = lambda *words: subprocess.run([*GIT, *words], cwd=work, check=True, capture_output=True, text=True).stdout.strip()
        run('checkout', '-q', '-B', branch)
        with open(work + '/a.c', 'w') as file:
            file.write(text)
        run('add', '.')
        run('commit', '-qm', branch)
        run('push', '-q', GITEA.url.replace('://', f'://ci:{GITEA.token}@') + f'/{self.repository}.git', branch)
        return run('rev-parse', 'HEAD')

    def report(self, *findings, head=None, patch='', merged=''):
        directory = tempfile.mkdtemp(dir=self.directory) + '/report'
        shutil.copytree(SAMPLE, directory)
        with open(directory + '/run.json') as file:
            record = json.load(file)
        record['findings'] = list(findings)
        record['event']['head_sha'] = head or self.head
        record['outcome'].update(kind='success', exit_code=0, reason='', limit='')
        record['changes'].update(prefix='', complete=True, merged=merged)
        with open(directory + '/run.json', 'w') as file:
            json.dump(record, file)
        with open(directory + '/changes.patch', 'w') as file:
            file.write(patch)
        return directory

    def environment(self, token=None):
        env = {'PATH': os.environ['PATH'], 'HOME': self.directory, 'GITHUB_TOKEN': token or GITEA.token,
               'GITHUB_ACTIONS': 'true', 'GITEA_ACTIONS': 'true', 'GITHUB_EVENT_NAME': 'pull_request',
               'GITHUB_EVENT_PATH': self.directory + '/payload.json', 'GITHUB_REPOSITORY': self.repository,
               'GITHUB_SERVER_URL': GITEA.url, 'GITHUB_API_URL': GITEA.url + '/api/v1', 'GITHUB_SHA': self.head,
               'GITHUB_REF': 'refs/pull/1/head', 'GITHUB_RUN_NUMBER': '1', 'GITHUB_WORKFLOW': 'ci', 'GITHUB_JOB': 'agent'}
        with open(self.event) as file:
            payload = {'number': 1, 'pull_request': json.load(file),
                       'repository': GITEA.api('GET', f'/repos/{self.repository}')}
        with open(env['GITHUB_EVENT_PATH'], 'w') as file:
            json.dump(payload, file)
        return env

    def post(self, report, *options, token=None, code=0):
        done = subprocess.run([RUNNER, 'post', report, '--marker', MARKER, *options], env=self.environment(token), cwd=self.directory,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def git(self, *words):
        return subprocess.run([*GIT, *words], cwd=self.directory + '/work', check=True, capture_output=True, text=True).stdout.strip()

    def patch(self, change):
        """The patch that makes of the head what `change` does to its working tree, and the tree it leads to."""
        self.git('checkout', '-q', '-f', self.head)
        change(self.directory + '/work')
        self.git('add', '-A')
        patch = subprocess.run([*GIT, 'diff', '--cached', '--binary', '--full-index', '-M', 'HEAD'], cwd=self.directory + '/work',
                               check=True, capture_output=True, text=True).stdout
        return patch, self.git('write-tree')

    def fetched(self, branch):
        """(tree, parents, subject) of what the forge has."""
        self.git('fetch', '-q', GITEA.url.replace('://', f'://ci:{GITEA.token}@') + f'/{self.repository}.git', branch)
        return self.git('log', '-1', '--format=%T %P', 'FETCH_HEAD').split()

    def comments(self):
        return GITEA.api('GET', f'/repos/{self.repository}/issues/1/comments')

    def reviews(self):
        return GITEA.api('GET', f'/repos/{self.repository}/pulls/1/reviews')

    def threads(self):
        return [comment for review in self.reviews()
                for comment in GITEA.api('GET', f'/repos/{self.repository}/pulls/1/reviews/{review["id"]}/comments')]

    def test_findings_are_beside_their_lines_and_in_one_comment(self):
        report = self.report(beside('on the added line', 3), beside('on three lines', 2, end_line=4, suggestion='x\n'),
                             beside('far from the change', 18), finding('about the whole'))
        shown = self.post(report).stdout
        self.assertIn('review: 2 on lines, 0 on files, 2 in the comment only, 0 resolved\n', shown)
        threads = {thread['position']: thread for thread in self.threads()}
        self.assertEqual(sorted(threads), [3, 4])
        self.assertIn('on the added line', threads[3]['body'])
        self.assertIn('Lines 2 to 4: on three lines', threads[4]['body'])  # It has neither ranges nor suggestions.
        self.assertIn('\n```\nx\n```\n', threads[4]['body'])
        self.assertEqual([thread['path'] for thread in threads.values()], ['a.c', 'a.c'])
        self.assertEqual(len(self.comments()), 1)
        for text in ('far from the change', 'about the whole'):
            self.assertIn(text, self.comments()[0]['body'])

    def test_posting_again_changes_nothing_and_resolves_what_is_gone(self):
        self.post(self.report(beside('stays', 3), beside('goes', 4)))
        self.assertEqual(len(self.threads()), 2)
        self.post(self.report(beside('stays', 3), beside('goes', 4)))
        self.assertEqual((len(self.threads()), len(self.reviews()), len(self.comments())), (2, 1, 1))
        self.assertIn('1 resolved', self.post(self.report(beside('stays', 3))).stdout)
        resolved = {('stays' if 'stays' in thread['body'] else 'goes'): bool(thread['resolver']) for thread in self.threads()}
        self.assertEqual(resolved, {'stays': False, 'goes': True})
        self.assertNotIn('resolved', self.post(self.report(beside('stays', 3))).stdout.replace('0 resolved', ''))

    def open_threads(self):
        """Line and text of each."""
        return sorted((thread['position'], thread['body'].split('** ')[1].split(' (')[0]) for thread in self.threads() if not thread['resolver'])

    def curl(self, *words):
        return subprocess.run(['curl', '-sS', '--fail', '--noproxy', '*', *words], cwd=self.directory, capture_output=True, check=True).stdout

    def test_a_thread_that_a_person_answered_stays_open(self):
        self.post(self.report(beside('answered', 3), beside('in a review', 4), beside('goes', 5), beside('goes too', 5)))
        [review] = self.reviews()
        name, password = f'person{Post.count}', 'Long-enough-0!'
        GITEA.api('POST', '/admin/users', {'username': name, 'email': name + '@example.com', 'password': password, 'must_change_password': False})
        # A reply in the browser is a comment of the same review.
        page = ['-b', 'jar', '-c', 'jar', '-o', 'page', '-X', 'POST']
        self.curl(*page, f'{GITEA.url}/user/login', '--data-urlencode', 'user_name=' + name, '--data-urlencode', 'password=' + password)
        self.curl(*page, f'{GITEA.url}/{self.repository}/pulls/1/files/reviews/comments', '-d', 'origin=timeline', '-d', 'side=proposed', '-d', 'line=3',
                  '-d', 'path=a.c', '-d', f'reply={review["id"]}', '-d', 'single_review=true', '-d', 'content=why')
        self.curl('-u', f'{name}:{password}', '-H', 'Content-Type: application/json', f'{GITEA.url}/api/v1/repos/{self.repository}/pulls/1/reviews', '-d',
                  json.dumps({'event': 'COMMENT', 'comments': [{'path': 'a.c', 'new_position': 4, 'body': 'why'}]}))
        self.assertIn('2 resolved', self.post(self.report()).stdout)
        ours = {thread['position']: bool(thread['resolver']) for thread in self.threads() if thread['body'].startswith('<!--')}
        self.assertEqual(ours, {3: False, 4: False, 5: True})
        self.assertIn('0 resolved', self.post(self.report(beside('answered', 3))).stdout)

    def test_findings_that_are_worded_otherwise_or_have_moved_have_one_thread_each(self):
        self.post(self.report(beside('first words', 3), beside('twice', 4), beside('twice', 5)))
        self.post(self.report(beside('other words', 3), beside('twice', 5)))
        self.assertEqual(self.open_threads(), [(3, 'first words'), (5, 'twice')])
        # Two lines further down, which Gitea does not say of its threads.
        self.head = self.push('fix', 'x\ny\n' + AFTER)
        for _ in range(1200):
            if GITEA.api('GET', f'/repos/{self.repository}/pulls/1')['head']['sha'] == self.head:
                break
            time.sleep(0.1)
        self.post(self.report(beside('third words', 5), beside('twice', 7)))
        self.assertEqual(self.open_threads(), [(5, 'third words'), (7, 'twice')])

    def test_what_is_left_of_reviews_that_say_the_same_is_taken_back(self):
        report = self.report(beside('one', 3), beside('two', 4))
        line = [RUNNER, 'post', report, '--marker', MARKER]
        environment = self.environment()
        four = [subprocess.Popen(line, env=environment, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True) for _ in range(4)]
        for one in four:
            out, _ = one.communicate(timeout=600)
            self.assertEqual(one.returncode, 0, out)
        self.post(report)
        self.assertEqual(self.open_threads(), [(3, 'one'), (4, 'two')])
        self.assertEqual((len(self.comments()), len(self.threads())), (1, 2))
        # Gitea keeps one pending review for each user, which posts at the same time share: one without comments may be left,
        # which others do not see.
        shown = [review for review in self.reviews() if review['state'] != 'PENDING']
        self.assertEqual([review for review in shown if not review['comments_count']], [], shown)

    def test_a_review_is_found_behind_a_hundred_others(self):
        """Three pages of a list that has no Link header."""
        for number in range(120):
            GITEA.api('POST', f'/repos/{self.repository}/pulls/1/reviews', {'event': 'COMMENT', 'body': f'review {number}'})
        for _ in range(2):
            self.post(self.report(beside('stays', 3)), '--what', 'review')
            self.assertEqual(len(self.all_threads()), 1)

    def all_threads(self):
        reviews, page = [], 1
        while found := GITEA.api('GET', f'/repos/{self.repository}/pulls/1/reviews?limit=50&page={page}'):
            reviews, page = reviews + found, page + 1
        return [comment for review in reviews if review['comments_count']
                for comment in GITEA.api('GET', f'/repos/{self.repository}/pulls/1/reviews/{review["id"]}/comments')]

    def test_a_person_who_resolves_has_the_last_word(self):
        self.post(self.report(beside('stays', 3)))
        GITEA.api('POST', f'/repos/{self.repository}/pulls/comments/{self.threads()[0]["id"]}/resolve')
        self.post(self.report(beside('stays', 3)))
        self.assertEqual(len(self.threads()), 1)

    def test_lines_of_another_head_are_not_trusted(self):
        self.post(self.report(beside('where was it', 3), head='c' * 40))
        self.assertEqual(self.threads(), [])
        self.assertIn('where was it', self.comments()[0]['body'])

    def test_a_dry_run_sends_nothing(self):
        planned = [json.loads(line) for line in self.post(self.report(beside('x', 3)), '--dry-run').stdout.splitlines()]
        self.assertEqual([plan['url'].rsplit('/', 1)[1] for plan in planned], ['comments', 'reviews'])
        self.assertEqual((self.threads(), self.comments()), ([], []))

    @staticmethod
    def some_changes(work):
        write(work + '/a.c', AFTER.replace('line 9', 'the ninth line'))
        write(work + '/new/dir/file', 'new\n')
        write(work + '/data', b'\0\1\xff')
        os.rename(work + '/mv', work + '/moved name')
        os.unlink(work + '/rm')
        write(work + '/run.sh', '#!/bin/sh\ntrue\n')

    def with_head(self, head, base=None):
        self.head = head
        for attempt in range(100):  # Gitea takes a moment to see what was pushed.
            pull = GITEA.api('GET', f'/repos/{self.repository}/pulls/1')
            if pull['head']['sha'] == self.head and pull['merge_base'] == (base or pull['merge_base']):
                return
            time.sleep(0.1)
        self.fail(f'Gitea does not see the head {head}: {pull}')

    def with_more_files(self):
        self.git('checkout', '-q', 'fix')
        work = self.directory + '/work'
        write(work + '/mv', 'same\n' * 20)
        write(work + '/rm', 'x\n')
        write(work + '/run.sh', '#!/bin/sh\n')
        os.chmod(work + '/run.sh', 0o755)
        self.with_head(self.push('fix', AFTER))

    def test_the_changes_are_a_commit_on_the_pull_requests_branch_once(self):
        self.with_more_files()
        patch, tree = self.patch(self.some_changes)
        report = self.report(patch=patch)
        shown = self.post(report, '--what', 'comment,commits').stdout
        self.assertEqual(self.fetched('fix'), [tree, self.head])
        commit = self.git('rev-parse', 'FETCH_HEAD')
        self.assertIn(f'changes: commit {commit} on fix\n', shown)
        self.assertIn(f'changes: commit {commit} on fix\n', self.post(report, '--what', 'comment,commits').stdout)
        self.assertEqual(self.fetched('fix'), [tree, self.head])
        self.assertIn(commit, self.comments()[0]['body'])

    def test_changes_for_a_head_that_has_moved(self):
        """Each case on a branch and a pull request of its own would take minutes: one branch, pushed back for each."""
        for one in [case for case in MOVED['cases'] if case.get('gitea')]:
            with self.subTest(one['name']):
                self.git('checkout', '-q', '-B', 'fix', self.head)
                self.change({'write': MOVED['seen']})
                self.with_head(self.pushed('seen'))
                merged = self.move_base(one['base']) if 'base' in one else ''
                patch, _ = self.patch(lambda work: self.change(one['patch']))
                report = self.report(patch=patch, merged=merged)
                protection = f'/repos/{self.repository}/branch_protections'
                if one.get('protected'):
                    GITEA.api('POST', protection, {'rule_name': 'fix', 'enable_push': False})
                self.git('checkout', '-q', '-f', '-B', 'fix', self.head)
                for move in one['moves']:
                    self.change(move)
                    head = self.pushed('of a person')
                    self.with_head(head)
                    self.head, head = self.git('rev-parse', 'HEAD^'), self.head
                want = one['want']
                shown = self.post(report, '--what', 'commits', code=want.get('status', 0)).stdout
                self.assertIn(want.get('how', want.get('says', 'changes: commit')), shown)
                self.check_moved(want, shown)
                if one.get('protected'):
                    GITEA.api('DELETE', protection + '/fix')

    def move_base(self, what):
        """Commits to main; the pull request's branch stays as it is."""
        self.git('checkout', '-q', '-f', '-B', 'main', 'main')
        self.change(what)
        self.git('add', '-A')
        self.git('commit', '-q', '--allow-empty', '-m', 'of the base branch')
        self.git('push', '-q', GITEA.url.replace('://', f'://ci:{GITEA.token}@') + f'/{self.repository}.git', 'HEAD:main')
        return self.git('rev-parse', 'HEAD')

    def change(self, what):
        work = self.directory + '/work/'
        for name, text in what.get('write', {}).items():
            os.makedirs(os.path.dirname(work + name), exist_ok=True)
            write(work + name, text)
        for name in what.get('remove', []):
            os.unlink(work + name)

    def pushed(self, subject):
        self.git('add', '-A')
        self.git('commit', '-q', '--allow-empty', '-m', subject)
        self.git('push', '-qf', GITEA.url.replace('://', f'://ci:{GITEA.token}@') + f'/{self.repository}.git', 'HEAD:fix')
        return self.git('rev-parse', 'HEAD')

    def check_moved(self, want, shown):
        made = re.search(r'^changes: commit ([0-9a-f]{40}) on ([^,\n]+)(, http.*)?$', shown, re.M)
        if want['end'] == 'none':
            return self.assertIsNone(made, shown)
        commit, branch, url = made.groups()
        self.fetched(branch)
        if want['end'] == 'commit':
            self.assertEqual((branch, url), ('fix', None))
            for name, text in want['files'].items():
                self.assertEqual(self.git('show', f'{commit}:{name}'), text.strip())
        else:
            self.assertTrue(branch.startswith('agentic-ci/pull-1-') and url, shown)
            self.assertEqual(self.git('rev-parse', f'{commit}^'), self.head)

    def test_what_this_api_cannot_express_is_refused(self):
        for change in (lambda work: os.symlink('a.c', work + '/link'), lambda work: os.chmod(work + '/a.c', 0o755)):
            patch, _ = self.patch(change)
            done = self.post(self.report(patch=patch), '--what', 'commits', code=77)
            self.assertIn("can set neither a file's mode nor a symbolic link", done.stderr)
        self.assertEqual(self.fetched('fix')[0], self.git('rev-parse', self.head + '^{tree}'))

    def test_a_branch_with_a_pull_request_is_made_once_and_updated(self):
        patch, tree = self.patch(lambda work: write(work + '/a.c', 'first\n'))
        report = self.report(patch=patch)
        GITEA.api('POST', f'/repos/{self.repository}/labels', {'name': 'agent', 'color': '#00aabb'})
        options = ('--what', 'comment,pull-request,status', '--title', 'Fix it', '--label', 'agent')
        for _ in range(2):
            self.post(report, *options)
        pulls = lambda: [pull for pull in GITEA.api('GET', f'/repos/{self.repository}/pulls?state=all') if pull['number'] != 1]
        self.assertEqual([(pull['title'], pull['base']['ref'], [label['name'] for label in pull['labels']]) for pull in pulls()],
                         [('Fix it', 'fix', ['agent'])])
        branch = pulls()[0]['head']['ref']
        self.assertTrue(branch.startswith('agentic-ci/pull-1-'), branch)
        self.assertEqual(self.fetched(branch), [tree, self.head])
        self.assertIn(f'#{pulls()[0]["number"]}.', self.comments()[0]['body'])
        statuses = GITEA.api('GET', f'/repos/{self.repository}/commits/{self.head}/statuses')
        self.assertEqual([(status['context'], status['status']) for status in statuses], [('agentic-ci (ci/agent)', 'success')])
        patch, tree = self.patch(lambda work: (write(work + '/a.c', 'second\n'), write(work + '/b.c', 'new\n')))
        self.post(self.report(patch=patch), *options)
        self.assertEqual(self.fetched(branch)[0], tree)
        self.assertEqual([(pull['state'], pull['title']) for pull in pulls()], [('open', 'Fix it')])

    def test_a_branch_that_a_person_pushed_to_is_theirs(self):
        patch, _ = self.patch(lambda work: write(work + '/a.c', 'first\n'))
        self.post(self.report(patch=patch), '--what', 'branch', '--branch', 'agents/fix')
        self.fetched('agents/fix')
        self.git('checkout', '-q', '-f', 'FETCH_HEAD')
        mine = self.push('agents/fix', 'mine\n')
        patch, _ = self.patch(lambda work: write(work + '/a.c', 'second\n'))
        done = self.post(self.report(patch=patch), '--what', 'branch', '--branch', 'agents/fix', code=77)
        self.assertIn('has commits that agentic-ci did not make', done.stderr)
        self.fetched('agents/fix')
        self.assertEqual(self.git('rev-parse', 'FETCH_HEAD'), mine)

    def test_a_label_that_does_not_exist_is_told(self):
        self.assertIn("refused: label: adding labels: the repository has no label 'absent'",
                      self.post(self.report(), '--label', 'absent', code=65).stdout)

    PARTS = ('--what', 'comment,review,status,pull-request')

    def arena(self, name, count):
        """Pull requests of branches that `name` and a number make, by number; the report, and the tree that its patch leads to."""
        branches = [f'{name}{index}' for index in range(count)]
        self.git('push', '-q', GITEA.url.replace('://', f'://ci:{GITEA.token}@') + f'/{self.repository}.git',
                 *(f'{self.head}:refs/heads/{branch}' for branch in branches))
        pulls = {self.open_pull_request(branch)['number']: branch for branch in branches}
        patch, tree = self.patch(lambda work: (write(work + '/a.c', AFTER.replace('line 9', 'the ninth line')), os.unlink(work + '/rm')))
        with open(self.directory + '/dispatch.json', 'w') as file:
            json.dump({'repository': GITEA.api('GET', f'/repos/{self.repository}')}, file)
        return pulls, self.report(beside('one', 3), beside('two', 4), beside('far', 18), patch=patch), tree

    def posting(self, report, number, way, *options):
        env = {'PATH': os.environ['PATH'], 'GITHUB_TOKEN': GITEA.token, 'GITHUB_ACTIONS': 'true', 'GITEA_ACTIONS': 'true',
               'GITHUB_EVENT_NAME': 'workflow_dispatch', 'GITHUB_EVENT_PATH': self.directory + '/dispatch.json', 'GITHUB_REPOSITORY': self.repository, 'GITHUB_SERVER_URL': GITEA.url,
               'GITHUB_SHA': self.head, 'GITHUB_REF': 'refs/heads/main', 'GITHUB_WORKFLOW': 'ci', 'GITHUB_JOB': 'agent'}
        return subprocess.Popen([RUNNER, 'post', report, '--marker', f'{MARKER}{number}', '--number', str(number), '--api-url',
                                 way.url + '/api/v1', *self.PARTS, *options], env=env, cwd=self.directory, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def check_whole(self, number, branch, tree):
        """All of the report is there, and once."""
        api = lambda path: GITEA.api('GET', f'/repos/{self.repository}{path}')
        self.assertEqual(len(api(f'/issues/{number}/comments')), 1)
        threads = [comment for review in api(f'/pulls/{number}/reviews')
                   for comment in api(f'/pulls/{number}/reviews/{review["id"]}/comments')]
        self.assertEqual(sorted(re.search('one|two', thread['body'])[0] for thread in threads if not thread['resolver']), ['one', 'two'])
        self.assertIn('far', api(f'/issues/{number}/comments')[0]['body'])
        pulls = [pull for pull in GITEA.api('GET', f'/repos/{self.repository}/pulls?state=open&base={branch}') if pull['base']['ref'] == branch]
        self.assertEqual(len(pulls), 1)
        with LOCK:  # Its API gives a commit's own hash as that of its tree.
            self.assertEqual(self.fetched(pulls[0]['head']['ref']), [tree, self.head])
        states = [status for status in api(f'/commits/{self.head}/statuses') if status['context'].endswith(f'({MARKER}{number})')]
        self.assertEqual({status['status'] for status in states}, {'success'})

    def with_faults(self):
        """(name, request's index, fault) for each request of a post that goes well."""
        pulls, report, tree = self.arena('well', 1)
        [(number, branch)] = pulls.items()
        with Way() as way:
            done = self.posting(report, number, way)
            self.assertEqual((done.communicate()[0], done.returncode)[1], 0)
        self.check_whole(number, branch, tree)
        # Each request that writes: lost; acted on, and the answer lost. Of those that read, which all take the same way, some: a real
        # forge takes its time.
        lost = [{'status': status} for status in (403, 404, 409, 422, 429, 500)] + [{'cut': True}, {'hang': True}, {'kill': True}]
        acted = [{'cut': True}, {'kill': True}, {'status': 502}, {'hang': True}]
        faults = []
        for at, request in enumerate(way.requests):
            reads = request.startswith('GET ')
            if not reads or at % 5 == 0:
                faults.append((at, lost[len(faults) // 2 % len(lost)]))
            if not reads:
                faults.append((at, {**acted[len(faults) // 2 % len(acted)], 'acted': True}))
        return [(f'{fault} at {way.requests[at]}', at, fault) for at, fault in faults]

    def test_nothing_is_lost_or_doubled_whatever_one_request_meets(self):
        write(self.directory + '/work/rm', 'x\n')
        self.head = self.push('fix', AFTER)
        faults = self.with_faults()
        self.assertGreater(len(faults), 12)
        pulls, report, tree = self.arena('fault', len(faults))

        def meet(number, branch, name, at, fault):
            child = []
            if fault.get('kill'):
                fault = {**fault, 'kill': lambda: child[0].kill()}
            with Way(at, **fault) as way:
                # A request that hangs fails after five seconds; a forge that is slow may use up all fifteen before.
                child.append(self.posting(report, number, way, *(['--timeout', '15s'] if 'hang' in fault else [])))
                first = child[0].communicate(timeout=600)[0]
                late = 'hang' in fault and child[0].returncode == 75
                self.assertTrue(len(way.requests) > at or late, f'{name}: it was not met: {first}')
            with Way() as way:
                again = self.posting(report, number, way)
                shown = again.communicate(timeout=600)[0]
            self.assertEqual(again.returncode, 0, f'{name}: {first}{shown}')
            try:
                self.check_whole(number, branch, tree)
            except AssertionError as error:
                raise AssertionError(f'{name}: {error}\n{first}{shown}') from error

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for met in [pool.submit(meet, *pull, *fault) for pull, fault in zip(pulls.items(), faults)]:
                met.result()

    def test_two_that_post_at_once_and_a_third_leave_one(self):
        write(self.directory + '/work/rm', 'x\n')
        self.head = self.push('fix', AFTER)
        pulls, report, tree = self.arena('both', 1)
        [(number, branch)] = pulls.items()
        with Way() as way:
            both = [self.posting(report, number, way) for _ in range(2)]
            shown = [one.communicate(timeout=600)[0] for one in both]
            self.assertEqual([one.returncode for one in both], [0, 0], shown)
            again = self.posting(report, number, way)
            self.assertEqual((again.communicate(timeout=600)[0], again.returncode)[1], 0)
        self.check_whole(number, branch, tree)

    def test_rules_that_are_deleted_or_moved_away_are_told(self):
        work = self.directory + '/work'
        self.git('checkout', '-q', 'main')
        write(work + '/.agentic-ci/openshell-policy.yml', 'endpoints: []\n')
        write(work + '/.agentic-ci/config.yml', 'limits: {max_requests: 5}\n')
        base = self.push('main', BEFORE)
        self.git('checkout', '-q', 'fix')
        self.git('merge', '-q', 'main')
        for change in (['rm', '-q', '.agentic-ci/openshell-policy.yml'], ['mv', '.agentic-ci/config.yml', 'config.yml']):
            self.git(*change)
            self.with_head(self.push('fix', AFTER), base)
            self.post(self.report(), '--what', 'comment')
            [comment] = self.comments()
            self.assertIn("> This pull request changes agentic-ci's own rules: `.agentic-ci/openshell-policy.yml`", comment['body'])
        self.assertIn('rules: `.agentic-ci/openshell-policy.yml`, `config.yml`', comment['body'])
        self.assertIn('The policy is removed: the built-in default would apply.', comment['body'])

    def test_rules_are_those_of_the_base_branch_whatever_else_has_its_name(self):
        self.git('checkout', '-q', 'main')
        write(self.directory + '/work/.agentic-ci/config.yml', 'gates: {paths: {deploy/: refuse}}\n')
        base = self.push('main', BEFORE)
        # Gitea takes a branch or a tag for the commit whose id is its name.
        self.git('push', '-q', GITEA.url.replace('://', f'://ci:{GITEA.token}@') + f'/{self.repository}.git',
                 *(f'{self.head}:refs/{name}' for name in ('tags/main', f'tags/{base}', f'heads/{base}')))
        patch, _ = self.patch(lambda work: write(work + '/deploy/run', 'x\n'))
        done = self.post(self.report(patch=patch), '--what', 'branch', code=77)
        self.assertIn('the gate protected-paths refuses', done.stderr)
        self.git('reset', '-q', '--hard')
        patch, tree = self.patch(lambda work: write(work + '/b.c', 'x\n'))
        self.post(self.report(patch=patch), '--what', 'branch', '--branch', 'agents/fix')
        self.assertEqual(self.fetched('agents/fix')[0], tree)

    def test_what_runs_have_spent_is_counted_on_a_branch_whoever_posts_at_the_same_moment(self):
        def spent(digit):
            report = self.report()
            with open(report + '/run.json') as file:
                record = json.load(file)
            record['budget'].update(id=str(digit) * 32, place='forge', left_usd=5, spent_usd=digit, counted=False)
            with open(report + '/run.json', 'w') as file:
                json.dump(record, file)
            return report

        def ledger():
            content = GITEA.api('GET', f'/repos/{self.repository}/contents/agentic-ci-budget.json?ref=agentic-ci/budget')['content']
            return sorted((run['id'][0], run['number'], run['usd'], run['open']) for run in json.loads(base64.b64decode(content))['runs'])

        reports = [spent(digit) for digit in range(1, 5)]
        env = self.environment()
        post = lambda report: subprocess.run([RUNNER, 'post', report, '--marker', MARKER], env=env, cwd=self.directory, stdin=subprocess.DEVNULL,
                                             capture_output=True, text=True, timeout=600)
        with concurrent.futures.ThreadPoolExecutor(4) as workers:
            for done in workers.map(post, reports):
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        everything = [(str(digit), 1, digit, False) for digit in range(1, 5)]
        self.assertEqual(ledger(), everything)
        self.assertIn('budget', self.post(reports[0]).stdout)  # Once more changes nothing.
        self.assertEqual(ledger(), everything)
        self.assertEqual(self.fetched('fix')[1:], [self.git('rev-parse', 'main')])

    def test_there_are_no_check_runs(self):
        done = self.post(self.report(), '--what', 'comment,check', code=64)
        self.assertIn('Gitea and Forgejo have no check runs', done.stderr)

    def test_a_token_that_may_not_write_costs_no_finding(self):
        name = f'reader{Post.count}'
        GITEA.api('POST', '/admin/users', {'username': name, 'email': name + '@example.com', 'password': 'Long-enough-0!',
                                           'must_change_password': False})
        command = ['curl', '-sS', '--noproxy', '*', '-u', name + ':Long-enough-0!', '-H', 'Content-Type: application/json', '-d',
                   '{"name": "t", "scopes": ["read:repository", "read:user", "read:issue"]}',
                   f'{GITEA.url}/api/v1/users/{name}/tokens']
        token = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)['sha1']
        done = self.post(self.report(beside('kept', 3)), token=token, code=77)
        self.assertIn('::warning file=a.c,line=3,title=agentic-ci%3A bug::kept\n', done.stdout)
        self.assertEqual((self.threads(), self.comments()), ([], []))

    def sent(self, count):
        """The events that Gitea makes for a webhook of this repository, of which its Actions make the same for a job: `count` of labels."""
        for _ in range(600):
            with contextlib.closing(sqlite3.connect(f'file:{GITEA.directory}/work/gitea.db?mode=ro', uri=True, timeout=60)) as database:
                payloads = [json.loads(text) for text, in database.execute('select payload_content from hook_task order by id')]
            mine = [one for one in payloads if one['repository']['full_name'] == self.repository and 'label' in one['action']]
            if len(mine) >= count:
                return mine
            time.sleep(0.1)
        raise AssertionError(f'of {count} events, Gitea made {mine}')

    def test_a_label_starts_what_config_init_writes(self):
        hook = {'type': 'gitea', 'active': True, 'events': ['pull_request', 'pull_request_label', 'pull_request_sync'],
                'config': {'url': 'http://127.0.0.1:9/', 'content_type': 'json'}}
        GITEA.api('POST', f'/repos/{self.repository}/hooks', hook)
        labels = {name: GITEA.api('POST', f'/repos/{self.repository}/labels', {'name': name, 'color': '#112233'})['id']
                  for name in ('bug', 'agent')}
        issue = f'/repos/{self.repository}/issues/1/labels'
        for count, name in enumerate(('bug', 'agent'), 1):
            GITEA.api('POST', issue, {'labels': [labels[name]]})
            self.sent(count)
        GITEA.api('DELETE', issue)
        events = self.sent(3)
        self.assertEqual([one['action'] for one in events], ['label_updated', 'label_updated', 'label_cleared'])
        work = self.directory + '/work'
        self.git('checkout', '-q', 'main')
        subprocess.run([RUNNER, 'config', 'init', '--forge', 'gitea'], cwd=work, check=True, capture_output=True)
        self.git('add', '-A')
        self.git('commit', '-qm', 'agent')
        for event, starts in zip(events, (False, True, False)):
            environment = self.environment()
            event['pull_request']['base']['sha'] = self.git('rev-parse', 'HEAD')
            write(environment['GITHUB_EVENT_PATH'], json.dumps(event))
            done = subprocess.run([RUNNER, 'config', 'explain'], env=environment, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=600)
            self.assertEqual('task' in done.stdout and ' review ' in done.stdout, starts, done.stdout + done.stderr)


def main():
    global BASE, GITEA, RUNNER, SAMPLE
    start, RUNNER, samples, *names = sys.argv[1:]
    if not os.path.exists(start):
        print(f'# SKIP gitea: {start} is not there')
        return 4
    BASE = tempfile.mkdtemp(prefix='gitea-post-')
    os.chmod(BASE, 0o755)
    try:
        SAMPLE = BASE + '/full'
        subprocess.run([samples, 'full', SAMPLE], check=True)
        GITEA = Gitea(start, BASE + '/gitea')
        try:
            suite = unittest.TestSuite(case for case in unittest.defaultTestLoader.loadTestsFromTestCase(Post)
                                       if not names or any(name in case.id() for name in names))
            result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
        finally:
            GITEA.stop()
        return 0 if result.testsRun and result.wasSuccessful() else 1
    finally:
        shutil.rmtree(BASE, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())
