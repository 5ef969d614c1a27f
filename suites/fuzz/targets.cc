// SPDX-License-Identifier: Apache-2.0
#include "suites/fuzz/targets.h"

#include <algorithm>

#include "impl/types/printable.h"

namespace tutti::fuzz {

void check_message(const Status& status) {
  constexpr std::ptrdiff_t kMostLines = 5;
  constexpr std::size_t kMostBytes = 4000;  // five lines, some of which list names
  const std::string& message = status.message();
  TUTTI_ASSERT(!status.is_ok() && !message.empty(), "an error without a message");
  TUTTI_ASSERT(std::ranges::count(message, '\n') < kMostLines, "a message of more than five lines: {}", message);
  TUTTI_ASSERT(message.size() <= kMostBytes, "a message of {} bytes", message.size());
  TUTTI_ASSERT(printable(message) == message, "a character that steers a terminal in: {}", message);
}

}  // namespace tutti::fuzz
