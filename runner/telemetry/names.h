// SPDX-License-Identifier: Apache-2.0
// The names of what is exported, in one place, since conventions rename them.
#pragma once

#include <string_view>

namespace telemetry::name {

using Name = std::string_view;

// OpenTelemetry's semantic conventions 1.44.0: `cicd.*` and `vcs.*` are a release candidate.
inline constexpr char kSchemaUrl[] = "https://opentelemetry.io/schemas/1.44.0";
inline constexpr Name kServiceName = "service.name";
inline constexpr Name kServiceVersion = "service.version";
inline constexpr Name kSdkName = "telemetry.sdk.name";
inline constexpr Name kSdkLanguage = "telemetry.sdk.language";
inline constexpr Name kSdkVersion = "telemetry.sdk.version";
inline constexpr Name kErrorType = "error.type";
inline constexpr Name kPipelineName = "cicd.pipeline.name";
inline constexpr Name kPipelineRunId = "cicd.pipeline.run.id";
inline constexpr Name kPipelineRunUrl = "cicd.pipeline.run.url.full";
inline constexpr Name kTaskName = "cicd.pipeline.task.name";
inline constexpr Name kTaskRunId = "cicd.pipeline.task.run.id";
inline constexpr Name kTaskRunUrl = "cicd.pipeline.task.run.url.full";
inline constexpr Name kTaskRunResult = "cicd.pipeline.task.run.result";
inline constexpr Name kVcsProvider = "vcs.provider.name";
inline constexpr Name kVcsOwner = "vcs.owner.name";
inline constexpr Name kVcsRepository = "vcs.repository.name";
inline constexpr Name kVcsRepositoryUrl = "vcs.repository.url.full";
inline constexpr Name kVcsChange = "vcs.change.id";
inline constexpr Name kVcsBaseName = "vcs.ref.base.name";
inline constexpr Name kVcsBaseRevision = "vcs.ref.base.revision";
inline constexpr Name kVcsHeadName = "vcs.ref.head.name";
inline constexpr Name kVcsHeadRevision = "vcs.ref.head.revision";
inline constexpr Name kHttpMethod = "http.request.method";
inline constexpr Name kHttpStatus = "http.response.status_code";
inline constexpr Name kServerAddress = "server.address";
inline constexpr Name kServerPort = "server.port";
inline constexpr Name kTransport = "network.transport";
inline constexpr Name kUrl = "url.full";
inline constexpr Name kProcessPid = "process.pid";
inline constexpr Name kProcessParent = "process.parent_pid";
inline constexpr Name kProcessPath = "process.executable.path";
inline constexpr Name kProcessName = "process.executable.name";
inline constexpr Name kProcessArguments = "process.command_args";  // With contents alone.

// Generative AI: semantic-conventions-genai 0.1.0, in development, whose names change with each
// release; those of core 1.41 and before are in brackets where they differ.
inline constexpr Name kOperation = "gen_ai.operation.name";
inline constexpr Name kProvider = "gen_ai.provider.name";
inline constexpr Name kAgentName = "gen_ai.agent.name";
inline constexpr Name kResponseModel = "gen_ai.response.model";
inline constexpr Name kInputTokens = "gen_ai.usage.input_tokens";  // Cached ones included.
inline constexpr Name kOutputTokens = "gen_ai.usage.output_tokens";
inline constexpr Name kCacheReadTokens = "gen_ai.usage.cache_read.input_tokens";
// [gen_ai.usage.cache_creation.input_tokens]
inline constexpr Name kCacheWriteTokens = "gen_ai.usage.cache_write.input_tokens";
inline constexpr Name kToolName = "gen_ai.tool.name";
inline constexpr Name kToolArguments = "gen_ai.tool.call.arguments";  // With contents alone.
inline constexpr Name kToolResult = "gen_ai.tool.call.result";        // Likewise.
// [gen_ai.client.operation.duration]
inline constexpr Name kInferenceDuration = "gen_ai.client.inference.duration";
// [gen_ai.client.token.usage with gen_ai.token.type], these four.
inline constexpr Name kInferenceInput = "gen_ai.client.inference.usage.input_tokens";
inline constexpr Name kInferenceOutput = "gen_ai.client.inference.usage.output_tokens";
inline constexpr Name kInferenceCacheRead = "gen_ai.client.inference.usage.cache_read.input_tokens";
inline constexpr Name kInferenceCacheWrite =
    "gen_ai.client.inference.usage.cache_write.input_tokens";
inline constexpr Name kAgentDuration = "gen_ai.invoke_agent.duration";
inline constexpr Name kAgentInferences = "gen_ai.invoke_agent.inference_calls";
inline constexpr Name kAgentTools = "gen_ai.invoke_agent.tool_calls";
inline constexpr Name kToolDuration = "gen_ai.execute_tool.duration";

// No convention has these.
inline constexpr Name kOutcome = "agentic_ci.outcome";
inline constexpr Name kExitCode = "agentic_ci.exit_code";
inline constexpr Name kTrust = "agentic_ci.trust";
inline constexpr Name kTier = "agentic_ci.isolation.tier";
inline constexpr Name kPolicyDigest = "agentic_ci.policy.sha256";
inline constexpr Name kImageDigest = "agentic_ci.image.digest";
inline constexpr Name kAgentVersion = "agentic_ci.agent.version";
inline constexpr Name kTask = "agentic_ci.task";
inline constexpr Name kCost = "agentic_ci.cost_usd";
inline constexpr Name kDropped = "agentic_ci.dropped";
inline constexpr Name kPhase = "agentic_ci.phase";
inline constexpr Name kTurn = "agentic_ci.turn";
inline constexpr Name kNested = "agentic_ci.nested";
inline constexpr Name kDecision = "agentic_ci.decision";
inline constexpr Name kEngine = "agentic_ci.engine";
inline constexpr Name kRule = "agentic_ci.rule";
inline constexpr Name kReason = "agentic_ci.reason";
inline constexpr Name kProgram = "agentic_ci.program";
inline constexpr Name kCheck = "agentic_ci.check.command";
inline constexpr Name kLimit = "agentic_ci.limit";
inline constexpr Name kUnit = "agentic_ci.unit";
inline constexpr Name kRunDuration = "agentic_ci.run.duration";
inline constexpr Name kRunCost = "agentic_ci.run.cost";
inline constexpr Name kRunTokens = "agentic_ci.run.tokens";
inline constexpr Name kRequests = "agentic_ci.requests";
inline constexpr Name kLimitUsed = "agentic_ci.limit.used";
inline constexpr Name kLimitBound = "agentic_ci.limit.bound";
inline constexpr Name kLimitReached = "agentic_ci.limit.reached";

}  // namespace telemetry::name
