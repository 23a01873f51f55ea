// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/body_credentials.h"

#include <utility>

#include "codec/data/json.h"
#include "codec/text/percent.h"
#include "codec/text/utf8.h"
#include "gateway/credential/limits.h"

namespace gateway {
namespace {

// Rewrites one body: the first refusal sticks.
class Rewriter {
 public:
  Rewriter(const Credentials& credentials, const CredentialTarget& target)
      : credentials_(credentials), target_(target) {}

  std::string Text(std::string_view text) {
    std::string out;
    size_t done = 0;
    while (std::optional<Placeholder> found = FindPlaceholder(text, done)) {
      out.append(text.substr(done, found->at - done));
      ResolvedCredential resolved = credentials_.Resolve(target_, found->name);
      if (resolved.refusal.has_value()) Refuse(std::move(*resolved.refusal));
      out.append(resolved.value);
      done = found->at + found->size;
    }
    if (HasMarker(text.substr(done)))
      Refuse(CredentialUnavailable("placeholder without a name in a body"));
    return out.append(text.substr(done));
  }

  // String by string, each decoded and encoded again: a placeholder can stand behind an escape.
  // Malformed JSON is left to the server to refuse.
  std::string Json(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      size_t quote = std::min(text.find('"'), text.size());
      out.append(text.substr(0, quote));
      text.remove_prefix(quote);
      size_t size = LiteralSize(text);
      out.append(JsonLiteral(text.substr(0, size)));
      text.remove_prefix(size);
    }
    return out;
  }

  std::string Form(std::string_view text) {
    std::string out;
    for (;;) {
      size_t end = std::min(text.find('&'), text.size());
      std::string_view pair = text.substr(0, end);
      size_t equals = std::min(pair.find('='), pair.size());
      out.append(FormPart(pair.substr(0, equals)));
      if (equals < pair.size()) out.append("=").append(FormPart(pair.substr(equals + 1)));
      if (end == text.size()) return out;
      out += '&';
      text.remove_prefix(end + 1);
    }
  }

  void Refuse(CredentialRefusal because) {
    if (!refusal_.has_value()) refusal_ = std::move(because);
  }
  std::optional<CredentialRefusal> TakeRefusal() { return std::move(refusal_); }

 private:
  // Returns the size of the string that `text` begins with, quotes included; all of it when it does
  // not end.
  static size_t LiteralSize(std::string_view text) {
    for (size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        return i + 1;
    }
    return text.size();
  }

  std::string JsonLiteral(std::string_view literal) {
    Result<codec::Json> parsed = codec::ParseJson(literal);
    bool text = parsed.ok() && parsed.value().string() != nullptr;
    if (text && HasMarker(*parsed.value().string())) {
      return codec::RenderJsonLine(codec::Json(Text(*parsed.value().string())));
    }
    if (!text && HasMarker(literal))
      Refuse(CredentialUnavailable("placeholder in a body that is not JSON"));
    return std::string(literal);
  }

  std::string FormPart(std::string_view part) {
    std::string decoded = codec::FormDecode(part);
    if (!HasMarker(decoded)) return std::string(part);
    return codec::PercentEncode(Text(decoded));
  }

  const Credentials& credentials_;
  const CredentialTarget& target_;
  std::optional<CredentialRefusal> refusal_;
};

class BodyRewriter final : public WholeBodyStep {
 public:
  BodyRewriter(const Credentials& credentials, const CredentialTarget& target)
      : credentials_(credentials), path_(target.path), target_(target) {
    target_.path = path_;
  }

  std::optional<OutgoingRefusal> Apply(OutgoingRequest& request) override {
    // Others may have had a longer one read; in that a placeholder is refused like in any other.
    bool fits = request.body.size() <= kCredentialBodyBytesMax;
    BodyKind kind = fits ? KindOfBody(request.fields) : BodyKind::kOther;
    std::optional<CredentialRefusal> refusal =
        RewriteBody(credentials_, target_, kind, &request.body);
    if (!refusal.has_value()) return std::nullopt;
    return RefuseCredential(*refusal);
  }

 private:
  const Credentials& credentials_;
  std::string path_;
  CredentialTarget target_;
};

class MarkerFilter final : public StreamFilter {
 public:
  std::optional<OutgoingRefusal> Filter(std::string_view in, bool, std::string& out) override {
    if (scanner_.Feed(in)) {
      return RefuseCredential(CredentialUnavailable("placeholder in a request body"));
    }
    out.append(in);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  MarkerScanner scanner_;
};

class FilterStep final : public WholeBodyStep {
 public:
  explicit FilterStep(std::unique_ptr<StreamFilter> filter) : filter_(std::move(filter)) {}

  std::optional<OutgoingRefusal> Apply(OutgoingRequest& request) override {
    std::string out;
    std::optional<OutgoingRefusal> refusal = filter_->Filter(request.body, true, out);
    request.body = std::move(out);
    return refusal;
  }

 private:
  std::unique_ptr<StreamFilter> filter_;
};

}  // namespace

BodyKind KindOfBody(const codec::HttpFields& fields) {
  const codec::HttpField* field = codec::FindContentType(fields);
  if (field == nullptr || !codec::CodingsOf(fields).empty()) return BodyKind::kOther;
  std::string_view type = std::string_view(field->value).substr(0, field->value.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  auto starts = [&](std::string_view what) {
    return codec::EqualIgnoringCase(type.substr(0, what.size()), what);
  };
  auto ends = [&](std::string_view what) {
    return type.size() > what.size() &&
           codec::EqualIgnoringCase(type.substr(type.size() - what.size()), what);
  };
  if (codec::EqualIgnoringCase(type, "application/json") || ends("+json")) return BodyKind::kJson;
  if (codec::EqualIgnoringCase(type, "application/x-www-form-urlencoded")) return BodyKind::kForm;
  return starts("text/") ? BodyKind::kText : BodyKind::kOther;
}

std::optional<CredentialRefusal> RewriteBody(const Credentials& credentials,
                                             const CredentialTarget& target, BodyKind kind,
                                             std::string* body) {
  bool utf8 = codec::FindInvalidUtf8(*body) == std::string_view::npos;
  if (kind == BodyKind::kOther || !utf8) {
    MarkerScanner scanner;
    if (!scanner.Feed(*body)) return std::nullopt;
    return CredentialUnavailable(
        "placeholder in a body that is not short UTF-8 JSON, form or text");
  }
  Rewriter rewriter(credentials, target);
  SecretString out;
  if (kind == BodyKind::kJson) out = rewriter.Json(*body);
  if (kind == BodyKind::kForm) out = rewriter.Form(*body);
  if (kind == BodyKind::kText) out = rewriter.Text(*body);
  body->swap(out);
  return rewriter.TakeRefusal();
}

std::optional<CredentialRefusal> RewriteMessage(const Credentials& credentials,
                                                const CredentialTarget& target,
                                                std::string* message) {
  size_t first = message->find_first_not_of(" \t\r\n");
  bool json = first != std::string::npos &&
              ((*message)[first] == '{' || (*message)[first] == '[' || (*message)[first] == '"');
  return RewriteBody(credentials, target, json ? BodyKind::kJson : BodyKind::kText, message);
}

std::unique_ptr<WholeBodyStep> NewBodyRewriter(const Credentials& credentials,
                                               const CredentialTarget& target) {
  return std::make_unique<BodyRewriter>(credentials, target);
}

std::unique_ptr<StreamFilter> NewMarkerFilter() { return std::make_unique<MarkerFilter>(); }

std::unique_ptr<WholeBodyStep> NewFilterStep(std::unique_ptr<StreamFilter> filter) {
  return std::make_unique<FilterStep>(std::move(filter));
}

OutgoingRefusal RefuseCredential(const CredentialRefusal& refusal) {
  return {NewRefusal(refusal.status, refusal.error, refusal.detail), record::Engine::kCredentials,
          refusal.detail};
}

}  // namespace gateway
