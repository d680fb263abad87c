#pragma once

#include <cstdint>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// What may be no problem where the model is recorded at one batch size: recordings at several do
/// not make one graph, or forward fails at one of them.
class SizeProblem : public Error {
 public:
  explicit SizeProblem(const std::string& message) : Error(ErrorKind::kInvalidArgument, message) {}
  SizeProblem(ErrorKind kind, const std::string& message) : Error(kind, message) {}
  SizeProblem(const std::string& message, const std::exception& cause)
      : Error(ErrorKind::kInvalidArgument, message, cause) {}
};

/// A recording whose sizes are all fixed, and the batch size it was made at.
struct FixedGraph {
  const graph::Graph& graph;
  std::int64_t batch;
};

/// The graph whose sizes grow with the batch: each integer of the first two recordings is fitted as
/// per_sample x batch + fixed and checked against the others, which were made with other data.
///
/// recordings   at least three, at different batch sizes.
/// Errors       SizeProblem naming the first node that differs in anything else, or whose
///              integer, shape or constant is not explained by the batch.
graph::Graph generalise(const std::vector<FixedGraph>& recordings);

}  // namespace trireme::record
