# SPDX-License-Identifier: Apache-2.0
"""The kernel's surface and the network: what the probe is answered inside, and outside as the control."""
import os
import socket
import subprocess
import threading

from harness import FIXTURES, PLACE, PROBE, ROOT, Case

# For these a control that succeeds needs powers over the whole host, a module this kernel may lack,
# or would do harm: being refused inside is all that can be shown.
NO_CONTROL = {'init_module', 'delete_module', 'kexec_load', 'reboot', 'tiocsti', 'call_of_x32',
              'socket_alg', 'socket_vsock', 'swapoff', 'acct'}
ROOT_CONTROL = {'bpf', 'perf_event_open', 'syslog', 'settimeofday', 'setgroups', 'mknod_device',
                'userfaultfd', 'open_by_handle_at', 'name_to_handle_at', 'socket_netlink_audit'}
# Answers that come from behind the door: the call was let in and found its arguments wanting.
LET_IN = {'OK', 'ENOENT', 'EINVAL', 'EFAULT', 'EBADF', 'ENOKEY'}


def memory_has_attributes():
    """Whether an overlay's upper layer can lie in memory: since Linux 6.6."""
    file = os.memfd_create('trial')
    try:
        os.setxattr(file, 'user.overlay.trial', b'y')
        return True
    except OSError:
        return False
    finally:
        os.close(file)


class Surface(Case):
    def probe(self, *arguments):
        run = self.run_agent('./probe', *arguments, checkout=os.path.dirname(PROBE))
        return run.values()

    def test_calls_an_agent_may_not_make_are_refused(self):
        inside = self.probe('refused')
        self.assertGreater(len(inside), 50)
        expected = {'clone3': 'ENOSYS', 'call_of_32_bits': 'SYS', 'call_of_x32': 'SYS',
                    'setuid_root': 'EINVAL', 'setgid_root': 'EINVAL', 'name_to_handle_at': 'EOPNOTSUPP', 'socket_netlink_audit': 'EAFNOSUPPORT',
                    **dict.fromkeys(('memfd_create', 'memfd_secret', 'keyctl', 'add_key', 'request_key', 'kcmp',
                                    'execveat_empty_path'), 'ENOSYS')}
        for name, answer in inside.items():
            self.assertEqual(answer, expected.get(name, 'EPERM'), name)

        line = ['unshare', '-mn' if ROOT else '-Urmn', PROBE, 'refused']
        done = subprocess.run(line, cwd=self.dir, capture_output=True, text=True)
        outside = dict(text.split('=') for text in done.stdout.split())
        self.assertEqual(set(outside), set(inside))
        excused = NO_CONTROL | (set() if ROOT else ROOT_CONTROL)
        if outside['memfd_secret'] == 'ENOSYS':  # Before Linux 6.5 only the command line of the boot enables it.
            excused = excused | {'memfd_secret'}
        for name, answer in outside.items():
            if name not in excused:
                self.assertIn(answer, LET_IN, f'{name}: the control was refused too')

    def test_calls_a_build_needs_are_allowed(self):
        for name, answer in self.probe('allowed').items():
            self.assertEqual(answer, 'OK', name)

    def test_no_packet_leaves_but_through_the_gateway(self):
        abstract, path = 'abstract-' + self.marker, self.dir + '/socket'

        def answer(listener):
            connection, _ = listener.accept()
            connection.recv(16)
            connection.sendall(b'x')
            connection.close()

        with socket.create_server(('127.0.0.1', 0)) as tcp, \
                socket.socket(socket.AF_UNIX) as hidden, socket.socket(socket.AF_UNIX) as named:
            hidden.bind('\0' + abstract)
            hidden.listen()
            named.bind(path)
            named.listen()
            for listener in (tcp, hidden, named):
                threading.Thread(target=answer, args=(listener,), daemon=True).start()
            arguments = ['network', str(tcp.getsockname()[1]), abstract, path]
            inside = self.probe(*arguments)
            line = [PROBE, *arguments, 'control']
            done = subprocess.run(line, capture_output=True, text=True, timeout=600)
            outside = dict(text.split('=') for text in done.stdout.split())
        self.assertEqual({name: answer for name, answer in inside.items() if answer == 'OK'}, {})
        for name in ('tcp_loopback', 'unix_abstract', 'unix_pathname'):
            self.assertEqual(outside[name], 'OK', name)
        for name in ('tcp_outside', 'tcp6_outside'):  # No endpoint covers them.
            self.assertEqual(inside[name], 'ECONNREFUSED', name)
        for name in ('udp_outside', 'udp_metadata', 'udp6_outside'):  # Refused by the kernel.
            self.assertEqual(inside[name], 'EPERM', name)
        self.assertIn(inside['icmp'], ('EPERM', 'EACCES'))

    def test_loopback_is_the_only_interface(self):
        run = self.shell('tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "')
        self.assertEqual(run.out.split(), ['lo'])
        self.assertEqual(self.shell('tail -n +2 /proc/net/route | wc -l').out.strip(), '0')

    def test_pools_of_the_machine_and_of_its_user_are_not_the_agents_alone(self):
        script = """cat /proc/sys/user/max_inotify_instances
                    awk '$3 == "devpts" { print $4 }' /proc/mounts; awk '/pending signals/ { print $4, $5 }' /proc/self/limits"""
        watches, terminals, *signals = self.shell(script).out.split()
        self.assertEqual((watches, signals), ('64', ['4096', '4096']))
        self.assertIn(',max=512', terminals)
        outside = self.outside(script).split()
        self.assertNotEqual(outside[0], '64')
        self.assertNotIn('max=512', outside[1])

    def test_loopback_inside_works(self):
        self.feature('python3', os.path.exists('/usr/bin/python3'), 'a client and server for it')
        run = self.run_agent('/usr/bin/python3', '-c', '''
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b"heard")
print(client.recv(10).decode())
try:
    socket.getaddrinfo("example.com", 80)
    print("resolved")
except OSError:
    print("unresolved")
''')
        self.assertEqual(run.out.split(), ['heard', 'unresolved'])

    def test_landlock_holds_where_the_policy_requires_it(self):
        policy = self.policy('version: 1\nlandlock: {compatibility: hard_requirement}\n'
                             'filesystem_policy: {include_workdir: true, read_only: [/usr]}\n')
        run = self.shell('cat /etc/passwd >/dev/null && echo etc; ls /sandbox >/dev/null && echo home;'
                         'echo x > f && cat f', options=['--policy', policy])
        self.assertEqual(run.out.split(), ['etc', 'home', 'x'])

    def test_required_path_that_is_missing_is_65(self):
        policy = self.policy('version: 1\nlandlock: {compatibility: hard_requirement}\n'
                             'filesystem_policy: {read_only: [/no-such-place]}\n')
        self.assertIn('/no-such-place', self.run_agent('true', options=['--policy', policy],
                                                       code=65).err)

    def test_path_that_is_missing_is_passed_over_otherwise(self):
        policy = self.policy('version: 1\nfilesystem_policy:\n  read_only: [/usr, /no-such-place]\n'
                             '  include_workdir: true\n')
        self.run_agent('true', options=['--policy', policy])

    def test_workdir_left_out_of_the_policy_is_closed(self):
        """Below /tmp too, where these checkouts lie and where the agent may write."""
        for workdir, heard in (('true', ['hello', 'wrote', 'end']), ('false', ['end'])):
            policy = self.policy(f'version: 1\nfilesystem_policy:\n  include_workdir: {workdir}\n'
                                 '  read_only: [/usr]\n  read_write: [/tmp]\n')
            run = self.shell('cat README.md 2>/dev/null; (echo > x && echo wrote) 2>/dev/null; echo end',
                             options=['--policy', policy])
            self.assertEqual(run.out.split(), heard)
            self.assertEqual(run.record['changes']['files'], 1 if workdir == 'true' else 0)

    def test_record_says_what_was_enforced(self):
        run = self.run_agent('true')
        controls = {c['name']: c['state'] for c in run.record['isolation']['controls']}
        for name in ('namespaces', 'root file system', 'network', 'capabilities', 'seccomp'):
            self.assertEqual(controls[name], 'enforced')
        self.assertEqual(controls['disk'], 'enforced' if memory_has_attributes() else 'emulated')
        self.assertIn(controls['memory'], ('enforced', 'emulated'))
