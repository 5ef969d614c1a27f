// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/rendezvous.h"

#include <map>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<World> world_of(const Variables& variables) {
  return world_from([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Variables& variables, Code code = Code::invalid_argument) {
  const auto world = world_of(variables);
  EXPECT_FALSE(world.is_ok()) << world.value().process << " of " << world.value().processes;
  EXPECT_EQ(world.status().code(), code);
  return world.is_ok() ? "" : world.status().message();
}

std::string meeting_of(const Variables& variables) {
  const auto world = world_of(variables);
  EXPECT_TRUE(world.is_ok()) << world.status().message();
  return world.is_ok() ? world.value().meeting : "";
}

const Variables kTorchrun{{"RANK", "2"},
                          {"WORLD_SIZE", "3"},
                          {"LOCAL_RANK", "2"},
                          {"LOCAL_WORLD_SIZE", "3"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", "29500"}};
const Variables kMpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_RANK", "1"},
                        {"PMIX_NAMESPACE", "3389521921"}};
const Variables kSrun{{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "3"},        {"SLURM_PROCID", "0"},
                      {"SLURM_LOCALID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(Rendezvous, NobodyHasStartedAWorldOfOne) {
  const auto world = world_of({{"HOME", "/"}});
  ASSERT_TRUE(world.is_ok());
  EXPECT_EQ(world.value().processes, 1);
  EXPECT_EQ(world.value().meeting, "");
  EXPECT_EQ(world.value().started_by, "");
}

TEST(Rendezvous, OfAnUnknownLauncherIsSaidWhatToSet) {
  const auto said = [](const Variables& variables) {
    const auto world = world_of(variables);
    EXPECT_TRUE(world.is_ok()) << world.status().message();
    EXPECT_EQ(world.value().processes, 1);
    return world.value().unknown_starter;
  };
  EXPECT_THAT(said({{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "4"}}),
              testing::StartsWith("FLUX_TASK_RANK is '1' and FLUX_JOB_SIZE is '4': tutti does not join jobs of this "
                                  "launcher, and runs alone in this process; RANK=$FLUX_TASK_RANK, WORLD_SIZE, "));
  EXPECT_THAT(said({{"PALS_RANKID", "0"}}), HasSubstr("PALS_RANKID is '0': "));
  EXPECT_EQ(said({{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "1"}}), "");
  EXPECT_EQ(said({}), "");
  Variables known = kTorchrun;
  known["FLUX_TASK_RANK"] = "2";
  known["FLUX_JOB_SIZE"] = "3";
  EXPECT_EQ(world_of(known).value().unknown_starter, "");
}

TEST(Rendezvous, TorchrunMpirunAndSrunSayTheSameThings) {
  const World torchrun = world_of(kTorchrun).value();
  EXPECT_EQ(torchrun.process, 2);
  EXPECT_EQ(torchrun.processes, 3);
  EXPECT_EQ(torchrun.local_process, 2);
  const World mpirun = world_of(kMpirun).value();
  EXPECT_EQ(mpirun.process, 1);
  EXPECT_EQ(mpirun.processes, 4);
  EXPECT_THAT(mpirun.started_by, HasSubstr("mpirun"));
  const World srun = world_of(kSrun).value();
  EXPECT_EQ(srun.process, 0);
  EXPECT_EQ(srun.processes, 2);
  const World mpich = world_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).value();
  EXPECT_EQ(mpich.process, 1);
  EXPECT_EQ(mpich.meeting, fmt::format("tutti-meeting-{}-child-of-{}", getuid(), getppid()));
}

TEST(Rendezvous, TheMeetingIsNamedByTheUserAndAllThatNamesTheJobInOrder) {
  const std::string user = fmt::format("tutti-meeting-{}-", getuid());
  EXPECT_EQ(meeting_of(kTorchrun), user + "127.0.0.1-29500");
  EXPECT_EQ(meeting_of(kMpirun), user + "3389521921");
  EXPECT_EQ(meeting_of(kSrun), user + "77-3");
  Variables all = with(kTorchrun, {{"TUTTI_LAUNCH", "x"}, {"PMIX_NAMESPACE", "n"}, {"SLURM_JOB_ID", "7"}});
  EXPECT_EQ(meeting_of(all), user + "x-n-127.0.0.1-29500") << "a job without a step is a batch script's";
  all["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(meeting_of(all), user + "x-n-7-0-127.0.0.1-29500");
}

TEST(Rendezvous, LongNamesFitAnAddressAndStayApart) {
  const Variables one = with(kTorchrun, {{"MASTER_ADDR", std::string(200, 'a')}});
  const Variables other = with(one, {{"MASTER_PORT", "29501"}});
  EXPECT_LE(meeting_of(one).size(), 107U);
  EXPECT_NE(meeting_of(one), meeting_of(other));
}

TEST(Rendezvous, PartsAreRefused) {
  EXPECT_THAT(refusal({{"RANK", "0"}}), HasSubstr("RANK is set and WORLD_SIZE is not"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE is set and RANK is not"));
  EXPECT_THAT(refusal({{"OMPI_COMM_WORLD_RANK", "0"}}), HasSubstr("OMPI_COMM_WORLD_SIZE is not"));
  EXPECT_THAT(refusal({{"PMIX_RANK", "0"}}), HasSubstr("PMIX_RANK is 0"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("set MASTER_ADDR and MASTER_PORT"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), HasSubstr("MASTER_PORT is not"));
}

TEST(Rendezvous, NonsenseIsRefused) {
  EXPECT_THAT(refusal(with(kTorchrun, {{"RANK", "3"}})), HasSubstr("ranks are 0 to 2"));
  EXPECT_THAT(refusal(with(kTorchrun, {{"RANK", "x"}})), HasSubstr("RANK is 'x'"));
  EXPECT_THAT(refusal(with(kTorchrun, {{"RANK", "1 "}})), HasSubstr("RANK is '1 '"));
  EXPECT_THAT(refusal(with(kTorchrun, {{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE is 0: at least 1"));
  EXPECT_THAT(refusal(with(kTorchrun, {{"LOCAL_RANK", "3"}})), HasSubstr("LOCAL_RANK is 3"));
}

TEST(Rendezvous, ContradictionsAreRefused) {
  EXPECT_THAT(refusal(with(kMpirun, kTorchrun)), HasSubstr("RANK is 2 and OMPI_COMM_WORLD_RANK is 1"));
  EXPECT_THAT(refusal(with(kMpirun, {{"RANK", "1"}, {"WORLD_SIZE", "2"}})),
              HasSubstr("WORLD_SIZE is 2 and OMPI_COMM_WORLD_SIZE is 4"));
  EXPECT_THAT(refusal(with(kMpirun, {{"PMIX_RANK", "0"}})), HasSubstr("PMIX_RANK is 0"));
}

TEST(Rendezvous, SrunMayHaveStartedTheStarter) {
  const World world = world_of(with(kSrun, kTorchrun)).value();
  EXPECT_EQ(world.process, 2);
  EXPECT_EQ(world.processes, 3);
}

TEST(Rendezvous, TheTasksOfAJobAreThoseOfAStepThatSaysNone) {
  Variables step = with(kSrun, {{"SLURM_NTASKS", "4"}});
  EXPECT_EQ(world_of(step).value().processes, 2);
  step.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(world_of(step).value().processes, 4);
}

TEST(Rendezvous, ABatchScriptIsOneProcess) {
  Variables batch = kSrun;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(world_of(batch).value().processes, 1);
}

TEST(Rendezvous, RanksOfAHostFollowEachOther) {
  const World second = world_of(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}})).value();
  EXPECT_TRUE(second.spans_hosts());
  EXPECT_EQ(second.first_here(), 1);
  EXPECT_EQ(second.local_processes, 2);
  EXPECT_THAT(check_one_host(second).message(), HasSubstr("LOCAL_WORLD_SIZE is 2"));
  const World last = world_of(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}})).value();
  EXPECT_EQ(last.first_here(), 2) << "there is no rank 3, as the others find where all meet";
  EXPECT_FALSE(world_of(kTorchrun).value().spans_hosts());
}

TEST(Rendezvous, SrunSaysHowManyTasksEachNodeHas) {
  const Variables nodes{{"SLURM_STEP_NUM_NODES", "3"}, {"SLURM_STEP_NUM_TASKS", "5"},
                        {"SLURM_PROCID", "3"},         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                        {"SLURM_NODEID", "1"},         {"SLURM_LOCALID", "1"}};
  const World world = world_of(with(kSrun, nodes)).value();
  EXPECT_EQ(world.first_here(), 2);
  EXPECT_EQ(world.local_processes, 2);
  EXPECT_EQ(world.spread, "SLURM_STEP_NUM_NODES is 3");
  for (const char* tasks : {"", "2(x", "2(x2", "x", "2,,1", "2(x99999999),1"}) {
    EXPECT_THAT(refusal(with(kSrun, with(nodes, {{"SLURM_STEP_TASKS_PER_NODE", tasks}}))),
                HasSubstr("SLURM_STEP_TASKS_PER_NODE"))
        << tasks;
  }
  Variables pmi = with(kSrun, with(nodes, {{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}}));
  EXPECT_EQ(world_of(pmi).value().local_processes, 2) << "PMI that srun serves says nothing of hosts";
}

}  // namespace
}  // namespace tutti
