// SPDX-License-Identifier: Apache-2.0
// Text of users and hosts as it stands in files of other programs.
#pragma once

#include <string>
#include <string_view>

#include "harness/floors.h"

namespace tutti::harness::text {

/// Text that stands in XML, in an attribute or between tags. What XML cannot hold, control characters and what is no
/// UTF-8, is written out, as in the other forms.
[[nodiscard]] std::string xml_escaped(std::string_view text);
/// `name="value"` of a metric in Prometheus' text form.
[[nodiscard]] std::string prometheus_label(std::string_view name, std::string_view value);

}  // namespace tutti::harness::text
