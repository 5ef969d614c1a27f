// SPDX-License-Identifier: Apache-2.0
// Where the path of an output leads. Symbolic links are followed one by one, and only those that the user can trust.
#pragma once

#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

/// A folder that is held open, and a name in it that is no symbolic link.
class FilePlace {
 public:
  /// Follows the links of `path`. A link of another user, who is not the owner of the link's folder either, is refused,
  /// and one of several names where other users may have made one of them; on the way to the folder, links of root are
  /// followed too. The file itself need not exist.
  /// Errors: invalid_argument naming the link, or as cannot_write.
  [[nodiscard]] static Result<FilePlace> of(const std::string& path);

  /// What is there, by lstat. Errors: errno, ENOENT if there is nothing.
  [[nodiscard]] int look(struct stat& about) const;
  /// Opens the file to write it, or makes an empty one. `is_new` becomes whether it was made. The file keeps its
  /// content. A pipe is opened once a program reads it; it is waited for some seconds. Errors: invalid_argument, as
  /// cannot_write; for a folder, a disk and a socket too; for a file of several names in a folder where other users may
  /// have given it one of them; for a pipe of another user, who is not the owner of its folder either.
  [[nodiscard]] Result<Descriptor> open_to_write(bool& is_new) const;
  /// Makes a file of a random name beside this one and opens it to write; never through a link. Errors: a descriptor
  /// that is not open, and errno.
  [[nodiscard]] Descriptor make_aside(mode_t mode, std::string& name) const;
  /// Renames what make_aside made upon this one. Errors: errno.
  [[nodiscard]] int take(const std::string& aside) const;
  /// Removes a file beside this one, or this one if `name` is empty.
  void remove(const std::string& name = "") const;
  /// Whether another file can take this name: not if it is another process's descriptor or the like.
  [[nodiscard]] bool has_name() const { return kind_ == Kind::named; }
  /// Whether this is a descriptor of this process, such as /dev/stdout, which goes on behind what it has.
  [[nodiscard]] bool is_own() const { return kind_ == Kind::own; }

 private:
  /// `by_kernel`: a link of /proc, which only the kernel can follow; `own`: a descriptor of this process.
  enum class Kind : std::uint8_t { named, by_kernel, own };
  explicit FilePlace(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Status settle(const Descriptor& opened) const;

  std::string path_;  ///< as the user wrote it
  Descriptor folder_;
  std::string name_;
  Kind kind_ = Kind::named;
};

}  // namespace tutti::harness::text
