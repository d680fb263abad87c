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
  /// Serves from here on. Errors of `make`, and of the sources' identities.
  ReaderRank(const collectives::World& all, const MakeWorkload& make,
             const SessionOptions& options);

  /// Until no rank asks any more.
  void wait() { server_->wait(); }

 private:
  /// Nothing here to stop: whoever sends a signal to those that train too ends this by it.
  std::optional<SignalRequests> signals_;
  std::optional<readers::SampleServer> server_;
};

/// A session's ranks that train, on one of them, and their readers, if there are any. Outlives what it makes.
class TrainingRanks {
 public:
  TrainingRanks(const collectives::World& all, int num_readers);
  ~TrainingRanks();
  TrainingRanks(const TrainingRanks&) = delete;
  TrainingRanks& operator=(const TrainingRanks&) = delete;

  const collectives::World& world() const { return world_; }

  /// Workloads whose samples the readers read, until `end`. `make` itself where there are no readers.
  MakeWorkload with_readers(const MakeWorkload& make) const;

  /// No sample is wanted any more: readers return.
  void end() {
    if (link_) link_->end();
  }

 private:
  std::unique_ptr<transport::FirstRanks> first_;  ///< Null without readers.
  collectives::World world_;
  std::shared_ptr<readers::ReaderLink> link_;  // of all sources; null without readers
};

}  // namespace trireme::session
