#include "benchmarks/wire/mailbox.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "trireme/base/system_error.h"

namespace trireme::bench {

std::filesystem::path orders_pipe(const std::filesystem::path& folder, int rank) {
  return folder / ("orders." + std::to_string(rank));
}

std::filesystem::path answers_pipe(const std::filesystem::path& folder, int rank) {
  return folder / ("answers." + std::to_string(rank));
}

Descriptor open_pipe(const std::filesystem::path& path, int flags) {
  const int number = open(path.c_str(), flags | O_CLOEXEC);
  if (number < 0) throw_system_error("open", path, errno);
  return Descriptor(number);
}

std::optional<std::string> LineReader::take_line() {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::optional<std::string> LineReader::read_line() {
  if (auto line = take_line()) return line;
  std::array<char, 65536> bytes;
  const ssize_t count = read(pipe_.number(), bytes.data(), bytes.size());
  if (count < 0 && errno != EAGAIN && errno != EINTR) throw_system_error("read a pipe", errno);
  if (count == 0) has_ended_ = true;
  if (count > 0) received_.append(bytes.data(), static_cast<std::size_t>(count));
  return take_line();
}

void write_line(const Descriptor& pipe, std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(pipe.number(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) throw_system_error("write to a pipe", errno);
    if (count > 0) done += static_cast<std::size_t>(count);
  }
}

}  // namespace trireme::bench
