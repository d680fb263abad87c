#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/wire/transport/admission.h"
#include "trireme/wire/transport/poller.h"

namespace trireme::transport {

struct GateOptions {
  Token token;
  std::string door;  ///< As in admission.h.
  Logger logger{LogLevel::kWarning};
  std::chrono::milliseconds patience{5'000};  ///< With a connection that proves nothing.
  std::chrono::milliseconds patience_when_full{1'000};
  int max_strangers = 0;  ///< Connections that have proved nothing; 0: by the system's limits.

  /// Who may not even try; may be null.
  std::function<bool(const Descriptor&)> may_try;
};

/// A listener and the connections that have not yet proved that they belong to the job: those that
/// do are handed on, the others are closed and counted.
///
/// Where too many wait, the listener rests until the oldest are closed: so strangers delay a rank
/// by little more than `patience_when_full` for each `max_strangers` of them.
///
/// Threads  caller-synchronised: that of the poller.
class Gate {
 public:
  /// Uses the upper half of the poller's ids.
  Gate(Descriptor listener, Poller& poller, GateOptions options);

  /// Logs what it has counted and not said.
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  const Descriptor& listener() const { return listener_; }

  static bool is_id(std::uint64_t id) { return id >= kFirstId; }

  /// Serves an event of its own ids: the connection where it has been admitted. It is in no poller.
  std::optional<Descriptor> serve(const Poller::Event& event);

  /// Closes those that have waited too long. Call it at `next_deadline` at the latest.
  void expire();

  /// When `expire` has something to do.
  Deadline next_deadline() const;

 private:
  static constexpr std::uint64_t kFirstId = std::uint64_t{1} << 63;

  struct Stranger {
    Admission admission;
    Deadline since;
  };

  void accept_all();
  void accept(Descriptor socket);
  void rest(bool is_resting);
  void refuse(const std::string& why);
  void report();
  std::chrono::milliseconds patience() const;

  Descriptor listener_;
  Poller& poller_;
  const GateOptions options_;
  const std::size_t max_strangers_;
  std::uint64_t last_id_ = kFirstId;
  std::map<std::uint64_t, Stranger> strangers_;  ///< The oldest first.
  std::optional<Deadline> resting_since_;
  std::map<std::string, int> num_refused_;  ///< By the reason, since the last report.
  Deadline next_report_;
};

}  // namespace trireme::transport
