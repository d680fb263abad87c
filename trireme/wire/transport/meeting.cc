#include "trireme/wire/transport/meeting.h"

#include "trireme/wire/transport/interfaces.h"

namespace trireme::transport {
namespace {

/// Where rank 0 listens. At a name that other hosts use on all addresses: this host may have
/// another one for it, 127.0.1.1 or none. Who gets in has the job's token.
Descriptor listen_for_ranks(const Address& store) {
  if (store.host.empty()) return listen_on({});
  const bool is_local = store.host == "localhost" || is_loopback(store.host);
  return is_local ? listen_on(store) : listen_on_all(store.port);
}

}  // namespace

Meeting meet(const RankEnvironment& environment, Deadline deadline, const Logger& logger) {
  Meeting meeting{.store = {environment.store_host, environment.store_port},
                  .token = token_of_job(environment, logger),
                  .server = nullptr,
                  .announcement = nullptr};
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
