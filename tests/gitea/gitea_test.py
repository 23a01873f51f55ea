#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`agentic-ci post` against a real Gitea: a repository, a push, a pull request, and what is posted to it again and again.

gitea_test.py START RUNNER SAMPLES [NAME...]

START starts a Gitea on loopback in a directory of the test's.
"""
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

MARKER = 'ci/agent'
GIT = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main']
# Lines 1 to 20 are there before; the pull request adds a line after the second.
BEFORE = ''.join(f'line {number}\n' for number in range(1, 21))
AFTER = BEFORE.replace('line 2\n', 'line 2\nadded\n')


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
                                  stderr=log, timeout=120).returncode == 0

    def stop(self):
        """The file has the shell's process; the service is its child."""
        with open(self.directory + '/pid') as file:
            shell = int(file.read())
        with open(f'/proc/{shell}/task/{shell}/children') as file:
            service = [int(pid) for pid in file.read().split()]
        for pid in service + [shell]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            if not any(os.path.exists(f'/proc/{pid}') for pid in service):
                return
            time.sleep(0.1)
        raise AssertionError(f'Gitea did not end: {service}')

    def api(self, method, path, body=None):
        request = urllib.request.Request(f'{self.url}/api/v1{path}', method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={'Authorization': 'token ' + self.token, 'Content-Type': 'application/json'})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def finding(message, **place):
    return {'source': 'agent', 'rule': 'bug', 'severity': 'warning', 'message': message, 'path': '', 'line': 0, 'end_line': 0,
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

    def open_pull_request(self):
        """Gitea takes a moment to see what was pushed."""
        for attempt in range(100):
            try:
                return GITEA.api('POST', f'/repos/{self.repository}/pulls', {'title': 'Fix', 'head': 'fix', 'base': 'main'})
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

    def report(self, *findings, head=None, patch=''):
        directory = tempfile.mkdtemp(dir=self.directory) + '/report'
        shutil.copytree(SAMPLE, directory)
        with open(directory + '/run.json') as file:
            record = json.load(file)
        record['findings'] = list(findings)
        record['event']['head_sha'] = head or self.head
        with open(directory + '/run.json', 'w') as file:
            json.dump(record, file)
        with open(directory + '/changes.patch', 'w') as file:
            file.write(patch)
        return directory

    def post(self, report, *options, token=None, code=0):
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
        done = subprocess.run([RUNNER, 'post', report, '--marker', MARKER, *options], env=env, cwd=self.directory,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

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
        self.assertIn('review: 2 beside lines, 0 on files, 2 in the comment only, 0 resolved\n', shown)
        threads = {thread['position']: thread for thread in self.threads()}
        self.assertEqual(sorted(threads), [3, 4])
        self.assertIn('on the added line', threads[3]['body'])
        self.assertIn('```suggestion\nx\n```', threads[4]['body'])
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
        self.assertEqual([plan['url'].rsplit('/', 1)[1] for plan in planned], ['reviews', 'comments'])
        self.assertEqual((self.threads(), self.comments()), ([], []))

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
