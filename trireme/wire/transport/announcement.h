#pragma once

#include <memory>
#include <string>

#include "trireme/wire/transport/socket.h"

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

}  // namespace trireme::transport
