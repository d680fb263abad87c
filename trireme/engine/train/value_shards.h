#pragma once

#include <map>

#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/operation.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::train {

/// What a rank does with values that its replicas have in shards: the operations kUnshard, kAwait and kReshard of step and
/// evaluation programs.
///
/// Confined to the thread that runs the step.
class ValueShards {
 public:
  /// replicas   the ranks that have the other shards; all outlive this.
  ValueShards(const parameters::ParameterStore& store, collectives::Group& replicas,
              const transport::WatchOptions& watch);

  /// Waits for gathers that nobody has awaited, after a failure: their memory is lent until they end.
  ~ValueShards();
  ValueShards(const ValueShards&) = delete;
  ValueShards& operator=(const ValueShards&) = delete;

  /// Whether an operation is one of them.
  static bool is_about(const schedule::Operation& operation);

  /// place   for errors.
  void run(const schedule::Operation& operation, const ErrorContext& place);

  /// Whole at once, between steps, for somebody who wants all of a bucket's values; then in shards again. Every replica calls
  /// it; blocks.
  void unshard_now(int bucket, const ErrorContext& place);
  void reshard(int bucket);

 private:
  void unshard(int bucket);
  void await(int bucket, const ErrorContext& place);

  const parameters::ParameterStore& store_;
  collectives::Group& replicas_;
  const transport::WatchOptions& watch_;
  std::map<int, transport::WorkPtr> gathers_;  ///< By bucket, under way.
};

}  // namespace trireme::train
