#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine that QEMU emulates: a Debian kernel with a Debian root file system, which runs one script as root.

usage: tools/machine.py DIRECTORY ARCHITECTURE    fetches what the first kernel of ARCHITECTURE needs (amd64, arm64) into DIRECTORY

Nothing of it is installed or configured here, so any architecture can be made on any; only root can, since the files of the
guest have owners.
"""
import glob
import hashlib
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SUITE = 'bookworm'
# Debian's smallest image of an architecture; QEMU, its machine and the console of it.
EMULATORS = {
    'amd64': ('linux-image-cloud-amd64', ['qemu-system-x86_64', '-M', 'q35', '-cpu', 'max'], 'ttyS0'),
    # Pointer authentication by QEMU's own algorithm, which is quicker to emulate than the architecture's.
    'arm64': ('linux-image-cloud-arm64', ['qemu-system-aarch64', '-M', 'virt', '-cpu', 'max,pauth-impdef=on'], 'ttyAMA0'),
}
PACKAGES = ('base-files', 'base-passwd', 'bash', 'binutils', 'busybox-static', 'ca-certificates', 'coreutils', 'curl', 'dash', 'diffutils',
            'file', 'findutils', 'git', 'git-lfs', 'grep', 'gzip', 'hostname', 'iproute2', 'jq', 'kmod', 'libc-bin', 'libpam-modules',
            'mawk', 'mount', 'nodejs', 'openssl', 'procps', 'python3', 'python3-cryptography', 'python3-h2', 'python3-jsonschema',
            'python3-requests', 'python3-websockets', 'python3-yaml', 'sed', 'strace', 'tar', 'uidmap', 'util-linux', 'zstd')
# In the order in which they need each other, as far as there is one: the first program tries three times.
MODULES = ('virtio', 'virtio_ring', 'virtio_pci_legacy_dev', 'virtio_pci_modern_dev', 'virtio_pci', 'virtio_mmio', 'virtio_blk',
           'crc16', 'crc32c_generic', 'libcrc32c', 'mbcache', 'jbd2', 'ext4')
# A kernel counts timer interrupts as it starts, and panics when a busy emulator is late with them.
ARGUMENTS = 'quiet loglevel=3 panic=-1 no_timer_check'
FIRST = '''#!/bin/sh
mount -t proc p /proc; mount -t devtmpfs d /dev
for turn in 1 2 3; do for module in /lib/*.ko; do insmod $module 2>/dev/null; done; done
until mount -t ext4 /dev/vda /new 2>/dev/null; do sleep 0.3; done
umount /proc; mount --move /dev /new/dev; exec switch_root /new /root/start
'''
START = '''#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc; mount -t sysfs sys /sys; mkdir -p /dev/pts /dev/shm; mount -t devpts pts /dev/pts
mount -t tmpfs tmp /tmp; chmod 1777 /tmp; mount -t tmpfs run /run; ip link set lo up
case {cgroups} in
  v2) mount -t cgroup2 cgroup /sys/fs/cgroup ;;
  *) mount -t tmpfs cgroup /sys/fs/cgroup
     for c in memory cpu,cpuacct pids cpuset freezer devices blkio; do
       mkdir -p /sys/fs/cgroup/$c; mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c || rmdir /sys/fs/cgroup/$c
     done
     [ {cgroups} = v1 ] || {{ mkdir /sys/fs/cgroup/unified; mount -t cgroup2 cgroup /sys/fs/cgroup/unified; }} ;;
esac
for module in overlay nf_tables nft_ct nft_reject_inet; do modprobe $module 2>/dev/null; done
cd /root; echo guest-begin; /root/script; echo "guest-exit: $?"; sync; echo o >/proc/sysrq-trigger; sleep 5
'''


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def sources(suite):
    """Lines of sources.list(5) for `suite`: this machine's own, or the same mirror's."""
    targets = run('apt-get', 'indextargets', '--format', '$(SITE) $(CODENAME)', 'Created-By: Packages', capture_output=True).stdout
    known = sorted({tuple(line.split()) for line in targets.splitlines()})
    main = [site for site, name in known if name == SUITE]
    if not main:
        sys.exit(f'apt on this machine has no sources for {SUITE}')
    lines = [f'deb {site} {name} main' for site, name in known if name == suite or re.fullmatch(suite + '-(updates|security)', name)]
    return '\n'.join(lines or [f'deb {main[0]} {suite} main']) + '\n'


class Apt:
    """apt for one architecture and one suite, with lists of its own in `directory`."""

    def __init__(self, directory, architecture, suite):
        self.architecture = architecture
        os.makedirs(f'{directory}/lists/partial')
        pathlib.Path(directory, 'sources.list').write_text(sources(suite))
        pathlib.Path(directory, 'status').touch()
        pathlib.Path(directory, 'apt.conf').write_text(
            f'Dir::Etc::sourcelist "{directory}/sources.list"; Dir::Etc::sourceparts "-"; Dir::State::lists "{directory}/lists";\n'
            f'Dir::State::status "{directory}/status"; Dir::Cache "{directory}"; APT::Sandbox::User "root";\n'
            f'APT::Architecture "{architecture}"; APT::Architectures {{ "{architecture}"; }};\n')
        self.environment = os.environ | {'APT_CONFIG': f'{directory}/apt.conf'}
        # Without this, lists that could not be had are a warning.
        self.run('apt-get', 'update', '-qq', '-o', 'APT::Update::Error-Mode=any')

    def run(self, *command, **options):
        return run(*command, env=self.environment, capture_output=True, **options).stdout

    def image(self, pattern):
        """The newest image package whose name matches `pattern`, or that the package of this name depends on."""
        names = [name for name in self.run('apt-cache', 'pkgnames', 'linux-image-').split()
                 if re.fullmatch(pattern, name) and 'unsigned' not in name and 'dbg' not in name]
        newest = max(names, key=lambda name: [int(digits) for digits in re.findall(r'\d+', name)], default=None)
        if newest is None:
            return None
        named = re.search(r'Depends: (linux-image-\d\S*)', self.run('apt-cache', 'depends', newest))
        return named[1] if named else newest

    def unpack(self, package, directory):
        with tempfile.TemporaryDirectory() as scratch:
            self.run('apt-get', 'download', package, cwd=scratch)
            run('dpkg-deb', '-x', *glob.glob(f'{scratch}/*.deb'), directory)


def fetch(directory, architecture, pattern=None, suite=SUITE):
    """The directory of a kernel and the tar of a root file system, made in `directory` once; None if apt knows no such kernel.

    `pattern`, a regular expression: the name of the image package.
    """
    directory = os.path.abspath(directory)  # apt takes a relative one for its own.
    os.makedirs(directory, exist_ok=True)
    pattern = pattern or re.escape(EMULATORS[architecture][0])
    kernel = f'{directory}/kernel-{architecture}-{hashlib.sha256(f"{suite} {pattern}".encode()).hexdigest()[:12]}'
    root = f'{directory}/root-{architecture}-{hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:12]}.tar'
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        if not os.path.exists(kernel):
            apt = Apt(f'{scratch}/apt', architecture, suite)
            package = apt.image(pattern)
            if package is None:
                return None
            apt.unpack(package, f'{scratch}/kernel')
            os.rename(f'{scratch}/kernel', kernel)
        if not os.path.exists(root):
            pathlib.Path(scratch, 'sources.list').write_text(sources(SUITE))
            run('mmdebstrap', '--quiet', '--variant=extract', f'--architectures={architecture}', f'--include={",".join(PACKAGES)}',
                '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr', SUITE, f'{scratch}/root.tar', f'{scratch}/sources.list', stdin=subprocess.DEVNULL, capture_output=True)
            os.rename(f'{scratch}/root.tar', root)
    return kernel, root


def write(path, text, mode=0o755):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def make_disk(work, kernel, root, files, script, cgroups):
    """The guest's disk, work/disk: packages were unpacked and never configured, so accounts are written here."""
    tree = f'{work}/root'
    os.mkdir(tree)
    run('tar', '-xf', root, '-C', tree)
    shutil.copytree(f'{kernel}/lib/modules', f'{tree}/usr/lib/modules', symlinks=True)
    write(f'{tree}/etc/passwd', 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n'
                                'u:x:1000:1000::/home/u:/bin/bash\n', 0o644)
    write(f'{tree}/etc/group', 'root:x:0:\nnogroup:x:65534:\nu:x:1000:\n', 0o644)
    write(f'{tree}/etc/hosts', '127.0.0.1 localhost\n', 0o644)
    os.symlink('mawk', f'{tree}/usr/bin/awk')
    os.makedirs(f'{tree}/home/u', exist_ok=True)
    os.chown(f'{tree}/home/u', 1000, 1000)
    run('depmod', '-b', tree, next(os.scandir(f'{kernel}/lib/modules')).name)
    for source, target in files:
        os.makedirs(os.path.dirname(tree + target), exist_ok=True)
        shutil.copy(source, tree + target)
    write(f'{tree}/root/start', START.format(cgroups=cgroups))
    write(f'{tree}/root/script', script)
    megabytes = int(run('du', '-sm', tree, capture_output=True).stdout.split()[0])
    with open(f'{work}/disk', 'wb') as disk:
        disk.truncate((megabytes + 500) << 20)
    run('mkfs.ext4', '-q', '-F', '-d', tree, f'{work}/disk')


def make_first(work, kernel):
    """The initial file system, work/initrd: busybox of the guest's, and the modules that its disk needs."""
    first = f'{work}/first'
    for name in ('bin', 'proc', 'dev', 'new', 'lib'):
        os.makedirs(f'{first}/{name}')
    shutil.copy(f'{work}/root/bin/busybox', f'{first}/bin/')
    for applet in ('sh', 'mount', 'umount', 'insmod', 'switch_root', 'sleep'):
        os.symlink('busybox', f'{first}/bin/{applet}')
    for place, name in enumerate(MODULES):
        for path in glob.glob(f'{kernel}/lib/modules/**/{name}.ko*', recursive=True):
            data = pathlib.Path(path).read_bytes()
            pathlib.Path(first, 'lib', f'{place:02}-{name}.ko').write_bytes(lzma.decompress(data) if path.endswith('.xz') else data)
    write(f'{first}/init', FIRST)
    names = run('find', '.', cwd=first, capture_output=True).stdout
    with open(f'{work}/initrd', 'wb') as file:
        run('cpio', '-o', '-H', 'newc', '--quiet', cwd=first, input=names, stdout=file)


def boot(kernel, root, architecture, script, files=(), cgroups='v2', seconds=1800):
    """Runs `script` in a machine of `architecture`; (exit status, output), 75 and the console if the machine did not finish.

    `files`: pairs of a file here and its path there. `cgroups`: v1, hybrid or v2.
    """
    _, emulator, console = EMULATORS[architecture]
    with tempfile.TemporaryDirectory(dir='/var/tmp') as work:
        make_disk(work, kernel, root, files, script, cgroups)
        make_first(work, kernel)
        shutil.rmtree(f'{work}/root')
        command = ['timeout', str(seconds), *emulator, '-accel', 'tcg,thread=multi', '-m', '1500', '-smp', '2', '-nographic',
                   '-no-reboot', '-nic', 'none', '-kernel', *glob.glob(f'{kernel}/boot/vmlinuz-*'), '-initrd', f'{work}/initrd',
                   '-drive', f'file={work}/disk,format=raw,if=virtio,cache=unsafe', '-append', f'console={console} {ARGUMENTS}']
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    shown = done.stdout.decode(errors='replace').replace('\r', '')
    ended = re.search(r'guest-begin\n(.*?)^guest-exit: (\d+)$', shown, re.MULTILINE | re.DOTALL)
    if ended:
        return int(ended[2]), ended[1]
    return 75, '\n'.join([*shown.splitlines()[-20:], 'the guest did not finish'])


def main():
    try:
        if not fetch(*sys.argv[1:3]):
            sys.exit(f'apt knows no kernel for {sys.argv[2]}')
    except subprocess.CalledProcessError as error:
        sys.exit(f'{error.stderr or ""}{error}')


if __name__ == '__main__':
    main()
