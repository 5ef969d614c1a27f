// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/toml_fields.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "harness/text/number.h"
#include "impl/types/names.h"

namespace tutti::harness::accept {

Status set_number(const toml::node& node, std::string_view key, std::int64_t least, std::int64_t most,
                  std::int64_t& to) {
  const auto* number = node.as_integer();
  if (number == nullptr) return wrong_toml_type(node, key, "a whole number");
  to = number->get();
  if (to >= least && to <= most) return {};
  return at_line(node, "'{}' is {}: allowed are {} to {}: did you mean {}?", key, to, least, most,
                 std::clamp(to, least, most));
}

Status set_share(const toml::node& node, std::string_view key, const ShareRange& range, double& to) {
  const auto* text = node.as_string();
  if (const auto* fraction = node.as_floating_point()) {
    to = fraction->get();
    if (to >= range.least && to <= range.most) return {};
    return at_line(node, "'{}' is {:g}: allowed are {:g} to {:g}: did you mean {:g}?", key, to, range.least, range.most,
                   std::isnan(to) ? range.usual : std::clamp(to, range.least, range.most));
  }
  const double least = 100 * range.least, most = 100 * range.most;
  if (text == nullptr) {
    return wrong_toml_type(node, key, fmt::format("a share from \"{:g}%\" to \"{:g}%\"", least, most));
  }
  std::string_view digits = text->get();
  const bool has_sign = digits.ends_with('%');
  if (has_sign) digits.remove_suffix(1);
  const std::optional<double> percent = text::number_in<double>(digits);
  if (!has_sign || !percent || !(*percent >= least && *percent <= most)) {
    return at_line(node, "'{}' is '{}': allowed are {:g}% to {:g}%: did you mean '{:g}%'?", key, shown(text->get()),
                   least, most, percent ? std::clamp(*percent, least, most) : 100 * range.usual);
  }
  to = *percent / 100;
  return {};
}

Result<std::string> text_of(const toml::node& node, std::string_view key) {
  const auto* text = node.as_string();
  if (text == nullptr) return wrong_toml_type(node, key, "a text");
  return text->get();
}

Result<bool> flag_of(const toml::node& node, std::string_view key) {
  const auto* flag = node.as_boolean();
  if (flag == nullptr) return wrong_toml_type(node, key, "true or false");
  return flag->get();
}

}  // namespace tutti::harness::accept
