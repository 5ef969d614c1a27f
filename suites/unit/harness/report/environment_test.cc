// SPDX-License-Identifier: Apache-2.0
#include "harness/report/environment.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/text/redaction.h"

namespace tutti::harness::report {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(LibrarySettings, AreThoseOfCommunicationLibrariesAlone) {
  const std::array<const char*, 12> environment{"HOME=/home/somebody",
                                                "OMPI_MCA_btl=self,vader",
                                                "MPICH_ASYNC_PROGRESS=1",
                                                "I_MPI_FABRICS=shm",
                                                "UCX_TLS=a=b",
                                                "FI_PROVIDER=",
                                                "NCCL_DEBUG=WARN",
                                                "XUCX_TLS=sm",
                                                "MPICH_BROKEN",
                                                "PATH=/bin",
                                                "AWS_SECRET=hush",
                                                nullptr};
  EXPECT_THAT(library_settings(environment.data()),
              ElementsAre(Pair("FI_PROVIDER", ""), Pair("I_MPI_FABRICS", "shm"), Pair("MPICH_ASYNC_PROGRESS", "1"),
                          Pair("NCCL_DEBUG", "WARN"), Pair("OMPI_MCA_btl", "self,vader"), Pair("UCX_TLS", "a=b")));
}

TEST(LibrarySettings, SecretsAreRedactedWhateverTheirCase) {
  const std::array<const char*, 7> environment{"OMPI_MCA_auth_Token=hush",
                                               "UCX_SECRET_WORD=hush",
                                               "FI_PASSWORD=hush",
                                               "NCCL_MY_KEY=hush",
                                               "I_MPI_CREDENTIALS=hush",
                                               "OMPI_MCA_precondition_transports=hush",
                                               nullptr};
  const auto settings = library_settings(environment.data());
  EXPECT_EQ(settings.size(), 6U);
  for (const auto& [name, value] : settings) EXPECT_EQ(value, kRedacted) << name;
}

TEST(LibrarySettings, SecretsHaveManyNames) {
  const std::array<const char*, 5> environment{"MPICH_X_PASSPHRASE=hush", "NCCL_AUTH=hush", "I_MPI_PWD=hush",
                                               "UCX_TLS_CERT=hush", nullptr};
  const auto settings = library_settings(environment.data());
  EXPECT_EQ(settings.size(), 4U);
  for (const auto& [name, value] : settings) EXPECT_EQ(value, kRedacted) << name;
}

TEST(LibrarySettings, AnAgentIsItsProgramAlone) {
  const std::array<const char*, 3> environment{"OMPI_MCA_plm_rsh_agent=sshpass -p hunter2 ssh", "UCX_TLS=agent",
                                               nullptr};
  EXPECT_THAT(library_settings(environment.data()),
              ElementsAre(Pair("OMPI_MCA_plm_rsh_agent", "sshpass (redacted)"), Pair("UCX_TLS", "agent")));
}

TEST(LibrarySettings, WhoLogsInIsRedactedInAddresses) {
  const std::array<const char*, 6> environment{"FI_PROXY_URL=http://u:pw@h",
                                               "FI_TWO=http://u:p@ss@h:80/x@y,tcp://token@i/z",
                                               "FI_OPEN=//u:pw@",
                                               "FI_PATH=file:///a/b@c",
                                               "FI_PLAIN=http://h:80/x@y",
                                               nullptr};
  EXPECT_THAT(library_settings(environment.data()),
              ElementsAre(Pair("FI_OPEN", "//(redacted)@"), Pair("FI_PATH", "file:///a/b@c"),
                          Pair("FI_PLAIN", "http://h:80/x@y"), Pair("FI_PROXY_URL", "http://(redacted)@h"),
                          Pair("FI_TWO", "http://(redacted)@h:80/x@y,tcp://(redacted)@i/z")));
}

TEST(LibrarySettings, WhatLaunchersSayOfTheirJobIsNone) {
  const std::array<const char*, 13> environment{"OMPI_MCA_orte_hnp_uri=1.0;tcp://192.0.2.2:38793",
                                                "OMPI_MCA_orte_precondition_transports=1-2",
                                                "OMPI_MCA_orte_top_session_dir=/tmp/ompi.0",
                                                "OMPI_MCA_ess=^singleton",
                                                "OMPI_MCA_ess_base_jobid=1",
                                                "OMPI_MCA_pmix=^s1,s2,cray,isolated",
                                                "OMPI_MCA_initial_wdir=/work",
                                                "OMPI_MCA_shmem_RUNTIME_QUERY_hint=mmap",
                                                "PMIX_MCA_mca_base_component_show_load_errors=1",
                                                "MPICH_INTERFACE_HOSTNAME=node",
                                                "OMPI_MCA_pmix_base_async_modex=1",
                                                "PMIX_MCA_gds=hash",
                                                nullptr};
  EXPECT_THAT(library_settings(environment.data()),
              ElementsAre(Pair("OMPI_MCA_pmix_base_async_modex", "1"), Pair("PMIX_MCA_gds", "hash")));
}

}  // namespace
}  // namespace tutti::harness::report
