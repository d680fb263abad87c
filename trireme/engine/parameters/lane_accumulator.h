#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/kernels/reduce/tree.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::parameters {

/// Sums the gradients of a step: each lane's microbatches folded left, the lanes combined by the
/// balanced tree, then the sites of a parameter in node order (docs/concepts/equality.md). Stages may be
/// at different lanes, and so may replicas that the rank runs side by side: each has buffers of its own, which the tree
/// joins at last.
///
/// With bf16 gradients each partial sum of the tree is rounded to bf16 before it is added to another, and
/// so is the whole; lanes are folded in f32.
///
/// Temporary buffers (GradientBuffers) are made where the first gradient of a lane comes; those of further lanes end with
/// the bucket's sum, that one where its taker says so, and the shards that are left with the step.
///
/// Confined to the thread that runs the step.
class LaneAccumulator {
 public:
  struct Options {
    Dtype dtype = Dtype::kF32;  ///< What partial sums are rounded to: f32, as they are, or bf16.
    FlatMemory memory =
        nullptr;  ///< Of `gradients()` but temporary ones; the store's where there is none.
    int num_replicas = 1;  ///< That are folded here side by side.
  };

  /// num_lanes   of each replica that is folded here.
  LaneAccumulator(const ParameterStore& store, const graph::Graph& graph, int num_lanes,
                  const Options& options);
  LaneAccumulator(const ParameterStore& store, const graph::Graph& graph, int num_lanes)
      : LaneAccumulator(store, graph, num_lanes, Options()) {}

  void begin_step();

  /// From now on gradients are of this one of the replicas here, and it is whose lane ends. Their last microbatches come in
  /// their order.
  void begin_replica(int replica) { replica_ = replica; }

  /// site       index in graph::use_sites, of a stage that the store holds.
  /// gradient   of the parameter's shape; any strides; may be sparse.
  void accept(int site, const at::Tensor& gradient);

  /// The microbatch of the stage that follows is the last of all replicas': from now on, a bucket is handed to `on_sum` once
  /// each of its sites has had its last gradient, others at `end_lane`. Who takes it rounds it.
  void begin_last_microbatch(int stage, std::function<void(int bucket)> on_sum);

  /// The stage's last microbatch of its lane is done.
  void end_lane(int stage);

  /// The same of all stages held here.
  void end_lane();

  /// Of a temporary buffer no more than the shard is wanted from now on; of others all is kept.
  void keep_shard(int bucket, const layout::Shard& shard);

  /// Sums of sites that are held elsewhere, flat, by index in graph::use_sites.
  using RemoteSites = std::map<int, at::Tensor>;

  /// All lanes are done: afterwards the owner slot of each parameter owned here holds its gradient.
  ///
  /// remote   the sums of all sites of these parameters that are not held here.
  void end_step(const RemoteSites& remote = {});

  /// Whether any backward of the step reached the site here.
  bool has_reached(int site) const { return places_[site].reached; }

  /// The sum of a site held here, flat; valid after the last lane.
  at::Tensor site_sum(int site) const;

  /// Whether any backward of the step reached the parameter here. It is not to be updated
  /// otherwise.
  bool has_gradient(const std::string& parameter) const;

  int num_sites() const { return static_cast<int>(places_.size()); }
  const std::string& parameter_of(int site) const { return places_[site].parameter; }

  /// Whether partial sums of the bucket are rounded to bf16. Those of f64 parameters never are.
  bool is_rounded(int bucket) const {
    return dtype_ == Dtype::kBf16 && store_.map().buckets[bucket].dtype != Dtype::kF64;
  }

  /// The sums; valid after `end_step` until the next `begin_step`.
  GradientBuffers& gradients() { return buffers_[0]; }
  const GradientBuffers& gradients() const { return buffers_[0]; }

 private:
  struct Place {
    std::string parameter;
    int site = 0;
    int bucket = -1;
    std::vector<at::Tensor>
        views;  ///< One per buffer, where there is one; none where the stage is not held.
    std::vector<bool> written;  ///< By replica: in the lane that is being folded.
    bool reached = false;       ///< In the step.
  };

  /// How far a replica is in a stage.
  struct Fold {
    std::set<int> finished;  ///< Of the lane that is being folded: merges are made.
    std::vector<kernels::Merge>
        merges;      ///< That end the lane; after the last, those of replicas too.
    int buffer = 0;  ///< That the lane is folded into.
    std::unique_ptr<kernels::LaneTree> tree;
  };

  /// How far a stage held here is.
  struct Lanes {
    std::vector<int> buckets;         ///< Of the stage, that have sites.
    std::function<void(int)> on_sum;  ///< Of the last microbatch.
    std::vector<Fold> folds;          ///< By replica.
  };

  Lanes& lanes_of(int bucket) { return lanes_.at(store_.map().buckets[bucket].stage); }
  int first_buffer(int replica) const {
    return replica * kernels::LaneTree::num_buffers(num_lanes_);
  }
  bool is_whole(const Fold& fold) const;
  void push(Fold& fold);
  void make_buffer(int buffer, int bucket);
  void drop_buffer(int buffer, int bucket);
  void forget_views(int buffer, int bucket);
  void finish_bucket(int bucket);
  void merge(kernels::Merge merge, int bucket);
  void sum_sites(const std::string& parameter, const RemoteSites& remote);

  const ParameterStore& store_;
  std::vector<GradientBuffers> buffers_;
  std::vector<Place> places_;                         ///< By index in graph::use_sites.
  std::map<std::string, std::vector<int>> sites_of_;  ///< By parameter, in node order.
  std::vector<std::vector<int>> sites_in_;            ///< By bucket.
  std::vector<int> missing_;    ///< By bucket: sites still to come, last microbatch.
  std::map<int, Lanes> lanes_;  ///< By stage.
  int num_lanes_;
  int num_replicas_;
  int replica_ = 0;  ///< Whose gradients come.
  Dtype dtype_;
};

}  // namespace trireme::parameters
