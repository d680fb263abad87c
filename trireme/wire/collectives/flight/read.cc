#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "trireme/base/descriptor.h"
#include "trireme/base/error.h"
#include "trireme/base/system_error.h"
#include "trireme/wire/collectives/flight/layout.h"
#include "trireme/wire/collectives/flight/record.h"
#include "trireme/wire/collectives/flight/recorder.h"

namespace trireme::collectives {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

[[noreturn]] void refuse_to_look(int process, const std::string& reason) {
  throw Error(ErrorKind::kUnavailable,
              "the system does not let this process look into process " + std::to_string(process) +
                  ": " + reason + "; run it as the same user, in the same container, or as root");
}

bool is_flight(const fs::path& link) {
  std::error_code unread;
  return fs::read_symlink(link, unread).string().starts_with(std::string("/memfd:") + kFlightFile);
}

/// Memory of another process, mapped to be read.
class Mapping {
 public:
  Mapping(const Descriptor& file, std::size_t bytes)
      : begin_(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0)), bytes_(bytes) {
    if (begin_ == MAP_FAILED) throw_system_error("map a flight record", errno);
  }
  ~Mapping() { ::munmap(begin_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(begin_), bytes_}; }

 private:
  void* begin_;
  std::size_t bytes_;
};

/// A copy of the record; empty where the process has closed it meanwhile.
std::vector<std::byte> read_copy(const fs::path& path, int process) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() && errno == ENOENT) return {};
  if (!file.is_open()) refuse_to_look(process, std::generic_category().message(errno));
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) throw_system_error("look at", path, errno);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  // What could shrink while it is read would end this process by SIGBUS.
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || bytes == 0 || bytes % 8 != 0 ||
      bytes > kMostBytes) {
    throw Error(ErrorKind::kCorruptData, "process " + std::to_string(process) + " has " +
                                             std::to_string(bytes) +
                                             " bytes under the name of a "
                                             "flight record that are none");
  }
  const Mapping mapping(file, bytes);
  return internal::copy_flight(mapping.bytes());
}

}  // namespace

std::vector<FlightRecord> read_flights(int process) {
  const fs::path folder = "/proc/" + std::to_string(process);
  std::error_code failed;
  if (process < 1 || !fs::exists(folder, failed)) {
    throw Error(ErrorKind::kInvalidArgument,
                "there is no process " + std::to_string(process) + " on this host");
  }
  fs::directory_iterator entries(folder / "fd", failed);
  if (failed) refuse_to_look(process, failed.message());
  std::vector<FlightRecord> records;
  for (const fs::directory_entry& entry : entries) {
    if (!is_flight(entry.path())) continue;
    const std::vector<std::byte> copy = read_copy(entry.path(), process);
    if (!copy.empty()) records.push_back(parse_flight(copy));
  }
  if (records.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "process " + std::to_string(process) +
                                                 " is no rank: it has no groups at the moment");
  }
  std::ranges::sort(records, {}, &FlightRecord::group);
  return records;
}

}  // namespace trireme::collectives
