# SPDX-License-Identifier: Apache-2.0
"""Containers with more and fewer rights: the tier that each gives, and what a run says to type for more.

Each is started by containers_test.py, which types what it is told; hosts_page.py writes the table into isolation.md.
"""
import collections

# `profile` is whose seccomp filter there is; `marks` are the files by which an engine makes itself known.
Host = collections.namedtuple('Host', 'name user profile options marks tier remedy')

UNMASKED = ('--security-opt', 'unmask=ALL')
UNFILTERED = ('--security-opt', 'seccomp=unconfined')
LOOKS = ('--cap-add', 'SYS_PTRACE')
ADMIN = ('--cap-add', 'SYS_ADMIN')
DOCKER = ('-v', '/dev/null:/.dockerenv:ro')
POD = ('--tmpfs', '/var/run/secrets/kubernetes.io')

PODMAN_RUN = 'podman run --security-opt unmask=ALL --security-opt seccomp=unconfined ...'
PODMAN_USER = PODMAN_RUN.replace('run', 'run --user 1000:1000', 1)
DOCKER_RUN = ('docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined '
              '--security-opt apparmor=unconfined ...')
DOCKER_USER = DOCKER_RUN.replace('run', 'run --user 1000:1000', 1)
IN_A_POD = ("in the pod's specification: hostUsers: false, and in the container's securityContext: "
            'procMount: Unmasked, seccompProfile: {type: Unconfined}')
ROOT_IN_A_POD = IN_A_POD.replace('procMount', 'runAsUser: 1000, procMount')
SETPRIV = ('setpriv --reuid 1000 --regid 1000 --clear-groups agentic-ci run --report-dir /tmp/agentic-ci-report ...')

BOTH = (0, 1000)
HOSTS = [
    *(Host('podman', user, 'podman', options, (), 'landlock', PODMAN_RUN if user else PODMAN_USER)
      for options in ((), UNMASKED, UNFILTERED) for user in BOTH),
    Host('podman', 1000, 'podman', UNMASKED + UNFILTERED, (), 'namespaces', None),
    *(Host('podman', 0, 'podman', UNMASKED + UNFILTERED + more, (), 'landlock', SETPRIV) for more in ((), ADMIN)),
    Host('podman', 0, 'podman', UNMASKED + UNFILTERED + ADMIN + LOOKS, (), 'namespaces', None),
    *(Host('podman', user, 'podman', ('--privileged',), (), 'namespaces', None) for user in BOTH),
    *(Host('Docker', user, 'docker', (), DOCKER, 'landlock', DOCKER_RUN if user else DOCKER_USER) for user in BOTH),
    *(Host('Kubernetes', user, 'docker', (), POD, 'landlock', IN_A_POD if user else ROOT_IN_A_POD) for user in BOTH),
]


def typed(remedy):
    """The options and the user of the container that `remedy` says to start."""
    options = []
    if 'unmask=ALL' in remedy or 'systempaths=unconfined' in remedy or 'procMount: Unmasked' in remedy:
        options += UNMASKED
    if 'seccomp=unconfined' in remedy or 'type: Unconfined' in remedy:
        options += UNFILTERED
    user = 1000 if '--user 1000:1000' in remedy or 'runAsUser: 1000' in remedy else None
    return tuple(options), user
