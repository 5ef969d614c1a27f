// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/init.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Init init_of(const std::string& url, const Variables& variables = {}) {
  const auto init = init_from(url, environment_of(variables));
  EXPECT_TRUE(init.is_ok()) << init.status().message();
  return init.is_ok() ? init.value() : Init();
}

std::string refusal(const std::string& url, const Variables& variables = {}) {
  const auto init = init_from(url, environment_of(variables));
  EXPECT_FALSE(init.is_ok()) << init.value().host << " " << init.value().port;
  return init.is_ok() ? "" : init.status().message();
}

TEST(Init, WhatAStarterCallsAJobTellsJobsApart) {
  const auto hash = [](const std::string& starter, const Variables& variables) {
    World world;
    world.started_by = starter;
    return hash_of_start(world, environment_of(variables));
  };
  EXPECT_EQ(hash("RANK and WORLD_SIZE", {}), 0U);
  for (const auto& [starter, name] :
       {std::pair{"mpirun (OMPI_COMM_WORLD_RANK)", "PMIX_NAMESPACE"}, std::pair{"srun (SLURM_PROCID)", "SLURM_JOB_ID"},
        std::pair{"srun (SLURM_PROCID)", "SLURM_STEP_ID"}, std::pair{"RANK and WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
        std::pair{"RANK and WORLD_SIZE", "TUTTI_LAUNCH"}}) {
    EXPECT_NE(hash(starter, {{name, "7"}}), 0U) << name;
    EXPECT_NE(hash(starter, {{name, "7"}}), hash(starter, {{name, "8"}})) << name;
    EXPECT_EQ(hash(starter, {{name, "7"}}), hash(starter, {{name, "7"}, {"RANK", "1"}})) << name;
  }
  // Steps that start the hosts of one job by themselves have other numbers.
  EXPECT_EQ(hash("mpirun (OMPI_COMM_WORLD_RANK)", {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}}), 0U);
}

TEST(Init, TheEnvironmentSaysAHostAndAPort) {
  const Variables torchrun{{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(init_of("", torchrun).host, "node7");
  EXPECT_EQ(init_of("env://", torchrun).port, 29501) << "torchrun itself listens at 29500";
  EXPECT_EQ(init_of("env://", {{"MASTER_ADDR", "a"}, {"TUTTI_PORT", "7"}}).port, 7);
  EXPECT_EQ(init_of("", {{"TUTTI_INIT", "tcp://a:5"}}).port, 5);
  EXPECT_THAT(refusal(""), HasSubstr("nothing says where the hosts meet"));
  EXPECT_THAT(refusal("", {{"MASTER_ADDR", "a"}}), HasSubstr("neither TUTTI_PORT nor MASTER_PORT"));
  EXPECT_THAT(refusal("", {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}}),
              HasSubstr("MASTER_PORT: 'x' is not a port: a whole number from 1 to 65535: did you mean '1'?"));
  EXPECT_THAT(refusal("", {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "65535"}}), HasSubstr("set TUTTI_PORT"));
}

TEST(Init, TheEnvironmentMayNameAnInterface) {
  EXPECT_EQ(interface_from(environment_of({})).value(), "");
  EXPECT_EQ(interface_from(environment_of({{"TUTTI_INTERFACE", "eth0"}})).value(), "eth0");
  EXPECT_THAT(interface_from(environment_of({{"TUTTI_INTERFACE", "-i"}})).status().message(),
              HasSubstr("TUTTI_INTERFACE: '-i' is neither a name of an interface nor an address"));
}

TEST(Init, AStepOfSlurmMeetsAtItsFirstNode) {
  Variables step{{"SLURM_STEP_NODELIST", "node[07-09],x"}, {"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "0"}};
  EXPECT_EQ(init_of("", step).host, "node07");
  const int port = init_of("", step).port;
  EXPECT_GE(port, 20000);
  EXPECT_LT(port, 30000);
  step["SLURM_STEP_ID"] = "1";
  EXPECT_NE(init_of("", step).port, port);
  step["TUTTI_PORT"] = "9";
  EXPECT_EQ(init_of("", step).port, 9);
}

TEST(Init, HostsThatAreNoneAreRefusedByTheNameOfTheirVariable) {
  const auto at = [](const char* host) { return Variables{{"MASTER_ADDR", host}, {"TUTTI_PORT", "7"}}; };
  EXPECT_EQ(init_of("", at("2001:db8::7")).host, "2001:db8::7");
  EXPECT_EQ(init_of("", at("[2001:db8::7]")).host, "2001:db8::7");
  EXPECT_THAT(refusal("", at("[-Fevil.cfg]")), HasSubstr("MASTER_ADDR: '[-Fevil.cfg]' is no address"));
  EXPECT_THAT(refusal("", at("-v")), HasSubstr("MASTER_ADDR: '-v' is no name of a host"));
  const auto on = [](const char* nodes) {
    return Variables{{"SLURM_STEP_NODELIST", nodes}, {"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "0"}};
  };
  EXPECT_EQ(init_of("", on("rack[0-1]node[0-3]")).host, "rack0node0");
  EXPECT_THAT(refusal("", on("[-Fevil.cfg]")), HasSubstr("SLURM_STEP_NODELIST: '[-Fevil.cfg]' is no address"));
  EXPECT_THAT(refusal("", on("n[")), HasSubstr("SLURM_STEP_NODELIST: 'n[' has a '[' without a ']'"));
  EXPECT_THAT(refusal("tcp://[-Fevil.cfg]:5"), HasSubstr("'tcp://[-Fevil.cfg]:5': '[-Fevil.cfg]' is no address"));
  EXPECT_THAT(refusal("tcp://fd00:1::1:5"), HasSubstr("write [fd00:1::1]:5"));
}

TEST(Init, UrlsAreReadWhole) {
  EXPECT_EQ(init_of("tcp://192.0.2.7:29400").host, "192.0.2.7");
  EXPECT_EQ(init_of("tcp://[2001:db8::7]:1").host, "2001:db8::7");
  EXPECT_EQ(init_of("file:///shared/meeting").file, "/shared/meeting");
  EXPECT_THAT(refusal("tcp://a"), HasSubstr("a host and a port"));
  EXPECT_THAT(refusal("tcp://a:0"), HasSubstr("'0' is not a port"));
  EXPECT_THAT(refusal("tcp://:5"), HasSubstr("'' is no name of a host"));
  EXPECT_THAT(refusal("file://meeting"), HasSubstr("begins with /"));
  EXPECT_THAT(refusal("mpi://"), HasSubstr("env://, tcp://HOST:PORT or file://PATH"));
}

TEST(Init, TheSecretIsOneThatNobodyElseMayRead) {
  const std::string digits(64, 'a');
  EXPECT_TRUE(job_secret_from(environment_of({{"TUTTI_SECRET", digits}})).is_ok());
  const auto message = [](const Variables& variables) {
    return job_secret_from(environment_of(variables)).status().message();
  };
  EXPECT_THAT(message({}), HasSubstr("openssl rand -hex 32"));
  EXPECT_THAT(message({{"TUTTI_SECRET", "short"}}), HasSubstr("has 5 characters"));
  EXPECT_THAT(message({{"TUTTI_SECRET", "short"}}), testing::Not(HasSubstr("short")));
  std::string path = std::filesystem::temp_directory_path() / "tutti-secret-XXXXXX";
  ::close(::mkstemp(path.data()));
  std::ofstream(path) << digits << "\n";
  const auto secret = job_secret_from(environment_of({{"TUTTI_SECRET_FILE", path}, {"TUTTI_SECRET", "short"}}));
  ASSERT_TRUE(secret.is_ok()) << secret.status().message();
  EXPECT_EQ(tcp::to_text(secret.value()), digits);
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  EXPECT_THAT(message({{"TUTTI_SECRET_FILE", path}}), HasSubstr("chmod 600"));
  std::filesystem::remove(path);
  EXPECT_THAT(message({{"TUTTI_SECRET_FILE", path}}), HasSubstr("cannot read"));
}

}  // namespace
}  // namespace tutti
