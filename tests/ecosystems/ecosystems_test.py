#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npm, pip, Go, Cargo and Maven fetch a package through the gateway, with no other configuration.

usage: ecosystems_test.py BINARY [TEST...]
"""
import glob
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'agents'))
from upstream import NAME, Upstream  # noqa: E402  pylint: disable=wrong-import-position

BINARY = os.path.abspath(sys.argv.pop(1))
POLICY = '''
version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /lib, /lib64, /bin, /proc, /dev/urandom, /etc, {tools}]
  read_write: [/tmp, /dev/null]
'''
SECONDS = 180
SERVICE = '''network_policies:
  service:
    endpoints: [{{host: {host}, port: {port}, protocol: rest, access: read-only}}]
    binaries: [{{path: "/**"}}]
'''
# Each tool, with a configuration of its own that names a company's authority ($foreign): how it is made, what asks for $at,
# and what takes our own setting away.
CONFIGURED = {
    'npm': ('echo "cafile=$foreign" >.npmrc', 'npm ping --registry "$at" --fetch-retries 0 --cache "$TMPDIR/npm"',
            '-u npm_config_cafile'),
    'pip': ('mkdir -p ~/.config/pip && printf "[global]\\ncert = $foreign\\n" >~/.config/pip/pip.conf',
            'PYTHONPATH="$tools/lib" /usr/bin/python3 -m pip download --no-cache-dir --retries 0 -i "$at" x',
            '-u PIP_CERT -u REQUESTS_CA_BUNDLE -u CURL_CA_BUNDLE'),
    'cargo': ('mkdir -p .cargo && printf "[http]\\ncainfo = \'$foreign\'\\n" >.cargo/config.toml',
              'CARGO_HOME="$TMPDIR/cargo" RUSTC="$tools/bin/rustc" CARGO_REGISTRIES_X_INDEX="sparse+$at/" '
              '"$tools/bin/cargo" search --registry x y', '-u CARGO_HTTP_CAINFO'),
    'git': ('printf "[http]\\nsslCAInfo = $foreign\\nsslCAPath = $PWD/none\\n" >gitconfig', 'GIT_CONFIG_SYSTEM="$PWD/gitconfig" git ls-remote "$at"',
            '-u GIT_SSL_CAINFO'),
    'php': ('echo "openssl.cafile = $foreign" >php.ini', 'PHPRC="$PWD" php -r \'file_get_contents($argv[1]);\' "$at"',
            '-u PHP_INI_SCAN_DIR'),
    'php-curl': ('echo "curl.cainfo = $foreign" >php.ini',
                 'PHPRC="$PWD" php -r \'curl_exec(curl_init($argv[1]));\' "$at"', '-u PHP_INI_SCAN_DIR'),
    'wget': (': >empty; printf "ca_certificate = $foreign\\nca_directory = $PWD/none\\n" >wgetrc', 'SYSTEM_WGETRC="$PWD/wgetrc" wget -t 1 -O /dev/null "$at"',
             'WGETRC=empty'),
    'hg': ('printf "[web]\\ncacerts = $foreign\\n" >hgrc', 'HGRCPATH="$PWD/hgrc${alone-:$HOME/.hgrc}" hg identify "$at"', 'alone='),
}
POM = '''<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version>
<packaging>pom</packaging><parent><groupId>org.sonatype.oss</groupId><artifactId>oss-parent</artifactId>
<version>7</version><relativePath/></parent></project>
'''


def need(program):
    path = shutil.which(program)
    if path is None:
        raise unittest.SkipTest(f'{program}: not installed')
    return os.path.realpath(path)


class Ecosystems(unittest.TestCase):
    def setUp(self):
        # Not beneath /tmp: the sandbox has one of its own.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='ecosystems-test-', dir='/var/tmp'))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.directory.chmod(0o755)
        self.checkout = self.directory / 'checkout'
        (self.checkout / '.agentic-ci').mkdir(parents=True)
        self.tools = self.directory / 'tools'
        self.tools.mkdir()

    def outside(self, command, environment=None):
        """The same without a sandbox: who cannot do it there need not be able to do it inside."""
        with tempfile.TemporaryDirectory() as home:
            def move(text):
                return re.sub('(?<!/var)/tmp/', home + '/', text)

            moved = {name: move(value) for name, value in (environment or {}).items()}
            done = subprocess.run(['/bin/sh', '-c', move(command)], cwd=self.checkout,
                                  capture_output=True, text=True, timeout=SECONDS, env={**os.environ, **moved})
        if done.returncode != 0:
            raise unittest.SkipTest(f'network: outside the sandbox it fails as well: {done.stderr.strip().splitlines()[-1:]}')

    def inside(self, command, environment=None, host=None):
        policy = self.directory / 'policy.yml'
        policy.write_text(POLICY.format(tools=self.tools))
        variables = [item for name, value in (environment or {}).items() for item in ('--env', f'{name}={value}')]
        report = self.directory / 'report'
        return subprocess.run(
            [BINARY, 'run', '--workdir', self.checkout, '--policy', policy, '--report-dir', report,
             '--timeout', f'{SECONDS}s', *variables, '--', '/bin/sh', '-c', command],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS + 60,
            env={**os.environ, 'XDG_CACHE_HOME': str(self.directory / 'cache'), **(host or {})})

    def configure(self, ecosystems):
        (self.checkout / '.agentic-ci/config.yml').write_text(f'ecosystems: [{ecosystems}]\n')
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-C', self.checkout]
        for arguments in (['init', '-q'], ['add', '-A'], ['commit', '-q', '--allow-empty', '-m', 'one']):
            subprocess.run([*git, *arguments], check=True)

    def check(self, ecosystem, command, environment=None):
        self.outside(command, environment)
        self.configure(ecosystem)
        run = self.inside(command, environment)
        self.assertEqual(run.returncode, 0, run.stdout[-3000:] + run.stderr[-6000:])
        hosts = re.findall(r'registry opened.*?host=(\S+)', run.stderr)
        self.assertTrue(hosts, run.stderr)
        # The control: without the ecosystem the same command gets nowhere.
        self.configure('')
        closed = self.inside(command, environment)
        self.assertNotEqual(closed.returncode, 0, closed.stdout)
        self.assertIn(hosts[0], closed.stderr)  # Its refusal is told.
        return hosts

    def test_node(self):
        need('npm')
        hosts = self.check('node', 'npm install --no-audit --no-fund --prefix /tmp/out --cache /tmp/cache is-number@7.0.0'
                                   ' && grep -q 7.0.0 /tmp/out/node_modules/is-number/package.json')
        self.configure('node')
        ask = f"curl -s -o /dev/null -w '%{{http_code}} ' https://{hosts[0]}/is-number"
        run = self.inside(f'{ask}; {ask} -X PUT -d x; {ask} -X DELETE')
        self.assertEqual(run.stdout.split(), ['200', '403', '403'], run.stderr)

    def test_node_with_a_scoped_package(self):
        """npm asks for it as /@scope%2fname."""
        need('npm')
        self.check('node', 'npm install --no-audit --no-fund --fetch-retries 0 --prefix /tmp/out --cache /tmp/cache @types/retry@0.12.5'
                           ' && grep -q 0.12.5 /tmp/out/node_modules/@types/retry/package.json')

    def install_pip(self):
        import pip
        shutil.copytree(os.path.dirname(pip.__file__), self.tools / 'lib/pip',
                        ignore=shutil.ignore_patterns('__pycache__'))

    def test_python(self):
        self.install_pip()
        self.check('python', '/usr/bin/python3 -m pip download --no-deps --no-cache-dir -q -d /tmp/out six==1.16.0',
                   {'PYTHONPATH': str(self.tools / 'lib')})

    def test_go(self):
        go = need('go')
        (self.checkout / 'go.mod').write_text('module example.com/m\n\ngo 1.21\n')
        self.check('go', f'{go} mod download -json github.com/google/uuid@v1.6.0',
                   {'GOPATH': '/tmp/go', 'GOCACHE': '/tmp/go-build', 'GOFLAGS': '-modcacherw', 'GOTOOLCHAIN': 'local'})

    def install_cargo(self):
        need('cargo')
        root = subprocess.run(['rustc', '--print', 'sysroot'], capture_output=True, text=True, check=True).stdout.strip()
        for name in ['bin/cargo', 'bin/rustc', *[os.path.relpath(path, root) for path in glob.glob(f'{root}/lib/*.so*')]]:
            target = self.tools / name
            target.parent.mkdir(exist_ok=True)
            try:
                os.link(f'{root}/{name}', target)
            except OSError:
                shutil.copy(f'{root}/{name}', target)

    def test_rust(self):
        self.install_cargo()
        (self.checkout / 'src').mkdir()
        (self.checkout / 'src/lib.rs').write_text('')
        (self.checkout / 'Cargo.toml').write_text(
            '[package]\nname = "m"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nitoa = "=1.0.11"\n')
        self.check('rust', f'{self.tools}/bin/cargo fetch -q',
                   {'CARGO_HOME': '/tmp/cargo', 'RUSTC': str(self.tools / 'bin/rustc')})

    def test_java(self):
        need('mvn')
        (self.checkout / 'pom.xml').write_text(POM)
        self.check('java', 'mvn -B -q -Dmaven.repo.local=/tmp/m2 validate')

    def test_programs_that_package_managers_install_are_on_the_path(self):
        self.install_pip()
        for program in ('npm', 'go'):
            need(program)
        (self.checkout / 'hello.go').write_text('package main\nfunc main() { println("from-go") }\n')
        (self.checkout / 'go.mod').write_text('module example.com/fromgo\n\ngo 1.19\n')
        (self.checkout / 'setup.py').write_text(
            'from setuptools import setup\nsetup(name="from-pip", version="1", py_modules=["frompip"], entry_points={"console_scripts": ["from-pip=frompip:main"]})\n')
        (self.checkout / 'frompip.py').write_text('def main():\n    print("from-pip")\n')
        self.configure('python, node')
        lines = ['set -e', 'PYTHONPATH="$tools/lib" /usr/bin/python3 -m pip install -q .', 'from-pip',
                 'npm install -g --no-audit --no-fund --silent semver@7.6.0', 'semver 1.2.3', f'{need("go")} install .', 'fromgo 2>&1']
        run = self.inside('\n'.join([f'tools={self.tools}', *lines]), {'GOPATH': '/tmp/go', 'GOCACHE': '/tmp/go-build', 'GOTOOLCHAIN': 'local'})
        self.assertEqual(run.returncode, 0, run.stdout[-3000:] + run.stderr[-6000:])
        for word in ('from-pip', '1.2.3', 'from-go'):
            self.assertIn(word, run.stdout)

    def test_a_tools_own_configuration_of_a_companys_authority_does_not_matter(self):
        self.install_pip()
        self.install_cargo()
        for program in ('npm', 'git', 'php', 'wget'):
            need(program)
        chosen = {name: row for name, row in CONFIGURED.items() if name != 'hg' or shutil.which('hg')}
        upstream = Upstream(self.directory)
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        self.configure('')
        foreign = self.checkout / 'foreign.pem'
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
                        '-subj', '/CN=company', '-keyout', '/dev/null', '-out', foreign], check=True, capture_output=True)
        policy = self.directory / 'policy.yml'
        policy.write_text(POLICY.format(tools=self.tools) + SERVICE.format(host=NAME, port=upstream.port))
        lines = [f'tools={self.tools} foreign="$PWD/foreign.pem"; export tools foreign']
        for name, (make, ask, without) in chosen.items():
            lines.append(make)
            for word, prefix in (('control', f'env {without}'), ('asked', 'env')):
                lines.append(f'{prefix} at={upstream.url}/{word}/{name} sh -c {shlex.quote(ask)} </dev/null')
        for tier in ('namespaces', 'landlock'):
            upstream.requests.clear()
            run = subprocess.run(
                [BINARY, 'run', '--workdir', self.checkout, '--policy', policy, '--ca-file', upstream.ca_file, '--isolation', tier,
                 '--report-dir', self.directory / tier, '--timeout', f'{SECONDS}s', '--', '/bin/sh', '-c', '\n'.join(lines)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS + 60, check=False)
            asked = {tuple(re.split('[/?]', request.split()[1])[1:3]) for request in upstream.requests}
            self.assertEqual(asked, {('asked', name) for name in chosen}, f'{tier}: {run.stdout[-3000:]}{run.stderr[-6000:]}')

    def test_a_tool_is_asked_again_only_when_its_settings_or_itself_changed(self):
        """A tool of the test's own, which counts."""
        home, bin = self.directory / 'home', self.directory / 'bin'
        home.mkdir()
        bin.mkdir()
        tool = bin / 'npm'

        def install(text):
            tool.write_text(f'#!/bin/sh\n# {text}\necho >>"$HOME/asked"\ncat "$HOME/.npmrc"\n')
            tool.chmod(0o755)

        def hosts():
            run = self.inside('true', host={'HOME': str(home), 'PATH': f'{bin}:/usr/bin:/bin'})
            self.assertEqual(run.returncode, 0, run.stderr)
            asked = len((home / 'asked').read_text())
            return re.findall(r'registry opened.*?host=(\S+)', run.stderr), asked

        install('one')
        (home / '.npmrc').write_text('https://one.example.com/\n')
        self.configure('node')
        self.assertEqual(hosts(), (['one.example.com'], 1))
        self.assertEqual(hosts(), (['one.example.com'], 1))
        (home / '.npmrc').write_text('https://two.example.com/\n')
        self.assertEqual(hosts(), (['two.example.com'], 2))
        install('two')
        self.assertEqual(hosts(), (['two.example.com'], 3))
        # A cache that others can write to, and one that cannot be made: asked each time, and right.
        (self.directory / 'cache/agentic-ci/registries').chmod(0o777)
        self.assertEqual(hosts(), (['two.example.com'], 4))
        shutil.rmtree(self.directory / 'cache')
        (self.directory / 'cache').write_text('')
        self.assertEqual(hosts(), (['two.example.com'], 5))

    def test_an_unknown_name_is_an_error_with_the_list(self):
        self.configure('rustxxxx')
        run = self.inside('true')
        self.assertEqual(run.returncode, 65, run.stderr)
        self.assertRegex(run.stderr, "config.yml:1:14: error: no ecosystem is called 'rustxxxx'\n.*: node, python, go, rust, java")


if __name__ == '__main__':
    unittest.main(verbosity=2)
