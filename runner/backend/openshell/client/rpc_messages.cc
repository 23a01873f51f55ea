// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/rpc_messages.h"

#include <array>
#include <string_view>

namespace openshell::rpc {
namespace {

using codec::FieldCount;
using codec::FieldKind;
using codec::MessageField;
using codec::MessageShape;
using Words = std::span<const std::string_view>;

constexpr MessageField Text(uint32_t number, std::string_view name) { return {number, name}; }
constexpr MessageField Bytes(uint32_t number, std::string_view name) {
  return {number, name, FieldKind::kBytes};
}
constexpr MessageField Bool(uint32_t number, std::string_view name) {
  return {number, name, FieldKind::kBool};
}
constexpr MessageField Integer(uint32_t number, std::string_view name) {
  return {number, name, FieldKind::kInteger};
}
constexpr MessageField Word(uint32_t number, std::string_view name, Words words) {
  return {number, name, FieldKind::kWord, FieldCount::kOne, nullptr, words};
}
constexpr MessageField Inner(uint32_t number, std::string_view name, const MessageShape& shape) {
  return {number, name, FieldKind::kMessage, FieldCount::kOne, &shape};
}
constexpr MessageField List(MessageField field) {
  field.count = FieldCount::kList;
  return field;
}
constexpr MessageField Map(MessageField field) {
  field.count = FieldCount::kMap;
  return field;
}

constexpr MessageShape kNothing;

// google.protobuf.

constexpr MessageField kTimeFields[] = {Integer(1, "seconds"), Integer(2, "nanos")};
constexpr MessageShape kTime{kTimeFields};

extern const MessageShape kStruct;
constexpr MessageField kValueFields[] = {Text(3, "string_value"),
                                         Inner(5, "struct_value", kStruct)};
constexpr MessageShape kValue{kValueFields};
constexpr MessageField kStructFields[] = {Map(Inner(1, "fields", kValue))};
constexpr MessageShape kStruct{kStructFields};

// openshell.sandbox.v1: a policy, whose members are called as in a policy file.

constexpr std::string_view kTlsWords[] = {"", "skip"};
constexpr std::string_view kEnforcementWords[] = {"", "enforce", "audit"};
constexpr std::string_view kAccessWords[] = {"", "read-only", "read-write", "full"};

constexpr MessageField kMatcherFields[] = {Text(1, "glob"), List(Text(2, "any"))};
constexpr MessageShape kMatcher{kMatcherFields};
constexpr MessageField kMatchFields[] = {
    Text(1, "method"),         Text(2, "path"),
    Text(3, "command"),        Map(Inner(4, "query", kMatcher)),
    Text(5, "operation_type"), Text(6, "operation_name"),
    List(Text(7, "fields")),   Map(Inner(9, "params", kMatcher))};
constexpr MessageShape kMatch{kMatchFields};
constexpr MessageField kAllowFields[] = {Inner(1, "allow", kMatch)};
constexpr MessageShape kAllow{kAllowFields};
constexpr MessageField kOperationFields[] = {Text(1, "operation_type"), Text(2, "operation_name"),
                                             List(Text(3, "fields"))};
constexpr MessageShape kOperation{kOperationFields};
constexpr MessageField kMcpFields[] = {Bool(1, "strict_tool_names"),
                                       Bool(2, "allow_all_known_mcp_methods"),
                                       List(Text(3, "versions"))};
constexpr MessageShape kMcp{kMcpFields};
constexpr MessageField kBindingFields[] = {Text(1, "provider")};
constexpr MessageShape kBinding{kBindingFields};
constexpr MessageField kEndpointFields[] = {Text(1, "host"),
                                            Integer(2, "port"),
                                            Text(3, "protocol"),
                                            Word(4, "tls", kTlsWords),
                                            Word(5, "enforcement", kEnforcementWords),
                                            Word(6, "access", kAccessWords),
                                            List(Inner(7, "rules", kAllow)),
                                            List(Text(8, "allowed_ips")),
                                            List(Integer(9, "ports")),
                                            List(Inner(10, "deny_rules", kMatch)),
                                            Bool(11, "allow_encoded_slash"),
                                            Text(12, "persisted_queries"),
                                            Map(Inner(13, "graphql_persisted_queries", kOperation)),
                                            Integer(14, "graphql_max_body_bytes"),
                                            Text(15, "path"),
                                            Bool(16, "websocket_credential_rewrite"),
                                            Bool(17, "request_body_credential_rewrite"),
                                            Text(19, "credential_signing"),
                                            Text(20, "signing_service"),
                                            Text(21, "signing_region"),
                                            Integer(22, "json_rpc_max_body_bytes"),
                                            Inner(23, "mcp", kMcp),
                                            Inner(24, "credential_binding", kBinding),
                                            Bool(25, "allow_uninspected_credentials")};
constexpr MessageShape kEndpoint{kEndpointFields};
constexpr MessageField kBinaryFields[] = {Text(1, "path")};
constexpr MessageShape kBinary{kBinaryFields};
constexpr MessageField kRuleFields[] = {Text(1, "name"), List(Inner(2, "endpoints", kEndpoint)),
                                        List(Inner(3, "binaries", kBinary))};
constexpr MessageShape kRule{kRuleFields};
constexpr MessageField kFilesystemFields[] = {
    Bool(1, "include_workdir"), List(Text(2, "read_only")), List(Text(3, "read_write"))};
constexpr MessageShape kFilesystem{kFilesystemFields};
constexpr MessageField kLandlockFields[] = {Text(1, "compatibility")};
constexpr MessageShape kLandlock{kLandlockFields};
constexpr MessageField kProcessFields[] = {Text(1, "run_as_user"), Text(2, "run_as_group")};
constexpr MessageShape kProcess{kProcessFields};
constexpr MessageField kSelectorFields[] = {List(Text(1, "include")), List(Text(2, "exclude"))};
constexpr MessageShape kSelector{kSelectorFields};
constexpr MessageField kMiddlewareFields[] = {Text(1, "name"), Text(2, "middleware"),
                                              Text(4, "on_error"), Inner(5, "endpoints", kSelector),
                                              Integer(6, "order")};
constexpr MessageShape kMiddleware{kMiddlewareFields};
constexpr MessageField kPolicyFields[] = {Integer(1, "version"),
                                          Inner(2, "filesystem_policy", kFilesystem),
                                          Inner(3, "landlock", kLandlock),
                                          Inner(4, "process", kProcess),
                                          Map(Inner(5, "network_policies", kRule)),
                                          Map(Inner(6, "network_middlewares", kMiddleware))};
constexpr MessageShape kPolicy{kPolicyFields};

// openshell.datamodel.v1, openshell.v1.

constexpr MessageField kScopeFields[] = {Text(1, "workspace")};
constexpr MessageShape kScope{kScopeFields};
constexpr MessageField kMetadataFields[] = {Text(1, "id"), Text(2, "name"), Map(Text(4, "labels")),
                                            Text(7, "workspace"),
                                            Inner(103, "created_time", kTime)};
constexpr MessageShape kMetadata{kMetadataFields};

constexpr std::string_view kServiceWords[] = {"", "healthy", "degraded", "unhealthy"};
constexpr MessageField kHealthFields[] = {Word(1, "status", kServiceWords), Text(2, "version")};
constexpr MessageShape kHealthResponse{kHealthFields};
constexpr MessageField kUserFields[] = {Text(1, "subject"), List(Text(3, "roles"))};
constexpr MessageShape kUser{kUserFields};

constexpr MessageField kTemplateFields[] = {Text(1, "image"), Inner(7, "resources", kStruct)};
constexpr MessageShape kTemplate{kTemplateFields};
constexpr MessageField kSpecFields[] = {
    Map(Text(5, "environment")), Inner(6, "template", kTemplate), Inner(7, "policy", kPolicy),
    List(Text(8, "providers")), List(Text(12, "command"))};
constexpr MessageShape kSpec{kSpecFields};
constexpr MessageField kConditionFields[] = {Text(1, "type"), Text(2, "status"), Text(3, "reason"),
                                             Text(4, "message")};
constexpr MessageShape kCondition{kConditionFields};
// As OpenShell's command line has them.
constexpr std::string_view kPhaseWords[] = {"Unspecified", "Provisioning", "Ready",    "Error",
                                            "Deleting",    "Unknown",      "Stopping", "Stopped",
                                            "Starting",    "Completed"};
constexpr MessageField kStatusFields[] = {List(Inner(5, "conditions", kCondition)),
                                          Word(6, "phase", kPhaseWords)};
constexpr MessageShape kStatus{kStatusFields};
constexpr MessageField kSandboxFields[] = {Inner(1, "metadata", kMetadata),
                                           Inner(3, "status", kStatus)};
constexpr MessageShape kSandbox{kSandboxFields};
constexpr MessageField kSandboxResponseFields[] = {Inner(1, "sandbox", kSandbox)};
constexpr MessageShape kSandboxResponse{kSandboxResponseFields};
constexpr MessageField kCreateFields[] = {
    Inner(1, "spec", kSpec), Text(2, "name"), Map(Text(3, "labels")),
    Inner(7, "workspace_scope", kScope), Text(8, "request_id")};
constexpr MessageShape kCreate{kCreateFields};
constexpr MessageField kGetFields[] = {Text(1, "name"), Inner(2, "workspace_scope", kScope)};
constexpr MessageShape kGet{kGetFields};
constexpr MessageField kListFields[] = {Integer(1, "page_size"), Text(2, "page_token"),
                                        Text(3, "label_selector"),
                                        Inner(4, "workspace_scope", kScope)};
constexpr MessageShape kList{kListFields};
constexpr MessageField kSandboxesFields[] = {List(Inner(1, "sandboxes", kSandbox)),
                                             Text(2, "next_page_token")};
constexpr MessageShape kSandboxes{kSandboxesFields};
constexpr MessageField kStartFields[] = {Text(1, "name"), Inner(2, "workspace_scope", kScope),
                                         Text(3, "request_id")};
constexpr MessageShape kStart{kStartFields};
constexpr MessageField kDeleteFields[] = {Text(1, "name"), Inner(2, "workspace_scope", kScope),
                                          Bool(3, "allow_missing"), Text(4, "request_id")};
constexpr MessageShape kDelete{kDeleteFields};

constexpr MessageField kExecFields[] = {
    Text(1, "sandbox"), List(Text(2, "command")),   Map(Text(4, "environment")),
    Bytes(6, "stdin"),  Bool(10, "no_login_shell"), Inner(12, "workspace_scope", kScope)};
constexpr MessageShape kExec{kExecFields};
constexpr MessageField kInputFields[] = {Inner(1, "start", kExec), Bytes(2, "stdin")};
constexpr MessageShape kInput{kInputFields};
constexpr MessageField kDataFields[] = {Bytes(1, "data")};
constexpr MessageShape kData{kDataFields};
constexpr MessageField kExitFields[] = {Integer(1, "exit_code")};
constexpr MessageShape kExit{kExitFields};
constexpr MessageField kExecEventFields[] = {Inner(1, "stdout", kData), Inner(2, "stderr", kData),
                                             Inner(3, "exit", kExit)};
constexpr MessageShape kExecEvent{kExecEventFields};

constexpr MessageField kWatchFields[] = {Text(1, "sandbox"),
                                         Bool(3, "follow_logs"),
                                         Integer(5, "log_tail_lines"),
                                         List(Text(9, "log_sources")),
                                         Inner(11, "workspace_scope", kScope),
                                         Text(12, "resume_after_cursor")};
constexpr MessageShape kWatch{kWatchFields};
constexpr MessageField kLineFields[] = {Text(3, "level"), Text(4, "target"), Text(5, "message"),
                                        Text(6, "source"), Inner(102, "event_time", kTime)};
constexpr MessageShape kLine{kLineFields};
constexpr MessageField kWarningFields[] = {Text(1, "message")};
constexpr MessageShape kWarning{kWarningFields};
constexpr MessageField kStreamFields[] = {Inner(2, "log", kLine), Inner(4, "warning", kWarning),
                                          Text(6, "cursor")};
constexpr MessageShape kStream{kStreamFields};

constexpr MessageField kSettingFields[] = {Text(1, "string_value"), Bool(2, "bool_value")};
constexpr MessageShape kSetting{kSettingFields};
constexpr MessageField kUpdateFields[] = {Text(1, "sandbox"),
                                          Inner(2, "policy", kPolicy),
                                          Bytes(2, "policy_bytes"),  // The same, as it came.
                                          Text(3, "setting_key"),
                                          Inner(4, "setting_value", kSetting),
                                          Inner(10, "workspace_scope", kScope),
                                          Text(11, "request_id")};
constexpr MessageShape kUpdate{kUpdateFields};
constexpr MessageField kUpdatedFields[] = {Integer(1, "version"), Text(2, "policy_hash")};
constexpr MessageShape kUpdated{kUpdatedFields};
constexpr MessageField kConfigFields[] = {Text(1, "name"), Inner(3, "workspace_scope", kScope)};
constexpr MessageShape kConfig{kConfigFields};
// The policy's bytes, which go back as they came.
constexpr MessageField kConfigResponseFields[] = {Bytes(1, "policy"), Integer(2, "version")};
constexpr MessageShape kConfigResponse{kConfigResponseFields};
constexpr MessageField kPolicyStatusFields[] = {Text(1, "sandbox"), Integer(2, "version"),
                                                Inner(4, "workspace_scope", kScope)};
constexpr MessageShape kPolicyStatus{kPolicyStatusFields};
constexpr std::string_view kRevisionWords[] = {"", "pending", "loaded", "failed", "superseded"};
constexpr MessageField kRevisionFields[] = {
    Integer(1, "version"), Word(3, "status", kRevisionWords), Text(4, "load_error")};
constexpr MessageShape kRevision{kRevisionFields};
constexpr MessageField kPolicyStateFields[] = {Inner(1, "revision", kRevision)};
constexpr MessageShape kPolicyState{kPolicyStateFields};

constexpr MessageField kDraftFields[] = {Text(1, "sandbox"), Text(2, "status_filter"),
                                         Inner(3, "workspace_scope", kScope)};
constexpr MessageShape kDraft{kDraftFields};
constexpr MessageField kChunkFields[] = {Text(1, "id"), Text(2, "status"),
                                         Inner(4, "proposed_rule", kRule), Text(16, "binary")};
constexpr MessageShape kChunk{kChunkFields};
constexpr MessageField kChunksFields[] = {List(Inner(1, "chunks", kChunk))};
constexpr MessageShape kChunks{kChunksFields};

constexpr std::string_view kCategoryWords[] = {"", "other"};
constexpr MessageField kProfileCredentialFields[] = {
    Text(1, "name"),     Text(2, "description"), List(Text(3, "env_vars")),
    Bool(4, "required"), Text(5, "auth_style"),  Text(6, "header_name")};
constexpr MessageShape kProfileCredential{kProfileCredentialFields};
constexpr MessageField kProfileFields[] = {
    Text(1, "id"), Text(2, "display_name"), Text(3, "description"),
    Word(4, "category", kCategoryWords), List(Inner(5, "credentials", kProfileCredential))};
constexpr MessageShape kProfile{kProfileFields};
constexpr MessageField kImportItemFields[] = {Inner(1, "profile", kProfile), Text(2, "source")};
constexpr MessageShape kImportItem{kImportItemFields};
constexpr MessageField kImportFields[] = {List(Inner(1, "profiles", kImportItem)),
                                          Inner(2, "workspace_scope", kScope),
                                          Text(3, "request_id")};
constexpr MessageShape kImport{kImportFields};
constexpr MessageField kDiagnosticFields[] = {Text(3, "field"), Text(4, "message")};
constexpr MessageShape kDiagnostic{kDiagnosticFields};
constexpr MessageField kImportedFields[] = {List(Inner(1, "diagnostics", kDiagnostic)),
                                            Bool(3, "imported")};
constexpr MessageShape kImported{kImportedFields};
constexpr MessageField kListProvidersFields[] = {Integer(1, "page_size"), Text(2, "page_token"),
                                                 Inner(3, "workspace_scope", kScope)};
constexpr MessageShape kListOfProviders{kListProvidersFields};
constexpr MessageField kProfileNameFields[] = {Text(1, "id")};
constexpr MessageShape kProfileName{kProfileNameFields};
constexpr MessageField kProfilesFields[] = {List(Inner(1, "profiles", kProfileName)),
                                            Text(2, "next_page_token")};
constexpr MessageShape kProfiles{kProfilesFields};
constexpr MessageField kDeleteProfileFields[] = {Text(1, "id"), Inner(2, "workspace_scope", kScope),
                                                 Bool(3, "allow_missing"), Text(4, "request_id")};
constexpr MessageShape kDeleteProfile{kDeleteProfileFields};
constexpr MessageField kProviderFields[] = {Inner(1, "metadata", kMetadata), Text(2, "type"),
                                            Map(Text(3, "credentials"))};
constexpr MessageShape kProvider{kProviderFields};
constexpr MessageField kProviderResponseFields[] = {Inner(1, "provider", kProvider)};
constexpr MessageShape kProviderResponse{kProviderResponseFields};
constexpr MessageField kMakeProviderFields[] = {
    Inner(1, "provider", kProvider), Inner(2, "workspace_scope", kScope), Text(3, "request_id")};
constexpr MessageShape kMakeProvider{kMakeProviderFields};
constexpr MessageField kProvidersFields[] = {List(Inner(1, "providers", kProvider)),
                                             Text(2, "next_page_token")};
constexpr MessageShape kProviders{kProvidersFields};
constexpr MessageField kDropProviderFields[] = {Text(1, "name"),
                                                Inner(3, "workspace_scope", kScope),
                                                Bool(4, "allow_missing"), Text(5, "request_id")};
constexpr MessageShape kDropProvider{kDropProviderFields};

}  // namespace

#define METHOD(name, request, response) \
  const RpcMethod k##name { "/openshell.v1.OpenShell/" #name, &(request), &(response) }

METHOD(Health, kNothing, kHealthResponse);
METHOD(GetCurrentUser, kNothing, kUser);
METHOD(CreateSandbox, kCreate, kSandboxResponse);
METHOD(GetSandbox, kGet, kSandboxResponse);
METHOD(ListSandboxes, kList, kSandboxes);
METHOD(StartSandbox, kStart, kSandboxResponse);
METHOD(DeleteSandbox, kDelete, kNothing);
METHOD(ExecSandbox, kExec, kExecEvent);
METHOD(ExecSandboxInteractive, kInput, kExecEvent);
METHOD(WatchSandbox, kWatch, kStream);
METHOD(UpdateConfig, kUpdate, kUpdated);
METHOD(GetSandboxConfig, kConfig, kConfigResponse);
METHOD(GetSandboxPolicyStatus, kPolicyStatus, kPolicyState);
METHOD(GetDraftPolicy, kDraft, kChunks);
METHOD(ImportProviderProfiles, kImport, kImported);
METHOD(ListProviderProfiles, kListOfProviders, kProfiles);
METHOD(DeleteProviderProfile, kDeleteProfile, kNothing);
METHOD(CreateProvider, kMakeProvider, kProviderResponse);
METHOD(GetProvider, kGet, kProviderResponse);
METHOD(ListProviders, kListOfProviders, kProviders);
METHOD(DeleteProvider, kDropProvider, kNothing);

#undef METHOD

}  // namespace openshell::rpc
