# SPDX-License-Identifier: Apache-2.0
"""Images of the cluster by their digests."""


def name_by_digest(cluster, name):
    """Gives the image NAME:1 the name that a pull by digest would leave it with, and returns that."""
    listed = cluster.containerd('images', 'list', f'name=={name}:1').split()
    digest = next(word for word in listed if word.startswith('sha256:'))
    cluster.containerd('images', 'tag', f'{name}:1', f'{name}@{digest}')
    return f'{name}@{digest}'
