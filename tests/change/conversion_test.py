#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that git converts (line endings, $Id$, encodings, git-lfs): patches beside `git add`, and applying beside `git checkout`.

conversion_test.py PROBE

Each repository is checked out with real git, so that its files are converted; one copy is edited and added with git, and the
same edits, as an upper layer over the other, are captured. The patch, applied with `git apply --index` to a fresh clone, must
give the index that git made, and applied by us, the files that git would check out.
"""
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROBE = os.path.abspath(sys.argv.pop(1))
ATTRIBUTES = ['', 'text', '-text', 'text=auto', 'text=input', 'text eol=lf', 'text eol=crlf', 'eol=crlf', 'eol=lf', 'text=auto eol=crlf',
              'text=auto eol=lf', '-text eol=crlf', 'crlf', '-crlf', 'crlf=auto', 'text=odd', 'ident', 'text eol=crlf ident', 'binary',
              '!text', 'filter=nobody-has-it', 'working-tree-encoding=UTF-8']
CONTENTS = {
    'lf': b'one\ntwo\n', 'crlf': b'one\r\ntwo\r\n', 'mixed': b'one\r\ntwo\n', 'lone': b'one\rtwo\r\n', 'nul': b'a\0b\r\nc\r\n',
    'odd': b'\1\2\3\r\nx\r\n', 'few odd': b'x' * 400 + b'\1\r\n', 'eof': b'one\r\n\x1a', 'empty': b'', 'no end': b'one\r\ntwo',
    'end in cr': b'one\r', 'ident': b'// $Id$ $Id: $ $Id: 1234 $\n', 'ident odd': b'$Id: a b c $Id$\n$Id: open\n$Id:$ $Idx$ $Id\r\n',
    'latin': b'caf\xe9\r\n', 'utf8': 'd\xe9j\xe0 vu \u2026\r\n'.encode(),
}
OLD = ['lf', 'crlf', 'mixed', 'nul', 'ident', 'empty']
UTF16 = {'mark': '\ufeffd\xe9j\xe0 \U0001f600\r\nvu\r\n'.encode('utf-16-le'), 'big mark': '\ufeffone\ntwo\n'.encode('utf-16-be'),
         'none': ''.encode(), 'little': 'one\ntwo\n'.encode('utf-16-le'), 'big': 'one\r\ntwo\n'.encode('utf-16-be')}


class Conversions(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='conversion-')
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = {'PATH': os.environ['PATH'], 'HOME': self.dir, 'GIT_CONFIG_NOSYSTEM': '1', 'LC_ALL': 'C.UTF-8',
                    'GIT_CONFIG_GLOBAL': self.dir + '/gitconfig'}
        with open(self.dir + '/gitconfig', 'w') as file:
            file.write('[user]\nname = t\nemail = t@localhost\n[init]\ndefaultBranch = main\n')

    def clear(self, *kept):
        for name in {'made', 'outside', 'upper', 'fresh', 'applied', 'checked-out'} - set(kept):
            shutil.rmtree(f'{self.dir}/{name}', ignore_errors=True)

    def git(self, directory, *arguments):
        done = subprocess.run(['git', *arguments], cwd=directory, env=self.env, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, f'{arguments}: {done.stderr.decode(errors="replace")[:2000]}')
        return done.stdout.decode(errors='surrogateescape')

    def index(self, directory):
        """path -> mode and id, of everything as `git add` has it."""
        self.git(directory, 'add', '-A')
        lines = self.git(directory, 'ls-files', '-sz').split('\0')
        return {line.split('\t')[1]: line.split('\t')[0] for line in lines if line}

    def write(self, root, files):
        for path, content in files.items():
            os.makedirs(os.path.dirname(f'{root}/{path}'), exist_ok=True)
            with open(f'{root}/{path}', 'wb') as file:
                file.write(content)

    def repository(self, files, config=(), raw=()):
        """A checkout as git makes one: `files` are added as they are converted, `raw` as they are."""
        made = self.dir + '/made'
        os.mkdir(made)
        self.git(made, 'init', '-q')
        self.write(made, {path: content for path, content in files.items() if path in raw})
        self.git(made, '-c', 'core.autocrlf=false', 'add', '-A')
        self.write(made, files)
        for setting in config:
            self.git(made, 'config', *setting)
        self.git(made, 'add', '-A')
        self.git(made, 'commit', '-qm', 'first', '--allow-empty')
        for path in self.git(made, 'ls-files', '-z').split('\0'):
            if path:
                os.unlink(f'{made}/{path}')
        self.git(made, 'reset', '-q', '--hard')
        return made

    def round_trip(self, made, edits, removed=(), config=(), complete=True):
        """`edits`: path -> new bytes. Gives the probe's words."""
        outside, upper, fresh, applied = (f'{self.dir}/{name}' for name in ('outside', 'upper', 'fresh', 'applied'))
        shutil.copytree(made, outside, symlinks=True)
        shutil.copytree(made, applied, symlinks=True)
        os.mkdir(upper)
        self.write(outside, edits)
        self.write(upper, edits)
        for path in removed:
            os.unlink(f'{outside}/{path}')
            os.makedirs(os.path.dirname(f'{upper}/{path}'), exist_ok=True)
            os.mknod(f'{upper}/{path}', 0o020000, os.makedev(0, 0))
        patch = self.dir + '/patch'
        told = subprocess.run([PROBE, 'capture', upper, made, patch], capture_output=True, check=True).stdout.decode(errors='replace')
        self.assertEqual(told.split()[-1], '1' if complete else '0', told)
        if not complete:
            return told
        self.git(self.dir, 'clone', '-q', '--no-checkout', made, fresh)
        for setting in config:
            self.git(fresh, 'config', *setting)
        shutil.copytree(made + '/.git/info', fresh + '/.git/info', dirs_exist_ok=True)
        self.git(fresh, 'reset', '-q', '--hard')
        wanted = self.index(outside)
        if os.path.getsize(patch):
            self.git(fresh, 'apply', '--index', '--whitespace=nowarn', patch)
            done = subprocess.run([PROBE, 'apply', applied, patch], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.git(fresh, 'ls-files', '-sz').split('\0')
        self.assertEqual({line.split('\t')[1]: line.split('\t')[0] for line in lines if line}, wanted)
        self.same_files(applied, outside)
        return told

    def same_files(self, applied, outside):
        """Ours are those that a checkout of git's own index has, but for what had no reason to be written."""
        checked_out = self.dir + '/checked-out'
        shutil.copytree(outside, checked_out, symlinks=True)
        for path in self.git(checked_out, 'ls-files', '-z').split('\0'):
            if path:
                os.unlink(f'{checked_out}/{path}')
        self.git(checked_out, 'checkout-index', '-qfa')
        for at, directories, names in os.walk(checked_out):
            if '.git' in directories:
                directories.remove('.git')
            for name in names:
                path = os.path.relpath(f'{at}/{name}', checked_out)
                with open(f'{checked_out}/{path}', 'rb') as file, open(f'{applied}/{path}', 'rb') as ours:
                    self.assertEqual(ours.read(), file.read(), path)

    def attributes(self, attributes):
        return {f'{number}/.gitattributes': f'*.x {words}\n'.encode() for number, words in enumerate(attributes)}

    def matrix(self, attributes=ATTRIBUTES, **more):
        """Contents become every other, under each of `attributes`."""
        files, edits, removed, raw = self.attributes(attributes), {}, [], []
        for number, old in itertools.product(range(len(attributes)), OLD):
            for new, content in CONTENTS.items():
                path = f'{number}/{old} to {new}.x'
                files[path] = CONTENTS[old]
                edits[path] = content
                if old != new and new in OLD[:3]:
                    raw.append(path)  # In the index as it is, whatever the attributes say.
            files[f'{number}/{old} removed.x'] = CONTENTS[old]
            removed.append(f'{number}/{old} removed.x')
        for number, new in itertools.product(range(len(attributes)), CONTENTS):
            edits[f'{number}/new {new}.x'] = CONTENTS[new]
        self.round_trip(self.repository(files, raw=raw, **more), edits, removed, **more)

    def test_contents_under_every_attribute(self):
        self.matrix()

    def test_contents_with_autocrlf(self):
        for value in ('true', 'input'):
            with self.subTest(value=value):
                self.matrix(ATTRIBUTES[:8], config=[('core.autocrlf', value)])
                self.clear()

    def test_contents_with_another_native_line_ending(self):
        self.matrix(ATTRIBUTES[:8], config=[('core.eol', 'crlf')])

    def test_autocrlf_of_the_user(self):
        """Which is not read: the files themselves show it."""
        with open(self.dir + '/gitconfig', 'a') as file:
            file.write('[core]\nautocrlf = true\n')
        made = self.repository({'a': b'one\r\ntwo\r\n', 'gone': b'one\r\n', 'moved': b'one\r\ntwo\r\nthree\r\n'})
        with open(made + '/moved', 'rb') as file:
            moved = file.read()
        self.assertIn(b'\r\n', moved)  # Control.
        self.round_trip(made, {'a': b'one\r\nthree\r\n'}, removed=['gone'])

    def test_encodings(self):
        forms = ['UTF-16', 'utf-16le', 'UTF-16BE', 'UTF-16LE-BOM', 'UTF16 eol=crlf', 'UTF-16 text eol=lf ident']
        fits = {'UTF-16': ['mark', 'big mark'], 'utf-16le': ['little'], 'UTF-16BE': ['big'], 'UTF-16LE-BOM': ['mark'],
                'UTF16 eol=crlf': ['mark'], 'UTF-16 text eol=lf ident': ['mark']}
        files, edits = self.attributes(f'working-tree-encoding={form}' for form in forms), {}
        for number, form in enumerate(forms):
            for name in [*fits[form], 'none']:
                files[f'{number}/{name}.x'] = UTF16[name]
                edits[f'{number}/{name}.x'] = UTF16[name] + UTF16[name][2 if 'mark' in name else 0:]
                edits[f'{number}/new {name}.x'] = UTF16[name]
        self.round_trip(self.repository(files), edits)

    def test_what_is_not_in_its_encoding_is_lost_by_name(self):
        files = {'.gitattributes': b'*.u working-tree-encoding=UTF-16\n*.j working-tree-encoding=SHIFT-JIS\n', 'a.j': b'abc\n', 'b': b'b\n'}
        made = self.repository(files)
        for edits, word in (({'new.u': b'no mark'}, 'byte order mark'), ({'new.u': b'\xff\xfe\0'}, 'left over'),
                            ({'new.u': b'\xff\xfe\0\xd8'}, 'half of a surrogate pair'), ({'a.j': b'abd\n'}, 'SHIFT-JIS')):
            with self.subTest(word=word):
                told = self.round_trip(made, edits, complete=False)
                self.assertIn(word, told)
                self.clear('made')
        self.round_trip(made, {'b': b'c\n'})  # Control.

    def test_attributes_that_the_agent_changes(self):
        files = {'.gitattributes': b'*.a eol=crlf\n', 'x.a': b'one\ntwo\n', 'x.b': b'one\n', 'd/.gitattributes': b'*.b -text\n', 'd/y.b': b'\r\n'}
        self.round_trip(self.repository(files),
                        {'.gitattributes': b'*.b eol=crlf\n', 'x.a': b'one\r\n', 'x.b': b'one\r\ntwo\r\n', 'd/y.b': b'new\r\n'},
                        removed=['d/.gitattributes'])

    def test_attributes_outside_the_tree_and_macros(self):
        made = self.repository({'.gitattributes': b'[attr]mine eol=crlf ident\n*.m mine\n*.n -text\n', 'a.m': b'$Id$\n', 'a.n': b'a\n'})
        with open(made + '/.git/info/attributes', 'w') as file:
            file.write('*.n text eol=crlf\n')
        self.round_trip(made, {'a.m': b'$Id: old $\r\nmore\r\n', 'a.n': b'a\r\nb\r\n', 'new.n': b'a\r\n'})

    def test_checkout_of_a_subdirectory(self):
        made = self.repository({'.gitattributes': b'*.x eol=crlf\n', 'sub/a.x': b'one\n'})
        upper, patch = self.dir + '/upper', self.dir + '/patch'
        self.write(upper, {'a.x': b'one\r\ntwo\r\n'})
        subprocess.run([PROBE, 'capture', upper, made + '/sub', patch], check=True, capture_output=True)
        self.git(made, 'apply', '--index', '--directory=sub', patch)
        self.assertEqual(self.git(made, 'show', ':sub/a.x'), 'one\ntwo\n')

    def test_filter_drivers_are_not_run(self):
        files = {'.gitattributes': b'*.f filter=mine\n', 'a.f': b'one\n', 'same.f': b'two\n', 'b': b'b\n'}
        config = [('filter.mine.clean', 'tr a-z A-Z'), ('filter.mine.smudge', 'tr A-Z a-z')]
        made = self.repository(files, config)
        for edits, removed in (({'a.f': b'one\ntwo\n'}, ()), ({'new.f': b'x\n'}, ()), ({}, ['a.f'])):
            with self.subTest(edits=edits):
                told = self.round_trip(made, edits, removed, complete=False)
                self.assertIn('converted by the filter driver mine, which is not run', told)
                self.clear('made')
        self.round_trip(made, {'b': b'c\n'}, config=config)  # Control.

    def test_git_lfs(self):
        if subprocess.run(['git', 'lfs', 'version'], capture_output=True, check=False).returncode != 0:
            self.skipTest('git-lfs: it is not installed')
        self.env['GIT_LFS_SKIP_SMUDGE'] = '0'
        subprocess.run(['git', 'lfs', 'install', '--skip-repo'], env=self.env, check=True, capture_output=True)
        files = {'.gitattributes': b'*.bin filter=lfs diff=lfs merge=lfs -text\n', 'a.bin': b'\0' * 3000, 'gone.bin': b'gone', 'b': b'b\n'}
        made = self.repository(files)
        self.assertIn('oid sha256:', self.git(made, 'show', 'HEAD:a.bin'))  # Control.
        told = self.round_trip(made, {'a.bin': b'new'}, complete=False)
        self.assertIn('left-out a.bin: kept by git-lfs, which a patch cannot carry', told)
        self.clear('made')
        self.round_trip(made, {'d/moved.bin': b'\0' * 3000, 'b': b'c\n'}, removed=['a.bin', 'gone.bin'])

    def test_pointers_of_git_lfs_where_it_does_not_convert(self):
        pointer = b'version https://git-lfs.github.com/spec/v1\noid sha256:' + b'%064d' % 7 + b'\nsize 12\n'
        made = self.repository({'.gitattributes': b'*.bin filter=lfs -text\n', 'a.bin': pointer, 'raw.bin': b'\0raw'})
        self.round_trip(made, {'a.bin': pointer.replace(b'7', b'8'), 'raw.bin': b'\0more', 'empty.bin': b''})

    def test_hostile_attribute_files_end_in_a_patch(self):
        macros = ''.join(f'[attr]m{number} m{number + 1}\n' for number in range(9000))
        hostile = {'pipe': os.mkfifo, 'endless': lambda path: os.symlink('/dev/zero', path),
                   'loop': lambda path: os.symlink('.gitattributes', path), 'directory': os.mkdir,
                   'recursive': lambda path: self.write('/', {path: b'[attr]p q\n[attr]q p\n* p\n'}),
                   'long chain': lambda path: self.write('/', {path: macros.encode() + b'* m0\n'})}
        for name, make in hostile.items():
            with self.subTest(name=name):
                made = self.repository({'.gitattributes': b'*.x text\n', 'a.x': b'one\n'})
                upper, patch = self.dir + '/upper', self.dir + '/patch'
                self.write(upper, {'a.x': b'one\ntwo\n'})
                make(upper + '/.gitattributes')
                subprocess.run([PROBE, 'capture', upper, made, patch], check=True, capture_output=True, timeout=600)
                with open(patch) as file:
                    self.assertIn('+two\n', file.read())
                if name == 'pipe':  # The control: a program that opens it waits for a writer.
                    with self.assertRaises(subprocess.TimeoutExpired):
                        subprocess.run(['cat', upper + '/.gitattributes'], timeout=1, check=False)
                self.clear()

    def test_rules_that_cost_too_much_are_not_asked(self):
        made = self.repository({'a': b'a\n', 'd/b': b'b\n'})
        os.remove(made + '/a')
        self.git(made, 'checkout', '-q', 'a')
        told = self.round_trip(made, {'d/.gitattributes': b'# c\nx/**/**/**/**/y text\n', 'd/b': b'c\n'}, complete=False)
        self.assertIn('left-out d/b: line 2 of d/.gitattributes takes too long to match', told)

    def test_rules_that_convert_nothing_cost_nothing(self):
        costly = b'/**/src/**/gen/**/x/** linguist-generated -diff\n' * 30
        made = self.repository({'.gitattributes': costly + b'[attr]lines text eol=crlf\n*.w lines\npackages/**/src/**/gen/** text=auto\n',
                                'packages/a/src/gen/x.ts': b'a\n', 'b.w': b'b\n'})
        self.round_trip(made, {'packages/a/src/gen/x.ts': b'b\r\n', 'b.w': b'c\r\n'})


if __name__ == '__main__':
    unittest.main(verbosity=1)
