// SPDX-License-Identifier: Apache-2.0
#include "harness/process/start_command.h"

#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/text/text.h"

namespace tutti::harness::process {
namespace {

using nlohmann::json;

std::string with_values(std::string text, const StartValues& values) {
  const std::pair<std::string_view, std::string> places[] = {{"{ranks}", fmt::to_string(values.ranks)},
                                                             {"{directory}", values.directory},
                                                             {"{crowded}", values.is_crowded ? "1" : "0"},
                                                             {"{hosts}", values.hosts},
                                                             {"{agent}", values.agent},
                                                             {kAgentProgram, values.agent},
                                                             {"{address}", values.address},
                                                             {"{subnet}", values.subnet}};
  for (const auto& [place, value] : places) text = text::replaced(std::move(text), place, value);
  return text;
}

}  // namespace

Result<StartCommand> parse_start_command(std::string_view text) {
  const json all = json::parse(text, nullptr, false);
  const auto wrong = [&](const std::string& what) {
    return error(Code::invalid_argument, "a start command needs {}, not '{}'", what, text);
  };
  if (!all.is_object()) return wrong("a JSON object");
  const json words = all.value("command", json());
  const json environment = all.value("environment", json::object());
  const json leaves = all.value("leaves", json::array());
  const json across = all.value("across", json::array());
  const json pretended = all.value("pretended", json::object());
  if (!words.is_array() || words.empty()) return wrong("\"command\", a list of at least one string");
  if (!environment.is_object()) return wrong("\"environment\", an object of strings");
  if (!pretended.is_object()) return wrong("\"pretended\", an object of strings");
  StartCommand command;
  for (const auto& [list, to, name] :
       {std::tuple{&words, &command.words, "command"}, std::tuple{&across, &command.across, "across"}}) {
    for (const json& word : *list) {
      if (!word.is_string()) return wrong(fmt::format("strings in \"{}\"", name));
      to->push_back(word.get<std::string>());
    }
  }
  for (const json& path : leaves) {
    if (!path.is_string() || !path.get<std::string>().starts_with('/')) return wrong("absolute paths in \"leaves\"");
    command.leaves.push_back(path.get<std::string>());
  }
  for (const auto& [object, to, name] : {std::tuple{&environment, &command.environment, "environment"},
                                         std::tuple{&pretended, &command.pretended, "pretended"}}) {
    for (const auto& [variable, value] : object->items()) {
      if (!value.is_string()) return wrong(fmt::format("strings in \"{}\"", name));
      to->push_back(variable + "=" + value.get<std::string>());
    }
  }
  return command;
}

StartCommand filled(const StartCommand& command, const StartValues& values) {
  StartCommand result = command;
  for (std::string& word : result.words) word = with_values(std::move(word), values);
  for (std::string& word : result.across) word = with_values(std::move(word), values);
  for (std::string& entry : result.environment) entry = with_values(std::move(entry), values);
  return result;
}

}  // namespace tutti::harness::process
