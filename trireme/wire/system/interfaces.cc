#include "trireme/wire/system/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <set>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::transport {
namespace {

std::string host_text(const sockaddr* address) {
  const std::size_t size =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  char host[NI_MAXHOST];
  if (getnameinfo(address, static_cast<socklen_t>(size), host, sizeof host, nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return host;
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) throw_system_error("list network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
  std::vector<Interface> result;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const int family = entry->ifa_addr == nullptr ? AF_UNSPEC : entry->ifa_addr->sa_family;
    const bool is_ip = family == AF_INET || family == AF_INET6;
    result.push_back({.name = entry->ifa_name,
                      .host = is_ip ? host_text(entry->ifa_addr) : "",
                      .is_v6 = family == AF_INET6,
                      .is_up = (entry->ifa_flags & IFF_UP) != 0,
                      .is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  std::stable_partition(result.begin(), result.end(),
                        [](const Interface& entry) { return !entry.is_v6; });
  return result;
}

std::string host_of_interface(const std::string& name) {
  std::set<std::string> with_address;
  for (const Interface& entry : list_interfaces()) {
    if (entry.host.empty()) continue;
    if (entry.name == name) return entry.host;
    with_address.insert(entry.name);
  }
  std::string names;
  for (const std::string& known : with_address) names += (names.empty() ? "" : ", ") + known;
  throw Error(
      ErrorKind::kInvalidArgument,
      "no network interface '" + name + "' with an address; TRIREME_INTERFACE may be: " + names);
}

std::optional<std::string> interface_of_host(const std::string& host) {
  for (const Interface& entry : list_interfaces()) {
    if (entry.host == host) return entry.name;
  }
  return is_loopback(host) ? std::optional("lo") : std::nullopt;
}

std::optional<int> megabits_of_interface(const std::string& name) {
  int megabits = 0;
  if (name.find('/') != std::string::npos) return std::nullopt;
  if (!(std::ifstream("/sys/class/net/" + name + "/speed") >> megabits)) return std::nullopt;
  return megabits > 0 ? std::optional(megabits) : std::nullopt;
}

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1" || host.starts_with("::ffff:127.");
}

}  // namespace trireme::transport
