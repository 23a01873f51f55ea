# SPDX-License-Identifier: Apache-2.0
"""Clients of many languages ask a server over HTTPS in the sandbox, and trust the run's authority without being told to.

usage: trust_test.py AGENTIC-CI ROOT [CASE...]

The control is the same client outside, which must refuse the server for its certificate. Clients whose program is not installed
are left out, but for those of Debian packages that tools/check installs.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / 'tests/capture'))
from upstream import Upstream, make_certificates  # noqa: E402

NAME = 'host.openshell.internal'
ANSWER = 'heard'
JAVA = '''public class Ask {
  public static void main(String[] words) throws Exception {
    System.out.println(new String(new java.net.URL(words[0]).openStream().readAllBytes()));
  }
}
'''
JAVA_CLIENT = '''import java.net.http.*;
public class Ask {
  public static void main(String[] words) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(java.net.URI.create(words[0])).build();
    System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
'''
GO = '''package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
    answer, failure := http.Get(os.Args[1])
    if failure != nil { fmt.Println(failure); os.Exit(1) }
    io.Copy(os.Stdout, answer.Body)
}
'''
ERLANG = '''
{:ok, _} = Application.ensure_all_started(:inets)
{:ok, _} = Application.ensure_all_started(:ssl)
trust = [ssl: [verify: :verify_peer, cacerts: :public_key.cacerts_get()]]
IO.inspect(:httpc.request(:get, {String.to_charlist(System.get_env("ASKED")), []}, trust, []))
'''
# The command, in a directory of its own with these files; $ASKED is the address.
CLIENTS = {
    'curl': ('curl -sS $ASKED', {}),
    'wget': ('wget -qO- $ASKED', {}),
    'python3': ("""python3 -c 'import os, urllib.request as r; print(r.urlopen(os.environ["ASKED"]).read())'""", {}),
    'node fetch': ("""node -e 'fetch(process.env.ASKED).then(a => a.text()).then(console.log)'""", {}),
    'node https': ("""node -e 'require("https").get(process.env.ASKED, a => a.on("data", d => console.log(String(d))))'""", {}),
    'php streams': ("""php -r 'echo file_get_contents(getenv("ASKED"));'""", {}),
    'php curl': ("""php -r '$c = curl_init(getenv("ASKED")); curl_exec($c); echo curl_error($c);'""", {}),
    'ruby': ("""ruby -ropen-uri -e 'puts URI.open(ENV["ASKED"]).read'""", {}),
    'R': ("""R -s -e 'cat(readLines(url(Sys.getenv("ASKED"), method = "libcurl"), warn = FALSE))'""", {}),
    'elixir': ('elixir ask.exs', {'ask.exs': ERLANG}),
    'go': ('./ask $ASKED', {'ask.go': GO}),
    'java': ('java Ask.java $ASKED', {'Ask.java': JAVA}),
    'java client': ('java Ask.java $ASKED', {'Ask.java': JAVA_CLIENT}),
}
INSTALLED = {'curl', 'wget', 'python3', 'node', 'php', 'ruby'}
# docs/reference/isolation.md names them.
UNTRUSTING = {'landlock': {'elixir'}}


class Trust(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix='trust-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        cls.base.chmod(0o755)
        cls.ports = {}
        for name in (NAME, 'localhost'):
            (cls.base / name).mkdir()
            _, leaf, key = make_certificates(str(cls.base / name), name)
            cls.ports[name] = Upstream(leaf, key).https
        cls.authority = cls.base / NAME / 'ca.pem'
        cls.clients = {name: client for name, client in CLIENTS.items()
                       if name.split()[0] in INSTALLED or shutil.which(name.split()[0])}
        cls.checkout = cls.base / 'checkout'
        for name, (command, files) in cls.clients.items():
            place = cls.checkout / name.replace(' ', '-')
            place.mkdir(parents=True)
            (place / 'ask.sh').write_text(command + '\n')
            for file, text in files.items():
                (place / file).write_text(text)
            if name == 'go':
                subprocess.run(['go', 'build', '-o', 'ask', 'ask.go'], cwd=place, check=True,
                               env=os.environ | {'CGO_ENABLED': '0', 'GOTOOLCHAIN': 'local', 'GO111MODULE': 'off'})
        (cls.base / 'policy.yml').write_text(f'defaults: none\nendpoints: ["{NAME}:{cls.ports[NAME]}"]\n')

    def script(self, host):
        """Asks with each client in turn, and prints a JSON line [client, answer] for each."""
        return ('import json, os, subprocess\n'
                f'os.environ["ASKED"] = "https://{host}:{self.ports[host]}/"\n'
                'os.environ.setdefault("TMPDIR", "/tmp")\n'
                f'for name in {list(self.clients)!r}:\n'
                '    done = subprocess.run(["sh", "ask.sh"], cwd=name.replace(" ", "-"), stdin=subprocess.DEVNULL,\n'
                '                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")\n'
                '    print(json.dumps([name, done.stdout]), flush=True)\n')

    def answers(self, output):
        return dict(json.loads(line) for line in output.splitlines() if line.startswith('["'))

    def inside(self, tier):
        done = subprocess.run(
            [BINARY, 'run', '--quiet', '--isolation', tier, '--workdir', self.checkout, '--report-dir', self.base / tier,
             '--ca-file', self.authority, '--policy', self.base / 'policy.yml', '--', 'python3', '-c', self.script(NAME)],
            capture_output=True, text=True, check=False)
        answers = self.answers(done.stdout)
        self.assertEqual(set(answers), set(self.clients), done.stdout + done.stderr)
        for name, answer in answers.items():
            with self.subTest(client=name, tier=tier):
                if name in UNTRUSTING.get(tier, ()):
                    self.assertNotIn(ANSWER, answer)
                else:
                    self.assertIn(ANSWER, answer)

    def test_every_client_trusts_the_run_s_authority_in_tier_namespaces(self):
        self.inside('namespaces')

    def test_every_client_trusts_the_run_s_authority_in_tier_landlock(self):
        self.inside('landlock')

    def test_none_trusts_the_server_outside(self):
        done = subprocess.run(['python3', '-c', self.script('localhost')], cwd=self.checkout, capture_output=True, text=True,
                              check=True, env={'PATH': os.environ['PATH'], 'HOME': str(self.base)})
        answers = self.answers(done.stdout)
        self.assertEqual(set(answers), set(self.clients))
        for name, answer in answers.items():
            with self.subTest(client=name):
                self.assertNotIn(ANSWER, answer)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
