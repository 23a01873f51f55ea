# SPDX-License-Identifier: Apache-2.0
"""Errors as OpenShell 0.1 gives them: a status with details in `grpc-status-details-bin`."""
import collections

import grpc
from google.rpc import code_pb2, error_details_pb2, status_pb2

DOMAIN = 'openshell.nvidia.com'
_Status = collections.namedtuple('_Status', 'code details trailing_metadata')


class _Answer(_Status, grpc.Status):
    pass


class Refusal(Exception):
    """`fields`: what is wrong with which field. `reason`: a word for programs. `retry_s`: when it may pass."""

    def __init__(self, code, message, fields=None, reason='', metadata=None, retry_s=None):
        super().__init__(message)
        self.code, self.message = code, message
        self.fields, self.reason, self.metadata, self.retry_s = fields or {}, reason, metadata or {}, retry_s

    def status(self):
        rich = status_pb2.Status(code=getattr(code_pb2, self.code), message=self.message)
        if self.fields:
            bad = error_details_pb2.BadRequest()
            for field, text in self.fields.items():
                bad.field_violations.add(field=field, description=text)
            rich.details.add().Pack(bad)
        if self.reason:
            rich.details.add().Pack(error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=self.metadata))
        if self.retry_s is not None:
            retry = error_details_pb2.RetryInfo()
            retry.retry_delay.FromMilliseconds(int(self.retry_s * 1000))
            rich.details.add().Pack(retry)
        return _Answer(grpc.StatusCode[self.code], self.message, (('grpc-status-details-bin', rich.SerializeToString()),))


def invalid(field, text):
    return Refusal('INVALID_ARGUMENT', f'{field}: {text}', {field: text})


def missing(what, name):
    return Refusal('NOT_FOUND', f'{what} {name!r} not found', reason='RESOURCE_NOT_FOUND', metadata={'resource': what, 'name': name})
