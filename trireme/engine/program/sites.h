#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trireme/engine/program/autograd_nodes.h"
#include "trireme/engine/program/node_call.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::program {

/// Stand-ins for the parameters of a recording, one per use site: each site's gradient goes to the
/// sink apart from the others'.
///
/// They live as long as the tensors of the recording and serve every microbatch, several at once.
class SiteTable {
 public:
  /// sink   must outlive the table and every backward through its stand-ins.
  SiteTable(const record::Recording& recording, GradientSink& sink);

  SiteTable(const SiteTable&) = delete;
  SiteTable& operator=(const SiteTable&) = delete;

  const std::vector<graph::UseSite>& sites() const { return sites_; }

  /// What `node` gets for `parameter`; the detached parameter where it is no use.
  at::Tensor tensor_for(graph::ValueId parameter, graph::NodeId node) const;

  ParameterBinding binding() const;

 private:
  const record::Recording& recording_;
  std::vector<graph::UseSite> sites_;
  std::vector<at::Tensor> stand_ins_;  ///< By position in sites_.
  std::map<std::pair<graph::ValueId, graph::NodeId>, std::size_t> site_of_;
};

}  // namespace trireme::program
