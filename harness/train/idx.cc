// SPDX-License-Identifier: Apache-2.0
#include "harness/train/idx.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "impl/types/descriptor.h"
#include "impl/types/names.h"

namespace tutti::harness::train {
namespace {

// 0, 0, 8 (unsigned bytes), and how many sizes follow.
constexpr std::uint32_t kMagicOfImages = 0x00000803;
constexpr std::uint32_t kMagicOfLabels = 0x00000801;
constexpr std::size_t kWord = 4;

template <class... Args>
Status refused(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  return error(Code::invalid_argument, "'{}': {}", shown(path), fmt::format(format, std::forward<Args>(args)...));
}

std::uint32_t word_at(std::span<const std::uint8_t> bytes, std::size_t index) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kWord; ++i) word = (word << 8U) | bytes[index * kWord + i];
  return word;
}

/// An open IDX file whose head is right.
class IdxFile {
 public:
  struct Kind {
    std::uint32_t magic = 0;
    std::size_t sizes = 0;  ///< in its head: the first is that of the set
    std::size_t item_bytes = 0;
    const char* items = "";
  };

  static Result<IdxFile> open(const std::string& path, const Kind& kind) {
    IdxFile idx(path);
    idx.file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat about = {};
    if (!idx.file_.is_open() || ::fstat(idx.file_.get(), &about) != 0)
      return refused(path, "cannot be read: {}", std::generic_category().message(errno));
    if (!S_ISREG(about.st_mode)) return refused(path, "is no regular file");
    const auto bytes = static_cast<std::size_t>(about.st_size);
    std::array<std::uint8_t, 4 * kWord> room{};
    const std::size_t head_bytes = (1 + kind.sizes) * kWord;
    const auto head = std::span(room).first(head_bytes);
    if (bytes < head_bytes)
      return refused(path, "has {} bytes, and the head of an IDX file of {} has {}", bytes, kind.items, head_bytes);
    TUTTI_RETURN_IF_ERROR(idx.read(head, 0));
    if (const std::uint32_t magic = word_at(head, 0); magic != kind.magic) {
      const bool is_gzip = head[0] == 0x1f && head[1] == 0x8b;
      return refused(path, "its magic number is {:#010x}, and that of {} is {:#010x}{}", magic, kind.items, kind.magic,
                     is_gzip ? ": it is compressed, unpack it with gunzip" : "");
    }
    for (std::size_t i = 2; i <= kind.sizes; ++i) {
      if (word_at(head, i) == kImageSide) continue;
      return refused(path, "its images are {} x {} pixels, and have to be {} x {}", word_at(head, 2), word_at(head, 3),
                     kImageSide, kImageSide);
    }
    idx.count_ = word_at(head, 1);
    if (idx.count_ < 1 || idx.count_ > kMostImages)
      return refused(path, "says that it has {} {}; allowed are 1 to {}", idx.count_, kind.items, kMostImages);
    if (const std::size_t right = head_bytes + idx.count_ * kind.item_bytes; bytes != right)
      return refused(path, "has {} bytes, and with its {} {} it has to have {}", bytes, idx.count_, kind.items, right);
    idx.head_bytes_ = head_bytes;
    return idx;
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  /// Errors: invalid_argument where it has become shorter.
  Status read_items(std::span<std::uint8_t> bytes) const { return read(bytes, head_bytes_); }

 private:
  explicit IdxFile(std::string path) : path_(std::move(path)) {}
  Status read(std::span<std::uint8_t> bytes, std::size_t from) const {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t got =
          ::pread(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(from + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return refused(path_, "cannot be read: {}", std::generic_category().message(errno));
      if (got == 0) return refused(path_, "became shorter while it was read");
      done += static_cast<std::size_t>(got);
    }
    return {};
  }

  std::string path_;
  Descriptor file_;
  std::size_t count_ = 0;
  std::size_t head_bytes_ = 0;
};

/// The path of one of MNIST's files. Errors: unavailable.
Result<std::string> find_file(const std::string& folder, const std::string& stem, const std::string& kind) {
  const auto is_there = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  const std::string usual = folder + "/" + stem + "-" + kind + "-ubyte";
  const std::string dotted = folder + "/" + stem + "." + kind + "-ubyte";
  for (const std::string& path : {usual, dotted}) {
    if (is_there(path)) return path;
  }
  for (const std::string& path : {usual, dotted}) {
    const std::string packed = path + ".gz";
    if (is_there(packed)) return error(Code::unavailable, "'{0}' is compressed: gunzip '{0}'", shown(packed));
  }
  return error(Code::unavailable, "there is no '{}': a folder with MNIST's four files has it", shown(usual));
}

Result<Digits> read_pair(const std::string& folder, const std::string& stem, std::size_t most) {
  TUTTI_ASSIGN_OR_RETURN(const std::string images, find_file(folder, stem, "images-idx3"));
  TUTTI_ASSIGN_OR_RETURN(const std::string labels, find_file(folder, stem, "labels-idx1"));
  return read_idx(images, labels, most);
}

}  // namespace

Result<Digits> read_idx(const std::string& images, const std::string& labels, std::size_t most) {
  TUTTI_ASSIGN_OR_RETURN(
      const IdxFile of_images,
      IdxFile::open(images, {.magic = kMagicOfImages, .sizes = 3, .item_bytes = kPixels, .items = "images"}));
  TUTTI_ASSIGN_OR_RETURN(
      const IdxFile of_labels,
      IdxFile::open(labels, {.magic = kMagicOfLabels, .sizes = 1, .item_bytes = 1, .items = "labels"}));
  if (of_images.count() != of_labels.count()) {
    return refused(labels, "has {} labels, and '{}' has {} images", of_labels.count(), shown(images),
                   of_images.count());
  }
  const std::size_t count = std::min(most, of_images.count());
  std::vector<std::uint8_t> pixels(count * kPixels), classes(count);
  TUTTI_RETURN_IF_ERROR(of_images.read_items(pixels));
  TUTTI_RETURN_IF_ERROR(of_labels.read_items(classes));
  Digits digits;
  digits.pixels.reserve(pixels.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (classes[i] >= kClasses)
      return refused(labels, "its label {} is {}, and a digit is at most 9", i, int{classes[i]});
    digits.add(std::span(pixels).subspan(i * kPixels, kPixels), classes[i]);
  }
  return digits;
}

Result<DigitSets> read_mnist(const std::string& folder, std::size_t most, std::size_t most_held_out) {
  DigitSets sets;
  TUTTI_ASSIGN_OR_RETURN(sets.learned, read_pair(folder, "train", most));
  TUTTI_ASSIGN_OR_RETURN(sets.held_out, read_pair(folder, "t10k", most_held_out));
  return sets;
}

}  // namespace tutti::harness::train
