# SPDX-License-Identifier: Apache-2.0
"""In a container: things that an agent is not to reach, runs beside them, and what came of it as one JSON object."""
import glob
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, '/containment')
import outside  # noqa: E402
import probes as _  # noqa: E402,F401: fills the table.
import table  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = '/runner/agentic-ci'
BASE = tempfile.mkdtemp(dir='/tmp')
NAME = 'host.openshell.internal'
SEEN = {'left': {}}
MARKER = 'marker-of-the-agent'
GIT = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main']


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        file.write(text)
    os.chmod(path, mode)
    return path


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def web():
    """HTTP and HTTPS on loopback, with a repository for git; (ports, certificate)."""
    site = BASE + '/site'
    write(site + '/hello', 'heard\n')
    work = BASE + '/work'
    os.mkdir(work)
    write(work + '/file', 'from git\n')
    for line in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'one']):
        subprocess.run([*GIT, *line], cwd=work, check=True)
    subprocess.run([*GIT, 'clone', '-q', '--bare', work, site + '/repo.git'], check=True)
    subprocess.run([*GIT, 'update-server-info'], cwd=site + '/repo.git', check=True)
    key, certificate = BASE + '/key.pem', BASE + '/certificate.pem'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                    '-keyout', key, '-out', certificate, '-days', '2', '-subj', f'/CN={NAME}',
                    '-addext', f'subjectAltName=DNS:{NAME}'], check=True, capture_output=True)
    ports = []
    for secure in (False, True):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), lambda *a: Handler(*a, directory=site))
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        ports.append(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return ports, certificate


def checkout():
    path = tempfile.mkdtemp(dir=BASE) + '/checkout'
    for name in ('a.txt', 'gone.txt', 'dir/one', 'dir/two', 'same.txt', 'left/x', 'right/x', 'tool'):
        write(f'{path}/{name}', name[-3:] + '\n' if name.endswith('/x') else f'content of {name}\n')
    write(path + '/left/x', 'left \n')
    write(path + '/right/x', 'right\n')
    for name in ('left/x', 'right/x', 'same.txt'):
        os.utime(f'{path}/{name}', (1000000000, 1000000000))
    write(path + '/.gitignore', 'ignored\n')
    for line in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'one']):
        subprocess.run([*GIT, *line], cwd=path, check=True)
    return path


def snapshot(path):
    found = []
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            st = os.stat(os.path.join(folder, name))
            found.append((os.path.join(folder, name), st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns))
    return sorted(found)


def start(command, options=(), where=None, environment=None, report=None):
    where = where or checkout()
    report = report or tempfile.mkdtemp(dir=BASE) + '/report'
    line = [RUNNER, 'run', '--isolation', 'landlock', '--workdir', where, '--report-dir', report, *options, '--', *command]
    process = subprocess.Popen(line, cwd=BASE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors='replace',
                               env={'PATH': os.environ['PATH'], 'HOME': BASE, 'TMPDIR': '/var/tmp', **(environment or {})})
    process.report = report
    return process


def run(command, options=(), where=None, code=0, environment=None, report=None):
    process = start(command, options, where, environment, report)
    out, err = process.communicate(timeout=600)
    assert code is None or process.returncode == code, f'{process.returncode}\n{err[-2000:]}\n{out[-2000:]}'
    return out, process.report


def marked():
    found = []
    for entry in os.listdir('/proc'):
        try:
            with open(f'/proc/{entry}/cmdline', errors='replace') as file:
                line = file.read()
            with open(f'/proc/{entry}/stat') as file:
                state = file.read().rsplit(')', 1)[1].split()[0]
        except OSError:
            continue
        if entry.isdigit() and MARKER in line and RUNNER not in line and state != 'Z':
            found.append(int(entry))
    return found


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def answers(text):
    groups = {}
    for line in text.splitlines():
        if line.startswith('['):
            group, name, answer = json.loads(line)
            groups.setdefault(group, {})[name] = answer
    return groups


def probes():
    """The table's, inside and outside, and what programs need."""
    where = checkout()
    shutil.copytree('/containment', where, dirs_exist_ok=True)
    shutil.copy(HERE + '/allowed.py', where)
    os.makedirs('/var/tmp/outside')
    os.makedirs('/shown/exposed')
    policy = write(BASE + '/policy-files.yml', 'version: 1\nfilesystem_policy:\n  include_workdir: true\n'
                   '  read_only: [/usr, /etc, /shown, /setuid]\n  read_write: [/tmp]\n')
    probes = table.every_probe()
    environment = {'JOB_TOKEN': outside.CANARY}
    with outside.Outside('/var/tmp/outside', '/shown/exposed', where, '/setuid/id') as host:
        out, _ = run(['python3', 'allowed.py', json.dumps(host.facts)], ['--policy', policy], where)
        SEEN['allowed'] = answers(out)
        write(where + '/facts.json', json.dumps(dict(host.facts, report=BASE + '/report-of-probes')))
        # The gates refuse what is written in the checkout.
        SEEN['inside'] = host.answers(probes, lambda: run(
            ['python3', 'probes.py', 'facts.json'], ['--policy', policy], where, 77, environment,
            BASE + '/report-of-probes')[0])
        SEEN['connections inside'] = list(host.connections)
        SEEN['outside'] = host.answers(probes, lambda: subprocess.run(
            [sys.executable, 'probes.py', 'facts.json', 'control'], cwd=where, capture_output=True, text=True, timeout=600,
            env={'PATH': os.environ['PATH'], 'HOME': BASE, 'TMPDIR': BASE, **environment}).stdout)


# What is there on the machine, each as: how it is asked, what it says when it was served.
CLIENTS = '''
say() { name="$1"; wanted="$2"; shift 2; answer="$("$@" 2>/dev/null | grep . | tail -1)"; echo "@$name|$answer|$wanted"; }
say "curl through the proxy" heard curl -s -m 10 http://NAME:PLAIN/hello
say "curl without" heard curl -s -m 10 --noproxy '*' http://NAME:PLAIN/hello
say "curl over tls" heard curl -s -m 10 --noproxy '*' https://NAME:SECURE/hello
say "curl over tls through the proxy" heard curl -s -m 10 https://NAME:SECURE/hello
say "curl of another name" "" curl -s -m 10 --noproxy '*' http://elsewhere.example.com/hello
say "curl of an address" "" curl -s -m 10 --noproxy '*' http://203.0.113.7/hello
say "curl of loopback" "" curl -s -m 10 --noproxy '*' http://127.0.0.1:PLAIN/hello
say "wget" "" wget -q -T 10 -t 1 -O - http://NAME:PLAIN/hello
say "python" heard python3 -c 'import urllib.request as u; print(u.urlopen("https://NAME:SECURE/hello").read().decode())'
say "python without a proxy" heard env -u http_proxy -u HTTP_PROXY python3 -c 'import urllib.request as u; print(u.urlopen("http://NAME:PLAIN/hello").read().decode())'
say "python with asyncio" heard python3 -c '
import asyncio
async def main():
    reader, writer = await asyncio.open_connection("NAME", PLAIN)
    writer.write(b"GET /hello HTTP/1.0\\r\\nHost: NAME:PLAIN\\r\\n\\r\\n")
    print((await reader.read()).decode())
asyncio.run(main())'
say "git" "from git" sh -c 'git clone -q https://NAME:SECURE/repo.git cloned && cat cloned/file'
say "names" yes sh -c 'getent ahosts NAME | grep -q "^198" && echo yes'
say "a name of nobody" "" getent hosts elsewhere.example.com
say "bash" heard bash -c 'exec 3<>/dev/tcp/NAME/PLAIN; printf "GET /hello HTTP/1.0\\r\\nHost: NAME:PLAIN\\r\\n\\r\\n" >&3; cat <&3'
if command -v node >/dev/null; then
  say "node" heard node -e 'fetch("http://NAME:PLAIN/hello").then(r => r.text()).then(t => console.log(t.trim()))'
  say "node, twenty at once" 20 node -e 'const h = require("http"); let n = 0; for (let i = 0; i < 20; i++)
    h.get({host: "NAME", port: PLAIN, path: "/hello", agent: false}, r => { r.resume(); r.on("end", () => { if (++n == 20) console.log(n); }); });'
fi
say "chmod and npm's way of unpacking" done sh -c 'tar cf x.tar -C /usr/share/doc/bash . && mkdir t && tar xpf x.tar -C t && cp -a t u && touch -d 2001-01-01 u && git init -q g && git -C g config a.b c && echo done'
'''


def clients(ports, certificate):
    http_port, https_port = ports
    program = lambda name: os.path.realpath(shutil.which(name) or '/usr/bin/' + name)
    binaries = [program(name) for name in ('curl', 'python3', 'git', 'bash', 'node', 'getent')] + ['/usr/lib/git-core/**']
    policy = write(BASE + '/policy.yml', 'version: 1\nnetwork_policies:\n  web:\n    endpoints:\n' + ''.join(
        f'      - {{host: {NAME}, port: {port}, protocol: rest, enforcement: enforce, access: read-only}}\n'
        for port in ports) + '    binaries:\n' + ''.join(f'      - {{path: "{path}"}}\n' for path in binaries))
    script = CLIENTS.replace('NAME', NAME).replace('SECURE', str(https_port)).replace('PLAIN', str(http_port))
    # The shell that starts a program counts as its ancestor; only the program itself is let through.
    out, report = run(['sh', '-c', script], ['--policy', policy, '--ca-file', certificate], code=None)
    SEEN['clients'] = {}
    for line in out.splitlines():
        if line.startswith('@'):
            name, answer, wanted = line[1:].split('|')
            SEEN['clients'][name] = [answer, wanted]
    with open(report + '/events.log') as file:
        SEEN['log'] = file.read()


def changes():
    where = checkout()
    before = snapshot(where)
    script = '''echo more >> a.txt; rm gone.txt; mv dir moved; echo new > new.txt; echo no > ignored; chmod +x tool
        printf 'Content of same.txt\\n' > same.txt; touch -d @1000000000 same.txt
        mv left tmp; mv right left; mv tmp right; ln -s a.txt link; mkfifo pipe; mkdir empty'''
    _, report = run(['sh', '-ec', script], where=where)
    with open(report + '/changes.json') as file:
        record = json.load(file)
    SEEN['changes'] = sorted([change['state'], change['path']] for change in record['files'])
    SEEN['changes wanted'] = sorted([['modified', 'a.txt'], ['deleted', 'gone.txt'], ['renamed', 'moved/one'],
                                     ['renamed', 'moved/two'], ['created', 'new.txt'], ['modified', 'tool'],
                                     ['modified', 'same.txt'], ['modified', 'left/x'], ['modified', 'right/x'],
                                     ['created', 'link']])
    SEEN['checkout before'], SEEN['checkout after'] = before, snapshot(where)
    with open(report + '/run.json') as file:
        SEEN['record'] = json.load(file)
    with open(report + '/summary.md') as file:
        SEEN['summary first lines'] = file.read()[:1500]


DAEMON = ['python3', '-c', '''
import os, sys, time
for i in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(60)
        os._exit(0)
if sys.argv[2] == "stay": time.sleep(60)
''', MARKER]


def await_agent(process):
    if not wait_until(lambda: len(marked()) >= 4, 120):
        left = marked()
        process.kill()
        raise AssertionError((left, process.communicate()))


def ends():
    """However a run ends, nothing of it is left a moment later."""
    def ended(name):
        wait_until(lambda: not marked(), 120)
        SEEN['left'][name] = marked()
        for pid in marked():
            os.kill(pid, signal.SIGKILL)
    run([*DAEMON, 'go'])
    ended('the agent ends')
    run([*DAEMON, 'stay'], ['--timeout', '1s'], code=None)
    ended('time limit')
    for name, number in (('SIGTERM', signal.SIGTERM), ('SIGKILL', signal.SIGKILL)):
        process = start([*DAEMON, 'stay'])
        await_agent(process)
        process.send_signal(number)
        process.communicate(timeout=600)
        ended(name)
    process = start([*DAEMON, 'stay'])
    await_agent(process)
    children = open(f'/proc/{process.pid}/task/{process.pid}/children').read().split()
    first = [pid for pid in children if open(f'/proc/{pid}/comm').read().strip() != 'gateway']
    os.kill(int(first[0]), signal.SIGKILL)
    process.communicate(timeout=600)
    ended('SIGKILL of the first process')


def storm():
    bomb = 'import os, time\nend = time.time() + 4\nwhile time.time() < end:\n    try: os.fork()\n    except OSError: time.sleep(0.01)'
    _, report = run(['python3', '-c', bomb, MARKER], ['--pids', '64', '--timeout', '20s'], code=None)
    with open(report + '/run.json') as file:
        SEEN['storm'] = {'kind': json.load(file)['outcome']['kind']}
    wait_until(lambda: not marked(), 120)
    SEEN['storm']['left'] = marked()


def main():
    probes()
    ports, certificate = web()
    clients(ports, certificate)
    changes()
    ends()
    storm()
    with open('/proc/self/status') as file:
        SEEN['status outside'] = dict(line.split(':\t', 1) for line in file.read().splitlines() if ':\t' in line)
    SEEN['scratch left'] = glob.glob('/var/tmp/agentic-ci-scratch*')
    print(json.dumps(SEEN))


main()
