// SPDX-License-Identifier: Apache-2.0
#include "harness/text/escapes.h"

#include <fmt/format.h>

#include "impl/types/printable.h"

namespace tutti::harness::text {

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string prometheus_label(std::string_view name, std::string_view value) {
  std::string escaped;
  for (const char c : printable(value)) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return fmt::format("{}=\"{}\"", name, escaped);
}

}  // namespace tutti::harness::text
