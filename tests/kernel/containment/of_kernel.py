# SPDX-License-Identifier: Apache-2.0
"""The kernel's surface, namespaces, privileges, devices and limits."""
import ctypes
import errno
import fcntl
import mmap
import os
import pty
import resource
import signal
import socket
import stat
import struct
import subprocess

from table import APART, FACTS, IF_THERE, IF_THERE_ROOT, INTEL, LET_IN, LET_IN_ROOT, LIBC, OK, ROOT, buffer, call, checked, control, fail, group, opened, own, write

FILTER = 'EPERM: seccomp'
ABSENT = 'ENOSYS: seccomp'  # Programs have a second way where the kernel lacks these calls, and for EPERM not.
POWER = 'EPERM: seccomp + no capabilities'
NOWHERE = b'/no-such-place'


def cloned(flags):
    child = call('clone', flags | signal.SIGCHLD, None, None, None, None)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def cloned3(flags=0):
    child = call('clone3', buffer(88, struct.pack('11Q', flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)), 88)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def attribute(name, path=None):
    os.setxattr(path or own(), name, struct.pack('IIIII', 0x02000000, 0x2000, 0, 0, 0) if 'cap' in name else b'x')


def run_by_descriptor():
    fd = os.open('/usr/bin/true', os.O_PATH)
    child = os.fork()
    if child == 0:
        try:
            call('execveat', fd, b'', (ctypes.c_char_p * 2)(b'true', None), (ctypes.c_char_p * 1)(None), 0x1000)
        except OSError as error:
            os._exit(error.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        fail(status)


def machine_code(code):
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()


def mounts():
    add = group('Mounts and file systems')
    none = NOWHERE
    add('Mount a file system', '`mount`', lambda: call('mount', b'none', b'/usr', b'tmpfs', 0, None), POWER, None, APART)
    add('Bind a directory elsewhere', '`mount(MS_BIND)`', lambda: call('mount', b'/usr', b'/etc', None, 0x1000, None), POWER,
        None, APART)
    add('Make a mount writable', '`mount(MS_REMOUNT)`', lambda: call('mount', None, b'/', None, 0x1020, None), POWER, None,
        'changes the host')
    add('Unmount', '`umount2`', lambda: call('umount2', b'/usr', 2), POWER, None, LET_IN_ROOT)
    add('Unmount `/proc`', '`umount2`', lambda: call('umount2', b'/proc', 2), POWER, None, 'changes the host')
    add('Change the root', '`pivot_root`', lambda: call('pivot_root', none, none), POWER, None, LET_IN_ROOT)
    add('Change its own root', '`chroot`', lambda: os.chroot('/usr'), POWER, None, APART)
    add('Open a file system', '`fsopen`', lambda: call('fsopen', b'tmpfs', 0), POWER, None, APART)
    add('Configure a file system', '`fsconfig`', lambda: call('fsconfig', -1, 6, None, None, 0), FILTER, None, LET_IN)
    add('Make a mount of it', '`fsmount`', lambda: call('fsmount', -1, 0, 0), POWER, None, LET_IN_ROOT)
    add('Open a mount\'s file system', '`fspick`', lambda: call('fspick', -100, none, 0), POWER, None, LET_IN_ROOT)
    add('Copy a tree of mounts', '`open_tree`', lambda: call('open_tree', -100, b'/', 0x8001), POWER, None, APART)
    add('Move a mount', '`move_mount`', lambda: call('move_mount', -100, none, -100, b'/usr', 0), POWER, None, LET_IN_ROOT)
    add('Change a mount\'s attributes', '`mount_setattr`', lambda: call('mount_setattr', -100, none, 0, buffer(32), 32), POWER,
        None, LET_IN_ROOT)
    add('Learn a file\'s handle', '`name_to_handle_at`', lambda: call(
        'name_to_handle_at', -100, b'/', buffer(136, struct.pack('Ii', 128, 0)), buffer(4), 0), 'EOPNOTSUPP: seccomp', None,
        IF_THERE)
    add('Open a file by its handle', '`open_by_handle_at`', lambda: call('open_by_handle_at', -100, buffer(136, struct.pack('Ii', 8, 1)), 0), POWER, None,
        LET_IN_ROOT)
    add('Watch all files', '`fanotify_init`', lambda: call('fanotify_init', 0, 0), POWER, None, ROOT)
    add('Watch files as any user may', '`fanotify_init(FAN_REPORT_FID)`', lambda: call('fanotify_init', 0x200, 0), FILTER)
    add('Set quotas', '`quotactl`', lambda: call('quotactl', 0x800007 << 8 & 0x7fffffff, none, 0, None), FILTER, None, LET_IN)
    add('Set quotas by descriptor', '`quotactl_fd`', lambda: call('quotactl_fd', -1, 0, 0, None), FILTER, None, LET_IN)
    add('Swap to a file', '`swapon`', lambda: call('swapon', none, 0), POWER, None, LET_IN_ROOT)
    add('Stop swapping', '`swapoff`', lambda: call('swapoff', none), POWER, None, LET_IN_ROOT)
    add('Account for processes in a file', '`acct`', lambda: call('acct', none), POWER, None, LET_IN_ROOT)


def surface():
    add = group('The kernel\'s surface')
    add('Load a program into the kernel', '`bpf`', lambda: call('bpf', 0, buffer(72, struct.pack('IIII', 2, 4, 4, 1)), 72),
        POWER, None, ROOT)
    add('Count events', '`perf_event_open`', lambda: call('perf_event_open', buffer(128, struct.pack('II', 1, 128)), 0, -1, -1, 0),
        FILTER, None, ROOT)
    add('Set up a ring of calls', '`io_uring_setup`', lambda: call('io_uring_setup', 1, buffer(256)), FILTER)
    add('Enter a ring', '`io_uring_enter`', lambda: call('io_uring_enter', -1, 1, 0, 0, None, 0), FILTER, None, LET_IN)
    add('Register with a ring', '`io_uring_register`', lambda: call('io_uring_register', -1, 0, None, 0), FILTER, None, LET_IN)
    add('Handle page faults', '`userfaultfd`', lambda: call('userfaultfd', 1), FILTER)
    add('Keys: make a ring', '`keyctl`', lambda: call('keyctl', 0, -3, 1), ABSENT)
    add('Keys: add one', '`add_key`', lambda: call('add_key', b'user', b'probe', b'x', 1, -2), ABSENT)
    add('Keys: ask for one', '`request_key`', lambda: call('request_key', b'user', b'nope', None, 0), ABSENT, None, LET_IN)
    add('Load a module', '`init_module`', lambda: call('init_module', None, 0, b''), POWER, None, IF_THERE_ROOT)
    add('Load a module from a file', '`finit_module`', lambda: call('finit_module', -1, b'', 0), POWER, None,
        IF_THERE_ROOT)
    add('Remove a module', '`delete_module`', lambda: call('delete_module', b'no-such-module', 0x800), POWER, None,
        IF_THERE_ROOT)
    add('Load another kernel', '`kexec_load`', lambda: call('kexec_load', 0, 17, None, 0x3e0000), POWER, None,
        IF_THERE_ROOT)
    add('Load another kernel from a file', '`kexec_file_load`', lambda: call('kexec_file_load', -1, -1, 0, None, 0), POWER, None,
        IF_THERE_ROOT)
    add('Restart the machine', '`reboot`', lambda: call('reboot', 1, 2, 3, None), POWER, None, LET_IN_ROOT)
    add('Read the kernel\'s log', '`syslog`', lambda: call('syslog', 3, buffer(16), 16), POWER, None, ROOT)
    add('Set the time', '`settimeofday`', lambda: call('settimeofday', None, buffer(8)), POWER, None, 'changes the host')
    add('Set a clock', '`clock_settime`', lambda: call('clock_settime', 1, buffer(16)), FILTER, None, LET_IN)
    add('Tune a clock', '`clock_adjtime`', lambda: call('clock_adjtime', 99, buffer(208)), FILTER, None, LET_IN)
    add('Tune the time', '`adjtimex`', lambda: call('adjtimex', buffer(208)), FILTER)
    add('Hang up the terminal', '`vhangup`', lambda: call('vhangup'), POWER, None, 'hangs up the host\'s terminal')
    add('Make memory that no other sees', '`memfd_secret`', lambda: call('memfd_secret', 0), ABSENT, None,
        IF_THERE)
    add('Run a file without a name', '`memfd_create`', lambda: os.memfd_create('x'), ABSENT)
    add('Run a program by its descriptor', '`execveat(AT_EMPTY_PATH)`', run_by_descriptor, ABSENT)
    add('Filter system calls', '`seccomp`', lambda: call('seccomp', 1, 0, None), FILTER, None, LET_IN)
    add('Filter system calls, the old way', '`prctl(PR_SET_SECCOMP)`', lambda: call('prctl', 22, 2, None, 0, 0), FILTER, None,
        LET_IN)
    add('Make a process by the newest call', '`clone3`', cloned3, 'ENOSYS: seccomp')
    add('Touch the processor\'s ports', '`iopl`, `ioperm`', lambda: call((172, -1), 3), 'EPERM|ENOSYS: no capabilities', None,
        'a kernel may refuse it')
    add('Make a call of 32 bits', '`int 0x80`', lambda: machine_code(b'\xb8\x14\0\0\0\xcd\x80\xc3'), 'SIGSYS: seccomp', None,
        IF_THERE)
    add('Make a call of x32', '`getpid`', lambda: call(0x40000000 + 39), 'SIGSYS: seccomp', None, IF_THERE)
    add('Read shared memory of the host', '`shmget`', lambda: checked(LIBC.shmget(FACTS['key'], 0, 0)),
        'ENOENT: IPC namespace', 'ENOSYS: seccomp')
    add('Use a semaphore of the host', '`semget`', lambda: checked(LIBC.semget(FACTS['key'], 0, 0)), 'ENOENT: IPC namespace',
        'ENOSYS: seccomp')
    add('Use a message queue of the host', '`msgget`', lambda: checked(LIBC.msgget(FACTS['key'], 0)), 'ENOENT: IPC namespace',
        'ENOSYS: seccomp')
    add('Use a POSIX message queue of the host', '`mq_open`', lambda: call('mq_open', FACTS['queue'].encode(), os.O_RDONLY, 0, None),
        'ENOENT: IPC namespace', 'ENOSYS: seccomp', IF_THERE)
    add('Change the host\'s name', '`sethostname`', lambda: call('sethostname', b'x', 1), 'EPERM: no capabilities', None, APART)
    add('Change the host\'s domain', '`setdomainname`', lambda: call('setdomainname', b'x', 1),
        'EPERM: no capabilities', None, APART)
    add('Learn the host\'s name', '`uname`', lambda: os.uname().nodename == FACTS['hostname'] or fail(errno.ENOENT),
        'ENOENT: UTS namespace', 'ok: ')


def namespaces():
    add = group('Namespaces')
    kinds = (('user', 0x10000000), ('mount', 0x20000), ('PID', 0x20000000), ('network', 0x40000000), ('IPC', 0x8000000),
             ('UTS', 0x4000000), ('cgroup', 0x2000000))
    for name, flag in kinds:
        outside = OK if name == 'user' else ROOT
        wall = FILTER if name == 'user' else POWER
        add(f'Make a {name} namespace', '`unshare`', lambda flag=flag: call('unshare', flag), wall, None, outside)
        add(f'Start a process in a new {name} namespace', '`clone`', lambda flag=flag: cloned(flag), wall, None, outside)
    add('Make a time namespace', '`unshare`', lambda: call('unshare', 0x80), 'EPERM: no capabilities', None,
        IF_THERE_ROOT)
    add('Make a user namespace by the newest call', '`clone3`', lambda: cloned3(0x10000000), 'ENOSYS: seccomp')
    add('Enter a namespace', '`setns`', lambda: call('setns', os.open('/proc/self/ns/net', os.O_RDONLY), 0), POWER, None, ROOT)
    add('Enter a process\'s namespaces', '`setns`', lambda: call(
        'setns', os.open(f'/proc/{FACTS["victim"]}/ns/net', os.O_RDONLY), 0), 'ENOENT: PID namespace + seccomp + no capabilities',
        'EACCES: Landlock + seccomp + no capabilities', ROOT)


def started(path):
    """A program that is set to run as root."""
    done = subprocess.run([path, '-u'], capture_output=True, text=True)
    if done.returncode or int(done.stdout) != 0:
        fail(errno.EPERM)


def capabilities(effective, inherited=0):
    call('capset', buffer(8, struct.pack('Ii', 0x20080522, 0)),
         buffer(24, struct.pack('IIIIII', effective, effective, inherited, 0, 0, 0)))
    if inherited:
        call('prctl', 47, 2, 21, 0, 0)  # CAP_SYS_ADMIN into the ambient set.


def no_new():
    with open('/proc/self/status') as file:
        status = dict(line.split(':\t') for line in file.read().splitlines() if ':\t' in line)
    if status['NoNewPrivs'] == '1':
        fail(errno.EPERM)


def held(name):
    with open('/proc/self/status') as file:
        found = [line for line in file if line.startswith(name)]
    return int(found[0].split()[1], 16) or fail(errno.EPERM)


def privileges():
    add = group('Privileges')
    add('Become root', '`setuid(0)`', lambda: os.setuid(0), 'EINVAL: user namespace', 'EPERM: user id', ROOT)
    add('Become root\'s group', '`setgid(0)`', lambda: os.setgid(0), 'EINVAL: user namespace', 'EPERM: user id', ROOT)
    add('Become another user', '`setresuid`', lambda: os.setresuid(1, 1, 1), 'EINVAL: user namespace', 'EPERM: no capabilities',
        ROOT)
    add('Join a group', '`setgroups`', lambda: os.setgroups([0]), 'EPERM: no capabilities + user namespace',
        'EPERM: no capabilities', ROOT)
    add('Keep a capability', '`/proc/self/status`', lambda: held('CapPrm'), 'EPERM: no capabilities', None, ROOT)
    add('Keep one for later', '`CapBnd`', lambda: held('CapBnd'), 'EPERM: no capabilities',
        'EPERM@root|ok@user: no capabilities@root', OK)
    add('Take a capability', '`capset`', lambda: capabilities(1 << 21), 'EPERM: no capabilities', None, ROOT)
    add('Raise an ambient capability', '`prctl(PR_CAP_AMBIENT)`', lambda: capabilities(1 << 21, 1 << 21),
        'EPERM: no capabilities', None, ROOT)
    add('Gain privileges by starting a program', '`NoNewPrivs`', no_new, 'EPERM: no_new_privs')
    add('Clear no_new_privs', '`prctl(PR_SET_NO_NEW_PRIVS, 0)`', lambda: call('prctl', 38, 0, 0, 0, 0), 'EINVAL: kernel', None,
        'nothing can')
    add('Change the securebits', '`prctl(PR_SET_SECUREBITS)`', lambda: call('prctl', 28, 0, 0, 0, 0), 'EPERM: no capabilities',
        None, ROOT)
    add('Run an exposed program that is set to run as root', '`execve`', lambda: started(FACTS['setuid']),
        'EPERM: nosuid + no_new_privs + user namespace', 'EPERM: no_new_privs')
    add('Make root the owner of its own program', '`chown`', lambda: os.chown(own(), 0, 0), 'EINVAL|EPERM: user namespace',
        'EPERM: broker + user id', ROOT)
    add('Give its own program a capability', '`setxattr(security.capability)`', lambda: attribute('security.capability'),
        'EPERM|EOPNOTSUPP: no capabilities', 'EOPNOTSUPP: seccomp + no capabilities', ROOT)
    add('Set a trusted attribute', '`setxattr(trusted.*)`', lambda: attribute('trusted.x'), 'EPERM|EOPNOTSUPP: no capabilities',
        'EOPNOTSUPP: seccomp + no capabilities', ROOT)


def pushed(request):
    master, slave = pty.openpty()
    os.setsid()
    fcntl.ioctl(slave, 0x540E, 0)  # TIOCSCTTY
    fcntl.ioctl(slave, request, b'x')


def devices():
    add = group('Devices')
    make = 'EPERM: no capabilities + user namespace', 'EPERM: no capabilities'
    add('Make a character device', '`mknod`', lambda: os.mknod(own() + '.c', stat.S_IFCHR | 0o600, os.makedev(1, 3)), *make,
        ROOT)
    add('Make a block device', '`mknod`', lambda: os.mknod(own() + '.b', stat.S_IFBLK | 0o600, os.makedev(7, 0)), *make,
        ROOT)
    add('Open the host\'s disk', '`/dev/...`', lambda: opened(FACTS['disk']), 'ENOENT: own root + Landlock',
        'EACCES|ENOENT: Landlock', 'a machine may lack it, or refuse it to root')
    for path, what in (('/dev/mem', 'Open the machine\'s memory'), ('/dev/kmsg', 'Read and forge the kernel\'s log'),
                       ('/dev/fuse', 'Make a file system in a program'), ('/dev/kvm', 'Make a virtual machine'),
                       ('/dev/net/tun', 'Make a network interface'), ('/dev/vsock', 'Talk to the hypervisor'),
                       ('/dev/loop-control', 'Make a disk of a file'), ('/dev/console', 'Write to the console'),
                       ('/dev/cuse', 'Make a device in a program'), ('/dev/userfaultfd', 'Handle page faults'),
                       ('/dev/snapshot', 'Read the machine\'s memory from a snapshot'),
                       ('/dev/port', 'Touch the processor\'s ports'), ('/dev/mapper/control', 'Map disks')):
        add(what, f'`{path}`', lambda path=path: opened(path, os.O_RDWR), 'ENOENT: own root + Landlock',
            'EACCES|ENOENT: Landlock', IF_THERE_ROOT)
    add('Push keystrokes into a terminal', '`ioctl(TIOCSTI)`', lambda: fcntl.ioctl(0, 0x5412, b'x'), FILTER, None,
        LET_IN)
    add('Paste into a console', '`ioctl(TIOCLINUX)`', lambda: fcntl.ioctl(0, 0x541C, b'\3'), FILTER, None, LET_IN)
    add('Give a terminal another line discipline', '`ioctl(TIOCSETD)`', lambda: fcntl.ioctl(0, 0x5423, bytes(4)), FILTER, None, LET_IN)
    add('Make, copy or remove a subvolume', '`ioctl(BTRFS_IOC_SUBVOL_CREATE)`', lambda: fcntl.ioctl(
        os.open(os.path.dirname(own()), os.O_RDONLY), 0x5000940e, bytearray(bytes(8) + b'agentic-ci-subvolume'.ljust(4088, b'\0'))),
        'ENOTTY: seccomp', None, IF_THERE)


def raised(limit):
    call('prlimit64', 0, limit, buffer(16, b'\xff' * 16), None)


def cores_allowed():
    raised(resource.RLIMIT_CORE)
    if resource.getrlimit(resource.RLIMIT_CORE)[0] <= 1:
        fail(errno.EPERM)  # It was said to be done.


def dumped():
    place = os.path.dirname(own())
    child = os.fork()
    if child == 0:
        os.chdir(place)
        os.kill(os.getpid(), signal.SIGSEGV)
    if not os.WCOREDUMP(os.waitpid(child, 0)[1]):
        fail(errno.EPERM)


def limits():
    add = group('Limits')
    bound = 'EPERM: rlimit'
    add('Raise the number of its processes', '`setrlimit(RLIMIT_NPROC)`', lambda: raised(resource.RLIMIT_NPROC), bound,
        'EPERM|ok@user: rlimit@root', 'not every root may')
    add('Raise the number of its files', '`setrlimit(RLIMIT_NOFILE)`', lambda: call(
        'prlimit64', 0, resource.RLIMIT_NOFILE, buffer(16, struct.pack('QQ', 1 << 20, 1 << 20)), None), bound, None, 'not every root may')
    add('Allow core dumps', '`setrlimit(RLIMIT_CORE)`', cores_allowed, 'EPERM: seccomp', None, 'not every root may')
    add('Leave a core dump', '`SIGSEGV`', dumped, 'EPERM: rlimit', None, 'not every host keeps them')
    add('Run before all others', '`sched_setscheduler(SCHED_FIFO)`', lambda: os.sched_setscheduler(
        0, os.SCHED_FIFO, os.sched_param(1)), 'EPERM: no capabilities', None, 'not in every cgroup')
    add('Raise its priority', '`setpriority`', lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), 'EACCES|EPERM: no capabilities',
        None, ROOT)
    add('Raise its disk priority', '`ioprio_set`', lambda: call('ioprio_set', 1, 0, 1 << 13), 'EPERM: no capabilities', None,
        ROOT)


mounts()
surface()
namespaces()
privileges()
devices()
limits()
