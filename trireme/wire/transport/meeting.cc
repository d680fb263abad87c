#include "trireme/wire/transport/meeting.h"

#include "trireme/wire/transport/interfaces.h"

namespace trireme::transport {

Meeting meet(const RankEnvironment& environment, Deadline deadline, const Logger& logger) {
  Meeting meeting{.store = {environment.store_host, environment.store_port},
                  .token = token_of_job(environment, logger),
                  .server = nullptr,
                  .announcement = nullptr};
  const bool serves = environment.rank == 0 && environment.launcher != Launcher::kTrireme;
  const bool by_job_id = environment.store_host.empty();
  if (serves) {
    const Address address = by_job_id ? Address{} : meeting.store;
    meeting.server = std::make_unique<StoreServer>(address, meeting.token, logger);
    meeting.store = meeting.server->address();
  }
  if (by_job_id && serves) {
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
