// SPDX-License-Identifier: Apache-2.0
// The calls of OpenShell 0.1 that this program uses, and the fields of their messages: by number in
// the descriptors of the Python package `openshell` 0.1.5.
#pragma once

#include "codec/data/protobuf.h"

namespace openshell {

// One call of the service, from a message to one, or to many.
struct RpcMethod {
  const char* path;  // "/PACKAGE.SERVICE/METHOD".
  const codec::MessageShape* request;
  const codec::MessageShape* response;
};

namespace rpc {

extern const RpcMethod kHealth;
extern const RpcMethod kGetCurrentUser;
extern const RpcMethod kCreateSandbox;
extern const RpcMethod kGetSandbox;
extern const RpcMethod kListSandboxes;
extern const RpcMethod kStartSandbox;
extern const RpcMethod kDeleteSandbox;
extern const RpcMethod kExecSandbox;
extern const RpcMethod kExecSandboxInteractive;
extern const RpcMethod kWatchSandbox;
extern const RpcMethod kUpdateConfig;
extern const RpcMethod kGetSandboxConfig;
extern const RpcMethod kGetSandboxPolicyStatus;
extern const RpcMethod kGetDraftPolicy;
extern const RpcMethod kImportProviderProfiles;
extern const RpcMethod kListProviderProfiles;
extern const RpcMethod kDeleteProviderProfile;
extern const RpcMethod kCreateProvider;
extern const RpcMethod kGetProvider;
extern const RpcMethod kListProviders;
extern const RpcMethod kDeleteProvider;

}  // namespace rpc
}  // namespace openshell
