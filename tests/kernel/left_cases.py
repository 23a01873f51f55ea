# SPDX-License-Identifier: Apache-2.0
"""Credentials that earlier steps left in a checkout: where they are hard to find, and where they cannot be looked for."""
import json
import os

from harness import BIN, CANARY, ROOT, Case, git, only_as, read, write

LOCAL = ('-c', 'protocol.file.allow=always')
TOKEN = f'[http "https://git.example/"]\n\textraheader = AUTHORIZATION: basic {CANARY}\n'
# Reads below paths that are longer than the kernel takes.
GO_DOWN = '''
import os, sys
for top in sys.argv[1:]:
    here = os.open(top, os.O_RDONLY)
    while True:
        names = os.listdir(here)
        for name in names:
            if not name.startswith('d'):
                print(top, name, os.read(os.open(name, os.O_RDONLY, dir_fd=here), 100))
        below = [name for name in names if name.startswith('d')]
        if not below:
            break
        here = os.open(below[0], os.O_RDONLY, dir_fd=here)
'''


def make_deep(top, name, depth, leaf):
    """Makes `depth` directories in each other below `top`, and the file `leaf` in the last one."""
    os.makedirs(top)
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        here, above = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    with open(os.open(leaf, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here), 'w') as file:
        file.write(CANARY)
    os.close(here)


class LeftCredentials(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)  # In tier landlock root's agent is another user.

    def shown(self, *places, checkout=None):
        """The files that have the canary, as the agent finds them."""
        run = self.shell(f'grep -rls {CANARY} {" ".join(places or ".")}; true', checkout=checkout)
        return sorted(run.out.split())

    def left(self, checkout=None):
        """The control: the same outside."""
        return sorted(self.outside(f'cd {checkout or self.checkout}; grep -rls {CANARY} .').split())

    def refused(self, says, hint):
        for options in ([], ['--plan-only']):
            run = self.run_agent('true', code=77, options=options)
            self.assertIn(says, run.err)
            self.assertIn('cannot be looked through for credentials', run.err)
            self.assertIn(f'agentic-ci: hint: {hint}', run.err)

    def submodule(self, repository, source, path):
        git(repository, *LOCAL, 'submodule', '--quiet', 'add', source, path)
        git(repository, 'commit', '-qm', 'with ' + path)

    def test_submodules_in_any_depth_are_shown_without_their_tokens(self):
        leaf, middle, top = (self.make_checkout(f'{self.dir}/{name}') for name in ('leaf', 'middle', 'top'))
        self.submodule(middle, leaf, 'lib/leaf')
        self.submodule(top, middle, 'lib/middle')
        for source, path in ((leaf, 'a/b'), (leaf, 'third_party/one/two/three/four'), (top, 'lib/top')):
            self.submodule(self.checkout, source, path)
        git(self.checkout, *LOCAL, 'submodule', '--quiet', 'update', '--init', '--recursive')
        git(self.checkout, 'submodule', '--quiet', 'foreach', '--recursive',
            f'git config http.https://git.example/.extraheader "basic {CANARY}"')
        self.assertEqual(len(self.left()), 5, self.left())
        self.assertEqual(self.shown(), [])
        deepest = 'lib/top/lib/middle/lib/leaf'
        run = self.shell(f'git -C {deepest} log --format=%s; git -C {deepest} config --get-regexp "url|extra"')
        self.assertEqual(run.out, f'first\nremote.origin.url {leaf}\n')

    def test_a_linked_worktree_is_shown_without_what_lies_in_its_repository(self):
        leaf = self.make_checkout(self.dir + '/leaf')
        self.submodule(self.checkout, leaf, 'sub')
        tree = self.dir + '/tree'
        git(self.checkout, 'worktree', 'add', '-q', tree)
        git(tree, *LOCAL, 'submodule', '--quiet', 'update', '--init')
        for place in (tree, tree + '/sub', self.checkout + '/sub'):
            git(place, 'config', 'http.https://git.example/.extraheader', 'basic ' + CANARY)
        common = self.checkout + '/.git'
        for name in ('credentials', '.git-credentials', 'gha-creds-12.json', 'config.lock', 'worktrees/tree/credentials'):
            write(f'{common}/{name}', TOKEN)
        self.assertEqual(len(self.left()), 8, self.left())
        run = self.shell(f'grep -rls {CANARY} . {common} $(git rev-parse --git-common-dir); git log --format=%s', checkout=tree)
        self.assertEqual(run.out, 'with sub\nfirst\n')
        self.assertEqual(self.shown(), [])  # Nor from the main one.

    def test_credentials_in_git_directories_are_not_shown(self):
        self.make_checkout(self.checkout + '/other')
        git(self.checkout, 'clone', '-q', '--bare', 'other', 'mirror.git')
        git(self.checkout, 'branch', 'credentials')
        git(self.checkout, 'branch', '_netrc')
        for place in ('.git', 'other/.git', 'mirror.git', '.git/modules/a'):
            for name in ('credentials', '.git-credentials', 'gha-creds-12.json', '.netrc', '.docker/config.json', 'config.lock', 'config~'):
                write(f'{self.checkout}/{place}/{name}', TOKEN)
        self.assertEqual(len(self.left()), 28)
        self.assertEqual(self.shown(), [])
        script = 'git config user.email a@b; git branch --format="%(refname:short)"; git status --short -uno; git -C mirror.git log --format=%s'
        self.assertEqual(self.shell(script).out, '_netrc\ncredentials\nmain\nfirst\n')

    def test_what_appears_while_the_agent_works_is_not_given_to_the_checks(self):
        top = self.checkout
        write(top + '/.npmrc', 'fund=false\n')
        git(top, 'add', '.npmrc')
        git(top, 'commit', '-qm', 'settings')
        agent = 'trap "echo of the agent >a.txt; exit 0" USR1; echo ready; while :; do sleep 0.1; done; : "$0"'
        look = f'grep -rls {CANARY[:-1]}[{CANARY[-1]}] .'  # The configuration, which has this, does not count.
        check = f'cat a.txt later.txt .npmrc; {look}; git log --format=%s'
        task = {'command': ['sh', '-c', agent, self.marker], 'checks': {'run': [check]}}
        write(top + '/.agentic-ci/config.yml', json.dumps({'tasks': {'late': task}}))
        process = self.start([], options=['--policy-ref', 'worktree', '--task', 'late'])
        self.assertEqual(process.stdout.readline(), b'ready\n')
        write(top + '/later.txt', 'later\n')
        write(top + '/.npmrc', f'fund=false\n//r.example/:_authToken={CANARY}\n')
        self.make_checkout(top + '/other')
        for name in ('.netrc', '.git/credentials', '.git/config.lock', '.ssh/id', 'included'):
            write(f'{top}/{name}', TOKEN)
        write(top + '/other/.git/config', TOKEN + f'[include]\n\tpath = {top}/included\n')
        self.release()
        run = self.finish(process)
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(len(self.left()), 7, self.left())
        self.assertEqual(read(run.report + '/checks/1/agent.log'), 'of the agent\nlater\nfund=false\nsettings\nfirst\n')

    def test_links_that_lead_to_links_hide_what_lies_behind_them(self):
        top = self.checkout
        for path in ('dir/hosts.yml', 'token', 'aws/credentials', 'cache/token.json'):
            write(f'{top}/{path}', CANARY)
        os.mkdir(top + '/conf')
        for link, target in (('.config', 'conf'), ('conf/gh', '../dir'), ('.netrc', 'first'), ('first', 'token'),
                             ('.aws', 'aws'), ('aws/sso', '../cache'), ('conf/.config', '..'), ('conf/hub', '.')):
            os.symlink(target, f'{top}/{link}')
        self.assertEqual(len(self.left()), 4)
        self.assertEqual(self.shown(), [])

    def test_what_lies_below_too_long_a_path_is_not_shown(self):
        for top, depth in (('short', 14), ('long', 24)):
            make_deep(f'{self.checkout}/{top}', 'd' * 200, depth, '.git-credentials')
        control = self.outside(f"python3 -c '{GO_DOWN}' short long".replace("'d'", '"d"'))
        self.assertEqual(control.count(CANARY), 2)
        self.refused('long/ddd', '--workdir DIRECTORY')
        self.outside('rm -r long')
        self.assertEqual(self.run_agent('python3', '-c', GO_DOWN, 'short').out, '')

    def test_a_checkout_that_is_too_deep_to_be_looked_through_is_refused(self):
        make_deep(self.checkout + '/packages/deep', 'd', 260, 'file')
        write(self.checkout + '/packages/app/.npmrc', f'//r.example/:_authToken={CANARY}\n')
        self.refused('packages/deep/d/d/d', f"rm -r '{self.checkout}/packages/deep/d/d/d")
        self.outside('rm -r packages/deep')
        make_deep(self.checkout + '/packages/deep', 'd', 100, '.netrc')
        self.assertEqual(len(self.left()), 2)
        self.assertEqual(self.shown(), [])

    def close(self, mode):
        for name in ('closed', 'open'):
            write(f'{self.checkout}/p/{name}/.git-credentials', CANARY)
            write(f'{self.checkout}/p/{name}/.aws/x', CANARY)
        os.chmod(self.checkout + '/p/closed', mode)

    def test_what_its_owner_closed_is_not_shown(self):
        opens = f'chmod -R u+rwx p 2>/dev/null; grep -rls {CANARY} .; ls -A p/open'
        for mode in (0, 0o111, 0o444):
            with self.subTest(oct(mode)):
                self.close(mode)
                try:
                    if ROOT:  # Who reads it.
                        self.assertEqual(self.shell(opens).out, '.aws\n')
                    else:
                        self.refused('p/closed', f"chmod u+rx '{self.checkout}/p/closed'")
                finally:
                    os.chmod(self.checkout + '/p/closed', 0o755)
        self.assertEqual(len(self.left()), 4)  # The control.
        self.assertEqual(self.shell(opens).out, '.aws\n')

    @only_as('root')
    def test_what_another_user_closed_keeps_nobody_from_running(self):
        self.feature('root', ROOT, 'only root gives files to others')
        self.close(0o711)
        as_other = f'setpriv --reuid 12399 --regid 12399 --clear-groups {BIN} run --workdir . --report-dir {self.dir}/r/r'
        self.outside(f'mkdir {self.dir}/r; chown -R 12399:12399 . {self.dir}/r; chown 0:0 p/closed; chmod 700 p/closed')
        out = self.outside(f'TMPDIR={self.dir}/r {as_other} -- sh -c "chmod 777 p/closed; cat p/closed/.git-credentials; ls p" 2>&1')
        self.assertNotIn(CANARY, out)
        self.assertIn('closed\nopen\n', out)
