// SPDX-License-Identifier: Apache-2.0
// What an MPI library says about itself.
#pragma once

#include <string>

namespace tutti::backend_mpi {

struct Library {
  std::string name;         ///< "Open MPI", "MPICH", "Intel MPI"
  std::string version;      ///< "4.1.4"
  std::string transport;    ///< what moves messages here: "ob1:self,vader", "ch4:ofi"; empty: not known
  std::string single_copy;  ///< how a rank reads another's memory: "cma", "none"; empty: not known
};

/// Name and version, from MPI_Get_library_version: needs no MPI_Init.
[[nodiscard]] Library library_identity();
/// And transport and single copy, as initialised; after MPI_Init.
[[nodiscard]] Library library_in_use();

/// The first of the names, with commas between, that is no control variable of the library; empty: all are. After
/// MPI_Init.
[[nodiscard]] std::string unknown_variable(const std::string& names);

/// As it stands in a JSON string.
[[nodiscard]] std::string escaped(const std::string& text);

/// A JSON object with all four. `has_settings`: and with how settings are handed to it (harness/backends/backend.h).
[[nodiscard]] std::string to_json(const Library& library, bool has_settings);

}  // namespace tutti::backend_mpi
