// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/gloo/store.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace tutti::backend_gloo {
namespace {

void append(std::string& text, std::string_view item) {
  const auto bytes = static_cast<std::uint32_t>(item.size());
  text.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  text.append(item);
}

std::string_view take_item(std::string_view& text) {
  std::uint32_t bytes = 0;
  if (text.size() >= sizeof(bytes)) std::memcpy(&bytes, text.data(), sizeof(bytes));
  if (text.size() < sizeof(bytes) + bytes) throw std::runtime_error("what another rank has set is cut off");
  const std::string_view item = text.substr(sizeof(bytes), bytes);
  text.remove_prefix(sizeof(bytes) + bytes);
  return item;
}

}  // namespace

void ExchangedStore::set(const std::string& key, const std::vector<char>& data) {
  std::string mine;
  append(mine, key);
  append(mine, {data.data(), data.size()});
  for (const std::string& text : exchange_(mine)) {
    std::string_view left = text;
    const std::string_view its_key = take_item(left);
    const std::string_view its_data = take_item(left);
    known_[std::string(its_key)].assign(its_data.begin(), its_data.end());
  }
}

void ExchangedStore::wait(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (!known_.contains(key)) throw std::runtime_error("no rank has set '" + key + "'");
  }
}

std::vector<char> ExchangedStore::get(const std::string& key) {
  wait({key});
  return known_.at(key);
}

}  // namespace tutti::backend_gloo
