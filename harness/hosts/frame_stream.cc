// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/frame_stream.h"

namespace tutti::harness::hosts {

Result<std::optional<Frame>> FrameStream::next() {
  TUTTI_ASSIGN_OR_RETURN(const auto text, stream_.next());
  if (!text) return std::optional<Frame>();
  FrameReader reader;
  reader.append(*text);
  TUTTI_ASSIGN_OR_RETURN(auto frame, reader.next());
  if (frame && reader.is_empty()) return frame;
  return error(Code::io, "a sealed message of {} bytes is not one frame", text->size());
}

}  // namespace tutti::harness::hosts
