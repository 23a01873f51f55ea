# SPDX-License-Identifier: Apache-2.0
"""A sandbox's workload: a process tree in namespaces of its own, with a root file system over an image and no network."""
import array
import itertools
import json
import os
import pathlib
import pty
import shutil
import socket
import subprocess
import sys
import threading

UID = GID = 998  # `sandbox` of the images that the tests make.
PROXY_PORT = 3128
CA_DIRECTORY = '/run/openshell-supervisor-ca/material'
DIRECTORIES = ('dev', 'etc', 'home/sandbox', 'proc', 'root', 'run', 'sandbox', 'sys', 'tmp', 'usr', 'var/log', 'var/tmp',
               CA_DIRECTORY.lstrip('/'))
FILES = {
    'etc/passwd': f'root:x:0:0:root:/root:/bin/bash\nsandbox:x:{UID}:{GID}:sandbox:/sandbox:/bin/bash\n',
    'etc/group': f'root:x:0:\nsandbox:x:{GID}:\n',
    'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
    'etc/hosts': '127.0.0.1 localhost\n',
}
COPIES = ('etc/ld.so.cache', 'etc/ld.so.conf', 'etc/ssl/certs/ca-certificates.crt')


class Failed(Exception):
    """The workload cannot be made or has ended."""


def make_image(directory):
    """An image of this machine's programs: `/usr` is bound over it, everything else is its own."""
    root = pathlib.Path(directory)
    for name in DIRECTORIES:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ('tmp', 'var/tmp'):
        (root / name).chmod(0o1777)
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        (root / name).symlink_to(f'usr/{name}')
    for name, text in FILES.items():
        (root / name).write_text(text)
    for name in COPIES:
        if os.path.exists('/' + name):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile('/' + name, root / name)
    if os.path.isdir('/etc/alternatives'):
        shutil.copytree('/etc/alternatives', root / 'etc/alternatives', symlinks=True)
    for name in ('sandbox', 'home/sandbox'):
        os.chown(root / name, UID, GID)


class Workload:
    """`image`: a directory. `state`: a directory of the sandbox's own, in which changes last until it is removed. `ca`: a PEM text."""

    def __init__(self, image, state, host_usr, ca):
        self.numbers, self.lock = itertools.count(1), threading.Lock()
        for name in DIRECTORIES:  # Where the gateway mounts or puts something, whatever the image has.
            (pathlib.Path(state) / 'layer' / name).mkdir(parents=True, exist_ok=True)
        layer = pathlib.Path(state) / 'layer'
        for name in ('sandbox', 'home/sandbox'):
            os.chown(layer / name, UID, GID)
        for name in ('tmp', 'var/tmp'):
            (layer / name).chmod(0o1777)
        (layer / CA_DIRECTORY.lstrip('/') / 'ca-bundle.crt').write_text(ca)
        (layer / 'etc/resolv.conf').write_text('nameserver 127.0.0.1\n')
        plan = {'lower': str(image), 'upper': str(state), 'binds': {'/usr': '/usr'} if host_usr else {}, 'ports': [PROXY_PORT],
                'uid': UID, 'gid': GID}
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = str(pathlib.Path(__file__).with_name('first_process.py'))
        with theirs:
            self.process = subprocess.Popen(
                ['/usr/bin/unshare', '--mount', '--pid', '--net', '--ipc', '--uts', '--fork', '--kill-child', '/usr/bin/python3', '-I',
                 program, str(theirs.fileno()), json.dumps(plan)],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        data, fds = self._receive()
        if not data:
            raise Failed(self.process.stderr.read().strip().splitlines()[-1:] or 'no first process')
        self.names, self.proxy = (socket.socket(fileno=fd) for fd in fds)

    def _receive(self):
        data, ancillary, _, _ = self.channel.recvmsg(4096, socket.CMSG_SPACE(8 * 4))
        fds = array.array('i')
        for _, _, content in ancillary:
            fds.frombytes(content)
        return data, list(fds)

    def start(self, argv, env, cwd, tty=False, read_only=('/',), read_write=('/',)):
        """A Command; its environment is `env` alone, and it reaches what is beneath these paths."""
        return Command(self, next(self.numbers), {'argv': argv, 'env': env, 'cwd': cwd, 'tty': tty, 'read_only': list(read_only),
                                                  'read_write': list(read_write)})

    def send(self, message, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        with self.lock:
            try:
                self.channel.sendmsg([json.dumps(message).encode()], rights)
            except OSError as error:
                raise Failed(f'the workload has ended: {error}') from error

    def first_pid(self):
        """Process 1 of the workload, by its number on this machine."""
        children = pathlib.Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children').read_text().split()
        return int(children[0]) if children else 0

    def end(self):
        self.channel.close()
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        for one in (self.names, self.proxy):
            try:
                one.shutdown(socket.SHUT_RDWR)  # Wakes who waits for it.
            except OSError:
                pass  # It has no peer.
            one.close()


class Command:
    """One process that was started: descriptors of this end, each closed by who has used it."""

    def __init__(self, workload, number, request):
        self.workload, self.number = workload, number
        text = os.memfd_create('request')
        os.write(text, json.dumps(request).encode())
        theirs = [text]
        if request['tty']:
            self.stdin, terminal = pty.openpty()
            self.stdout, self.stderr = os.dup(self.stdin), None
            theirs += [terminal, os.dup(terminal), os.dup(terminal)]
        else:
            standard_input, self.stdin = os.pipe()
            self.stdout, standard_output = os.pipe()
            self.stderr, standard_error = os.pipe()
            theirs += [standard_input, standard_output, standard_error]
        self.status, status = os.pipe()
        theirs.append(status)
        try:
            workload.send({'id': number}, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def wait(self):
        """The exit status, as a shell has it; None: the workload ended first."""
        with open(self.status, 'rb') as pipe:
            text = pipe.read()
        return int(text) if text else None

    def kill(self):
        try:
            self.workload.send({'kill': self.number})
        except Failed:
            pass  # It has ended with the workload.


def main():
    """A trial of its own: runs the words in a new workload."""
    import tempfile
    base = tempfile.mkdtemp()
    make_image(base + '/image')
    workload = Workload(base + '/image', base + '/state', True, '')
    command = workload.start(sys.argv[1:], {'PATH': '/usr/bin:/bin'}, '/sandbox')
    os.close(command.stdin)
    print(open(command.stdout).read(), open(command.stderr).read(), command.wait())
    workload.end()
    shutil.rmtree(base)


if __name__ == '__main__':
    main()
