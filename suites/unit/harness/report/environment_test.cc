// SPDX-License-Identifier: Apache-2.0
#include "harness/report/environment.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness {
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
                                               "OMPI_MCA_orte_precondition_transports=hush",
                                               nullptr};
  const auto settings = library_settings(environment.data());
  EXPECT_EQ(settings.size(), 6U);
  for (const auto& [name, value] : settings) EXPECT_EQ(value, kRedacted) << name;
}

}  // namespace
}  // namespace tutti::harness
