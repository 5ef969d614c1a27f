// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/case.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::cases {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Case broadcast_case() {
  Case one;
  one.collective = Collective::broadcast;
  one.ranks = 4;
  one.root = 1;
  one.bytes = 1048576;
  one.count = 262144;
  one.algorithm = "knomial";
  return one;
}

TEST(CaseId, OfARootedCollective) {
  EXPECT_EQ(case_id(broadcast_case()),
            "broadcast/tutti.knomial/shm/float/none/P4.processes/root1/1048576B/out/private/isolated");
}

TEST(CaseId, OfAReducingCollectiveHasAnOpAndNoRoot) {
  Case one;
  one.collective = Collective::all_reduce;
  one.dtype = Dtype::bf16;
  one.op = Op::avg;
  one.ranks = 3;
  one.ranks_as = RanksAs::tasks;
  one.transport = "local";
  one.bytes = 12;
  one.count = 6;
  one.is_in_place = true;
  one.buffers = Buffers::shared;
  one.algorithm = "ring";
  EXPECT_EQ(case_id(one), "all_reduce/tutti.ring/local/bfloat16/avg/P3.tasks/none/12B/in/shared/isolated");
}

TEST(CaseId, OfABarrierIsNoneWhereverDataWouldBe) {
  Case one;
  one.ranks = 2;
  one.algorithm = "dissemination";
  EXPECT_EQ(case_id(one), "barrier/tutti.dissemination/shm/none/none/P2.processes/none/0B/none/none/isolated");
}

TEST(CaseId, OfAReferenceHasNoAlgorithm) {
  Case one;
  one.collective = Collective::all_to_all;
  one.dtype = Dtype::i32;
  one.ranks = 2;
  one.bytes = 8;
  one.count = 1;
  one.backend = "openmpi";
  EXPECT_EQ(case_id(one), "all_to_all/openmpi.none/shm/int32/none/P2.processes/none/8B/out/private/isolated");
}

TEST(CaseId, ReadsBackWhatItWrote) {
  for (const char* id :
       {"broadcast/tutti.knomial/shm/float/none/P4.processes/root1/1048576B/out/private/isolated",
        "all_reduce/tutti.ring/local/bfloat16/avg/P3.tasks/none/12B/in/shared/isolated",
        "all_reduce/tutti:2.ring/local/bfloat16/avg/P3.tasks/none/12B/in/shared/isolated",
        "all_reduce/tutti.two_shot+64K+streamed/shm/float/sum/P2.processes/none/8B/out/private/isolated",
        "barrier/openmpi.none/shm/none/none/P4096.threads/none/0B/none/none/isolated",
        "all_to_all/tutti.one_shot/shm/int32/none/P5.processes/none/20B/out/private/isolated",
        "broadcast/tutti.direct/shm/float/none/P1.processes/root0/0B/in/private/isolated",
        "all_gather_v/tutti.ring/shm/double/none/P3.threads/none/24B.ramp/out/private/isolated",
        "bandwidth/tutti.channel/shm/float/none/P2.processes/none/1048576B.window64/out/private/isolated",
        "bibandwidth/tutti:2.direct/local/double/none/P9.threads/pair0-8/8B.window1/in/shared/isolated",
        "message_rate/openmpi.none/shm/int8/none/P4.processes/none/0B.window1024/out/private/isolated",
        "pingpong/tutti.direct/shm/float/none/P4.processes/pair1-2/8B/out/private/isolated",
        "gather_v/tutti.linear/shm/float/none/P3.threads/root2/24B/in/private/isolated",
        "all_to_all_v/openmpi.none/shm/float/none/P3.processes/none/36B.file-0a1b2c3d/out/private/isolated"}) {
    const Result<Case> one = parse_case_id(id);
    ASSERT_TRUE(one.is_ok()) << one.status().message();
    EXPECT_EQ(case_id(one.value()), id);
  }
  EXPECT_EQ(parse_case_id(case_id(broadcast_case())).value(), broadcast_case());
}

TEST(CaseId, IsWrittenInOneWay) {
  const std::string id = "all_reduce/tutti.ring/shm/float/sum/P4.processes/none/8B/out/private/isolated";
  for (const char* other : {"AllReduce/tutti.ring/shm/float/sum/P4.processes/none/8B/out/private/isolated",
                            "all_reduce/tutti.ring/shm/fp32/sum/P4.processes/none/8B/out/private/isolated",
                            "all_reduce/tutti.ring/shm/float/sum/P4.processes/none/8B/OUT/private/isolated"}) {
    EXPECT_THAT(parse_case_id(other).status().message(), HasSubstr("did you mean '" + id + "'?")) << other;
  }
}

std::string message_for(std::string_view id) {
  const Result<Case> one = parse_case_id(id);
  EXPECT_EQ(one.status().code(), Code::invalid_argument) << id;
  return one.status().message();
}

TEST(CaseId, WithTooFewPartsShowsTheParts) {
  EXPECT_THAT(message_for("broadcast/tutti"),
              AllOf(HasSubstr("has 2 parts, not 11"), HasSubstr("collective/backend.algorithm/transport/")));
}

// One wrong part each, in the order of the id.
TEST(CaseId, NamesTheWrongPart) {
  EXPECT_THAT(message_for("broadcst/tutti.knomial/shm/float/none/P4.processes/root1/8B/out/private/isolated"),
              HasSubstr("unknown collective 'broadcst': did you mean 'broadcast'?"));
  EXPECT_THAT(message_for("broadcast/knomial/shm/float/none/P4.processes/root1/8B/out/private/isolated"),
              HasSubstr("backend.algorithm 'knomial' must be two names"));
  for (const char* tuning : {"+64X", "+streamed+64K", "+65536", "+"}) {  // 65536 is written 64K
    EXPECT_THAT(message_for(std::string("broadcast/tutti.knomial") + tuning +
                            "/shm/float/none/P4.processes/root1/8B/out/private/isolated"),
                HasSubstr("must be an algorithm, and what its tuning is written as"))
        << tuning;
  }
  EXPECT_THAT(message_for("broadcast/tutti.knomial//float/none/P4.processes/root1/8B/out/private/isolated"),
              HasSubstr("transport '' must be a name"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/flaot/none/P4.processes/root1/8B/out/private/isolated"),
              HasSubstr("unknown dtype 'flaot': did you mean 'float'?"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/sum/P4.processes/root1/8B/out/private/isolated"),
              HasSubstr("op 'sum' must be 'none' for broadcast"));
  EXPECT_THAT(message_for("all_reduce/tutti.ring/shm/float/band/P4.processes/none/8B/out/private/isolated"),
              HasSubstr("op 'band' must be an op that float has, such as 'sum'"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P0.processes/root1/8B/out/private/isolated"),
              HasSubstr("'P0.processes' must be such as 'P4.processes', with 1 to 4096 ranks"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.process/root1/8B/out/private/isolated"),
              HasSubstr("unknown ranks-as 'process': did you mean 'processes'?"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.processes/root4/8B/out/private/isolated"),
              HasSubstr("root 'root4' must be 'root0' to 'root3' for 4 ranks"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.processes/root1/10B/out/private/isolated"),
              HasSubstr("bytes '10B' must be whole elements in every block: '8B' is the nearest"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.processes/root1/8/out/private/isolated"),
              HasSubstr("bytes '8' must be a number of bytes"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.processes/root1/8B/inn/private/isolated"),
              HasSubstr("unknown placement 'inn': did you mean 'in'?"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.processes/root1/8B/out/privat/isolated"),
              HasSubstr("unknown buffers 'privat': did you mean 'private'?"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.processes/root1/8B/out/private/streamin"),
              HasSubstr("unknown cadence 'streamin': did you mean 'streaming'?"));
}

TEST(CaseId, OfAWindowIsOneMessagesBytesAndTheBuffersAreAllOfThem) {
  const Case one =
      parse_case_id("bandwidth/tutti.direct/shm/double/none/P4.processes/pair1-3/400B.window5/out/private/isolated")
          .value();
  EXPECT_EQ(one.bytes, 400);
  EXPECT_EQ(one.count, 50);
  EXPECT_EQ(one.pairing, (Pairing{.window = 5, .first = 1, .second = 3}));
  EXPECT_EQ(largest_buffer_bytes(one), 2000);
}

TEST(CaseId, NamesTheWrongWindowAndTheWrongPair) {
  for (const char* bytes : {"8B", "8B.window0", "8B.window1025", "8B.windo5", "8B.window", "8B.ramp"}) {
    EXPECT_THAT(message_for(fmt::format(
                    "bandwidth/tutti.direct/shm/float/none/P2.processes/none/{}/out/private/isolated", bytes)),
                AllOf(HasSubstr(bytes), HasSubstr("a window of 1 to 1024, such as '1048576B.window64'")));
  }
  EXPECT_THAT(message_for("pingpong/tutti.direct/shm/float/none/P2.processes/none/8B.window2/out/private/isolated"),
              HasSubstr("bytes '8B.window2' must be a number of bytes"));
  EXPECT_THAT(message_for("bandwidth/tutti.direct/shm/float/none/P2.processes/none/10B.window2/out/private/isolated"),
              HasSubstr("'8B.window2' is the nearest"));
  for (const char* pair : {"pair0-3", "pair1-1", "pair2-1", "pair0", "pair0-", "pair-1-2", "root0", "0-1"}) {
    EXPECT_THAT(
        message_for(fmt::format("pingpong/tutti.direct/shm/float/none/P3.processes/{}/8B/out/private/isolated", pair)),
        AllOf(HasSubstr(pair), HasSubstr("'none', or two of 3 ranks, such as 'pair0-2'")));
  }
  EXPECT_THAT(message_for("pingpong/tutti.direct/shm/float/none/P1.processes/pair0-1/8B/out/private/isolated"),
              HasSubstr("'none' for one rank"));
  EXPECT_THAT(
      message_for("message_rate/tutti.direct/shm/float/none/P4.processes/pair0-1/8B.window2/out/private/isolated"),
      HasSubstr("must be 'none' for message_rate"));
  EXPECT_THAT(message_for("bandwidth/tutti.direct/shm/float/none/P1.processes/none/8B.window2/out/private/isolated"),
              HasSubstr("with 2 to 4096 ranks"));
}

TEST(CaseId, OfAVFormNamesItsCountsUnlessTheyAreEqual) {
  const Case one =
      parse_case_id("scatter_v/tutti.linear/shm/float/none/P4.tasks/root0/400B.ramp/out/private/isolated").value();
  EXPECT_EQ(one.counts.pattern, Pattern::ramp);
  EXPECT_EQ(one.count, 40) << "of the largest block";
  EXPECT_EQ(one.bytes, 400);
  EXPECT_THAT(message_for("scatter_v/tutti.linear/shm/float/none/P4.tasks/root0/400B.rampp/out/private/isolated"),
              HasSubstr("unknown counts 'rampp': did you mean 'ramp'?"));
  EXPECT_THAT(message_for("scatter_v/tutti.linear/shm/float/none/P4.tasks/root0/402B.ramp/out/private/isolated"),
              HasSubstr("'400B.ramp' is the nearest"));
  EXPECT_THAT(message_for("scatter_v/tutti.linear/shm/float/none/P4.tasks/root0/400B.equal/out/private/isolated"),
              HasSubstr("without '.equal'"));
  EXPECT_THAT(message_for("scatter/tutti.linear/shm/float/none/P4.tasks/root0/400B.ramp/out/private/isolated"),
              HasSubstr("bytes '400B.ramp' must be a number of bytes"));
}

TEST(CaseId, OfTrafficNamesItsSeedAndIsOutOfPlace) {
  const std::string id =
      "all_to_all_v/tutti.pairwise/shm/float/none/P4.tasks/none/400B.zipf-seed7/out/private/isolated";
  const Case one = parse_case_id(id).value();
  EXPECT_EQ(case_id(one), id);
  EXPECT_EQ(one.counts, drawn_counts(Pattern::zipf, 7));
  EXPECT_EQ(one.bytes, 400) << "what a rank sends in the mean";
  EXPECT_EQ(largest_buffer_bytes(one), 4 * 400 * 12 / 25) << "what the hottest one receives";
  EXPECT_THAT(message_for("all_to_all_v/tutti.pairwise/shm/float/none/P4.tasks/none/400B.zipf/in/private/isolated"),
              HasSubstr("counts 'zipf' do not"));
  EXPECT_THAT(message_for("all_to_all_v/tutti.pairwise/shm/float/none/P300.tasks/none/400B.zipf/out/private/isolated"),
              HasSubstr("1 to 256 ranks"));
}

TEST(CaseId, OfAFilesCountsNeedsTheFile) {
  Case one = parse_case_id("gather_v/tutti.linear/shm/float/none/P2.tasks/root0/20B.file-01234567/out/private/isolated")
                 .value();
  EXPECT_THAT(complete_counts(one, {}).message(), HasSubstr("name it with --counts FILE"));
  const Counts file{.pattern = Pattern::file, .name = "file-01234567", .numbers = {3, 2}};
  Case same = one;
  EXPECT_TRUE(complete_counts(same, {file}).is_ok());
  EXPECT_EQ(same.counts.numbers, file.numbers);
  EXPECT_EQ(same.count, 3);
  EXPECT_THAT(
      complete_counts(one, {{.pattern = Pattern::file, .name = "file-01234567", .numbers = {3, 2, 1}}}).message(),
      HasSubstr("the file has 3 counts"));
  EXPECT_THAT(complete_counts(one, {{.pattern = Pattern::file, .name = "file-01234567", .numbers = {3, 3}}}).message(),
              HasSubstr("are 24 bytes, not 20"));
}

TEST(CaseId, RefusesWhatIsNotWrittenAsItWouldWriteIt) {
  EXPECT_THAT(message_for("barrier/tutti.dissemination/shm/none/none/P2.processes/root0/0B/none/none/isolated"),
              HasSubstr("root 'root0' must be 'none' for barrier"));
  EXPECT_THAT(message_for("barrier/tutti.dissemination/shm/float/none/P2.processes/none/0B/none/none/isolated"),
              HasSubstr("dtype 'float' must be 'none' for barrier"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P04.processes/root1/8B/out/private/isolated"),
              HasSubstr("P04"));
  EXPECT_THAT(message_for("broadcast/tutti.knomial/shm/float/none/P4.processes/root-1/8B/out/private/isolated"),
              HasSubstr("root-1"));
}

}  // namespace
}  // namespace tutti::harness::cases
