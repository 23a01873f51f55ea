# SPDX-License-Identifier: Apache-2.0
"""What the agent did is what the patch says: each patch is applied to a fresh clone, beside the same commands outside."""
import os
import subprocess

from harness import GONE_SECONDS, TIER, Case, git, only_as, read, wait_until, write

HIDDEN = """version: 1
filesystem_policy:
  %s
  read_only: [/usr, /bin, /lib, /lib64, /etc]
network_policies: {}
"""


class Patches(Case):
    def test_checkout_that_the_policy_hides_is_not_deleted(self):
        for key in ('include_workdir: false', ''):
            with self.subTest(key=key):
                options = ['--policy', self.policy(HIDDEN % key), '--apply']
                run = self.run_agent('true', options=options, kind='success')
                self.assertEqual(read(run.report + '/changes.patch'), '')
                self.assertTrue(run.record['changes']['complete'])
                self.assertEqual(read(self.checkout + '/README.md'), 'hello\n')
                denied = self.shell('cat README.md || true', options=options)
                self.assertNotIn('hello', denied.out)

    def test_links_that_are_too_many_to_follow_refuse_any_change(self):
        os.makedirs(self.checkout + '/.claude')
        os.makedirs(self.checkout + '/shared')
        for number in range(401):
            os.symlink('../shared', f'{self.checkout}/.claude/{number}')
        for number in range(250):
            os.symlink('nowhere', f'{self.checkout}/shared/{number}')
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'links')
        run = self.shell('echo new >new.txt', code=77)
        self.assertIn('symbolic links protect is not known: too many symbolic links', run.err)
        self.run_agent('true')
        os.remove(self.checkout + '/shared/249')  # The control: 401 times 249 can be followed.
        git(self.checkout, 'commit', '-qam', 'one less')
        self.shell('echo new >new.txt')

    def test_sha256_repository_is_refused_by_name(self):
        other = self.dir + '/sha256'
        os.mkdir(other)
        made = subprocess.run(['git', 'init', '-q', '--object-format=sha256', other], capture_output=True)
        self.feature('sha256', made.returncode == 0, 'this git makes no such repository')
        for options in ((), ('--policy-ref', 'worktree')):
            run = self.run_agent('true', checkout=other, options=options, code=69)
            self.assertIn('names its objects by SHA-256, and only SHA-1 is supported', run.err)
            self.assertIn('hint: git init --object-format=sha1 DIR', run.err)

    def test_hints_of_a_sparse_blobless_clone_help_when_typed(self):
        write(self.checkout + '/.agentic-ci/openshell-policy.yml', 'endpoints: []\n')
        write(self.checkout + '/.agentic-ci/config.yml', 'gates: {files: 5}\n')
        write(self.checkout + '/deep/file', 'one\n')
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'second')
        base = git(self.checkout, 'rev-parse', 'HEAD')
        write(self.checkout + '/deep/file', 'two\n')
        git(self.checkout, 'commit', '-qam', 'third')
        head = git(self.checkout, 'rev-parse', 'HEAD')
        for key in ('allowFilter', 'allowAnySHA1InWant'):
            git(self.checkout, 'config', 'uploadpack.' + key, 'true')
        clone = self.dir + "/the clone's"  # As actions/checkout makes one.
        os.mkdir(clone)
        git(clone, 'init', '-q')
        git(clone, 'remote', 'add', 'origin', 'file://' + self.checkout)
        git(clone, 'config', 'remote.origin.promisor', 'true')
        git(clone, 'config', 'remote.origin.partialclonefilter', 'blob:none')
        git(clone, 'fetch', '-q', '--filter=blob:none', '--depth=1', 'origin', head)
        git(clone, 'sparse-checkout', 'set', 'deep')
        git(clone, 'checkout', '-q', '--detach', head)
        for what in ('no ref named', 'object not found'):
            run = self.run_agent('true', checkout=clone, options=['--policy-ref', base], code=66)
            self.assertIn(what, run.err)
            hint = run.err.split('hint: ')[1].splitlines()[0]
            subprocess.run(['sh', '-ec', hint], cwd=clone, check=True, capture_output=True)
        run = self.shell('echo three > deep/file', checkout=clone, options=['--policy-ref', base])
        self.assertEqual([line for line in read(run.report + '/changes.patch').splitlines() if line.startswith('diff')],
                         ['diff --git a/deep/file b/deep/file'])


POINTER = 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 12\\n'
# Name: (what is in the checkout, what the agent does). {commit} stands for adding and committing everything.
ROUND_TRIPS = {
    'edits': ('mkdir d; echo a > d/a; echo b > b', 'echo x >> d/a; rm b; echo n > new'),
    'renames': ('seq 50 > a; mkdir d; seq 60 > d/b', 'mv a z; mv d/b d/c; echo x >> z'),
    'renamed directory': ('mkdir -p d/e; seq 9 > d/e/f; seq 8 > d/g', 'mkdir n; cp -a d n/; rm -r d; echo x >> n/d/g'),
    'exchange': ('seq 50 > a; seq 99 | tac > b', 'mv a t; mv b a; mv t b'),
    'exchanged directories': ('mkdir a b; echo 1 > a/f; echo 2 > b/f; echo 3 > b/g',
                              'mkdir t; cp -a a b t/; rm -r a b; cp -a t/a b; cp -a t/b a; rm -r t'),
    'modes': ('echo a > a; echo b > b; chmod +x b; echo c > c', 'chmod +x a; chmod -x b; chmod 600 c'),
    'mode and text': ('seq 9 > a', 'chmod +x a; echo x >> a'),
    'links': ('echo a > a; ln -s a l; mkdir d', 'ln -sfn d l; ln -s a new; rm a; ln -s nowhere a'),
    'link becomes file': ('echo a > a; ln -s a l; echo f > f', 'rm l f; echo x > l; ln -s a f'),
    'file becomes directory': ('echo a > a; mkdir d; echo b > d/b', 'rm a; mkdir a; echo x > a/x; rm -r d; echo y > d'),
    'binary': ("head -c 3000 /dev/zero > z; printf 'a\\0b' > b", "printf 'x\\0' >> z; printf '\\377\\0\\1' > n; rm b"),
    'empty and without newline': ('printf a > a; : > e; echo n > n', 'printf b > a; printf x > e; : > n; : > new'),
    'odd names': ('', 'echo 1 > "a b"; echo 2 > "ü"; echo 3 > "$(printf "t\\tn\\nl")"; echo 4 > \'q"\'; mkdir "e "; '
                  'echo 5 > "e /x"; echo 6 > -d; echo 7 > "back\\\\s"; echo 8 > "\u202e"'),
    'rule taken away': ("printf 'dist/\\n*.log\\n' > .gitignore",
                        'echo "*.log" > .gitignore; mkdir dist; echo 1 > dist/wanted; echo 2 > dist/x.log'),
    'rules added': ('', 'mkdir -p node_modules/p; echo 2 > node_modules/p/i; echo node_modules/ > .gitignore; echo 3 > kept'),
    'rules beneath': ('mkdir -p p/q; echo 1 > p/q/a',
                      'printf "*.o\\n/only\\n!keep.o\\nq/z\\n" > p/.gitignore; for f in p/x.o p/q/y.o p/only p/q/only '
                      'p/keep.o p/q/z x.o; do echo $f > $f; done; mkdir -p "n[1]/d"; echo "d/" > "n[1]/.gitignore"; '
                      'echo 1 > "n[1]/d/x"; mkdir -p n1/d; echo 1 > n1/d/x'),
    'ignore file removed': ('echo "*.o" > .gitignore; mkdir d; echo "*.a" > d/.gitignore',
                            'rm .gitignore d/.gitignore; echo 1 > x.o; echo 2 > d/x.a'),
    'rule over a tracked file': ('echo a > a; mkdir d; echo b > d/b', 'printf "a\\nd/\\n" > .gitignore; echo x >> a; echo x >> d/b'),
    'line endings': ("printf '*.txt text eol=crlf\\n*.c ident\\n' > .gitattributes; printf 'one\\ntwo\\n' > w.txt; echo '$Id$' > i.c; "
                     'cp w.txt gone.txt', "sed -i s/two/TWO/ w.txt; echo x >> i.c; rm gone.txt; printf 'a\\r\\n' > n.txt"),
    'attributes changed': ("printf '*.txt text eol=crlf\\n' > .gitattributes; printf 'one\\ntwo\\n' > w.txt",
                           "echo '*.md eol=crlf' > .gitattributes; echo x >> w.txt; printf 'a\\r\\n' > n.md"),
    'pointers of git-lfs': (f"echo '*.bin filter=lfs -text' > .gitattributes; printf '{POINTER}' 1 > a.bin; printf '{POINTER}' 2 > b.bin",
                            f"printf '{POINTER}' 3 > a.bin; mkdir d; mv b.bin d/"),
    'a commit': ('echo a > a', 'echo x >> a; git add -A; git commit -qm work; echo y >> a; git rm -q README.md'),
    'added in spite of a rule': ('echo dist/ > .gitignore', 'mkdir dist; echo 1 > dist/a; echo 2 > dist/b; git add -f dist/a'),
    'rules with many stars': ("printf 'out/\\np/**/src/**/gen/**\\n' > .gitignore",
                              'mkdir -p out p/a/src/gen; echo 1 > out/x; echo 2 > p/a/src/gen/y; echo 3 > p/z'),
    'ignored as before': ('echo "build/" > .gitignore', 'mkdir build; echo 1 > build/x; echo 2 > kept'),
}
IDENTITY = {f'GIT_{who}_{what}': 'a@localhost' for who in ('AUTHOR', 'COMMITTER') for what in ('NAME', 'EMAIL')}
# What a patch cannot carry, and what the record says of it.
LOST = {
    'large file': ('', 'head -c 200M /dev/zero > large', 'larger than 16777216 bytes'),
    'submodule': ('git -c protocol.file.allow=always submodule --quiet add "$PWD" sub', 'echo x >> sub/README.md',
                  'a change in the submodule sub, which a patch of this repository cannot contain'),
    'filter driver': ("echo '*.f filter=upper' > .gitattributes; git config filter.upper.clean 'tr a-z A-Z'; echo one > a.f", 'echo two > a.f',
                      'converted by the filter driver upper, which is not run'),
    'content of git-lfs': ("echo '*.bin filter=lfs -text' > .gitattributes", 'printf x > new.bin', 'kept by git-lfs, which a patch cannot carry'),
}
MANY = ('mkdir s; for i in $(seq 3000); do echo "x$i" > s/$i.c; done', 'sed -i "1i // header" s/*.c')


class RoundTrips(Case):
    """The patch, applied to a fresh clone, gives the tree that the same commands give outside."""

    def tree(self, directory):
        git(directory, 'add', '-A')
        return git(directory, 'write-tree')

    def prepare(self, before):
        checkout = self.dir + '/made'
        self.make_checkout(checkout)
        subprocess.run(['sh', '-ec', before], cwd=checkout, check=True)
        git(checkout, 'add', '-A')
        git(checkout, 'commit', '-q', '--allow-empty', '-m', 'before')
        git(checkout, 'rm', '-rq', '--cached', '.')  # So that every file is as git writes it.
        git(checkout, 'reset', '-q', '--hard')
        return checkout

    def round_trip(self, before, commands):
        checkout = self.prepare(before)
        outside = self.dir + '/outside'
        subprocess.run(['cp', '-a', checkout, outside], check=True)
        subprocess.run(['sh', '-ec', commands], cwd=outside, check=True, env={**os.environ, **IDENTITY})
        run = self.shell('set -e; ' + commands, checkout=checkout)
        fresh = self.dir + '/fresh'
        git(self.dir, 'clone', '-q', checkout, fresh)
        if os.path.getsize(run.report + '/changes.patch') > 0:
            git(fresh, 'apply', '--index', run.report + '/changes.patch')
        self.assertEqual(git(fresh, 'ls-files', '-s'), (self.tree(outside), git(outside, 'ls-files', '-s'))[1])
        self.assertTrue(run.record['changes']['complete'])
        for path in (checkout, outside, fresh):
            subprocess.run(['rm', '-rf', path], check=True)
        return run

    def test_patch_applied_to_a_clone_gives_the_tree_of_the_same_commands(self):
        for name, (before, commands) in ROUND_TRIPS.items():
            with self.subTest(name=name):
                subprocess.run(['rm', '-rf', *(self.dir + '/' + part for part in ('made', 'outside', 'fresh'))], check=True)
                self.round_trip(before, commands)

    def test_patch_of_a_worktree_and_of_partial_checkouts_is_that_of_a_whole_one(self):
        made = self.prepare('mkdir -p d deep/e; seq 9 > d/b; seq 5 > d/c; echo f > deep/e/f; echo a > a')
        for key in ('allowFilter', 'allowAnySHA1InWant'):
            git(made, 'config', 'uploadpack.' + key, 'true')
        commands = 'echo x >> d/b; mv a d/z; rm d/c; echo n > d/new'
        clone = ['clone', '-q', '--no-checkout', 'file://' + made]
        kinds = {'worktree': [(made, 'worktree', 'add', '-q', '-b', 'work', 'PATH')],
                 'sparse': [(self.dir, *clone, 'PATH'), ('PATH', 'sparse-checkout', 'set', 'd'), ('PATH', 'checkout', '-q')],
                 'blobless': [(self.dir, *clone, '--filter=blob:none', 'PATH'), ('PATH', 'checkout', '-q')],
                 'shallow': [(self.dir, *clone, '--depth=1', 'PATH'), ('PATH', 'checkout', '-q')]}
        outside, fresh = self.dir + '/outside', self.dir + '/fresh'
        git(self.dir, 'clone', '-q', made, outside)
        subprocess.run(['sh', '-ec', commands], cwd=outside, check=True)
        self.tree(outside)
        for kind, steps in kinds.items():
            with self.subTest(kind=kind):
                checkout = f'{self.dir}/{kind}'
                for at, *words in steps:
                    git(at.replace('PATH', checkout), *(word.replace('PATH', checkout) for word in words))
                self.assertEqual(os.path.exists(checkout + '/deep'), kind != 'sparse')
                run = self.shell('set -e; ' + commands, checkout=checkout)
                git(self.dir, 'clone', '-q', made, fresh)
                git(fresh, 'apply', '--index', run.report + '/changes.patch')
                self.assertEqual(git(fresh, 'ls-files', '-s'), git(outside, 'ls-files', '-s'))
                subprocess.run(['rm', '-rf', fresh], check=True)

    def test_what_a_patch_cannot_carry_makes_it_incomplete(self):
        for name, (before, commands, reason) in LOST.items():
            with self.subTest(name=name):
                subprocess.run(['rm', '-rf', self.dir + '/made'], check=True)
                checkout = self.prepare(before)
                run = self.run_agent('sh', '-ec', commands + '; echo x >> README.md', checkout=checkout, code=77, kind='refused')
                self.assertFalse(run.record['changes']['complete'])
                self.assertIn(reason, read(run.report + '/findings.sarif'))
                self.assertIn('+x', read(run.report + '/changes.patch'))

    def test_line_endings_are_applied_as_git_checks_them_out(self):
        checkout = self.prepare(ROUND_TRIPS['line endings'][0])
        self.assertIn(b'one\r\ntwo\r\n', open(checkout + '/w.txt', 'rb').read())  # Control.
        self.shell(ROUND_TRIPS['line endings'][1], checkout=checkout, options=['--apply'])
        self.assertEqual(open(checkout + '/w.txt', 'rb').read(), b'one\r\nTWO\r\n')
        self.assertRegex(read(checkout + '/i.c'), r'^\$Id: [0-9a-f]{40} \$\nx\n$')
        git(checkout, 'add', '-A')
        patch = read(self.dir + '/report-1/changes.patch')
        self.assertIn(git(checkout, 'rev-parse', ':w.txt'), patch)

    @only_as('root' if TIER == 'namespaces' else 'user')  # Once a tier: it costs a quarter of a minute.
    def test_codemod_over_three_thousand_files_is_accepted(self):
        self.assertEqual(self.round_trip(*MANY).outcome['kind'], 'success')

    def test_scratch_inside_the_checkout_is_neither_copied_nor_a_change(self):
        inside = self.checkout + '/tmp'
        os.mkdir(inside)
        for place in (self.dir, self.checkout, inside):  # Root's agent is another user.
            os.chmod(place, 0o755)
        run = self.shell('ls tmp; echo x >> README.md', env={'TMPDIR': inside})
        self.assertEqual(run.out, '')
        self.assertEqual([line for line in read(run.report + '/changes.patch').splitlines() if line.startswith('diff')],
                         ['diff --git a/README.md b/README.md'])
        self.assertEqual(os.listdir(inside), [])

    @only_as('user')
    def test_file_that_only_others_can_read_is_no_change(self):
        locked = write(self.checkout + '/locked', 'of another user')
        os.chmod(locked, 0)
        run = self.shell('cat locked; echo x > new')
        self.assertEqual([line for line in read(run.report + '/changes.patch').splitlines() if line.startswith('diff')],
                         ['diff --git a/new b/new'])
        self.assertTrue(run.record['changes']['complete'])
        # What the agent puts there has no base to compare it with.
        run = self.shell('rm -f locked; echo y > locked', code=77)
        self.assertFalse(run.record['changes']['complete'])
        self.assertIn('locked', run.err)

    def run_beside(self, before, after, person, code=0):
        """A person changes the checkout between the agent's first and second commands."""
        script = f'trap go=1 USR1; {before}; echo ready; while [ -z "$go" ]; do sleep 0.1 & wait $!; done; {after}'
        process = self.started_agent(script, options=['--apply'])
        self.assertEqual(process.stdout.readline(), b'ready\n')
        # What a person changes while the runner still looks at the checkout is a conflict: the look is a thread of its own.
        self.assertTrue(wait_until(lambda: len(os.listdir(f'/proc/{process.pid}/task')) == 1, GONE_SECONDS))
        subprocess.run(['sh', '-ec', person], cwd=self.checkout, check=True)
        self.release()
        run = self.finish(process)
        self.assertEqual(run.code, code, run.err)
        return run

    def test_work_of_others_in_the_checkout_meanwhile_stays(self):
        write(self.checkout + '/a', '1\n')
        write(self.checkout + '/d/b', '2\n')
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'second')
        run = self.run_beside('echo x >> a', 'echo y >> a', 'echo work > notes.txt; echo 3 >> d/b')
        self.assertEqual([line for line in read(run.report + '/changes.patch').splitlines() if line.startswith('diff')],
                         ['diff --git a/a b/a'])
        for path, text in (('a', '1\nx\ny\n'), ('notes.txt', 'work\n'), ('d/b', '2\n3\n')):
            self.assertEqual(read(f'{self.checkout}/{path}'), text)
        # A file that both have changed is neither's alone: the agent's version lies beside the patch, and the rest is delivered.
        run = self.run_beside('echo x >> d/b; echo x > d/new', ':', "sed -i 's/2/edited/' d/b")
        self.assertEqual(self.conflicts(run), [('d/b', 'changed in the checkout while the agent worked')])
        self.assertEqual(read(run.report + '/conflicts/d/b'), '2\n3\nx\n')
        self.assertNotIn('edited', read(run.report + '/changes.patch'))
        self.assertEqual((read(self.checkout + '/d/b'), read(self.checkout + '/d/new')), ('edited\n3\n', 'x\n'))
        for said in (run.err, read(run.report + '/summary.md'), read(run.report + '/report.html'), read(run.report + '/findings.sarif')):
            self.assertIn('conflicts/d/b', said)
        self.run_agent('true', report=run.report)
        self.assertFalse(os.path.exists(run.report + '/conflicts'))

    def conflicts(self, run):
        told = [finding for finding in run.record['findings'] if finding['rule'] == 'conflict']
        return [(finding['path'], finding['message'].split(';')[0].split(': ')[1]) for finding in told]

    def test_file_that_was_touched_outside_has_not_changed(self):
        write(self.checkout + '/dirty', 'committed\n')
        write(self.checkout + '/d/b', '2\n')
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'second')
        write(self.checkout + '/dirty', 'of the person\n')
        write(self.checkout + '/untracked', 'of the person\n')
        for person in ('touch README.md dirty untracked', 'chmod 600 README.md; chmod 644 README.md', 'chown -R "$(id -u)" .',
                       'cp -p README.md n; mv n README.md', 'echo y >> README.md; git checkout -q README.md',
                       'git stash -qu; git stash pop -q', 'ln README.md n; rm n', 'touch d; mv d n; mv n d'):
            with self.subTest(person=person):
                run = self.run_beside('echo x >> README.md', 'echo x >> dirty; echo x >> untracked; rm -r d', person)
                self.assertEqual(self.conflicts(run), [])
                self.assertEqual((read(self.checkout + '/dirty'), os.path.exists(self.checkout + '/d')), ('of the person\nx\n', False))
                self.assertEqual((read(self.checkout + '/README.md'), read(self.checkout + '/untracked')),
                                 ('hello\nx\n', 'of the person\nx\n'))
            git(self.checkout, 'checkout', '-q', 'README.md', 'd')
            for name in ('dirty', 'untracked'):
                write(f'{self.checkout}/{name}', 'of the person\n')

    def test_file_that_was_removed_or_moved_outside_is_a_conflict(self):
        write(self.checkout + '/d/b', '2\n')
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'second')
        for person, path in (('rm README.md', 'README.md'), ('mv d moved', 'd/b')):
            with self.subTest(person=person):
                run = self.run_beside('echo x >> README.md; echo x >> d/b', 'echo n > new', person)
                self.assertEqual(self.conflicts(run), [(path, 'removed in the checkout while the agent worked')])
                self.assertEqual(read(f'{run.report}/conflicts/{path}').split()[-1], 'x')
                self.assertFalse(os.path.exists(f'{self.checkout}/{path}'))
                self.assertEqual(read(self.checkout + '/new'), 'n\n')
            git(self.checkout, 'checkout', '-q', '.')
        run = self.run_beside('echo x > new', 'rm README.md', 'echo edited > README.md')
        self.assertEqual([path for path, _ in self.conflicts(run)], ['README.md'])
        self.assertFalse(os.path.exists(run.report + '/conflicts'))
        self.assertEqual(read(self.checkout + '/README.md'), 'edited\n')

    def test_conflict_does_not_reveal_a_secret(self):
        process = self.started_agent('trap go=1 USR1; echo ready; while [ -z "$go" ]; do sleep 0.1 & wait $!; done; '
                                     'printf "ghp_%s\\n" 0123456789abcdefghijABCDEFGHIJ012345 >> README.md; echo x > new')
        self.assertEqual(process.stdout.readline(), b'ready\n')
        write(self.checkout + '/README.md', 'edited\n')
        self.release()
        run = self.finish(process)
        self.assertEqual(run.code, 77, run.err)
        self.assertIn('secrets', run.err)

    def test_virtual_environment_that_the_agent_made_refuses_nothing(self):
        made = 'mkdir -p %s/bin; echo home = /usr/bin > %s/pyvenv.cfg; ln -s /usr/bin/python3 %s/bin/python; echo x > new'
        run = self.shell(made.replace('%s', 'sub/env'))
        self.assertEqual([line for line in read(run.report + '/changes.patch').splitlines() if line.startswith('diff')],
                         ['diff --git a/new b/new'])
        told = [(finding['path'], finding['severity']) for finding in run.record['findings'] if 'virtual environment' in finding['message']]
        self.assertEqual(told, [('sub/env', 'warning')])
        self.shell('ln -s /usr/bin/python3 python', code=77)  # The control.

    def test_virtual_environment_at_another_path_is_named(self):
        write(self.checkout + '/.venv/pyvenv.cfg', 'home = /usr/bin\n')
        run = self.shell('echo x > new')
        told = [finding['message'] for finding in run.record['findings'] if finding['rule'] == 'moved-environment']
        self.assertEqual(len(told), 1 if TIER == 'landlock' else 0, told)
        for message in told:
            self.assertIn('.venv/bin/python -m MODULE', message)

    def test_files_that_a_new_rule_ignores_are_named(self):
        run = self.round_trip(*ROUND_TRIPS['rules added'])
        self.assertIn('ignored by a rule that the agent added', read(run.report + '/findings.sarif'))
        run = self.round_trip(*ROUND_TRIPS['ignored as before'])
        self.assertNotIn('ignored by a rule', read(run.report + '/findings.sarif'))

    def test_rules_that_are_not_in_the_patch_hide_nothing(self):
        run = self.shell('echo new > .git/info/exclude; git config --global core.excludesFile "$HOME/rules"; '
                         'echo new > "$HOME/rules"; echo x > new; git status --short')
        self.assertNotIn('?? new', run.out)
        self.assertIn('b/new', read(run.report + '/changes.patch'))

    def test_findings_file_that_cannot_be_read_is_named_and_refuses_nothing(self):
        for make, why in (('head -c 5000000 /dev/zero > F', 'larger than 4194304 bytes'), ('ln -s /etc/hostname F', 'a symbolic link is not followed'),
                          ('mkfifo F', 'not a regular file'), ('mkdir F; echo x > F/x', 'a directory'), ('echo x > F', 'agentic-ci-findings.json')):
            with self.subTest(make=make):
                run = self.shell(make.replace('F', 'agentic-ci-findings.json') + '; echo x >> README.md')
                told = [finding for finding in run.record['findings'] if finding['rule'] == 'findings-file']
                self.assertEqual(len(told), 1)
                self.assertIn(why, told[0]['message'])
                self.assertIn('+x', read(run.report + '/changes.patch'))
        run = self.shell('echo \'{"findings": [{"message": "m"}]}\' > agentic-ci-findings.json')  # The control.
        self.assertEqual([(finding['rule'], finding['message']) for finding in run.record['findings']][0][1], 'm')
        self.assertNotIn('agentic-ci-findings', read(run.report + '/changes.patch'))
