// SPDX-License-Identifier: Apache-2.0
// Looks for texts in whatever servers are sent: an evaluation's canaries. Nothing is changed or
// held back.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "gateway/http/authority.h"
#include "gateway/http/body_filter.h"
#include "record/event.h"

namespace gateway {

// Each text is found in every form of sent_forms.h and sent_digits.h, backwards too, and with these
// around each other; of a longer text, any 24 letters and digits that follow each other. The first
// time that a server is sent a text is recorded as a finding of type "watch.sent", with the text's
// number (from 1): the text itself may be a secret, which records mask. What could not be looked
// into is recorded as one of type "watch.sent-unread", once for each server: bodies that are
// compressed or not text, what hides bytes, and more encodings around each other than are undone.
class SentWatch {
 public:
  // The destination of a request.
  struct To {
    Authority server;
    bool model = false;  // It is a prompt for the run's model.
  };

  // `models` are the servers of the run's model. A host may be a pattern; port 0 is any.
  SentWatch(std::vector<std::string> texts, std::vector<Authority> models,
            std::function<void(const record::Notice&)> record);

  bool watches() const { return !forms_.empty(); }
  // Returns the destination of a request of that method and canonical path. It counts as the model
  // only on one of the model's servers; a path like a model's is not enough.
  To Addressed(const Authority& server, std::string_view method, std::string_view path) const;
  // Looks at a name that will be resolved: name servers get it.
  void LookAtName(const std::string& host);
  // Looks at a request as it is sent, with its body if that was read whole. `own` are its fields as
  // the agent sent them, if they were not these: the runner's credentials are bytes that hide
  // nothing.
  void LookAtRequest(const To& to, const OutgoingRequest& request,
                     const codec::HttpFields* own = nullptr);
  void LookAtFields(const To& to, const codec::HttpFields& fields,
                    const codec::HttpFields* own = nullptr);
  // Makes a filter for the last look at a body that streams.
  std::unique_ptr<StreamFilter> NewFilter(To to);
  // Reports that bytes of another protocol than HTTP will pass.
  void NotePassage(const Authority& server);

 private:
  class BodyLook;
  struct Form {
    size_t text = 0;  // Its number.
    std::string bytes;
    bool exact = false;  // To be found as they are; else in a Skeleton().
  };

  struct Needle {
    size_t text = 0;
    std::string_view bytes;  // A part of one of `forms_`.
  };

  void AddNeedle(const Needle& needle);
  // Looks into bytes as they are, and with the encodings undone that may lie around a text.
  void LookInto(const To& to, std::string_view bytes, bool reports_hidden);
  void Look(const To& to, std::string_view bytes);
  void LookForNeedles(const To& to, std::string_view skeleton);
  void LookAtBody(const To& to, std::string_view body, bool from_beginning);
  void NoteSent(const To& to, size_t text);
  void NoteUnread(const Authority& server, const char* why);

  std::vector<std::string> texts_;
  std::vector<Authority> models_;
  std::vector<Form> forms_;
  // What is searched for in a Skeleton(), by its first eight bytes, and whether any begins so.
  std::unordered_multimap<uint64_t, Needle> needles_;
  std::bitset<1 << 16> begins_;
  std::function<void(const record::Notice&)> record_;
  std::set<std::tuple<size_t, std::string, bool>> sent_;  // The text, the receiver, and To::model.
  std::set<std::string> unread_;
};

}  // namespace gateway
