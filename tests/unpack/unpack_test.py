# SPDX-License-Identifier: Apache-2.0
"""Hostile and odd layers, one by one: each with what must come of it, and canaries outside."""
import bz2
import gzip
import hashlib
import lzma
import os
import struct
import subprocess
import unittest
import zlib

from archive import (END, directory, file, hardlink, header, long_name, pack, padded, pax, pax_records, symlink)
from harness import Case, tree


class Ordinary(Case):
    def test_a_plain_layer_arrives_as_it_was_packed_however_it_was_packed(self):
        layer = (directory('usr/', 0o750, mtime=5) + file('usr/a', 'text', mode=0o640, mtime=7) +
                 symlink('usr/l', 'a', mtime=9) + hardlink('usr/h', 'usr/a') + header('usr/p', b'6', mtime=3))
        for packing in ('', 'gzip', 'zstd'):
            self.store = f'{self.home}/store-{packing}'
            self.assertEqual(self.accept(layer, packing=packing), {
                'usr': ('dir', 0o750, b'', 5), 'usr/a': ('file', 0o640, b'text', 7),
                'usr/l': ('link', 0o777, b'a', 9), 'usr/h': ('file', 0o640, b'text', 7),
                'usr/p': ('fifo', 0o644, b'', 3)})

    def test_many_members_and_frames_are_one_layer(self):
        tar = file('a', b'x' * 3000) + file('b', 'y') + END
        parts = [tar[:700], tar[700:701], tar[701:]]
        skippable = struct.pack('<II', 0x184D2A53, 5) + b'extra'
        self.assertIn('b', self.accept((tar, b''.join(gzip.compress(part) for part in parts) + bytes(100))))
        self.store += '2'
        frames = skippable + skippable.join(pack(part, 'zstd') for part in parts) + skippable
        self.assertIn('b', self.accept((tar, frames)))

    def test_modes_are_kept_but_for_what_the_one_user_needs(self):
        seen = self.accept(file('suid', '', mode=0o4755) + file('none', 'x', mode=0) + directory('d/', 0o2500) +
                           file('d/x', 'y', mode=0o170777) + directory('t/', 0o1777))
        self.assertEqual({name: oct(entry[1]) for name, entry in seen.items()},
                         {'suid': '0o4755', 'none': '0o400', 'd': '0o2700', 'd/x': '0o777', 't': '0o1777'})

    def test_names_are_bytes(self):
        name = b'\xff\xfe\n\\\x01 x'
        self.assertIn(name.decode(errors='surrogateescape'), self.accept(file(name, 'x')))

    def test_an_absolute_name_and_a_dot_are_below_the_root(self):
        seen = self.accept(directory('./', 0o711) + file('/etc/x', 'x') + file('./y', 'y'))
        self.assertEqual(sorted(seen), ['etc', 'etc/x', 'y'])

    def test_the_last_of_two_entries_wins_and_case_matters(self):
        seen = self.accept(file('a', 'first') + file('A', 'other') + file('a', 'last'))
        self.assertEqual((seen['a'][2], seen['A'][2]), (b'last', b'other'))

    def test_a_directory_replaces_a_link_and_a_file_replaces_a_tree(self):
        seen = self.accept(symlink('d', f'{self.canary}') + directory('d/') + file('d/x', 'x') +
                           directory('t/') + directory('t/u/') + file('t/u/v', 'v') + file('t', 'file'))
        self.assertEqual((seen['d'][0], seen['d/x'][2], seen['t'][0]), ('dir', b'x', 'file'))
        self.assertNotIn('t/u', seen)

    def test_sparse_files_of_both_kinds_have_their_holes(self):
        extents = struct.pack('12s12s12s12s', *(b'%011o' % n for n in (0, 3, 5000, 4)))
        old = bytearray(header('old', b'S', 7, magic=b'ustar  \0'))
        old[386:386 + 48] = extents
        old[483:495] = b'%011o\0' % 6000
        old[148:156] = b' ' * 8
        old[148:156] = b'%06o\0 ' % sum(old)
        body = padded(b'2\n0\n3\n5000\n4\n') + b'abcdefg'
        new = pax_records([('GNU.sparse.major', '1'), ('GNU.sparse.minor', '0'), ('GNU.sparse.name', 'new'),
                           ('GNU.sparse.realsize', '6000')])
        seen = self.accept(bytes(old) + padded(b'abcdefg') + new + header('GNUSparse.0/new', b'0', len(body)) +
                           padded(body) + file('after', 'x'))
        whole = b'abc' + bytes(4997) + b'defg' + bytes(996)
        self.assertEqual((seen['old'][2], seen['new'][2], seen['after'][2]), (whole, whole, b'x'))

    def test_long_names_of_gnu_and_of_pax(self):
        deep = '/'.join(['d' * 100] * 3)
        seen = self.accept(long_name(deep + '/gnu') + file('short', 'g') + pax(path=deep + '/pax') +
                           file('short', 'p') + long_name('t' * 200, b'K') + symlink('l', 'short'))
        self.assertEqual((seen[deep + '/gnu'][2], seen[deep + '/pax'][2]), (b'g', b'p'))
        self.assertEqual(seen['l'][2], b't' * 200)

    def test_a_fifo_named_passwd_is_only_that(self):
        self.assertEqual(self.accept(directory('etc/') + header('etc/passwd', b'6'))['etc/passwd'][0], 'fifo')


class Names(Case):
    """What would leave the root by its name."""

    def test_dots_that_lead_out_are_refused(self):
        for name in ('../../etc/x', 'a/../../x', './../x', 'a/..', '..', 'a/../b'):
            self.refuse(file(name, 'x'), why='leads out of the layer with "..".*')
            self.refuse(symlink(name, '/etc'), why='leads out')
            self.refuse(pax(path=name) + file('x', 'x'), why='leads out')
            self.refuse(long_name(name) + file('x', 'x'), why='leads out')

    def test_the_root_is_never_replaced(self):
        for name in ('.', '/', '', './.', '//'):
            self.refuse(symlink(name, self.canary), why='the root must be a directory')
            self.refuse(file(name, 'x'), why='the root must be a directory')

    def test_what_is_too_long_or_too_deep_is_refused(self):
        self.refuse(pax(path='n' * 256) + file('x', ''), why='longer than 255')
        self.refuse(pax(path='a/' * 2000 + 'x' * 200) + file('x', ''), why='more than 4096|256 directories')
        self.refuse(pax(path='a/' * 300 + 'x') + file('x', ''), why='256 directories deep')
        self.refuse(header('x', b'x', 1 << 30) + file('x', ''), why='extended header of')
        self.refuse(long_name('a/' * 4000) + file('x', ''), why='more than 4096')
        seen = self.accept(pax(path='a/' * 255 + 'x') + file('x', 'deep'))
        self.assertEqual(seen['a/' * 255 + 'x'][2], b'deep')

    def test_depth_is_counted_through_symbolic_links(self):
        def ladder(rungs):
            """Twenty directories for each rung, each rung begun through a link to the end of the one before."""
            layer, top = b'', ''
            for rung in range(rungs):
                path = top + 'a/' * 20
                layer += b''.join(directory(top + 'a/' * (i + 1)) for i in range(20)) + symlink(f'l{rung}', path)
                top = f'l{rung}/'
            return layer
        self.refuse(ladder(20), why='leads too deep')
        self.assertIn('l11', self.accept(ladder(12)))

    def test_a_nul_in_a_name_is_refused_and_a_global_one_ignored(self):
        self.refuse(pax(path='a\0b') + file('x', ''), why='contains a NUL byte')
        self.refuse(pax(linkpath='a\0b') + symlink('x', ''), why='contains a NUL byte')
        seen = self.accept(pax_records([('path', '../../evil'), ('comment', 'c')], b'g') + file('x', 'x'))
        self.assertEqual(list(seen), ['x'])

    def test_two_names_for_one_entry_are_refused(self):
        self.refuse(long_name('a') + pax(path='b') + file('x', ''), why='two names')
        self.refuse(long_name('a') + long_name('b') + file('x', ''), why='two long names')
        self.refuse(pax(path='a') + pax(path='b') + file('x', ''), why='two extended headers')


class Links(Case):
    """What would leave the root through a link."""

    def test_a_file_through_a_link_lands_inside(self):
        out = self.canary
        up = '../' * 20 + out[1:]
        for target in (out, up, out + '/.'):
            seen = self.accept(symlink('l', target) + file('l/x', 'x'))
            self.assertEqual(seen[out[1:] + '/x'][2], b'x')
            self.assertEqual(seen['l'][0], 'link')
            self.store += '.'

    def test_a_chain_of_links_ends_inside(self):
        seen = self.accept(directory('dummy/') + symlink('dummy/etc', self.canary) + symlink('l', '/dummy/etc') +
                           file('l/x', 'x'))
        self.assertEqual(seen[self.canary[1:] + '/x'][2], b'x')

    def test_a_loop_of_links_is_refused(self):
        self.refuse(symlink('a', 'b') + symlink('b', 'a') + file('a/x', 'x'), why='symbolic links')

    def test_a_link_of_a_lower_layer_is_resolved_inside(self):
        upper, lower = self.accept(symlink('etc', self.canary) + file('l', 'l'), file('etc/x', 'x'))
        self.assertEqual(upper[self.canary[1:] + '/x'][2], b'x')
        self.assertNotIn('etc', upper)
        self.assertEqual(lower['etc'][0], 'link')

    def test_a_hard_link_never_reaches_the_host(self):
        outside = f'{self.canary}/passwd'
        for target in (outside, '../' * 20 + outside[1:], '/etc/shadow', '/proc/1/environ'):
            self.refuse(hardlink('h', target), why='does not exist')
            self.refuse(symlink('l', os.path.dirname(target)) + hardlink('h', 'l/' + os.path.basename(target)),
                        why='does not exist')
        seen = self.accept(file('etc/passwd', 'own') + symlink('l', '/etc') + hardlink('h', 'l/passwd') +
                           hardlink('g', '../../../etc/passwd'))
        self.assertEqual((seen['h'][2], seen['g'][2]), (b'own', b'own'))

    def test_a_file_over_a_hard_link_to_a_link_touches_neither(self):
        seen = self.accept(symlink('l', f'{self.canary}/victim') + hardlink('h', 'l') +
                           file('h', 'x', mode=0o777))
        self.assertEqual((seen['h'], seen['l'][0]), (('file', 0o777, b'x', 1000), 'link'))

    def test_content_of_a_link_is_refused(self):
        self.refuse(file('a', 'safe') + header('h', b'1', 4, link='a') + padded(b'evil'), why='content in an entry')
        self.refuse(header('l', b'2', 4, link='a') + padded(b'evil'), why='content in an entry')
        self.refuse(header('d', b'5', 4) + padded(b'evil'), why='content in an entry')

    def test_hard_links_to_directories_and_to_themselves_are_refused(self):
        self.refuse(directory('d/') + hardlink('h', 'd'), why='hard link to a directory')
        self.refuse(file('a', 'x') + hardlink('a', 'a'), why='hard link to itself')
        self.refuse(file('a', 'x') + hardlink('a', './b/../a'), why='does not exist')
        self.refuse(hardlink('h', '/'), why='hard link to a directory')
        self.refuse(directory('d/') + file('d/f', 'x') + hardlink('d', 'd/f'), why='hard link to a file that does not exist')

    def test_a_hard_link_to_a_lower_file_takes_a_copy_up(self):
        upper, _ = self.accept(file('a', 'low', mode=0o600, mtime=77) + directory('d/', 0o711),
                               hardlink('d/h', '/a'))
        self.assertEqual(upper, {'a': ('file', 0o600, b'low', 77), 'd': ('dir', 0o711, b'', 1000),
                                 'd/h': ('file', 0o600, b'low', 77)})

    def test_a_missing_parent_is_as_the_lower_layer_has_it(self):
        upper, _ = self.accept(directory('tmp/', 0o1777, mtime=42), file('tmp/x', 'x') + file('new/y', 'y'))
        self.assertEqual(upper['tmp'], ('dir', 0o1777, b'', 42))
        self.assertEqual(upper['new'], ('dir', 0o755, b'', 0))

    def test_a_parent_that_is_a_file_is_refused(self):
        self.refuse(file('a', 'x') + file('a/b', 'y'), why='not a directory')
        self.refuse(file('a', 'x'), file('a/b', 'y'), why='not a directory')


class Whiteouts(Case):
    def test_what_is_hidden_below_is_hidden_by_overlayfs(self):
        lower = directory('d/') + file('d/a', '1') + file('d/b', '2') + file('top', '3') + directory('o/') + \
            file('o/x', '4')
        upper = directory('d/') + file('d/.wh.a') + file('.wh.top') + directory('o/') + file('o/new', '5') + \
            file('o/.wh..wh..opq')
        done, _ = self.unpack(lower, upper)
        self.assertEqual(self.merged(done.layers), ['d d 755', 'd/b f 644', 'o d 755', 'o/new f 644'])

    def test_in_one_layer_the_file_stays_in_either_order(self):
        lower = file('a', 'low') + directory('d/') + file('d/low', 'low')
        for upper in (file('.wh.a') + file('a', 'new') + file('.wh.d') + directory('d/') + file('d/new', 'n'),
                      file('a', 'new') + file('.wh.a') + directory('d/') + file('d/new', 'n') + file('.wh.d')):
            done, trees = self.unpack(lower, upper)
            self.assertEqual(self.merged(done.layers), ['a f 644', 'd d 755', 'd/new f 644'])
            self.assertEqual(trees[0]['a'][2], b'new')
            self.store += '.'

    def test_what_was_only_copied_up_is_hidden(self):
        lower = file('a', 'low') + directory('d/') + directory('d/e/') + file('d/e/b', 'low') + file('d/c', 'low')
        h = ['h f 644']
        for upper, seen in (
                (hardlink('h', 'a') + file('.wh.a') + file('.wh.d'), h),
                (hardlink('h', 'd/e/b') + file('d/e/.wh.b') + file('.wh.a') + file('d/.wh.c'),
                 ['d d 755', 'd/e d 755'] + h),
                (hardlink('h', 'd/e/b') + file('d/.wh.e') + file('.wh.a') + file('d/.wh.c'), ['d d 755'] + h),
                (hardlink('h', 'd/e/b') + file('.wh.d') + file('.wh.a'), h),
                (hardlink('h', 'd/e/b') + file('.wh..wh..opq'), h),
                (file('d/e/.wh.b') + file('.wh.d') + hardlink('h', 'a') + file('.wh.a'), h),
                # The layer's own stays: written again, linked again, or in a directory that it writes to.
                (hardlink('h', 'a') + file('a', 'new') + file('.wh.a') + file('.wh.d'), ['a f 644'] + h),
                (hardlink('h', 'a') + hardlink('a', 'h') + file('.wh.a') + file('.wh.d'), ['a f 644'] + h),
                (hardlink('h', 'd/e/b') + file('d/e/n') + file('.wh.d') + file('.wh.a'),
                 ['d d 755', 'd/e d 755', 'd/e/n f 644'] + h)):
            done, trees = self.unpack(lower, upper)
            self.assertEqual(done.error, '')
            self.assertEqual(self.merged(done.layers), seen)
            self.assertEqual(trees[0]['h'][2], b'low')
            self.store += '.'

    def test_whiteouts_of_nothing_are_refused(self):
        for name in ('.wh.', '.wh..', '.wh...', 'etc/.wh..', 'etc/.wh...'):
            self.refuse(file(name), why='a whiteout without a name')
        self.refuse(file('.wh.a/b'), why='used as a directory')

    def test_whiteouts_that_are_more_than_names_are_refused(self):
        for entry in (file('.wh.a', 'x'), directory('.wh.a'), symlink('.wh.a', self.canary), header('.wh.a', b'3')):
            self.refuse(file('a', 'x'), directory('d/') + entry, why='not an empty file|content in an entry')

    def test_a_whiteout_through_a_link_stays_inside(self):
        upper, _ = self.accept(symlink('l', self.canary), file('l/.wh.victim') + file('l/.wh..wh..opq'))
        self.assertEqual(upper[self.canary[1:]][0], 'dir')

    def test_a_whiteout_of_a_link_hides_the_link_alone(self):
        done, _ = self.unpack(directory('d/') + file('d/x', 'x') + symlink('l', 'd'), file('.wh.l'))
        self.assertEqual(self.merged(done.layers), ['d d 755', 'd/x f 644'])

    def test_nothing_is_left_of_a_whiteout_where_nothing_is_below(self):
        self.assertEqual(self.accept(directory('d/') + file('d/.wh.x')), {'d': ('dir', 0o755, b'', 1000)})
        upper, _ = self.accept(file('f', ''), directory('d/') + file('d/.wh.x') + file('d/.wh..wh..opq') +
                               file('d/.wh.y'))
        self.assertEqual(list(upper), ['d'])

    def test_an_opaque_root_hides_all_layers_below(self):
        done, trees = self.unpack(file('low', 'x'), file('new', 'y') + file('.wh..wh..opq'))
        self.assertEqual((len(done.layers), list(trees[0])), (1, ['new']))

    def test_aufs_leaves_nothing(self):
        self.assertEqual(list(self.accept(directory('.wh..wh.plnk') + file('.wh..wh.plnk/1.2', 'x') +
                                          file('.wh..wh.aufs') + file('a', 'a'))), ['a'])


class LeftOut(Case):
    def test_devices_are_left_out_and_told(self):
        done, trees = self.unpack(header('sda', b'4', tail=b'\0' * 0) + header('dev/null', b'3') +
                                  header('x', b'3') + file('a', 'x'))
        self.assertEqual(list(trees[0]), ['a'])
        self.assertEqual(done.all('warning'), ['3 device nodes are left out, the first of sda'])

    def test_forged_marks_of_overlayfs_are_dropped(self):
        names = ['user.overlay.opaque', 'user.overlay.whiteout', 'user.overlay.redirect', 'user.overlay.metacopy',
                 'trusted.overlay.redirect', 'trusted.overlay.opaque', 'security.ima', 'system.posix_acl_access']
        attributes = pax_records([('SCHILY.xattr.' + name, 'y') for name in names + ['user.kept']])
        done, _ = self.unpack(attributes + directory('d/') + attributes + file('d/f', 'x'))
        for path in ('d', 'd/f'):
            self.assertEqual(os.listxattr(f'{done.layers[0]}/{path}'), ['user.kept'])
        self.assertEqual(done.all('warning'), ['16 extended attributes are left out, the first of d/'])

    def test_a_capability_is_kept_and_a_huge_attribute_is_not(self):
        capability = struct.pack('<IIIII', 0x02000001, 1 << 10, 0, 0, 0)
        huge = pax_records([('SCHILY.xattr.user.huge', b'x' * (65 << 10))])
        done, _ = self.unpack(pax_records([('SCHILY.xattr.security.capability', capability)]) + file('ping', 'x') +
                              huge + file('f', 'x'))
        self.assertEqual(os.listxattr(f'{done.layers[0]}/ping'), ['security.capability'])
        self.assertEqual(os.listxattr(f'{done.layers[0]}/f'), [])

    def test_every_owner_is_squashed_and_told_whatever_the_number(self):
        done, _ = self.unpack(b''.join(file(f'f{i}', 'x', uid=uid, gid=uid) for i, uid in enumerate(
            (0, 1000, 4294967295, -1, 1 << 31))) + pax(uid='99999999999999999999') + file('g', 'x'))
        owners = {os.lstat(f'{done.layers[0]}/{name}').st_uid for name in os.listdir(done.layers[0])}
        self.assertEqual(owners, {self.uid})
        self.assertEqual(len(done.all('warning')), 1)
        self.assertIn('5 entries of users other', done.all('warning')[0])


class Limits(Case):
    def test_bombs_are_refused(self):
        zeros = zlib.compressobj(9, zlib.DEFLATED, 31)
        chunk = bytes(1 << 20)
        packed = [zeros.compress(header('z', b'0', 100 << 20))]
        for _ in range(100):
            packed.append(zeros.compress(chunk))
        packed.append(zeros.flush())
        blob = b''.join(packed)
        tar = b'no one gets that far'
        self.refuse((tar, blob), why='more than 200 times its size')
        self.refuse((tar, pack(header('z', b'0', 100 << 20) + bytes(100 << 20), 'zstd')), why='more than 200 times')
        self.refuse((tar, blob), why='exceeds the size limit', options=('--ratio', 100000, '--bytes', 9 << 20))

    def test_layers_share_one_budget(self):
        layers = [file(name, os.urandom(400 << 10)) for name in 'abc']
        self.refuse(*layers, why='exceeds the size limit', options=('--bytes', 1 << 20))
        self.accept(*layers, options=('--bytes', 2 << 20))
        # Cached layers count as well.
        done = self.run_driver('unpack', f'oci:{self.top}/image:t', '--bytes', 1 << 20)
        self.assertIn('exceeds the size limit', done.error)

    def test_too_many_entries_are_refused(self):
        many = b''.join(directory(f'd{i}/') for i in range(300))
        self.refuse(many, why='exceeds the limit on entries', options=('--entries', 200))
        self.refuse(pax(path='a/' * 250 + 'x') + file('x', ''), why='limit on entries', options=('--entries', 200))
        self.accept(many, options=('--entries', 301))

    def test_a_sparse_giant_is_refused_by_how_it_looks(self):
        body = padded(b'1\n%d\n1\n' % ((1 << 60) - 1)) + b'x'
        giant = pax_records([('GNU.sparse.major', '1'), ('GNU.sparse.minor', '0'), ('GNU.sparse.name', 'g'),
                             ('GNU.sparse.realsize', str(1 << 60))]) + header('g', b'0', len(body)) + padded(body)
        self.refuse(giant, why='exceeds the size limit')

    def test_holes_cost_no_time_and_are_bounded(self):
        def hole(name, size):
            body = padded(b'1\n%d\n1\n' % (size - 1)) + b'x'
            return pax_records([('GNU.sparse.major', '1'), ('GNU.sparse.minor', '0'), ('GNU.sparse.name', name),
                                ('GNU.sparse.realsize', str(size))]) + header('g', b'0', len(body)) + padded(body)
        self.refuse(hole('g', 5 << 30), why='GiB of holes')
        self.refuse(hole('g', 3 << 30), hole('f', 3 << 30), why='GiB of holes')
        done, trees = self.unpack(hole('g', 1 << 30))
        self.assertEqual((done.error, trees[0]['g'][0]), ('', 'file'))
        self.assertEqual(os.stat(done.layers[0] + '/g').st_size, 1 << 30)
        self.assertEqual(self.run_driver('verify').lines, [])
        # A hole is the zeros it stands for, however the store came to hold them.
        with open(done.layers[0] + '/g', 'r+b') as f:
            times = os.fstat(f.fileno())
            f.seek(1 << 20)
            f.write(bytes(1 << 20))
        os.utime(done.layers[0] + '/g', ns=(times.st_atime_ns, times.st_mtime_ns))
        self.assertEqual(self.run_driver('verify').lines, [])

    def test_a_zstd_window_of_2_gib_is_refused(self):
        tar = file('a', 'x') + END
        frame = struct.pack('<IBB', 0xFD2FB528, 0, (31 - 10) << 3) + (len(tar) << 3 | 1).to_bytes(3, 'little') + tar
        self.refuse((tar, frame), why='zstd: .*too much memory')
        frame = struct.pack('<IBB', 0xFD2FB528, 0, (27 - 10) << 3) + (len(tar) << 3 | 1).to_bytes(3, 'little') + tar
        self.accept((tar, frame))

    def test_the_time_limit_ends_it(self):
        # No machine hashes, unpacks and writes 64 MiB in 5 ms, however idle.
        done = self.run_driver('unpack', self.layout(file('a', os.urandom(64 << 20)), packing='gzip'), '--ms', 5)
        self.assertRegex(done.error, '5 .*(too long|time)')
        self.assertEqual(os.listdir(f'{self.store}/staging'), [])


class Broken(Case):
    def test_truncated_and_damaged_layers_are_refused(self):
        tar = file('a', os.urandom(5000)) + file('b', 'b') + END
        packed = pack(tar, 'gzip')
        frames = pack(tar, 'zstd')
        wrong_sum = packed[:-8] + bytes(4) + packed[-4:]
        for blob, why in ((packed[:-20], 'gzip: ends too early'), (packed[:-4], 'gzip: ends too early'),
                          (frames[:-3], 'zstd: ends too early'), (wrong_sum, 'gzip: incorrect data check'),
                          (packed + b'garbage', 'gzip: '), (tar[:700], 'ends in the middle of a file'),
                          (tar[:100], 'ends in the middle of a header'), (tar[:5632], 'unpacks to sha256')):
            self.refuse((tar, blob), why=why)

    def test_frames_of_old_formats_of_zstd_are_refused(self):
        tar = file('a', 'x') + END
        for magic in (0xFD2FB525, 0xFD2FB526, 0xFD2FB527):
            old = struct.pack('<I', magic) + bytes(40)
            self.refuse((tar, pack(tar, 'zstd') + old), why='zstd: garbage between its frames')
            self.refuse((tar, old), why='tar: ')

    def test_a_frame_of_another_size_than_it_says_is_refused(self):
        tar = file('a', 'x') + END
        empty = struct.pack('<IBB', 0xFD2FB528, 0x80, 0)  # Four bytes of size, then one empty block.
        last = bytes.fromhex('010000')
        self.refuse((tar, pack(tar, 'zstd') + empty + struct.pack('<I', 256) + last), why='zstd: ')
        self.assertIn('a', self.accept((tar, pack(tar, 'zstd') + empty + struct.pack('<I', 0) + last)))

    def test_garbage_after_the_end_is_part_of_the_digest(self):
        tar = file('a', 'x') + END
        self.refuse((tar, tar + b'garbage'), why='unpacks to sha256')
        self.accept((tar + b'garbage', tar + b'garbage'))

    def test_a_wrong_diff_id_and_a_wrong_count_are_refused(self):
        wrong = 'sha256:' + '0' * 64
        self.refuse(file('a', 'x'), why='unpacks to sha256.*its image says sha256:000', diff_ids=[wrong])
        self.refuse(file('a', 'x'), why='but 2 diff_ids', diff_ids=[wrong, wrong])

    def test_a_size_that_two_readers_see_differently_is_read_one_way(self):
        inner = file('inner', 'evil')
        seen = self.accept(pax(size=str(len(inner))) + header('outer', b'0', 0) + inner + file('after', 'x'))
        self.assertEqual((sorted(seen), seen['outer'][2]), (['after', 'outer'], inner))

    def test_what_no_reader_knows_is_refused(self):
        for kind in b'AMNVDZ':
            self.refuse(header('x', bytes([kind])), why='unknown type')
        block = bytearray(header('x'))
        block[0] ^= 1
        self.refuse(bytes(block), why='wrong checksum')
        self.refuse(bytes(512) + file('a', 'x'), why='empty header before the end')
        self.refuse(pax(size='-5') + file('a', 'x'), why='pax size')
        self.refuse(header('x', b'x', 9) + padded(b'99 a=b\n  ') + file('a', ''), why='pax record')

    def test_a_file_system_image_is_no_layer(self):
        for magic, at in ((b'hsqs', 0), (b'\xe2\xe1\xf5\xe0', 1024), (b'\x53\xef', 1080)):
            blob = bytearray(os.urandom(8192))
            blob[at:at + len(magic)] = magic
            self.refuse((bytes(blob), bytes(blob)), why='tar: ')

    def test_an_image_is_whole_or_absent(self):
        self.refuse(file('good', 'x'), file('../evil', 'x'), why='leads out')
        done = self.run_driver('unpack', f'oci:{self.top}/image:t')
        self.assertEqual((done.status, done.layers), (1, []))


class Helpers(Case):
    """CVE-2014-9357: whoever unpacks with a program that it looks for runs whatever is found."""

    NAMES = ('gzip', 'gunzip', 'zcat', 'unpigz', 'pigz', 'zstd', 'unzstd', 'xz', 'bzip2', 'tar')

    def setUp(self):
        super().setUp()
        self.executed = f'{self.home}/executed'
        self.script = f'#!/bin/sh\necho "$0" >> {self.executed}\ncat\n'
        self.planted = f'{self.top}/bin'
        os.mkdir(self.planted)
        for name in self.NAMES:
            with open(f'{self.planted}/{name}', 'w', encoding='utf-8') as out:
                out.write(self.script)
            os.chmod(f'{self.planted}/{name}', 0o755)
        self.path = {'PATH': f'{self.planted}:{os.environ["PATH"]}'}

    def by_hand(self, program):
        """As whoever unpacked would have run it."""
        line = self.command()[:-2] + [program]
        subprocess.run(line, env=self.path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=600)
        with open(self.executed, encoding='utf-8') as lines:
            return lines.read().splitlines()

    def test_no_program_is_run_to_unpack_wherever_it_lies(self):
        own = directory('usr/') + directory('usr/bin/') + b''.join(
            file('usr/bin/' + name, self.script, mode=0o755) for name in self.NAMES)
        for packing in ('', 'gzip', 'zstd'):
            name = self.layout(own, directory('d/') + file('d/f', packing), packing=packing)
            done = self.run_driver('unpack', name, env=self.path)
            self.assertEqual((done.status, done.error, len(done.layers)), (0, '', 2))
        tar = file('new', 'x') + END
        for packed in (lzma.compress(tar), bz2.compress(tar)):
            self.refuse((tar, packed), why='tar: ', env=self.path)
        self.assertFalse(os.path.exists(self.executed))
        # The control: each would have told.
        self.assertEqual(self.by_hand('gzip'), [f'{self.planted}/gzip'])
        of_image = f'{done.layers[1]}/usr/bin/zstd'
        self.assertEqual(self.by_hand(of_image), [f'{self.planted}/gzip', of_image])


class Hosts(Case):
    def test_without_user_namespaces_nothing_is_unpacked(self):
        # A limit of a user namespace binds everybody inside of it.
        script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
        command = self.command('unpack', self.layout(file('a', 'x')))
        at = command.index(self.driver)
        command[at:at] = ['unshare', '--map-current-user', '--keep-caps', 'sh', '-c', script, 'sh']
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, timeout=600)
        self.assertIn(b'error 3 ', done.stdout)
        self.assertEqual(tree(f'{self.store}/layers'), {})
        self.accept(file('a', 'x'))


class AsRoot(Case):
    uid = 0

    @unittest.skipUnless(os.geteuid() == 0, 'root: only root may')
    def test_root_unpacks_for_nobody_in_particular(self):
        done, trees = self.unpack(directory('d/', 0o700) + file('d/f', 'x', mode=0o600) + symlink('l', self.canary) +
                                  file('l/x', 'x') + file('.wh..wh..opq'), file('.wh.l') + file('d/.wh.f'))
        self.assertEqual(done.status, 0, done.error)
        self.assertEqual(done.all('owner'), ['1879048192'])
        for layer in done.layers:
            for folder, folders, files in os.walk(layer):
                for name in folders + files + ['.']:
                    st = os.lstat(f'{folder}/{name}')
                    self.assertEqual((st.st_uid, st.st_gid), (1879048192, 1879048192), name)
        self.assertEqual(os.stat(self.store).st_mode & 0o777, 0o700)
        self.assertEqual(self.run_driver('verify').lines, [])


if __name__ == '__main__':
    unittest.main(verbosity=2)
