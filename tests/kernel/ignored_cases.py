# SPDX-License-Identifier: Apache-2.0
"""Files that git ignores come back with `--apply-ignored`: what the agent made or changed, by the checkout's own rules, and nothing that a gate refuses."""
import os

from harness import Case, git, read, write

APPLY = ['--apply', '--apply-ignored']
TOKEN = 'ghp_aB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3lN5'
RULES = 'build/\n*.log\nAGENTS.md\n.agentic-ci/\nway\n'


class Ignored(Case):
    def setUp(self):
        super().setUp()
        write(self.checkout + '/.gitignore', RULES)
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'rules')

    def there(self, path):
        return read(self.checkout + '/' + path)

    def left_out(self, run):
        return {finding['path']: finding['message'] for finding in run.record['findings'] if finding['rule'] == 'ignored-file'}

    def test_what_the_agent_built_comes_back(self):
        for name in ('old', 'same', 'gone'):
            write(f'{self.checkout}/build/{name}', 'before\n')
        script = ('echo x >>README.md; mkdir -p build/deep; echo "#!/bin/sh" >build/deep/run; chmod 700 build/deep/run; echo after >build/old; rm build/gone; '
                  'ln -s deep/run build/link; printf "a\\0b\\r\\n" >build/binary; echo odd >"build/$(printf "new\\nline\\377")"; echo l >a.log')
        run = self.shell(script, options=['--apply'])  # The control.
        self.assertEqual((self.there('build/old'), sorted(os.listdir(self.checkout + '/build'))), ('before\n', ['gone', 'old', 'same']))
        git(self.checkout, 'checkout', 'README.md')
        run = self.shell(script, options=APPLY, kind='success')
        self.assertEqual(self.there('README.md'), 'hello\nx\n')
        self.assertEqual([self.there('build/' + name) for name in ('deep/run', 'old', 'same', 'gone', 'link')],
                         ['#!/bin/sh\n', 'after\n', 'before\n', 'before\n', '#!/bin/sh\n'])
        self.assertEqual(os.stat(self.checkout + '/build/deep/run').st_mode & 0o777, 0o755)
        with open(self.checkout + '/build/binary', 'rb') as file:
            self.assertEqual(file.read(), b'a\0b\r\n')
        self.assertEqual(read(os.fsencode(self.checkout) + b'/build/new\nline\xff'), 'odd\n')
        self.assertEqual(os.readlink(self.checkout + '/build/link'), 'deep/run')
        changes = run.record['changes']
        self.assertEqual((changes['files'], changes['ignored_files'], changes['applied']), (1, 6, True))
        self.assertEqual(changes['ignored_bytes'], sum(map(len, ('#!/bin/sh\n', 'after\n', 'deep/run', 'a\0b\r\n', 'odd\n', 'l\n'))))
        self.assertEqual(len(changes['ignored_paths']), 6)
        self.assertIn('build/deep/run', changes['ignored_paths'])
        self.assertEqual(self.left_out(run), {})
        self.assertNotIn('build', read(run.report + '/changes.patch'))
        self.assertIn('6 ignored files, applied to the checkout', read(run.report + '/summary.md'))
        self.assertEqual(git(self.checkout, 'status', '--short').strip(), 'M README.md')

    def test_each_that_a_gate_refuses_stays_out(self):
        run = self.shell(
            'mkdir -p build/nested build/repository/objects build/repository/refs build/venv/bin .agentic-ci; echo good >build/good; ln -s /etc/passwd build/passwd; '
            'ln -s ../../x build/above; ln -s build nowhere.log; mkfifo build/fifo; git init -q build/nested; echo x >build/nested/x; '
            'for name in HEAD objects/x refs/x; do echo x >build/repository/$name; done; echo home >build/venv/pyvenv.cfg; : >build/venv/bin/python; '
            f'echo instructions >AGENTS.md; echo {TOKEN} >build/token; printf "a\\0{TOKEN}" >build/hidden; head -c 20M /dev/zero >build/large; '
            'echo limits: >.agentic-ci/config.yml', options=APPLY, kind='success')
        left = self.left_out(run)
        for path, why in {'build/passwd': 'outside the checkout', 'build/above': 'outside the checkout', 'build/fifo': 'a named pipe',
                          'build/nested/.git': 'belongs to git', 'build/venv': 'works at its own place only', 'AGENTS.md': '', 'build/token': 'GitHub',
                          'build/hidden': 'GitHub', 'build/large': 'larger than 16777216 bytes', '.agentic-ci/config.yml': ''}.items():
            with self.subTest(path):
                self.assertIn(why, left.pop(path))
                self.assertFalse(os.path.lexists(f'{self.checkout}/{path}'))
        self.assertTrue(left)  # The repository lacks a part that makes it one.
        self.assertTrue(all('repository' in path and 'takes the directory' in why for path, why in left.items()), left)
        self.assertFalse(all(os.path.exists(f'{self.checkout}/build/repository/{name}') for name in ('HEAD', 'objects', 'refs')))
        self.assertEqual((self.there('build/good'), self.there('build/nested/x')), ('good\n', 'x\n'))
        self.assertTrue({finding['severity'] for finding in run.record['findings']} <= {'warning'})
        for name in os.listdir(run.report):
            self.assertNotIn(TOKEN, read(f'{run.report}/{name}'), name)

    def test_neither_half_of_a_repository_comes_to_the_other(self):
        write(self.checkout + '/.gitignore', RULES + 'objects/\nrefs/\n')
        git(self.checkout, 'commit', '-qam', 'rules')
        run = self.shell('mkdir -p d/objects d/refs; for name in HEAD objects/x refs/x; do echo x >d/$name; done', options=APPLY, kind='success')
        self.assertTrue(os.path.exists(self.checkout + '/d/HEAD'))
        self.assertFalse(all(os.path.exists(f'{self.checkout}/d/{name}') for name in ('objects', 'refs')))
        self.assertTrue(self.left_out(run))

    def test_the_checkout_s_own_rules_decide(self):
        run = self.shell('echo evil >>.gitignore; echo x >evil; echo "*.tmp" >build.gitignore; mkdir -p sub; echo "*" >sub/.gitignore; echo y >sub/hidden; '
                         'echo "!wanted.log" >>.gitignore; echo z >wanted.log; echo l >other.log; echo "*" >.git/info/exclude', options=APPLY, kind='success')
        for name in ('evil', 'sub/hidden'):
            self.assertFalse(os.path.exists(f'{self.checkout}/{name}'), name)
        self.assertEqual(run.record['changes']['ignored_paths'], ['other.log'])
        self.assertIn('b/wanted.log', read(run.report + '/changes.patch'))
        self.assertIn('ignored by a rule that the agent added', {f['message'].split(': ')[1] for f in run.record['findings']})

    def test_what_is_in_the_way_or_others_changed_stays(self):
        write(self.checkout + '/build/theirs', 'before\n')
        write(self.checkout + '/build/place/x', 'x\n')
        write(self.checkout + '/way', 'a file\n')
        process = self.started_agent('trap "echo agent >build/theirs; rm -r build/place; echo f >build/place; rm way; mkdir way; echo x >way/x; '
                                     'echo new >build/new; exit 0" USR1; echo ready; while :; do sleep 0.1; done; : "$0"', options=APPLY)
        self.assertEqual(process.stdout.readline(), b'ready\n')
        write(self.checkout + '/build/theirs', 'others\n')
        self.release()
        run = self.finish(process)
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual([self.there(name) for name in ('build/theirs', 'build/place/x', 'way', 'build/new')], ['others\n', 'x\n', 'a file\n', 'new\n'])
        self.assertEqual(set(self.left_out(run)), {'build/theirs', 'build/place', 'way/x'})

    def test_a_run_that_is_refused_applies_none(self):
        run = self.shell(f'echo {TOKEN} >new; mkdir build; echo x >build/x', options=APPLY, code=77)
        self.assertFalse(os.path.exists(self.checkout + '/build'))
        self.assertEqual(run.record['changes']['ignored_files'], 0)
        self.assertIn('--apply-ignored needs --apply', self.shell('true', options=['--apply-ignored'], code=64).err)

    def test_more_than_the_gates_allow_is_left_out_as_a_whole(self):
        write(self.checkout + '/.agentic-ci/config.yml', 'gates: {files: 5}\n')
        git(self.checkout, 'add', '-f', '-A')
        git(self.checkout, 'commit', '-qm', 'gates')
        run = self.shell('mkdir build; for i in 1 2 3 4 5 6; do echo $i >build/$i; done; echo x >>README.md', options=APPLY, kind='success')
        self.assertEqual(self.left_out(run), {'.': 'not applied: 6 files changed; the limit is 5 (gates.files)'})
        self.assertFalse(os.path.exists(self.checkout + '/build'))
        self.assertEqual(self.there('README.md'), 'hello\nx\n')

    def test_a_report_in_the_checkout_is_not_the_agent_s_to_write(self):
        write(self.checkout + '/.gitignore', RULES + 'agentic-ci-report/\n')
        git(self.checkout, 'commit', '-qam', 'rules')
        report = self.checkout + '/agentic-ci-report'
        run = self.shell('mkdir -p agentic-ci-report; echo forged >agentic-ci-report/run.json; echo forged >agentic-ci-report/planted; true', options=APPLY,
                         report=report, kind='success')
        self.assertEqual(run.outcome['kind'], 'success')
        self.assertFalse(os.path.exists(report + '/planted'))
