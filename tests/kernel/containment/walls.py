# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of the sandbox, each put up by itself around a root with all its rights: what is named beside a probe is
to stop it then too."""
import ctypes
import os
import struct

import table
from table import FACTS, buffer, call, checked, write

LIBC = table.LIBC
CAPABILITIES = 64
NEW_MOUNTS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
REMOUNT_BIND, READ_ONLY, NO_SUID = 0x1020, 1, 2


def mount(source, target, kind, flags):
    call('mount', source, target, kind, flags, None)


def private_mounts():
    call('unshare', NEW_MOUNTS)
    mount(b'none', b'/', None, 0x4000 | 0x40000)


def remounted(flag):
    """The exposed places, with that flag."""
    private_mounts()
    for place in (FACTS['shown'], os.path.dirname(FACTS['setuid']), '/usr', '/etc'):
        mount(place.encode(), place.encode(), None, 0x1000)
        mount(None, place.encode(), None, REMOUNT_BIND | flag)


def drop_capabilities(low=0, high=0):
    """All but those."""
    if not low:
        for capability in range(CAPABILITIES):
            LIBC.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    held = buffer(24)
    call('capget', buffer(8, struct.pack('Ii', 0x20080522, 0)), held)
    one, _, _, two, _, _ = struct.unpack('6I', held.raw)
    call('capset', buffer(8, struct.pack('Ii', 0x20080522, 0)),
         buffer(24, struct.pack('6I', one & low, one & low, 0, two & high, two & high, 0)))


def another_user():
    os.setgroups([])
    os.setresgid(65533, 65533, 65533)
    os.setresuid(65533, 65533, 65533)


def seccomp():
    """The agent's own filter, as it was read from an agent. A call that is passed on has nobody to go to."""
    with open(FACTS['filter'], 'rb') as file:
        code = file.read()
    memory = buffer(len(code), code)
    program = buffer(16, struct.pack('HxxxxxxQ', len(code) // 8, ctypes.addressof(memory)))
    checked(LIBC.prctl(22, 2, program, 0, 0))  # PR_SET_SECCOMP


def landlock():
    """Without the rights to look at the performance of any process, which go before it."""
    drop_capabilities(0xfffffffe ^ 1 << 21, 0xffffffff ^ 1 << 6)
    abi = call(444, None, 0, 1)
    files = (1 << (13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16)) - 1
    ruleset = call(444, buffer(24, struct.pack('QQQ', files, 2, 3)), 24 if abi >= 6 else 16 if abi >= 4 else 8, 0)
    shown = [FACTS['shown'], os.path.dirname(FACTS['setuid']), '/usr', '/proc', '/lib', '/lib64']
    shown += ['/etc/' + name for name in os.listdir('/etc') if name != 'shadow']
    for path, rights in [(path, 0b1101) for path in shown] + [(path, files) for path in (os.getcwd(), '/dev/null')]:
        if os.path.exists(path):
            place = os.open(path, os.O_PATH)
            allowed = rights & (files if os.path.isdir(path) else 0xc007)
            checked(LIBC.syscall(445, ruleset, 1, buffer(12, struct.pack('=Qi', allowed, place)), 0))
    call(446, ruleset, 0)


def user_namespace():
    call('unshare', NEW_USER)
    write('/proc/self/setgroups', 'deny')
    write('/proc/self/uid_map', '1000 0 1')
    write('/proc/self/gid_map', '1000 0 1')


def pid_namespace():
    """For the children of this process: the attempt is made by one."""
    private_mounts()
    call('unshare', NEW_PID)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    mount(b'proc', b'/proc', b'proc', 0)


RAISE = {
    'seccomp': seccomp,
    'Landlock': landlock,
    'no capabilities': drop_capabilities,
    'user id': another_user,
    'no_new_privs': lambda: (another_user(), call('prctl', 38, 1, 0, 0, 0)),
    'nosuid': lambda: (remounted(NO_SUID), another_user()),
    'read-only': lambda: remounted(READ_ONLY),
    'user namespace': user_namespace,
    'PID namespace': pid_namespace,
    'network namespace': lambda: call('unshare', NEW_NET),
    'IPC namespace': lambda: call('unshare', NEW_IPC),
    'UTS namespace': lambda: (call('unshare', NEW_UTS), call('sethostname', b'sandbox', 7)),
}


def names(probe, wall, tier=''):
    """Whether that wall is said to stop the probe, in that tier or in any, where the runner is root."""
    wanted = [getattr(probe, tier)] if tier else [probe.namespaces, probe.landlock]
    return any(name == wall and only != 'user' for one in wanted for name, only in one.walls)


def read_filter(pid):
    """The newest filter of that process, by tracing it for a moment."""
    call('ptrace', 0x4206, pid, 0, 0)  # PTRACE_SEIZE
    try:
        call('ptrace', 0x4207, pid, 0, 0)  # PTRACE_INTERRUPT
        os.waitpid(pid, 0x40000000)  # __WALL
        count = call('ptrace', 0x420c, pid, 0, None)  # PTRACE_SECCOMP_GET_FILTER
        code = buffer(count * 8)
        call('ptrace', 0x420c, pid, 0, code)
        return code.raw
    finally:
        call('ptrace', 17, pid, 0, 0)  # PTRACE_DETACH
