// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/meeting.h"

#include <cstdlib>

#include <fmt/format.h>

#include "impl/bindings/torch/failure.h"
#include "impl/bindings/torch/shared.h"
#include "impl/bindings/torch/waiting.h"
#include "impl/embed/hosts.h"

namespace tutti::bindings {
namespace {

// The library takes no exceptions: what the store throws becomes a Status, and what a signal raised waits here.
class StoreExchange {
 public:
  StoreExchange(const StorePointer& store, int rank, const Members& members)
      : store_(store), members_(members), prefix_(fmt::format("tutti/{}/", store->add(fmt::format("tutti/joins/{}", rank), 1))) {}

  embed::Exchange functions() {
    return {.set = [this](const std::string& key, const std::string& value) { return set(key, value); },
            .get = [this](const std::string& key, std::chrono::nanoseconds timeout) { return get(key, timeout); }};
  }
  /// What ended a wait, if that was no failure of the store.
  [[nodiscard]] std::exception_ptr raised() const { return raised_; }

 private:
  Status set(const std::string& key, const std::string& value) {
    try {
      set_text(*store_, prefix_ + key, value);
      return {};
    } catch (const std::exception& failure) {
      return error(Code::io, "the store: {}", failure.what());
    }
  }
  // After a wait that has timed out, a TCPStore of torch 1.13 takes the late answer for that of its next call. So it is
  // asked again and again.
  Result<std::string> get(const std::string& key, std::chrono::nanoseconds timeout) {
    const std::string whole = prefix_ + key;
    bool is_set = false;
    Status lost;
    const auto is_over = [&] {
      lost = first_lost();  // before the look, for it may have set the key and ended
      is_set = store_->check({whole});
      return is_set || !lost.is_ok();
    };
    try {
      const bool was_over = poll(timeout, is_over);
      if (is_set) return text_in(*store_, whole);
      if (was_over) return lost;
      return error(Code::timeout, "nothing in the store under '{}' after {} ms", whole,
                   std::chrono::duration_cast<milliseconds>(timeout).count());
    } catch (const Interrupted&) {
      raised_ = std::current_exception();
      return Status(Code::aborted, "interrupted");
    } catch (const std::exception& failure) {
      return error(Code::io, "the store: {}", failure.what());
    }
  }

  [[nodiscard]] Status first_lost() const {
    for (std::size_t rank = 0; members_.all != nullptr && rank < members_.ranks.size(); ++rank) {
      const auto fate = members_.all->fate_of(members_.ranks[rank]);
      if (!fate) continue;
      return error(Code::aborted, "rank {} of the group (rank {} of all) failed: {}", rank, members_.ranks[rank], *fate);
    }
    return {};
  }

  StorePointer store_;
  const Members& members_;
  std::string prefix_;
  std::exception_ptr raised_;
};

}  // namespace

std::string text_in(c10d::Store& store, const std::string& key) {
  const std::vector<std::uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

void set_text(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::shared_ptr<embed::World> meet(const StorePointer& store, int rank, int ranks, std::chrono::nanoseconds timeout,
                                   const Members& members) {
  StoreExchange exchange(store, rank, members);
  const char* const interface = std::getenv("TUTTI_INTERFACE");
  auto world = embed::World::join(exchange.functions(), rank, ranks,
                                  {.timeout = timeout,
                                   .between_hosts = &embed::over_tcp(),
                                   .interface = interface == nullptr ? "" : interface,
                                   .arena = shared_memory()});
  if (exchange.raised()) std::rethrow_exception(exchange.raised());
  check(fmt::format("tutti: rank {} of {} meets the others", rank, ranks), world.status());
  return std::move(world).value();
}

}  // namespace tutti::bindings
