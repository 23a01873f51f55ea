# SPDX-License-Identifier: Apache-2.0
"""What only root can put up, in a mount namespace of the test's own: nothing of it is on the host."""
import os
import shutil
import subprocess

from harness import CANARY, PRIVATE, git, write

# Readable for everybody, so that an ordinary user's control can read them too.
SECRETS = ['/root/.ssh/id_ed25519', '/root/.aws/credentials', '/root/.netrc', '/root/.npmrc',
           '/root/.docker/config.json', '/root/.kube/config', '/root/.config/gh/hosts.yml',
           '/root/.git-credentials', '/root/work/notes', '/home/alice/.ssh/id_rsa',
           '/home/alice/.config/gcloud/credentials.db', '/home/alice/.claude/.credentials.json',
           '/home/alice/.cargo/credentials.toml', '/home/alice/.pypirc', '/home/alice/source/x.c',
           '/home/runner/actions-runner/.credentials', '/mnt/data/file', '/srv/data/file',
           '/run/secrets/token', '/var/spool/cron/job', '/etc/shadow', '/etc/ssl/private/host.key',
           '/etc/sudoers', '/etc/kubernetes/admin.conf', '/var/mail/alice']


def tmpfs(path, options='mode=755'):
    os.makedirs(path, exist_ok=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', path], check=True)


def keeps_attributes(path):
    """Whether files there can have user attributes; those in memory cannot before Linux 6.6."""
    try:
        os.setxattr(path, 'user.test', b'x')
    except OSError:
        return False
    os.removexattr(path, 'user.test')
    return True


def make_private(base, in_memory):
    """Directories of everybody's that this suite has for itself: what appears there is left by its runs. `base` stays
    what it is, or is copied to a file system in memory."""
    held = os.open(base, os.O_PATH | os.O_DIRECTORY)
    for place in PRIVATE:
        tmpfs(place, 'mode=1777')
    os.makedirs(base, exist_ok=True)
    inside = f'/proc/self/fd/{held}'
    if in_memory:
        tmpfs(base)
        in_memory = keeps_attributes(base)
        subprocess.run(['cp', '-a', inside + '/.', base] if in_memory else ['umount', base], pass_fds=[held], check=True)
    if not os.listdir(base):  # It was in one of them.
        subprocess.run(['mount', '--no-canonicalize', '--bind', inside, base], pass_fds=[held], check=True)
    os.close(held)


def make_full_disk(base, user):
    tmpfs(base + '/full', 'size=64k,mode=755')
    for name, owner in (('root', 0), ('user', user)):
        os.mkdir(f'{base}/full/{name}')
        os.chown(f'{base}/full/{name}', owner, owner)
    with open(base + '/full/filler', 'wb', buffering=0) as file:
        try:
            while True:
                file.write(b'x' * 4096)
        except OSError:
            pass


def make_small_disk(base, user):
    tmpfs(base + '/small', 'size=1m,mode=755')
    for name, owner in (('root', 0), ('user', user)):
        os.mkdir(f'{base}/small/{name}')
        os.chown(f'{base}/small/{name}', owner, owner)


def make_secrets():
    for top in ('/root', '/home', '/mnt', '/srv', '/run', '/var/spool', '/var/mail'):
        tmpfs(top)
    os.symlink('../mail', '/var/spool/mail')  # As Debian has it.
    # /etc as a layer of its own: the host's is not touched, and it has no mounts in it.
    tmpfs('/run/etc')
    for name in ('upper', 'work'):
        os.mkdir('/run/etc/' + name)
    subprocess.run(['mount', '-t', 'overlay', 'overlay', '-o',
                    'lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work', '/etc'],
                   check=True)
    for path in SECRETS:
        if os.path.exists(path):
            os.remove(path)
        write(path, CANARY + '\n')
        for directory in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
            os.chmod(directory, 0o755)


def make_log():
    # Shown by every policy. Ours, and not a mount in a mount.
    tmpfs('/var/log', 'mode=1777')


def make_checkout(path, owner):
    write(path + '/README.md', 'hello\n')
    git(path, 'init', '-q')
    git(path, 'add', '.')
    git(path, 'commit', '-qm', 'first')
    subprocess.run(['chown', '-R', f'{owner}:{owner}', path], check=True)


def make_mixed(path, owner):
    """A checkout in which containers of root and of another user have written."""
    for name in ('made/by/root', 'made/others', 'roots'):
        write(f'{path}/{name}', name + '\n')
    make_checkout(path, owner)
    for name, whose in (('made/by', 0), ('made/by/root', 0), ('roots', 0), ('made', 4321), ('made/others', 4321)):
        os.chown(f'{path}/{name}', whose, whose)


def make(base, user, in_memory):
    make_private(base, in_memory)
    os.mkdir(base + '/home')
    os.chown(base + '/home', user, user)
    make_full_disk(base, user)
    make_small_disk(base, user)
    make_secrets()
    make_log()
    make_checkout(base + '/foreign', 54321)
    make_mixed(base + '/mixed-root', 0)
    make_mixed(base + '/mixed-user', user)
    for name, owner in (('root', 0), ('user', user)):
        place = f'/srv/kernel-test-{name}'
        os.mkdir(f'/home/kernel-test-{name}', 0o700)
        os.chown(f'/home/kernel-test-{name}', owner, owner)
        tmpfs(place)
        os.mkdir(place + '/scratch')
        os.chown(place + '/scratch', owner, owner)
        os.mkdir(place + '/setuid')
        shutil.copy('/usr/bin/id', place + '/setuid/id')
        os.chmod(place + '/setuid/id', 0o4755)
        make_checkout(place + '/checkout', owner)
        make_checkout(place + '/nested', owner)
        write(place + '/volume/file', 'of the volume\n')
        os.chown(place + '/volume', owner, owner)
        os.mkdir(place + '/nested/volume')
        subprocess.run(['mount', '--bind', place + '/volume', place + '/nested/volume'], check=True)
        make_checkout(place + '/bound', owner)
        write(place + '/bound/tools/file', 'a part of the checkout\n')
        os.chown(place + '/bound/tools', owner, owner)
        os.mkdir(place + '/tools')
        subprocess.run(['mount', '--bind', place + '/bound/tools', place + '/tools'], check=True)
        make_checkout(place + '/sealed', owner)
        subprocess.run(['mount', '--bind', place + '/sealed', place + '/sealed'], check=True)
        subprocess.run(['mount', '-o', 'remount,bind,ro', place + '/sealed'], check=True)
