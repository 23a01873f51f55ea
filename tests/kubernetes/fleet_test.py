# SPDX-License-Identifier: Apache-2.0
"""Two hundred runs on one node, ten at once: none is lost, each record is whole, and nothing stays behind.

usage: fleet_test.py AGENTIC-CI TESTBED CACHE ROOT [CASE...]
"""
import glob
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import unittest

from cluster import Cluster, make_root, require
from digest import name_by_digest

BINARY, TESTBED, CACHE = (os.path.abspath(one) for one in sys.argv[1:4])
NAMESPACE, RUNS, AT_ONCE, MINUTES = 'fleet', 200, 10, 20
NODE_FILES = ('/tmp/agentic-ci-*', '/var/tmp/agentic-ci-*')
CONFINED = {'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True, 'capabilities': {'drop': ['ALL']}}
SHARE = {'cpu': '100m', 'memory': '256Mi'}
RUN = ('mkdir /work/repo && cd /work/repo && exec agentic-ci run --isolation landlock --memory 64MiB --report-dir '
       '/reports/$JOB_COMPLETION_INDEX -- sh -c "echo $JOB_COMPLETION_INDEX >file"')


def job(image):
    volumes = [{'name': 'work', 'emptyDir': {}}, {'name': 'reports', 'persistentVolumeClaim': {'claimName': 'reports'}}]
    container = {'name': 'run', 'image': image, 'command': ['/bin/sh', '-c', RUN], 'securityContext': CONFINED,
                 'resources': {'requests': SHARE, 'limits': SHARE}, 'env': [{'name': 'TMPDIR', 'value': '/work'}],
                 'volumeMounts': [{'name': 'work', 'mountPath': '/work'}, {'name': 'reports', 'mountPath': '/reports'}]}
    pod = {'restartPolicy': 'Never', 'automountServiceAccountToken': False, 'enableServiceLinks': False, 'volumes': volumes,
           'containers': [container], 'securityContext': {'runAsNonRoot': True, 'runAsUser': 1000, 'fsGroup': 1000,
                                                          'seccompProfile': {'type': 'RuntimeDefault'}}}
    return {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'runs', 'namespace': NAMESPACE}, 'spec': {
        'completionMode': 'Indexed', 'completions': RUNS, 'parallelism': AT_ONCE, 'backoffLimitPerIndex': 0,
        'template': {'spec': pod}}}


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='fleet-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.cluster = cls.enterClassContext(Cluster(TESTBED, CACHE))
        cls.cluster.load('localhost/agent:1', make_root(cls.top / 'root', files={'/usr/bin/agentic-ci': BINARY}))
        cls.image = name_by_digest(cls.cluster, 'localhost/agent')

    def left_on_the_node(self):
        """Control groups and directories of pods, and files of runs."""
        netns = pathlib.Path(self.cluster.directory, 'netns').read_text().strip()
        places = (f'/sys/fs/cgroup/{netns}/**/pod*', f'/sys/fs/cgroup/*/{netns}/**/pod*', f'{self.cluster.directory}/kubelet/pods/*',
                  *NODE_FILES)
        return {path for place in places for path in glob.glob(place, recursive=True)}

    def test_two_hundred_runs_at_ten_at_once(self):
        self.cluster.namespace(NAMESPACE, 'restricted')
        reports = self.top / 'reports'
        reports.mkdir()
        os.chown(reports, 1000, 1000)
        size = {'storage': '1Gi'}
        self.cluster.apply(
            {'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': 'reports'}, 'spec': {
                'capacity': size, 'accessModes': ['ReadWriteMany'], 'hostPath': {'path': str(reports)}}},
            {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'reports', 'namespace': NAMESPACE}, 'spec': {
                'accessModes': ['ReadWriteMany'], 'storageClassName': '', 'resources': {'requests': size}}})
        before = self.left_on_the_node()
        self.cluster.apply(job(self.image))

        def status():
            return self.cluster.get('Job', NAMESPACE, 'runs', 'batch/v1')['status']
        seen = set()

        def ended():
            seen.update(self.left_on_the_node() - before)
            return status().get('conditions')
        self.cluster.until(ended, MINUTES * 60)
        self.assertEqual((status().get('succeeded'), status().get('failed')), (RUNS, None))
        self.assertTrue(any('cgroup' in path for path in seen), 'no control group of a pod was seen')
        records = []
        for index in range(RUNS):
            record = json.loads((reports / str(index) / 'run.json').read_text())
            self.assertEqual((record['outcome']['kind'], record['isolation']['tier']), ('success', 'landlock'))
            self.assertIn(f'+{index}\n', (reports / str(index) / 'changes.patch').read_text())
            self.assertEqual(sorted(one.name for one in (reports / str(index)).iterdir()),
                             sorted(one.name for one in (reports / '0').iterdir()))
            records.append(record)
        took = [record['finished_at_ms'] - record['started_at_ms'] for record in records]
        span = max(record['finished_at_ms'] for record in records) - min(record['started_at_ms'] for record in records)
        print(f'{RUNS} runs in {span / 1000:.0f} s; one run: {statistics.median(took):.0f} ms, at most {max(took)} ms', flush=True)
        self.cluster.delete('Job', NAMESPACE, 'runs', version='batch/v1')
        self.cluster.until(lambda: not self.cluster.api('GET', self.cluster.path('Pod', NAMESPACE))['items'], 120)
        self.cluster.until(lambda: self.left_on_the_node() <= before, 60)


if __name__ == '__main__':
    require(TESTBED)
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
