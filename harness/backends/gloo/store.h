// SPDX-License-Identifier: Apache-2.0
// ExchangedStore: where Gloo's ranks leave their addresses for each other while a group connects. There is no place
// that all of them see, so each `set` is an exchange: every rank sets as many keys, in the same order, before it asks
// for those of the others.
#pragma once

#include <functional>
#include <gloo/rendezvous/store.h>
#include <map>
#include <string>
#include <vector>

namespace tutti::backend_gloo {

/// Every rank's bytes, by rank. Collective over the group that connects. Throws.
using Exchange = std::function<std::vector<std::string>(const std::string& mine)>;

class ExchangedStore final : public gloo::rendezvous::Store {
 public:
  explicit ExchangedStore(Exchange exchange) : exchange_(std::move(exchange)) {}

  /// Collective.
  void set(const std::string& key, const std::vector<char>& data) override;
  /// Throws where no rank has set the key.
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& /*timeout*/) override { wait(keys); }

 private:
  Exchange exchange_;
  std::map<std::string, std::vector<char>> known_;
};

}  // namespace tutti::backend_gloo
