#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sandbox promises on other kernels: cases of tests/kernel, in a machine that QEMU emulates.

kernels_test.py BOOT RUNNER PROBE [NAME...]

BOOT starts a Debian kernel with a file system of its own and runs a script there as root. Cases run
as root and as an ordinary user, like everywhere. NAMEs select kernels by a part of their name;
without one Debian 12's own is booted, and with AGENTIC_CI_KERNELS=all every one. On kernels that are too old, a
run is refused, and says what is missing.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, '..', 'kernel')
ROOT = os.path.dirname(os.path.dirname(HERE))
BOOT_SECONDS = 1800  # Every case in both tiers took more than fifteen minutes on a busy machine.
# A kernel counts timer interrupts as it starts, and panics when a busy emulator is late with them.
KERNEL_ARGUMENTS = 'no_timer_check'
PACKAGES = 'python3,file'
# One of each kind of promise: emulation is ten times slower than the machine.
NAMES = ['apply_brings_the_changes', 'nothing_outside_can_be_written', 'no_packet_leaves', 'calls_an_agent_may_not_make',
         'record_says_what', 'dies_with_a_killed_supervisor', 'is_copied', 'test_pids_limit_is']
# And for every kernel, where there is time.
MORE = ['secret_of_the_host_is_readable_under', 'nothing_of_the_host_answers_in_the_checkout', 'calls_a_build_needs',
        'landlock_holds', 'on_a_tmpfs', 'git_works_in_a_checkout', 'first_process_cannot', 'agent_sees_the_sandbox', 'octor',
        # Every way to use up what there is: memory, disk, inodes, output, processors, time, the gateway.
        'test_memory_limit_is', 'left_for_swap', 'test_disk_limit_is', 'number_of_files', 'test_output_limit_is',
        'cpu_time_of_all', 'test_time_limit_is', 'idle_limit', 'handshakes_without_end']
HOLDS = '''#!/bin/sh
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
# name: (package, suite where it is if not this machine's, kind of cgroups, script)
KERNELS = {
    'linux-6.1-cgroup-v2': ('linux-image-cloud-amd64', None, 'v2', HOLDS),
    'linux-6.1-cgroup-v1': ('linux-image-cloud-amd64', None, 'v1', HOLDS),
    'linux-6.1-cgroup-hybrid': ('linux-image-cloud-amd64', None, 'hybrid', HOLDS),
    'linux-6.12-cgroup-v2': ('linux-image-6.12.*-cloud-amd64', None, 'v2', HOLDS),
    'linux-6.1-demo': ('linux-image-cloud-amd64', None, 'v2', DEMO),
    'linux-6.12-demo': ('linux-image-6.12.*-cloud-amd64', None, 'v2', DEMO),
    'linux-5.10-cgroup-v2': ('linux-image-5.10.*-cloud-amd64', 'bullseye', 'v2', REFUSES),
}


def with_suite(suite, directory):
    """Has apt know a suite of Debian's beside this machine's from now on, from the same mirror."""
    targets = subprocess.run(['apt-get', 'indextargets', '--format', '$(SITE) $(CODENAME)'], capture_output=True, text=True)
    mirror = next((line.split()[0] for line in targets.stdout.splitlines() if line.endswith(' bookworm')), None)
    if mirror is None:
        return
    os.makedirs(directory + '/lists/partial')
    with open(directory + '/sources.list', 'w') as file:
        file.write(f'deb {mirror} {suite} main\n')
    with open(directory + '/apt.conf', 'w') as file:
        file.write(f'Dir::Etc::sourcelist "{directory}/sources.list"; Dir::State::lists "{directory}/lists";\n'
                   f'Dir::Cache "{directory}"; APT::Sandbox::User "root";\n')
    os.environ['APT_CONFIG'] = directory + '/apt.conf'
    subprocess.run(['apt-get', 'update', '-qq'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def newest(pattern):
    """The package of that pattern with the highest version that apt knows; None without one."""
    if '*' not in pattern:
        return pattern
    names = subprocess.run(['apt-cache', 'pkgnames', 'linux-image-'], capture_output=True, text=True).stdout
    found = [name for name in names.split() if re.fullmatch(pattern.replace('.*', r'\..*'), name)
             and 'unsigned' not in name and 'dbg' not in name]
    return max(found, key=lambda name: [int(n) for n in re.findall(r'\d+', name)], default=None)


def pack_demo(archive):
    """What tools/demo needs beside the binary, with the agent from npm. Says why it cannot be had, or nothing."""
    agent = subprocess.run([os.path.join(ROOT, 'tests/agents/install'), os.path.join(ROOT, 'build/agents'), 'claude-code'],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if agent.returncode:
        return agent.stderr.strip()
    subprocess.run(['tar', '-cf', archive, '-C', ROOT, 'tools/demo.py', 'tests/agents', 'tests/services', 'policies',
                    'build/agents/claude-code'], check=True)
    return ''


def boot(boot_program, package, packages, cgroups, files, script):
    line = [boot_program, '-k', package, '-c', cgroups, '-i', packages, '-t', str(BOOT_SECONDS),
            '-a', KERNEL_ARGUMENTS]
    for source, target in files:
        line += ['-f', f'{source}:{target}']
    return subprocess.run([*line, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors='replace')


def main():
    boot_program, runner, probe, *names = sys.argv[1:]
    if not os.access(boot_program, os.X_OK):
        print(f'# SKIP kernels: {boot_program} is not there')
        return 4
    if os.geteuid() != 0:
        print('# SKIP kernels: only root can make a file system for the guest')
        return 4
    every = os.environ.get('AGENTIC_CI_KERNELS') == 'all'
    if not every:
        names = names or [next(iter(KERNELS))]
    chosen = {name: kernel for name, kernel in KERNELS.items()
              if not names or any(wanted in name for wanted in names)}
    if not chosen:
        print(f'FAILED  no kernel is called {" or ".join(names)}\n0 passed, 1 failed')
        return 1
    files = [(path, '/root/kernel/' + os.path.relpath(path, CASES))
             for path in sorted(glob.glob(CASES + '/**/*.py', recursive=True))]
    files += [(runner, '/usr/local/bin/agentic-ci'), (probe, '/usr/local/bin/kernel_probe')]
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        script = os.path.join(scratch, 'script')
        for name, (pattern, suite, cgroups, text) in chosen.items():
            with open(script, 'w') as file:
                file.write(text.format(names=' '.join(NAMES + MORE if every else NAMES),
                                       tiers='namespaces landlock' if every else 'namespaces'))
            os.chmod(script, 0o755)
            if suite:
                with_suite(suite, os.path.join(scratch, suite))
            package = newest(pattern)
            if package is None:
                print(f'# SKIP {name}: apt knows no package {pattern}')
                continue
            brought, packages = files, PACKAGES
            if text is DEMO:
                why = pack_demo(scratch + '/demo.tar')
                if why:
                    print(f'# SKIP {name}: {why}')
                    continue
                packages += ',nodejs'
                brought = files + [(scratch + '/demo.tar', '/root/demo.tar')]
            print(f'== {name}', flush=True)
            done = boot(boot_program, package, packages, cgroups, brought, script)
            print(re.sub(r'^\d+ passed, \d+ failed\n', '', done.stdout, flags=re.MULTILINE), flush=True)
            count = re.findall(r'^(\d+) passed, (\d+) failed', done.stdout, re.MULTILINE)
            more = (int(count[-1][0]), int(count[-1][1])) if count else (0, 1)
            if done.returncode != 0 and more[1] == 0:
                more = more[0], 1
            passed, failed = passed + more[0], failed + more[1]
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
