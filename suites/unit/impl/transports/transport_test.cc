// SPDX-License-Identifier: Apache-2.0
// The table of transports, and what is said of names that are not in it. Objects that are loaded are the command
// line's.
#include "impl/transports/transport.h"

#include <array>
#include <set>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/build.h"
#include "impl/transports/loader.h"
#include "impl/transports/shared_memory.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr std::array kAllKinds{RanksIn::one_process, RanksIn::own_processes};

TEST(Transports, TheTableHasOneForEachKindOfRanks) {
  std::set<std::string> names;
  for (const Transport* const one : built_in_transports()) {
    EXPECT_TRUE(names.insert(one->name).second) << one->name;
    EXPECT_EQ(one->number, kTransportNumber);
    EXPECT_NE(one->serves, 0U);
  }
  for (const RanksIn where : kAllKinds) EXPECT_TRUE(best_transport(where).serves_ranks(where));
}

TEST(Transports, ARowOpensItsDomains) {
  for (const Transport* const one : built_in_transports()) {
    for (const RanksIn where : kAllKinds) {
      if (!one->serves_ranks(where)) continue;
      const DomainShape shape = one->shape(3, 1, 8192);
      EXPECT_EQ(shape.ranks, 3);
      const std::size_t bytes = one->shared_bytes(shape, where);
      const int memory = bytes > 0 ? create_memory("tutti-test", bytes).value() : -1;
      const auto domain = one->open(shape, {.memory = memory});
      ASSERT_TRUE(domain.is_ok()) << domain.status().message();
      EXPECT_STREQ(domain.value()->transport(), one->name);
      for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(domain.value()->link(rank), nullptr);
      if (memory >= 0) close(memory);
    }
  }
}

TEST(Transports, AreFoundByName) {
  for (const Transport* const one : built_in_transports()) EXPECT_EQ(find_transport(one->name, {}).value(), one);
  const Status unknown = find_transport("loca", {}).status();
  EXPECT_EQ(unknown.code(), Code::invalid_argument);
  EXPECT_THAT(unknown.message(), HasSubstr("unknown transport 'loca': did you mean 'local'?"));
  const std::vector<std::string> nowhere{"/nowhere", "/nothing"};
  EXPECT_THAT(find_transport("verbs", nowhere).status().message(),
              HasSubstr("no libtutti_transport_verbs.so in /nowhere, /nothing"));
  EXPECT_EQ(list_transports(nowhere).size(), built_in_transports().size());
}

}  // namespace
}  // namespace tutti
