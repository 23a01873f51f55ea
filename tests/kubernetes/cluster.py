# SPDX-License-Identifier: Apache-2.0
"""A whole Kubernetes of one node for the suites beside this file, in a network namespace of its own.

    with Cluster(TESTBED, CACHE) as cluster:
        cluster.load('localhost/tools:1', make_root(directory, programs=['/usr/bin/bash'], files={'/usr/bin/agentic-ci': binary}))
        cluster.namespace('jobs', 'restricted')
        cluster.apply({'apiVersion': 'v1', 'kind': 'Pod', ...})
        state = cluster.ended('jobs', 'one')

TESTBED has start.sh, stop.sh, image.py and Kubernetes itself; CACHE keeps what is unpacked of it. Commands of the cluster,
and others that need its address, are started with `cluster.inside` before them, and with `cluster.environment`.
"""
import contextlib
import glob
import http.client
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

EVERY = os.environ.get('AGENTIC_CI_KUBERNETES') == 'all'
PROGRAMS = ('etcd', 'containerd', 'ctr', 'runc', 'openssl', 'zstd', 'nsenter', 'busybox', 'ip')
PLUGINS = '/usr/lib/cni/bridge'
START_SECONDS = 180
SKIPPED = 4
GATES = ('UserNamespacesSupport', 'ProcMountType')  # For `hostUsers: false`, which also needs containerd 2 and runc 1.2.
PLURALS = {'Pod': 'pods', 'Namespace': 'namespaces', 'Job': 'jobs', 'ConfigMap': 'configmaps', 'Secret': 'secrets',
           'PersistentVolumeClaim': 'persistentvolumeclaims', 'PersistentVolume': 'persistentvolumes', 'Service': 'services',
           'ServiceAccount': 'serviceaccounts', 'Role': 'roles', 'RoleBinding': 'rolebindings'}


def needs(testbed):
    """Why no cluster can run here; nothing if one can."""
    if os.geteuid() != 0:
        return 'a node needs root'
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if not os.path.exists(PLUGINS):
        missing.append('containernetworking-plugins')
    if missing:
        return f'not installed: {", ".join(missing)}'
    return '' if glob.glob(testbed + '/kubernetes-*.zst') else f'no Kubernetes in {testbed}'


def libraries(program):
    """The files that the dynamic linker loads for `program`, as it names them; none for a static one."""
    done = subprocess.run(['ldd', program], capture_output=True, text=True)
    words = [word for line in done.stdout.splitlines() for word in line.split()]
    return [word for word in words if word.startswith('/')]


def make_root(directory, programs=(), files=None, links=None):
    """A file system for an image, in `directory`: busybox as sh and all that it has, `programs` of this machine with their
    libraries, at their own paths, and `files` and `links` by path. Directories are copied whole."""
    root = pathlib.Path(directory)
    (root / 'usr/bin').mkdir(parents=True)
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        (root / 'usr' / name).mkdir(exist_ok=True)
        (root / name).symlink_to('usr/' + name)
    wanted = {'/usr/bin/busybox': shutil.which('busybox'), **(files or {})}
    for program in programs:
        wanted[program] = program
        wanted |= {library: library for library in libraries(program)}
    for path, source in wanted.items():
        target = root / path.lstrip('/')
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(os.path.realpath(source), target)
    applets = subprocess.run(['busybox', '--list'], capture_output=True, text=True, check=True).stdout.split()
    links = {**{f'/usr/bin/{name}': 'busybox' for name in applets}, **(links or {})}
    for path, target in links.items():
        if not os.path.lexists(root / path.lstrip('/')):
            (root / path.lstrip('/')).symlink_to(target)
    (root / 'etc').mkdir(exist_ok=True)
    (root / 'etc/passwd').write_text('root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n')
    (root / 'etc/group').write_text('root:x:0:\nuser:x:1000:\n')
    return root


class Connection(http.client.HTTPConnection):
    """To the API, through `kubectl proxy`."""

    def __init__(self, path, timeout):
        super().__init__('localhost', timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def use_programs(cache):
    """Puts what tests/kubernetes/install has made before the machine's own."""
    os.environ['PATH'] = f'{os.path.abspath(cache)}/bin:{os.environ["PATH"]}:/usr/sbin:/sbin'


class Refused(Exception):
    """The API's answer to what it does not accept."""

    def __init__(self, status, answer):
        super().__init__(f'{status}: {answer.get("message", answer)}')
        self.status, self.answer = status, answer


def require(testbed):
    """Ends the program as skipped, with the reason, where no cluster can be started."""
    why = needs(testbed)
    if why:
        print(f'# SKIP testbed: a cluster of Kubernetes: {why}')
        sys.exit(SKIPPED)


def every(case):
    """For a case of `tools/check --kubernetes` alone: elsewhere it is not there."""
    return case if EVERY else None


class Cluster:
    def __init__(self, testbed, cache):
        self.testbed, self.cache = os.path.abspath(testbed), os.path.abspath(cache)
        # The namespace, its cgroups and its containers are called after this directory's first eight letters.
        self.base = tempfile.mkdtemp(prefix='kubernetes-')
        os.chmod(self.base, 0o711)  # The users of a pod's own go through it.
        self.directory = f'{self.base}/{secrets.token_hex(4)}'
        self.proxy = None
        version = subprocess.run(['containerd', '--version'], capture_output=True, text=True).stdout
        self.user_namespaces = bool(re.search(r' v?([2-9]|[1-9][0-9])\.', version))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *unused):
        self.stop()

    def start(self):
        os.makedirs(self.cache, exist_ok=True)
        done = subprocess.run(['bash', self.script(), self.directory], stdin=subprocess.DEVNULL, text=True,
                              env={**os.environ, 'XDG_CACHE_HOME': self.cache}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=START_SECONDS)
        if done.returncode != 0:
            raise RuntimeError(f'the cluster does not start: {done.stdout[-2000:]}')
        # What the plug-in keeps of addresses is this cluster's alone.
        network = pathlib.Path(self.directory, 'cni/10-bridge.conflist')
        network.write_text(network.read_text().replace('"host-local",', f'"host-local", "dataDir": "{self.directory}/addresses",'))
        netns = pathlib.Path(self.directory, 'netns').read_text().strip()
        self.inside = ['nsenter', f'--net=/run/netns/{netns}']
        self.kubeconfig = self.directory + '/kubeconfig'
        self.environment = {**os.environ, 'KUBECONFIG': self.kubeconfig,
                            'PATH': f'{self.directory}/bin:{os.environ["PATH"]}'}
        self.address = self.directory + '/run/api.sock'
        self.proxy = subprocess.Popen([*self.inside, 'kubectl', 'proxy', '--unix-socket', self.address], env=self.environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: os.path.exists(self.address), 60)

    def script(self):
        """What starts the cluster. Pods with users of their own are a feature that this Kubernetes has to be asked for."""
        name = self.testbed + '/start.sh'
        if not self.user_namespaces:
            return name
        text = pathlib.Path(name).read_text()
        for old, new in (('here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)', f'here="{self.testbed}"'),
                         ('--allow-privileged=true', '--allow-privileged=true --feature-gates=' + ','.join(
                             gate + '=true' for gate in GATES)),
                         ('\nseccompDefault: false\n', '\nseccompDefault: false\nfeatureGates: {' + ', '.join(
                             gate + ': true' for gate in GATES) + '}\n')):
            if old not in text:
                raise RuntimeError(f'{name} has changed: {old}')
            text = text.replace(old, new)
        made = pathlib.Path(self.base, 'start.sh')
        made.write_text(text)
        return made

    def stop(self):
        if self.proxy:
            self.remove_pods()
            self.proxy.kill()
            self.proxy.wait()
        if os.path.exists(self.directory + '/netns'):
            subprocess.run(['bash', self.testbed + '/stop.sh', self.directory, '--purge'], stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=START_SECONDS)
        shutil.rmtree(self.base, ignore_errors=True)

    def remove_pods(self):
        """Ends all pods: what a node makes for each outside of the cluster's directory goes with it."""
        with contextlib.suppress(Exception):
            for pod in self.api('GET', '/api/v1/pods')['items']:
                path = self.path('Pod', pod['metadata']['namespace'], pod['metadata']['name'])
                self.api('DELETE', path + '?gracePeriodSeconds=0')
            self.until(lambda: not glob.glob(self.directory + '/addresses/pods/[0-9]*'), 30)
            time.sleep(0.3)  # After its address, a pod's network namespace goes.

    def containerd(self, *words):
        return subprocess.run(['ctr', '--address', self.directory + '/run/containerd.sock', '-n', 'k8s.io', *words], check=True,
                              capture_output=True, text=True, timeout=300).stdout

    @staticmethod
    def until(condition, seconds):
        """What `condition` returns, once that is something; otherwise a TimeoutError after so long."""
        end = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            if time.monotonic() > end:
                raise TimeoutError(f'not within {seconds} s')
            time.sleep(0.1)

    def kubectl(self, *words, stdin=None, check=True, seconds=120):
        done = subprocess.run([*self.inside, 'kubectl', *words], env=self.environment, input=stdin, text=True,
                              stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, timeout=seconds)
        if check and done.returncode != 0:
            raise RuntimeError(f'kubectl {" ".join(words)}: {done.stderr[-2000:]}')
        return done

    def api(self, method, path, body=None, seconds=60):
        """The API's answer: parsed if it is JSON."""
        connection = Connection(self.address, seconds)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {'Content-Type': 'application/json'})
            response = connection.getresponse()
            text = response.read().decode(errors='replace')
        finally:
            connection.close()
        is_json = 'json' in response.getheader('Content-Type', '')
        if response.status >= 400:
            raise Refused(response.status, json.loads(text) if is_json else {'message': text})
        return json.loads(text) if is_json else text

    @staticmethod
    def path(kind, namespace=None, name=None, version='v1'):
        start = '/api/v1' if version == 'v1' else f'/apis/{version}'
        return start + (f'/namespaces/{namespace}' if namespace else '') + '/' + PLURALS[kind] + (f'/{name}' if name else '')

    def apply(self, *objects):
        """Makes what is not there yet."""
        for one in objects:
            namespace = one['metadata'].get('namespace')
            self.api('POST', self.path(one['kind'], namespace, version=one['apiVersion']), one)

    def get(self, kind, namespace, name, version='v1'):
        return self.api('GET', self.path(kind, namespace, name, version))

    def delete(self, kind, namespace, name, grace=0, version='v1'):
        """Deletes it, and waits until it is gone."""
        path = self.path(kind, namespace, name, version)
        self.api('DELETE', f'{path}?gracePeriodSeconds={grace}&propagationPolicy=Background')

        def gone():
            try:
                self.api('GET', path)
            except Refused as refused:
                return refused.status == 404
            return False
        self.until(gone, grace + 120)

    def namespace(self, name, level='privileged'):
        """A namespace of this Pod Security level, once pods can be made in it."""
        self.apply({'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {
            'name': name, 'labels': {'pod-security.kubernetes.io/enforce': level}}})

        def has_account():
            try:
                return self.get('ServiceAccount', name, 'default')
            except Refused:
                return False
        self.until(has_account, 60)

    def load(self, name, root, command=('/bin/sh',)):
        """Imports an image with the files of `root`; pods name it with `imagePullPolicy: Never`."""
        archive = f'{self.directory}/images/{secrets.token_hex(4)}.tar'
        files = [f'{path.name}=->{os.readlink(path)}' if path.is_symlink() else f'{path.name}={path}'
                 for path in sorted(pathlib.Path(root).iterdir())]
        subprocess.run([sys.executable, self.testbed + '/image.py', archive, name, json.dumps(list(command)), *files],
                       check=True, capture_output=True, timeout=300)
        self.containerd('images', 'import', archive)
        os.unlink(archive)

    def container(self, namespace, pod, name=None):
        """The status of a pod's container: the first, or the one with this name."""
        statuses = self.get('Pod', namespace, pod)['status'].get('containerStatuses', [])
        return next((one for one in statuses if name in (None, one['name'])), {})

    def volume(self, uid, name):
        """Where the node has an emptyDir of the pod with this uid."""
        return f'{self.directory}/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/{name}'

    def running(self, namespace, pod, seconds=120):
        """Waits until a pod runs."""
        self.until(lambda: self.get('Pod', namespace, pod)['status'].get('phase') in ('Running', 'Succeeded', 'Failed'), seconds)

    def ended(self, namespace, pod, name=None, seconds=180):
        """How a container ended: its `terminated` state, with `exitCode` and `reason`."""
        return self.until(lambda: self.container(namespace, pod, name).get('state', {}).get('terminated'), seconds)

    def log(self, namespace, pod, container=None):
        return self.api('GET', self.path('Pod', namespace, pod) + '/log' + (f'?container={container}' if container else ''))

    def execute(self, namespace, pod, *command, container=None, check=True, seconds=120):
        chosen = ['-c', container] if container else []
        return self.kubectl('exec', '-n', namespace, pod, *chosen, '--', *command, check=check, seconds=seconds)
