#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway process with real clients (curl, raw sockets, Python's TLS) and real servers.

Usage: gateway_test.py GATEWAY_DRIVER [TEST_NAME...]

Everything happens in namespaces of the test's own: this script enters a network and a mount namespace
(with a user namespace when it is not root), where the proxy listens on 10.200.0.1:3128 as in a sandbox,
and starts the servers in a second network namespace behind a veth pair, 10.77.0.0/24.
"""
import os
import sys

import connections
import exchanges
import faults
import live
import process
from stage import enter_namespaces, open_stage, stage

# The last test of the last one ends the gateway.
TOPICS = (connections, exchanges, faults, live, process)


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 64
    enter_namespaces()
    os.environ.pop("GATEWAY_TEST_INSIDE")
    wanted = sys.argv[2:]
    tests = [(name, body) for topic in TOPICS for name, body in vars(topic).items()
             if name.startswith("test_") and (not wanted or name in wanted)]
    if not tests:
        print("FAILED: no test is called %s" % " or ".join(wanted))
        return 1
    open_stage(os.path.abspath(sys.argv[1]))
    failed = 0
    try:
        for name, body in tests:
            try:
                body()
            except Exception as problem:  # Any failure is one test's failure.
                failed += 1
                print("FAILED %s: %s: %s" % (name, type(problem).__name__, str(problem)[:1500]), flush=True)
    finally:
        if failed and os.environ.get("GATEWAY_TEST_LOG"):
            print(stage().log())
        stage().close()
    print("gateway: %d passed, %d failed" % (len(tests) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
