#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on the built binary, each denial beside a control that passes.

attack_test.py AGENTIC_CI [WORD]   (only the cases whose name holds WORD are counted)

The attackers are: everything in the sandbox (inside.py), an allowed server (upstream.py), the content of a
pull request, and a report directory from somewhere else. All traffic stays on loopback.
"""
import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from upstream import Upstream  # noqa: E402

BINARY = os.path.abspath(sys.argv[1])
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
SECRET = "s3cret-v4lue-of-the-host"
PYTHON = "/usr/bin/python3"
UNSUPPORTED = 69  # runner/base/exit_code.h
counts = {True: 0, False: 0}

POLICY = """version: 1
network_policies:
  api:
    endpoints:
      - host: host.openshell.internal
        port: {port}
        protocol: rest
        enforcement: enforce
        rules:
          - allow: {{method: GET, path: "/ok/**"}}
          - allow: {{method: POST, path: "/ok/**"}}
          - allow: {{method: "*", path: "/trace/**"}}
      - {{host: host.openshell.internal, port: {port}, path: /ok/not-websocket, protocol: websocket, enforcement: enforce, access: full}}
      - {{host: host.docker.internal, port: {port}, protocol: rest, enforcement: enforce, access: full}}
    binaries: [{{path: {python}}}]
"""
NAMED = """version: 1
network_policies:
  api:
    endpoints:
      - {{host: host.openshell.internal, port: {port}}}
      - {{host: 127.0.0.1, port: {port}}}
      - {{host: "::1", port: {port}}}
      - {{host: 169.254.169.254, port: {port}}}
      - {{host: 0.0.0.0, port: {port}}}
      - {{host: localhost, port: {port}}}
      - {{host: a.localhost, port: {port}}}
      - {{host: "*.containers.internal", port: {port}}}
    binaries: [{{path: {python}}}]
"""


def check(name, passed, shown=""):
    if ONLY not in name:
        return
    counts[bool(passed)] += 1
    if not passed:
        print("FAILED: %s %s" % (name, shown), flush=True)


def command(*words, **options):
    """Ends for certain: a hang is a finding, not a reason to wait."""
    environment = {"PATH": os.environ["PATH"], "KEY": SECRET, **options.pop("env", {})}
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, timeout=600, **options)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return "hangs", (late.stdout or b"").decode(errors="replace")


def make_checkout(folder, **files):
    os.makedirs(folder)
    command("git", "init", "-q", folder)
    for name, content in {"README": "control\n", **files}.items():
        with open(os.path.join(folder, name), "w") as out:
            out.write(content)
    return folder


def attack(top, part, policy, server):
    """The results of one part of inside.py by name, and the report directory."""
    checkout = make_checkout(top + "/" + part)
    shutil.copy(HERE + "/inside.py", checkout)
    with open(top + "/policy.yaml", "w") as out:
        out.write(policy.format(port=server.port, python=PYTHON))
    report = top + "/report-" + part
    status, text = command(BINARY, "run", "--workdir", checkout, "--policy", top + "/policy.yaml", "--report-dir", report,
                           "--timeout", "300s", "--secret", "KEY@host.openshell.internal", "--",
                           PYTHON, checkout + "/inside.py", part, str(server.port), str(server.port))
    results = {}
    for line in text.splitlines():
        if line.startswith("RESULT "):
            facts = json.loads(line[len("RESULT "):])
            results[facts.pop("name")] = facts
    check(part + ": the run itself", status == 0 and results, text[-600:])
    return results, report


def wire(top):
    server = Upstream()
    results, _ = attack(top, "wire", POLICY, server)
    for name, facts in results.items():
        kind = name.split(":")[0]
        if kind == "passes" or name.endswith("control"):
            check(name, facts["statuses"] == [200], facts)
        elif kind in ("refused", "broken"):
            check(name, all(status in (0, 400, 403) for status in facts["statuses"]), facts)
        elif kind == "destination":
            check(name, facts["status"] in (400, 403), facts)
        elif kind == "reachable":
            check(name, facts["status"] == 200, facts)
        elif name == "server: second-answer":
            check(name, facts["first"] and facts["second"], facts)
        elif kind == "server":
            check(name, facts["statuses"] in ([502], [103]), facts)
    check("pipelined", results.get("pipelined", {}).get("statuses") == [200, 403], results.get("pipelined"))
    check("forward", results.get("forward") == {"status": 200, "answers": 1}, results.get("forward"))
    check("forward denied", results.get("forward denied") == {"status": 403, "answers": 1}, results.get("forward denied"))
    targets = [head.split(" ")[1] for head, _ in server.requests]
    check("control: requests arrived", len(targets) >= 20, len(targets))
    check("nothing was smuggled", all(target.startswith("/ok/") for target in targets), targets)
    check("nothing but requests arrived", server.rest == [], server.rest)
    heads = "\n".join(head for head, _ in server.requests).lower()
    check("hop-by-hop fields stay here", "x-a:" not in heads and "expect:" not in heads and "content-length: 99" not in heads)
    bodies = [body for _, body in server.requests if body.startswith(b"GET /denied/smuggled")]
    check("control: a body may look like a request", len(bodies) == 3, len(bodies))


def named(top):
    server = Upstream()
    results, _ = attack(top, "named", NAMED, server)
    check("named control", results.get("named control", {}).get("status") == 200, results)
    for name, facts in results.items():
        if name.startswith("named: "):
            check(name, facts["status"] == 403 and facts["ssrf"], facts)
    check("named: all of them", len(results) == 8, len(results))


def rest(top):
    server = Upstream()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0agentic-ci-attack")
    listener.listen()
    with socket.socket(socket.AF_UNIX) as control:
        control.connect("\0agentic-ci-attack")
        check("control: abstract socket outside", True)
    results, report = attack(top, "rest", POLICY, server)
    check("identity: python", results["identity: python"]["said"] == "HTTP/1.1 200", results["identity: python"])
    for name in ("bash", "copy", "strange"):
        check("identity: " + name, results["identity: " + name]["said"] == "HTTP/1.1 403", results["identity: " + name])
    with open(report + "/run.json") as file:
        binaries = [denial["binary"] for denial in json.load(file)["denials"]]
    check("identity: control, the report names a refused program", "/tmp/python3" in binaries, binaries)
    shown = [binary for binary in binaries if binary.startswith("/tmp/strange")]
    check("identity: a line end in its name keeps no program out of the report",
          len(shown) == 1 and "\n" not in shown[0], binaries)
    wanted = {"header": 200, "basic": 200, "query": 200, "body": 500, "body control": 200, "unknown": 500, "half": 500, "prefix": 500, "case": 200,
              "trace": 403, "trace control": 200, "another host": 403, "another host, control": 200}
    for name, status in wanted.items():
        facts = results.get("credential: " + name)
        check("credential: " + name, facts == {"statuses": [status]}, facts)
    check("credential: environment", SECRET not in results["credential: environment"]["value"])
    sent = {line.split(": ")[1]: (head, body) for head, body in server.requests for line in head.split("\r\n")
            if line.startswith("X-Sent: ")}
    check("credential: whole header arrives", "Bearer " + SECRET in sent["whole"][0])
    check("credential: Basic arrives", base64.b64encode(b"x:" + SECRET.encode()).decode() in sent["basic"][0])
    check("credential: query arrives", "key=" + SECRET in sent["query"][0])
    check("credential: a body with a placeholder never leaves", "body" not in sent and "body control" in sent)
    check("credential: another case is no placeholder", SECRET not in sent["case"][0])
    check("credential: TRACE never leaves", "trace" not in sent and "control" in sent)
    leaks = [name for name in os.listdir(report) if SECRET.encode() in open(report + "/" + name, "rb").read()]
    check("credential: not in the report", leaks == [], leaks)
    check("control: the report has records", os.path.getsize(report + "/events.ocsf.jsonl") > 1000)
    for name, facts in results.items():
        if name in ("kernel: socket control", "kernel: alive"):
            check(name, facts["said"] == "ok", facts)
        elif name == "kernel: descriptors":
            check(name, facts["open"] == [], facts)
        elif name.startswith("kernel: "):
            check(name, facts["said"] in ("EPERM", "EACCES", "ECONNREFUSED") + ("ENOSYS",) * (name == "kernel: keyctl") +
                  ("EAFNOSUPPORT",) * ("netlink" in name), facts)
    full = results.get("exhaustion: full", {})
    check("exhaustion: more than 1024 are turned away", full.get("busy", 0) >= 200, full)
    check("exhaustion: afterwards", results.get("exhaustion: afterwards") == {"statuses": [200]}, results.get("exhaustion: afterwards"))


def pull_request(top):
    """What a pull request or an earlier step can put into the checkout."""
    def run(checkout, *words, program="echo b > made"):
        began = time.monotonic()
        status, text = command(BINARY, "run", "--timeout", "300s", *words, "--", "/bin/sh", "-c", program, cwd=checkout)
        return status, time.monotonic() - began, text

    def changed(checkout):
        with open(checkout + "/agentic-ci-report/changes.json") as file:
            return [entry["path"] for entry in json.load(file)["files"]]

    plain = make_checkout(top + "/plain", **{".gitignore": "*.o\n**/build/**\n"})
    status, _, text = run(plain, program="echo b > made; echo c > made.o")
    check("pull request: control", status == 0 and changed(plain) == ["made"], text)

    bomb = make_checkout(top + "/bomb", **{".gitignore": ("**/" * 30 + "*a" * 30 + "z\n") * 50})
    deep = "d=%s; mkdir -p $d; for i in 1 2 3; do echo b > $d/%s$i; done" % ("/".join(["a" * 40] * 20), "a" * 200)
    status, seconds, text = run(bomb, program=deep)
    check("pull request: ignore rules of exponential cost", status == 0 and seconds < 60, (status, seconds, text[-300:]))
    check("pull request: rules that are not asked hide nothing", len(changed(bomb)) == 3)

    os.mkfifo(top + "/pipe")
    linked = make_checkout(top + "/linked")
    os.symlink(top + "/pipe", linked + "/.gitignore")
    status, seconds, text = run(linked)
    check("pull request: .gitignore leads to a pipe", status == 0 and seconds < 60, (status, seconds, text[-300:]))

    piped = make_checkout(top + "/piped")
    os.makedirs(piped + "/.git/modules/m")
    os.mkfifo(piped + "/.git/modules/m/config")
    status, seconds, text = run(piped)
    check("pull request: a pipe for a submodule's configuration", status == 0 and seconds < 60, (status, seconds, text[-300:]))
    os.unlink(piped + "/.git/config")
    os.mkfifo(piped + "/.git/config")
    status, seconds, text = run(piped)
    check("pull request: a pipe for the configuration", status == 65 and seconds < 60, (status, seconds, text[-300:]))

    nested = make_checkout(top + "/nested")
    program = "i=0; while [ $i -lt 600 ]; do mkdir d && cd d; i=$((i+1)); done; echo b > f"
    status, seconds, text = run(nested, program=program)
    check("pull request: a deep tree is told of, not walked", status == 77 and seconds < 60, (status, seconds, text[-300:]))

    led = make_checkout(top + "/led")
    os.makedirs(led + "/agentic-ci-report")
    os.symlink("/etc/hostname", led + "/agentic-ci-report/also.txt")
    status, _, text = run(led)
    check("pull request: a link in the report directory", status != 0 and "may contain only files" in text, text)
    os.unlink(led + "/agentic-ci-report/also.txt")
    os.symlink("/etc/hostname", led + "/agentic-ci-report/run.json")
    status, _, text = run(led)
    stays = os.path.islink(led + "/agentic-ci-report/run.json")
    check("pull request: a link for a part of the report is refused and stays", status == 77 and stays, text)
    os.unlink(led + "/agentic-ci-report/run.json")
    status, _, text = run(led)
    check("pull request: control of the report directory", status == 0, text)

    git = make_checkout(top + "/git")
    status, _, text = run(git, "--apply", program="echo x > .git/hooks/pre-commit; echo x >> .git/config; mkdir -p .GIT s/.git; "
                          "echo x > .GIT/config; echo x > s/.git/config; echo y > made")
    hooks = os.path.exists(git + "/.git/hooks/pre-commit") or os.path.exists(git + "/s") or os.path.exists(git + "/.GIT")
    check("pull request: nothing gets into .git", not hooks, text)
    check("pull request: control of apply", status == 0 and os.path.exists(git + "/made"), text)


def hostile_report(top):
    """`agentic-ci post` of a directory that somebody else filled. No server listens: 75 is the good end."""
    base = top + "/plain/agentic-ci-report"

    def post(name, spoil, wanted):
        folder = top + "/hostile"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(base, folder)
        spoil(folder)
        status, text = command(BINARY, "post", folder, "--repository", "a/b", "--number", "1", "--api-url", "http://127.0.0.1:9",
                               env={"GITHUB_TOKEN": "x"})
        check("report: " + name, status == wanted, (status, text[-300:]))

    def instead(name, make):
        def spoil(folder):
            os.unlink(folder + "/" + name)
            make(folder + "/" + name)
        return spoil

    def write(path, text):
        with open(path, "w") as out:
            out.write(text)

    def sparse(path):
        write(path, "")
        os.truncate(path, 1 << 40)

    post("control", lambda folder: None, 75)
    post("a pipe", instead("run.json", os.mkfifo), 65)
    post("a pipe for the patch", instead("changes.patch", os.mkfifo), 65)
    post("a link", instead("run.json", lambda path: os.symlink(base + "/run.json", path)), 65)
    post("a device", instead("run.json", lambda path: os.symlink("/dev/zero", path)), 65)
    post("nesting", instead("run.json", lambda path: write(path, "[" * 3000000)), 65)
    post("a terabyte", instead("run.json", sparse), 65)
    post("a terabyte of patch", instead("changes.patch", sparse), 65)


def main():
    top = tempfile.mkdtemp(prefix="attack-")
    status, text = command(BINARY, "run", "--workdir", make_checkout(top + "/first"), "--report-dir", top + "/report-first",
                           "--", "/bin/true")
    if status == UNSUPPORTED:
        shutil.rmtree(top)
        print("# SKIP userns: no sandbox on this machine: " + " ".join(text[-300:].split()))
        sys.exit(4)
    try:
        for part in (wire, named, rest, pull_request, hostile_report):
            try:
                part(top)
            except Exception as error:  # noqa: BLE001 - a broken part must not hide the others
                check(part.__name__ + " ran to its end", False, repr(error))
    finally:
        shutil.rmtree(top, ignore_errors=True)
    if not any(counts.values()):
        print("FAILED: no check is called " + ONLY)
    print("%d passed, %d failed" % (counts[True], counts[False]))
    sys.exit(counts[False] > 0 or counts[True] == 0)


main()
