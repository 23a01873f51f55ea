# SPDX-License-Identifier: Apache-2.0
"""What an agent is not to reach: files, services and processes of the host, made for a test and taken away after it."""
import contextlib
import ctypes
import glob
import json
import os
import shutil
import socket
import subprocess
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
CANARY = 'canary-' + os.urandom(8).hex()  # Of this process alone, and on no command line.
VICTIM = f'''
import ctypes, signal
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1))  # Where Yama asks: anybody may trace it.
held = open("/etc/passwd")
print("ready", flush=True)
while True:
    signal.pause()
'''
FILES = ('file', 'kept', 'spare 1', 'spare 2', 'spare 3', 'spare 4', 'directory/file', 'locked')


class Outside:
    """`hidden` is a directory that no policy exposes, `shown` one that the run's policy does: everybody may write in
    both, so that it is not their modes that stop anything. `setuid`: id(1), set to run as root. The rest belongs to this
    process's user."""

    def __init__(self, hidden, shown, checkout, setuid):
        self.stack = contextlib.ExitStack()
        self.connections = []  # Names of what was connected to.
        self.held = []
        self.mark = os.urandom(4).hex()
        self.hidden, self.shown, self.checkout = hidden, shown, checkout
        self.facts = {'hidden': hidden, 'shown': shown, 'checkout': checkout, 'hostname': socket.gethostname(),
                      'setuid': setuid, 'canary': CANARY}
        for place in (hidden, shown):
            self.make_files(place)
        self.make_checkout()
        for name, directory in (('shm', '/dev/shm'), ('tmp', '/tmp')):
            path = f'{directory}/of-the-host-{self.mark}'
            self.write(path)
            self.stack.callback(os.remove, path)
            self.facts[name] = path
        self.listen()
        self.share()
        self.start_victim()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def write(self, path, text=CANARY, mode=0o666):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)

    def make_files(self, place):
        for name in FILES:
            self.write(f'{place}/{name}')
        with contextlib.suppress(OSError):  # Not on every file system.
            os.setxattr(place + '/kept', 'user.other', b'x')
        os.mkdir(place + '/empty')
        shutil.copy('/usr/bin/true', place)
        os.mkfifo(place + '/fifo')
        os.chmod(place + '/fifo', 0o666)
        self.held.append(open(place + '/fifo', 'r+b', buffering=0))
        self.held[-1].write(CANARY.encode())
        for directory in (place, place + '/directory', place + '/empty'):
            os.chmod(directory, 0o777)

    def make_checkout(self):
        other = self.checkout + '/of-the-checkout/other/.git'
        os.makedirs(other)
        for config in (self.checkout + '/.git/config', other + '/config'):
            with open(config, 'a') as file:
                file.write(f'[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic {CANARY}\n')
        with open(self.checkout + '/of-the-checkout/.netrc', 'w') as file:
            file.write(f'machine example.com password {CANARY}\n')
        for name in ('read', 'written', 'removed', 'moved/file', 'linked', 'touched', 'hooked/file'):
            self.write(f'{self.checkout}/of-the-checkout/{name}')

    def listen(self):
        ports = {}
        for name, family, address in (('tcp', socket.AF_INET, ('127.0.0.1', 0)), ('tcp6', socket.AF_INET6, ('::1', 0)),
                                      ('unix', socket.AF_UNIX, self.hidden + '/socket'),
                                      ('unix shown', socket.AF_UNIX, self.shown + '/socket'),
                                      ('abstract', socket.AF_UNIX, f'\0of-the-host-{self.mark}')):
            listener = socket.socket(family)
            try:
                listener.bind(address)
            except OSError:
                continue  # Without IPv6.
            if isinstance(address, str) and address[0] == '/':
                os.chmod(address, 0o777)
            listener.listen(64)
            self.stack.callback(lambda listener=listener: (listener.shutdown(socket.SHUT_RDWR), listener.close()))
            ports[name] = listener.getsockname()
            threading.Thread(target=self.serve, args=(name, listener), daemon=True).start()
        for name, family, address in (('udp', socket.AF_INET, ('127.0.0.1', 0)),
                                      ('datagram', socket.AF_UNIX, self.hidden + '/datagram'),
                                      ('datagram shown', socket.AF_UNIX, self.shown + '/datagram'),
                                      ('datagram abstract', socket.AF_UNIX, f'\0of-the-host-datagram-{self.mark}')):
            listener = socket.socket(family, socket.SOCK_DGRAM)
            listener.bind(address)
            if isinstance(address, str) and address[0] == '/':
                os.chmod(address, 0o777)
            self.stack.callback(listener.close)
            ports[name] = listener.getsockname()
            if name == 'udp':
                threading.Thread(target=self.answer, args=(listener,), daemon=True).start()
        self.facts['ports'] = {name: address.decode('latin-1') if isinstance(address, bytes) else address
                               for name, address in ports.items()}

    def answer(self, listener):
        try:
            while True:
                listener.sendto(b'heard', listener.recvfrom(16)[1])
        except OSError:
            pass  # It was closed.

    def serve(self, name, listener):
        while True:
            try:
                peer, _ = listener.accept()
                self.connections.append(name)
                peer.sendall(b'heard')
                peer.close()
            except OSError:
                if listener.fileno() < 0:
                    return

    def share(self):
        """System V objects and a message queue."""
        key = int(self.mark, 16) >> 1 | 1  # Positive, and not 0, which means a private one.
        create = 0o1666  # IPC_CREAT
        for get, remove, arguments in (('shmget', 'shmctl', (key, 4096, create)), ('semget', 'semctl', (key, 1, create)),
                                       ('msgget', 'msgctl', (key, create))):
            found = getattr(LIBC, get)(*arguments)
            assert found >= 0, get
            self.stack.callback(getattr(LIBC, remove), found, *([0] if get == 'semget' else []), 0, None)
        name = f'/of-the-host-{self.mark}'.encode()
        queue = LIBC.mq_open(name, os.O_CREAT | os.O_RDWR, 0o666, None)
        if queue >= 0:
            self.stack.callback(LIBC.mq_unlink, name)
            os.close(queue)
        self.facts['key'], self.facts['queue'] = key, name[1:].decode()

    def start_victim(self):
        victim = subprocess.Popen(['/usr/bin/python3', '-c', VICTIM], env={'SECRET': CANARY, 'PATH': os.environ['PATH']},
                                  stdout=subprocess.PIPE, start_new_session=True)
        self.stack.callback(lambda: (victim.kill(), victim.wait()))
        assert victim.stdout.readline() == b'ready\n'
        with open(f'/proc/{victim.pid}/maps') as file:
            self.facts['address'] = int(next(line for line in file if '[stack]' in line).split('-')[0], 16)
        ends = os.openpty()
        self.stack.callback(lambda: [os.close(end) for end in ends])
        self.facts['terminal'] = os.ttyname(ends[1])
        self.facts['victim'], self.facts['group'] = victim.pid, os.getpgid(victim.pid)
        blocks = sorted(glob.glob('/dev/[svx]d[a-z]') + glob.glob('/dev/xvd[a-z]') + glob.glob('/dev/nvme*n1'))
        self.facts['disk'] = blocks[0] if blocks else '/dev/vda'

    def state(self, path):
        """What a file of the checkout is now."""
        try:
            st = os.lstat(f'{self.checkout}/{path}')
            return st.st_ino, st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns, st.st_ctime_ns
        except OSError as error:
            return error.errno

    def answers(self, probes, attempt):
        """{name: answer} of what `attempt` prints, with what became of the files that are looked at."""
        looked_at = {probe.name: probe.looks_at for probe in probes if probe.looks_at}
        before = {name: self.state(path) for name, path in looked_at.items()}
        lines = [line for line in attempt().splitlines() if line.startswith('["')]
        found = dict(json.loads(line) for line in lines)
        for name, path in looked_at.items():
            if found.get(name) == 'ok':
                found[name] = 'unchanged' if self.state(path) == before[name] else 'changed'
        return found
