#include "trireme/engine/shard/halo_exchange.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::shard {
namespace {

using sharding::HaloExchange;
using sharding::RowRange;

/// Seven rows over three shards, 2, 2 and 3; the last one wants rows of both others.
const HaloExchange kHalo{"halo", 1, 7, {{0, 4}, {1, 5}, {1, 7}}};

at::Tensor whole() { return torch::arange(2 * 7 * 3, torch::kFloat).view({2, 7, 3}); }

TensorList tiles(int first, int count) {
  TensorList result;
  for (int shard = first; shard < first + count; ++shard) {
    const RowRange rows = sharding::tile_rows(7, 3, shard);
    result.push_back(whole().narrow(1, rows.begin, rows.size()).clone().requires_grad_());
  }
  return result;
}

at::Tensor weights_of(int shard) {
  const RowRange rows = kHalo.wanted[shard];
  // Of its own: ranks are threads here, and torch has one generator for all.
  const auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(shard));
  return torch::randn({2, rows.size(), 3}, generator);
}

/// What the function gives, and the gradients of the tiles where rows are weighted.
struct Exchanged {
  TensorList rows, gradients;
};

Exchanged exchange(int first, int count, const ShardPeers& peers) {
  const TensorList mine = tiles(first, count);
  const auto function = make_halo_function(kHalo, {{first, count}, 3}, peers);
  Exchanged result{.rows = function->call(mine), .gradients = {}};
  at::Tensor sum = torch::zeros({});
  for (int i = 0; i < count; ++i) sum = sum + (result.rows[i] * weights_of(first + i)).sum();
  sum.backward();
  for (const at::Tensor& tile : mine) result.gradients.push_back(tile.grad());
  return result;
}

TEST(HaloExchange, GivesRowsAndTakesTheirGradientsBack) {
  const Exchanged all = exchange(0, 3, {});
  const at::Tensor expected = torch::zeros({2, 7, 3});
  for (int shard = 0; shard < 3; ++shard) {
    const RowRange rows = kHalo.wanted[shard];
    EXPECT_TRUE(at::equal(all.rows[shard].detach(), whole().narrow(1, rows.begin, rows.size())));
    expected.narrow(1, rows.begin, rows.size()).add_(weights_of(shard));
  }
  for (int shard = 0; shard < 3; ++shard) {
    const RowRange rows = sharding::tile_rows(7, 3, shard);
    EXPECT_TRUE(at::equal(all.gradients[shard], expected.narrow(1, rows.begin, rows.size())));
  }
}

TEST(HaloExchange, OfRanksHasTheBitsOfOneProcess) {
  const Exchanged all = exchange(0, 3, {});
  std::vector<Exchanged> ranks(3);
  auto endpoints =
      transport::make_sim_world(3, {.seed = 1, .max_delay = std::chrono::microseconds(100)});
  transport::test::expect_no_errors(transport::test::run_threads(3, [&](int rank) {
    collectives::Group group(*endpoints[rank], {0, 1, 2},
                             {.name = "shard", .id = 1, .deadline = std::chrono::seconds(20)});
    ranks[rank] = exchange(rank, 1, {&group, {.deadline = std::chrono::seconds(20)}});
  }));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(at::equal(ranks[rank].rows.front(), all.rows[rank]));
    EXPECT_TRUE(at::equal(ranks[rank].gradients.front(), all.gradients[rank]));
  }
}

// Rows that nothing comes back of have zeros.
TEST(HaloExchange, TakesGradientsOfSomeShardsAlone) {
  const TensorList mine = tiles(0, 3);
  const TensorList rows = make_halo_function(kHalo, {{0, 3}, 3}, {})->call(mine);
  rows[1].sum().backward();
  EXPECT_TRUE(at::equal(mine[2].grad().narrow(1, 0, 1), torch::ones({2, 1, 3})));
  EXPECT_EQ(mine[2].grad().sum().item<float>(), 6);
}

TEST(HaloExchange, KeepsChannelsLast) {
  const HaloExchange halo{"halo", 2, 4, {{0, 3}, {1, 4}}};
  const auto format = torch::MemoryFormat::ChannelsLast;
  const at::Tensor image = torch::randn({2, 3, 4, 5}).contiguous(format);
  const TensorList mine = {image.narrow(2, 0, 2).contiguous(format),
                           image.narrow(2, 2, 2).contiguous(format)};
  const TensorList rows = make_halo_function(halo, {{0, 2}, 2}, {})->call(mine);
  EXPECT_TRUE(rows[0].is_contiguous(format));
  EXPECT_TRUE(at::equal(rows[1], image.narrow(2, 1, 3)));
}

}  // namespace
}  // namespace trireme::shard
