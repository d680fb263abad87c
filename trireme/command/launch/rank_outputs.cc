#include "trireme/command/launch/rank_outputs.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace trireme::launch {

void RankOutputs::add(int rank, Descriptor output, Descriptor errors) {
  const std::string prefix = "[" + std::to_string(rank) + "] ";
  streams_.emplace(rank, Streams{{std::move(output), LineWriter(prefix, STDOUT_FILENO)},
                                 {std::move(errors), LineWriter(prefix, STDERR_FILENO)}});
}

/// Whether there may be more at once.
bool RankOutputs::read_some(Stream& stream) {
  if (!stream.pipe.is_open()) return false;
  std::array<char, 64 * 1024> buffer;
  const ssize_t count = ::read(stream.pipe.number(), buffer.data(), buffer.size());
  if (count > 0) {
    stream.writer.add({buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  stream.writer.finish();
  stream.pipe.reset();
  return false;
}

void RankOutputs::read(int rank, bool is_error) {
  Streams& streams = streams_.at(rank);
  read_some(is_error ? streams.errors : streams.output);
}

void RankOutputs::drain(int rank) {
  const auto found = streams_.find(rank);
  if (found == streams_.end()) return;
  // A grandchild that never stops writing is not waited for: no more than pipes hold.
  constexpr int kMaxReads = 16;
  for (Stream* stream : {&found->second.output, &found->second.errors}) {
    for (int i = 0; i < kMaxReads && read_some(*stream); ++i) continue;
  }
}

void RankOutputs::finish() {
  for (auto& [rank, streams] : streams_) {
    drain(rank);
    streams.output.writer.finish();
    streams.errors.writer.finish();
  }
}

}  // namespace trireme::launch
