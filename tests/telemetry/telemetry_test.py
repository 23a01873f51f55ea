#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What runs send to collectors, by the real OpenTelemetry Collector and by servers of the test's own.

usage: telemetry_test.py INSTALL_DIR BINARY [TEST...]
"""
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from servers import Collector, Listener, make_authority, server_context, syslog_messages

INSTALLED, BINARY = pathlib.Path(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
HOST = 'host.openshell.internal'
TRACE, SPAN = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
SECRET = 'collector-s3cret-0123456789'
ANSWER = {'id': 'm', 'type': 'message', 'role': 'assistant', 'model': 'claude-sonnet-4-5', 'content': [],
          'usage': {'input_tokens': 60, 'output_tokens': 40, 'cache_read_input_tokens': 7, 'cache_creation_input_tokens': 3}}
# Names of GenAI's own conventions, which the package has under their names of before (docs/reference/telemetry.md).
RENAMED = {
    'gen_ai.client.inference.duration', 'gen_ai.client.inference.usage.input_tokens', 'gen_ai.client.inference.usage.output_tokens',
    'gen_ai.client.inference.usage.cache_read.input_tokens', 'gen_ai.client.inference.usage.cache_write.input_tokens',
    'gen_ai.usage.cache_write.input_tokens', 'gen_ai.invoke_agent.duration', 'gen_ai.invoke_agent.inference_calls',
    'gen_ai.invoke_agent.tool_calls', 'gen_ai.execute_tool.duration'}
# A command in place of Claude Code, with its stream: a turn with a tool call, which asks its model and a host that is refused.
AGENT = r'''#!/bin/sh
echo '{"type":"system","subtype":"init","model":"claude-sonnet-4-5","claude_code_version":"2.1.0"}'
ask() { curl -s -o /dev/null -H "x-api-key: $ANTHROPIC_API_KEY" -d '{"model":"claude-sonnet-4-5"}' "$ANTHROPIC_BASE_URL/v1/messages"; }
ask
echo '{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"tool-argument"}}]}}'
curl -s -o /dev/null http://refused.example.com/path
env
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"tool-result"}]}}'
ask
echo '{"type":"assistant","message":{"id":"2","content":[{"type":"text","text":"agent-text"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"done","total_cost_usd":0.1}'
'''


class ModelHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get('content-length', 0)))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class RealCollector:
    """The OpenTelemetry Collector, which writes what it takes to one file for each signal, one request a line."""

    def __init__(self, directory):
        self.directory = directory
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.port = free.getsockname()[1]
        exporters = {f'file/{signal}': {'path': str(directory / f'{signal}.jsonl')} for signal in ('traces', 'metrics', 'logs')}
        config = {'receivers': {'otlp': {'protocols': {'http': {'endpoint': f'127.0.0.1:{self.port}'}}}}, 'exporters': exporters,
                  'service': {'pipelines': {signal: {'receivers': ['otlp'], 'exporters': [f'file/{signal}']}
                                            for signal in ('traces', 'metrics', 'logs')}}}
        (directory / 'collector.yaml').write_text(json.dumps(config))
        with open(directory / 'collector.log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen([INSTALLED / 'collector', '--config', directory / 'collector.yaml'],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while True:
            try:
                socket.create_connection(('127.0.0.1', self.port)).close()
                return
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise RuntimeError((directory / 'collector.log').read_text()) from None
                time.sleep(0.05)

    def stop(self):
        """Ends it, so that all is written."""
        self.process.terminate()
        self.process.wait(60)

    def requests(self, signal):
        return [json.loads(line) for line in (self.directory / f'{signal}.jsonl').read_text().splitlines()]

    def spans(self):
        return [span for request in self.requests('traces') for resource in request['resourceSpans']
                for scope in resource['scopeSpans'] for span in scope['spans']]

    def metrics(self):
        return {metric['name']: metric for request in self.requests('metrics') for resource in request['resourceMetrics']
                for scope in resource['scopeMetrics'] for metric in scope['metrics']}

    def logs(self):
        return [log for request in self.requests('logs') for resource in request['resourceLogs']
                for scope in resource['scopeLogs'] for log in scope['logRecords']]


def attributes(thing):
    return {one['key']: next(iter(one['value'].values()), None) for one in thing.get('attributes', [])}


def metric_points(metric):
    return next(metric[kind] for kind in ('sum', 'gauge', 'histogram') if kind in metric)['dataPoints']


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='telemetry-test-'))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        self.report = self.directory / 'report'
        (self.directory / 'policy.yml').write_text('endpoints: []\n')

    def run_command(self, *command, options=(), expect=0, **variables):
        """A run of any command; gives what it said."""
        run = subprocess.run([BINARY, 'run', '--policy', self.directory / 'policy.yml', '--report-dir', self.report, '--workdir',
                              self.checkout, *options, '--', *command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             env={'PATH': os.environ['PATH'], **variables}, timeout=600)
        self.assertEqual(run.returncode, expect, run.stderr)
        return run.stderr

    def refused(self, *options, expect=0, **variables):
        """A run that is refused three requests, which makes so many records."""
        ask = 'for i in 1 2 3; do curl -s -m 20 -o /dev/null http://refused.example.com/$i; done; true'
        return self.run_command('sh', '-c', ask, options=options, expect=expect, **variables)

    def records(self):
        return (self.report / 'events.ocsf.jsonl').read_text().splitlines()

    def start(self, *arguments, **named):
        collector = Collector(*arguments, **named)
        self.addCleanup(collector.close)
        return collector


class Telemetry(Case):
    """One agent's run, sent to the real Collector."""

    def run_agent(self, collector, *options, **variables):
        model = http.server.ThreadingHTTPServer(('127.0.0.1', 0), ModelHandler)
        threading.Thread(target=model.serve_forever, daemon=True).start()
        self.addCleanup(model.server_close)
        self.addCleanup(model.shutdown)
        programs = self.directory / 'programs'
        programs.mkdir(exist_ok=True)
        (programs / 'claude').write_text(AGENT)
        (programs / 'claude').chmod(0o755)
        port = model.server_address[1]
        policy = self.directory / 'agent.yml'
        policy.write_text(f'defaults: none\nendpoints: ["{HOST}:{port}:read-write:rest"]\n')
        environment = {'PATH': f'{programs}:{os.environ["PATH"]}', 'ANTHROPIC_API_KEY': 'sk-test-key-0123456789abcdef',
                       'OTEL_EXPORTER_OTLP_ENDPOINT': f'http://127.0.0.1:{collector.port}', **variables}
        run = subprocess.run([BINARY, 'run', '--agent', 'claude-code', '--prompt', 'the-prompt', '--workdir', self.checkout,
                              '--policy', policy, '--report-dir', self.report, '--secret', f'ANTHROPIC_API_KEY@{HOST}',
                              '--env', f'ANTHROPIC_BASE_URL=http://{HOST}:{port}', *options],
                             env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.said = run.stdout + run.stderr

    def collect(self, *options, **variables):
        place = self.directory / f'collected-{len(list(self.directory.iterdir()))}'
        place.mkdir()
        collector = RealCollector(place)
        try:
            self.run_agent(collector, *options, **variables)
        finally:
            collector.stop()
        self.assertNotRegex(self.said, 'warn: (telemetry|the collector)')
        return collector

    def test_the_collector_has_the_whole_run(self):
        got = self.collect('--record-programs', TRACEPARENT=f'00-{TRACE}-{SPAN}-01', TRACESTATE='vendor=1',
                           OTEL_SERVICE_NAME='reviews', OTEL_RESOURCE_ATTRIBUTES='team=a%20b', GITHUB_WORKFLOW='checks')
        spans = got.spans()
        by_id = {span['spanId']: span for span in spans}
        self.assertEqual(len(by_id), len(spans))
        self.assertEqual({span['traceId'] for span in spans}, {TRACE})
        self.assertEqual({span['traceState'] for span in spans}, {'vendor=1'})
        top, = [span for span in spans if span['parentSpanId'] not in by_id]
        self.assertEqual((top['parentSpanId'], attributes(top)['cicd.pipeline.task.run.result']), (SPAN, 'success'))
        record = json.loads((self.report / 'run.json').read_text())
        self.assertEqual(attributes(top)['cicd.pipeline.task.run.id'], record['isolation']['uid'])

        def path(span):
            names = []
            while span:
                names.append(span['name'])
                span = by_id.get(span['parentSpanId'])
            return names[::-1][1:]
        paths = [path(span) for span in spans]
        agent = 'invoke_agent claude-code'
        for expected in ([agent], [agent, 'turn', 'execute_tool Bash'], ['policy'], ['changes']):
            self.assertIn(expected, paths)
        ends = [(one[0], one[-1]) for one in paths if one]
        self.assertEqual(ends.count((agent, 'chat claude-sonnet-4-5')), 2)
        self.assertEqual(ends.count((agent, 'turn')), 2)
        self.assertIn((agent, 'GET'), ends)
        self.assertIn((agent, 'curl'), ends)  # A program, since it records them.
        for span in spans:
            self.assertLessEqual(int(span['startTimeUnixNano']), int(span['endTimeUnixNano']), span)
            self.assertLessEqual(int(top['startTimeUnixNano']), int(span['startTimeUnixNano']), span)
            self.assertLessEqual(int(span['endTimeUnixNano']), int(top['endTimeUnixNano']), span)
        tool, = [span for span in spans if span['name'] == 'execute_tool Bash']
        refused, = [span for span in spans if attributes(span).get('agentic_ci.decision') == 'denied' and span['name'] == 'GET']
        self.assertLessEqual(int(tool['startTimeUnixNano']), int(refused['startTimeUnixNano']) + 1_000_000)
        self.assertLessEqual(int(refused['startTimeUnixNano']), int(tool['endTimeUnixNano']) + 1_000_000)
        self.assertEqual(attributes(refused)['url.full'], 'http://refused.example.com:80/path')
        chat = [span for span in spans if span['name'] == 'chat claude-sonnet-4-5'][0]
        facts = attributes(chat)
        self.assertEqual((facts['gen_ai.provider.name'], facts['gen_ai.usage.input_tokens'], facts['gen_ai.usage.output_tokens']),
                         ('anthropic', '70', '40'))
        resource = attributes(got.requests('traces')[0]['resourceSpans'][0]['resource'])
        self.assertEqual((resource['service.name'], resource['team'], resource['cicd.pipeline.name']), ('reviews', 'a b', 'checks'))

        logs = got.logs()
        self.assertEqual([log['body']['stringValue'] for log in logs], self.records())
        self.assertEqual({log['traceId'] for log in logs}, {TRACE})
        self.assertLessEqual({log['spanId'] for log in logs}, set(by_id))

        metrics = got.metrics()
        point = {name: metric_points(metric)[0] for name, metric in metrics.items()}
        self.assertEqual(point['gen_ai.client.inference.usage.input_tokens']['asInt'], '140')
        self.assertEqual(point['gen_ai.client.inference.usage.output_tokens']['asInt'], '80')
        self.assertEqual(point['gen_ai.client.inference.duration']['count'], '2')
        self.assertEqual(point['gen_ai.execute_tool.duration']['count'], '1')
        self.assertEqual(point['agentic_ci.run.duration']['count'], '1')
        self.assertAlmostEqual(point['agentic_ci.run.cost']['asDouble'], record['usage']['cost_usd'])
        decisions = {attributes(one)['agentic_ci.decision']: int(one['asInt']) for one in metric_points(metrics['agentic_ci.requests'])}
        recorded = [json.loads(line).get('unmapped', {}).get('decision') for line in self.records()]
        self.assertEqual(decisions, {word: recorded.count(word) for word in set(recorded) - {None}})

    def test_contents_are_sent_only_where_they_are_asked_for(self):
        contents = ('tool-argument', 'tool-result')
        got = self.collect(OTEL_EXPORTER_OTLP_PROTOCOL='http/json')
        sent = ''.join((got.directory / f'{signal}.jsonl').read_text() for signal in ('traces', 'metrics', 'logs'))
        for word in (*contents, 'the-prompt', 'agent-text'):
            self.assertNotIn(word, sent)
        got = self.collect(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT='true')
        sent = (got.directory / 'traces.jsonl').read_text()
        for word in contents:
            self.assertIn(word, sent)

    def test_json_and_protobuf_say_the_same(self):
        def shape(collector):
            """What does not depend on ids and times."""
            spans = sorted((span['name'], span['kind'], sorted(attributes(span)), json.dumps(span.get('status', {})), span.get('flags'))
                           for span in collector.spans())
            metrics = {name: (metric['unit'], sorted(json.dumps(attributes(point), sort_keys=True) for point in metric_points(metric)))
                       for name, metric in collector.metrics().items()}
            logs = [(log['severityNumber'], log['severityText'], log['eventName'], sorted(attributes(log).items()), log['flags'])
                    for log in collector.logs()]
            resources = [attributes(one['resource']) for request in collector.requests('logs') for one in request['resourceLogs']]
            return spans, metrics, logs, resources
        binary = shape(self.collect())
        self.assertGreater(len(binary[0]), 10)
        self.assertEqual(shape(self.collect(OTEL_EXPORTER_OTLP_PROTOCOL='http/json')), binary)
        self.assertEqual(shape(self.collect(OTEL_EXPORTER_OTLP_COMPRESSION='gzip')), binary)

    def test_the_names_are_those_of_the_published_conventions(self):
        published = set()
        for file in (INSTALLED / 'python/opentelemetry/semconv').rglob('*.py'):
            published |= set(re.findall(r'"([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)"', file.read_text()))
        self.assertIn('cicd.pipeline.task.run.result', published)
        self.assertNotIn('cicd.pipeline.task.run.outcome', published)  # The control.
        got = self.collect('--record-programs', GITHUB_WORKFLOW='w')
        emitted = set(got.metrics())
        for thing in (*got.spans(), *got.logs(), *(one['resource'] for one in got.requests('traces')[0]['resourceSpans'])):
            emitted |= set(attributes(thing))
        for metric in got.metrics().values():
            emitted |= {name for point in metric_points(metric) for name in attributes(point)}
        self.assertGreater(len(emitted), 40)
        source = (pathlib.Path(__file__).resolve().parents[2] / 'runner/telemetry/names.h').read_text()
        table = set(re.findall(r'"([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)"', source))
        self.assertEqual(emitted - table, set(), 'sent, and not in names.h')
        own = {name for name in table if name.startswith('agentic_ci.')}
        self.assertEqual(table - own - published, RENAMED)

    def test_headers_reach_the_collector_and_nothing_else(self):
        collector = self.start()
        self.run_agent(collector, OTEL_EXPORTER_OTLP_HEADERS=f'authorization=Bearer%20{SECRET},x-tenant=a',
                       OTEL_EXPORTER_OTLP_LOGS_HEADERS='x-tenant=b')
        sent = {path: headers for path, headers, _ in collector.requests}
        self.assertEqual(set(sent), {'/v1/traces', '/v1/metrics', '/v1/logs'})
        self.assertEqual((sent['/v1/traces']['authorization'], sent['/v1/traces']['x-tenant']), (f'Bearer {SECRET}', 'a'))
        self.assertEqual((sent['/v1/logs'].get('authorization'), sent['/v1/logs']['x-tenant']), (None, 'b'))
        self.assertEqual(sent['/v1/traces']['content-type'], 'application/x-protobuf')
        log = (self.report / 'agent.log').read_text()
        self.assertIn('ANTHROPIC_BASE_URL=', log)  # The control: the agent printed its environment.
        self.assertNotIn('OTEL_', log)
        for file in [*self.report.rglob('*')]:
            if file.is_file():
                self.assertNotIn(SECRET.encode(), file.read_bytes(), file)
        self.assertNotIn(SECRET, self.said)
        for _, _, body in collector.requests:
            self.assertNotIn(SECRET.encode(), body)


class Collectors(Case):
    """Collectors that do not do their part. The run's own end is the same each time."""

    def test_without_an_endpoint_nothing_is_connected_to(self):
        strace = self.directory / 'strace'
        def connections(**variables):
            run = subprocess.run(['strace', '-f', '-qq', '-e', 'trace=connect', '-o', strace, BINARY, 'run', '--policy',
                                  self.directory / 'policy.yml', '--report-dir', self.report, '--workdir', self.checkout, '--', 'true'],
                                 env={'PATH': os.environ['PATH'], **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            return [line for line in strace.read_text().splitlines() if 'AF_INET' in line and '127.0.0.1' in line]
        collector = self.start()
        self.assertNotEqual(connections(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url), [])  # The control.
        seen = len(collector.requests)
        self.assertEqual(connections(OTEL_SERVICE_NAME='x', TRACEPARENT=f'00-{TRACE}-{SPAN}-01'), [])
        self.assertEqual(connections(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SDK_DISABLED='true'), [])
        self.assertEqual(len(collector.requests), seen)

    def test_one_that_is_away_or_refuses_changes_nothing(self):
        with socket.create_server(('127.0.0.1', 0)) as free:
            nobody = f'http://127.0.0.1:{free.getsockname()[1]}'
        for url, why in ((nobody, '127.0.0.1'), (self.start(lambda _: (401, b'who?', {})).url, '401')):
            said = self.run_command('sh', '-c', 'exit 3', expect=3, OTEL_EXPORTER_OTLP_ENDPOINT=url)
            self.assertEqual(said.count('warn: telemetry was not sent'), 3, said)
            self.assertIn(why, said)
            self.assertEqual(json.loads((self.report / 'run.json').read_text())['outcome']['exit_code'], 3)

    def test_one_that_hangs_is_left_after_two_seconds(self):
        silent = Listener(accepts=False)
        self.addCleanup(silent.close)
        said = self.refused('--events-to', f'http://127.0.0.1:{silent.port}/', '--events-to', f'file:{self.directory}/events',
                            OTEL_EXPORTER_OTLP_ENDPOINT=f'http://127.0.0.1:{silent.port}')
        self.assertIn('warn: records were not sent', said)
        self.assertEqual(said.count('warn: telemetry was not sent'), 3, said)
        self.assertEqual((self.directory / 'events').read_text().splitlines(), self.records())  # Not kept waiting by the others.

    def test_one_that_asks_to_wait_is_asked_once_more_if_there_is_time(self):
        busy = self.start(lambda number: (503, b'', {'retry-after': '0'}) if number == 1 else (200, b'', {}))
        said = self.run_command('true', OTEL_EXPORTER_OTLP_ENDPOINT=busy.url, OTEL_METRICS_EXPORTER='none', OTEL_LOGS_EXPORTER='none')
        self.assertNotIn('telemetry was not sent', said)
        self.assertEqual(len(busy.requests), 2)
        self.assertEqual(busy.requests[0][2], busy.requests[1][2])
        for status, headers in ((503, {'retry-after': '60'}), (500, {}), (400, {})):
            other = self.start(lambda number, status=status, headers=headers: (status, b'', headers))
            said = self.run_command('true', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=other.url + '/own')
            self.assertIn(str(status), said)
            self.assertEqual([path for path, _, _ in other.requests], ['/own'])

    def test_what_a_collector_did_not_take_is_said(self):
        answer = json.dumps({'partialSuccess': {'rejectedSpans': '2', 'errorMessage': 'too old\n::error::x'}}).encode()
        collector = self.start(lambda _: (200, answer, {'content-type': 'application/json'}))
        said = self.run_command('true', OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_PROTOCOL='http/json',
                                OTEL_METRICS_EXPORTER='none', OTEL_LOGS_EXPORTER='none')
        self.assertRegex(said, r'warn: the collector did not take all telemetry .*rejected=2')
        self.assertNotIn('\n::error::', said)
        self.assertEqual(len(collector.requests), 1)

    def test_a_parent_that_is_malformed_begins_a_new_trace(self):
        collector = self.start()
        for parent in ('nothing', f'00-{"0" * 32}-{SPAN}-01'):
            self.run_command('true', OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_PROTOCOL='http/json', TRACEPARENT=parent)
            spans = json.loads(next(body for path, _, body in reversed(collector.requests) if path == '/v1/traces'))
            spans = spans['resourceSpans'][0]['scopeSpans'][0]['spans']
            self.assertEqual(len({span['traceId'] for span in spans}), 1)
            self.assertNotEqual(spans[0]['traceId'], '0' * 32)
            self.assertNotIn('parentSpanId', spans[0])

    def test_grpc_is_refused_in_words(self):
        collector = self.start()
        said = self.run_command('true', OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_PROTOCOL='grpc')
        self.assertIn('OTLP over gRPC is not supported', said)
        self.assertEqual(collector.requests, [])

    def test_a_run_that_could_not_start_is_told(self):
        collector = self.start()
        (self.directory / 'policy.yml').write_text('endpoints: 7\n')
        self.run_command('true', expect=65, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_PROTOCOL='http/json')
        traces = json.loads(next(body for path, _, body in collector.requests if path == '/v1/traces'))
        top = traces['resourceSpans'][0]['scopeSpans'][0]['spans'][0]
        self.assertEqual((attributes(top)['error.type'], attributes(top)['cicd.pipeline.task.run.result']), ('setup-failed', 'error'))

    def test_certificates_are_verified_and_shown(self):
        make_authority(self.directory)
        collector = self.start(context=server_context(self.directory, clients=True))
        certificate = str(self.directory / 'ca.pem')
        own = {'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE': str(self.directory / 'client.pem'),
               'OTEL_EXPORTER_OTLP_CLIENT_KEY': str(self.directory / 'client.key')}
        said = self.run_command('true', OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **own)
        self.assertEqual(said.count('telemetry was not sent'), 3, said)
        said = self.run_command('true', OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_CERTIFICATE=certificate)
        self.assertEqual(said.count('telemetry was not sent'), 3, said)
        self.assertEqual(collector.requests, [])
        said = self.run_command('true', OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_CERTIFICATE=certificate, **own)
        self.assertNotIn('telemetry was not sent', said)
        self.assertEqual(len(collector.requests), 3)


class Events(Case):
    """Where records are sent."""

    def test_a_file_gets_each_runs_records(self):
        file = self.directory / 'events.jsonl'
        self.refused('--events-to', f'file:{file}')
        first = self.records()
        self.assertGreaterEqual(len(first), 3)
        file.write_text(file.read_text() + '{"cut":')  # A writer that was killed.
        self.refused(AGENTIC_CI_EVENTS_TO=f'file:{file}')
        self.assertEqual(file.read_text().splitlines(), [*first, '{"cut":', *self.records()])
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)

    def test_a_file_behind_a_link_is_not_written(self):
        (self.directory / 'victim').write_text('')
        (self.checkout / 'logs').symlink_to(self.directory)
        (self.directory / 'link').symlink_to(self.directory / 'victim')
        os.mkfifo(self.directory / 'pipe')
        for place in (self.checkout / 'logs/victim', self.directory / 'link', self.directory / 'pipe', self.directory / 'no/file'):
            said = self.refused('--events-to', f'file:{place}')
            self.assertIn('warn: records were not sent', said)
        self.assertEqual((self.directory / 'victim').read_text(), '')

    def test_syslog_counts_octets_over_tcp_and_tls(self):
        make_authority(self.directory)
        for scheme, context in (('tcp', None), ('tls', server_context(self.directory))):
            listener = Listener(context)
            self.addCleanup(listener.close)
            said = self.refused('--ca-file', self.directory / 'ca.pem', '--events-to', f'syslog+{scheme}://127.0.0.1:{listener.port}')
            self.assertNotIn('records were not sent', said)
            self.assertTrue(listener.ended.wait(60))
            messages = syslog_messages(listener.received[0])
            heads = [re.fullmatch(r'<(\d+)>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S+ agentic-ci - \S+ - (\{.*\})', message)
                     for message in messages]
            self.assertEqual([head[2] for head in heads], self.records())
            self.assertLessEqual({'132'}, {head[1] for head in heads})  # local0, warning: what was refused.

    def test_a_syslog_that_is_not_trusted_gets_nothing(self):
        make_authority(self.directory)
        listener = Listener(server_context(self.directory))
        self.addCleanup(listener.close)
        said = self.refused('--events-to', f'syslog+tls://127.0.0.1:{listener.port}')
        self.assertRegex(said, r'warn: records were not sent .* sent=0 unsent=[3-9]')
        self.assertEqual(listener.received, [])

    def test_collectors_get_batches_in_their_own_form(self):
        token = 'siem-t0ken-0123456789'
        splunk, elastic, lines = (self.start(lambda _: (200, b'{"errors":false}', {})) for _ in range(3))
        said = self.refused('--events-to', f'SIEM_TOKEN@splunk+{splunk.url}', '--events-to', f'SIEM_TOKEN@elastic+{elastic.url}/runs',
                            '--events-to', f'SIEM_TOKEN@{lines.url}/in?key=q', SIEM_TOKEN=token)
        (path, headers, body), = splunk.requests
        self.assertEqual((path, headers['authorization']), ('/services/collector/event', f'Splunk {token}'))
        objects = [json.loads(line) for line in body.decode().splitlines()]
        records = [json.loads(line) for line in self.records()]
        self.assertEqual([one['event'] for one in objects], records)
        self.assertAlmostEqual(objects[0]['time'], records[0]['time'] / 1000, places=3)
        (path, headers, body), = elastic.requests
        self.assertEqual((path, headers['authorization'], headers['content-type']), ('/runs/_bulk', f'ApiKey {token}', 'application/x-ndjson'))
        documents = [json.loads(line) for line in body.decode().splitlines()]
        self.assertEqual(documents[::2], [{'create': {}}] * len(records))
        self.assertEqual([{name: value for name, value in one.items() if name != '@timestamp'} for one in documents[1::2]], records)
        (path, headers, body), = lines.requests
        self.assertEqual((path, headers['authorization'], body.decode().splitlines()), ('/in?key=q', f'Bearer {token}', self.records()))
        self.assertNotIn(token, said)
        self.assertNotIn('key=q', said)
        for file in self.report.rglob('*'):
            if file.is_file():
                self.assertNotIn(token.encode(), file.read_bytes(), file)

    def test_what_a_collector_refused_is_said(self):
        answer = json.dumps({'errors': True, 'items': [{'create': {'status': 400, 'error': {'type': 'mapping', 'reason': 'odd'}}}]}).encode()
        for kind, status, why in (('elastic+', 200, 'mapping: odd'), ('splunk+', 403, '403')):
            collector = self.start(lambda _, status=status: (status, answer, {}))
            said = self.refused('--events-to', f'{kind}{collector.url}/x')
            self.assertRegex(said, f'warn: records were not sent .*{why}')

    def test_a_target_that_is_none_is_an_error_before_anything_starts(self):
        for options, variables, code, words in (
                (['--events-to', 'ftp://h'], {}, 64, 'not the address'),
                (['--events-to', 'http://siem.example/'], {}, 64, 'https only'),
                ([], {'AGENTIC_CI_EVENTS_TO': 'nothing'}, 64, 'AGENTIC_CI_EVENTS_TO'),
                (['--events-to', 'NOT_SET@https://siem.example/'], {}, 78, 'NOT_SET')):
            said = self.run_command('touch', 'started', options=options, expect=code, **variables)
            self.assertIn(words, said)
            self.assertFalse(self.report.exists())


if __name__ == '__main__':
    unittest.main()
