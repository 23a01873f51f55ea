# SPDX-License-Identifier: Apache-2.0
"""Sockets, pipes and locks of the host in places that are shown: seen, and with nothing behind them."""
import fcntl
import os
import socket
import subprocess

from harness import FIXTURES, PLACE, Case, wait_until, write

PYTHON = '/usr/bin/python3'
# Waits for what is made while it runs, then tries everything in a directory.
TRY_ALL = '''
import errno, fcntl, os, socket, sys, time
place = sys.argv[1]
def tell(name, attempt):
    try:
        attempt()
        print(name + "=OK")
    except OSError as error:
        print(name + "=" + errno.errorcode[error.errno])
def read(path):
    if not os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 9):
        raise OSError(errno.ENODATA, "nothing to read")
print("ready", flush=True)
while "end" not in os.listdir(place):
    time.sleep(0.02)
for age in ("early", "late"):
    path = place + "/" + age
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        name = path + "-" + kind.name
        tell(age + "_" + kind.name, lambda: socket.socket(socket.AF_UNIX, kind).connect(name))
    tell(age + "_sendto", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(
        b"x", path + "-SOCK_DGRAM"))
    tell(age + "_fifo", lambda: os.open(path + "-fifo", os.O_WRONLY | os.O_NONBLOCK))
    tell(age + "_fifo_read", lambda: read(path + "-fifo"))
tell("lock", lambda: fcntl.flock(os.open(place + "/file", os.O_RDONLY),
                                 fcntl.LOCK_EX | fcntl.LOCK_NB))
tell("file", lambda: open(place + "/file").read())
'''
OWN = '''
import os, socket
for place in (".", "/tmp", "/sandbox", "/dev/shm", "/var/tmp"):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(place + "/own-socket")
        server.listen()
        client.connect(place + "/own-socket")
        server.accept()[0].sendall(b"heard")
        assert client.recv(10) == b"heard"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(place + "/own-datagrams")
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"heard", place + "/own-datagrams")
        assert server.recv(10) == b"heard"
    os.mkfifo(place + "/own-fifo")
    reader = os.open(place + "/own-fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.write(os.open(place + "/own-fifo", os.O_WRONLY), b"heard")
    assert os.read(reader, 10) == b"heard"
    for name in ("socket", "datagrams", "fifo"):
        os.remove(place + "/own-" + name)
print("all heard")
'''


class HostEnds(Case):
    def setUp(self):
        super().setUp()
        self.feature('python3', os.path.exists(PYTHON), 'it makes the calls')
        self.ends = []
        self.addCleanup(self.close_all)

    def close_all(self):
        for close in self.ends:
            close()

    def make(self, path):
        """A listener of each kind at `path`, as a program of the host has them."""
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
            listener = socket.socket(socket.AF_UNIX, kind)
            listener.bind(f'{path}-{kind.name}')
            os.chmod(f'{path}-{kind.name}', 0o777)
            if kind != socket.SOCK_DGRAM:
                listener.listen(8)
            self.ends.append(listener.close)
        os.mkfifo(path + '-fifo')
        os.chmod(path + '-fifo', 0o666)
        for flags in (os.O_RDONLY, os.O_WRONLY):  # Both ends: the second does not wait.
            end = os.open(path + '-fifo', flags | os.O_NONBLOCK)
            self.ends.append(lambda end=end: os.close(end))
        os.write(end, b'of the host')

    def try_all(self, place, start):
        """What is answered in `place`, in which half of all is made when the other side has begun."""
        subprocess.run(['rm', '-rf', place], check=True)
        write(place + '/file', 'text')
        with open(place + '/file') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.make(place + '/early')
            process = start([PYTHON, '-c', TRY_ALL, place])
            self.assertEqual(process.stdout.readline(), b'ready\n')
            self.make(place + '/late')
            write(place + '/end', '')
            out, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 0, err)
        return dict(line.split('=') for line in out.decode().split())

    def check(self, place, **more):
        outside = self.try_all(place, lambda command: subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        self.assertEqual(outside.pop('lock'), 'EAGAIN')  # Somebody of the host holds it.
        self.assertEqual(set(outside.values()), {'OK'}, outside)
        inside = self.try_all(place, lambda command: self.start(command, **more))
        shared = [inside.pop(name) for name in ('lock', 'file')]
        self.assertEqual(len(inside), 12)
        for name, answer in inside.items():
            # A pipe without another end; Landlock, where there is one, is asked first.
            expected = {'fifo': ('ENXIO', 'EACCES'), 'read': ('ENODATA',)}
            self.assertIn(answer, expected.get(name.split('_')[-1], ('ECONNREFUSED',)), name)
        self.assertEqual(shared, ['OK', 'OK'])

    def test_nothing_of_the_host_answers_in_a_place_that_every_policy_shows(self):
        self.feature('root', FIXTURES, 'an ordinary user has no place in /var/log')
        self.check('/var/log/' + self.marker)

    def test_nothing_of_the_host_answers_where_a_policy_shows_a_directory(self):
        self.feature('root', FIXTURES, 'the place must lie outside /tmp')
        place = PLACE + '/scratch'
        policy = self.policy(f'version: 1\nfilesystem_policy:\n  read_only: [/usr, {place}]\n')
        self.check(place + '/' + self.marker, options=['--policy', policy])

    def test_nothing_of_the_host_answers_beside_and_in_what_is_mounted(self):
        self.feature('root', FIXTURES, 'only root can mount something in a place')
        policy = self.policy(f'version: 1\nfilesystem_policy:\n  read_only: [/usr, {PLACE}]\n')
        for place in (PLACE + '/scratch/beside', PLACE + '/nested/volume/in'):
            self.check(place, options=['--policy', policy])
        run = self.shell(f'cat {PLACE}/nested/volume/file {PLACE}/nested/README.md',
                         options=['--policy', policy])
        self.assertEqual(run.out, 'of the volume\nhello\n')

    def test_nothing_of_the_host_answers_in_the_checkout(self):
        self.check(self.checkout + '/place')

    def test_own_sockets_and_pipes_work_everywhere_they_can_be_made(self):
        run = self.run_agent(PYTHON, '-c', OWN)
        self.assertEqual(run.out.split(), ['all', 'heard'])
