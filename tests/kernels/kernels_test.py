#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sandbox promises on other kernels: cases of tests/kernel, in a machine that QEMU emulates.

kernels_test.py DIRECTORY RUNNER PROBE [NAME...]

DIRECTORY keeps kernels and root file systems (tools/machine.py). The machine is of the runner's architecture. Cases run as root and as
an ordinary user, like everywhere. NAMEs select kernels by a part of their name; without one the architecture's first is booted,
and with AGENTIC_CI_KERNELS=all every one. On kernels that are too old, a run is refused, and says what is missing.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, '..', 'kernel')
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'tools'))
import machine  # noqa: E402
BOOT_SECONDS = 1800  # Every case in both tiers took more than fifteen minutes on a busy machine.
# One of each kind of promise: emulation is ten times slower than the machine.
NAMES = ['apply_brings_the_changes', 'nothing_outside_can_be', 'no_packet_leaves', 'calls_an_agent_may_not_make',
         'record_says_what', 'dies_with_a_killed_supervisor', 'is_copied', 'test_pids_limit_is', 'no_core_goes']
# And for every kernel, where there is time.
MORE = ['secret_of_the_host_is_readable_under', 'nothing_of_the_host_answers_in_the_checkout', 'calls_a_build_needs',
        'landlock_holds', 'on_a_tmpfs', 'git_works_in_a_checkout', 'first_process_cannot', 'agent_sees_the_sandbox', 'octor',
        # Every way to use up what there is: memory, disk, inodes, output, processors, time, the gateway.
        'test_memory_limit_is', 'left_for_swap', 'test_disk_limit_is', 'number_of_files', 'test_output_limit_is',
        'cpu_time_of_all', 'test_time_limit_is', 'idle_limit', 'handshakes_without_end']
HOLDS = '''#!/bin/sh
printf '#!/bin/sh\\ncat >/dev/null; echo core >>/run/cores\\n' >/usr/local/bin/take-core && chmod 755 /usr/local/bin/take-core
: >/run/cores && chmod a+r /run/cores && echo '|/usr/local/bin/take-core' >/proc/sys/kernel/core_pattern
export TMPDIR=/var/tmp KERNEL_TEST_TIERS="{tiers}"
cd /root/kernel && python3 kernel_test.py /usr/local/bin/agentic-ci /usr/local/bin/kernel_probe {names}
'''
# tools/demo on a machine that has this kernel, in the best tier that it gives.
DEMO = '''#!/bin/sh
mkdir /srv/demo && tar -xf /root/demo.tar -C /srv/demo && chmod -R a+rX /srv
exec python3 -B /srv/demo/tools/demo.py --binary /usr/local/bin/agentic-ci --directory /var/tmp/demo
'''
# Each tier as root and as an ordinary user: 69, what is missing and what to do; and the agent was not started.
REFUSES = '''#!/bin/bash
export TMPDIR=/var/tmp
passed=0 failed=0
check() {{ if eval "$2"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED  $1: $said"; fi; }}
mkdir /srv/checkout && echo x >/srv/checkout/file && chmod -R a+rX /srv
for user in root u; do
  for tier in namespaces landlock; do
    said=$(cd /srv && runuser -u $user -- env HOME=/tmp agentic-ci run --isolation $tier --workdir checkout \
      --report-dir $(runuser -u $user -- mktemp -d)/report -- echo started 2>&1); code=$?
    check "$tier as $user ends with 69" '[ $code = 69 ]'
    check "$tier as $user does not start" '! grep -q ^started <<<"$said"'
    check "$tier as $user says what is missing" 'grep -Eq "error: .*(overlayfs|Landlock|landlock|Linux 5)" <<<"$said"'
    check "$tier as $user says what to do" 'grep -Eq "hint: |agentic-ci doctor" <<<"$said"'
  done
  said=$(runuser -u $user -- agentic-ci doctor 2>&1)
  check "doctor as $user" 'grep -q "Linux 5.12" <<<"$said"'
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
'''
# name: (architecture, pattern of the image package if not the architecture's own, suite, kind of cgroups, script)
KERNELS = {
    'linux-6.1-cgroup-v2': ('amd64', None, 'bookworm', 'v2', HOLDS),
    'linux-6.1-cgroup-v1': ('amd64', None, 'bookworm', 'v1', HOLDS),
    'linux-6.1-cgroup-hybrid': ('amd64', None, 'bookworm', 'hybrid', HOLDS),
    'linux-6.12-cgroup-v2': ('amd64', None, 'bookworm-backports', 'v2', HOLDS),
    'linux-6.1-demo': ('amd64', None, 'bookworm', 'v2', DEMO),
    'linux-6.12-demo': ('amd64', None, 'bookworm-backports', 'v2', DEMO),
    'linux-5.10-cgroup-v2': ('amd64', r'linux-image-5\.10\..*-cloud-amd64', 'bullseye', 'v2', REFUSES),
    'linux-6.1-arm64': ('arm64', None, 'bookworm', 'v2', HOLDS),
    # Pages of 16 KiB.
    'linux-6.12-arm64-16k': ('arm64', 'linux-image-arm64-16k', 'bookworm-backports', 'v2', HOLDS),
}
# Of the ELF header's e_machine.
MACHINES = {62: 'amd64', 183: 'arm64'}


def architecture_of(program):
    with open(program, 'rb') as file:
        return MACHINES[int.from_bytes(file.read(20)[18:], 'little')]


def pack_demo(archive):
    """What tools/demo needs beside the binary, with the agent from npm. Says why it cannot be had, or nothing."""
    agent = subprocess.run([os.path.join(ROOT, 'tests/agents/install'), os.path.join(ROOT, 'build/agents'), 'claude-code'],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if agent.returncode:
        return agent.stderr.strip()
    subprocess.run(['tar', '-cf', archive, '-C', ROOT, 'tools/demo.py', 'tests/agents', 'tests/services', 'policies',
                    'build/agents/claude-code'], check=True)
    return ''


def main():
    directory, runner, probe, *names = sys.argv[1:]
    architecture = architecture_of(runner)
    emulator = machine.EMULATORS[architecture][1][0]
    if not shutil.which(emulator):
        print(f'# SKIP kernels: {emulator} is not there')
        return 4
    if os.geteuid() != 0:
        print('# SKIP kernels: only root can make a file system for the guest')
        return 4
    every = os.environ.get('AGENTIC_CI_KERNELS') == 'all'
    known = {name: kernel for name, kernel in KERNELS.items() if kernel[0] == architecture}
    if not every:
        names = names or [next(iter(known))]
    chosen = {name: kernel for name, kernel in known.items() if not names or any(wanted in name for wanted in names)}
    if not chosen:
        print(f'FAILED  no kernel is called {" or ".join(names)}\n0 passed, 1 failed')
        return 1
    files = [(path, '/root/kernel/' + os.path.relpath(path, CASES))
             for path in sorted(glob.glob(CASES + '/**/*.py', recursive=True))]
    files += [(runner, '/usr/local/bin/agentic-ci'), (probe, '/usr/local/bin/kernel_probe')]
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, (_, pattern, suite, cgroups, text) in chosen.items():
            place = machine.fetch(directory, architecture, pattern, suite)
            if place is None:
                print(f'# SKIP {name}: apt knows no such kernel')
                continue
            brought = files
            if text is DEMO:
                why = pack_demo(scratch + '/demo.tar')
                if why:
                    print(f'# SKIP {name}: {why}')
                    continue
                brought = files + [(scratch + '/demo.tar', '/root/demo.tar')]
            print(f'== {name}', flush=True)
            script = text.format(names=' '.join(NAMES + MORE if every else NAMES),
                                 tiers='namespaces landlock' if every else 'namespaces')
            code, output = machine.boot(*place, architecture, script, brought, cgroups, BOOT_SECONDS)
            print(re.sub(r'^\d+ passed, \d+ failed\n', '', output, flags=re.MULTILINE), flush=True)
            count = re.findall(r'^(\d+) passed, (\d+) failed', output, re.MULTILINE)
            more = (int(count[-1][0]), int(count[-1][1])) if count else (0, 1)
            if code != 0 and more[1] == 0:
                more = more[0], 1
            passed, failed = passed + more[0], failed + more[1]
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
