# SPDX-License-Identifier: Apache-2.0
"""Whole trees of files: put into a sandbox and got out of it, applied, kept in snapshots and restored."""
import base64
import hashlib
import io
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tarfile
import time

from harness import BIN, BUSY_SECONDS, CANARY, GIT, Case, only_root, only_root_in_namespaces, read, wait_until


class Files(Case):
    """Both tiers."""

    def ok(self, *arguments):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def tree(self, path):
        """Names, kinds, modes and contents."""
        found = {}
        for directory, names, files in os.walk(path):
            for name in names + files:
                full = os.path.join(directory, name)
                st = os.lstat(full)
                kind = stat.S_IFMT(st.st_mode)
                text = os.readlink(full) if stat.S_ISLNK(st.st_mode) else (
                    read(full) if stat.S_ISREG(st.st_mode) else '')
                mode = 0 if stat.S_ISLNK(st.st_mode) else stat.S_IMODE(st.st_mode)
                found[os.path.relpath(full, path)] = (kind, mode, text)
        return found

    def source(self):
        source = pathlib.Path(self.base, 'source')
        (source / 'deep/er').mkdir(parents=True)
        (source / 'deep/er/file').write_text('text\n')
        (source / 'run').write_text('#!/bin/sh\necho ran\n')
        (source / 'run').chmod(0o755)
        (source / 'empty').mkdir()
        (source / ('long' * 50)).write_text('long\n')
        (source / 'na me\nline').write_text('odd\n')
        (source / 'link').symlink_to('deep/er/file')
        (source / 'away').symlink_to('/etc/passwd')
        (source / 'gone').symlink_to('nowhere')
        (source / 'deep').chmod(0o711)
        os.utime(source / 'run', ns=(1_500_000_000_123_456_789,) * 2)
        return str(source)

    def test_what_is_copied_to_the_host_obeys_the_umask(self):
        self.create()
        self.script('mkdir d; echo x >d/f; chmod 755 d d/f')
        for mask, modes in (('022', ['755', '755', '755']), ('077', ['700', '700', '700'])):  # The control first.
            place = f'{self.base}/of-{mask}/above'
            done = subprocess.run(['sh', '-c', f'umask {mask}; exec "$@"', 'sh', BIN, 'sandbox', 'get', 'one', 'd', place], env=self.env,
                                  cwd=self.base, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([oct(os.stat(place + path).st_mode)[-3:] for path in ('/..', '', '/f')], modes)

    def test_a_tree_goes_in_and_comes_back_as_it_was(self):
        self.create()
        source = self.source()
        self.ok('sandbox', 'put', 'one', source, 'made/here')
        self.says('cd made/here; ./run; cat deep/er/file link "na me\nline"; readlink away; stat -c %a deep',
                  'ran\ntext\ntext\nodd\n/etc/passwd\n711\n')
        self.ok('sandbox', 'get', 'one', 'made/here', self.base + '/back')
        self.assertEqual(self.tree(self.base + '/back'), self.tree(source))
        self.assertEqual(os.stat(self.base + '/back/run').st_mtime_ns, 1_500_000_000_123_456_789)
        # What no command did is not told as one's change, and is in the difference.
        self.says('true', '', changes=[])
        self.assertIn('made/here/run', self.ok('sandbox', 'diff', 'one'))

    def test_where_a_copy_goes(self):
        self.create()
        self.script('mkdir d; ln -s d to_d; echo old >f; cd dir')
        file = self.base + '/one.txt'
        pathlib.Path(file).write_text('1\n')
        for target, where in (('d', 'd/one.txt'), ('to_d', 'd/one.txt'), ('new/', 'new/one.txt'), ('f', 'f'),
                              ('x/y/z', 'x/y/z'), ('.', 'one.txt'), (self.home() + '/h', '$HOME/h')):
            with self.subTest(target):
                self.ok('sandbox', 'put', 'one', file, target)
                self.says(f'cat "$OLDPWD"/{where} 2>/dev/null || cat {where}; rm -f "$OLDPWD/{where}" {where}', '1\n')
        out = self.base + '/out'
        os.mkdir(out)
        for arguments, where in (([out], 'a.txt'), ([out + '/b'], 'b'), ([out + '/c/'], 'c/a.txt')):
            self.ok('sandbox', 'get', 'one', 'a.txt', *arguments)
            self.assertEqual(read(os.path.join(out, where)), 'alpha\n')
        self.ok('sandbox', 'get', 'one', 'dir', out)
        self.ok('sandbox', 'get', 'one', 'dir', out)  # Again: merged.
        self.assertEqual(read(out + '/dir/sub/d.txt'), 'delta\n')

    def home(self):
        return self.script('printf %s ~')['stdout']

    def test_nothing_is_written_where_the_agent_may_not_write(self):
        self.create()
        file = self.base + '/one.txt'
        pathlib.Path(file).write_text('1\n')
        for target in ('/usr/lib/put', '/etc/put', '/'):
            with self.subTest(target):
                done = self.call('sandbox', 'put', 'one', file, target)
                self.assertNotEqual(done.returncode, 0)
        self.call('sandbox', 'put', 'one', file, self.base + '/put')  # Its own /tmp, or nothing.
        self.assertFalse(os.path.exists(self.base + '/put'))
        self.assertFalse(os.path.exists('/usr/lib/put') or os.path.exists('/etc/put'))
        for source in (self.base + '/nothing', '/dev/null'):
            done = self.call('sandbox', 'put', 'one', source, 'x')
            self.assertIn(done.returncode, (65, 66), done.stderr)
        self.ok('sandbox', 'put', 'one', file, 'x')
        self.says('cat x', '1\n')

    def test_nothing_is_read_that_the_agent_may_not_read(self):
        secret = self.base + '/secret'
        pathlib.Path(secret).write_text(CANARY)
        self.create()
        self.script(f'ln -s {secret} l; ln -s {self.base} d; mkfifo fifo')
        for source in (secret, 'l', 'd/secret', '../secret', '/proc/1/environ', 'fifo', 'nothing'):
            with self.subTest(source):
                done = self.call('sandbox', 'get', 'one', source, self.base + '/got')
                self.assertNotEqual(done.returncode, 0)
                self.assertFalse(os.path.exists(self.base + '/got'))

    def test_the_sandbox_cannot_choose_where_a_copy_is_written(self):
        self.create()
        out = self.base + '/out'
        os.mkdir(out)
        os.mkdir(self.base + '/elsewhere')
        self.script(f'mkdir -p t; ln -s {self.base}/elsewhere t/l; echo x >t/f; chmod 6755 t/f')
        self.ok('sandbox', 'get', 'one', 't', out)
        self.assertEqual(os.readlink(out + '/t/l'), self.base + '/elsewhere')
        self.assertEqual(stat.S_IMODE(os.stat(out + '/t/f').st_mode), 0o755)
        # The link is there now, and the sandbox has a directory of that name.
        self.script('rm t/l; mkdir t/l; echo x >t/l/planted')
        done = self.call('sandbox', 'get', 'one', 't', out)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertEqual(os.listdir(self.base + '/elsewhere'), [])
        self.script('rm -r t; mkdir t; ln -s x t/f; echo 1 >t/l')
        self.ok('sandbox', 'get', 'one', 't', out)
        self.assertEqual(read(out + '/t/l'), '1\n')

    def get_piped(self, *arguments):
        """A copy whose standard output is a pipe; the bytes that came."""
        done = subprocess.run([BIN, 'sandbox', 'get', 'one', *arguments], capture_output=True, cwd=self.base,
                              env=self.env, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_file_is_written_to_a_stream_that_stays_what_it_is(self):
        self.create()
        self.script("printf 'a\\0b' >bytes")
        self.assertEqual(self.get_piped('bytes', '-'), b'a\0b')
        self.assertEqual(self.get_piped('bytes', '/dev/stdout'), b'a\0b')
        self.assertFalse(os.path.exists(self.base + '/-'))
        out = self.base + '/out'
        with open(out, 'wb') as file:  # /dev/stdout is a link to a file now.
            subprocess.run([BIN, 'sandbox', 'get', 'one', 'bytes', '/dev/stdout'], stdout=file, check=True, cwd=self.base,
                           env=self.env)
        self.assertEqual(pathlib.Path(out).read_bytes(), b'a\0b')
        self.assertTrue(os.path.islink('/dev/stdout'))
        fifo = self.base + '/fifo'
        os.mkfifo(fifo)
        reader = subprocess.Popen(['cat', fifo], stdout=subprocess.PIPE)
        self.ok('sandbox', 'get', 'one', 'bytes', fifo)
        self.assertEqual(reader.communicate(timeout=BUSY_SECONDS)[0], b'a\0b')
        self.assertTrue(stat.S_ISFIFO(os.lstat(fifo).st_mode))
        done = self.call('sandbox', 'get', 'one', 'dir', '-')
        self.assertEqual((done.returncode, done.stdout), (65, ''), done.stderr)
        # An ordinary name: nothing else has changed.
        self.ok('sandbox', 'get', 'one', 'bytes', './-')
        self.assertEqual(pathlib.Path(self.base, '-').read_bytes(), b'a\0b')

    def test_what_is_no_file_is_not_replaced_by_one(self):
        self.create()
        out = pathlib.Path(self.base, 'out/d')
        out.mkdir(parents=True)
        self.script('mkdir d; for name in fifo socket; do echo new >d/$name; done; echo new >d/file')
        os.mkfifo(out / 'fifo')
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(out / 'socket'))
            done = self.call('sandbox', 'get', 'one', 'd', str(out.parent))
            self.assertEqual(done.returncode, 65, done.stderr)
            done = self.call('sandbox', 'get', 'one', 'd/socket', str(out / 'socket'))
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn('agentic-ci sandbox get NAME FILE -', done.stderr)
            self.assertTrue(stat.S_ISSOCK(os.lstat(out / 'socket').st_mode))
        self.assertTrue(stat.S_ISFIFO(os.lstat(out / 'fifo').st_mode))
        (out / 'fifo').unlink()
        (out / 'socket').unlink()
        self.ok('sandbox', 'get', 'one', 'd', str(out.parent))
        self.assertEqual({path.name: path.read_text() for path in out.iterdir()},
                         dict.fromkeys(('fifo', 'socket', 'file'), 'new\n'))

    @only_root
    def test_a_device_stays_a_device(self):
        self.create()
        null = os.path.join(self.base, 'null')
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        self.ok('sandbox', 'get', 'one', 'a.txt', null)
        self.assertTrue(stat.S_ISCHR(os.lstat(null).st_mode))
        self.script('mkdir d; echo text >d/null; echo text >d/other')
        done = self.call('sandbox', 'get', 'one', 'd/.', self.base)
        self.assertEqual(done.returncode, 0, done.stderr)  # It has a name of its own there.
        os.rename(null, self.base + '/d/null')
        done = self.call('sandbox', 'get', 'one', 'd', self.base)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertTrue(stat.S_ISCHR(os.lstat(self.base + '/d/null').st_mode))

    def test_a_directory_keeps_its_own_name(self):
        self.create()
        for source, name in (('.', os.path.basename(self.work)), ('dir/', 'dir'), ('dir/sub/..', 'dir'),
                             ('./dir/.', 'dir')):
            with self.subTest(source):
                out = os.path.join(self.base, 'out')
                os.mkdir(out)
                self.ok('sandbox', 'get', 'one', source, out)
                self.assertEqual(os.listdir(out), [name])
                shutil.rmtree(out)

    def test_what_may_not_be_read_is_left_out_by_its_name(self):
        self.create()
        if os.geteuid() != 0:  # Root may read all of its own files.
            source = pathlib.Path(self.base, 'src')
            (source / 'closed').mkdir(parents=True)
            for name in ('a', 'b', 'c'):
                (source / name).write_text(name)
            (source / 'b').chmod(0)
            (source / 'closed').chmod(0)
            done = self.call('sandbox', 'put', 'one', 'src', 'in')
            (source / 'closed').chmod(0o700)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('2 left out, the first: src/', done.stderr)
            self.assertIn(': permission denied', done.stderr)
            self.says('ls in; cat in/a in/c', 'a\nc\nac')
        self.script('mkdir -p from; echo 1 >from/1; echo 2 >from/2; chmod 0 from/2')
        done = self.call('sandbox', 'get', 'one', 'from', self.base)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('1 left out, the first: ', done.stderr)
        self.assertIn('from/2: permission denied', done.stderr)
        self.assertEqual(os.listdir(self.base + '/from'), ['1'])

    def test_a_copy_that_cannot_be_written_says_why(self):
        self.create()
        self.script('head -c 9M /dev/zero >large; echo x >small')
        for name in ('large', 'small'):
            with self.subTest(name):
                # No file may become larger than this: a disk that is full, for any user.
                done = subprocess.run([BIN, 'sandbox', 'get', 'one', name, self.base + '/'], env=self.env,
                                      cwd=self.base, capture_output=True, text=True, preexec_fn=self.no_room)
                self.assertEqual(done.returncode, 74, done.stderr)
                self.assertRegex(done.stderr, f'error: writing {name}: no room is left\n$')
        self.ok('sandbox', 'get', 'one', 'large', self.base + '/')  # The control.
        done = self.call('sandbox', 'get', 'one', 'absent', self.base + '/')
        self.assertIn('absent', done.stderr)

    def no_room(self):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))

    def test_links_lead_no_copy_out_of_a_checkout_whose_path_is_no_text_or_is_gone(self):
        outside = self.base + '/outside'
        os.mkdir(outside)
        pathlib.Path(outside + '/key').write_text('key\n')
        self.work = os.fsdecode(shutil.move(self.work, os.fsencode(self.base) + b'/ch\xffeck'))
        os.symlink('../outside', self.work + '/link')
        self.create()
        self.script('echo planted >new')
        words = (['get', 'one', 'new', 'link/got'], ['put', 'one', 'link/key', 'taken'])
        for arguments in words:
            self.assertEqual(self.copy(arguments, self.work), 77, arguments)
        self.assertEqual(self.copy(['get', 'one', 'new', './'], self.work), 0)  # The control.
        os.rename(self.work, self.base + '/moved')
        for arguments in words:
            self.assertEqual(self.copy(arguments, self.base + '/moved'), 77, arguments)
        self.assertEqual(os.listdir(outside), ['key'])
        done = self.call('sandbox', 'exec', 'one', '--', 'true')  # The checkout cannot be looked through.
        self.assertEqual(done.returncode, 66 if self.TIER == 'namespaces' else 0, done.stderr)
        os.rename(self.base + '/moved', self.work)
        self.says('ls taken', '', exit=2)

    def copy(self, arguments, directory):
        return subprocess.run([BIN, 'sandbox', *arguments], cwd=directory, env=self.env, capture_output=True).returncode

    def test_links_of_the_checkout_lead_no_copy_out_of_it(self):
        private = self.base + '/private'
        os.mkdir(private)
        pathlib.Path(private + '/key').write_text('key\n')
        for name, target in (('file', '../private/key'), ('absolute', private), ('out', '../private'), ('in', 'dir')):
            os.symlink(target, os.path.join(self.work, name))
        self.create()
        self.script('mkdir -p new; echo planted >new/key')
        for arguments in (['put', 'one', 'file', 'taken'], ['put', 'one', 'out/key', 'taken'],
                          ['put', 'one', 'dir/../absolute/key', 'taken'], ['get', 'one', 'new/key', 'out/'],
                          ['get', 'one', 'new/key', 'absolute/deep/x'], ['get', 'one', 'new/key', 'file']):
            with self.subTest(arguments):
                line = [BIN, 'sandbox', *arguments]
                done = subprocess.run(line, cwd=self.work, env=self.env, capture_output=True, text=True)
                self.assertEqual(done.returncode, 77, done.stderr)
                self.assertIn('a symbolic link in the checkout leads out of it', done.stderr)
        self.assertEqual((os.listdir(private), read(private + '/key')), (['key'], 'key\n'))
        self.says('ls taken', '', exit=2)
        # The controls: within the checkout, and outside of it.
        for target, where in (('in/', self.work + '/dir/key'), ('../got', self.base + '/got'), ('./', self.work + '/key')):
            line = [BIN, 'sandbox', 'get', 'one', 'new/key', target]
            subprocess.run(line, cwd=self.work, env=self.env, check=True)
            self.assertEqual(read(where), 'planted\n')
        os.symlink(private, self.base + '/mine')
        self.ok('sandbox', 'put', 'one', 'mine/key', 'taken')
        self.says('cat taken', 'key\n')

    def test_links_elsewhere_in_the_checkout_lead_no_copy_out_of_it(self):
        """The sandbox is of a directory in the checkout; the rest is as much the pull request's."""
        private = self.base + '/private'
        os.mkdir(private)
        pathlib.Path(private + '/key').write_text('key\n')
        os.symlink('../private', self.work + '/out')
        top, self.work = self.work, self.work + '/dir'
        self.create()
        self.script('echo planted >new')
        for arguments in (['put', 'one', 'out/key', 'taken'], ['get', 'one', 'new', 'out/got']):
            self.assertEqual(self.copy(arguments, top), 77, arguments)
        self.assertEqual(os.listdir(private), ['key'])
        self.says('ls taken', '', exit=2)
        # The controls: no link of the checkout is on the way.
        self.assertEqual(self.copy(['put', 'one', private + '/key', 'taken'], top), 0)
        self.assertEqual(self.copy(['get', 'one', 'new', 'got'], top), 0)
        self.assertEqual(read(top + '/got'), 'planted\n')

    def test_a_file_of_the_kernel_is_copied_as_it_reads(self):
        self.create()
        for path in ('/proc/version', '/proc/meminfo'):
            self.ok('sandbox', 'get', 'one', path, self.base + '/got')
            first = read(self.base + '/got').split()[0]
            self.assertEqual(first, read(path).split()[0])
            self.assertNotIn('\0', read(self.base + '/got'))

    def test_the_json_of_control_characters_is_not_held_in_memory(self):
        self.create()
        size = 24 << 20
        script = (f"head -c {size} /dev/zero | tr '\\0' '\\001'; yes '##vso[abé' | tr -d '\\n' | head -c 700000 >&2; "
                  "printf '\\377' >&2")
        line = f'ulimit -d {6 * size >> 10}; exec "$@"'
        with open(self.base + '/json', 'w', encoding='utf-8') as out:
            client = subprocess.run(['sh', '-c', line, 'sh', BIN, 'sandbox', 'exec', 'one', '--json', '--', 'sh', '-c', script],
                                    cwd=self.base, env=self.env, stdout=out, stderr=subprocess.PIPE, text=True)
        self.assertEqual(client.returncode, 0, client.stderr)
        text = read(self.base + '/json')
        result = json.loads(text)
        self.assertTrue(result['stdout'] == '\1' * size)
        expected = ('##vso[abé' * 70000).encode()[:700000].decode(errors='replace') + '\ufffd'
        self.assertTrue(result['stderr'] == expected)
        self.assertNotIn('##vso[', text)

    def test_bounds_and_what_cannot_be_copied(self):
        self.create('--disk', '16MiB')
        self.script('head -c 2000000 /dev/zero >big; mkdir odd; mkfifo odd/fifo; echo 1 >odd/f')
        done = self.call('sandbox', 'get', 'one', 'big', self.base + '/big', '--max-size', '1MiB')
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn('1048576', done.stderr)
        self.ok('sandbox', 'get', 'one', 'big', self.base + '/big', '--max-size', '2MiB')
        done = self.call('sandbox', 'get', 'one', 'odd', self.base + '/odd')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('1 left out', done.stderr)
        self.assertEqual(os.listdir(self.base + '/odd'), ['f'])

    def test_transfers_wait_for_commands_and_a_broken_one_harms_nothing(self):
        self.create()
        file = self.base + '/large'
        pathlib.Path(file).write_bytes(os.urandom(1 << 20))
        slow, release = self.start_waiting('ls put 2>/dev/null')
        put = subprocess.Popen([BIN, 'sandbox', 'put', 'one', file, 'put'], cwd=self.base, env=self.env)
        time.sleep(0.5)  # It had time to overtake.
        self.assertIsNone(put.poll())
        release()
        out, _ = slow.communicate()
        self.assertEqual(out, '')
        self.assertEqual(put.wait(), 0)
        self.says('stat -c %s put', '1048576\n')
        # A client that goes away in the middle.
        done = subprocess.Popen([BIN, 'sandbox', 'put', 'one', self.many(), 'never'], cwd=self.base,
                                env=self.env, stderr=subprocess.PIPE)
        done.kill()
        done.communicate()
        self.says('echo next', 'next\n')

    def test_a_client_that_stands_still_is_given_up(self):
        self.create('--timeout', '8s')
        client = subprocess.Popen([BIN, 'sandbox', 'put', 'one', self.many(), 'never'], cwd=self.base,
                                  env=self.env, stderr=subprocess.PIPE, text=True)
        self.assertTrue(wait_until(lambda: self.facts().get('busy') or client.poll() is not None))
        client.send_signal(signal.SIGSTOP)
        self.says('echo next', 'next\n')
        client.send_signal(signal.SIGCONT)
        client.communicate(timeout=600)  # It was done before, or is told.

    @only_root_in_namespaces
    def test_what_copies_has_no_network(self):
        self.create()
        keeper = self.facts()['pid']
        supervisor, = self.children(keeper)
        before = set(self.children(supervisor))
        tree = self.many()
        found = lambda: set(self.children(supervisor)) - before
        seen = set()
        for attempt in range(50):  # A copy may be over before its client is stopped.
            client = subprocess.Popen([BIN, 'sandbox', 'put', 'one', tree, f'copy{attempt}'], cwd=self.base, env=self.env,
                                      stderr=subprocess.PIPE, text=True)
            wait_until(lambda: found() or client.poll() is not None)
            client.send_signal(signal.SIGSTOP)
            wait_until(lambda: not found() or self.networks(found()) - {self.networks(['self']).pop()}, 5)
            seen = self.networks(found())
            client.send_signal(signal.SIGCONT)
            self.assertEqual(client.wait(600), 0, client.communicate()[1])
            if seen:
                break
        # The controls: the gateway is in the host's network, and the sandbox's first process in the sandbox's.
        host = self.networks(['self'])
        others = self.networks(before)
        self.assertTrue(host < others)
        self.assertEqual(len(seen), 1)
        self.assertFalse(seen & others)

    @staticmethod
    def networks(pids):
        """The network namespaces of those that are alive."""
        found = set()
        for pid in pids:
            try:
                found.add(os.readlink(f'/proc/{pid}/ns/net'))
            except OSError:
                pass
        return found

    def children(self, pid):
        return read(f'/proc/{pid}/task/{pid}/children').split()

    def many(self):
        path = self.base + '/tree'
        os.mkdir(path)
        for i in range(200):
            pathlib.Path(path, str(i)).write_bytes(os.urandom(65536))
        return path

    def test_apply_writes_the_difference_and_the_sandbox_goes_on(self):
        self.create()
        self.script('echo changed >a.txt; rm b.txt; echo new >n.txt')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '3\n')
        self.assertEqual(read(self.work + '/a.txt'), 'changed\n')
        self.assertEqual(read(self.work + '/n.txt'), 'new\n')
        self.assertFalse(os.path.exists(self.work + '/b.txt'))
        self.assertEqual(self.ok('sandbox', 'diff', 'one'), '')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '0\n')
        self.says('cat a.txt n.txt; echo more >>n.txt', 'changed\nnew\n')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '1\n')
        self.assertEqual(read(self.work + '/n.txt'), 'new\nmore\n')
        # A formatter of the host's, and a step that writes there, keep nothing from being applied, and lose nothing.
        for name in ('a.txt', 'host.txt'):
            pathlib.Path(self.work, name).write_text('of the host\n')
        self.script('echo again >>n.txt')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '1\n')
        self.assertEqual((read(self.work + '/a.txt'), read(self.work + '/host.txt')), ('of the host\n', 'of the host\n'))
        self.script('mkdir -p nd/in dir/own; for d in nd nd/in dir/own; do echo q >$d/q; echo s >$d/s; done; chmod 555 dir/own')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '6\n')
        result = self.script('chmod 755 dir/own; for d in nd nd/in dir/own; do rm $d/q; mv $d/s $d/t; done')
        self.assertEqual([(c['kind'], c['path']) for c in result['changes'] if c['path'].startswith('nd/in')],
                         [('deleted', 'nd/in/q'), ('renamed', 'nd/in/t')])
        self.ok('sandbox', 'apply', 'one')
        for path in ('nd', 'nd/in', 'dir/own'):
            self.assertEqual(sorted(set(os.listdir(f'{self.work}/{path}')) - {'in'}), ['t'], path)
        self.script('rm nd/t; rm -r dir/own; mv nd moved')
        self.says('ls nd dir/own 2>/dev/null; ls moved', 'in\n')
        self.ok('sandbox', 'apply', 'one')
        self.assertEqual((os.listdir(self.work + '/moved/in'), os.path.exists(self.work + '/nd')), (['t'], False))
        self.assertFalse(os.path.exists(self.work + '/dir/own/t'))
        self.assertEqual(self.ok('sandbox', 'diff', 'one'), '')

    def git_here(self, *arguments):
        done = subprocess.run([*GIT, *arguments], cwd=self.work, env=self.env, check=True, capture_output=True, text=True)
        return done.stdout

    def test_git_inside_follows_the_checkout_after_apply(self):
        if self.TIER == 'landlock':
            return self.git_in_a_copy_follows_nothing()
        state = 'git -c safe.directory=* log -1 --format=%s; git -c safe.directory=* status --porcelain'
        self.create()
        for number, before in enumerate(('git status', 'git add -A', 'git commit -qam inside', 'git rm -q dir/c.txt',
                                         'git checkout -qb other')):
            with self.subTest(before):
                before = before.replace('git', 'git -c safe.directory=* -c user.name=t -c user.email=t@localhost')
                self.says(f'echo {number} >>a.txt; {before} >/dev/null; git -c safe.directory=* status >/dev/null', '')
                self.ok('sandbox', 'apply', 'one')
                # As outside: a change that is not staged.
                self.assertEqual(self.script(state)['stdout'], self.git_here('log', '-1', '--format=%s') +
                                 self.git_here('status', '--porcelain'))
                self.git_here('add', '-A')
                self.git_here('commit', '-qm', f'outside {number}')
                self.says(state, f'outside {number}\n')
                self.says('git -c safe.directory=* rev-parse --abbrev-ref HEAD', 'main\n')
        # A commit inside that was not applied is the sandbox's own.
        self.says('echo more >>b.txt; git -c safe.directory=* -c user.name=t -c user.email=t@localhost commit -qam kept', '')
        self.git_here('commit', '-qm', 'empty', '--allow-empty')
        self.says('git -c safe.directory=* log -1 --format=%s', 'kept\n')

    def test_git_inside_follows_where_it_has_written_nothing(self):
        if self.TIER == 'landlock':
            return self.git_in_a_copy_follows_nothing()
        # Files older than the index: `git status` has no reason to write one of its own.
        for directory, _, names in os.walk(self.work):
            for name in names if '.git' not in directory.split('/') else ():
                os.utime(os.path.join(directory, name), (1_500_000_000, 1_500_000_000))
        self.git_here('update-index', '--refresh')
        state = 'git -c safe.directory=* log -1 --format=%s; git -c safe.directory=* status --porcelain'
        self.create()
        self.says('echo 1 >>a.txt; ' + state, 'first\n M a.txt\n')
        self.ok('sandbox', 'apply', 'one')
        self.git_here('commit', '-qam', 'outside')
        self.says(state, 'outside\n')

    def git_in_a_copy_follows_nothing(self):
        self.create()
        self.says('echo 1 >>a.txt; git status >/dev/null', '')
        self.ok('sandbox', 'apply', 'one')
        self.git_here('commit', '-qam', 'outside')
        self.says('git log -1 --format=%s; git status --porcelain', 'first\n M a.txt\n')

    def test_apply_goes_on_after_a_touch_and_past_a_conflict(self):
        self.create()
        self.script('echo changed >>a.txt')
        os.utime(self.work + '/a.txt')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '1\n')
        os.utime(self.work + '/a.txt')
        self.script('echo again >>a.txt; rm b.txt')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '2\n')
        self.assertTrue(read(self.work + '/a.txt').endswith('changed\nagain\n'))
        pathlib.Path(self.work, 'dir/host').write_text('of the host\n')
        self.script('mkdir -p dir; echo inside >>dir/host')  # In tier namespaces, it finds the host's.
        os.utime(self.work + '/dir/host')
        found = self.TIER == 'namespaces'
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '1\n' if found else '0\n')
        self.assertEqual(read(self.work + '/dir/host'), 'of the host\n' + 'inside\n' * found)
        pathlib.Path(self.work, 'a.txt').write_text('of the host\n')
        self.script('echo last >>a.txt; echo new >n.txt')
        done = self.call('sandbox', 'apply', 'one')
        self.assertEqual((done.returncode, done.stdout), (0, '1\n'), done.stderr)
        line = [line for line in done.stderr.splitlines() if 'a.txt: not part of the patch: changed in the checkout' in line][0]
        self.assertTrue(read(line.split("the agent's version is ")[1]).endswith('again\nlast\n'))
        self.assertEqual((read(self.work + '/a.txt'), read(self.work + '/n.txt')), ('of the host\n', 'new\n'))

    def test_apply_is_judged_by_the_gates(self):
        self.create()
        self.script('mkdir -p .github/workflows; echo "on: push" >.github/workflows/x.yml; echo 1 >fine')
        done = self.call('sandbox', 'apply', 'one')
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn('.github/workflows/x.yml', done.stderr)
        self.assertFalse(os.path.exists(self.work + '/.github') or os.path.exists(self.work + '/fine'))
        self.script('rm -r .github')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '1\n')

    def test_apply_does_not_change_the_policy_of_the_sandbox(self):
        policy = pathlib.Path(self.work, 'rules/p.yml')
        policy.parent.mkdir()
        policy.write_text('endpoints: []\n')
        self.create('--policy', str(policy))
        for change, undo in (('echo "endpoints: [a.example]" >rules/p.yml', 'echo "endpoints: []" >rules/p.yml'),
                             ('mv rules/p.yml p.yml', 'mv p.yml rules/p.yml')):
            self.script(change)
            done = self.call('sandbox', 'apply', 'one')
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn('rules/p.yml: the policy of this run', done.stderr)
            self.assertEqual(policy.read_text(), 'endpoints: []\n')
            self.script(undo)
        self.script('echo beside >rules/q.yml')
        self.assertEqual(self.ok('sandbox', 'apply', 'one'), '1\n')


CHANGES = """
echo changed >a.txt; rm b.txt; rm -r dir; mkdir dir; echo new >dir/new
mkdir -p deep/er; echo q >deep/q; ln deep/q deep/er/hard; mkfifo deep/fifo; ln -s /etc/hostname abs; ln -s ../x rel
echo secret >locked; chmod 0 locked; touch -d @1400000000.25 deep/q; echo home >~/kept; echo t >/tmp/t
python3 -c 'import os, socket
os.setxattr("a.txt", "user.note", b"a\\0b")
socket.socket(socket.AF_UNIX).bind("deep/socket")'
"""
LOOK = """
cat a.txt dir/*; ls b.txt dir/sub 2>/dev/null; stat -c '%h %.2Y' deep/q; cat deep/er/hard; stat -c %F deep/fifo
readlink abs rel; stat -c %a locked; cat ~/kept /tmp/t; ls -A deep
python3 -c 'import os; print(os.getxattr("a.txt", "user.note"))'
"""
SEEN = ("changed\nnew\n2 1400000000.25\nq\nfifo\n/etc/hostname\n../x\n0\nhome\nt\ner\nfifo\nq\n"
        "b'a\\x00b'\n")

class Snapshots(Case):
    """Tier namespaces."""

    def setUp(self):
        super().setUp()
        self.env['AGENTIC_CI_STORE'] = self.base + '/store'

    def snapshot(self, *options, name='one'):
        done = self.call('sandbox', 'snapshot', name, '--json', *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def restore(self, reference, name='one', status=0, options=()):
        done = self.call('sandbox', 'restore', name, reference, *options)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def second_checkout(self):
        other = self.base + '/other'
        subprocess.run(['cp', '-a', self.work, other], check=True)
        return other

    def test_links_and_pipes_in_the_place_of_a_snapshot_are_not_followed(self):
        self.create()
        layout, elsewhere = pathlib.Path(self.base, 'layout'), pathlib.Path(self.base, 'elsewhere')
        for path in (layout, elsewhere):
            path.mkdir()
        (layout / 'blobs').symlink_to(elsewhere)
        words = ['sandbox', 'snapshot', 'one', '--output', str(layout)]
        self.assertNotEqual(self.call(*words).returncode, 0)
        self.assertEqual(os.listdir(elsewhere), [])
        (layout / 'blobs').unlink()
        os.mkfifo(layout / 'index.json')
        self.assertEqual(self.call(*words).returncode, 65)
        (layout / 'index.json').unlink()
        self.assertEqual(self.call(*words).returncode, 0)

    def test_no_link_in_the_checkout_leads_to_the_place_of_a_snapshot(self):
        checkout, elsewhere = self.work, pathlib.Path(self.base, 'elsewhere')
        elsewhere.mkdir()
        pathlib.Path(checkout, 'link').symlink_to(elsewhere)
        self.create()
        for place in ('link', 'link/deeper'):
            done = self.call('sandbox', 'snapshot', 'one', '--output', os.path.join(checkout, place))
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn('a symbolic link in a checkout is not followed', done.stderr)
        self.assertEqual(os.listdir(elsewhere), [])
        for place in (os.path.join(checkout, 'new/deep'), str(elsewhere)):
            self.assertEqual(self.call('sandbox', 'snapshot', 'one', '--output', place).returncode, 0)
            self.assertTrue(pathlib.Path(place, 'index.json').exists())

    def test_snapshots_are_listed_and_deleted_and_prune_counts_them(self):
        def ok(*arguments):
            done = self.call(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        def listed():
            return json.loads(ok('sandbox', 'snapshots', '--json'))['snapshots']
        self.assertEqual(listed(), [])
        self.create()
        digests = []
        for tag in ('same', 'same', None):
            self.script('head -c 300000 /dev/urandom >big')
            digests.append(ok('sandbox', 'snapshot', 'one', *(['--tag', tag] if tag else [])).strip())
        found = listed()
        self.assertEqual([(one['digest'], one['tag']) for one in found], [(digests[1], 'same'), (digests[2], '')])
        self.assertTrue(all(one['bytes'] > 300000 for one in found))
        self.restore(digests[0])  # Not in the list, and still there.
        pruned = json.loads(ok('image', 'prune', '--json'))
        self.assertEqual(pruned['snapshot_bytes_left'], sum(one['bytes'] for one in found))
        self.assertGreater(pruned['snapshot_bytes_freed'], 300000)
        self.restore(digests[0], status=66)
        lines = ok('sandbox', 'snapshots').splitlines()
        self.assertEqual([line.split()[0] for line in lines], digests[1:])
        self.assertEqual(lines[0].split()[-1], 'same')
        self.restore('same')
        self.restore(digests[2])
        ok('sandbox', 'snapshots', '--delete', 'same', '--delete', digests[2])
        self.assertEqual(listed(), [])
        self.assertEqual(os.listdir(self.base + '/store/snapshots/blobs/sha256'), [])
        done = self.call('sandbox', 'snapshots', '--delete', 'same')
        self.assertEqual(done.returncode, 66, done.stderr)

    def test_the_layer_of_an_interrupted_snapshot_goes_with_the_next(self):
        self.create()
        layout = self.base + '/layout'
        blobs = pathlib.Path(layout, 'blobs/sha256')
        blobs.mkdir(parents=True)
        for left in (blobs / '.snapshot-left', pathlib.Path(layout, '.snapshot-left')):
            left.write_text('x')
        (blobs / 'kept').write_text('x')  # The control.
        self.snapshot('--output', layout)
        self.assertEqual(sorted(os.listdir(layout)), ['blobs', 'index.json', 'oci-layout'])
        self.assertEqual([name for name in os.listdir(blobs) if len(name) != 64], ['kept'])

    def test_a_file_that_is_mostly_a_hole_is_refused_at_once(self):
        self.create('--disk', '64MiB')
        layout = 'oci:' + self.base + '/layout'
        words = ['sandbox', 'snapshot', 'one', '--output', self.base + '/layout']
        self.script('truncate -s 1T /tmp/f')
        refused = self.call(*words)
        self.assertEqual(refused.returncode, 69, refused.stderr)
        self.assertIn('tmp/f', refused.stderr)
        self.script('truncate -s 32M /tmp/f')  # The control.
        self.assertEqual(self.call(*words).returncode, 0)
        self.restore(layout)

    def test_a_snapshot_that_does_not_fit_beside_what_there_is_leaves_it_there(self):
        self.create('--memory', '64MiB')
        layout = 'oci:' + self.base + '/layout'
        self.script('x=1; head -c 30M /dev/urandom >/tmp/large')
        self.assertEqual(self.call('sandbox', 'snapshot', 'one', '--output', layout[4:]).returncode, 0)
        self.script('x=2')
        refused = self.call('sandbox', 'restore', 'one', layout)
        self.assertEqual(refused.returncode, 69, refused.stderr)
        self.assertIn('large: the limit of 2', refused.stderr)
        self.assertIn('in addition to what the sandbox holds', refused.stderr)
        self.says('echo $x; wc -c </tmp/large', f'2\n{30 << 20}\n')
        self.assertEqual(self.call('sandbox', 'reset', 'one').returncode, 0)  # The control.
        self.restore(layout)
        self.says('echo $x; wc -c </tmp/large', f'1\n{30 << 20}\n')

    def test_what_was_applied_and_then_deleted_is_in_no_snapshot(self):
        self.create()
        self.script('mkdir nd; echo q >nd/q; echo s >nd/s')
        self.assertEqual(self.call('sandbox', 'apply', 'one').returncode, 0)
        self.script('rm nd/q')
        self.snapshot('--tag', 'ready')
        self.script('rm -r nd')
        self.restore('ready')
        self.says('ls nd', 's\n')
        self.script('echo more >>a.txt')
        changed = self.call('sandbox', 'diff', 'one').stdout
        self.assertIn(' alpha\n+more\n', changed)
        self.assertIn('deleted file mode 100644', changed)  # nd/q, which was applied.

    def test_a_snapshot_holds_what_a_sandbox_wrote_and_its_shell(self):
        self.create()
        self.script(CHANGES + 'x=1; declare -a list=(a "b c"); f() { echo "f $x"; }; set -o noclobber; cd deep')
        self.script(self.nap(1021) + ' &')
        taken = self.snapshot('--tag', 'ready')
        self.assertRegex(taken['digest'], '^sha256:[0-9a-f]{64}$')
        self.assertEqual(taken['left_out'], 1)  # The socket.
        self.says('jobs -r | wc -l', '1\n')  # It goes on.
        self.script('cd ..; echo later >a.txt; rm -rf deep ~/kept; touch since; x=2; unset -f f; set +o noclobber')
        self.restore('ready')
        self.says('basename "$PWD"; cd ..; ls since; f; echo "${list[1]}"; echo y >|/tmp/z; echo y >/tmp/z',
                  'deep\nf 1\nb c\n')
        self.says(LOOK, SEEN)
        self.assertFalse(self.napping(1021))
        self.restore(taken['digest'])
        self.says('cd ..' + LOOK, SEEN)

    def test_another_sandbox_and_another_checkout_take_it(self):
        self.create()
        self.script(CHANGES + 'x=1; cd deep')
        self.snapshot('--output', self.base + '/layout', '--tag', 'v1')
        self.call('sandbox', 'delete', 'one')
        work, self.work, self.report = self.work, self.second_checkout(), self.base + '/report2'
        shutil.move(work, work + '-gone')
        self.create('--env', 'GIVEN=new', name='two')
        self.restore(f'oci:{self.base}/layout:v1', name='two')
        done = self.call('sandbox', 'exec', 'two', stdin='echo $x $GIVEN; pwd; cd ..' + LOOK)
        self.assertEqual(done.stdout, f'1 new\n{self.work}/deep\n' + SEEN)
        # Its policy, gateway and gates are the sandbox's own.
        done = self.call('sandbox', 'exec', 'two', '--', 'python3', '-c',
                         'import urllib.request as r; r.urlopen("http://example.com/", timeout=120)')
        self.assertIn('403', done.stderr)

    def test_a_sandbox_begins_with_a_snapshot(self):
        self.create()
        self.script('echo from the snapshot >a.txt; x=1')
        self.snapshot('--tag', 'ready')
        self.call('sandbox', 'delete', 'one')
        self.create('--snapshot', 'ready')
        self.says('cat a.txt; echo $x', 'from the snapshot\n1\n')
        self.call('sandbox', 'delete', 'one')
        for options, status in ((['--snapshot', 'missing'], 66), (['--snapshot-key', 'x'], 64),
                                (['--snapshot', 'ready', '--isolation', 'landlock'], 69)):
            done = self.call('sandbox', 'create', '--name', 'one', '--workdir', self.work, '--report-dir',
                             self.report, *options)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(self.names(), [])

    def layout(self):
        self.create()
        self.script('echo from the snapshot >a.txt')
        self.snapshot('--output', self.base + '/layout')
        self.script('echo mine >a.txt; x=kept')
        return pathlib.Path(self.base, 'layout')

    def replace_layer(self, layout, make, state=None):
        """The layout's image with another layer, and state of the shell, its digests right."""
        blobs = layout / 'blobs/sha256'
        index = json.loads((layout / 'index.json').read_text())
        manifest = json.loads((blobs / index['manifests'][0]['digest'][7:]).read_text())
        config = json.loads((blobs / manifest['config']['digest'][7:]).read_text())
        checkout = base64.b64decode(config['dev.agentic-ci.snapshot']['checkout']).decode().lstrip('/')
        if state is not None:
            config['dev.agentic-ci.snapshot']['state'] = base64.b64encode(state.encode()).decode()
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as tar:
            make(tar, checkout)
        layer = out.getvalue()
        config['rootfs']['diff_ids'] = ['sha256:' + hashlib.sha256(layer).hexdigest()]

        def write(value, kind):
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            digest = hashlib.sha256(data).hexdigest()
            (blobs / digest).write_bytes(data)
            return {'mediaType': kind, 'digest': 'sha256:' + digest, 'size': len(data)}
        manifest['layers'] = [write(layer, 'application/vnd.oci.image.layer.v1.tar')]
        manifest['config'] = write(config, manifest['config']['mediaType'])
        index['manifests'] = [write(manifest, index['manifests'][0]['mediaType'])]
        (layout / 'index.json').write_text(json.dumps(index))

    def entry(self, tar, name, data=b'', **fields):
        info = tarfile.TarInfo(name)
        info.size = len(data)
        for key, value in fields.items():
            setattr(info, key, value)
        tar.addfile(info, io.BytesIO(data))

    def test_hostile_layers_are_refused_and_what_was_there_stays(self):
        layout = self.layout()
        link = {'type': tarfile.SYMTYPE}
        hostile = {
            'two links': lambda tar, top: (self.entry(tar, top + '/l', linkname='..', **link),
                                           self.entry(tar, top + '/l/m', linkname='/', **link),
                                           self.entry(tar, top + '/l/m/tmp/planted', b'x')),
            'a link to outside': lambda tar, top: (self.entry(tar, top + '/l', linkname='/tmp', **link),
                                                   self.entry(tar, top + '/l/planted', b'x')),
            'dots': lambda tar, top: self.entry(tar, top + '/../../planted', b'x'),
            'elsewhere': lambda tar, top: self.entry(tar, 'usr/lib/planted', b'x'),
            'a hard link to outside': lambda tar, top: self.entry(tar, top + '/h', type=tarfile.LNKTYPE,
                                                                  linkname='etc/passwd'),
            'a device': lambda tar, top: self.entry(tar, top + '/d', type=tarfile.CHRTYPE, devmajor=1, devminor=3),
            'too much': lambda tar, top: self.entry(tar, top + '/big', b'x' * (40 << 20)),
        }
        for what, make in hostile.items():
            with self.subTest(what):
                self.replace_layer(layout, lambda tar, top: (self.entry(tar, top + '/a.txt', b'replaced'),
                                                             make(tar, top)))
                self.call('sandbox', 'delete', 'one')
                self.create('--disk', '32MiB')
                self.script('echo mine >a.txt; x=kept; sleep 1022 &')
                done = self.call('sandbox', 'restore', 'one', f'oci:{layout}')
                self.assertIn(done.returncode, (69,) if what == 'too much' else (65, 74), done.stderr)
                self.says('cat a.txt; echo $x; jobs -r | wc -l', 'mine\nkept\n1\n')
        self.replace_layer(layout, lambda tar, top: self.entry(tar, top + '/a.txt', b'replaced'))  # The control.
        self.restore(f'oci:{layout}')
        self.says('cat a.txt; echo $x', 'replaced\n')

    def test_damage_is_found_and_what_was_there_stays(self):
        layout = self.layout()
        blobs = sorted((layout / 'blobs/sha256').iterdir())
        for blob in blobs:
            with self.subTest(blob.name[:8]):
                whole = blob.read_bytes()
                blob.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
                self.assertNotEqual(self.call('sandbox', 'restore', 'one', f'oci:{layout}').returncode, 0)
                blob.write_bytes(whole[:-5])
                self.assertNotEqual(self.call('sandbox', 'restore', 'one', f'oci:{layout}').returncode, 0)
                blob.write_bytes(whole)
                self.says('cat a.txt; echo $x', 'mine\nkept\n')
        self.restore(f'oci:{layout}')
        self.says('cat a.txt', 'from the snapshot\n')
        for reference, status in (('missing', 66), (f'oci:{self.base}/nothing', 66), ('UP/per', 64),
                                  ('oci:' + self.work, 65)):
            self.restore(reference, status=status)

    def test_a_state_that_hangs_every_shell_costs_neither_the_sandbox_nor_what_is_restored(self):
        layout = self.layout()
        for state, kept in (('kept=restored', 'restored'), ('kill -STOP $$', 'dropped')):  # The control first.
            with self.subTest(state):
                self.replace_layer(layout, lambda tar, top: self.entry(tar, top + '/a.txt', b'from the snapshot\n'), state)
                self.restore(f'oci:{layout}')
                self.says('cat a.txt; echo "${kept-dropped}"', f'from the snapshot\n{kept}\n')

    def test_a_key_must_have_signed_it(self):
        layout = self.layout()
        keys = []
        for name in ('a', 'b'):
            private = f'{self.base}/{name}.pem'
            subprocess.run(['openssl', 'ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', private],
                           check=True, capture_output=True)
            subprocess.run(['openssl', 'ec', '-in', private, '-pubout', '-out', private + '.pub'], check=True,
                           capture_output=True)
            keys.append(private)
        self.restore(f'oci:{layout}', status=77, options=('--key', keys[0] + '.pub'))
        self.says('cat a.txt', 'mine\n')
        self.sign(layout, keys[0])
        digest = json.loads((layout / 'index.json').read_text())['manifests'][0]['digest']
        self.restore(f'oci:{layout}@{digest}', status=77, options=('--key', keys[1] + '.pub'))
        self.restore(f'oci:{layout}@{digest}', options=('--key', keys[0] + '.pub'))
        self.says('cat a.txt', 'from the snapshot\n')

    def sign(self, layout, key):
        """As cosign does with a key: a signature's image under the tag sha256-HEX.sig."""
        blobs = layout / 'blobs/sha256'
        index = json.loads((layout / 'index.json').read_text())
        digest = index['manifests'][0]['digest']
        payload = json.dumps({'critical': {'identity': {'docker-reference': ''},
                                           'image': {'docker-manifest-digest': digest},
                                           'type': 'cosign container image signature'}, 'optional': None}).encode()
        signature = subprocess.run(['openssl', 'dgst', '-sha256', '-sign', key], input=payload, check=True,
                                   capture_output=True).stdout

        def write(data, kind, **more):
            name = hashlib.sha256(data).hexdigest()
            (blobs / name).write_bytes(data)
            return {'mediaType': kind, 'digest': 'sha256:' + name, 'size': len(data), **more}
        config = write(b'{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[]}}',
                       'application/vnd.oci.image.config.v1+json')
        layer = write(payload, 'application/vnd.dev.cosign.simplesigning.v1+json', annotations={
            'dev.cosignproject.cosign/signature': base64.b64encode(signature).decode()})
        manifest = {'schemaVersion': 2, 'mediaType': 'application/vnd.oci.image.manifest.v1+json', 'config': config,
                    'layers': [layer]}
        index['manifests'].append(write(json.dumps(manifest).encode(), manifest['mediaType'], annotations={
            'org.opencontainers.image.ref.name': digest.replace(':', '-') + '.sig'}))
        (layout / 'index.json').write_text(json.dumps(index))

    def test_a_snapshot_is_taken_of_one_moment(self):
        self.create()
        # Two files, each written whole, the second after the first: never more than one step apart.
        self.script('(i=0; while :; do i=$((i+1)); echo $i >t; mv t one; echo $i >t; mv t two; done) >/dev/null 2>&1 &')
        self.assertTrue(wait_until(lambda: self.script('ls one two')['status'] == 0))
        self.snapshot('--tag', 'moving')
        self.restore('moving')
        result = self.script('cat one two')
        first, second = (int(word) for word in result['stdout'].split())
        self.assertIn(first - second, (0, 1))
        self.says('sleep 0.05; cat one two', result['stdout'])  # Nothing writes any more.

    def test_whoever_is_killed_meanwhile_leaves_a_whole_store_and_a_whole_sandbox(self):
        self.create()
        self.script('mkdir many; i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $i >many/$i; done')
        self.snapshot('--tag', 'many')
        for verb, words in (('snapshot', ['--tag', 'other']), ('restore', ['many'])):
            for delay in (0.002, 0.01, 0.03):
                with self.subTest(verb=verb, delay=delay):
                    client = subprocess.Popen([BIN, 'sandbox', verb, 'one', *words], cwd=self.base, env=self.env,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    try:
                        client.wait(delay)
                    except subprocess.TimeoutExpired:
                        client.kill()
                    client.communicate()
                    self.says('ls many | wc -l', '400\n')
        self.restore('many')
        self.says('ls many | wc -l', '400\n')
        for blob in pathlib.Path(self.base, 'store/snapshots/blobs/sha256').glob('[0-9a-f]*'):
            self.assertEqual(hashlib.sha256(blob.read_bytes()).hexdigest(), blob.name)

    def test_reset_keeps_the_gateway_and_the_policy(self):
        self.create()
        self.script(self.nap(1023) + ' & echo x >a.txt')
        before = self.facts()
        waiting = self.start('sleep 1024')
        self.assertTrue(wait_until(lambda: self.facts().get('busy')))
        self.assertEqual(self.call('sandbox', 'reset', 'one').returncode, 0)
        waiting.communicate(timeout=BUSY_SECONDS)
        self.assertEqual(waiting.returncode, 74)
        self.assertEqual(self.facts()['pid'], before['pid'])
        self.assertFalse(self.napping(1023))
        for _ in range(5):
            self.assertEqual(self.call('sandbox', 'reset', 'one').returncode, 0)
            self.says('cat a.txt; echo y >a.txt', 'alpha\n')
            # What is changed afterwards is the agent's, in files that were there before, too.
            self.assertIn('-alpha\n+y\n', self.call('sandbox', 'diff', 'one').stdout)
        done = self.script('python3 -c "import urllib.request as r; r.urlopen(\'http://example.com/\', timeout=120)"')
        self.assertIn('403', done['stderr'])
        self.call('sandbox', 'delete', 'one')
        self.assertIn('example.com', read(self.report + '/events.log'))


class Tier(Case):
    TIER = 'landlock'

    def test_snapshots_are_refused_where_there_are_no_layers(self):
        self.create()
        done = self.call('sandbox', 'snapshot', 'one', '--output', self.base + '/layout')
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn('tier namespaces', done.stderr)
        self.says('echo still', 'still\n')
