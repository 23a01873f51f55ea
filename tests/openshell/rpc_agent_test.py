#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code with a gateway of OpenShell 0.1, the tests' own: the cases of agent_test.py.

usage: v01/run DIR ../rpc_agent_test.py BINARY AGENTS_DIRECTORY [unittest arguments]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

if os.geteuid() != 0:
    print('# SKIP gateway01: its sandboxes need root')
    sys.exit(4)
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
installed = subprocess.run([HERE.parent / 'agents/install', sys.argv[2], 'claude-code'], stdout=subprocess.PIPE, text=True)
if installed.returncode:
    sys.exit(installed.returncode)
sys.argv[2] = installed.stdout.strip()
import agent_test  # noqa: E402
import rpc_test  # noqa: E402


class Agent(rpc_test.Rpc, agent_test.Agent):
    def setUp(self):
        super().setUp()
        programs = pathlib.Path(self.gate.service.own_image, 'app')
        programs.mkdir()
        shutil.copy(agent_test.PROGRAM, programs)

    def access(self, model):
        """By the provider, whose profile has the header of its key."""
        self.env['ANTHROPIC_BASE_URL'] = f'http://host.openshell.internal:{model.port}'
        return ['--provider', 'anthropic', '--env', 'PATH=/app:/usr/bin:/bin']


if __name__ == '__main__':
    rpc_test.Case.BIN = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
