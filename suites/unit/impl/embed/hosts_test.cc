// SPDX-License-Identifier: Apache-2.0
// Worlds on two hosts. They are this one: half of the ranks say over the exchange that they are on another.
#include "impl/embed/hosts.h"

#include <gtest/gtest.h>

#include "impl/transports/hosts.h"
#include "suites/unit/impl/embed/ranks.h"

namespace tutti::embed {
namespace {

constexpr int kRanks = 4;

Exchange half_elsewhere(const Exchange& exchange) {
  return {.set =
              [exchange](const std::string& key, std::string value) {
                int rank = -1;
                if (std::sscanf(key.c_str(), "rank/%d", &rank) == 1 && rank >= kRanks / 2) {
                  value.replace(value.find("host "), 5, "host another ");
                }
                return exchange.set(key, value);
              },
          .get = exchange.get};
}

void on_two_hosts(const Exchange& exchange, const Member& member) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = World::join(
          half_elsewhere(exchange), rank, kRanks,
          {.timeout = std::chrono::seconds(20), .between_hosts = &over_tcp(), .interface = "127.0.0.1"});
      ASSERT_TRUE(world.is_ok()) << world.status().message();
      member(*world.value());
    });
  }
  for (std::thread& each : threads) each.join();
}

Status add_ranks(World& world, std::size_t count) {
  std::vector<float> numbers(count, static_cast<float>(world.rank()));
  TUTTI_RETURN_IF_ERROR(run_in(world, {.collective = Collective::all_reduce,
                                    .dtype = Dtype::f32,
                                    .op = Op::sum,
                                    .count = static_cast<Count>(count),
                                    .input = numbers.data(),
                                    .output = numbers.data()}));
  for (const float each : numbers) {
    if (each != kRanks * (kRanks - 1) / 2) return error(Code::mismatch, "{} is no sum of the ranks", each);
  }
  return {};
}

Status exchange_ranks(World& world, std::size_t count) {
  std::vector<float> input(kRanks * count, static_cast<float>(world.rank())), output(input.size());
  TUTTI_RETURN_IF_ERROR(run_in(world, {.collective = Collective::all_to_all,
                                    .dtype = Dtype::f32,
                                    .count = static_cast<Count>(count),
                                    .input = input.data(),
                                    .output = output.data()}));
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (output[i] != static_cast<float>(i / count)) return error(Code::mismatch, "{} at {}", output[i], i);
  }
  return {};
}

TEST(WorldOnHosts, MemoryOfEachHostIsAllocatedWhenCallsNeedIt) {
  Map map;
  WorldMemory first(0), second(1);
  on_two_hosts(second.watched(first.watched(map.exchange())), [&](World& world) {
    ASSERT_NE(world.hosts(), nullptr);
    EXPECT_EQ(world.hosts()->count(), 2);
    const auto works = [](const Status& status) { EXPECT_TRUE(status.is_ok()) << status.message(); };
    const auto allocated = [&] {
      works(run_in(world, {}));
      const std::array<std::int64_t, 2> bytes{first.allocated(), second.allocated()};
      works(run_in(world, {}));
      return bytes;
    };
    const auto joined = allocated();
    works(add_ranks(world, 2));
    works(add_ranks(world, 262'144));
    const auto reduced = allocated();
    works(exchange_ranks(world, 2));
    works(exchange_ranks(world, 65'536));
    const auto exchanged = allocated();
    works(add_ranks(world, 262'144));
    works(exchange_ranks(world, 65'536));
    const auto again = allocated();
    for (const std::size_t host : {std::size_t{0}, std::size_t{1}}) {
      EXPECT_LT(joined[host], 64 * 1024) << "host " << host;
      EXPECT_GT(reduced[host], joined[host]) << "host " << host;
      EXPECT_GE(exchanged[host], reduced[host]) << "host " << host;
      EXPECT_EQ(again[host], exchanged[host]) << "host " << host;
    }
  });
  EXPECT_GT(first.size(), first.allocated());
  EXPECT_GT(second.size(), second.allocated());
}

}  // namespace
}  // namespace tutti::embed
