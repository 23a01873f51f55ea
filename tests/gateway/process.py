# SPDX-License-Identifier: Apache-2.0
"""The gateway as a process: confined, bounded, ended in order."""
import os
import subprocess
import sys
import time

from stage import PROXY, connect_proxy, contains, curl, equal, gateway_pid, run, stage, unanswered


def open_files():
    folder = "/proc/%d/fd/" % gateway_pid()
    for fd in os.listdir(folder):
        try:
            yield os.readlink(folder + fd)
        except FileNotFoundError:  # Closed meanwhile.
            continue


def test_the_process_is_confined():
    status = open("/proc/%d/status" % gateway_pid()).read()
    contains(status, "NoNewPrivs:\t1")
    if "Seccomp:\t2" not in status:
        contains(subprocess.run(["nm", "-D", sys.argv[1]], stdout=subprocess.PIPE).stdout.decode(), "asan")
    environment = open("/proc/%d/environ" % gateway_pid(), "rb").read()
    equal(environment.strip(b"\0"), b"")
    names = list(open_files())
    assert names
    strange = [n for n in names if not n.startswith(("socket:", "anon_inode:[eventpoll]", stage().folder, "/dev/null"))
               and "pipe" not in n and not n.startswith(("/dev/pts", "/tmp"))]
    equal(strange, [])


def test_slow_and_silent_connections_do_not_block_others():
    silent = [connect_proxy() for _ in range(40)]
    slow = connect_proxy()
    slow.sendall(b"CONNECT api.exa")
    equal(curl("https://api.example.test/echo").status, 200)
    assert unanswered(silent + [slow])
    for connection in silent + [slow]:
        connection.close()


def test_it_says_why_it_does_not_start():
    done = subprocess.run([sys.argv[1], stage().folder + "/policy.yaml", stage().folder + "/policy.yaml", stage().folder,
                           PROXY[0], "3129", str(os.getpid())], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    equal((done.returncode, done.stderr),
          (1, b"gateway_driver: starting the gateway: the CA bundle contains no certificates\n"))


def test_it_ends_when_its_supervisor_dies():
    out = stage().folder + "/other"  # Whose certificate authority is not ours.
    os.mkdir(out)
    other = stage().start([os.path.abspath(sys.argv[1]), stage().folder + "/policy.yaml", stage().folder + "/trusted.pem",
                           out, PROXY[0], "3130", str(os.getpid())])
    stage().expect_ready(other)
    pid = int(open("/proc/%d/task/%d/children" % (other.pid, other.pid)).read().split()[0])
    other.kill()
    other.wait()
    for _ in range(2400):
        try:
            gone = open("/proc/%d/stat" % pid).read().split(")")[1].split()[0] == "Z"
        except OSError:
            gone = True
        if gone:
            return
        time.sleep(0.05)
    raise AssertionError("the gateway outlives its supervisor")


def test_it_ends_in_order():
    """Last: the gateway finishes when the supervisor says so, with every record written."""
    stage().gateway.stdin.close()
    equal(stage().gateway.wait(60), 0)
    for event in stage().events():
        for key in ("class_uid", "time", "severity_id", "unmapped"):
            assert key in event
    equal(len(stage().events()), stage().log().count("\n"))
