# SPDX-License-Identifier: Apache-2.0
"""Runs the driver as an ordinary user beside files that no image may touch."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import archive

DRIVER = os.path.abspath(sys.argv.pop(1))
ORDINARY = 54321  # Nobody's id. As root the driver is started under it; else it is who we are.


class Done:
    def __init__(self, done):
        self.status = done.returncode
        self.lines = done.stdout.decode(errors='surrogateescape').splitlines()
        self.stderr = done.stderr.decode(errors='replace')

    def all(self, word):
        return [line[len(word) + 1:] for line in self.lines if line.startswith(word + ' ')]

    @property
    def error(self):
        return (self.all('error') or [''])[0]

    @property
    def layers(self):
        return self.all('layer')


def tree(top):
    """Everything below: path -> (kind, mode, content or target, mtime)."""
    seen = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            key = os.path.relpath(path, os.fsencode(top)).decode(errors='surrogateescape')
            kind = {stat.S_IFDIR: 'dir', stat.S_IFREG: 'file', stat.S_IFLNK: 'link', stat.S_IFIFO: 'fifo',
                    stat.S_IFCHR: 'char'}[stat.S_IFMT(st.st_mode)]
            content = os.readlink(path) if kind == 'link' else b''
            if kind == 'file' and st.st_size < 1 << 20:
                with open(path, 'rb') as data:
                    content = data.read()
            if kind == 'char':
                content = b'%d:%d' % (os.major(st.st_rdev), os.minor(st.st_rdev))
            seen[key] = (kind, st.st_mode & 0o7777, content, int(st.st_mtime))
    return seen


class Case(unittest.TestCase):
    """A directory with a store, a layout and canaries in it."""

    uid = ORDINARY if os.geteuid() == 0 else os.geteuid()

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix='unpack-')
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        os.chmod(self.top, 0o755)
        self.home = f'{self.top}/home'
        self.store = f'{self.home}/store'
        self.canary = f'{self.top}/canary'
        for path in (self.home, self.canary):
            os.mkdir(path)
        self.driver = f'{self.top}/driver'
        shutil.copy(DRIVER, self.driver)
        # The canaries are the same user's: nothing but our walls keeps an image away from them.
        for name in ('victim', 'passwd', 'shadow'):
            with open(f'{self.canary}/{name}', 'w', encoding='utf-8') as out:
                out.write('canary ' + name)
        if os.geteuid() == 0:
            for folder, folders, files in os.walk(self.top):
                for name in folders + files:
                    os.chown(f'{folder}/{name}', self.uid, self.uid)
        self.before = tree(self.canary)

    def tearDown(self):
        self.assertEqual(tree(self.canary), self.before, 'a file outside of the image was touched')

    def command(self, *arguments):
        if os.geteuid() == 0 and self.uid != 0:
            return ['setpriv', '--reuid', str(self.uid), '--regid', str(self.uid), '--clear-groups', self.driver,
                    self.store, *map(str, arguments)]
        return [self.driver, self.store, *map(str, arguments)]

    def run_driver(self, *arguments, **more):
        return Done(subprocess.run(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   timeout=600, check=False, **more))

    def layout(self, *layers, packing='', diff_ids=None, name='image'):
        tars = [layer + archive.END if not isinstance(layer, tuple) else layer for layer in layers]
        pairs = [tar if isinstance(tar, tuple) else (tar, archive.pack(tar, packing)) for tar in tars]
        return archive.Layout(f'{self.top}/{name}').write(pairs, diff_ids)

    def unpack(self, *layers, options=(), env=None, **more):
        """The finished run, and what stands in each layer's directory, the uppermost first."""
        done = self.run_driver('unpack', self.layout(*layers, **more), *options, env=env)
        return done, [tree(path) for path in done.layers]

    def accept(self, *layers, **more):
        done, trees = self.unpack(*layers, **more)
        self.assertEqual((done.status, done.error), (0, ''), done.stderr)
        self.assertEqual(self.run_driver('verify').lines, [])
        return trees if len(trees) > 1 else trees[0]

    def refuse(self, *layers, why, code=1, **more):
        """Refused for that reason; nothing of it is left in the store."""
        done, _ = self.unpack(*layers, **more)
        self.assertEqual(done.status, 1, done.lines)
        self.assertRegex(done.error, why)
        self.assertEqual(done.error.split()[0], str(code), done.error)
        self.assertEqual(os.listdir(f'{self.store}/staging'), [])
        return done

    def merged(self, layers):
        """What overlayfs makes of the layers."""
        point = f'{self.top}/merged'
        os.makedirs(point, exist_ok=True)
        lower = ':'.join(layers + [f'{self.top}/empty'])
        os.makedirs(f'{self.top}/empty', exist_ok=True)
        script = ('mount -t overlay overlay -o userxattr,lowerdir="$1" "$2" && cd "$2" && '
                  'find . -mindepth 1 -printf "%P %y %m %l\\n" | sort')
        flags = '-m' if os.geteuid() == 0 else '-rm'
        done = subprocess.run(['unshare', flags, 'sh', '-c', script, 'sh', lower, point], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.rstrip() for line in done.stdout.decode().splitlines()]
