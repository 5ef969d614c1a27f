// SPDX-License-Identifier: Apache-2.0
#include "impl/types/status.h"

#include "impl/types/printable.h"

namespace tutti {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::unavailable:
      return "unavailable";
    case Code::resource:
      return "resource";
    case Code::io:
      return "io";
    case Code::timeout:
      return "timeout";
    case Code::aborted:
      return "aborted";
    case Code::mismatch:
      return "mismatch";
    case Code::refuted:
      return "refuted";
  }
  return "unknown";
}

const std::string& Status::message() const {
  static const std::string none;
  return detail_ ? detail_->message : none;
}

void assertion_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "tutti: bug at %s:%d: %s does not hold: %s\n", file, line, condition,
               printable(message).c_str());
  std::abort();
}

}  // namespace tutti
