// SPDX-License-Identifier: Apache-2.0
// The fields of OpenTelemetry's messages that are written here (opentelemetry-proto 1.11.0): the
// one table for both encodings, grouped by message.
#pragma once

#include "telemetry/otlp/message.h"

namespace telemetry::otlp {

// common/v1: AnyValue (exactly one of its fields), KeyValue, InstrumentationScope.
inline constexpr Field kStringValue{"stringValue", 1, Form::kText};
inline constexpr Field kBoolValue{"boolValue", 2, Form::kBoolean};
inline constexpr Field kIntValue{"intValue", 3, Form::kInteger};
inline constexpr Field kDoubleValue{"doubleValue", 4, Form::kDouble};
inline constexpr Field kArrayValue{"arrayValue", 5, Form::kMessage};
inline constexpr Field kArrayValues{"values", 1, Form::kMessage, true};  // ArrayValue.
inline constexpr Field kKey{"key", 1, Form::kText};
inline constexpr Field kValue{"value", 2, Form::kMessage};
inline constexpr Field kScopeName{"name", 1, Form::kText};
inline constexpr Field kScopeVersion{"version", 2, Form::kText};

// resource/v1: Resource.
inline constexpr Field kResourceAttributes{"attributes", 1, Form::kMessage, true};

// The three requests, and what is alike in Resource{Spans,Metrics,Logs} and Scope{...}.
inline constexpr Field kResourceSpans{"resourceSpans", 1, Form::kMessage, true};
inline constexpr Field kResourceMetrics{"resourceMetrics", 1, Form::kMessage, true};
inline constexpr Field kResourceLogs{"resourceLogs", 1, Form::kMessage, true};
inline constexpr Field kResource{"resource", 1, Form::kMessage};
inline constexpr Field kScopeSpans{"scopeSpans", 2, Form::kMessage, true};
inline constexpr Field kScopeMetrics{"scopeMetrics", 2, Form::kMessage, true};
inline constexpr Field kScopeLogs{"scopeLogs", 2, Form::kMessage, true};
inline constexpr Field kScope{"scope", 1, Form::kMessage};
inline constexpr Field kSpans{"spans", 2, Form::kMessage, true};
inline constexpr Field kMetrics{"metrics", 2, Form::kMessage, true};
inline constexpr Field kLogRecords{"logRecords", 2, Form::kMessage, true};
inline constexpr Field kSchemaUrl{"schemaUrl", 3, Form::kText};

// trace/v1: Span, Status.
inline constexpr Field kTraceId{"traceId", 1, Form::kId};  // 16 bytes.
inline constexpr Field kSpanId{"spanId", 2, Form::kId};    // 8 bytes.
inline constexpr Field kTraceState{"traceState", 3, Form::kText};
inline constexpr Field kParentSpanId{"parentSpanId", 4, Form::kId};
inline constexpr Field kSpanName{"name", 5, Form::kText};
inline constexpr Field kSpanKind{"kind", 6, Form::kNumber};
inline constexpr Field kSpanStart{"startTimeUnixNano", 7, Form::kFixed64};
inline constexpr Field kSpanEnd{"endTimeUnixNano", 8, Form::kFixed64};
inline constexpr Field kSpanAttributes{"attributes", 9, Form::kMessage, true};
inline constexpr Field kSpanStatus{"status", 15, Form::kMessage};
inline constexpr Field kSpanFlags{"flags", 16, Form::kFixed32};
inline constexpr Field kStatusMessage{"message", 2, Form::kText};
inline constexpr Field kStatusCode{"code", 3, Form::kNumber};

// metrics/v1: Metric, Gauge, Sum, Histogram and their points.
inline constexpr Field kMetricName{"name", 1, Form::kText};
inline constexpr Field kMetricDescription{"description", 2, Form::kText};
inline constexpr Field kMetricUnit{"unit", 3, Form::kText};
inline constexpr Field kGauge{"gauge", 5, Form::kMessage};
inline constexpr Field kSum{"sum", 7, Form::kMessage};
inline constexpr Field kHistogram{"histogram", 9, Form::kMessage};
inline constexpr Field kDataPoints{"dataPoints", 1, Form::kMessage, true};
inline constexpr Field kTemporality{"aggregationTemporality", 2, Form::kNumber};
inline constexpr Field kMonotonic{"isMonotonic", 3, Form::kBoolean};
inline constexpr Field kPointStart{"startTimeUnixNano", 2, Form::kFixed64};
inline constexpr Field kPointTime{"timeUnixNano", 3, Form::kFixed64};
inline constexpr Field kPointReal{"asDouble", 4, Form::kDouble};
inline constexpr Field kPointInteger{"asInt", 6, Form::kFixed64};  // sfixed64; never negative here.
inline constexpr Field kPointAttributes{"attributes", 7, Form::kMessage, true};
inline constexpr Field kHistogramCount{"count", 4, Form::kFixed64};
inline constexpr Field kHistogramSum{"sum", 5, Form::kDouble};
inline constexpr Field kBucketCounts{"bucketCounts", 6, Form::kFixed64, true};
inline constexpr Field kExplicitBounds{"explicitBounds", 7, Form::kDouble, true};
inline constexpr Field kHistogramAttributes{"attributes", 9, Form::kMessage, true};
inline constexpr Field kHistogramMin{"min", 11, Form::kDouble};
inline constexpr Field kHistogramMax{"max", 12, Form::kDouble};

// logs/v1: LogRecord.
inline constexpr Field kLogTime{"timeUnixNano", 1, Form::kFixed64};
inline constexpr Field kSeverityNumber{"severityNumber", 2, Form::kNumber};
inline constexpr Field kSeverityText{"severityText", 3, Form::kText};
inline constexpr Field kLogBody{"body", 5, Form::kMessage};
inline constexpr Field kLogAttributes{"attributes", 6, Form::kMessage, true};
inline constexpr Field kLogFlags{"flags", 8, Form::kFixed32};
inline constexpr Field kLogTraceId{"traceId", 9, Form::kId};
inline constexpr Field kLogSpanId{"spanId", 10, Form::kId};
inline constexpr Field kLogObserved{"observedTimeUnixNano", 11, Form::kFixed64};
inline constexpr Field kEventName{"eventName", 12, Form::kText};

}  // namespace telemetry::otlp
