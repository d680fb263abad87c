#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/base/descriptor.h"

namespace trireme::bench {

/// Named pipes of a rank in the folder of its contestant: lines with orders to it, lines with
/// answers from it.
std::filesystem::path orders_pipe(const std::filesystem::path& folder, int rank);
std::filesystem::path answers_pipe(const std::filesystem::path& folder, int rank);

/// Opens a pipe that exists; kIo where it does not.
///
/// flags   those of open(2).
Descriptor open_pipe(const std::filesystem::path& path, int flags);

/// The lines that arrive at a pipe.
class LineReader {
 public:
  explicit LineReader(Descriptor pipe) : pipe_(std::move(pipe)) {}

  const Descriptor& pipe() const { return pipe_; }

  /// Reads once, then takes off the first line that is complete, without its end. Blocks where the
  /// pipe does, unless a line is there already.
  ///
  /// Returns  nothing where no line is complete.
  /// Errors   kIo.
  std::optional<std::string> read_line();

  bool has_ended() const { return has_ended_; }

 private:
  std::optional<std::string> take_line();

  Descriptor pipe_;
  std::string received_;
  bool has_ended_ = false;
};

/// Writes a line and its end. Blocks; kIo where nobody reads any more.
void write_line(const Descriptor& pipe, std::string_view line);

}  // namespace trireme::bench
