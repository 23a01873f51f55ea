#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a person does with a lasting sandbox of the real OpenShell while it is there: files in and out, another policy.

usage: lasting_test.py BINARY TESTBED CACHE [unittest arguments]
"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import unittest

from real import SECRET, Case, main, read, wait_until


class Lasting(Case):
    @classmethod
    def setUpClass(cls):
        if not cls.INSTALLED:
            raise unittest.SkipTest('testbed: OpenShell cannot run here')

    def begin(self, *words, **env):
        self.call('setup', '--name', 'box', *self.options('r'), *words, **env)

    def tearDown(self):
        self.start('stop', '--name', 'box').communicate(timeout=600)  # A case may have ended it.
        super().tearDown()

    def inside(self, script, expect=0):
        return self.call('exec', '--name', 'box', '--', 'sh', '-c', script, expect=expect)

    def refused(self, status, said, *words, **env):
        output, errors = self.end(self.start(*words, **env), status)
        self.assertIn(said, errors)
        self.assertEqual(output, '')
        return errors


class Files(Lasting):
    UNWRITABLE = 'Permission denied'  # Of a directory of the image.

    def tree(self):
        source = pathlib.Path(self.base, 'source')
        (source / 'deep/er').mkdir(parents=True)
        (source / 'deep/er/file').write_text('text\n')
        (source / 'run').write_text('#!/bin/sh\necho ran\n')
        (source / 'run').chmod(0o755)
        (source / 'empty').mkdir()
        (source / ('long' * 50)).write_text('long\n')
        (source / "-na me'\nline").write_text('odd\n')
        (source / 'link').symlink_to('deep/er/file')
        (source / 'away').symlink_to('/etc/passwd')
        (source / 'big').write_bytes(os.urandom(9 << 20))  # More than one command's input may have.
        os.utime(source / 'run', ns=(1_500_000_000_000_000_000,) * 2)
        return source

    def content(self, top):
        found = {}
        for directory, names, files in os.walk(top):
            for name in names + files:
                path = os.path.join(directory, name)
                mode = os.lstat(path).st_mode
                found[os.path.relpath(path, top)] = (
                    os.readlink(path) if stat.S_ISLNK(mode) else (stat.S_IMODE(mode), pathlib.Path(path).read_bytes())
                    if stat.S_ISREG(mode) else 'directory')
        return found

    def test_a_tree_goes_in_and_comes_back(self):
        self.begin()
        source = self.tree()
        self.call('sandbox', 'put', 'box', str(source), 'made/here')
        self.assertEqual(self.inside('cd made/here && ./run && cat deep/er/file link "./$(printf -- "-na me\'\\nline")" && readlink away'),
                         'ran\ntext\ntext\nodd\n/etc/passwd\n')
        self.call('sandbox', 'get', 'box', 'made/here', self.base + '/back')
        self.assertEqual(self.content(self.base + '/back'), self.content(source))
        self.assertEqual(os.stat(self.base + '/back/run').st_mtime, 1_500_000_000)
        self.assertIn('made/here/run', self.call('sandbox', 'diff', 'box'))
        # It is merged with what is there, and nothing else of it stays.
        (source / 'deep/more').write_text('more\n')
        self.call('sandbox', 'put', 'box', str(source) + '/deep', 'made/here')
        self.assertEqual(self.inside('cat made/here/deep/more made/here/deep/er/file; ls -A /sandbox | grep agentic; ls made'),
                         'more\ntext\nhere\n')
        self.assertEqual(list(self.state().glob('got-*')), [])

    def test_where_a_copy_goes(self):
        self.begin()
        self.inside('mkdir e; ln -s e to_e; echo old >f; ln -s f to_f; chmod 750 e')
        one = self.base + '/one.txt'
        pathlib.Path(one).write_text('1\n')
        for target, where in (('e', 'e/one.txt'), ('to_e', 'e/one.txt'), ('new/', 'new/one.txt'), ('f', 'f'), ('x/y/z', 'x/y/z'),
                              ('.', 'one.txt'), ('/tmp/t', '/tmp/t'), ('to_f', 'to_f')):
            with self.subTest(target):
                self.call('sandbox', 'put', 'box', one, target)
                self.assertEqual(self.inside(f'cat {where}; [ ! -L {where} ] || echo link; rm {where}'), '1\n')
        out = self.base + '/out'
        os.mkdir(out)
        for words, where in (([out], 'a.txt'), ([out + '/b'], 'b'), ([out + '/c/'], 'c/a.txt')):
            self.call('sandbox', 'get', 'box', 'a.txt', *words)
            self.assertEqual(read(os.path.join(out, where)), 'alpha\n')
        self.assertEqual(self.call('sandbox', 'get', 'box', 'd/b.txt', '-'), 'beta\n')
        self.assertEqual(self.call('sandbox', 'get', 'box', '/etc/passwd', '-').split(':')[0], 'root')
        self.inside('ln -s d to_d; ln d/b.txt d/again')
        self.call('sandbox', 'get', 'box', 'to_d', out)
        self.assertEqual(self.content(out + '/to_d'), {name: (0o644, b'beta\n') for name in ('b.txt', 'again')})

    def test_what_is_refused(self):
        self.begin()
        one, out = self.base + '/one.txt', self.base + '/out'
        pathlib.Path(one).write_text('1\n')
        self.inside('mkdir e; echo secret >closed; chmod 000 closed; mkdir mixed; echo 1 >mixed/a; cp closed mixed/b 2>/dev/null; '
                    'echo 2 >mixed/b; chmod 000 mixed/b; mkfifo fifo; mkdir -p way/one.txt')
        for status, said, *words in ((74, self.UNWRITABLE, 'put', one, '/usr/lib/put'), (65, 'in the way', 'put', one, 'way'),
                                     (65, 'in the way', 'put', str(self.work / 'd'), 'a.txt'), (66, 'nothing', 'put', self.base + '/nothing', 'x'),
                                     (66, 'nothing', 'get', 'nothing', out), (74, 'Permission denied', 'get', 'closed', out),
                                     (65, 'neither', 'get', 'fifo', out), (65, 'a directory', 'get', 'd', '-'),
                                     (65, 'limit', 'get', 'a.txt', out, '--max-size', '3')):
            with self.subTest(words):
                self.refused(status, said, 'sandbox', words[0], 'box', *words[1:])
                self.assertFalse(os.path.exists(out))
        self.assertEqual(self.inside('cat a.txt; ls -A /sandbox | grep agentic; ls way/one.txt'), 'alpha\n')
        # What may not be read is left out, with a warning.
        _, errors = self.end(self.start('sandbox', 'get', 'box', 'mixed', out), 0)
        self.assertIn('b: Cannot open: Permission denied', errors)
        self.assertEqual(os.listdir(out), ['a'])
        # The sandbox cannot choose where a copy is written: a link of its own is on the host now, and then a directory there.
        os.mkdir(self.base + '/elsewhere')
        self.inside(f'mkdir t; ln -s {self.base}/elsewhere t/l')
        self.call('sandbox', 'get', 'box', 't', self.base + '/t')
        self.inside('rm t/l; mkdir t/l; echo x >t/l/planted')
        self.refused(65, 'in the way', 'sandbox', 'get', 'box', 't', self.base)
        self.assertEqual(os.listdir(self.base + '/elsewhere'), [])

    def test_a_slow_client_holds_up_no_other(self):
        self.begin()
        self.inside('seq 400000 >lines')
        lines = ''.join(f'{n}\n' for n in range(1, 400001))
        slow = self.start('sandbox', 'get', 'box', 'lines', '-')
        self.assertEqual(slow.stdout.read(1), '1')
        self.assertEqual(self.inside('echo meanwhile'), 'meanwhile\n')
        self.assertEqual(self.call('sandbox', 'list').split()[:2], ['box', 'idle'])
        self.assertEqual('1' + slow.stdout.read(), lines)
        self.end(slow, 0)
        # One that goes away leaves nothing.
        slow = self.start('sandbox', 'get', 'box', 'lines', '-')
        self.assertEqual(slow.stdout.read(1), '1')
        slow.kill()
        slow.communicate(timeout=600)
        self.assertTrue(wait_until(lambda: not list(self.state().glob('got-*'))))
        # Nor does one hold up the end.
        slow = self.start('sandbox', 'get', 'box', 'lines', '-')
        self.assertEqual(slow.stdout.read(1), '1')
        self.call('stop', '--name', 'box')
        slow.communicate(timeout=600)
        self.assertIn(slow.returncode, (65, 74))  # As the client sees it: an archive that is cut, or the end.


class Scripts(Lasting):
    def test_a_script_as_long_as_openshell_takes(self):
        self.begin()
        for size, status, said in ((980_000, 0, ''), (990_000, 64, 'the script is larger than 983040 bytes, which OpenShell takes')):
            done = subprocess.run([self.BIN, 'exec', '--name', 'box'], input=f"echo begun; : '{'x' * size}'; echo ended", cwd=self.work, env=self.env,
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual((done.returncode, done.stdout), (status, '' if status else 'begun\nended\n'), done.stderr)
            self.assertIn(said, done.stderr)


class Stopped(Lasting):
    """A lasting sandbox that is stopped from outside: OpenShell keeps its workspace."""

    def stop_it(self):
        state = self.state()
        done = subprocess.run([self.INSTALLED.programs + '/openshell', 'sandbox', 'stop', state.name], capture_output=True, text=True,
                              env=self.env | {'XDG_CONFIG_HOME': str(state / 'config')}, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_is_started_again(self):
        self.begin()
        self.inside('echo kept >f; setsid sleep 1000 >/dev/null 2>&1 &')
        self.stop_it()
        # What ran has ended, so that a command is not repeated for the caller.
        self.refused(75, 'the sandbox was stopped, and is started again', 'exec', '--name', 'box', '--', 'sh', '-c', 'echo never >>f')
        self.assertEqual(self.inside('cat f; pgrep sleep | wc -l; pwd'), 'kept\n1\n/sandbox/workspace\n')
        self.stop_it()
        self.assertEqual(self.call('sandbox', 'get', 'box', 'f', '-'), 'kept\n')
        self.stop_it()
        self.call('stop', '--name', 'box', '--apply')
        self.assertEqual(read(self.work / 'f'), 'kept\n')
        self.assertEqual(self.record('r')['outcome']['kind'], 'success')


class Policy(Lasting):
    def ask(self, path, token=''):
        return self.inside(f'curl -s -m 20 -o /dev/null -w "%{{http_code}}" {token} {self.url(path)}')

    def rules(self, name, **sections):
        """A file with the policy that allows GET of `name`/** alone."""
        policy = json.loads(read(self.policy))
        endpoint = policy['network_policies']['host']['endpoints'][0]
        del endpoint['access']
        endpoint['rules'] = [{'allow': {'method': 'GET', 'path': f'/{name}/**'}}]
        file = pathlib.Path(self.base, '-'.join([name, *sections]) + '.json')
        file.write_text(json.dumps(policy | sections))
        return str(file)

    def test_network_rules_are_replaced(self):
        self.begin('--secret', 'TOKEN@host.openshell.internal', TOKEN=SECRET)
        token = '-H "X-Token: $TOKEN"'
        self.assertEqual((self.ask('/one/x', token), self.ask('/two/x')), ('200', '200'))
        digest = self.call('policy', 'set', 'box', self.rules('one')).strip()
        self.assertRegex(digest, '^[0-9a-f]{64}$')
        self.assertEqual((self.ask('/one/x', token), self.ask('/two/x')), ('200', '403'))
        self.assertEqual({value for path, value in self.server.seen if path == '/one/x'}, {SECRET})
        self.call('sandbox', 'policy', 'box', self.rules('two'))
        self.assertEqual((self.ask('/one/x'), self.ask('/two/x')), ('403', '200'))
        short = pathlib.Path(self.base, 'short.yml')
        short.write_text(f'defaults: none\nhosted_tools: [web_search]\nendpoints: ["host.openshell.internal:{self.server.port}"]\n')
        # A static section, or what is no policy, is refused by name, and nothing changes.
        for status, said, file in ((65, 'landlock policy cannot be changed', self.rules('one', landlock={'compatibility': 'hard_requirement'})),
                                   (65, 'process policy cannot be changed', self.rules('one', process={'run_as_user': '1234'})),
                                   (65, "filesystem include_workdir cannot be changed", self.rules('one', filesystem_policy={'include_workdir': False})),
                                   (65, "filesystem read_only path '/usr' cannot be removed",
                                    self.rules('two', filesystem_policy={'include_workdir': True, 'read_only': ['/etc']})),
                                   (69, 'hosted_tools', str(short))):
            with self.subTest(said):
                self.refused(status, said, 'policy', 'set', 'box', file)
        broken = pathlib.Path(self.base, 'broken.yml')
        broken.write_text('version: 1\nnetwork_policies:\n  one:\n    endpoint: []\n')
        self.refused(65, f'{broken}:4:5: ', 'policy', 'set', 'box', str(broken))
        self.assertEqual((self.ask('/one/x'), self.ask('/two/x')), ('403', '200'))
        self.call('stop', '--name', 'box')
        loaded = [json.loads(line) for line in read(f'{self.base}/r/events.ocsf.jsonl').splitlines() if '"policy reloaded"' in line]
        self.assertEqual(len(loaded), 2)
        self.assertIn(digest, json.dumps(loaded[0]))

    def test_what_the_supervisor_does_not_load_is_taken_back(self):
        self.begin(PATH=self.openshell_that('case "$*" in "policy set"*policy-next*) real "$@"; exit 1;; esac'))
        self.refused(74, 'openshell policy set', 'policy', 'set', 'box', self.rules('one'))
        self.assertEqual((self.ask('/one/x'), self.ask('/two/x')), ('200', '200'))

    def test_a_policy_that_is_not_of_a_file_does_not_change(self):
        file = self.rules('one')
        (self.work / '.agentic-ci').mkdir()
        (self.work / '.agentic-ci/openshell-policy.yml').write_text(read(self.policy))
        for words in (['add', '-A'], ['-c', 'user.name=t', '-c', 'user.email=t@localhost', 'commit', '-qm', 'policy']):
            subprocess.run(['git', *words], cwd=self.work, check=True, capture_output=True)
        self.call('setup', '--name', 'box', *(word for word in self.options('r') if word not in ('--policy', self.policy)))
        self.refused(64, '--policy FILE', 'policy', 'set', 'box', file)
        self.assertEqual(self.ask('/two/x'), '200')


del Lasting

if __name__ == '__main__':
    main(sys.argv)
