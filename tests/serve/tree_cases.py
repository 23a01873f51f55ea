# SPDX-License-Identifier: Apache-2.0
"""Whole trees of files over the protocol: forks of sandboxes, and archives."""
import http.server
import io
import os
import pathlib
import random
import tarfile
import threading
import time

from client import Fault
from harness import BUSY_SECONDS, read, wait_until
from serve_cases import Served, encoded


class Forks(Served):
    def test_a_fork_begins_where_its_origin_is_and_goes_its_own_way(self):
        client = self.connect()
        self.sandbox(client, env=['GIVEN=yes'])
        client.run('one', 'x=1; f() { echo "f $x"; }; cd dir; echo new > ../made; rm ../b.txt; echo home > ~/file')
        # What the origin is asked to do later is not in it.
        forking = client.start('fork', sandbox='one', name='two')
        later = client.start('exec', sandbox='one', script='x=2; echo later > ../made')
        made = forking.wait(BUSY_SECONDS)[0]
        later.wait(BUSY_SECONDS)
        self.assertEqual((made['name'], made['cwd'], made['busy']), ('two', self.work + '/dir', False))
        shown = 'pwd; f; cat ../made ~/file; echo "$GIVEN"; ls ..'
        self.assertEqual(client.run('two', shown)[1]['stdout'].decode(),
                         f'{self.work}/dir\nf 1\nnew\nhome\nyes\na.txt\ndir\nmade\n')
        self.assertEqual(client.run('one', 'f; cat ../made')[1]['stdout'], b'f 2\nlater\n')
        client.run('two', 'echo own > ../own; kill -9 $$')
        self.assertEqual(client.run('one', 'ls ..')[1]['stdout'], b'a.txt\ndir\nmade\n')
        self.assertEqual({(one['kind'], one['path']) for one in client.call('diff', sandbox='two')['changes']},
                         {('created', 'made'), ('created', 'own'), ('deleted', 'b.txt')})
        # A fork of a fork, whose origin is gone then; and with a snapshot.
        layout = self.base + '/layout'
        client.call('snapshot', sandbox='one', output=layout)
        client.call('delete', sandbox='one')
        client.call('fork', BUSY_SECONDS, sandbox='two', name='three')
        client.call('delete', sandbox='two')
        self.assertEqual(client.run('three', 'echo "$GIVEN"; cat ../own')[1]['stdout'], b'yes\nown\n')
        named = client.call('fork', BUSY_SECONDS, sandbox='three', snapshot='oci:' + layout)
        self.assertEqual(client.run(named['name'], 'f; ls ..; echo "$GIVEN"')[1]['stdout'], b'f 2\na.txt\ndir\nmade\nyes\n')
        self.assertEqual(client.close(), 0)
        self.assertEqual(self.names(), [])

    def test_what_narrowed_its_origin_narrows_a_fork_and_what_a_snapshot_is_restored_in(self):
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(204)
                self.end_headers()

            do_POST = do_GET

            def log_message(self, *_):
                pass

        servers = [http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answer) for _ in range(2)]
        for server in servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
        page, hook = (f'host.openshell.internal:{server.server_port}' for server in servers)
        policy = pathlib.Path(self.base, 'policy.yml')
        policy.write_text(f'defaults: none\nendpoints: ["{page}:read-only:rest", "{hook}:full:rest"]\n'
                          f'after_untrusted: {{closes: [writes], trusts: ["{hook}"]}}\n')
        client = self.connect()

        def post(sandbox):
            return client.run(sandbox, f'curl -s -o /dev/null -w "%{{http_code}}" -d x http://{hook}/')[1]['stdout'].decode()

        self.sandbox(client, policy=str(policy))
        layout = self.base + '/layout'
        client.call('snapshot', sandbox='one', output=layout, tag='before')
        client.call('fork', BUSY_SECONDS, sandbox='one', name='two')
        self.assertEqual(client.run('one', f'curl -s http://{page}/ -o /dev/null -w "%{{http_code}}"')[1]['stdout'], b'204')
        client.call('snapshot', sandbox='one', output=layout, tag='after')
        client.call('fork', BUSY_SECONDS, sandbox='one', name='three')
        client.call('fork', BUSY_SECONDS, sandbox='three', name='four')
        self.assertEqual([post(name) for name in ('one', 'two', 'three', 'four')], ['403', '204', '403', '403'])
        client.call('restore', BUSY_SECONDS, sandbox='two', snapshot=f'oci:{layout}:before')
        self.assertEqual(post('two'), '204')
        client.call('restore', BUSY_SECONDS, sandbox='two', snapshot=f'oci:{layout}:after')
        self.assertEqual(post('two'), '403')
        # It is no way out either.
        client.call('restore', BUSY_SECONDS, sandbox='two', snapshot=f'oci:{layout}:before')
        client.call('reset', BUSY_SECONDS, sandbox='one')
        self.assertEqual([post('one'), post('two')], ['403', '403'])

    def test_a_fork_that_cannot_be_leaves_nothing(self):
        client = self.connect()
        self.sandbox(client)
        self.fails(66, '', client, 'fork', sandbox='none')
        self.fails(64, 'agentic-ci sandbox delete one', client, 'fork', sandbox='one', name='one')
        self.fails(66, '', client, 'fork', sandbox='one', name='two', snapshot='oci:' + self.base + '/none')
        # One of the command line is not this connection's.
        self.call('sandbox', 'create', '--name', 'other', '--report-dir', self.report, '--isolation', self.TIER)
        self.fails(66, '', client, 'fork', sandbox='other')
        self.call('sandbox', 'delete', 'other', '--json')
        client.call('create', BUSY_SECONDS, name='copied', isolation='landlock')
        self.assertEqual(client.run('copied', 'echo runs')[1]['stdout'], b'runs\n')
        self.fails(69, '', client, 'fork', sandbox='copied', name='two')
        self.assertTrue(wait_until(lambda: self.names() == ['copied', 'one']), self.names())
        client.run('one', 'head -c 50000000 /dev/urandom > large')
        cancelled = 0
        for turn in range(6):
            forking = client.start('fork', sandbox='one', name=f'cancelled{turn}')
            time.sleep(0.05 * turn)
            forking.cancel()
            try:
                forking.wait(BUSY_SECONDS)
                client.call('delete', BUSY_SECONDS, sandbox=f'cancelled{turn}')
            except Fault:
                cancelled += 1
        self.assertGreater(cancelled, 0)
        self.assertTrue(wait_until(lambda: self.names() == ['copied', 'one']), self.names())
        self.assertEqual(client.run('one', 'echo goes on')[1]['stdout'], b'goes on\n')
        self.assertEqual([name for _, _, names in os.walk(self.base + '/.cache') for name in names], [])

    def test_many_forks_of_one(self):
        client = self.connect()
        self.sandbox(client, apply=True)
        client.run('one', 'echo kept > made')
        forks = [client.start('fork', sandbox='one', name=f'fork{i}') for i in range(4)]
        names = [fork.wait(BUSY_SECONDS)[0]['name'] for fork in forks]
        runs = [client.start('exec', sandbox=name, script=f'cat made; echo {name} > made; cat made') for name in names]
        self.assertEqual([run.wait(BUSY_SECONDS)[1]['stdout'].decode() for run in runs],
                         [f'kept\n{name}\n' for name in names])
        # Only the first was created to apply its changes.
        client.call('delete', BUSY_SECONDS, sandbox='fork0')
        self.assertFalse(os.path.exists(self.work + '/made'))
        client.call('delete', BUSY_SECONDS, sandbox='one')
        self.assertEqual(read(self.work + '/made'), 'kept\n')


class Archives(Served):
    def archive(self, *entries):
        """A tar archive of (name, content or options of the entry)."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode='w') as tar:
            for name, what in entries:
                entry = tarfile.TarInfo(name)
                if isinstance(what, bytes):
                    entry.size, entry.mode = len(what), 0o640
                    tar.addfile(entry, io.BytesIO(what))
                else:
                    for key, value in what.items():
                        setattr(entry, key, value)
                    tar.addfile(entry)
        return out.getvalue()

    def put(self, client, target, archive):
        return client.call('put', sandbox='one', target=target, archive=True, **encoded(archive))

    def test_an_archive_goes_in_and_comes_out_as_it_was(self):
        client = self.connect()
        self.sandbox(client)
        data = random.Random(3).randbytes(200000)
        given = self.archive(('deep/er/data', data), ('run', b'#!/bin/sh\necho ran\n'),
                             ('link', {'type': tarfile.SYMTYPE, 'linkname': 'run'}),
                             ('hard', {'type': tarfile.LNKTYPE, 'linkname': 'run'}),
                             ('empty', {'type': tarfile.DIRTYPE, 'mode': 0o700}))
        self.assertEqual(self.put(client, 'new/place', given), {})
        shown = 'cd new/place; stat -c "%a %h %n" run empty; readlink link; sh ./hard'
        self.assertEqual(client.run('one', shown, directory='.')[1]['stdout'], b'640 2 run\n700 2 empty\nrun\nran\n')
        taken = client.start('get', sandbox='one', source='new/place', archive=True).wait()[1]['data']
        with tarfile.open(fileobj=io.BytesIO(taken)) as tar:
            self.assertEqual({entry.name for entry in tar},
                             {'.', './deep', './deep/er', './deep/er/data', './run', './link', './hard', './empty'})
            self.assertEqual(tar.extractfile('./deep/er/data').read(), data)
        self.put(client, 'again', taken)
        self.assertEqual(client.run('one', 'diff -r new/place again && echo same')[1]['stdout'], b'same\n')
        one = client.start('get', sandbox='one', source='new/place/run', archive=True).wait()[1]['data']
        with tarfile.open(fileobj=io.BytesIO(one)) as tar:
            self.assertEqual(tar.getnames(), ['run'])
        # Directories are merged, files replaced.
        self.put(client, 'again', self.archive(('run', b'other'), ('deep/more', b'more')))
        self.assertEqual(client.run('one', 'cat again/run again/deep/more; ls again/deep')[1]['stdout'], b'othermoreer\nmore\n')

    def test_an_archive_comes_in_pieces(self):
        client = self.connect()
        self.sandbox(client)
        data = random.Random(4).randbytes(40 << 20)
        given = self.archive(('data', data))
        call = client.start('put', sandbox='one', target='.', archive=True, end=False)
        for at in range(0, len(given), 5 << 20):
            call.input(given[at:at + (5 << 20)])
        # Others go on meanwhile.
        self.assertEqual(client.call('list')['sandboxes'][0]['name'], 'one')
        call.input(end=True)
        self.assertEqual(call.wait(BUSY_SECONDS)[0], {})
        self.assertEqual(client.run('one', 'stat -c %s data')[1]['stdout'], b'%d\n' % len(data))
        # One that ends too early, one that is cancelled, and one that is refused at its beginning.
        call = client.start('put', sandbox='one', target='cut', **{**encoded(given[:3 << 20]), 'archive': True})
        with self.assertRaises(Fault):
            call.wait(BUSY_SECONDS)
        call = client.start('put', sandbox='one', target='cut', archive=True, end=False)
        call.input(given[:1 << 20])
        call.cancel()
        with self.assertRaises(Fault):
            call.wait(BUSY_SECONDS)
        call = client.start('put', sandbox='one', target='cut', archive=True, end=False)
        for _ in range(8):
            call.input(b'no archive ' * 100000)
        call.input(end=True)
        with self.assertRaises(Fault) as raised:
            call.wait(BUSY_SECONDS)
        self.assertGreater(raised.exception.code, 0)
        self.assertEqual(client.run('one', 'echo goes on')[1]['stdout'], b'goes on\n')
        self.fails(64, '"archive": true', client, 'put', sandbox='one', target='x', text='x', end=False)
        self.fails(64, '', client, 'put', sandbox='one', target='x', archive=True, source='a.txt')

    def test_an_archive_writes_nothing_outside_of_its_place(self):
        client = self.connect()
        self.sandbox(client)
        client.run('one', 'mkdir out; echo safe > out/file; ln -s "$PWD/out" way')
        self.put(client, 'place', self.archive(('in', b'fine')))  # The control.
        self.assertEqual(client.run('one', 'cat place/in')[1]['stdout'], b'fine')
        to_out = ('leads', {'type': tarfile.SYMTYPE, 'linkname': '../out'})
        chain = ('chain', {'type': tarfile.SYMTYPE, 'linkname': 'leads/..'})
        for entries in ([('../escaped', b'x')], [('a/../../escaped', b'x')], [('/tmp/escaped', b'x')],
                        [to_out, ('leads/file', b'x')], [to_out, chain, ('chain/escaped', b'x')],
                        [to_out, ('leads', {'type': tarfile.DIRTYPE, 'mode': 0o777}), ('leads/file', b'x')],
                        [('hard', {'type': tarfile.LNKTYPE, 'linkname': '../out/file'}), ('hard', b'x')],
                        [to_out, ('hard', {'type': tarfile.LNKTYPE, 'linkname': 'leads/file'})],
                        [('device', {'type': tarfile.CHRTYPE, 'devmajor': 1, 'devminor': 3})]):
            with self.subTest(entries):
                with self.assertRaises(Fault) as raised:
                    self.put(client, 'place', self.archive(*entries))
                self.assertGreater(raised.exception.code, 0)
                result = client.run('one', 'cat out/file; ls out; ls -d escaped /tmp/escaped place/device')
                self.assertEqual(result[1]['stdout'], b'safe\nfile\n')
                client.run('one', 'rm -r place; mkdir place')
        # A file takes the place of a link, and not of what that leads to.
        self.put(client, 'place', self.archive(to_out, ('leads', b'own')))
        self.assertEqual(client.run('one', 'cat place/leads; ls out')[1]['stdout'], b'ownfile\n')
        self.assertFalse(os.path.exists(self.base + '/escaped') or os.path.exists('/tmp/escaped'))
