#include "trireme/wire/transport/meeting.h"

#include <algorithm>
#include <string>
#include <vector>

#include "trireme/wire/transport/interfaces.h"

namespace trireme::transport {
namespace {

/// Where rank 0 listens: at the one address of this host that the store's name leads to. Where there
/// is none such, on all: other hosts may have another address for it than this one, which finds
/// 127.0.1.1 or nothing. Who gets in has the job's token.
Descriptor listen_for_ranks(const Address& store) {
  if (store.host.empty()) return listen_on({});
  if (store.host == "localhost" || is_loopback(store.host)) return listen_on(store);
  const std::vector<std::string> hosts = hosts_of_name(store.host);
  for (const Interface& interface : list_interfaces()) {
    const bool is_named = std::ranges::find(hosts, interface.host) != hosts.end();
    if (is_named && !interface.is_loopback) return listen_on({interface.host, store.port});
  }
  return listen_on_all(store.port);
}

}  // namespace

Meeting meet(const RankEnvironment& environment, Deadline deadline, const Logger& logger) {
  Meeting meeting{.store = {environment.store_host, environment.store_port},
                  .token = token_of_job(environment, logger),
                  .server = nullptr,
                  .announcement = nullptr};
  if (!environment.store_host.empty()) check_may_listen(meeting.token, environment.store_host);
  const bool serves = environment.rank == 0 && environment.launcher != Launcher::kTrireme;
  const bool by_job_id = environment.store_host.empty();
  if (serves) {
    meeting.server =
        std::make_unique<StoreServer>(meeting.token, listen_for_ranks(meeting.store), logger);
  }
  if (by_job_id && serves) {
    meeting.store = meeting.server->address();
    meeting.announcement =
        std::make_unique<Announcement>(environment.job_id, to_text(meeting.store));
  } else if (by_job_id) {
    meeting.store = parse_address(find_announcement(environment.job_id, deadline));
  }
  return meeting;
}

std::string host_of(const RankEnvironment& environment) {
  if (!environment.host.empty()) return environment.host;
  return environment.interface.empty() ? "" : host_of_interface(environment.interface);
}

}  // namespace trireme::transport
