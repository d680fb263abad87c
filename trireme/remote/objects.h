#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/base/remote_environment.h"
#include "trireme/remote/request.h"
#include "trireme/remote/retry.h"

namespace trireme::remote {

/// What tells one state of an object from another.
struct ObjectVersion {
  std::string etag;  ///< As the server writes it, with quotes; empty: it has none.
  std::string last_modified;
  std::int64_t bytes = 0;

  /// Whether the ETag says that two states have the same bytes.
  bool is_strong() const { return etag.starts_with('"'); }
};

/// Objects that are asked for by name (location.h), as often as the policy has it.
///
/// Errors   of all calls: kInvalidArgument for a name that is none; kIo, naming the object, where it is not there, may not be read,
///          or the server says that another request would do no better; kTimeout where there was no progress for as long as the
///          policy has patience; kCancelled. No message has a key, a password or the query of a URL.
/// Threads  thread-safe; blocking. Connections are kept, one a thread that asks at once.
class Objects {
 public:
  explicit Objects(RemoteEnvironment environment, RetryPolicy policy = {});

  const RemoteEnvironment& environment() const { return environment_; }
  const RetryPolicy& policy() const { return policy_; }

  /// Ends connections that nobody uses. Others are made when they are needed.
  void hang_up() const;

  /// What is there now. kIo too where the server does not say how long it is.
  ObjectVersion inspect(const std::filesystem::path& name, const std::stop_token& stop) const;

  /// Writes an object to the beginning of a file. After a connection that was cut it goes on where that was, if the server can say
  /// that the object is still the same; else it begins again. What the server says about its checksum is compared.
  ///
  /// Errors   kIo too where the object is not of this version; those of writing.
  void fetch(const std::filesystem::path& name, const ObjectVersion& version,
             const Descriptor& file, const std::stop_token& stop) const;

  /// Names of the objects right under a prefix of a bucket, `s3://bucket/train/`, sorted by their bytes. Those below a further
  /// slash are not among them. kCorruptData where the listing is damaged.
  std::vector<std::filesystem::path> list(const std::filesystem::path& folder) const;

 private:
  class Loan;  // a connection for one call (objects.cc)

  /// Until an answer comes that asking again would not change.
  HttpResponse ask(const std::function<HttpRequest()>& next, const Receiver& receiver, Retry& retry,
                   const std::stop_token& stop) const;
  HttpResponse ask_for_head(const std::filesystem::path& name, const ObjectLocation& location,
                            Retry& retry, const std::stop_token& stop) const;

  RemoteEnvironment environment_;
  RetryPolicy policy_;
  mutable std::mutex mutex_;  // for what follows
  mutable std::vector<Connection> idle_;
};

}  // namespace trireme::remote
