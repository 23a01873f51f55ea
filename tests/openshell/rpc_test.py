#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds of every backend, with a gateway of OpenShell 0.1: the tests' own (v01/), on which nothing of OpenShell's runs.

usage: v01/run DIR ../rpc_test.py BINARY [unittest arguments]
"""
import json
import os
import pathlib
import shutil
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent / 'v01')]
from gateway import Gateway  # noqa: E402

import backend_test  # noqa: E402
import lasting_test  # noqa: E402
from real import SECRET, Case, read, wait_until  # noqa: E402


class Rpc(Case):
    """Each case has a gateway of its own; no `openshell` is on the PATH."""
    NAME = 'openshell'
    setUpClass = classmethod(lambda cls: None)
    HOST_ADDRESSES = {}  # There, it is exact.

    def setUp(self):
        super().setUp()
        self.gate = self.begin_gateway(tls=self.base + '/keys')
        keys = pathlib.Path(self.base, 'certs')
        keys.mkdir()
        for name, source in (('ca.crt', 'ca.crt'), ('tls.crt', 'user.crt'), ('tls.key', 'user.key')):
            shutil.copy(self.base + '/keys/' + source, keys / name)
        self.OPTIONS = ('--gateway', self.gate.url, '--gateway-tls', str(keys))

    def program(self, denied):
        """A record of a name that no endpoint has is of no program."""
        self.assertEqual(denied['binary'], '')
        return 'curl'

    def begin_gateway(self, **options):
        gate = Gateway(**{'load_s': 0.05, 'release': '0.1.10'} | options).__enter__()
        self.addCleanup(gate.__exit__)
        return gate

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.gate.violations, [])
        # Nothing is left on the gateway.
        wait_until(lambda: not self.gate.service.sandboxes)
        self.assertEqual(list(self.gate.service.sandboxes), [])


class Runs(Rpc, backend_test.Backend):
    """The suite of every backend."""


class Files(Rpc, lasting_test.Files):
    """Files in and out of a lasting sandbox, as with the real 0.0."""


class Policy(Rpc, lasting_test.Policy):
    """Another policy for a lasting sandbox, likewise."""


if __name__ == '__main__':
    Case.BIN = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
