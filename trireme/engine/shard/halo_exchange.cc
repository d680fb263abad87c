#include "trireme/engine/shard/halo_exchange.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/shard/shard_edges.h"

namespace trireme::shard {
namespace {

using sharding::HaloExchange;
using sharding::overlap;
using sharding::RowRange;
using torch::autograd::variable_list;

/// Rows that shards have and rows that they are to get, by shard.
struct Routes {
  int dim = 0;
  std::vector<RowRange> have;
  std::vector<RowRange> want;
  bool are_added = false;  ///< Several shards may have what one is to get; else just one has.
};

at::Tensor rows_of(const at::Tensor& tensor, int dim, RowRange at, RowRange rows) {
  return tensor.narrow(dim, rows.begin - at.begin, rows.size());
}

/// Moves rows between the shards of a group's ranks.
class RowRouter {
 public:
  RowRouter(Routes routes, const LocalShards& local, const ShardPeers& peers)
      : routes_(std::move(routes)), local_(local), peers_(peers) {}

  /// By shard here; in the order of shards that have rows.
  TensorList run(const TensorList& mine) const {
    const std::vector<TensorList> theirs = exchanged(mine);
    TensorList results;
    for (int i = 0; i < local_.range.count; ++i) {
      const RowRange want = routes_.want[local_.range.first + i];
      const at::Tensor result =
          at::empty(with_rows(mine.front(), want.size()), mine.front().options(),
                    mine.front().suggest_memory_format());
      if (routes_.are_added) result.zero_();
      for (int shard = 0; shard < local_.num_shards; ++shard) {
        const RowRange rows = overlap(routes_.have[shard], want);
        if (rows.size() == 0) continue;
        const bool is_here = rank_of(shard) == my_rank();
        const at::Tensor from = is_here ? rows_of(mine[shard - local_.range.first], routes_.dim,
                                                  routes_.have[shard], rows)
                                        : theirs[i][shard];
        const at::Tensor place = rows_of(result, routes_.dim, want, rows);
        routes_.are_added ? place.add_(from) : place.copy_(from);
      }
      results.push_back(result);
    }
    return results;
  }

 private:
  int rank_of(int shard) const { return shard / local_.range.count; }
  int my_rank() const { return local_.range.first / local_.range.count; }

  std::vector<std::int64_t> with_rows(const at::Tensor& like, std::int64_t num_rows) const {
    std::vector<std::int64_t> sizes = like.sizes().vec();
    sizes[routes_.dim] = num_rows;
    return sizes;
  }

  /// What shards here get of each shard of other ranks, undefined where nothing.
  std::vector<TensorList> exchanged(const TensorList& mine) const {
    std::vector<TensorList> theirs(local_.range.count, TensorList(local_.num_shards));
    if (peers_.group == nullptr) return theirs;
    const int num_ranks = peers_.group->size();
    TensorList sent(num_ranks), received(num_ranks);
    collectives::Sends sends(num_ranks);
    collectives::Receives receives(num_ranks);
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (rank == my_rank()) continue;
      sent[rank] = packed(mine, rank);
      received[rank] = at::empty({elements_from(mine.front(), rank)}, mine.front().options());
      if (sent[rank].numel() > 0) sends[rank] = bytes_of(sent[rank]);
      if (received[rank].numel() > 0) receives[rank] = bytes_of(received[rank]);
    }
    const transport::WorkPtr work = peers_.group->all_to_all(std::move(sends), std::move(receives));
    transport::await(collectives::group_work(*work, *peers_.group), peers_.watch,
                     {.rank = peers_.group->endpoint().rank(), .operation = "halo of shards"});
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (received[rank].defined()) unpack(received[rank], mine.front(), rank, theirs);
    }
    return theirs;
  }

  /// Calls for each pair of a shard of `from` and one of `to` between which rows go, in one order on both.
  template <typename Call>
  void for_pairs(int from, int to, const Call& call) const {
    const int count = local_.range.count;
    for (int source = from * count; source < (from + 1) * count; ++source) {
      for (int target = to * count; target < (to + 1) * count; ++target) {
        const RowRange rows = overlap(routes_.have[source], routes_.want[target]);
        if (rows.size() > 0) call(source, target, rows);
      }
    }
  }

  at::Tensor packed(const TensorList& mine, int rank) const {
    TensorList pieces = {at::empty({0}, mine.front().options())};
    for_pairs(my_rank(), rank, [&](int source, int, RowRange rows) {
      const at::Tensor& tile = mine[source - local_.range.first];
      pieces.push_back(
          rows_of(tile, routes_.dim, routes_.have[source], rows).contiguous().flatten());
    });
    return at::cat(pieces);
  }

  std::int64_t elements_from(const at::Tensor& like, int rank) const {
    std::int64_t num_rows = 0;
    for_pairs(rank, my_rank(), [&](int, int, RowRange rows) { num_rows += rows.size(); });
    return num_rows * (like.numel() / like.size(routes_.dim));
  }

  void unpack(const at::Tensor& received, const at::Tensor& like, int rank,
              std::vector<TensorList>& theirs) const {
    std::int64_t begin = 0;
    for_pairs(rank, my_rank(), [&](int source, int target, RowRange rows) {
      const std::vector<std::int64_t> sizes = with_rows(like, rows.size());
      const std::int64_t count = like.numel() / like.size(routes_.dim) * rows.size();
      theirs[target - local_.range.first][source] = received.narrow(0, begin, count).view(sizes);
      begin += count;
    });
  }

  Routes routes_;
  LocalShards local_;
  ShardPeers peers_;
};

/// Backward of an exchange: the gradients of rows go back to whose they are.
class HaloNode : public torch::autograd::Node {
 public:
  HaloNode(torch::autograd::edge_list&& tiles, RowRouter router, std::vector<RowRange> wanted,
           int dim)
      : Node(std::move(tiles)), router_(std::move(router)), wanted_(std::move(wanted)), dim_(dim) {}

  variable_list apply(variable_list&& gradients) override {
    const auto any = std::ranges::find_if(gradients, &at::Tensor::defined);
    if (any == gradients.end()) return variable_list(num_outputs());
    std::vector<std::int64_t> sizes = any->sizes().vec();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) continue;
      sizes[dim_] = wanted_[i].size();
      gradients[i] = at::zeros(sizes, any->options());
    }
    return router_.run(gradients);
  }

 private:
  RowRouter router_;
  std::vector<RowRange> wanted_;  ///< Of the shards here.
  int dim_;
};

TensorList exchange(const TensorList& tiles, const HaloExchange& halo, const LocalShards& local,
                    const ShardPeers& peers) {
  const std::vector<RowRange> own = sharding::all_tiles(halo.extent, local.num_shards);
  TensorList rows = [&] {
    const at::NoGradGuard no_grad;
    return RowRouter({halo.dim, own, halo.wanted, false}, local, peers).run(tiles);
  }();
  if (!records_gradient(tiles)) return rows;
  const auto first = halo.wanted.begin() + local.range.first;
  const auto node = program::make_node<HaloNode>(
      edges_of(tiles), RowRouter({halo.dim, halo.wanted, own, true}, local, peers),
      std::vector<RowRange>(first, first + local.range.count), halo.dim);
  for (at::Tensor& tensor : rows) join(tensor, node);
  return rows;
}

}  // namespace

std::shared_ptr<const OpaqueFunction> make_halo_function(const HaloExchange& halo,
                                                         const LocalShards& local,
                                                         const ShardPeers& peers) {
  auto function = std::make_shared<OpaqueFunction>();
  function->name = halo.name;
  function->call = [halo, local, peers](const TensorList& tiles) {
    return exchange(tiles, halo, local, peers);
  };
  return function;
}

}  // namespace trireme::shard
