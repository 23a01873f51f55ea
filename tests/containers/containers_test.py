#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tier landlock in default containers, and what doctor says to type for more.

containers_test.py AGENTIC_CI DOCKER-PROFILE [NAME...]

Starts a container for each seccomp profile and user; driver.py does the rest in there and prints what happened as one
JSON object. No container has a network but its own loopback.
"""
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CONTAINMENT = os.path.join(HERE, '..', 'kernel', 'containment')
sys.path[:0] = [CONTAINMENT, HERE]
import hosts  # noqa: E402
import probes  # noqa: E402,F401: fills the table.
import table  # noqa: E402

# Docker's is given: what a job under Docker may call.
PROFILES = {'podman': [], 'docker': ['--security-opt', f'seccomp={sys.argv[2]}']}
STARTED = {}  # Profile and user -> what its container printed, in time.
# What a default container answers by itself, before anything of ours is asked: {probe: answer}.
OF_CONTAINERS = {
    'Files of the host: Read `/etc/shadow`': 'ENOENT',
    'Files of the host: Add a program': 'EROFS',
    'Kinds of sockets: Talk to the kernel: audit': 'EINVAL',
    'Kinds of sockets: Talk to the hypervisor': 'EPERM',
    'Kinds of sockets: Use the kernel\'s ciphers': 'EPERM',
    'Kinds of sockets: Find an interface that leads out': 'ENOENT',
    'Kinds of sockets: Choose the interface': 'ENODEV',
}
# ... and, by one profile or both, to what an ordinary process of the host may do.
REFUSED = {
    'Kinds of sockets': {'Talk to the kernel: audit', 'Talk to the hypervisor', 'Use the kernel\'s ciphers', 'UDP-Lite'},
    'Mounts and file systems': {'Watch files as any user may', 'Set quotas', 'Set quotas by descriptor',
                                'Configure a file system'},
    'Namespaces': {'Make a user namespace', 'Start a process in a new user namespace',
                   'Make a user namespace by the newest call'},
    'Processes of the host': {'Copy a descriptor of a process', 'Give away a process\'s memory', 'Compare kernel objects',
                              'Move a process\'s pages', 'Move a process to other memory'},
    'The kernel\'s surface': {'Set up a ring of calls', 'Enter a ring', 'Register with a ring', 'Handle page faults',
                              'Keys: make a ring', 'Keys: add one', 'Keys: ask for one', 'Set a clock',
                              'Make a process by the newest call'},
}
LIMITS = ['--ulimit', 'nproc=1024:1024', '--ulimit', 'nofile=1024:1024']


def only_root(case):
    """For a case about what only root's runs have."""
    case.only_root = True
    return case


def make_root(base):
    """A container's root: the host's programs, read-only, and a few files of /etc."""
    root = base + '/root'
    for name in ('usr', 'etc', 'proc', 'sys', 'dev', 'tmp', 'var/tmp', 'run', 'root', 'test', 'shown', 'runner', 'setuid',
                 'containment'):
        os.makedirs(f'{root}/{name}', exist_ok=True)
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        os.symlink('usr/' + name, f'{root}/{name}')
    for name in ('tmp', 'var/tmp'):
        os.chmod(f'{root}/{name}', 0o1777)
    for name in ('ssl', 'alternatives', 'ld.so.cache', 'nsswitch.conf'):
        if os.path.isdir('/etc/' + name):
            shutil.copytree('/etc/' + name, f'{root}/etc/{name}', symlinks=True,
                            ignore=shutil.ignore_patterns('private'))
        elif os.path.exists('/etc/' + name):
            shutil.copy('/etc/' + name, f'{root}/etc/{name}')
    with open(root + '/etc/passwd', 'w') as file:
        file.write('root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n')
    with open(root + '/etc/group', 'w') as file:
        file.write('root:x:0:\nuser:x:1000:\n')
    with open(root + '/etc/resolv.conf', 'w') as file:
        file.write('nameserver 192.0.2.53\n')
    with open(root + '/etc/hosts', 'w') as file:
        file.write('127.0.0.1 localhost\n')
    shutil.copy('/usr/bin/id', root + '/setuid/id')
    os.chmod(root + '/setuid/id', 0o4755)
    return root


def store(base):
    """Podman's own files below `base`: nothing of a podman that runs beside it, which removes all of them when it is reset."""
    return ['--root', base + '/store', '--runroot', base + '/runroot', '--tmpdir', base + '/podman']


def podman(base, profile, user, *command, options=()):
    # Everything a container keeps is this test's own.
    return subprocess.run(
        ['podman', *store(base), '--runtime', 'runc', 'run', '--rm', '--network', 'none', '--user', f'{user}:{user}',
         *PROFILES[profile], *options, *LIMITS, '-v', '/usr:/usr:ro', '-v', f'{base}/runner:/runner:ro', '-v', f'{HERE}:/test:ro',
         '-v', f'{CONTAINMENT}:/containment:ro',
         '-v', f'{base}/shown-{profile}-{user}:/shown', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp', '--rootfs', base + '/root',
         *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace', timeout=180)


def why_not(base):
    """Why nothing can be shown here, or None."""
    for program in ('podman', 'runc'):
        if shutil.which(program) is None:
            return f'{program} is not installed'
    if not os.path.exists(sys.argv[2]):
        return f'{sys.argv[2]} is not there'
    if os.geteuid() != 0:
        return 'it needs root for its containers'
    tried = podman(base, 'podman', 0, 'true')
    return tried.stderr.strip()[-300:] if tried.returncode else None


class Containers:
    """What holds for each user under each profile."""

    @classmethod
    def setUpClass(cls):
        done = STARTED[cls.profile, cls.user].result()
        # Not by the exit code: where the machine is busy, podman loses it.
        lines = done.stdout.splitlines()
        assert lines and lines[-1].startswith('{'), done.stderr[-3000:] + done.stdout[-3000:]
        cls.seen = json.loads(lines[-1])

    def test_each_probe_of_the_table_is_stopped(self):
        identity = 'root' if self.user == 0 else 'user'
        inside = self.seen['inside']
        probes = [probe for probe in table.every_probe() if inside.get(probe.name) != OF_CONTAINERS.get(probe.name, '')]
        self.assertEqual(table.wrong(probes, 'landlock', identity, self.seen['inside']), [])
        self.assertEqual(self.seen['connections inside'], [])

    def test_each_control_succeeds_unless_the_container_refuses_it(self):
        rights = table.ROOTS + (table.APART,)  # A container's root lacks most.
        refused = [f'{group}: {what}' for group, names in REFUSED.items() for what in names]
        probes = [probe for probe in table.every_probe() if probe.control not in rights]
        self.assertLess(set(refused), {probe.name for probe in probes})
        self.assertEqual(table.wrong_controls(probes, 'user', self.seen['outside'], refused), [])

    def test_programs_get_what_they_need(self):
        for group in ('files', 'metadata', 'processes', 'sockets'):
            self.assertGreater(len(self.seen['allowed'][group]), 3)
            for name, (answer, wanted) in self.seen['allowed'][group].items():
                with self.subTest(name):
                    self.assertIn(answer, wanted)

    def test_privileges_are_given_up(self):
        status = self.seen['allowed']['status']
        for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'):
            self.assertEqual(int(status[name], 16), 0, name)
        if self.user == 0:
            self.assertEqual(int(status['CapBnd'], 16), 0)
            self.assertGreater(int(status['Uid'].split()[0]), 59999)
        self.assertEqual(status['NoNewPrivs'], '1')
        self.assertNotEqual(int(self.seen['status outside']['CapBnd'], 16), 0, 'the control')

    def test_clients_reach_what_the_policy_allows_and_nothing_else(self):
        clients = self.seen['clients']
        self.assertGreater(len(clients), 8)
        for name, (answer, wanted) in clients.items():
            with self.subTest(name):
                self.assertEqual(answer, wanted)
        self.assertIn("binary '/usr/bin/wget' not allowed", self.seen['log'])
        self.assertIn('203.0.113.7:80', self.seen['log'])

    def test_changes_are_found_by_comparing(self):
        self.assertEqual(self.seen['changes'], self.seen['changes wanted'])
        self.assertEqual(self.seen['checkout after'], self.seen['checkout before'])

    def test_the_record_names_the_tier_first(self):
        record = self.seen['record']
        self.assertEqual(record['isolation']['tier'], 'landlock')
        states = {control['name']: control['state'] for control in record['isolation']['controls']}
        self.assertEqual(states['namespaces'], 'unavailable')
        for name in ('files', 'network', 'capabilities', 'seccomp', 'landlock'):
            self.assertEqual(states[name], 'enforced', name)
        self.assertIn('landlock', self.seen['summary first lines'])

    def test_nothing_outlives_a_run(self):
        for name, left in self.seen['left'].items():
            with self.subTest(name):
                self.assertEqual(left, [])
        self.assertEqual(self.seen['scratch left'], [])

    @only_root
    def test_a_storm_of_processes_ends_with_its_limit(self):
        # Those of an ordinary user are only counted from time to time, so a short storm may pass.
        self.assertEqual(self.seen['storm']['kind'], 'limit')

    def test_nothing_is_left_of_a_storm_of_processes(self):
        self.assertEqual(self.seen['storm']['left'], [])


class Hosts(unittest.TestCase):
    """Each container of hosts.py, and what it says to type: typed."""

    # As root of a job: the checkout is root's, and a first run has left its report there.
    CHECKOUT = 'mkdir /tmp/co && cd /tmp/co && git init -q .; '
    RUN = '/runner/agentic-ci run {} -- echo started'

    def run_in(self, host, script, user=None, options=None):
        given = (*host.options, *host.marks) if options is None else (*options, *host.marks)
        done = podman(BASE, host.profile if options is None else 'podman', host.user if user is None else user,
                      'sh', '-c', self.CHECKOUT + script, options=given)
        return 'started' in done.stdout, done.stdout + done.stderr

    def test_what_is_printed_helps_when_it_is_typed(self):
        for host in hosts.HOSTS:
            with self.subTest(host=f'{host.name}, {host.user}, {" ".join(host.options)}'):
                started, said = self.run_in(host, self.RUN.format('') + '; ' + self.RUN.format('--isolation landlock'))
                self.assertTrue(started, said)
                self.assertIn(f'isolation={host.tier}', said)
                if not host.remedy:
                    self.assertNotIn('hint:', said)
                    continue
                self.assertNotIn('isolation=namespaces', said)
                self.assertIn(f'hint: {host.remedy} (or agentic-ci run --isolation landlock ...)\n', said)
                if host.remedy == hosts.SETPRIV:
                    line = host.remedy.replace('agentic-ci', '/runner/agentic-ci', 1).replace('...', '-- echo started')
                    started, said = self.run_in(host, self.RUN.format('') + '; ' + line)
                else:
                    options, user = hosts.typed(host.remedy)
                    started, said = self.run_in(host, self.RUN.format(''), user, options)
                self.assertTrue(started, said)
                self.assertIn('isolation=namespaces', said)

    def test_doctor_says_the_same(self):
        for host in (hosts.HOSTS[0], hosts.HOSTS[1]):
            _, said = self.run_in(host, '/runner/agentic-ci doctor; echo code $?')
            self.assertIn('tier landlock: runs can start here with --isolation landlock', said)
            self.assertIn('code 0', said)


def group(profile, user):
    name = f'{profile.capitalize()}As{user}'
    return type(name, (Containers, unittest.TestCase), {'profile': profile, 'user': user})


def main():
    global BASE
    BASE = tempfile.mkdtemp(prefix='agentic-ci-containers-')
    try:
        os.chmod(BASE, 0o755)
        make_root(BASE)
        os.mkdir(BASE + '/runner')
        shutil.copy(sys.argv[1], BASE + '/runner/agentic-ci')
        for user in (0, 1000):
            for profile in PROFILES:
                place = f'{BASE}/shown-{profile}-{user}'
                os.mkdir(place)
                os.chown(place, user, user)
        why = why_not(BASE)
        if why:
            print(f'# SKIP containers: {why}')
            return 77
        suite = unittest.TestSuite()
        for user in (0, 1000):
            # One after the other: they share the limit of the user's processes.
            pool = concurrent.futures.ThreadPoolExecutor(1)
            for profile in PROFILES:
                cases = [case for case in unittest.defaultTestLoader.loadTestsFromTestCase(group(profile, user))
                         if (not sys.argv[3:] or any(name in case.id() for name in sys.argv[3:]))
                         and (user == 0 or not hasattr(getattr(case, case._testMethodName), 'only_root'))]
                if cases:
                    STARTED[profile, user] = pool.submit(podman, BASE, profile, user, 'python3', '/test/driver.py')
                suite.addTests(cases)
        suite.addTests(case for case in unittest.defaultTestLoader.loadTestsFromTestCase(Hosts)
                       if not sys.argv[3:] or any(name in case.id() for name in sys.argv[3:]))
        result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
        failed = len({str(test) for test, _ in result.failures + result.errors})
        if result.testsRun == 0:
            failed = 1
        print(f'{max(result.testsRun - failed, 0)} passed, {failed} failed')
        return 1 if failed else 0
    finally:
        subprocess.run(['podman', *store(BASE), 'system', 'reset', '--force'], capture_output=True)
        shutil.rmtree(BASE, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())
