# SPDX-License-Identifier: Apache-2.0
"""The checkout behaves inside as it does outside: the same calls have the same results, and the patch says what was done."""
import os
import random
import subprocess
import tempfile

from harness import PLAIN_ENV, ROOT, RUN_SECONDS, USER, Case, git, write

PYTHON = '/usr/bin/python3'

# What programs expect of a plain directory. Prints a line for each expectation.
EXPECTATIONS = r'''
import ctypes, fcntl, mmap, os, subprocess, sys

libc = ctypes.CDLL(None, use_errno=True)


def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), 'renameat2')


def say(name, do):
    try:
        result = do()
    except OSError as error:
        result = os.strerror(error.errno)
    print(name, result, flush=True)


def tree(top):
    return sorted(os.path.join(at, name) for at, below, names in os.walk(top) for name in below + names)


def rename_directory():
    before = os.stat('pkg/in').st_mode, os.stat('pkg').st_mode, int(os.stat('pkg/in').st_mtime)
    os.rename('pkg', 'pkg2')
    after = os.stat('pkg2/in').st_mode, os.stat('pkg2').st_mode, int(os.stat('pkg2/in').st_mtime)
    return tree('.')[-1], before == after, [path for path in tree('.') if 'pkg' in path]


def rename_inside_its_own_directory():
    os.chdir('pkg2')
    os.rename('in', 'out')
    os.chdir('..')
    return tree('pkg2')


def rename_by_descriptor():
    directory = os.open('pkg2', os.O_RDONLY)
    os.rename('out', 'moved', src_dir_fd=directory)
    return tree('.')[-1], os.path.exists('moved/deep/er/c')


def rename_closed():
    os.rename(os.path.abspath('closed'), os.path.abspath('pkg2/closed'))
    return oct(os.stat('pkg2/closed').st_mode), os.listdir('pkg2/closed')


def rename_over_empty():
    os.mkdir('empty')
    os.rename('one', 'empty')
    return tree('empty')


def rename_over_full():
    os.rename('two', 'three')


def rename_through_link():
    os.rename('link/four', 'link/five')
    return tree('linked')


def exchange_directories():
    exchange('two', 'three')
    return tree('two'), tree('three')


def exchange_with_file():
    exchange('two', 'plain')
    return open('two').read(), tree('plain')


def follow():
    kept = open('kept/file')
    os.rename('kept', 'kept2')
    open('kept2/file', 'a').write('more')
    return kept.read()


def hard_link():
    os.link('plain/y', 'pkg2/linked')
    open('pkg2/linked', 'a').write('!')
    return open('plain/y').read(), os.stat('plain/y').st_nlink


def nameless():
    file = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(file, b'made')
    os.link(f'/proc/self/fd/{file}', 'named', follow_symlinks=True)
    return open('named').read()


def types():
    return sorted((entry.name, entry.is_file(), entry.is_dir(), entry.is_symlink())
                  for entry in os.scandir('kinds'))


def inode():
    before = os.stat('stable').st_ino
    open('stable', 'a').write('x')
    renamed = os.stat('stable').st_ino
    os.rename('stable', 'stable2')
    return before == renamed == os.stat('stable2').st_ino


def lock():
    held = open('locked')
    fcntl.flock(held, fcntl.LOCK_EX)
    again = open('locked', 'a')
    try:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 'held'
    return 'lost'


def mapped():
    file = open('mapped', 'r+b')
    view = mmap.mmap(file.fileno(), 0)
    os.pwrite(file.fileno(), b'W', 0)
    view[1:2] = b'V'
    return bytes(view[:3]), open('mapped', 'rb').read(3)


def by_git():
    return subprocess.run(['git', 'mv', 'tracked', 'tracked2'], capture_output=True, text=True).stderr, tree('tracked2')


for name, do in list(globals().items()):
    if getattr(do, '__code__', None) and not do.__code__.co_argcount and name not in sys.argv:
        say(name, do)
'''

# A random sequence of calls, the same for the same seed. Prints what each returned.
OPERATIONS = r'''
import ctypes, os, random, sys

choose = random.Random(int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)


def listed():
    files, directories = [], ['.']
    for at, below, names in os.walk('.'):
        below[:] = sorted(name for name in below if name != '.git')
        for name in sorted(below + names):
            path = os.path.join(at, name)
            (directories if os.path.isdir(path) and not os.path.islink(path) else files).append(path)
    return files, directories


def fresh(directories):
    return os.path.join(choose.choice(directories), 'n%d' % choose.randrange(60))


def fill(path, mode):
    with open(path, mode) as file:
        file.write(choose.randbytes(choose.randrange(300)) if choose.random() < 0.3 else
                   b''.join(b'line %d\n' % choose.randrange(9) for _ in range(choose.randrange(12))))


def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), 'renameat2')


def step():
    files, directories = listed()
    what = choose.choice(['create', 'write', 'append', 'truncate', 'rename', 'rename', 'replace', 'directory',
                          'directory', 'directory', 'onto', 'exchange', 'exchange', 'link', 'symlink', 'chmod',
                          'unlink', 'rmdir', 'mkdir'])
    file, other = choose.choice(files or ['none']), choose.choice(files or ['none'])
    directory, target = choose.choice(directories), fresh(directories)
    regular = os.path.isfile(file) and not os.path.islink(file)
    either = files + directories[1:] or ['none']
    a, b = choose.choice(either), choose.choice(either)
    print(what, file, other, directory, target, a, b, end=' ')
    if what == 'create':
        fill(target, 'xb')
    elif what in ('write', 'append') and regular:
        fill(file, 'wb' if what == 'write' else 'ab')
    elif what == 'truncate' and regular:
        os.truncate(file, choose.randrange(40))
    elif what == 'rename':
        os.rename(file, target)
    elif what == 'replace':
        os.rename(file, other)
    elif what == 'directory':
        os.rename(directory, target)
    elif what == 'onto':
        os.rename(directory, choose.choice(directories))
    elif what == 'exchange':
        exchange(a, b)
    elif what == 'link':
        os.link(file, target, follow_symlinks=False)
    elif what == 'symlink':
        os.symlink(choose.choice(['n1', 'n2', 'd1', 'gone']), target)
    elif what == 'chmod' and regular:
        os.chmod(file, choose.choice([0o644, 0o755, 0o600, 0o711]))
    elif what == 'unlink':
        os.unlink(file)
    elif what == 'rmdir':
        os.rmdir(directory)
    elif what == 'mkdir':
        os.mkdir(target)


for _ in range(int(sys.argv[2])):
    try:
        step()
        print('done')
    except OSError as error:
        print(error.errno)
'''


def as_user():
    """Root is not bound by modes, and the agent is."""
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)


class Trees(Case):
    def control(self, line):
        """What the same prints over a copy of the checkout, outside; and the copy."""
        outside = tempfile.mkdtemp(prefix='outside-', dir=self.dir)
        for directory in (self.dir, outside):
            os.chmod(directory, 0o755)
        copy = outside + '/checkout'
        subprocess.run(['cp', '-a', self.checkout, copy], check=True)
        if ROOT:
            subprocess.run(['chown', '-R', f'{USER}:{USER}', copy], check=True)
        done = subprocess.run(line, cwd=copy, env=dict(PLAIN_ENV, HOME=self.home), stdout=subprocess.PIPE, text=True,
                              timeout=RUN_SECONDS, preexec_fn=as_user if ROOT else None)
        self.assertEqual(done.returncode, 0)
        return done.stdout.splitlines(), copy

    def plant(self):
        """A checkout with what EXPECTATIONS begin with."""
        top = self.checkout
        for path in ('pkg/a', 'pkg/in/b', 'pkg/in/deep/er/c', 'one/x', 'two/x', 'three/y', 'linked/four/x', 'kept/file',
                     'closed/x', 'plain', 'kinds/file', 'kinds/directory/x', 'stable', 'locked', 'mapped', 'tracked/x',
                     'tracked/in/y'):
            write(f'{top}/{path}', path + '\n')
        os.symlink('linked', top + '/link')
        os.symlink('file', top + '/kinds/link')
        os.utime(top + '/pkg/in', (1e9, 1e9))
        os.chmod(top + '/pkg/in/deep', 0o750)
        git(top, 'add', '.')
        git(top, 'commit', '-qm', 'trees')
        os.chmod(top + '/closed', 0o555)

    def test_a_checkout_behaves_as_a_directory_outside(self):
        self.plant()
        line = [PYTHON, '-c', EXPECTATIONS]
        outside, _ = self.control(line)
        run = self.run_agent(*line)
        self.assertEqual(run.out.splitlines(), outside, run.err)

    def random_checkout(self):
        choose = random.Random(1)
        for i in range(40):
            directory = '/'.join('d%d' % choose.randrange(3) for _ in range(choose.randrange(4)))
            path = write(f'{self.checkout}/{directory}/n{i}', f'text {i}\n' * choose.randrange(1, 9))
            os.chmod(path, choose.choice([0o644, 0o755]))
        os.symlink('n1', self.checkout + '/d0/link')
        git(self.checkout, 'add', '.')
        git(self.checkout, 'commit', '-qm', 'random')

    def compare(self, seed):
        line = [PYTHON, '-c', OPERATIONS, str(seed), '150']
        outside, copy = self.control(line)
        run = self.run_agent(*line)
        self.assertEqual(run.out.splitlines(), outside, run.err)
        clone = tempfile.mkdtemp(prefix='clone-', dir=self.dir)
        git(self.dir, 'clone', '-q', self.checkout, clone)
        git(clone, 'apply', '--index', '--whitespace=nowarn', run.report + '/changes.patch')
        git(copy, '-c', 'safe.directory=*', 'add', '-A')
        wanted = git(copy, '-c', 'safe.directory=*', 'ls-files', '-s').splitlines()
        self.assertEqual(git(clone, 'ls-files', '-s').splitlines(), wanted)
        self.assertGreater(len(wanted), 20)

    def test_a_patch_says_what_a_random_sequence_of_calls_did(self):
        self.random_checkout()
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                self.compare(seed)

    def test_standard_streams_open_by_their_names(self):
        script = ('echo a > /dev/stdout; echo b > /dev/stderr; echo c | tee /dev/stderr > /dev/null; '
                  'echo d >> /proc/self/fd/1; cat < /dev/stdin')
        run = self.shell(script)
        self.assertEqual(self.outside(f'({script}) 2>&1 | cat', stdin=subprocess.DEVNULL), 'a\nb\nc\nd\n')
        self.assertEqual(sorted(run.out.splitlines()), ['a', 'b', 'c', 'd'], run.err)
