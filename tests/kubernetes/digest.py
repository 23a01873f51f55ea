# SPDX-License-Identifier: Apache-2.0
"""Images of the cluster by their digests."""
import subprocess


def name_by_digest(cluster, name):
    """Gives the image NAME:1 the name that a pull by digest would leave it with, and returns that."""
    ctr = ['ctr', '--address', cluster.directory + '/run/containerd.sock', '-n', 'k8s.io', 'images']
    listed = subprocess.run([*ctr, 'ls', f'name=={name}:1'], capture_output=True, text=True, check=True).stdout
    digest = next(word for word in listed.split() if word.startswith('sha256:'))
    subprocess.run([*ctr, 'tag', f'{name}:1', f'{name}@{digest}'], capture_output=True, check=True)
    return f'{name}@{digest}'
