#pragma once

#include <memory>
#include <optional>

#include "trireme/engine/readers/reader_link.h"
#include "trireme/engine/readers/sample_server.h"
#include "trireme/session.h"
#include "trireme/session/training_requests.h"
#include "trireme/wire/collectives/world.h"
#include "trireme/wire/endpoint/first_ranks.h"

namespace trireme::session {

/// Whether this rank reads samples for those that train (SessionOptions::reader_ranks). kInvalidArgument where none would be
/// left to train, and of `serial`.
bool reads_for_others(const SessionOptions& options, const collectives::World& world);

/// A session's part on a rank that reads: the workload's data, given to the ranks that train.
class ReaderRank {
 public:
  /// Serves from here on. Errors of `make`; kInvalidArgument where other ranks have other data.
  ReaderRank(const collectives::World& all, const MakeWorkload& make,
             const SessionOptions& options);

  /// Until no rank asks any more.
  void wait() { server_->wait(); }

 private:
  std::optional<SignalRequests> signals_;  ///< They ask those that train, which then end this.
  std::optional<readers::SampleServer> server_;
};

/// A session's ranks that train, on one of them, and their readers, if there are any.
class TrainingRanks {
 public:
  TrainingRanks(const collectives::World& all, int num_readers);
  ~TrainingRanks();
  TrainingRanks(const TrainingRanks&) = delete;
  TrainingRanks& operator=(const TrainingRanks&) = delete;

  const collectives::World& world() const { return world_; }

  /// Workloads whose samples the readers read. `make` itself where there are none.
  MakeWorkload with_readers(const MakeWorkload& make) const;

  /// Every rank that trains calls it. kInvalidArgument where readers have other data.
  void require_same_data(const Workload& workload) const;

 private:
  collectives::World all_;
  std::unique_ptr<transport::FirstRanks> first_;  ///< Null without readers.
  collectives::World world_;
  std::shared_ptr<readers::ReaderLink> link_;  // of all sources; null without readers
};

}  // namespace trireme::session
