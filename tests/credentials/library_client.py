# SPDX-License-Identifier: Apache-2.0
"""A provider's own library as a client of the test's services: one exchange for each file, as its documentation says to do it.

usage: library_client.py LIBRARY HOST:PORT FILE...   Prints a line of JSON for each FILE: the token that the library has then, or why not.
HOST is on loopback, and no other name is known here.
"""
import json
import os
import socket
import sys

from identity_service import GOOGLE_SCOPES, POOL

resolve = socket.getaddrinfo


def resolve_one(host, *rest, **named):
    if host != AT.split(':')[0]:
        raise socket.gaierror(f'{host} is not of the test')
    return resolve('127.0.0.1', *rest, **named)


def anthropic(file):
    import anthropic
    os.environ.update(ANTHROPIC_BASE_URL=f'https://{AT}', ANTHROPIC_FEDERATION_RULE_ID='fdrl_1', ANTHROPIC_ORGANIZATION_ID='org-1',
                      ANTHROPIC_SERVICE_ACCOUNT_ID='svac_1', ANTHROPIC_WORKSPACE_ID='default', ANTHROPIC_IDENTITY_TOKEN_FILE=file)
    with anthropic.Anthropic(max_retries=0) as client:
        said = client.messages.with_raw_response.create(model='m', max_tokens=1, messages=[{'role': 'user', 'content': 'x'}])
        return said.http_request.headers['authorization'].removeprefix('Bearer ')


def openai(file):
    from openai.auth import WorkloadIdentityAuth, k8s_service_account_token_provider
    identity = {'identity_provider_id': 'idp_1', 'service_account_id': 'sa_1', 'provider': k8s_service_account_token_provider(file)}
    return WorkloadIdentityAuth(workload_identity=identity, token_exchange_url=f'https://{AT}/oauth/token').get_token()


def google(file, account=None):
    import google.auth.identity_pool
    import google.auth.transport.requests
    described = {'type': 'external_account', 'audience': f'//iam.googleapis.com/{POOL}', 'subject_token_type': 'urn:ietf:params:oauth:token-type:jwt',
                 'token_url': f'https://{AT}/v1/token', 'credential_source': {'file': file}}
    if account:
        described['service_account_impersonation_url'] = f'https://{AT}/v1/projects/-/serviceAccounts/{account}:generateAccessToken'
    credentials = google.auth.identity_pool.Credentials.from_info(described, scopes=[f'{GOOGLE_SCOPES}/cloud-platform'])
    credentials.refresh(google.auth.transport.requests.Request())
    return credentials.token


def google_account(file):
    return google(file, 'ci@p.iam.gserviceaccount.com')


def aws(file):
    import boto3
    os.environ.update(AWS_ENDPOINT_URL_STS=f'https://{AT}', AWS_ROLE_ARN='arn:aws:iam::123456789012:role/ci', AWS_REGION='eu-central-1',
                      AWS_ROLE_SESSION_NAME='agentic-ci', AWS_WEB_IDENTITY_TOKEN_FILE=file, AWS_EC2_METADATA_DISABLED='true')
    return boto3.Session(region_name='eu-central-1').get_credentials().get_frozen_credentials().token


def azure(file):
    import azure.identity
    credential = azure.identity.WorkloadIdentityCredential(tenant_id='tenant-1', client_id='client-1', token_file_path=file,
                                                           authority=f'https://{AT}', disable_instance_discovery=True)
    return credential.get_token('https://cognitiveservices.azure.com/.default').token


if __name__ == '__main__':
    AT = sys.argv[2]
    socket.getaddrinfo = resolve_one
    for path in sys.argv[3:]:
        try:
            print(json.dumps({'token': globals()[sys.argv[1]](path)}), flush=True)
        except Exception as fault:  # Each library has its own.
            print(json.dumps({'refused': f'{type(fault).__name__}: {fault}'}), flush=True)
