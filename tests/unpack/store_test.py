# SPDX-License-Identifier: Apache-2.0
"""The store: many runs at once, killed runs, full and read-only disks, pruning, what changed since."""
import os
import random
import resource
import signal
import subprocess
import time
import unittest

from archive import END, directory, file, hardlink, pack
from harness import Case, Done, tree


def some_layers(count, size):
    made = []
    for number in range(count):
        tar = directory(f'd{number}/')
        for i in range(8):
            tar += file(f'd{number}/f{i}', os.urandom(size // 8))
        made.append(tar)
    # One that reaches below: it waits for all others.
    made.append(hardlink('h', 'd0/f0') + file('d1/more', 'x'))
    return made


class Concurrency(Case):
    def start(self, name, *more, **options):
        return subprocess.Popen(self.command('unpack', name, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                **options)

    def finish(self, process):
        out, err = process.communicate(timeout=600)
        return Done(subprocess.CompletedProcess([], process.returncode, out, err))

    def test_ten_runs_at_once_over_an_empty_store_make_each_layer_once(self):
        name = self.layout(*some_layers(4, 1 << 20), packing='gzip')
        runs = [self.start(name) for _ in range(10)]
        done = [self.finish(run) for run in runs]
        self.assertEqual([run.status for run in done], [0] * 10, [run.error for run in done])
        self.assertEqual({tuple(run.layers) for run in done}, {tuple(done[0].layers)})
        self.assertEqual(len(os.listdir(f'{self.store}/layers')), 5)
        self.assertEqual((os.listdir(f'{self.store}/staging'), os.listdir(f'{self.store}/locks')), ([], []))
        self.assertEqual(self.run_driver('verify').lines, [])

    def test_runs_killed_at_any_moment_leave_a_store_that_verifies(self):
        chance = random.Random(4)
        killed = 0
        # On a machine that is busy, runs over small layers may all be over before their turn comes.
        for size in (4 << 20, 16 << 20, 64 << 20):
            name = self.layout(*some_layers(4, size), packing='gzip', name=f'image-{size}')
            for _ in range(4):
                runs = [self.start(name, start_new_session=True) for _ in range(5)]
                for run in runs:
                    time.sleep(chance.uniform(0, 0.06))
                    # The supervisor alone: what it started must end by itself.
                    os.kill(run.pid, signal.SIGKILL)
                    killed += run.wait() == -signal.SIGKILL
                    run.communicate(timeout=600)
                self.assertEqual(self.run_driver('verify').lines, [])
            if killed:
                break
        self.assertGreater(killed, 0)
        done = self.run_driver('unpack', name)
        self.assertEqual((done.status, len(done.layers)), (0, 5), done.error)
        self.assertEqual(self.run_driver('verify').lines, [])
        self.run_driver('prune', 1 << 40)
        self.assertEqual((os.listdir(f'{self.store}/staging'), os.listdir(f'{self.store}/locks')), ([], []))

    def test_the_unpacking_process_does_not_outlive_its_parent(self):
        run = self.start(self.layout(file('a', os.urandom(40 << 20)), packing='gzip'))
        children = []
        while not children and run.poll() is None:
            with open(f'/proc/{run.pid}/task/{run.pid}/children', encoding='ascii') as listed:
                children = listed.read().split()
        self.assertTrue(children)
        run.kill()
        run.communicate(timeout=600)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            alive = [pid for pid in children if os.path.exists(f'/proc/{pid}')]
            if not alive:
                return
            time.sleep(0.05)
        self.fail(f'still there: {alive}')


class Kept(Case):
    def test_layers_are_shared_between_images(self):
        base, other = file('base', 'x'), file('other', 'y')
        first, _ = self.unpack(base, file('a', 'a'), name='one')
        second, _ = self.unpack(other, base, name='two')
        self.assertEqual(first.layers[1], second.layers[0])
        self.assertEqual(len(os.listdir(f'{self.store}/layers')), 3)

    def test_a_layer_that_reaches_below_is_kept_for_what_is_below(self):
        reaching = file('d/x', 'x')
        one, _ = self.unpack(directory('d/', 0o700), reaching, name='one')
        two, _ = self.unpack(directory('d/', 0o751), reaching, name='two')
        self.assertEqual([oct(os.stat(run.layers[0] + '/d').st_mode & 0o777) for run in (one, two)],
                         ['0o700', '0o751'])

    def test_the_same_layer_twice_is_listed_once(self):
        done, _ = self.unpack(file('a', '1'), file('a', '2'), file('a', '1'))
        self.assertEqual(len(done.layers), 2)
        self.assertEqual(self.merged(done.layers), ['a f 644'])
        with open(f'{done.layers[0]}/a', encoding='utf-8') as content:
            self.assertEqual(content.read(), '1')

    def test_a_cached_image_needs_no_source_and_is_left_as_it_is(self):
        layers = [file(f'f{i}', 'x') for i in range(12)]
        name = self.layout(*layers)
        done = self.run_driver('unpack', name)
        self.assertEqual(done.status, 0)
        inodes = [os.stat(layer).st_ino for layer in done.layers]
        for entry in os.listdir(f'{self.top}/image/blobs/sha256'):
            path = f'{self.top}/image/blobs/sha256/{entry}'
            with open(path, 'rb') as content:
                if not content.read(1) == b'{':
                    os.remove(path)
        done = self.run_driver('unpack', name)  # tests/bench/image says how long that takes.
        self.assertEqual(done.status, 0, done.error)
        self.assertEqual([os.stat(layer).st_ino for layer in done.layers], inodes)

    def test_prune_removes_what_was_used_longest_ago_and_is_not_in_use(self):
        done = [self.unpack(file('f', os.urandom(100000)), name=f'i{i}')[0] for i in range(4)]
        for age, run in enumerate(done):  # All of them may have been made within one tick of the clock.
            os.utime(os.path.dirname(run.layers[0]), (age, age))
        # Used again: the first is now the youngest. The second is old, and in use.
        self.run_driver('unpack', f'oci:{self.top}/i0:t')
        with subprocess.Popen(self.command('unpack', f'oci:{self.top}/i1:t', '--hold'), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as held:
            held.stdout.readline()
            os.utime(os.path.dirname(done[1].layers[0]), (0, 0))
            pruned = self.run_driver('prune', 250000)
            held.stdin.close()
        self.assertEqual(pruned.lines, ['freed 200000 2', 'left 200000'])
        self.assertEqual([os.path.exists(run.layers[0]) for run in done], [True, True, False, False])
        self.assertEqual(self.run_driver('prune', 0).lines, ['freed 200000 2', 'left 0'])
        self.assertEqual(self.accept(file('f', 'again'), name='i5')['f'][2], b'again')

    def test_prune_to_nothing_leaves_nothing(self):
        self.unpack(file('empty') + directory('d/'), directory('e/'))
        self.assertEqual(self.run_driver('prune', 1).lines, ['freed 0 0', 'left 0'])
        self.assertEqual(self.run_driver('prune', 0).lines, ['freed 0 2', 'left 0'])
        self.assertEqual(os.listdir(f'{self.store}/layers'), [])

    def test_prune_removes_a_tree_of_any_depth(self):
        self.accept(file('f'))
        # rmtree would recurse.
        self.addCleanup(subprocess.run, ['rm', '-rf', f'{self.store}/staging'], check=True)
        at = os.open(f'{self.store}/staging', os.O_RDONLY)
        for name in ['old'] + ['d'] * 3000:
            os.mkdir(name, dir_fd=at)
            os.chown(name, self.uid, -1, dir_fd=at)
            inside = os.open(name, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inside
        os.close(at)

        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

        self.run_driver('prune', 1 << 30, preexec_fn=few_files)
        self.assertEqual(os.listdir(f'{self.store}/staging'), [])

    def test_what_changed_since_is_found_and_after_a_restart_unpacked_anew(self):
        changes = {
            'content': lambda top: self.overwrite(f'{top}/d/f', b'TEXT'),
            'mode': lambda top: os.chmod(f'{top}/d/f', 0o666),
            'added': lambda top: self.overwrite(f'{top}/d/new', b''),
            'removed': lambda top: os.remove(f'{top}/l'),
            'opaque mark': lambda top: os.setxattr(f'{top}/d', 'user.overlay.opaque', b'y'),
            'record': lambda top: os.remove(f'{top}/../record'),
        }
        name = self.layout(directory('d/') + file('d/f', 'text', mtime=5) + hardlink('l', 'd/f'))
        for what, change in changes.items():
            with self.subTest(what):
                done = self.run_driver('unpack', name)
                self.assertEqual(self.run_driver('verify').lines, [])
                before = tree(done.layers[0])
                change(done.layers[0])
                self.assertEqual(len(self.run_driver('verify').all('wrong')), 1)
                record = os.path.dirname(done.layers[0]) + '/record'
                if os.path.exists(record):  # As if the machine had been restarted since.
                    with open(record, encoding='utf-8') as content:
                        text = content.read()
                    boot = next(line for line in text.splitlines() if line.startswith('boot '))
                    with open(record, 'w', encoding='utf-8') as content:
                        content.write(text.replace(boot, 'boot another'))
                again = self.run_driver('unpack', name)
                self.assertEqual((again.status, tree(again.layers[0])), (0, before), again.error)
                self.assertEqual(self.run_driver('verify').lines, [])

    def overwrite(self, path, data):
        before = os.stat(path) if os.path.exists(path) else None
        with open(path, 'wb') as out:
            out.write(data)
        if before:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


class Disks(Case):
    @unittest.skipUnless(os.geteuid() == 0, 'root: only root may mount')
    def test_a_full_disk_is_told_and_leaves_nothing(self):
        os.mkdir(self.store)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size=6m,mode=700,uid={self.uid},gid={self.uid}', 'tmpfs',
                        self.store], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', self.store], check=False)
        done, _ = self.unpack(file('small', 'x'), file('a', os.urandom(8 << 20)))
        self.assertRegex(done.error, '^4 .*No space left on device')
        self.assertEqual(os.listdir(f'{self.store}/staging'), [])
        self.assertEqual(self.run_driver('verify').lines, [])
        self.accept(file('a', os.urandom(1 << 20)), name='smaller')

    @unittest.skipUnless(os.geteuid() == 0, 'root: only root may mount')
    def test_a_read_only_store_gives_what_it_has(self):
        name = self.layout(file('a', 'x'))
        self.assertEqual(self.run_driver('unpack', name).status, 0)
        subprocess.run(['mount', '--bind', self.store, self.store], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', self.store], check=False)
        subprocess.run(['mount', '-o', 'remount,ro,bind', self.store], check=True)
        self.assertEqual(self.run_driver('unpack', name).status, 0)
        done, _ = self.unpack(file('b', 'y'), name='other')
        self.assertRegex(done.error, 'Read-only file system')

    def test_a_store_that_is_not_ours_alone_is_refused(self):
        name = self.layout(file('a', 'x'))
        for mode in (0o777, 0o720, 0o1777):
            os.makedirs(self.store, exist_ok=True)
            os.chmod(self.store, mode)
            if os.geteuid() == 0:
                os.chown(self.store, self.uid, self.uid)
            self.assertRegex(self.run_driver('unpack', name).error, '^6 others may write')
        os.chmod(self.store, 0o700)
        self.assertEqual(self.run_driver('unpack', name).status, 0)
        os.chmod(f'{self.store}/layers', 0o777)
        self.assertRegex(self.run_driver('unpack', name).error, '^6 others may write')
        os.rename(f'{self.store}/layers', f'{self.top}/moved')
        os.symlink(f'{self.top}/moved', f'{self.store}/layers')
        self.assertEqual(self.run_driver('unpack', name).status, 1)

    @unittest.skipUnless(os.geteuid() == 0, 'root: only root may give it away')
    def test_a_store_of_somebody_else_is_refused(self):
        os.mkdir(self.store, 0o755)
        self.assertRegex(self.run_driver('unpack', self.layout(file('a', 'x'))).error, '^6 .*belongs to user 0')

    def test_packed_alike_or_not_a_layer_is_one(self):
        tar = file('a', 'x') + END
        self.unpack((tar, pack(tar, 'gzip')), name='one')
        self.unpack((tar, pack(tar, 'zstd')), name='two')
        self.assertEqual(len(os.listdir(f'{self.store}/layers')), 1)


if __name__ == '__main__':
    unittest.main(verbosity=2)
