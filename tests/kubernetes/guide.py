# SPDX-License-Identifier: Apache-2.0
"""What a guide shows, and typing it on a cluster."""
import os
import re
import subprocess

LINE_SECONDS = 180
BLOCK = re.compile(r'```(sh|yaml|console)\n(.*?)```\n', re.DOTALL)


def type_line(cluster, line, directory, environment):
    """The result of `line`, typed in bash in `directory`, with these variables more."""
    done = subprocess.run([*cluster.inside, 'bash', '-c', line], cwd=directory, env={**cluster.environment, **environment},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LINE_SECONDS)
    print(f'$ {line}\n{done.stdout}', flush=True)
    return done


def make_volume(cluster, path, size):
    """Makes the directory `path` the volume that the claim of this name in `agents` gets."""
    path.mkdir()
    os.chown(path, 1000, 1000)
    cluster.apply({'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': path.name}, 'spec': {
        'capacity': {'storage': size}, 'accessModes': ['ReadWriteMany'], 'hostPath': {'path': str(path)},
        'claimRef': {'namespace': 'agents', 'name': path.name}}})
