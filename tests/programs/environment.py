# SPDX-License-Identifier: Apache-2.0
"""Harbor's environment of agentic-ci, as its trials construct it."""
import atexit
import pathlib
import shutil
import tempfile

from agentic_ci_harbor import AgenticCi
from harbor.models.task.config import EnvironmentConfig, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

PLACE = pathlib.Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, PLACE, ignore_errors=True)


def construct(program, dockerfile='FROM debian\nWORKDIR /app\n', network=None, phases=(), files=(), config=None, **options):
    place = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
    for name, text in {'Dockerfile': dockerfile, **dict(files)}.items():
        if text is not None:
            (place / name).write_text(text)
    return AgenticCi(environment_dir=place, environment_name='test', session_id='test', trial_paths=TrialPaths(place / 'trial'),
                     task_env_config=EnvironmentConfig(**(config or {})), network_policy=network, program=program,
                     phase_network_policies=phases, **options)


def allowlist(*hosts):
    return NetworkPolicy(network_mode='allowlist', allowed_hosts=list(hosts))
