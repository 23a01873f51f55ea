# SPDX-License-Identifier: Apache-2.0
"""What appears in the checkout of a sandbox that is there already, and may hold a credential."""
import os
import pathlib
import subprocess

from harness import Case


class Late(Case):
    def test_credentials_that_appear_in_the_checkout_later_are_hidden(self):
        def other(*arguments):
            subprocess.run(['git', '-C', self.work + '/other', *arguments], env=self.env, check=True)
        work = pathlib.Path(self.work)
        (work / 'old').mkdir()
        (work / 'old/.npmrc').write_text('fund=false\n')
        look = 'cat .netrc sub/.netrc other/.git/config old/.npmrc .npmrc later.txt 2>/dev/null'
        self.create()
        # Not by the names that come later: overlayfs remembers that a name was not there.
        seen = self.script('echo mine >.npmrc; cat old/.npmrc .npmrc')['stdout']
        self.assertEqual(seen, 'fund=false\nmine\n' if self.TIER == 'namespaces' else seen)
        (work / 'sub').mkdir()
        for name in ('.netrc', 'sub/.netrc', '.npmrc'):
            (work / name).write_text('machine git.example login u password SECRET\n')
        (work / 'later.txt').write_text('later\n')
        (work / 'old/.npmrc').write_text('//registry.example/:_authToken=SECRET\n')  # In place.
        subprocess.run(['git', 'init', '-q', 'other'], cwd=work, env=self.env, check=True)
        other('config', 'user.name', 'shown')
        other('config', 'http.https://git.example/.extraheader', 'AUTHORIZATION: basic SECRET')
        result = self.script(look)
        self.assertNotIn('SECRET', result['stdout'])
        self.assertIn('mine\n', result['stdout'])  # The controls: the sandbox's own, and what is no credential.
        if self.TIER == 'namespaces':
            self.assertIn('later\n', result['stdout'])
            self.assertIn('name = shown', result['stdout'])
        self.assertEqual(result['changes'], [])
        other('config', 'http.https://git.example/.extraheader', 'AUTHORIZATION: basic SECRET-again')
        self.assertNotIn('SECRET', self.script(look)['stdout'])
        diff = self.call('sandbox', 'diff', 'one').stdout
        self.assertNotIn('netrc', diff)
        self.assertNotIn('SECRET', diff)
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        noted = [finding['path'] for finding in self.record()['findings'] if finding['rule'] == 'withheld-file']
        self.assertEqual(sorted(noted), ['.netrc', 'old/.npmrc', 'other/.git/config', 'sub/.netrc'] * (self.TIER == 'namespaces'))

    def test_credentials_that_appear_in_the_repository_of_a_worktree_are_hidden(self):
        git = pathlib.Path(self.work, '.git')
        subprocess.run(['git', '-C', self.work, 'worktree', 'add', '-q', self.base + '/tree'], env=self.env, check=True)
        self.work = self.base + '/tree'
        self.create()
        look = f'cat {git}/late/x {git}/credentials {git}/worktrees/tree/config.lock; git config test.mine'
        self.script('git config test.mine kept')  # Not by the names that come later, as above.
        (git / 'late').mkdir()
        for name in ('late/x', 'credentials', 'worktrees/tree/config.lock'):
            (git / name).write_text(('shown' if name == 'late/x' else 'password = SECRET') + '\n')
        subprocess.run(['git', 'config', 'test.theirs', 'x'], cwd=self.work, env=self.env, check=True)
        shown = 'shown\n' if self.TIER == 'namespaces' else ''  # In tier landlock git is a copy.
        for _ in range(2):
            self.assertEqual(self.script(look)['stdout'], shown + 'kept\n')
        self.script(f'echo of the sandbox >{git}/credentials 2>/dev/null')
        (git / 'credentials').write_text('password = SECRET-2\n')
        stdout = self.script(look)['stdout']
        self.assertNotIn('SECRET', stdout)
        if self.TIER == 'namespaces':
            self.assertIn('of the sandbox\n', stdout)

    def test_apply_copies_no_credentials_into_the_sandbox(self):
        git = pathlib.Path(self.work, '.git')
        names = ['credentials', 'config.lock', 'config.worktree', '.git-credentials', 'gone', 'other']
        of_all = ' '.join('.git/' + name for name in names)
        inside = 'git -c safe.directory=* -c user.name=t -c user.email=t@localhost '
        self.create()
        self.script(f'for name in {of_all}; do echo mine >$name; done; echo change >>a.txt; {inside} commit -qam inside')
        for name in names:
            if name != 'gone':
                (git / name).write_text('[http]\n\textraheader = AUTHORIZATION: basic SECRET\n')
        for _ in range(2):
            self.assertEqual(self.call('sandbox', 'apply', 'one').returncode, 0)
            stdout = self.script(f'cat {of_all} 2>/dev/null; {inside} log --format=%s')['stdout']
            self.assertNotIn('SECRET', stdout)
            # The controls: the sandbox keeps its own files, and git's state is the checkout's.
            if self.TIER == 'namespaces':
                self.assertEqual(stdout, 'mine\n' * 5 + 'first\n')
            self.script('echo more >>a.txt')


class NotLookedThrough(Case):
    """In tier landlock the sandbox has a copy."""

    def applies(self):
        return 'closed' not in self._testMethodName or os.geteuid() != 0  # Root reads it all the same.

    def refused(self, says, hint):
        done = self.call('sandbox', 'exec', 'one', '--', 'cat', 'new/.netrc')
        self.assertEqual((done.returncode, done.stdout), (77, ''), done.stderr)
        self.assertIn(' cannot be looked through for credentials', done.stderr)
        self.assertIn(says, done.stderr)
        self.assertIn('hint: ' + hint, done.stderr)

    def is_hidden_again(self):
        """The control: the sandbox goes on, without what is new."""
        self.says('ls -A new; echo $x', '1\n')

    def appear(self):
        work = pathlib.Path(self.work)
        (work / 'new').mkdir()
        (work / 'new/.netrc').write_text('machine git.example login u password SECRET\n')
        return work / 'new'

    def test_a_directory_that_appears_and_is_too_deep_keeps_commands_from_running(self):
        self.create()
        self.script('x=1; touch a')
        here = new = self.appear()
        for _ in range(260):
            here = here / 'd'
            here.mkdir()
        self.refused('new/d/d', f"rm -r '{new}/d/d")
        self.refused('new/d/d', f"rm -r '{new}/d/d")  # It is not forgotten.
        subprocess.run(['rm', '-r', new / 'd'], check=True)
        self.is_hidden_again()
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        noted = [finding['message'] for finding in self.record()['findings'] if finding['rule'] == 'withheld-file']
        self.assertEqual(len(noted), 2, noted)  # Each once.
        self.assertTrue(noted[0].startswith('a command was refused: new/d/d'), noted)
        self.assertTrue(noted[1].startswith('hidden from the sandbox'), noted)

    def test_a_directory_that_appears_closed_keeps_commands_from_running(self):
        self.create()
        self.script('x=1')
        new = self.appear()
        for mode in (0, 0o111, 0o444):
            new.chmod(mode)
            self.refused('new', f"chmod u+rx '{new}'")
        new.chmod(0o755)
        self.is_hidden_again()
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        new.chmod(0)
        made = self.call('sandbox', 'create', '--name', 'two', '--workdir', self.work, '--report-dir', self.report + '2')
        self.assertEqual(made.returncode, 77, made.stderr)
        new.chmod(0o755)
