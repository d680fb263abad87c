#include <arpa/inet.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "trireme/base/descriptor.h"
#include "trireme/error.h"
#include "trireme/wire/doctor/doctor.h"
#include "trireme/wire/system/interfaces.h"
#include "trireme/wire/system/shared_memory.h"
#include "trireme/wire/system/socket.h"
#include "trireme/wire/system/thread.h"

namespace trireme::doctor {
namespace {

/// First word of a file of the system; nothing where it cannot be read.
std::optional<std::string> word_of(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return word;
}

/// The address that this host uses towards others. Nothing is sent: a datagram socket that is
/// connected only looks the route up (192.0.2.1 is for documents, RFC 5737). Empty where there is
/// none.
std::string default_address() {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  ::inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
  const bool has_route =
      socket.is_open() &&
      ::connect(socket.number(), reinterpret_cast<sockaddr*>(&far), sizeof far) == 0;
  return has_route ? transport::local_address(socket).host : "";
}

Finding examine_addresses() {
  std::vector<transport::Interface> interfaces;
  try {
    interfaces = transport::list_interfaces();
  } catch (const Error& error) {
    return {"addresses", Verdict::kBroken, error.message(),
            "allow netlink sockets in this container"};
  }
  std::string found;
  bool is_reachable = false;
  for (const transport::Interface& entry : interfaces) {
    if (entry.host.empty() || !entry.is_up) continue;
    found += (found.empty() ? "" : ", ") + entry.host + " (" + entry.name + ")";
    is_reachable = is_reachable || !entry.is_loopback;
  }
  if (!is_reachable) {
    return {"addresses", Verdict::kSlow, found.empty() ? "none" : found,
            "only ranks of this host can meet: there is no address but the loopback"};
  }
  const std::string chosen = default_address();
  found += chosen.empty() ? "; no route to others" : "; towards others: " + chosen;
  return {"addresses", Verdict::kGood, found, ""};
}

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

Finding examine_limit(const std::string& topic, int resource, rlim_t wanted,
                      const Finding& if_less) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
    return {topic, Verdict::kSlow, std::string("unknown: ") + std::strerror(errno), ""};
  }
  const std::string found =
      limit_text(limit.rlim_cur) + " (at most " + limit_text(limit.rlim_max) + ")";
  if (limit.rlim_cur >= wanted) return {topic, Verdict::kGood, found, ""};
  return {topic, if_less.verdict, found, if_less.advice};
}

Finding examine_kernel_limit(const std::string& name, std::uint64_t wanted) {
  const auto word = word_of("/proc/sys/net/core/" + name);
  const std::string topic = "net.core." + name;
  if (!word) return {topic, Verdict::kGood, "not shown in this container", ""};
  if (std::strtoull(word->c_str(), nullptr, 10) >= wanted)
    return {topic, Verdict::kGood, *word, ""};
  return {topic, Verdict::kSlow, *word,
          "sysctl -w net.core." + name + "=" + std::to_string(wanted) +
              " for many ranks or fast networks"};
}

Finding examine_memfd() {
  try {
    transport::SharedMemory::create("trireme doctor", 4096);
    return {"shared memory", Verdict::kGood, "memfd works", ""};
  } catch (const Error& error) {
    return {"shared memory", Verdict::kSlow, error.message(),
            "allow memfd_create, fallocate and F_ADD_SEALS in this container, or set "
            "TRIREME_TRANSPORT=tcp"};
  }
}

Finding examine_peer_memory() {
  if (::geteuid() == 0) return judge_peer_memory("0");
  return judge_peer_memory(word_of("/proc/sys/kernel/yama/ptrace_scope").value_or("0"));
}

Finding examine_futex() {
  std::uint32_t word = 0;
  if (::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0) >= 0) {
    return {"futex", Verdict::kGood, "works", ""};
  }
  return {"futex", Verdict::kBroken, std::strerror(errno), "allow the system call futex"};
}

Finding examine_cores(int local_ranks) {
  const int cores = transport::count_cores();
  std::string found = std::to_string(cores) + " that this process may use";
  if (local_ranks > 0) found += ", " + std::to_string(local_ranks) + " ranks";
  if (local_ranks <= cores) return {"cores", Verdict::kGood, found, ""};
  return {"cores", Verdict::kSlow, found, "start one rank per core at most: ranks wait for a core"};
}

Finding examine_clock() {
  const auto source = word_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (!source) return {"clock", Verdict::kGood, "not shown in this container", ""};
  // Those that the process reads without a call of the system.
  for (const char* fast : {"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"}) {
    if (*source == fast) return {"clock", Verdict::kGood, *source, ""};
  }
  return {"clock", Verdict::kSlow, *source, "choose tsc: to read this clock takes a microsecond"};
}

}  // namespace

Finding judge_peer_memory(const std::string& ptrace_scope) {
  const std::string topic = "peers' memory";
  if (ptrace_scope == "0") return {topic, Verdict::kGood, "readable by processes of this user", ""};
  const std::string found = "kernel.yama.ptrace_scope is " + ptrace_scope;
  if (ptrace_scope == "1")
    return {topic, Verdict::kGood, found + "; ranks let each other read", ""};
  return {
      topic, Verdict::kSlow, found,
      "sysctl -w kernel.yama.ptrace_scope=1: else large messages between two ranks of this host "
      "go through the loopback, not straight from memory to memory"};
}

std::vector<Finding> examine_host(int local_ranks) {
  constexpr rlim_t kDescriptors = 4096;
  constexpr rlim_t kLockedBytes = rlim_t{64} << 20;
  return {
      examine_addresses(),
      examine_limit("descriptors", RLIMIT_NOFILE, kDescriptors,
                    {.verdict = Verdict::kSlow,
                     .advice = "ulimit -n 65536: a rank needs two for every other one"}),
      examine_limit("locked memory", RLIMIT_MEMLOCK, kLockedBytes,
                    {.verdict = Verdict::kSlow,
                     .advice = "ulimit -l unlimited, for memory that devices read by themselves"}),
      examine_kernel_limit("somaxconn", 1024),
      examine_kernel_limit("rmem_max", std::uint64_t{4} << 20),
      examine_kernel_limit("wmem_max", std::uint64_t{4} << 20),
      examine_memfd(),
      examine_peer_memory(),
      examine_futex(),
      examine_cores(local_ranks),
      examine_clock(),
  };
}

}  // namespace trireme::doctor
