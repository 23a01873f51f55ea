# SPDX-License-Identifier: Apache-2.0
"""What of the host's files an agent can read, and where what it writes ends up."""
import os
import socket
import tempfile

from harness import BASE, CANARY, FIXTURES, ROOT, Case, git, only_as, only_in, read, write

OPEN_POLICY = '''version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/]
  read_write: [/tmp, /sandbox]
'''
# With FIXTURES, all of these are the suite's own. Without, they hold what the machine holds: any number of files.
PLACES = '/root /home /mnt /srv /run /var/run /var/spool /var/mail /etc /var/tmp /tmp /dev/shm .' if FIXTURES else '.'
SEARCH = f'grep -rls {CANARY} {PLACES} '


class Files(Case):
    def setUp(self):
        super().setUp()
        self.runner_temp = self.dir + '/runner-temp'
        write(self.runner_temp + '/_github_token', CANARY)
        write(self.home + '/.ssh/id_ed25519', CANARY)
        write(self.home + '/.netrc', CANARY)
        write(self.dir + '/elsewhere/file', CANARY)
        git(self.checkout, 'config', 'http.https://github.com/.extraheader',
            'AUTHORIZATION: basic ' + CANARY)
        git(self.checkout, 'remote', 'add', 'origin', f'https://x:{CANARY}@example.com/o/r.git')

    def found(self, run):
        return [line for line in run.out.splitlines() if line.startswith(('/', './'))]

    def search(self, **more):
        run = self.shell(f'{SEARCH} {self.dir} || true; echo searched',
                         env={'RUNNER_TEMP': self.runner_temp,
                              'GITHUB_OUTPUT': self.dir + '/elsewhere/file'}, **more)
        self.assertIn('searched', run.out)
        return self.found(run)

    def test_no_secret_of_the_host_is_readable_under_the_built_in_policy(self):
        control = self.outside(f'{SEARCH} {self.dir}').split()
        self.assertGreaterEqual(len(control), 26 if FIXTURES else 5, control)
        self.assertEqual(self.search(), [])

    def test_no_secret_of_the_host_is_readable_where_the_policy_opens_everything(self):
        self.assertEqual(self.search(options=['--policy', self.policy(OPEN_POLICY)]), [])

    def test_secrets_beneath_a_directory_the_policy_opens_stay_hidden(self):
        self.feature('root', FIXTURES, 'nobody here can put secrets into /root and /home')
        policy = self.policy(OPEN_POLICY.replace('[/]', '[/usr, /etc, /home, /var]'))
        run = self.shell('cat /home/alice/source/x.c; ' + SEARCH + '|| true',
                         options=['--policy', policy])
        self.assertIn(CANARY, run.out)  # What the policy does open is there.
        # The suite's own directory is opened with /var where it lies there.
        self.assertEqual([path for path in self.found(run) if not path.startswith(BASE)], ['/home/alice/source/x.c'])

    def test_git_of_the_checkout_works_without_its_credentials(self):
        run = self.shell('git status --porcelain && git log --format=%s && git config --list;'
                         'echo | git credential fill; cat .git/config')
        self.assertIn('first', run.out)
        self.assertIn('example.com/o/r.git', run.out)
        self.assertNotIn(CANARY, run.out)
        self.assertIn(CANARY, self.outside('git config --list'))

    def leave_credentials(self):
        """What steps before a run leave in a workspace."""
        top, other = self.checkout, self.checkout + '/other'
        write(top + '/.npmrc', 'registry=https://r.example/\n')
        write(top + '/docs/.netrc', 'machine example\n')
        git(top, 'add', '.')
        git(top, 'commit', '-qm', 'settings')
        write(top + '/.npmrc', f'//r.example/:_authToken={CANARY}\n')
        write(top + '/more/.npmrc', 'package-lock=false\n')
        for path in ('.netrc', 'a/.git-credentials', '.docker/config.json', 'a/.aws/sso/cache/x', 'gha-creds-01ab.json', 'key'):
            write(f'{top}/{path}', CANARY)
        os.makedirs(top + '/.config/gh')
        os.symlink('../../key', top + '/.config/gh/hosts.yml')
        self.make_checkout(other)  # As a second actions/checkout with `path:`.
        git(top, 'clone', '-q', '--bare', other, 'mirror.git')
        git(other, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', top + '/mirror.git', 'sub')
        for place in (other, top + '/mirror.git', other + '/sub'):
            git(place, 'config', 'http.https://github.com/.extraheader', 'basic ' + CANARY)
        write(top + '/.credentials.config', f'[include]\n\tpath = {self.dir}/elsewhere/more\n[http "x"]\n\textraheader = {CANARY}\n')
        write(self.dir + '/elsewhere/more', f'[http "y"]\n\textraheader = {CANARY}\n')
        git(top, 'config', 'includeIf.gitdir:/.path', top + '/.credentials.config')

    def test_credentials_that_steps_left_in_the_checkout_are_not_shown(self):
        self.leave_credentials()
        for place in (self.dir, self.dir + '/elsewhere'):
            os.chmod(place, 0o755)
        script = (f'grep -rls {CANARY} . {self.dir}/elsewhere/more; cat .npmrc docs/.netrc more/.npmrc; '
                  'git -C other log --format=%s; git -C mirror.git log --format=%s; git -C other/sub log --format=%s; '
                  'git status --short; echo x >> README.md')
        control = self.outside(f'grep -rl {CANARY} . {self.dir}/elsewhere/more; true').split()
        self.assertEqual(len(control), 13, control)
        opened = OPEN_POLICY.replace('[/]', f'[/usr, /etc, {self.dir}/elsewhere]')
        run = self.shell(script, options=['--policy', self.policy(opened)])
        self.assertEqual(run.out, 'registry=https://r.example/\nmachine example\npackage-lock=false\n' + 'first\n' * 3 +
                         '?? .config/\n?? mirror.git/\n?? more/\n?? other/\n', run.err)
        self.assertEqual([line for line in read(run.report + '/changes.patch').splitlines() if line.startswith('diff')],
                         ['diff --git a/README.md b/README.md'])
        said = {finding['path']: finding['message'] for finding in run.record['findings'] if finding['rule'] == 'withheld-file'}
        self.assertEqual(sorted(said), ['.credentials.config', '.docker/config.json', '.netrc', '.npmrc', 'a/.aws/sso/cache/x',
                                        'a/.git-credentials', 'gha-creds-01ab.json', 'key'])
        self.assertIn('as in HEAD', said.pop('.npmrc'))
        self.assertTrue(all(message.startswith('not given') for message in said.values()), said)
        self.assertEqual(run.outcome['kind'], 'success')

    @only_as('root')
    @only_in('namespaces')
    def test_docker_socket_is_absent(self):
        self.feature('root', ROOT, 'only root can listen where docker does')
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind('/run/docker.sock')
            try:
                script = 'ls /run/docker.sock /var/run/docker.sock 2>/dev/null; echo done'
                self.assertIn('/run/docker.sock', self.outside(script))
                for options in ([], ['--policy', self.policy(OPEN_POLICY)]):
                    self.assertEqual(self.shell(script, options=options).out.strip(), 'done')
            finally:
                os.remove('/run/docker.sock')

    def test_nothing_outside_can_be_written(self):
        places = ['/usr/probe', '/usr/bin/probe', '/etc/probe', '/etc/passwd', '/probe', '/root/probe',
                  '/home/probe', '/var/lib/probe', '/proc/sys/kernel/hostname',
                  '/sys/probe', '/dev/probe', '/etc/openshell-tls/openshell-ca.pem',
                  '/etc/ssl/certs/ca-certificates.crt', '/run/probe']
        script = ''.join(f'(echo x >> {place}) 2>/dev/null && echo wrote {place};' for place in places)
        run = self.shell(script + 'true', options=['--policy', self.policy(OPEN_POLICY)])
        self.assertEqual(run.out, '')
        self.assertEqual(self.shell(script + 'true').out, '')
        self.assertEqual([place for place in places if place.endswith('/probe') and
                          os.path.exists(place)], [])
        # The control: the same line writes where it may.
        self.assertIn('wrote', self.shell('(echo x >> probe) && echo wrote').out)

    def test_nothing_outside_can_be_emptied_by_opening_it(self):
        # The agent's user may write all of them. An access mode of 3 asks for neither reading nor writing.
        shown = tempfile.mkdtemp(prefix='shown-', dir=self.dir)
        places = [shown + '/file', self.dir + '/elsewhere/file', self.home + '/.netrc', self.checkout + '/README.md']
        write(places[0], CANARY)
        os.chmod(self.dir, 0o755)
        os.chmod(shown, 0o777)
        os.chmod(places[0], 0o666)
        before = [read(place) for place in places]
        program = "python3 -c 'import os, sys; os.open(sys.argv[1], int(sys.argv[2]) | os.O_TRUNC)'"
        mine = f'echo x >mine; {program} mine {os.O_WRONLY}; test -s mine || echo emptied;'
        opened = self.policy(f'version: 1\nfilesystem_policy: {{include_workdir: true, read_only: [/usr, {shown}]}}\n')
        for mode in (3, os.O_RDONLY):
            script = ''.join(f'{program} {place} {mode} 2>/dev/null;' for place in places)
            run = self.shell(mine + script + 'true', options=['--policy', opened])
            self.assertEqual(run.out, 'emptied\n')
            self.assertEqual([read(place) for place in places], before, mode)
            self.outside(f'{program} {places[1]} {mode}')  # The control: anybody else's program empties it.
            self.assertEqual(read(places[1]), '')
            write(places[1], CANARY)

    @only_in('namespaces')
    def test_private_places_can_be_written_and_stay_private(self):
        name = 'private-' + self.marker
        script = ''.join(f'echo x > {place}/{name} && echo ok;' for place in
                         ('/tmp', '/sandbox', '/var/tmp', '/dev/shm', '.'))
        for options in ([], ['--policy', self.policy(OPEN_POLICY)]):
            run = self.shell(script + 'echo x > /dev/null && echo ok; ls /var/tmp', options=options)
            self.assertEqual([word for word in run.out.split() if word != os.path.basename(BASE)], ['ok'] * 6 + [name])
        for place in ('/tmp', '/var/tmp', '/dev/shm', self.checkout):
            self.assertFalse(os.path.exists(f'{place}/{name}'))

    def test_checkout_is_untouched_without_apply(self):
        before = self.outside('git status --porcelain; cat README.md; ls -a . .git')
        run = self.shell('echo more >> README.md; rm -rf .git; echo x > new; mkdir d; echo > d/f')
        self.assertEqual(self.outside('git status --porcelain; cat README.md; ls -a . .git'), before)
        self.assertIn('more', open(run.report + '/changes.patch').read())

    def test_apply_brings_the_changes_and_nothing_of_git(self):
        self.shell('echo more >> README.md; echo x > new; printf "#!/bin/sh\\n" > tool; chmod +x tool;'
                   'ln -s new link; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit;'
                   'git config core.fsmonitor evil', options=['--apply'])
        self.assertEqual(self.outside('cat README.md new; readlink link; test -x tool && echo x'),
                         'hello\nmore\nx\nnew\nx\n')
        self.assertFalse(os.path.exists(self.checkout + '/.git/hooks/pre-commit'))
        self.assertNotIn('evil', open(self.checkout + '/.git/config').read())
        self.assertIn(CANARY, open(self.checkout + '/.git/config').read())

    def test_links_do_not_lead_out(self):
        outside = self.dir + '/elsewhere/file'
        run = self.shell(f'ln -s {outside} s; cat s 2>/dev/null; (echo bad > s) 2>/dev/null; rm s;'
                         'ln /etc/passwd h 2>/dev/null && echo linked;'
                         'mknod c c 1 3 2>/dev/null && echo made; mkfifo p && echo fifo')
        self.assertEqual(run.out, 'fifo\n')
        self.assertEqual(open(outside).read(), CANARY)

    def test_link_in_the_checkout_to_the_host_is_not_followed_when_applying(self):
        target = self.dir + '/elsewhere'
        os.symlink(target, self.checkout + '/out')
        git(self.checkout, 'add', '.')
        git(self.checkout, 'commit', '-qm', 'link')
        self.shell('rm out; mkdir out; echo evil > out/evil', options=['--apply'])
        self.assertEqual(sorted(os.listdir(target)), ['file'])

    def test_moving_a_denied_file_does_not_open_it(self):
        run = self.shell('mv /etc/shadow /tmp/x 2>/dev/null && cat /tmp/x; mv /etc /tmp/etc 2>/dev/null && echo moved;'
                         'echo x > y; mv y z && cat z')
        self.assertEqual(run.out, 'x\n')  # What is the agent's own moves.
        run = self.shell('mv .git g && mkdir .git; cat g/config; rm -rf g')
        self.assertIn('[remote "origin"]', run.out)
        self.assertNotIn(CANARY, run.out)

    def test_setuid_programs_give_nothing(self):
        run = self.shell('cp /bin/sh own; chmod 4755 own; ./own -c "id -u"; '
                         'grep NoNewPrivs /proc/self/status; for f in $(find /usr/bin -perm -4000 | '
                         'head -3); do $f </dev/null >/dev/null 2>&1; done; id -u')
        own = run.out.split()[0]
        self.assertEqual(run.out.split(), [own, 'NoNewPrivs:', '1', own])
        self.assertNotEqual(own, '0')

    @only_in('namespaces')
    def test_every_mount_refuses_setuid_and_all_but_private_ones_are_read_only(self):
        run = self.shell('cat /proc/self/mountinfo')
        writable = {'/tmp', '/var/tmp', '/sandbox', '/dev/shm', self.checkout, '/proc'}
        self.assertIn(f' {self.checkout} ', run.out)
        for line in run.out.splitlines():
            fields = line.split()
            place, options = fields[4], fields[5].split(',')
            self.assertIn('nosuid', options, line)
            if not place.startswith('/dev/') and place not in writable:
                self.assertIn('ro', options, line)

    def test_report_in_the_checkout_is_out_of_the_agents_reach(self):
        report = self.checkout + '/agentic-ci-report'
        os.mkdir(report)
        write(report + '/run.json', '{"tool_version": "0", "outcome": {}}')  # An earlier run's.
        self.shell('test -z "$(ls -A agentic-ci-report)" || exit 9;'
                   '! echo forged > agentic-ci-report/run.json 2>/dev/null || exit 8;'
                   '! ln -s /etc/passwd agentic-ci-report/summary.md 2>/dev/null || exit 7',
                   report=report, code=0)
        self.assertNotEqual(open(report + '/run.json').read(), 'forged\n')
        self.assertFalse(os.path.islink(report + '/summary.md'))
