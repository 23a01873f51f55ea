# SPDX-License-Identifier: Apache-2.0
"""Checkouts as people have them: odd names, odd places, odd kinds."""
import glob
import os
import shutil
import subprocess

from harness import BASE, BIN, CANARY, FIXTURES, PLACE, ROOT, SCRATCH, Case, git, only_as, only_in, read, write

NAMES = ['with space', 'comma,name', 'colon:name', 'back\\slash', 'ünïcode ✓', "quo'te\"s", '-dash',
         'new\nline', '$(id)', 'lowerdir=x,upperdir=y:z', '%s%n', 'a' * 200]


class Checkouts(Case):
    def works(self, checkout, **more):
        """Reads, changes and applies in `checkout`."""
        run = self.run_agent('sh', '-c', 'cat README.md; echo changed > README.md; echo x > new',
                             checkout=checkout, options=['--apply'], **more)
        self.assertEqual(run.out, 'hello\n')
        self.assertEqual(open(checkout + '/README.md').read(), 'changed\n')
        self.assertEqual(os.stat(checkout + '/new').st_uid, os.geteuid())
        return run

    def test_pipes_and_devices_where_git_keeps_its_files_hold_nothing_up(self):
        with open(BIN, 'rb') as file:
            static = b'/ld-linux' not in file.read(1 << 16)
        self.feature('static', static, 'what libgit2 opens is checked in the static program alone')
        pipe, plain = self.dir + '/pipe', write(self.dir + '/plain', '[user]\n\tname = x\n')
        os.mkfifo(pipe)

        def include(git_dir, target):
            with open(git_dir + '/config', 'a') as file:
                file.write(f'[include]\n\tpath = {target}\n')

        def link(name):
            def make(git_dir):
                os.makedirs(os.path.dirname(git_dir + '/' + name), exist_ok=True)
                if os.path.lexists(git_dir + '/' + name):
                    os.remove(git_dir + '/' + name)
                os.symlink(pipe, git_dir + '/' + name)
            return make

        def commit_object(git_dir):
            head = git(os.path.dirname(git_dir), 'rev-parse', 'HEAD')
            link(f'objects/{head[:2]}/{head[2:]}')(git_dir)

        cases = {'include': lambda at: include(at, pipe), 'object': commit_object,
                 'device': lambda at: include(at, '/dev/zero')}
        for name in ('config', 'HEAD', 'index', 'packed-refs', 'objects/info/alternates',
                     'info/exclude', 'info/attributes', 'commondir', 'refs/heads/main'):
            cases[name] = link(name)
        for name, spoil in cases.items():
            with self.subTest(name=name):
                checkout = self.make_checkout(f'{self.dir}/{name.replace("/", "-")}')
                spoil(checkout + '/.git')
                line = ['sh', '-c', 'echo x > README.md; echo y > new']
                run = self.finish(self.start(line, checkout=checkout), 20)
                self.assertIsNotNone(run.record)
                self.assertNotEqual(run.code, 70)
        checkout = self.make_checkout(self.dir + '/control')
        include(checkout + '/.git', plain)
        self.works(checkout)

    def test_path_may_have_any_characters(self):
        for name in NAMES:
            with self.subTest(name=name):
                self.works(self.make_checkout(os.path.join(self.dir, name)))

    def test_relative_workdir_and_the_default_are_found(self):
        self.run_agent('test', '-f', 'README.md', checkout='checkout')
        self.run_agent('test', '-f', 'README.md', checkout='./checkout/.')
        line, _ = self.command(['test', '-f', 'README.md'])
        at = line.index('--workdir')
        done = subprocess.run(line[:at] + line[at + 2:], cwd=self.checkout, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    @only_in('namespaces')
    def test_workdir_through_a_link_is_the_place_itself(self):
        os.symlink(self.checkout, self.dir + '/link')
        run = self.run_agent('pwd', checkout=self.dir + '/link')
        self.assertEqual(run.out.strip(), os.path.realpath(self.checkout))

    def test_checkout_in_the_home_directory(self):
        home = '/root' if ROOT else self.home
        place = os.path.join(home, 'checkout-' + self.marker)
        self.feature('root', FIXTURES or not ROOT, 'the test does not write to a real home')
        try:
            self.works(self.make_checkout(place))
            write(home + '/beside', 'x')
            run = self.shell(f'cat {home}/beside; ls -a {home}; true', checkout=place)
            self.assertRegex(run.out, 'beside: (Permission denied|No such file)')
            self.assertNotIn('beside\n', run.out)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def test_checkout_on_a_tmpfs(self):
        self.feature('root', FIXTURES, 'nobody here can mount one')
        self.works(PLACE + '/checkout')

    def test_checkout_that_is_read_only(self):
        self.feature('root', FIXTURES, 'nobody here can mount one')
        run = self.shell('echo changed > README.md && cat README.md', checkout=PLACE + '/sealed')
        self.assertEqual(run.out, 'changed\n')
        self.assertEqual(open(PLACE + '/sealed/README.md').read(), 'hello\n')

    def test_checkout_with_mounts_in_it(self):
        self.feature('root', FIXTURES, 'nobody here can mount one')
        run = self.shell('cat README.md; ls volume', checkout=PLACE + '/nested')
        self.assertEqual(run.out, 'hello\n')

    @only_as('root')
    @only_in('namespaces')
    def test_host_with_mounts_in_etc_as_every_container_has(self):
        self.feature('root', ROOT, 'only root can mount there')
        hosts = write(self.dir + '/hosts', 'of the container\n')
        line, _ = self.command(['sh', '-c', f'cat /etc/hosts; id -un; touch /etc/{self.marker}; cat /etc/shadow'])
        script = f'mount --bind {hosts} /etc/hosts; exec "$@"'
        done = subprocess.run(['unshare', '-m', 'sh', '-c', script, 'sh', *line], text=True,
                              capture_output=True, cwd=self.dir)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('localhost sandbox', done.stdout)
        self.assertNotIn('container', done.stdout)
        self.assertIn('Read-only file system', done.stdout + done.stderr)
        self.assertIn('/etc/shadow: Permission denied', done.stdout + done.stderr)

    def test_files_only_their_owner_may_read(self):
        os.chmod(self.checkout + '/README.md', 0o600)
        write(self.checkout + '/private/file', 'x\n', 0o600)
        os.chmod(self.checkout + '/private', 0o700)
        self.assertEqual(self.shell('cat README.md private/file; echo y > private/file').out,
                         'hello\nx\n')

    @only_as('root')
    @only_in('namespaces')
    def test_checkout_of_another_user_is_handed_over_by_root(self):
        self.feature('root', ROOT, 'only root can give a checkout to another user')
        other = self.make_checkout(self.dir + '/other')
        subprocess.run(['chown', '-R', '23456:23457', other], check=True)
        os.chmod(other + '/README.md', 0o600)
        run = self.shell('cat README.md; echo x >> README.md; stat -c %u:%g README.md; touch new',
                         checkout=other, options=['--apply'])
        self.assertEqual(run.out, 'hello\n1000:1000\n')
        self.assertEqual(open(other + '/README.md').read(), 'hello\nx\n')
        # Root makes the report's directory there, which is no reason to copy the checkout.
        run = self.shell('cat README.md', checkout=other, report=other + '/agentic-ci-report')
        self.assertNotIn('a copy', str(run.record['isolation']['controls']))

    def copies(self, checkout):
        """A run on a copy of `checkout`, which shows and changes every file; the copy is gone afterwards."""
        before = set(os.listdir(SCRATCH))
        run = self.shell('git status --short && cat README.md && echo changed > README.md && '
                         'mv README.md moved && mkdir README.md && echo "uid=$(stat -c %u:%g moved)"', checkout=checkout)
        self.assertIn('hello', run.out)
        self.assertEqual(run.values()['uid'], '1000:1000')
        control = [c for c in run.record['isolation']['controls'] if c['name'] == 'checkout']
        self.assertRegex(control[0]['note'], r"^a copy is the workspace's lower layer \(.*\): \d+ files")
        patch = read(run.report + '/changes.patch')
        self.assertIn('b/moved', patch)
        self.assertIn('+changed', patch)
        self.assertEqual(run.record['changes']['files'], 2, patch)
        self.assertEqual(read(checkout + '/README.md'), 'hello\n')
        self.assertEqual(set(os.listdir(SCRATCH)), before)
        return run

    @only_as('user')
    @only_in('namespaces')
    def test_checkout_of_another_user_is_copied(self):
        self.feature('root', FIXTURES, 'nobody here can give a checkout to another user')
        self.copies(BASE + '/foreign')

    @only_as('root')
    @only_in('namespaces')
    def test_checkout_of_another_group_is_copied(self):
        self.feature('root', ROOT, 'only root can give a checkout to another group')
        for owner in ('0:23457', '23456:0'):
            other = self.make_checkout(self.dir + '/' + owner)
            subprocess.run(['chown', '-R', owner, other], check=True)
            self.copies(other)

    def test_checkout_of_mixed_owners_can_be_changed(self):
        """As after `docker run -v $PWD:/work`, in which root and another user wrote."""
        self.feature('root', FIXTURES, 'nobody here can give files to others')
        mixed = BASE + ('/mixed-root' if ROOT else '/mixed-user')
        script = ('set -e; echo x >> made/by/root; echo x >> roots; rm made/others; mkdir made/new; mv made/by moved; '
                  'git add -A; git commit -qm work; git status --short; stat -c %u moved/root')
        run = self.shell(script, checkout=mixed)
        self.assertNotEqual(run.out, '0\n')
        patch = read(run.report + '/changes.patch')
        for line in ('rename to moved/root', '+++ b/roots', 'deleted file'):
            self.assertIn(line, patch)

    @only_as('root')
    @only_in('namespaces')
    def test_checkout_whose_ids_cannot_be_mapped_is_copied(self):
        """On overlayfs, as in a container."""
        self.feature('root', ROOT, 'only root can mount one')
        lower = self.make_checkout(self.dir + '/lower')
        for name in ('upper', 'work', 'merged'):
            os.mkdir(f'{self.dir}/{name}')
        merged = self.dir + '/merged'
        subprocess.run(['mount', '-t', 'overlay', 'overlay', '-o',
                        f'lowerdir={lower},upperdir={self.dir}/upper,workdir={self.dir}/work', merged], check=True)
        try:
            self.copies(merged)
        finally:
            subprocess.run(['umount', merged], check=True)

    def test_copy_larger_than_the_disk_limit_is_69_with_what_to_type(self):
        self.feature('root', FIXTURES, 'nobody here can mount into a checkout')
        large = BASE + '/foreign' if not ROOT else self.make_checkout(self.dir + '/large')
        if ROOT:
            subprocess.run(['chown', '-R', '0:23457', large], check=True)
        run = self.run_agent('true', checkout=large, options=['--disk', '1KiB'], code=69)
        self.assertIn('copying the checkout', run.err)
        self.assertIn('hint: --disk', run.err)

    @only_in('namespaces')
    def test_program_that_only_its_owner_may_reach_runs(self):
        """As root, where /root is such a place: the agent is another user than the runner."""
        private = self.dir + '/private'
        os.mkdir(private, 0o700)
        shutil.copy('/bin/echo', private + '/echo')
        os.chmod(private + '/echo', 0o700)
        self.assertEqual(self.run_agent(private + '/echo', 'hello').out, 'hello\n')

    def test_directory_without_git(self):
        plain = self.dir + '/plain'
        write(plain + '/README.md', 'hello\n')
        run = self.shell('echo x > new', checkout=plain)
        self.assertIn('new', open(run.report + '/changes.patch').read())

    GIT_WORKS = ('git log --format=%s && git diff --stat && echo x > new && git status --short;'
                 'cat "$(git rev-parse --git-common-dir)/config"; git remote -v;'
                 'echo x > "$(git rev-parse --git-common-dir)/planted"; true')

    def git_works(self, checkout):
        """Git answers in the sandbox and shows no credential; the host's repository stays as it is."""
        os.chmod(self.dir, 0o755)  # In tier landlock root's agent is another user.
        git(checkout, 'config', 'http.https://github.com/.extraheader', 'basic ' + CANARY)
        git(checkout, 'remote', 'add', 'elsewhere', f'https://u:{CANARY}@h/x.git')
        run = self.shell(self.GIT_WORKS, checkout=checkout)
        self.assertIn('?? new\n', run.out)
        self.assertIn('elsewhere\thttps://h/x.git', run.out)
        self.assertNotIn(CANARY, run.out)
        self.assertIn('new', read(run.report + '/changes.patch'))
        common = os.path.join(checkout, git(checkout, 'rev-parse', '--git-common-dir'))
        self.assertFalse(os.path.exists(common + '/planted'))
        self.assertNotIn('Read-only file system', run.out + run.err)

    def test_git_works_in_a_checkout(self):
        self.git_works(self.checkout)

    def test_git_works_in_a_worktree(self):
        git(self.checkout, 'worktree', 'add', '-q', self.dir + '/tree')
        self.git_works(self.dir + '/tree')

    def test_worktree_with_relative_paths_is_read(self):
        """As git 2.48 makes them; an older one refuses the extension."""
        git(self.checkout, 'worktree', 'add', '-q', self.dir + '/tree')
        own = self.checkout + '/.git/worktrees/tree'
        write(self.dir + '/tree/.git', f'gitdir: {os.path.relpath(own, self.dir + "/tree")}\n')
        write(own + '/gitdir', os.path.relpath(self.dir + '/tree/.git', own) + '\n')
        git(self.checkout, 'config', 'core.repositoryFormatVersion', '1')
        git(self.checkout, 'config', 'extensions.relativeWorktrees', 'true')
        run = self.shell('echo x > new', checkout=self.dir + '/tree')
        self.assertEqual(run.record['changes']['files'], 1)

    def test_git_works_in_a_submodule_and_with_a_git_directory_elsewhere(self):
        git(self.dir, 'clone', '-q', '--separate-git-dir', self.dir + '/store', self.checkout, 'apart')
        self.git_works(self.dir + '/apart')
        git(self.checkout, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add',
            self.dir + '/apart', 'sub')
        self.git_works(self.checkout + '/sub')

    def test_git_works_with_borrowed_objects(self):
        git(self.dir, 'clone', '-q', '--shared', self.checkout, 'borrower')
        self.git_works(self.dir + '/borrower')

    @only_in('namespaces')
    def test_git_file_shows_nothing_but_a_repository_of_the_checkout(self):
        git(self.checkout, 'worktree', 'add', '-q', self.dir + '/tree')
        own = read(self.dir + '/tree/.git')
        write(self.dir + '/other/.git', own)  # Another directory's worktree, and a place that is none.
        write(self.checkout + '/.git/canary', CANARY)
        line = f'cat {self.checkout}/.git/canary {self.dir}/home/canary; true'
        write(self.dir + '/home/canary', CANARY)
        self.assertNotIn(CANARY, self.shell(line, checkout=self.dir + '/other').out)
        self.assertIn(CANARY, self.shell(line, checkout=self.dir + '/tree').out)  # Control.

    def test_change_in_a_submodule_is_refused_and_says_so(self):
        git(self.checkout, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add',
            self.checkout, 'sub')
        git(self.checkout, 'commit', '-qm', 'submodule')
        self.shell('cat sub/README.md; git -C sub status; git status; echo x > new')
        run = self.shell('echo x >> sub/README.md', code=77, kind='refused')
        findings = [f for f in run.record['findings'] if f['refuses']]
        self.assertEqual([f['path'] for f in findings], ['sub/README.md'])
        self.assertIn('in the submodule sub', findings[0]['message'])

    def test_empty_directory(self):
        os.mkdir(self.dir + '/empty')
        self.shell('ls -A; echo x > new', checkout=self.dir + '/empty')

    def test_root_of_the_file_system_is_no_checkout(self):
        self.run_agent('true', checkout='/', code=64)

    @only_in('namespaces')
    def test_checkout_inside_a_directory_of_the_policy(self):
        self.feature('root', FIXTURES, 'the place must lie outside /tmp')
        policy = self.policy('version: 1\nfilesystem_policy:\n  include_workdir: true\n'
                             f'  read_only: [/usr, "{PLACE}"]\n')
        write(PLACE + '/scratch/beside', 'beside\n')
        run = self.shell('cat ../scratch/beside README.md; echo x > new && echo wrote;'
                         '(echo x > ../scratch/y) 2>/dev/null || echo refused',
                         options=['--policy', policy], checkout=PLACE + '/checkout')
        self.assertEqual(run.out.split()[-3:], ['changed' if 'changed' in run.out else 'hello',
                                                'wrote', 'refused'])
        self.assertIn('beside\n', run.out)

    @only_in('namespaces')
    def test_directory_the_policy_opens_for_writing_is_private(self):
        self.feature('root', FIXTURES, 'the place must lie outside /tmp')
        place = PLACE + '/scratch/cache,with:odd name'
        write(place + '/old', 'old\n')
        policy = self.policy('version: 1\nfilesystem_policy:\n  include_workdir: true\n'
                             f'  read_only: [/usr]\n  read_write: ["{place}"]\n')
        run = self.shell(f'cd "{place}"; cat old; echo new > old; cat old; echo x > made; ls',
                         options=['--policy', policy])
        self.assertEqual(run.out.split(), ['old', 'new', 'made', 'old'])
        self.assertEqual(open(place + '/old').read(), 'old\n')
        self.assertEqual(os.listdir(place), ['old'])
