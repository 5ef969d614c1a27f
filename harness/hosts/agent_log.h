// SPDX-License-Identifier: Apache-2.0
// What the agent of one host prints, and the processes that it has started there: apart from all others, so that an
// error can name its words.
#pragma once

#include <string>
#include <sys/types.h>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

class AgentLog {
 public:
  /// Makes the file, which has no name. Errors: resource.
  Status open();
  /// For the stdout and stderr of the agent; -1 until it is open.
  [[nodiscard]] int descriptor() const { return file_.get(); }
  /// Appends to the descriptor `log` what has come since the last call, in all the first 16 MiB. What is handed on, or
  /// is too much, takes no memory any more.
  void hand_on(int log);
  /// The last line that is not blank, at most some hundred bytes of it. Empty if nothing was printed.
  [[nodiscard]] std::string last_words() const;

 private:
  [[nodiscard]] off_t bytes() const;

  Descriptor file_;
  off_t handed_on_ = 0;
};

}  // namespace tutti::harness::hosts
