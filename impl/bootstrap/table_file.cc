// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/table_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "impl/types/descriptor.h"
#include "impl/types/names.h"

namespace tutti {

Result<std::optional<TableFile>> table_file_here(std::size_t most) {
  const char* const value = std::getenv("TUTTI_TABLE");
  if (value == nullptr || *value == '\0') return std::optional<TableFile>();
  const std::string path(value);
  const auto refused = [&](const std::string& why) {
    return error(Code::invalid_argument, "TUTTI_TABLE: '{}' {}", shown(path), why);
  };
  // A pipe without a writer would keep `open` waiting.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0) {
    return refused(std::string("cannot be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) return refused("is no regular file");
  TableFile table{.name = path.substr(path.rfind('/') + 1), .text = std::string(most + 1, '\0')};
  std::size_t bytes = 0;
  while (bytes < table.text.size()) {
    const ssize_t count = ::read(file.get(), table.text.data() + bytes, table.text.size() - bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refused(std::string("cannot be read: ") + std::strerror(errno));
    if (count == 0) break;
    bytes += static_cast<std::size_t>(count);
  }
  if (bytes > most) return refused(fmt::format("has more than {} bytes", most));
  table.text.resize(bytes);
  return std::optional(std::move(table));
}

}  // namespace tutti
