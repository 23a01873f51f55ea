# SPDX-License-Identifier: Apache-2.0
"""Process 1 of a workload: makes its root file system, opens its listeners, starts what the gateway asks for.

usage: first_process.py SOCKET PLAN, as root in new namespaces (mount, pid, net, ipc, uts) of a Linux kernel. PLAN is JSON:
{"lower": DIRECTORY, "upper": DIRECTORY, "binds": {TARGET: SOURCE}, "ports": [PORT...], "uid": N, "gid": N}. SOCKET is a descriptor of
a SOCK_SEQPACKET pair. First it sends {"ready": true} with the listeners' descriptors: TCP for each port at any address, the first for
DNS over UDP at 127.0.0.1:53. Then it takes {"id": N} with five descriptors: a file with {"argv", "env", "cwd", "tty", "read_only",
"read_write"}, standard input, output and error, and a pipe for the exit status; and {"kill": N}, which kills what was started with this
id and its process group. Landlock holds a command to the two lists of paths.
"""
import array
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 2, 38, 24
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
# Execute, read a file, read a directory; write and truncate a file; everything of ABI 3.
READS, FILE_WRITES, EVERYTHING = 0b1101, 1 << 1 | 1 << 14, (1 << 15) - 1
DEVICES = ('null', 'zero', 'full', 'random', 'urandom', 'tty')
C = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f'{what}: {os.strerror(code)}')


def mount(source, target, kind=None, flags=0, data=None):
    coded = [text.encode() if text else None for text in (source, target, kind)]
    must(C.mount(*coded, ctypes.c_ulong(flags), data.encode() if data else None), f'mount {target}')


def make_root(plan):
    upper = plan['upper']
    root, work, layer = (os.path.join(upper, name) for name in ('root', 'work', 'layer'))
    for path in (root, work, layer):
        os.makedirs(path, exist_ok=True)
    mount(None, '/', flags=MS_REC | MS_PRIVATE)
    mount('overlay', root, 'overlay', MS_NOSUID | MS_NODEV, f'lowerdir={plan["lower"]},upperdir={layer},workdir={work}')
    for target, source in plan['binds'].items():
        mount(source, root + target, flags=MS_BIND | MS_REC)
        mount(None, root + target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    mount('proc', root + '/proc', 'proc', MS_NOSUID | MS_NODEV)
    mount('tmpfs', root + '/dev', 'tmpfs', MS_NOSUID, 'mode=755,size=64m')
    for name in DEVICES:
        open(f'{root}/dev/{name}', 'w').close()
        mount(f'/dev/{name}', f'{root}/dev/{name}', flags=MS_BIND)
    for name, target in (('fd', '/proc/self/fd'), ('stdin', '/proc/self/fd/0'), ('stdout', '/proc/self/fd/1'), ('stderr', '/proc/self/fd/2')):
        os.symlink(target, f'{root}/dev/{name}')
    os.mkdir(root + '/dev/shm')
    os.chmod(root + '/dev/shm', 0o1777)
    os.chdir(root)
    must(C.pivot_root(b'.', b'.'), 'pivot_root')
    must(C.umount2(b'.', MNT_DETACH), 'umount')
    os.chdir('/')


def listeners(ports):
    with socket.socket() as any_socket:
        flags = struct.unpack('16sh', fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack('16sh', b'lo', 0)))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack('16sh', b'lo', flags | IFF_UP))
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(('127.0.0.1', 53))
    return [names] + [socket.create_server(('127.0.0.1', port), backlog=64) for port in ports]


def send(channel, message, descriptors=()):
    fds = array.array('i', descriptors)
    channel.sendmsg([json.dumps(message).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if descriptors else [])


def restrict(read_only, read_write):
    """Landlock, for this process and all that it starts. A path that is not there is skipped."""
    ruleset = C.syscall(LANDLOCK_CREATE_RULESET, struct.pack('Q', EVERYTHING), 8, 0)
    must(ruleset, 'landlock')
    for paths, rights in ((read_only, READS), (read_write, EVERYTHING)):
        for path in paths:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            allowed = rights if os.path.isdir(path) else rights & (READS | FILE_WRITES) & ~(1 << 3)
            must(C.syscall(LANDLOCK_ADD_RULE, ruleset, 1, struct.pack('=Qi', allowed, descriptor), 0), f'landlock {path}')
            os.close(descriptor)
    must(C.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0), 'landlock')
    os.close(ruleset)


def start(request, descriptors, identity):
    """The pid of the new process, which leads a session of its own."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 1 << 16)
        if request['tty']:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for number in (signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for capability in range(64):
            if C.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
                break
        os.setgroups([])
        os.setresgid(*[identity[1]] * 3)
        os.setresuid(*[identity[0]] * 3)
        must(C.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 'prctl')
        restrict(request['read_only'], request['read_write'])
        os.chdir(request['cwd'])
        os.execve(request['argv'][0], request['argv'], request['env'])
    except OSError as error:
        os.write(2, f'openshell-sandbox: {request["argv"][0]}: {error}\n'.encode())
        os._exit(126 if error.errno in (errno.EACCES, errno.EPERM) else 127)
    finally:
        os._exit(125)


class Children:
    def __init__(self, identity):
        self.identity, self.pipes, self.pids = identity, {}, {}

    def take(self, message, descriptors):
        if 'kill' in message:
            pid = self.pids.get(message['kill'])
            if pid:
                os.killpg(pid, signal.SIGKILL)
            return
        text, *standard, status = descriptors
        with open(text, 'rb') as file:
            file.seek(0)
            request = json.load(file)
        pid = start(request, standard, self.identity)
        for descriptor in standard:
            os.close(descriptor)
        self.pipes[pid], self.pids[message['id']] = status, pid

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            pipe = self.pipes.pop(pid, None)
            if pipe is None:
                continue  # It was somebody's who has ended.
            self.pids = {number: one for number, one in self.pids.items() if one != pid}
            code = os.waitstatus_to_exitcode(status)
            try:
                os.write(pipe, str(code if code >= 0 else 128 - code).encode())
            except BrokenPipeError:
                pass
            os.close(pipe)


def main():
    channel, plan = socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2])
    os.environ.clear()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *unused: None)
    socket.sethostname('sandbox')
    open_ports = listeners(plan['ports'])
    make_root(plan)
    send(channel, {'ready': True}, [one.fileno() for one in open_ports])
    for one in open_ports:
        one.close()
    children = Children((plan['uid'], plan['gid']))
    while True:
        readable, _, _ = select.select([channel, woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            children.reap()
        if channel in readable:
            data, ancillary, _, _ = channel.recvmsg(4096, socket.CMSG_SPACE(5 * 4))
            if not data:
                return  # The gateway has gone, and with process 1 all of the workload.
            descriptors = array.array('i')
            for _, _, content in ancillary:
                descriptors.frombytes(content)
            children.take(json.loads(data), list(descriptors))


if __name__ == '__main__':
    main()
