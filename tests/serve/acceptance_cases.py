# SPDX-License-Identifier: Apache-2.0
"""The interface of agentic-bash, row by row: each option and method of it works here over the protocol, or there is a reason why not.

A row is its name there and what is done here: a function, which fails where it does not work, or the reason as text.
"""
import io
import pathlib
import tarfile

from client import Fault
from harness import BUSY_SECONDS
from serve_cases import Served, encoded


def archive(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


class Rows:
    """What the rows do, each in the sandbox `one` of a client."""

    def __init__(self, case, client):
        self.case, self.client = case, client

    def said(self, script, **params):
        """What a script prints, without its last end of line."""
        result, streams = self.client.run('one', script, BUSY_SECONDS, **params)
        self.case.assertEqual(result['reason'], 'exit', (script, result))
        return streams['stdout'].decode().rstrip('\n')

    def same(self, script, expected, **params):
        self.case.assertEqual(self.said(script, **params), expected, script)

    def made(self, **options):
        """Another sandbox with these options; it is removed again."""
        name = f'other{len(self.case.others)}'
        self.case.others.append(name)
        self.client.call('create', BUSY_SECONDS, name=name, isolation=self.case.TIER, **options)
        return name

    # Options.
    def isolation(self):
        self.same('test -e /root/.ssh || ls /root 2>/dev/null | wc -l', '0')

    def timeout(self):
        result, _ = self.client.run('one', 'sleep 100 & sleep 100', timeout='1s')
        self.case.assertEqual(result['reason'], 'timeout')
        self.same('pgrep -c sleep', '0')

    def memory(self):
        name = self.made(memory='96MiB')
        result, _ = self.client.run(name, '/usr/bin/python3 -c "b = bytearray(400 << 20)"', BUSY_SECONDS)
        self.case.assertNotEqual(result['status'], 0, result)

    def processors(self):
        name = self.made(cpus='1')
        limits = {one['name']: one['most'] for one in self.client.call('state', sandbox=name)['limits']}
        self.case.assertIn('memory', limits)
        self.case.assertEqual(self.client.run(name, 'true')[0]['status'], 0)

    def output(self):
        result, streams = self.client.run(self.made(output='1MiB'), 'yes', BUSY_SECONDS)
        self.case.assertEqual((result['reason'], len(streams['stdout'])), ('output', 1 << 20))
        self.case.assertGreater(result['truncated_stdout'], 0)

    def file_size(self):
        name = self.made(**{'file-size': '1MiB'})
        self.case.assertNotEqual(self.client.run(name, 'head -c 2000000 /dev/zero >big')[0]['status'], 0)

    def deny(self):
        result, _ = self.client.run('one', 'curl -s -m 5 http://denied.invalid/')
        self.case.assertEqual([one['host'] for one in result['refused']], ['denied.invalid'])
        self.case.assertIn('denied.invalid', result['refused'][0]['allow'])

    def allowlist(self):
        policy = pathlib.Path(self.case.base, 'allow.yml')
        policy.write_text('defaults: none\nendpoints: ["allowed.invalid:443"]\n')
        name = self.made(policy=str(policy))
        script = 'for at in allowed denied; do curl -s -m 5 https://$at.invalid/; done'
        self.case.assertEqual([one['host'] for one in self.client.run(name, script)[0]['refused']], ['denied.invalid'])

    def loopback(self):
        self.same('/usr/bin/python3 -m http.server -b 127.0.0.1 8765 >/dev/null 2>&1 & sleep 1', '')
        self.same('curl -s -o /dev/null -w "%{http_code}" --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8765/; kill %1 2>/dev/null || pkill -f http.server', '200')

    def preset(self):
        self.same('echo "$HOME:$SHELL:$LANG:${SERVE_CANARY-none}"', f'{self.said("echo ~")}:/bin/bash:C.UTF-8:none')

    def environment(self):
        name = self.made(env=['GIVEN=a b'])
        self.case.assertEqual(self.client.run(name, 'echo "$GIVEN"')[1]['stdout'], b'a b\n')
        self.same('echo "$more"', 'x', env={'more': 'x'})

    def directory(self):
        self.same('pwd', '/tmp', directory='/tmp')

    def audit(self):
        events = self.client.start('events', sandbox='one')
        self.client.call('list')
        self.client.run('one', 'curl -s -m 5 http://audited.invalid/')
        self.case.assertEqual(events.note()[0], 'event')
        events.cancel()
        events.wait()

    def python(self):
        self.same('/usr/bin/python3 -c "print(1 + 1)"', '2')

    # Methods.
    def run(self):
        result, streams = self.client.run('one', 'echo out; echo err >&2; exit 42')
        self.case.assertEqual((result['status'], streams['stdout'], streams['stderr']), (42, b'out\n', b'err\n'))
        self.case.assertGreaterEqual(result['usage']['wall_ms'], 0)
        self.case.assertTrue({'cpu_ms', 'memory_peak_bytes'} <= set(result['usage']))

    def streamed(self):
        call = self.client.start('exec', sandbox='one', script='echo first; read x', stdin={'end': False})
        self.case.assertEqual(call.note()[1]['text'], 'first\n')
        call.input(end=True)
        call.wait()

    def cancelled(self):
        call = self.client.start('exec', sandbox='one', script='echo first; sleep 1000')
        call.note()
        call.cancel()
        self.case.assertEqual(call.wait()[0]['reason'], 'cancelled')

    def state(self):
        self.client.run('one', 'kept=1; f() { echo of f; }; cd dir')
        state = self.client.call('state', sandbox='one')
        self.case.assertTrue(state['cwd'].endswith('/dir'))
        self.case.assertTrue('kept' in state['script'] and 'of f' in state['script'] and state['history'])
        self.same('echo $kept; f; cd ..', '1\nof f')

    def shell(self):
        """What does not persist there."""
        self.client.run('one', "list=(a 'b c'); alias two='echo 2'; set -o noclobber; umask 027; (exit 7)")
        self.same('echo $? ${#list[@]} $(umask) ${-//[^C]}; two; set +o noclobber', '7 2 0027 C\n2')

    def changes(self):
        result, _ = self.client.run('one', 'echo 1 >fresh; sed -i s/alpha/other/ a.txt; rm b.txt; mkdir d2; mv fresh d2/moved')
        self.case.assertEqual({(one['kind'], one['path']) for one in result['changes']},
                              {('created', 'd2'), ('created', 'd2/moved'), ('modified', 'a.txt'), ('deleted', 'b.txt')})

    def files(self):
        self.client.call('put', sandbox='one', target='/tmp/put', **encoded(b'\x00bytes'))
        taken = self.client.start('get', sandbox='one', source='/tmp/put').wait()[1]
        self.case.assertEqual(taken['data'], b'\x00bytes')
        self.same('ls -A /tmp/put', '/tmp/put')

    def tars(self):
        self.client.call('put', sandbox='one', target='/tmp/tree', archive=True, **encoded(archive('a/b', b'in')))
        taken = self.client.start('get', sandbox='one', source='/tmp/tree', archive=True).wait()[1]['data']
        with tarfile.open(fileobj=io.BytesIO(taken)) as tar:
            self.case.assertEqual(tar.extractfile('./a/b').read(), b'in')

    def snapshots(self):
        self.client.run('one', 'echo 1 >snap; mkfifo pipe; variable=kept')
        layout = self.case.base + '/acceptance'
        self.client.call('snapshot', BUSY_SECONDS, sandbox='one', output=layout)
        self.client.run('one', 'rm snap; variable=gone')
        self.client.call('restore', BUSY_SECONDS, sandbox='one', snapshot='oci:' + layout)
        self.same('cat snap; echo $variable', '1\nkept')

    def reset(self):
        self.client.run('one', 'echo 1 >left; variable=1; sleep 1000 & disown')
        self.client.call('reset', BUSY_SECONDS, sandbox='one')
        self.same('ls left 2>/dev/null; echo "$variable"; pgrep -c sleep', '\n0')

    def close(self):
        name = self.made()
        self.client.call('delete', BUSY_SECONDS, sandbox=name)
        with self.case.assertRaises(Fault) as raised:
            self.client.call('exec', sandbox=name, script='true')
        self.case.assertEqual(raised.exception.data['kind'], 'not_found')

    def listed(self):
        one = next(one for one in self.client.call('list')['sandboxes'] if one['name'] == 'one')
        self.case.assertIn('busy', one)

    def replaced(self):
        self.same('hostname; id -un; pwd >/dev/null; cat a.txt | head -1; env | grep -c ^HOME=', 'sandbox\nsandbox\nalpha\n1')

    def parsing(self):
        result, streams = self.client.run('one', 'if')
        self.case.assertEqual((result['status'], b'syntax error' in streams['stderr']), (2, True))
        self.same('', '')

    def signals(self):
        result, _ = self.client.run('one', "sh -c 'kill -SEGV $$'")
        self.case.assertEqual(result['status'], 128 + 11)

    def installed(self):
        self.same('echo "$PATH" | cut -d: -f1 | grep -c "/.local/bin$"', '1')


TABLE = {
    # Options of a sandbox.
    'Isolation': Rows.isolation,
    'Isolation: None': 'there is no sandbox without isolation',
    'Limits.Timeout': Rows.timeout,
    'Limits.MaxMemoryMB': Rows.memory,
    'Limits.MaxCPUPercent': Rows.processors,
    'Limits.MaxOutputMB': Rows.output,
    'Limits.MaxFileSizeMB': Rows.file_size,
    'Network: Allow': 'a policy lists hosts; none opens all of them',
    'Network: Deny': Rows.deny,
    'Network: Allowlist': Rows.allowlist,
    'Network: loopback': Rows.loopback,
    'Network.DNSServer': 'names are resolved by the gateway, with the resolver of this machine',
    'Bootstrap.UserName, Hostname, UID, GID': Rows.replaced,
    'EnvPreset: Linux': Rows.preset,
    'EnvPreset: InheritHost': 'variables of the caller enter a sandbox only if `env` names them: there are secrets among them',
    'EnvPreset: Empty': 'proxies and certificates are given by variables; without them no request leaves',
    'Env': Rows.environment,
    'WorkDir': Rows.directory,
    'BaseImageDir': '`image`: a signed image, or a directory (tests/image_run/packages_test.py)',
    'AuditWriter': Rows.audit,
    'BlockList': 'what a command may do is decided by what it reaches, not by its words: policies name hosts, paths and programs',
    'PythonRuntime: Native': Rows.python,
    'PythonRuntime: WASM': "the system's Python runs inside; there is no second sandbox within the first",
    'StrictNamespace': Rows.isolation,
    'OnCommand, OnResult': Rows.run,
    'OnViolation': Rows.audit,
    # Methods of a sandbox, and what they give.
    'New': Rows.listed,
    'Run': Rows.run,
    'Run: what persists': Rows.shell,
    'Run: an error of the syntax': Rows.parsing,
    'Run: the end by a signal': Rows.signals,
    'RunContext, SetContext': Rows.cancelled,
    'RunStream': Rows.streamed,
    'State': Rows.state,
    'Manifest': 'what is installed is asked of the package managers themselves: pip, npm and dpkg run inside',
    'Isolation()': Rows.listed,
    'FS, WriteFile, ReadFile, ListFiles': Rows.files,
    'UploadTar, DownloadTar': Rows.tars,
    'Snapshot, Restore': Rows.snapshots,
    'Reset': Rows.reset,
    'Close': Rows.close,
    'FilesCreated, FilesModified, FilesDeleted': Rows.changes,
    # The rest.
    'pip and apt shims': Rows.installed,
    'Pool': '`sandbox create --pool` and `take` (tests/session/pool_cases.py)',
    'CLI: run, shell': '`sandbox exec` and `sandbox shell` are the same sandbox (tests/session)',
    'TUI': '`watch` shows a sandbox as it works (tests/session/watch_cases.py)',
}


class Acceptance(Served):
    def test_each_row_works_or_says_why_not(self):
        self.others = []
        self.env['SERVE_CANARY'] = 'seen'
        client = self.connect()
        self.sandbox(client)
        rows = Rows(self, client)
        for name, row in TABLE.items():
            with self.subTest(name):
                if isinstance(row, str):
                    self.assertGreater(len(row.split()), 4)  # A reason.
                    continue
                client.call('reset', BUSY_SECONDS, sandbox='one')
                row(rows)
                for other in self.others:
                    try:
                        client.call('delete', BUSY_SECONDS, sandbox=other)
                    except Fault:
                        pass
                self.others.clear()
