# SPDX-License-Identifier: Apache-2.0
"""Harbor, the real package: a task with agents that need no model, each network mode from inside, and refusals."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from clients_cases import HERE, PROGRAMS, Programs
from harness import BIN

PYTHON = os.environ.get('PROGRAMS_TEST_HARBOR', '')
LIB = os.environ.get('PROGRAMS_TEST_LIB', '') + '/harbor/lib'
HARBOR = 'from harbor.cli.main import app; app()'
NAMESPACES = ['unshare', '--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child',
              *(['--user', '--map-current-user', '--keep-caps'] if os.geteuid() else [])]
GIVES_NAMESPACES = subprocess.run([*NAMESPACES, 'true'], stderr=subprocess.DEVNULL).returncode == 0

SEPARATE = '''schema_version = "1.4"
artifacts = ["/app/hello.txt", "/app/replayed.txt"]

[verifier]
environment_mode = "separate"
timeout_sec = 600.0

[verifier.env]
EXPECTED = "Hello, world!"

[verifier.environment]

[agent]
network_mode = "no-network"
timeout_sec = 600.0
'''


@unittest.skipUnless(PYTHON, 'harbor: it, or a Python that it needs, cannot be had')
class Harbor(Programs):
    def setUp(self):
        super().setUp()
        own = pathlib.Path(self.base, 'own')
        for name in ('python', 'harbor'):
            shutil.copytree(PROGRAMS / name, own, dirs_exist_ok=True)
        self.env.update(PYTHONPATH=f'{own}:{LIB}', PYTHONDONTWRITEBYTECODE='1', LITELLM_LOCAL_MODEL_COST_MAP='True')

    # hello/solution/solve.sh is what the one does, and hello/tests/test.sh judges both.
    def test_agents_that_need_no_model_get_their_rewards(self):
        # The second has its verifier in an environment of its own, and no network for its agent.
        separate = shutil.copytree(HERE / 'hello', self.base + '/separate')
        pathlib.Path(separate, 'task.toml').write_text(SEPARATE)
        pathlib.Path(separate, 'tests/Dockerfile').write_text('FROM ubuntu:24.04\nWORKDIR /app\nCOPY . /tests/\n')
        config = {'job_name': 'job', 'jobs_dir': self.base + '/jobs', 'tasks': [{'path': str(HERE / 'hello')}, {'path': separate}],
                  'agents': [{'name': 'oracle'}, {'name': 'nop'}], 'n_concurrent_trials': 2,
                  'environment': {'import_path': 'agentic_ci_harbor:AgenticCi', 'kwargs': {'program': BIN}}}
        pathlib.Path(self.base, 'job.json').write_text(json.dumps(config))
        done = subprocess.run([PYTHON, '-c', HARBOR, 'run', '-c', self.base + '/job.json', '--quiet', '--yes'], env=self.env,
                              cwd=self.base, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rewards = {}
        for path in pathlib.Path(self.base, 'jobs/job').glob('*/result.json'):
            trial = json.loads(path.read_text())
            self.assertIsNone(trial['exception_info'], done.stdout + done.stderr)
            rewards[trial['task_name'].rpartition('/')[2], trial['agent_info']['name']] = trial['verifier_result']['rewards']['reward']
        self.assertEqual(rewards, {(task, agent): reward for task in ('hello', 'separate')
                                   for agent, reward in (('oracle', 1), ('nop', 0))}, done.stdout)
        self.assertFalse(any(os.path.exists(path) for path in ('/logs', '/solution')))

    def test_an_image_is_all_that_a_task_has(self):
        sys.path.append(str(HERE.parent / 'image_run'))
        import images
        shelf = images.Shelf()
        self.addCleanup(shelf.close)
        image = shelf.image(layers=[[(name, None) for name in ('logs', 'tests', 'solution', 'runtime', 'app')]])
        shelf.cosign(image)
        pathlib.Path(self.base, 'key.pub').write_bytes(images.OURS.pem)
        options = {'image': shelf.reference(image), 'create': {'image-key': self.base + '/key.pub', 'insecure-registry': shelf.host}}
        done = subprocess.run([PYTHON, str(HERE / 'image.py'), BIN, json.dumps(options)], env=self.env, cwd=self.base,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, 'done\n'), done.stdout + done.stderr)

    def test_what_cannot_be_enforced_is_refused(self):
        done = subprocess.run([PYTHON, str(HERE / 'refusals.py'), BIN], env=self.env, cwd=self.base, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, 'done\n'), done.stdout + done.stderr)

    @unittest.skipUnless(GIVES_NAMESPACES, 'userns: this machine gives no network namespace')
    def test_each_network_mode_from_inside(self):
        done = subprocess.run([*NAMESPACES, PYTHON, str(HERE / 'network.py'), BIN], env={**self.env, 'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'},
                              cwd=self.base, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, 'done\n'), done.stdout + done.stderr)
