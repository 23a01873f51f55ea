// SPDX-License-Identifier: Apache-2.0
// One file or directory over a pipe.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "session/transfer/landing.h"
#include "session/transfer/tar_writer.h"
#include "session/transfer/tree_receiver.h"
#include "session/transfer/tree_sender.h"

namespace session {

// Reads what a borrowed descriptor gives, to its end.
class StreamReader {
 public:
  explicit StreamReader(int fd);
  // Returns the next bytes, valid until the next call; empty at the end.
  Result<std::string_view> Next();

 private:
  int fd_;
  std::string buffer_;
};

// Returns a writer to a borrowed descriptor.
TarWriter WriterTo(int fd, int owner);

// Sends an archive of `source`, under a name that means nothing; errors call it `shown`. What may
// not be read below it is left out.
Result<Sent> SendTransferred(const Fd& source, const std::string& shown, int stream);
// Sends an archive for another tar: of "." if `source` is a directory, or of a file with its name.
Result<Sent> SendTree(const Fd& source, const std::string& shown, int stream);
// Receives what SendTransferred() sends at a place of files.
Result<Received> ReceiveTransferred(int stream, const Landing& landing,
                                    const ReceiveLimits& limits);

// Receives such an archive of one file, and writes its content to `output`, borrowed. Fails with
// kInvalid for a directory; errors call `output` `shown`.
Result<Received> ReceiveContent(int stream, const Fd& output, const std::string& shown,
                                const ReceiveLimits& limits);

// Receives an archive of "." as another tar packs it, into `directory`; makes directories that it
// does not mention. Fails with kInvalid as TreeReceiver does. `input` gives its bytes.
Result<Received> ReceiveTree(const image::TarReader::Input& input, int directory,
                             const ReceiveLimits& limits);

// Returns text such as "2 left out, the first: PATH: why", or an empty one.
std::string LeftOutText(const Sent& sent);

}  // namespace session
