# SPDX-License-Identifier: Apache-2.0
"""What programs do for themselves, and are answered inside as they are outside."""
import os
import shutil

from harness import ROOT, TIER, Case, only_as, only_in, write

PYTHON = '/usr/bin/python3'
# Serves one word at an address, and asks for it by other names of that address, as the agent's clients do.
SERVERS = '''
import http.server, socket, subprocess, sys, threading, urllib.request

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"heard")
    def log_message(self, *_):
        pass

def serve(family, address):
    kind = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family})
    server = kind((address, 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]

ways = [(socket.AF_INET, "0.0.0.0", ["127.0.0.1", "localhost", "0.0.0.0", "127.0.0.2", socket.gethostname()]),
        (socket.AF_INET, "127.0.0.2", ["127.0.0.2"]), (socket.AF_INET6, "::1", ["[::1]"]),
        (socket.AF_INET6, "::", ["[::]", "[::1]", "127.0.0.1", "0.0.0.0"])]
for family, address, names in ways:
    port = serve(family, address)
    for name in names:
        url = f"http://{name}:{port}/"
        with urllib.request.urlopen(url, timeout=100) as answer:
            print(address, name if name != socket.gethostname() else "its name", answer.read())
        print(subprocess.run(["curl", "-gsS", url], capture_output=True).stdout)
'''
BOUND = '''
import socket
server = socket.create_server(("0.0.0.0", 0))
for address in ("127.0.0.1", "127.0.0.3"):
    client = socket.create_connection(("127.0.0.1", server.getsockname()[1]), source_address=(address, 0))
    _, peer = server.accept()
    print(client.getsockname()[0], peer[0])
shared = socket.socket()
shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
shared.bind(("127.0.0.3", 0))
free = shared.getsockname()
shared.close()
client = socket.socket()
client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
client.bind(free)
client.connect(("127.0.0.1", server.getsockname()[1]))
print(server.accept()[1] == free)
'''
TERMINAL = '''
import os, pty, sys
first, other = os.openpty()
print(os.isatty(other), os.ttyname(other).startswith("/dev/pts/"))
again = os.open(os.ttyname(other), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
print(os.ttyname(again) == os.ttyname(other), os.get_inheritable(again))
os.write(again, b"through")
print(os.read(first, 7))
number = os.ttyname(other)
os.close(again), os.close(other), os.close(first)
try:
    os.open(number, os.O_RDWR | os.O_NOCTTY)
except OSError as error:
    print("gone")
child, first = pty.fork()
if child == 0:
    os.write(os.open("/dev/tty", os.O_RDWR), b"of a terminal of its own")
    os._exit(0)
print(os.read(first, 100), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
'''
ITSELF = '''
import ctypes, os, resource, signal, threading
libc = ctypes.CDLL(None, use_errno=True)
def tell(what, do):
    try:
        print(what, do() is not None)
    except OSError as error:
        print(what, error)
me, cpus = os.getpid(), os.sched_getaffinity(0)
child = os.fork()
if child == 0:
    signal.pause()
tell("limits", lambda: resource.prlimit(me, resource.RLIMIT_NOFILE))
tell("limits of a child", lambda: resource.prlimit(child, resource.RLIMIT_NOFILE))
tell("processors", lambda: os.sched_setaffinity(me, cpus))
tell("priority", lambda: os.setpriority(os.PRIO_PROCESS, me, 19))
tell("descriptor", lambda: os.pidfd_open(me))
tell("descriptor of a child", lambda: os.pidfd_open(child))
done = threading.Event()
thread = threading.Thread(target=done.wait)
thread.start()
tell("processors of a thread", lambda: os.sched_setaffinity(thread.native_id, cpus))
done.set()
thread.join()
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
'''


class Alike(Case):
    maxDiff = None

    def alike(self, program, *command, **more):
        """What it prints inside is what it prints outside, where it succeeds."""
        write(self.checkout + '/program', program)
        script = ' '.join(command or (PYTHON, 'program')) + '; echo ends with $?'
        outside = self.outside(script)
        self.assertIn('ends with 0', outside, 'the control failed')
        self.assertEqual(self.shell(script, **more).out.replace('\r', ''), outside.replace('\r', ''))

    def test_servers_of_its_own_answer_by_every_local_address(self):
        self.feature('curl', shutil.which('curl') is not None, 'a client that knows the proxy')
        self.alike(SERVERS)

    def test_client_keeps_the_address_it_was_bound_to(self):
        self.alike(BOUND)

    def test_terminals_of_its_own(self):
        self.alike(TERMINAL)

    def test_terminal_of_script(self):
        self.feature('script', shutil.which('script') is not None, 'it starts a program in a terminal')
        self.alike('', 'script', '-qec', '"test -t 0 && echo a terminal"', '/dev/null')

    def test_process_changes_and_holds_itself_by_number(self):
        self.alike(ITSELF)

    @only_in('namespaces')
    def test_limits_of_a_process_are_set_by_its_number(self):
        self.alike('import os, resource, signal\n'
                   'child = os.fork()\n'
                   'if child == 0:\n'
                   '    signal.pause()\n'
                   'for process in os.getpid(), child:\n'
                   '    resource.prlimit(process, resource.RLIMIT_NOFILE, (99, 99))\n'
                   '    print(resource.prlimit(process, resource.RLIMIT_NOFILE))\n'
                   'os.kill(child, signal.SIGKILL)\n'
                   'os.waitpid(child, 0)\n')

    def test_program_with_a_sanitizer_ends_well(self):
        compiler = shutil.which('gcc')
        self.feature('sanitizer', compiler and self.outside(
            'echo "int main(void) { return 0; }" > t.c && gcc -fsanitize=address t.c -o t && gcc -fsanitize=leak t.c -o l; '
            './t && ./l && echo built').strip() == 'built', 'gcc with its sanitizers')
        self.alike('', './t', '&&', './l')

    def test_memory_file_is_missing_as_on_an_older_kernel(self):
        """The control is the same program on this kernel, which has them."""
        script = f'{PYTHON} -c "import os; os.memfd_create(\'x\')" 2>&1 | tail -1'
        self.assertEqual(self.outside(script), '')
        self.assertIn('Function not implemented', self.shell(script).out)

    def test_processors_are_told(self):
        self.feature('lscpu', shutil.which('lscpu') is not None, 'it asks for all that is told')
        self.alike('', 'lscpu', '-p=CPU,CORE,SOCKET,CACHE', '&&', 'cat', '/sys/devices/system/cpu/online')

    @only_in('namespaces')
    def test_directories_above_the_checkout_are_listed(self):
        """They are the sandbox's own, and hold what is exposed and nothing else."""
        os.makedirs(self.dir + '/beside-the-checkout')
        script = 'd=$PWD; while [ "$d" != / ]; do n=${d##*/}; d=$(dirname "$d"); ls "$d" | grep -xe "$n" -e beside-the-checkout; done'
        above = self.checkout.strip('/').split('/')[::-1]
        self.assertEqual(self.shell(script).out.split(), above)
        self.assertEqual(self.outside(script).split(), ['beside-the-checkout', *above])  # In the order of ls.

    @only_in('namespaces')
    def test_names_that_rules_alone_hide_are_not_listed(self):
        write(self.checkout + '/shown/file', 'x')
        policy = self.policy('version: 1\nfilesystem_policy:\n  include_workdir: false\n'
                             f'  read_only: [/usr, {self.checkout}/shown]\n')
        if not self.checkout.startswith(('/tmp', '/var/tmp')):  # There the policy is refused.
            self.assertEqual(self.shell('ls shown; ls . ..', options=['--policy', policy], code=2).out.split(), ['file'])

    @only_in('namespaces')
    def test_machine_has_ipv6_as_the_host_has(self):
        self.feature('IPv6', self.outside('grep -v " lo$" /proc/net/if_inet6'), 'this machine has no address')
        self.alike("""
import pwd, socket
for name in ("::1", "::", "127.0.0.1"):
    print([found[4][0] for found in socket.getaddrinfo(name, 80, 0, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)])
print(pwd.getpwnam("root").pw_dir)
""")

    @only_in('namespaces')
    def test_own_address_of_ipv6_reaches_own_servers(self):
        """By TCP and UDP, and no other address does."""
        self.feature('IPv6', self.outside('grep -v " lo$" /proc/net/if_inet6'), 'this machine has no address')
        run = self.run_agent(PYTHON, '-c', """
import socket
for address in ("fd0a:c800::1", "fd0a:c800::2"):
    server = socket.create_server(("::", 0), family=socket.AF_INET6)
    client = socket.socket(socket.AF_INET6)
    client.settimeout(60)
    print(address, client.connect_ex((address, server.getsockname()[1])) == 0 and server.accept()[1][0])
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.bind(("::", 0))
    try:
        udp.sendto(b"asked", (address, udp.getsockname()[1]))
        print(address, udp.recv(9).decode())
    except OSError as error:
        print(address, error.strerror)
""")
        self.assertEqual(run.out.splitlines(), ['fd0a:c800::1 fd0a:c800::1', 'fd0a:c800::1 asked',
                                                'fd0a:c800::2 False', 'fd0a:c800::2 Operation not permitted'])

    @only_in('namespaces')
    def test_loopback_has_one_name(self):
        run = self.run_agent(PYTHON, '-c', """
import array, fcntl, socket, struct
buffer = array.array("B", bytes(4096))
asked = struct.pack("iL", 4096, buffer.buffer_info()[0])
size = struct.unpack("iL", fcntl.ioctl(socket.socket(), 0x8912, asked))[0]  # SIOCGIFCONF
print({buffer.tobytes()[at:at + 16].split(bytes(1))[0].decode() for at in range(0, size, 40)})
""")
        self.assertEqual(run.out.strip(), "{'lo'}")

    def test_second_connection_of_a_socket_is_refused_as_such(self):
        self.alike("""
import errno, os, socket, tempfile
with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    for _ in range(3):
        print(errno.errorcode.get(client.connect_ex("s"), 0))
    os.chdir("/")
""")

    @only_in('landlock')
    def test_no_abstract_unix_name_can_be_taken(self):
        script = r"""
import ctypes, errno, os, socket, tempfile
libc = ctypes.CDLL(None, use_errno=True)
place = tempfile.TemporaryDirectory()
os.chdir(place.name)
for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
    for address in b"\1\0\0agentic-ci-%d" % os.getpid(), b"\1\0", b"\1\0named-%d" % kind:
        one = socket.socket(socket.AF_UNIX, kind)
        failed = libc.bind(one.fileno(), address, len(address))
        print(errno.errorcode[ctypes.get_errno()] if failed else one.listen() or "OK")
        one.close()
"""
        self.assertEqual(self.run_agent(PYTHON, '-c', script).out.split(), ['EACCES', 'EACCES', 'OK'] * 2)
        self.assertEqual(self.outside(f"{PYTHON} -c '{script}'").split(), ['OK'] * 6)

    @only_in('landlock')
    @only_as('user')
    def test_user_is_called_as_its_account_is(self):
        """The suite's user has none: then it is the sandbox's."""
        self.assertEqual(self.shell('echo $USER $LOGNAME').out.split(), ['sandbox', 'sandbox'])
