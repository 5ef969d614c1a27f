// SPDX-License-Identifier: Apache-2.0
// Where processes of several hosts meet (`--init`, TUTTI_INIT), and the secret by which they know each other. The names
// are torch.distributed's.
//
//   env://          MASTER_ADDR, and TUTTI_PORT, or the port after MASTER_PORT: torchrun itself listens at that one.
//                   Under srun without MASTER_ADDR: the first node of the step. Its ids draw the port.
//   tcp://HOST:PORT process 0 listens there.
//   file://PATH     process 0 listens where it likes, and writes into this file where that is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "impl/bootstrap/rendezvous.h"
#include "impl/tcp/secret.h"
#include "impl/types/status.h"

namespace tutti {

struct Init {
  std::string host;  ///< of process 0
  int port = 0;      ///< at which it listens; 0: any, `file` says which
  std::string file;
  std::string said_by;  ///< "MASTER_ADDR and MASTER_PORT"
};

/// `url`: empty if none was chosen. Hosts are those of parse_lone_host, parse_host_and_port and parse_nodelist. Errors:
/// invalid_argument naming the option or variable, its text and what there may be; unavailable where nothing says where
/// to meet.
[[nodiscard]] Result<Init> init_from(std::string_view url, const Environment& environment);

/// TUTTI_INTERFACE: the address, or the name of the interface, at which this machine is reached. Empty where it is not
/// set. Errors: invalid_argument if it is neither (check_interface).
[[nodiscard]] Result<std::string> interface_from(const Environment& environment);
/// Of TUTTI_SECRET_FILE, a file that nobody else may read, or else TUTTI_SECRET: 64 digits of base 16. Errors:
/// unavailable where there is none, or others can read it; invalid_argument, without the text.
[[nodiscard]] Result<tcp::Secret> job_secret_from(const Environment& environment);

/// What all processes of a job know of it before they have met, by their starter's variables: TUTTI_LAUNCH, and
/// PMIX_NAMESPACE of mpirun, SLURM_JOB_ID and SLURM_STEP_ID of srun, TORCHELASTIC_RUN_ID of torchrun. A hash; 0:
/// nothing. It tells the processes of another job apart as soon as they come to the meeting. Variables of a starter
/// that has not started these processes are not taken: they may differ within one job.
[[nodiscard]] std::uint64_t hash_of_start(const World& world, const Environment& environment);

}  // namespace tutti
