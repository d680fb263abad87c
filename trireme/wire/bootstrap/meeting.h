#pragma once

#include <memory>
#include <string>

#include "trireme/base/environment.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport {

/// Tells processes of this host and user that know the job's id a short text: where the store is,
/// under launchers that give no address. By an abstract Unix socket, so nothing is left behind.
///
/// Threads  one of its own; the destructor ends it.
class Announcement {
 public:
  /// job_id   at most 64 characters count.
  /// Errors   kInvalidArgument where another process announces for this job; kIo.
  Announcement(const std::string& job_id, const std::string& text);
  ~Announcement();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

/// What is announced for a job, by a process of this user. Blocks until it is.
///
/// Errors   kTimeout, naming the job, after `deadline`.
std::string find_announcement(const std::string& job_id, Deadline deadline);

/// Where the ranks of a job meet, and what this one serves there.
struct Meeting {
  Address store;
  Token token;
  std::unique_ptr<StoreServer> server;         ///< Of rank 0, unless the launcher serves the store.
  std::unique_ptr<Announcement> announcement;  ///< Of rank 0, where ranks meet by the job's id.
};

/// As the environment says. Not for torchrun, which has a store of its own. Rank 0 serves, at the
/// address that the store's name leads to, or on all of its host where that is none of its own; the
/// others may have to wait until it does.
///
/// Errors   those of `listen_on`, Announcement, `find_announcement`, `token_of_job` and
///          `check_may_listen`.
Meeting meet(const RankEnvironment& environment, Deadline deadline, const Logger& logger);

/// Host at which others reach this rank: TRIREME_HOST, the address of TRIREME_INTERFACE, or empty:
/// the one that routes to the store.
///
/// Errors   kInvalidArgument, naming those that there are, where no interface has that name or it
///          has no address.
std::string host_of(const RankEnvironment& environment);

}  // namespace trireme::transport
