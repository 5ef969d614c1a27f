// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/added.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "harness/exchange/import.h"
#include "harness/text/read_file.h"
#include "impl/algorithms/added.h"
#include "impl/types/names.h"

namespace tutti::harness::exchange {
namespace {

std::map<std::string, std::string>& texts() {
  static std::map<std::string, std::string> by_name;
  return by_name;
}

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

Result<std::string> add_file(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMostInAdded));
  std::string name = std::filesystem::path(path).filename().string();
  std::ranges::replace_if(
      name, [](char c) { return !is_of_name(c); }, '_');
  const Status status = add_text(name, text);
  if (!status.is_ok()) return error(status.code(), "{}: {}", shown(path), status.message());
  return name;
}

Status add_text(const std::string& name, const std::string& text) {
  const std::string* const known = added_text(name);
  if (known != nullptr && *known == text) return {};
  if (name.empty() || !std::ranges::all_of(name, is_of_name)) {
    return error(Code::invalid_argument, "'{}' is no name of an algorithm: it has letters, digits, '_' and '-'",
                 shown(name));
  }
  TUTTI_ASSIGN_OR_RETURN(Imported imported, import_msccl(text));
  imported.schedule.name = name;
  TUTTI_RETURN_IF_ERROR(add_algorithm(imported.schedule, imported.is_in_place));
  texts()[name] = text;
  return {};
}

const std::string* added_text(const std::string& name) {
  const auto found = texts().find(name);
  return found == texts().end() ? nullptr : &found->second;
}

}  // namespace tutti::harness::exchange
