# SPDX-License-Identifier: Apache-2.0
"""Other processes, those of the runner, /proc and /sys."""
import ctypes
import errno
import fcntl
import glob
import os
import resource
import signal
import socket
import struct

from table import FACTS, IF_THERE, IF_THERE_ROOT, IN, LET_IN, LIBC, OK, ROOT, buffer, call, checked, control, fail, group, opened, own, read  # noqa: F401

GONE = 'ENOENT: PID namespace + Landlock'
NO_PID = 'ESRCH: PID namespace'
FILTER = 'EPERM: seccomp'
ABSENT = 'ENOSYS: seccomp'  # Programs have a second way where the kernel lacks these calls.


def victim():
    return FACTS['victim']


def of(name):
    return f'/proc/{victim()}/{name}'


def parent_of(pid):
    """As /proc tells it: 0 beyond a PID namespace."""
    found = int(read(f'/proc/{pid}/stat').rsplit(b')', 1)[1].split()[1])
    return found or fail(errno.ESRCH)


def started(what):
    """A child that waits, while `what` is done with its id."""
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        what(child)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def memory(name, pid, address=None):
    here, there = buffer(8), buffer(8, b'secret')
    local = struct.pack('QQ', ctypes.addressof(here), 8)
    remote = struct.pack('QQ', address or ctypes.addressof(there), 8)
    call(name, pid, buffer(16, local), 1, buffer(16, remote), 1, 0)


def peeked():
    with open(of('mem'), 'rb', buffering=0) as file:
        file.seek(FACTS['address'])
        file.read(8)


def attributes(policy, nice):
    """struct sched_attr."""
    return buffer(56, struct.pack('IIQiIQQQII', 56, policy, 0, nice, 0, 0, 0, 0, 0, 0))


def limited(pid):
    """Gives it the limit that it has."""
    call('prlimit64', pid, resource.RLIMIT_NOFILE, buffer(16, struct.pack('QQ', *resource.getrlimit(resource.RLIMIT_NOFILE))), None)


def owner_of_signals(pid):
    one, _ = socket.socketpair()
    fcntl.fcntl(one, fcntl.F_SETOWN, pid)


def processes():
    add = group('Processes of the host')
    pid = victim
    for name, what in (('environ', 'environment'), ('auxv', 'auxiliary vector'), ('maps', 'memory map'), ('mem', 'memory'),
                       ('pagemap', 'page map'), ('syscall', 'registers'), ('stack', 'kernel stack')):
        attempt = peeked if name == 'mem' else lambda name=name: read(of(name)).strip() or fail(errno.EACCES)
        add(f'Read a process\'s {what}', f'`/proc/PID/{name}`', attempt, GONE, 'EACCES|EPERM: Landlock',
            ROOT if name == 'stack' else OK)
    for name, what in (('cwd', 'directory'), ('root', 'root'), ('exe', 'program'), ('fd/0', 'files'), ('ns/net', 'network')):
        add(f'Follow a process to its {what}', f'`/proc/PID/{name}`', lambda name=name: os.readlink(of(name)), GONE,
            'EACCES: Landlock')
    add('Open a file of a process', '`/proc/PID/fd`', lambda: opened(of('fd/3')), GONE, 'EACCES: Landlock')
    add('Read a file under a process\'s root', '`/proc/PID/root`', lambda: read(of('root/' + FACTS['hidden'] + '/file')),
        GONE, 'EACCES: Landlock')
    add('List the mapped files of a process', '`/proc/PID/map_files`', lambda: os.listdir(of('map_files')), GONE,
        'EACCES|EPERM: Landlock')
    add('Write to a process\'s memory', '`/proc/PID/mem`', lambda: opened(of('mem'), os.O_RDWR), GONE,
        'EACCES: Landlock')
    add('Make a process the first to be killed', '`/proc/PID/oom_score_adj`', lambda: opened(
        of('oom_score_adj'), os.O_WRONLY), GONE, 'EACCES: Landlock')
    add('Move a process\'s ids', '`/proc/PID/uid_map`', lambda: opened(of('uid_map'), os.O_WRONLY), GONE,
        'EACCES: Landlock')
    add('See its name and arguments', '`/proc/PID/cmdline`', lambda: read(of('cmdline')), 'ENOENT: PID namespace', 'ok: ')

    add('Signal a process', '`kill`', lambda: os.kill(pid(), 0), NO_PID, 'EPERM: Landlock + user id@root')
    add('Signal its thread', '`tgkill`', lambda: call('tgkill', pid(), pid(), 0), NO_PID,
        'EPERM: Landlock + user id@root')
    add('Signal it with a value', '`rt_sigqueueinfo`', lambda: call(
        'rt_sigqueueinfo', pid(), 10, buffer(128, struct.pack('iii', 10, 0, -1))) if not control() else os.kill(pid(), 0),
        NO_PID, 'EPERM: Landlock + user id@root')
    add('Signal its group', '`kill(-PID)`', lambda: os.killpg(os.getpgid(pid()) if control() else FACTS['group'], 0), NO_PID,
        'EPERM: Landlock + user id@root')
    add('Have the kernel signal it', '`fcntl(F_SETOWN)`', lambda: owner_of_signals(pid()), NO_PID,
        'EPERM: seccomp')
    add('Hold it by a descriptor', '`pidfd_open`', lambda: call('pidfd_open', pid(), 0), NO_PID, 'EPERM: broker')
    add('Signal by descriptor', '`pidfd_send_signal`', lambda: call('pidfd_send_signal', os.open(
        f'/proc/{pid()}', os.O_RDONLY), 0, None, 0), 'ENOENT: PID namespace', ABSENT)
    add('Copy a descriptor of a process', '`pidfd_getfd`', lambda: call('pidfd_getfd', -1, 0, 0), FILTER, None, LET_IN)
    add('Trace it', '`ptrace(PTRACE_SEIZE)`', lambda: call('ptrace', 0x4206, pid(), 0, 0), 'EPERM: seccomp + PID namespace',
        'EPERM: seccomp + Landlock')
    add('Trace a process of its own', '`ptrace(PTRACE_SEIZE)`', lambda: started(lambda child: call(
        'ptrace', 0x4206, child, 0, 0)), FILTER)
    add('Read its memory', '`process_vm_readv`', lambda: memory('process_vm_readv', pid(), FACTS['address']),
        'EPERM: seccomp + PID namespace', 'EPERM: seccomp + Landlock')
    add('Write its memory', '`process_vm_writev`', lambda: memory('process_vm_writev', pid(), FACTS['address'] & ~4095),
        'EPERM: seccomp + PID namespace', 'EPERM: seccomp + Landlock')
    add('Read the memory of a process of its own', '`process_vm_readv`', lambda: started(
        lambda child: memory('process_vm_readv', child)), FILTER)
    add('Give away a process\'s memory', '`process_madvise`', lambda: call('process_madvise', -1, None, 0, 4, 0), ABSENT,
        None, LET_IN)
    add('Compare kernel objects', '`kcmp`', lambda: call('kcmp', os.getpid(), os.getpid(), 0, 0, 0), ABSENT)
    add('Move a process\'s pages', '`move_pages`', lambda: call('move_pages', pid(), 0, None, None, None, 0),
        'ENOSYS: seccomp + PID namespace', 'ENOSYS: seccomp + Landlock', OK)
    add('Move a process to other memory', '`migrate_pages`', lambda: call('migrate_pages', pid(), 0, None, None),
        'ENOSYS: seccomp + PID namespace', 'ENOSYS: seccomp + Landlock', LET_IN)
    add('Find its locks', '`get_robust_list`', lambda: call('get_robust_list', pid(), buffer(8), buffer(8)), NO_PID,
        'EPERM: Landlock')
    add('Change its limits', '`prlimit64`', lambda: limited(pid()), NO_PID,
        'EPERM: seccomp + user id@root')
    add('Open its terminal', '`open("/dev/pts/...")`', lambda: opened(FACTS['terminal'], os.O_RDWR | os.O_NOCTTY),
        'ENOENT: own root', 'EACCES: Landlock@user + user id@root')
    add('Change its priority', '`setpriority`', lambda: os.setpriority(os.PRIO_PROCESS, pid(), 19), NO_PID,
        'EPERM|EACCES: broker@user + user id@root')
    add('Change all priorities of its user', '`setpriority(PRIO_USER)`', lambda: os.setpriority(
        os.PRIO_USER, os.getuid(), 1), FILTER, None, 'changes the host')
    add('Change its disk priority', '`ioprio_set`', lambda: call('ioprio_set', 1, pid(), 2 << 13 | 7), NO_PID,
        'EPERM: broker@user + user id@root')
    add('Choose its processors', '`sched_setaffinity`', lambda: os.sched_setaffinity(pid(), os.sched_getaffinity(0)),
        NO_PID, 'EPERM: broker@user + user id@root')
    add('Change its scheduling', '`sched_setattr`', lambda: call('sched_setattr', pid(), attributes(3, 19), 0), NO_PID,
        'EPERM: broker@user + user id@root')


def runner():
    """The supervisor: the parent of the sandbox's first process."""
    return FACTS['supervisor'] or fail(errno.ESRCH)


def first():
    return FACTS['first']


def gateway():
    if control():
        return victim()
    for entry in os.listdir('/proc'):
        if entry.isdigit() and parent_of_or_none(entry) == FACTS['supervisor'] and \
                read(f'/proc/{entry}/comm') == b'gateway\n':
            return int(entry)
    return fail(errno.ESRCH)


def parent_of_or_none(pid):
    try:
        return parent_of(pid)
    except OSError:
        return None


def of_runner():
    add = group('Processes of the runner')
    for who, process in (('supervisor', runner), ('gateway', gateway)):
        for name, what in (('environ', 'environment'), ('mem', 'memory'), ('fd', 'files'), ('cwd', 'directory')):
            add(f'The {who}\'s {what}', f'`/proc/PID/{name}`', lambda name=name, process=process: looked(process(), name),
                NO_PID, 'EACCES: not dumpable + user id@root' if name == 'fd' else 'EACCES: Landlock + not dumpable')
        add(f'Signal the {who}', '`kill`', lambda process=process: os.kill(process(), 0), NO_PID,
            'EPERM: Landlock + user id@root')
        add(f'Hold the {who} by a descriptor', '`pidfd_open`', lambda process=process: call('pidfd_open', process(), 0),
            NO_PID, 'EPERM: broker')
        add(f'Trace the {who}', '`ptrace`', lambda process=process: call('ptrace', 0x4206, process(), 0, 0),
            NO_PID + ' + seccomp', 'EPERM: seccomp + Landlock')
        add(f'Change the {who}\'s limits', '`prlimit64`', lambda process=process: limited(
            process()), NO_PID, 'EPERM: seccomp + user id@root')
    for name, what in (('environ', 'environment'), ('mem', 'memory'), ('fd', 'files'), ('cwd', 'directory'),
                       ('exe', 'program')):
        add(f'The first process\'s {what}', f'`/proc/1/{name}`', lambda name=name: looked(first(), name),
            'EACCES: not dumpable' if name == 'fd' else 'EACCES: Landlock + not dumpable')
    add('Trace the first process', '`ptrace`', lambda: call('ptrace', 0x4206, first(), 0, 0),
        'EPERM: seccomp + not dumpable + Landlock')
    add('Kill the first process', '`kill`', lambda: killed_first(), 'EPERM: Landlock + PID namespace',
        'EPERM: Landlock + user id@root')
    add('Change the first process\'s limits', '`prlimit64`', lambda: limited(first()), FILTER, FILTER)
    add('Hold the first process by a descriptor', '`pidfd_open`', lambda: call('pidfd_open', first(), 0), FILTER, 'EPERM: broker')
    add('Choose the first process\'s processors', '`sched_setaffinity`', lambda: os.sched_setaffinity(
        first(), os.sched_getaffinity(0)), FILTER, 'EPERM: seccomp + user id@root')
    add('Slow the first process down', '`setpriority`', lambda: os.setpriority(os.PRIO_PROCESS, first(), 19),
        FILTER, 'EPERM: seccomp + user id@root')
    add('A variable of the job', '`environ`', lambda: 'JOB_TOKEN' in os.environ or fail(errno.ENOENT), 'ENOENT: environment')
    add('Any process\'s variables and arguments', '`/proc/*/environ`', searched, 'ENOENT: environment + PID namespace',
        'ENOENT: Landlock + environment')
    for what, name in (('A credential in git\'s configuration', '.git/config'),
                       ('A credential in another checkout\'s configuration', 'of-the-checkout/other/.git/config'),
                       ('A credential file that an earlier step left', 'of-the-checkout/.netrc')):
        add(what, f'`{name}`', lambda name=name: FACTS['canary'].encode() in read(name) or fail(errno.ENOENT),
            'ENOENT: environment')
    add('The report directory', '`getdents64`', lambda: os.listdir(FACTS['report']), 'ENOENT: own root + Landlock',
        'EACCES: Landlock')


def looked(pid, name):
    path = f'/proc/{pid}/{name}'
    if name == 'fd':
        return os.listdir(path)
    return os.readlink(path) if name in ('cwd', 'exe') else opened(path)


def killed_first():
    os.kill(first(), 0)


def searched():
    canary = FACTS['canary'].encode()
    for entry in os.listdir('/proc'):
        for name in ('environ', 'cmdline'):
            try:
                if entry.isdigit() and int(entry) != os.getpid() and canary in read(f'/proc/{entry}/{name}'):
                    return
            except OSError:
                pass
    fail(errno.ENOENT)


def kernel_files():
    add = group('/proc, /sys and cgroups')
    write_only = lambda path: lambda: opened(path, os.O_WRONLY)
    for path, what, outside in (('/proc/sys/kernel/core_pattern', 'Have the kernel start a program', ROOT),
                                ('/proc/sys/kernel/modprobe', 'Choose who loads modules', IF_THERE_ROOT),
                                ('/proc/sys/vm/drop_caches', 'Drop the caches', ROOT),
                                ('/proc/sys/vm/overcommit_memory', 'Change how memory is given', ROOT),
                                ('/proc/sys/kernel/randomize_va_space', 'Switch off address randomisation', ROOT),
                                ('/proc/sys/user/max_user_namespaces', 'Allow namespaces', 'not every root may'),
                                ('/proc/sysrq-trigger', 'Restart the machine', IF_THERE_ROOT)):
        add(what, f'`{path}`', write_only(path), 'EACCES|ENOENT: Landlock + user id' if outside == IF_THERE_ROOT else
            'EACCES: Landlock + user id', None, outside)
    add('Forward packets', '`/proc/sys/net/ipv4/ip_forward`', write_only('/proc/sys/net/ipv4/ip_forward'),
        'EACCES: Landlock + user id', None, ROOT)
    add('Read the kernel\'s memory', '`/proc/kcore`', lambda: opened('/proc/kcore'), 'EACCES|EPERM|ENOENT: user id', None, IF_THERE_ROOT)
    add('Read the kernel\'s log', '`/proc/kmsg`', lambda: opened('/proc/kmsg', os.O_RDONLY | os.O_NONBLOCK),
        'EACCES|EPERM: user id + no capabilities', None, ROOT)
    add('See the keys of its user', '`/proc/keys`', lambda: read('/proc/keys'), 'EACCES: mask', 'ok: ', IF_THERE)
    add('Spare itself from being killed', '`/proc/self/oom_score_adj`', write_only('/proc/self/oom_score_adj'),
        'EACCES: Landlock')
    add('Change its own ids', '`/proc/self/uid_map`', write_only('/proc/self/uid_map'), 'EACCES: Landlock')
    add('Write to its memory through a file', '`/proc/self/mem`', lambda: opened('/proc/self/mem', os.O_RDWR),
        'EACCES: Landlock')
    for path, what, outside in (('/sys/class/net', 'List the host\'s interfaces', OK), ('/sys/devices/virtual', 'List its devices', OK),
                                ('/sys/fs/cgroup', 'List the cgroups', OK), ('/sys/kernel', 'Look at the kernel', OK)):
        add(what, f'`{path}`', lambda path=path: os.listdir(path), 'ENOENT: own root + Landlock', 'EACCES: Landlock', outside)
    add('Change what is reported of the processors', '`/sys/devices/system/cpu/uevent`', write_only('/sys/devices/system/cpu/uevent'),
        'EROFS|EACCES: user id + Landlock', None, ROOT)
    add('Have the kernel start a program for a device', '`/sys/kernel/uevent_helper`', write_only('/sys/kernel/uevent_helper'),
        'ENOENT: own root + Landlock', 'EACCES|ENOENT: Landlock + user id', IF_THERE)


processes()
of_runner()
kernel_files()
