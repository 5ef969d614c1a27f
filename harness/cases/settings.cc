// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/settings.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/lists.h"
#include "impl/types/names.h"
#include "impl/types/printable.h"

namespace tutti::harness::cases {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool is_in_name(char c) { return is_letter_or_digit(c) || c == '_'; }
constexpr std::string_view kOthersInValue = "_-^,+:@%";
bool is_in_value(char c) { return is_letter_or_digit(c) || kOthersInValue.find(c) != std::string_view::npos; }

Result<Setting> parse_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return error(Code::invalid_argument, "setting '{}' has no value: it must be NAME=VALUE", shown(text));
  }
  Setting setting{.name = std::string(text.substr(0, equals)), .value = std::string(text.substr(equals + 1))};
  if (setting.name.empty() || !std::ranges::all_of(setting.name, is_in_name)) {
    return error(Code::invalid_argument, "setting '{}': the name '{}' must have letters, digits and '_' only",
                 shown(text), shown(setting.name));
  }
  if (setting.value.empty() || !std::ranges::all_of(setting.value, is_in_value)) {
    return error(Code::invalid_argument,
                 "setting '{}': the value '{}' must have letters, digits and {} only, for it stands in the ids of rows",
                 shown(text), shown(setting.value), kOthersInValue);
  }
  return setting;
}

}  // namespace

Result<std::vector<Setting>> parse_settings(std::string_view text) {
  if (text.size() > kMostInSettings) {
    return error(Code::invalid_argument, "settings have {} characters: at most {} are allowed", text.size(),
                 kMostInSettings);
  }
  std::vector<Setting> settings;
  for (const std::string_view one : split(text, ';')) {
    TUTTI_ASSIGN_OR_RETURN(settings.emplace_back(), parse_setting(one));
  }
  std::ranges::sort(settings, {}, &Setting::name);
  const auto twice = std::ranges::adjacent_find(settings, {}, &Setting::name);
  if (twice != settings.end()) {
    return error(Code::invalid_argument, "setting '{}' is there twice: name it once", twice->name);
  }
  return settings;
}

std::string settings_text(std::vector<Setting> settings) {
  if (settings.empty()) return {};
  std::vector<std::string> texts;
  for (const Setting& one : settings) texts.push_back(fmt::format("{}={}", one.name, one.value));
  return fmt::format("{{{}}}", fmt::join(texts, ";"));
}

std::vector<Setting> settings_of(std::string_view system) {
  const std::size_t open = system.find('{');
  const std::size_t close = system.rfind('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  auto settings = parse_settings(system.substr(open + 1, close - open - 1));
  return settings.is_ok() ? std::move(settings).value() : std::vector<Setting>();
}

bool are_settings(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return false;
  const auto settings = parse_settings(text.substr(1, text.size() - 2));
  return settings.is_ok() && settings_text(settings.value()) == text;
}

Result<std::vector<std::string>> split_systems(std::string_view text) {
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth < 0 || depth > 1) break;
    if (c == ',' && depth == 0) {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  if (depth != 0) {
    return error(Code::invalid_argument,
                 "backends '{}': braces do not match: settings are such as 'NAME{{SETTING=VALUE}}'", shown(text));
  }
  if (std::erase(items, std::string()) == 0) return items;
  if (items.empty()) return error(Code::invalid_argument, "no backends in '{}': at least one is needed", shown(text));
  return error(Code::invalid_argument, "backends '{}' has an empty item: did you mean '{}'?", shown(text),
               shown(fmt::format("{}", fmt::join(items, ","))));
}

}  // namespace tutti::harness::cases
