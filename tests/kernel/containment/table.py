# SPDX-License-Identifier: Apache-2.0
"""What one probe is, and what the lists of probes are written with."""
import ctypes
import dataclasses
import errno
import os
import platform
import socket
import tempfile
import typing

# What stops an attempt: the name used in the lists, and what it means. docs/reference/containment.md prints these.
WALLS = {
    'own root': 'The sandbox has a mount namespace and a root of its own. What the policy does not expose is not there.',
    'read-only': 'What is exposed is mounted read-only.',
    'mask': 'Known credentials in an exposed directory are covered by an unreadable file or directory.',
    'overlay': 'The checkout and every exposed directory are overlays: writes stay in a layer of the run, and sockets, pipes and '
               'locks are not the host\'s.',
    'copy': 'The agent works on a copy of the checkout; the checkout itself is not exposed.',
    'Landlock': 'A Landlock ruleset of the agent\'s process allows the exposed paths, and, by ABI, TCP connections, signals and '
                'abstract sockets of the sandbox only. It also denies tracing of processes outside.',
    'user id': 'The agent is not root. If the runner is, the agent has an id of its own, which owns nothing of the host.',
    'nosuid': 'Every mount ignores set-user-ID bits and file capabilities.',
    'user namespace': 'The agent\'s user namespace maps one ordinary id; no other exists there, 0 included.',
    'PID namespace': 'Processes of the host have no process id in the sandbox.',
    'network namespace': 'The sandbox has a network of its own, with only a loopback interface. Every address leads to the gateway.',
    'gateway': 'Every connection and name request is answered by the gateway, which refuses what the policy does not allow.',
    'packet filter': 'nf_tables in the sandbox\'s network namespace refuses every packet other than TCP and name requests.',
    'IPC namespace': 'System V objects and message queues of the host do not exist in the sandbox.',
    'UTS namespace': 'The sandbox has a host name of its own.',
    'seccomp': 'The system-call filter refuses the call.',
    'broker': 'The system-call filter passes the call to the supervisor, which decides, and carries it out itself.',
    'no capabilities': 'The agent has no capability and, if the runner is root or in tier `namespaces`, an empty bounding set.',
    'no_new_privs': 'Starting a program never adds privileges.',
    'not dumpable': 'The runner\'s processes in the sandbox do not let themselves be looked into.',
    'environment': 'The agent\'s environment is built from a list; files of the checkout with credentials are replaced '
                   'or left out.',
    'rlimit': 'A limit of the process, which only a privileged process can raise.',
    'kernel': 'The kernel refuses this to everybody in that position.',
}
# The control of a probe: outside of the sandbox the same attempt ...
OK = 'succeeds'
ROOT = 'succeeds as root'  # As another user it is refused for want of a capability or a file's mode.
APART = 'succeeds in namespaces of its own'  # Where it does no harm to the host.
LET_IN = 'reaches the system call, which rejects the arguments'
LET_IN_ROOT = 'as root reaches the system call, which rejects the arguments'
IF_THERE = 'succeeds if the kernel or the machine has it'
IF_THERE_ROOT = 'as root succeeds if the kernel or the machine has it'
# Any other text says why there is no control: the attempt is then not made outside.
CONTROLS = (OK, ROOT, APART, LET_IN, LET_IN_ROOT, IF_THERE, IF_THERE_ROOT)
IF = (IF_THERE, IF_THERE_ROOT)
ROOTS = (ROOT, LET_IN_ROOT, IF_THERE_ROOT)
MISSING = ('ok', 'ENOENT', 'ENXIO', 'ENODEV', 'ENOSYS', 'EAFNOSUPPORT', 'EPROTONOSUPPORT', 'ESOCKTNOSUPPORT', 'EOPNOTSUPP',
           'ENOTTY', 'EADDRNOTAVAIL')
IN = ('ok', 'ENOENT', 'EINVAL', 'EFAULT', 'EBADF', 'ENOKEY', 'ENOTTY', 'ENODEV', 'ENOTBLK', 'ENXIO', 'ESTALE', 'EOPNOTSUPP')

GROUPS = {}  # Title -> its probes, in the order of the document.


@dataclasses.dataclass
class Wanted:
    """What a tier answers, and what stops the attempt there: the first by itself, the others would if it did not."""
    answers: list  # (answer, '' or the only identity of the runner's that is given it)
    walls: list  # (name, likewise)

    @staticmethod
    def parse(text):
        answers, _, walls = text.partition(': ')
        split = lambda parts: [tuple((part + '@').split('@')[:2]) for part in parts if part]
        return Wanted(split(answers.split('|')), split(walls.split(' + ')))

    def answers_of(self, identity):
        return [answer for answer, only in self.answers if only in ('', identity)]


@dataclasses.dataclass
class Probe:
    name: str
    what: str
    how: str
    attempt: typing.Callable
    namespaces: Wanted
    landlock: Wanted
    control: str
    looks_at: str  # The file of the checkout that is not to change; '' where the answer alone counts.


def group(title):
    """add(what, how, attempt, namespaces, landlock, control) for a group of that title."""
    probes = GROUPS.setdefault(title, [])

    def add(what, how, attempt, namespaces, landlock=None, control=OK, looks_at=''):
        wanted = [Wanted.parse(text) for text in (namespaces, landlock or namespaces)]
        probes.append(Probe(f'{title}: {what}', what, how, attempt, *wanted, control, looks_at))
    return add


# x86-64 and arm64; from 424 on they agree.
NUMBERS = {
    'acct': (163, 89), 'add_key': (248, 217), 'adjtimex': (159, 171), 'bpf': (321, 280), 'capget': (125, 90),
    'capset': (126, 91),
    'clock_adjtime': (305, 266), 'clock_settime': (227, 112), 'clone': (56, 220), 'delete_module': (176, 106),
    'execveat': (322, 281), 'fanotify_init': (300, 262), 'finit_module': (313, 273), 'init_module': (175, 105),
    'ioprio_set': (251, 30), 'kcmp': (312, 272), 'kexec_file_load': (320, 294), 'kexec_load': (246, 104),
    'keyctl': (250, 219), 'linkat': (265, 37), 'lookup_dcookie': (212, 18), 'migrate_pages': (256, 238),
    'mknodat': (259, 33), 'mount': (165, 40), 'move_pages': (279, 239), 'mq_open': (240, 180), 'msgget': (68, 186),
    'name_to_handle_at': (303, 264), 'open_by_handle_at': (304, 265), 'perf_event_open': (298, 241),
    'pivot_root': (155, 41), 'prctl': (157, 167), 'prlimit64': (302, 261), 'process_vm_readv': (310, 270),
    'process_vm_writev': (311, 271), 'ptrace': (101, 117), 'quotactl': (179, 60), 'reboot': (169, 142),
    'renameat2': (316, 276), 'request_key': (249, 218), 'rt_sigqueueinfo': (129, 138), 'sched_setattr': (314, 274),
    'sched_setscheduler': (144, 119), 'seccomp': (317, 277), 'semget': (64, 190), 'semop': (65, 193),
    'setdomainname': (171, 162), 'sethostname': (170, 161), 'setns': (308, 268), 'settimeofday': (164, 170),
    'shmat': (30, 196), 'shmget': (29, 194), 'swapoff': (168, 225), 'swapon': (167, 224), 'syslog': (103, 116),
    'tgkill': (234, 131), 'umount2': (166, 39), 'unshare': (272, 97), 'userfaultfd': (323, 282), 'vhangup': (153, 58),
    'get_robust_list': (274, 100), 'pidfd_send_signal': 424, 'io_uring_setup': 425, 'io_uring_enter': 426,
    'io_uring_register': 427, 'open_tree': 428, 'move_mount': 429, 'fsopen': 430, 'fsconfig': 431, 'fsmount': 432,
    'fspick': 433, 'pidfd_open': 434, 'clone3': 435, 'pidfd_getfd': 438, 'process_madvise': 440, 'mount_setattr': 442,
    'quotactl_fd': 443, 'memfd_secret': 447, 'process_mrelease': 448, 'fchmodat2': 452, 'setxattrat': 463,
}
LIBC = ctypes.CDLL(None, use_errno=True)
FACTS = {}  # What is where outside of the sandbox: outside.py.
INTEL = platform.machine() == 'x86_64'


def call(name, *arguments):
    number = NUMBERS[name] if isinstance(name, str) else name
    if isinstance(number, tuple):
        number = number[0 if INTEL else 1]
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    rc = LIBC.syscall(ctypes.c_long(number), *wide)
    if rc < 0:
        fail(ctypes.get_errno())
    return rc


def checked(rc):
    """The result of a function of the C library."""
    if rc < 0:
        fail(ctypes.get_errno())
    return rc


def fail(number):
    raise OSError(number, os.strerror(number))


def buffer(size=256, content=b''):
    return ctypes.create_string_buffer(content, size)


def read(path):
    with open(path, 'rb') as file:
        return file.read(4096)


def write(path, text='x', mode='w'):
    with open(path, mode) as file:
        file.write(text)


def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags))


def own(name='file'):
    """A new file of the agent's own, in a directory of its own."""
    path = os.path.join(tempfile.mkdtemp(), name)
    write(path)
    return path


def control():
    return FACTS['control']


def family_socket(family, kind=socket.SOCK_STREAM, protocol=0):
    return socket.socket(family, kind, protocol)


def every_probe():
    return [probe for probes in GROUPS.values() for probe in probes]


def wrong(probes, tier, identity, inside):
    """[what is not as it should be] of the answers inside a sandbox of that tier, for a runner of that identity."""
    found = []
    for probe in probes:
        wanted = getattr(probe, tier).answers_of(identity)
        if inside.get(probe.name, 'nothing') not in wanted:
            found.append(f'{probe.name}: {inside.get(probe.name)}, not {" or ".join(wanted)}')
    return found


def succeeds(probe, answer):
    """Whether an attempt outside that is answered so was not refused."""
    good = {LET_IN: IN, LET_IN_ROOT: IN, IF_THERE: MISSING, IF_THERE_ROOT: MISSING}.get(probe.control, ('ok', 'changed'))
    return answer in good


def wrong_controls(probes, identity, outside, refused=()):
    """Likewise, of the answers outside. `refused`: the names of those that this place itself refuses."""
    asked = [probe for probe in probes if probe.control in CONTROLS and probe.name not in refused and
             (probe.control not in ROOTS or identity == 'root')]
    return [f'{probe.name}: the control was refused too: {outside.get(probe.name)}' for probe in asked
            if not succeeds(probe, outside.get(probe.name))]
