// SPDX-License-Identifier: Apache-2.0
#include "serve/method.h"

#include <algorithm>

#include "codec/text/base64.h"
#include "codec/text/nearest.h"

namespace serve {
namespace {

Member SandboxName() { return {"sandbox", Form::kText, "The sandbox's name.", true}; }
Member RequestId() { return {"request", Form::kId, "The id of a request that goes on.", true}; }

bool AllTexts(const codec::Json::Array& list) {
  return std::all_of(list.begin(), list.end(), [](const auto& one) { return one.string(); });
}

bool IsOption(const codec::Json& value) { return value.string() != nullptr || value.integer(); }

bool HasForm(const codec::Json& value, Form form) {
  switch (form) {
    case Form::kText:
      return value.string() != nullptr;
    case Form::kFlag:
      return value.boolean().has_value();
    case Form::kCount:
      return value.integer().value_or(-1) >= 0;
    case Form::kTexts:
      return value.array() != nullptr && AllTexts(*value.array());
    case Form::kVariables:
      return value.object() != nullptr &&
             std::all_of(value.object()->begin(), value.object()->end(),
                         [](const auto& one) { return one.second.string() != nullptr; });
    case Form::kId:
      return value.string() != nullptr || value.integer();
    case Form::kObject:
      return value.object() != nullptr;
    case Form::kOption:
      return IsOption(value);
    case Form::kOptions:
      return IsOption(value) ||
             (value.array() != nullptr &&
              std::all_of(value.array()->begin(), value.array()->end(), IsOption));
  }
  return false;
}

const char* NameOf(Form form) {
  constexpr const char* kNames[] = {"a text",
                                    "true or false",
                                    "a whole number",
                                    "a list of texts",
                                    "an object of texts",
                                    "a text or a whole number",
                                    "an object",
                                    "a text or a whole number",
                                    "a text or a list of texts"};
  return kNames[static_cast<size_t>(form)];
}

codec::Json TypeOf(const char* name) {
  codec::Json type;
  type.Set("type", name);
  return type;
}

codec::Json ListOf(codec::Json items) {
  codec::Json list = TypeOf("array");
  list.Set("items", std::move(items));
  return list;
}

codec::Json TypesOf(std::initializer_list<codec::Json> types) {
  codec::Json any = codec::Json::EmptyArray();
  for (const codec::Json& type : types) any.Push(type);
  codec::Json either;
  either.Set("anyOf", std::move(any));
  return either;
}

codec::Json SchemaOf(const Member& member) {
  codec::Json schema;
  switch (member.form) {
    case Form::kText:
      schema = TypeOf("string");
      break;
    case Form::kFlag:
      schema = TypeOf("boolean");
      break;
    case Form::kCount:
      schema = TypeOf("integer");
      schema.Set("minimum", 0);
      break;
    case Form::kTexts:
      schema = ListOf(TypeOf("string"));
      break;
    case Form::kVariables:
      schema = TypeOf("object");
      schema.Set("additionalProperties", TypeOf("string"));
      break;
    case Form::kObject:
      schema = TypeOf("object");
      break;
    case Form::kId:
    case Form::kOption:
      schema = TypesOf({TypeOf("string"), TypeOf("integer")});
      break;
    case Form::kOptions: {
      const codec::Json one = TypesOf({TypeOf("string"), TypeOf("integer")});
      schema = TypesOf({TypeOf("string"), TypeOf("integer"), ListOf(one)});
      break;
    }
  }
  schema.Set("description", member.doc);
  return schema;
}

std::vector<Member> ExecMembers() {
  return {
      SandboxName(),
      {"command", Form::kTexts, "A program and its arguments."},
      {"script", Form::kText, "Text for the shell, instead of `command`."},
      {"directory", Form::kText, "Where it runs, in a shell of its own: what it sets is not kept."},
      {"env", Form::kVariables, "Variables for it, in a shell of its own."},
      {"timeout", Form::kText, "How long it may run: `20s`. If not given, as created."},
      {"wait", Form::kFlag, "False: fail if another command is running, instead of waiting."},
      {"merge", Form::kFlag, "Both of its streams as one, in order: `stdout`."},
      {"collect", Form::kFlag, "Its output in the result, at most 4 MiB, not in notifications."},
      {"changes", Form::kFlag, "False: the result does not list the files that changed."},
      {"stdin", Form::kObject,
       "Its standard input: `text` or `base64`, and `end`, false if `input` follows. If not "
       "given, "
       "it is empty."},
      {"window", Form::kCount,
       "How many bytes of output may be sent before an `ack`. If not given, there is no "
       "limit."}};
}

// The methods about sandboxes as wholes.
std::vector<Method> SandboxMethods(const std::vector<Member>& options) {
  return {
      {"initialize",
       "Must be the first request. Says which protocol the client speaks.",
       {{"protocol", Form::kCount, "The version of the protocol: 1.", true},
        {"client", Form::kObject, "What the client is, for people."}}},
      {"create", "Starts a sandbox, which ends with this connection.", options},
      {"fork",
       "Starts a second sandbox with the options of a first one, and with its files and its shell "
       "as "
       "they are now, or those of a snapshot.",
       {{"sandbox", Form::kText, "The first one, which was created over this connection.", true},
        {"name", Form::kText, "The second one's name. If not given, one is made up."},
        {"snapshot", Form::kOption, "The snapshot that it begins with, as for `create`."},
        {"snapshot-key", Form::kOption, "A public key that must have signed it."},
        {"ttl", Form::kOption, "How long it lives. If not given, as the first one from its start."},
        {"report-dir", Form::kOption, "The directory for its report."}}},
      {"list", "Lists this user's sandboxes.", {}},
      {"delete",
       "Ends a sandbox.",
       {SandboxName(),
        {"apply", Form::kFlag, "True: apply the changes that pass the gates."},
        {"apply-ignored", Form::kFlag, "True, with `apply`: also the files that git ignores."}}},
  };
}

// Those about what runs in them.
std::vector<Method> CommandMethods() {
  const Member text{"text", Form::kText, "Bytes that are UTF-8."};
  const Member base64{"base64", Form::kText, "Bytes in Base64, instead of `text`."};
  return {
      {"exec",
       "Runs a command in a sandbox's shell. What it writes comes as `output` notifications.",
       ExecMembers()},
      {"input",
       "More standard input for a command that goes on, or more of an archive that is put.",
       {RequestId(), text, base64, {"end", Form::kFlag, "True: its last."}}},
      {"ack",
       "Lets so many more bytes of a command's output be sent.",
       {RequestId(), {"bytes", Form::kCount, "How many more.", true}}},
      {"cancel",
       "Ends a request. It is answered all the same: a command by a result whose `reason` is "
       "`cancelled`.",
       {RequestId()}},
  };
}

// Those about files.
std::vector<Method> FileMethods() {
  const Member text{"text", Form::kText, "Bytes that are UTF-8."};
  const Member base64{"base64", Form::kText, "Bytes in Base64, instead of `text`."};
  return {
      {"put",
       "Copies a file or directory of the host into a sandbox, or writes a file or what an archive "
       "holds.",
       {SandboxName(),
        {"target", Form::kText, "As for `sandbox put`.", true},
        {"source", Form::kText, "A path of the host."},
        text,
        base64,
        {"executable", Form::kFlag, "True: the file that is written can be executed."},
        {"archive", Form::kFlag,
         "True: `text` or `base64` is a tar archive, or its beginning; the directory `target`, "
         "made "
         "if missing, gets what is in it."},
        {"end", Form::kFlag, "Of an archive, false: `input` follows with more of it."}}},
      {"get",
       "Copies a file or directory of a sandbox to the host, or sends it as `data` notifications.",
       {SandboxName(),
        {"source", Form::kText, "A path in the sandbox.", true},
        {"target", Form::kText, "A path of the host. If not given, the content is sent."},
        {"archive", Form::kFlag,
         "True: send a tar archive, of a directory too, whose names are relative to it."},
        {"collect", Form::kFlag, "The content in the result, at most 4 MiB, not in notifications."},
        {"max-size", Form::kOption, "How much is copied at most; 8GiB if not given."}}},
      {"diff",
       "Returns what has changed in the checkout, as a list and a patch. One over 1 MiB comes as "
       "`data` notifications.",
       {SandboxName(),
        {"collect", Form::kFlag,
         "Such a patch in the result, at most 4 MiB, as `text` or `base64`."}}},
      {"apply",
       "Applies the changes to the checkout, if the gates let them pass.",
       {SandboxName()}},
  };
}

// Those about the state of a sandbox, and what it may do.
std::vector<Method> StateMethods() {
  return {
      {"snapshot",
       "Keeps everything written in the sandbox.",
       {SandboxName(),
        {"tag", Form::kText, "A name for it."},
        {"output", Form::kText, "The OCI layout to write it to. If not given, this user's own."}}},
      {"restore",
       "Puts a sandbox where a snapshot was taken.",
       {SandboxName(),
        {"snapshot", Form::kText, "A tag, a digest, or oci:DIRECTORY[:TAG][@DIGEST].", true},
        {"key", Form::kText, "A file with the public key that must have signed it."}}},
      {"reset", "Puts a sandbox back to its beginning.", {SandboxName()}},
      {"state",
       "Returns what is used of the limits, the last commands, and the `script` that makes another "
       "shell what the "
       "sandbox's was after its last command: variables, functions, options, directory.",
       {SandboxName()}},
      {"events",
       "Sends requests as they are judged, as `event` notifications, until cancelled.",
       {SandboxName(),
        {"all", Form::kFlag, "True: what was since the sandbox began, too."},
        {"limits", Form::kFlag, "True: `limit` notifications as limits are 80% full, and full."},
        {"files", Form::kFlag, "True: `changes` notifications as files of the checkout change."}}},
      {"policy",
       "Has a sandbox read the file of its `policy` again, or takes another policy in its place, "
       "and applies the network rules.",
       {SandboxName(),
        {"text", Form::kText, "A policy. If it is not accepted, the one in force stays."},
        {"file", Form::kText, "A file of the host with it, instead of `text`."}}},
  };
}

}  // namespace

codec::Json SchemaOf(const Method& method) {
  codec::Json properties = codec::Json::EmptyObject();
  std::vector<std::string> required;
  for (const Member& member : method.members) {
    properties.Set(member.name, SchemaOf(member));
    if (member.required) required.push_back(member.name);
  }
  codec::Json params = TypeOf("object");
  params.Set("description", method.doc);
  params.Set("properties", std::move(properties));
  params.Set("required", codec::Json::FromStrings(required));
  params.Set("additionalProperties", false);
  return params;
}

std::vector<Method> Methods(const std::vector<Member>& options) {
  std::vector<Method> all = SandboxMethods(options);
  for (const std::vector<Method>& more : {CommandMethods(), FileMethods(), StateMethods()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Result<const Method*> FindMethod(const std::vector<Method>& methods, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Method& method : methods) {
    if (method.name == name) return &method;
    names.push_back(method.name);
  }
  return Error{Code::kNotFound, "there is no method '" + name + "'",
               codec::NearestName(name, names)};
}

Status CheckParams(const Method& method, const codec::Json& params) {
  std::vector<std::string_view> names;
  for (const Member& member : method.members) {
    names.push_back(member.name);
    const codec::Json* value = params.Find(member.name);
    if (value == nullptr && member.required) {
      return Error{Code::kUsage, method.name + ": '" + member.name + "' is missing"};
    }
    if (value != nullptr && !HasForm(*value, member.form)) {
      return Error{Code::kUsage,
                   method.name + ": '" + member.name + "' is not " + NameOf(member.form)};
    }
  }
  if (params.object() == nullptr) return Ok();
  for (const auto& [name, value] : *params.object()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return Error{Code::kUsage, method.name + ": there is no member '" + name + "'",
                 codec::NearestName(name, names)};
  }
  return Ok();
}

Result<std::string> BytesOf(const codec::Json& params) {
  const codec::Json* text = params.Find("text");
  const codec::Json* base64 = params.Find("base64");
  if (text != nullptr && base64 != nullptr) {
    return Error{Code::kUsage, "'text' and 'base64' exclude each other"};
  }
  if (text != nullptr && text->string() != nullptr) return *text->string();
  if (base64 == nullptr) return std::string();
  std::optional<std::string> bytes = codec::DecodeBase64(params.StringAt("base64"));
  if (!bytes) return Error{Code::kUsage, "'base64' is not Base64"};
  return std::move(*bytes);
}

std::string RenderSchema(const std::vector<Method>& methods) {
  codec::Json requests = codec::Json::EmptyArray();
  for (const Method& method : methods) {
    codec::Json version;
    version.Set("const", "2.0");
    codec::Json name;
    name.Set("const", method.name);
    codec::Json properties;
    properties.Set("jsonrpc", std::move(version));
    properties.Set("id", TypesOf({TypeOf("string"), TypeOf("integer")}));
    properties.Set("method", std::move(name));
    properties.Set("params", SchemaOf(method));
    codec::Json request = TypeOf("object");
    request.Set("properties", std::move(properties));
    request.Set("required", codec::Json::FromStrings({"jsonrpc", "method"}));
    requests.Push(std::move(request));
  }
  codec::Json schema;
  schema.Set("$schema", "https://json-schema.org/draft/2020-12/schema");
  schema.Set("title", "Messages to agentic-ci serve");
  schema.Set("description", "docs/reference/serve.md. Generated; each line is one such message.");
  schema.Set("oneOf", std::move(requests));
  return codec::RenderJson(schema);
}

}  // namespace serve
